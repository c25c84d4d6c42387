// How long a page takes to answer its reader, from the moment when the browser gets an input to the picture after it.
import { until } from "./chromium.mjs";

/** Runs in the page before its own scripts: notes how long each input takes, and how long frames take. */
export function prepare() {
  const answers = { mousemove: [], mouseup: [], click: [], keydown: [] };
  const frames = [];
  for (const type of Object.keys(answers)) {
    const answered = ({ timeStamp }) => requestAnimationFrame(() => setTimeout(() => answers[type].push(performance.now() - timeStamp)));
    addEventListener(type, answered, { capture: true });
  }
  let last = performance.now();
  const frame = (now) => {
    frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  window.answers = answers;
  window.frames = frames;
}

/** In the page: the first plot over time that is drawn. */
const PLOT = `[...document.querySelectorAll('ranway-plot[data-zoom]')].find((one) => one.querySelector("canvas"))`;
/** In the page: the ends of that plot's horizontal axis. */
const RANGE = `(({ min, max }) => [min, max])((${PLOT}).plot.scales.x)`;

/**
 * Hovers over a plot, hides and shows a line, zooms in and out, and enters a filter, so many times each, while the page follows its
 * run. Returns the milliseconds of each answer and frame, the moments of the run that the page showed meanwhile, and what did not have its
 * effect.
 */
export async function interact(page, rounds) {
  const found = { hover: [], toggle: [], zoom: [], keys: [], frames: [], moments: [], wrong: [] };
  const expect = (is, what) => is || found.wrong.push(what);
  /** Does `act`, and waits for the answer to the last input of this type. */
  const timed = async (into, type, act) => {
    const before = await page.evaluate(`answers.${type}.length`);
    await act();
    await until(page, `answers.${type}.length > ${before}`, 20_000);
    found[into].push(await page.evaluate(`answers.${type}.at(-1)`));
  };
  /** A place in the plot, by its share of the width. It is asked for each time, since new data may move the plot. */
  const at = async (share) => {
    const { x, y, width, height } = await page.evaluate(`(({ x, y, width, height }) => ({ x, y, width, height }))((${PLOT}).querySelector(".u-over").getBoundingClientRect())`);
    return [x + width * share, y + height / 2];
  };
  const isOut = (left, right) => `(([min, max]) => min < ${left} && max > ${right})(${RANGE})`;
  await page.evaluate(`void (${PLOT}).scrollIntoView({ block: "center" })`);
  await page.evaluate("void (frames.length = 0)");
  for (let round = 0; round < rounds; round++) {
    const place = await at(0.2 + (0.6 * round) / rounds);
    await timed("hover", "mousemove", () => page.mouse.move(...place));
    expect(await page.evaluate(`(${PLOT}).querySelector(".keys > .at").textContent !== ""`), "hovering shows the moment");

    const key = `(${PLOT}).querySelector(".key")`;
    const pressed = await page.evaluate(`${key}.getAttribute("aria-pressed")`);
    const middle = await page.evaluate(`(({ x, y, width, height }) => [x + width / 2, y + height / 2])(${key}.getBoundingClientRect())`);
    await timed("toggle", "click", () => page.mouse.click(...middle));
    expect((await page.evaluate(`${key}.getAttribute("aria-pressed")`)) !== pressed, "a click hides or shows a line");

    const [from, to] = await page.evaluate(RANGE);
    await page.mouse.move(...(await at(0.4)));
    await page.mouse.down();
    await page.mouse.move(...(await at(0.6)), { steps: 3 });
    await timed("zoom", "mouseup", () => page.mouse.up());
    const [left, right] = await page.evaluate(RANGE);
    expect(left > from && right < to, `dragging zooms: from ${from} to ${to}, then from ${left} to ${right}`);
    if (round === rounds - 1) {
      const shown = `document.querySelector(".live").textContent`;
      for (let renewals = 0; renewals < 2; renewals++) await until(page, `${shown} !== ${JSON.stringify(await page.evaluate(shown))}`, 20_000);
      const now = await page.evaluate(RANGE);
      expect(now[0] === left && now[1] === right, `new data leave the zoom: from ${left} to ${right}, then from ${now[0]} to ${now[1]}`);
    }
    // A second click that comes while the plot moves is no double click.
    for (let attempt = 0; attempt < 3 && !(await page.evaluate(isOut(left, right))); attempt++) {
      await page.mouse.dblclick(...(await at(0.5)));
      await page.waitForTimeout(500);
    }
    await until(page, isOut(left, right), 20_000);

    const input = page.locator("#case input");
    await input.evaluate((one) => one.focus({ preventScroll: true }));
    for (const letter of "dow") await timed("keys", "keydown", () => page.keyboard.press(letter));
    expect((await input.inputValue()).endsWith("dow"), "what is typed is there");
    await input.evaluate((one) => {
      one.value = "";
      one.blur();
    });
    found.moments.push(await page.evaluate(`document.querySelector(".live").textContent`));
  }
  found.frames = await page.evaluate("frames.slice(1)");
  found.moments = [...new Set(found.moments)];
  found.wrong = [...new Set(found.wrong)];
  return found;
}
