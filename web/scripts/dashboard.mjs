// Opens a dashboard in a headless Chromium and prints what it finds as JSON: `node web/scripts/dashboard.mjs URL STEPS`, where STEPS
// is a list of JSON objects, done in order. The tests of `--dashboard` use it. Exit code 77 without a Chromium.
//   { "wait": "live"|"reconnecting"|"ended", "s": 20 }   waits for the badge
//   { "until": "SCRIPT", "s": 20 }                       waits until the script returns something true
//   { "read": "NAME", "script": "SCRIPT" }               notes what the script returns
//   { "command": ["rate", "s1", "5 Mbit/s"] }            gives a command with the page's own form; "off" restores the SINR
//   { "keyboard": 40 }                                   notes where the focus goes with the Tab key
//   { "contrast": "NAME" }                               notes what is hard to see (contrast.mjs), on a light and on a dark page
//   { "interact": 5 }                                    notes how soon the page answers its reader (interaction.mjs)
//   { "inject": "NAME" }                                 puts a script into the page, and notes what becomes of it
//   { "width": 400 }                                     makes the window that wide
//   { "line": "TEXT" }                                   prints a line at once, and waits for one on standard input
import { createInterface } from "node:readline";
import { launch, until } from "./chromium.mjs";
import * as contrast from "./contrast.mjs";
import * as interaction from "./interaction.mjs";

const [url, steps] = process.argv.slice(2);
if (!url || !steps) {
  console.error("usage: dashboard.mjs URL STEPS");
  process.exit(2);
}
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const browser = await launch();
const found = { errors: [] };

try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on("pageerror", (error) => found.errors.push(String(error)));
  let injected = false;
  page.on("console", (message) => message.type() === "error" && !(injected && /Content Security Policy/.test(message.text())) && !/ERR_CONNECTION|ERR_INCOMPLETE|net::ERR|400|401|404/.test(message.text()) && found.errors.push(message.text()));
  await page.addInitScript(contrast.prepare);
  await page.addInitScript(interaction.prepare);
  await page.goto(url);
  for (const step of JSON.parse(steps)) {
    const timeout = (step.s ?? 20) * 1000;
    if (step.wait !== undefined) await page.waitForSelector(`.badge[data-link="${step.wait}"]`, { timeout });
    if (step.until !== undefined) await until(page, step.until, timeout);
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
      else if (value !== "off") await form.locator("input").fill(value);
      await form.getByRole("button", { name: value === "off" ? "Restore" : "Set" }).click();
      await until(page, `document.querySelector(".answer").textContent.startsWith(${JSON.stringify(word)}) && !document.querySelector(".answer").textContent.endsWith("…")`, timeout);
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
            const seen = window.contrast.of(outline.outlineColor, one.parentElement ?? one);
            return { seen, tag: one.tagName, label: label.trim().slice(0, 40), y: Math.round(one.getBoundingClientRect().top + scrollY), outlined: outline.outlineStyle !== "none" && outline.outlineWidth !== "0px" };
          }),
        );
      }
    }
    if (step.contrast !== undefined) {
      const looks = {};
      for (const colorScheme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme });
        // Plots are drawn in the new colours once they are near.
        await page.evaluate(() => document.querySelector("ranway-plot")?.scrollIntoView());
        await page.waitForTimeout(300);
        looks[colorScheme] = await page.evaluate(contrast.faint);
      }
      await page.emulateMedia({ colorScheme: "light" });
      found[step.contrast] = looks;
    }
    if (step.interact !== undefined) found.interact = await interaction.interact(page, step.interact);
    if (step.inject !== undefined) {
      injected = true;
      found[step.inject] = await page.evaluate(() => new Promise((done) => {
        addEventListener("securitypolicyviolation", (violation) => done(violation.effectiveDirective));
        const script = document.createElement("script");
        script.textContent = "window.injected = true";
        document.body.append(script);
        setTimeout(() => done(window.injected ? "it ran" : "nothing happened"), 1000);
      }));
    }
    if (step.width !== undefined) await page.setViewportSize({ width: step.width, height: 900 });
    if (step.shot !== undefined) await page.screenshot({ path: step.shot, fullPage: true });
  }
} catch (error) {
  found.failed = String(error);
} finally {
  console.log(JSON.stringify(found));
  await browser.close();
  process.exit(found.failed === undefined ? 0 : 1);
}
