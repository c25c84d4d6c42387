// Opens a dashboard in a headless Chromium and prints what it finds as JSON: `node web/scripts/dashboard.mjs URL STEPS`, where STEPS
// is a list of JSON objects, done in order. The tests of `--dashboard` use it. Exit code 77 without a Chromium.
//   { "wait": "live"|"reconnecting"|"ended", "s": 20 }   waits for the badge
//   { "until": "SCRIPT", "s": 20 }                       waits until the script returns something true
//   { "read": "NAME", "script": "SCRIPT" }               notes what the script returns
//   { "command": ["rate", "s1", "5 Mbit/s"] }            gives a command with the page's own form
//   { "keyboard": 40 }                                   notes where the focus goes with the Tab key
//   { "contrast": true }                                 notes texts whose contrast with their background is below 4.5 (3 if large)
//   { "line": "TEXT" }                                   prints a line at once, and waits for one on standard input
import { spawnSync } from "node:child_process";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const [url, steps] = process.argv.slice(2);
if (!url || !steps) {
  console.error("usage: dashboard.mjs URL STEPS");
  process.exit(2);
}
const name = ["chromium", "chromium-browser", "google-chrome"].find((name) => spawnSync(name, ["--version"]).status === 0);
if (!name) {
  console.error("no Chromium");
  process.exit(77);
}
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const browser = await chromium.launch({ executablePath: spawnSync("which", [name]).stdout.toString().trim(), args: ["--no-sandbox"] });
const found = { errors: [] };

/** In the page: texts that are hard to read. */
function faint() {
  const parse = (text) => (/^rgba?\(([^)]*)\)/.exec(text)?.[1] ?? "0,0,0,0").split(/[ ,/]+/).map(Number);
  const over = ([r, g, b, a = 1], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backgroundOf = (element) => {
    const layers = [];
    for (let one = element; one !== null; one = one.parentElement) layers.push(parse(getComputedStyle(one).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer.length === 4 ? layer : [...layer, 1], below), [255, 255, 255]);
  };
  const wrong = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (walker.currentNode.textContent.trim() === "" || element.closest("script, style, svg, option") || !element.checkVisibility({ opacityProperty: true })) continue;
    const style = getComputedStyle(element);
    const background = backgroundOf(element);
    const [a, b] = [luminance(over(parse(style.color), background)), luminance(background)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (contrast < (isLarge ? 3 : 4.5)) wrong.push(`${contrast.toFixed(2)}: ${element.tagName}.${element.className}: ${walker.currentNode.textContent.trim().slice(0, 40)}`);
  }
  return [...new Set(wrong)];
}

try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on("pageerror", (error) => found.errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && !/ERR_CONNECTION|ERR_INCOMPLETE|net::ERR|401|404/.test(message.text()) && found.errors.push(message.text()));
  await page.goto(url);
  // The page's policy forbids what Playwright's own function for this does.
  const until = async (script, timeout) => {
    for (const end = Date.now() + timeout; !(await page.evaluate(script)); await page.waitForTimeout(50)) {
      if (Date.now() > end) throw new Error(`not within ${timeout} ms: ${script}`);
    }
  };
  for (const step of JSON.parse(steps)) {
    const timeout = (step.s ?? 20) * 1000;
    if (step.wait !== undefined) await page.waitForSelector(`.badge[data-link="${step.wait}"]`, { timeout });
    if (step.until !== undefined) await until(step.until, timeout);
    if (step.read !== undefined) found[step.read] = await page.evaluate(step.script);
    if (step.line !== undefined) {
      console.log(step.line);
      await lines.next();
    }
    if (step.command !== undefined) {
      const [word, name, value] = step.command;
      const title = { sinr: "SINR, dB", handover: "Handover", load: "Interference load", rate: "Rate", loss: "Loss" }[word];
      const form = page.locator("form.control", { has: page.getByText(title, { exact: true }) });
      await form.locator("select").first().selectOption(name);
      if (word === "handover") await form.locator("select").nth(1).selectOption(value);
      else await form.locator("input").fill(value);
      await form.getByRole("button", { name: "Set" }).click();
      await until(`document.querySelector(".answer").textContent.startsWith(${JSON.stringify(word)}) && !document.querySelector(".answer").textContent.endsWith("…")`, timeout);
      found.answer = await page.locator(".answer").textContent();
    }
    if (step.keyboard !== undefined) {
      found.keyboard = [];
      await page.evaluate(() => document.activeElement?.blur?.());
      for (let n = 0; n < step.keyboard; n++) {
        await page.keyboard.press("Tab");
        found.keyboard.push(
          await page.evaluate(() => {
            const { activeElement: one } = document;
            const outline = getComputedStyle(one);
            const label = one.getAttribute("aria-label") ?? one.closest("label")?.textContent ?? one.textContent ?? "";
            return { tag: one.tagName, label: label.trim().slice(0, 40), y: Math.round(one.getBoundingClientRect().top + scrollY), outlined: outline.outlineStyle !== "none" && outline.outlineWidth !== "0px" };
          }),
        );
      }
    }
    if (step.contrast !== undefined) {
      found.contrast = await page.evaluate(faint);
      await page.emulateMedia({ colorScheme: "dark" });
      await page.waitForTimeout(200);
      found.contrast_dark = await page.evaluate(faint);
      await page.emulateMedia({ colorScheme: "light" });
    }
    if (step.shot !== undefined) await page.screenshot({ path: step.shot, fullPage: true });
  }
} catch (error) {
  found.failed = String(error);
} finally {
  console.log(JSON.stringify(found));
  await browser.close();
  process.exit(found.failed === undefined ? 0 : 1);
}
