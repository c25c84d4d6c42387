// Lines stay apart for readers who see no difference between red and green.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { colour, COLOURS, dashOf, markerPath, shapeOf } from "../src/palette";
import { ciede2000, closest, lab, luminance, VISION } from "./vision";

/** Far more than the just noticeable difference of about 2.3: two lines a pixel and a half wide are told apart. */
const APART = 12;
/** The report's colours before, which deuteranopes could not tell apart. */
const BEFORE = ["#4269d0", "#e8870e", "#3ca951", "#e6507a", "#22a5b8", "#a463f2", "#9c6b4e", "#c3a800", "#7f8fa6", "#b0413e"];

test("CIEDE2000 is that of Sharma's test data", () => {
  assert.ok(Math.abs(ciede2000([50, 2.6772, -79.7751], [50, 0, -82.7485]) - 2.0425) < 1e-4);
  assert.ok(Math.abs(ciede2000([50, 2.5, 0], [73, 25, -18]) - 27.1492) < 1e-4);
  assert.ok(Math.abs(ciede2000([2.0776, 0.0795, -1.135], [0.9033, -0.0636, -0.5514]) - 0.9082) < 1e-4);
});

test("each two colours differ for everybody", () => {
  for (const vision of Object.keys(VISION) as (keyof typeof VISION)[]) {
    const { least, pair } = closest(COLOURS, vision);
    assert.ok(least >= APART, `${vision}: ${pair} differ by ${least.toFixed(1)}`);
  }
});

test("the measure finds what was wrong with the colours before", () => {
  assert.ok(closest(BEFORE, "deuteranopia").least < 2);
});

test("lines that share a colour differ in their dash, and each colour has its marker", () => {
  const looks = Array.from({ length: COLOURS.length * 4 }, (_, i) => `${colour(i)} ${dashOf(i)?.join(" ") ?? ""}`);
  assert.equal(new Set(looks).size, looks.length);
  const paths = COLOURS.map((_, i) => markerPath(shapeOf(i), 0, 0));
  assert.equal(new Set(paths).size, COLOURS.length);
});

test("lines are seen on a light and on a dark card", () => {
  const cards = [...readFileSync("src/style.css", "utf8").matchAll(/--card: (#[0-9a-f]{6})/g)].map((found) => found[1]!);
  assert.ok(cards.length >= 2);
  for (const card of cards) {
    for (const one of COLOURS) {
      const [a, b] = [luminance(card), luminance(one)];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      assert.ok(contrast >= 2, `${one} on ${card}: ${contrast.toFixed(2)}`);
    }
  }
});

test("the parts of the stacked bars differ for everybody", () => {
  const css = readFileSync("src/style.css", "utf8");
  for (const bar of [
    ["limit-app", "limit-cwnd", "limit-rwnd", "limit-pacing"],
    ["delay-core", "delay-queue", "delay-air", "delay-harq", "delay-rlc"],
  ]) {
    const colours = bar.map((name) => new RegExp(`--${name}: (#[0-9a-f]{6})`).exec(css)![1]!);
    // Only neighbours touch.
    colours.slice(1).forEach((one, i) => {
      for (const vision of Object.keys(VISION) as (keyof typeof VISION)[]) {
        const far = ciede2000(lab(one, vision), lab(colours[i]!, vision));
        assert.ok(far >= APART, `${vision}: ${bar[i + 1]} and ${bar[i]} differ by ${far.toFixed(1)}`);
      }
    });
  }
});
