// What plots show of several flows together.

import assert from "node:assert/strict";
import test from "node:test";
import { aligned, broken, ellipse, pairs, quantile, rangeOf, stacked } from "../src/statistics";

test("lines with different moments are interpolated, and zero before and after their own", () => {
  const { x, ys } = aligned([
    { x: [1, 3, 5], y: [10, 30, 50] },
    { x: [2, 3, null, 4], y: [1, null, 7, 3] },
  ]);
  assert.deepEqual(x, [1, 2, 3, 4, 5]);
  assert.deepEqual(ys, [
    [10, 20, 30, 40, 50],
    [0, 1, 2, 3, 0],
  ]);
});

test("a stack's edges are sums of what is shown", () => {
  const layers = [[1, 2], [10, 20], [100, 200]];
  assert.deepEqual(stacked(layers, () => true), [[1, 2], [11, 22], [111, 222]]);
  assert.deepEqual(stacked(layers, (i) => i !== 1), [[1, 2], [1, 2], [101, 202]]);
});

test("a window's goodput is paired with the mean round-trip time in it", () => {
  const rtt = { t: [0.5, 1, 1.5, 2, 9], x: [10, 20, 30, null, 50] };
  assert.deepEqual(pairs(rtt, { t: [1, 2, 3], y: [5, 6, 7] }), { x: [15, 30], y: [5, 6] });
});

test("a line of probes breaks where they pause before the load, and nowhere else", () => {
  const load = [0, 0, 0, 1, 1, 0];
  const y = [20, 21, 20, 90, 91, 22];
  assert.deepEqual(broken([0, 1, 2, 5, 6, 7], y, load), { x: [0, 1, 2, 3.5, 5, 6, 7], y: [20, 21, 20, null, 90, 91, 22] });
  const steady = { x: [0, 1, 2, 3.5, 9, 20], y };
  assert.deepEqual(broken(steady.x, y, load), steady);
  // With a single probe before the load, those under it tell the interval.
  assert.deepEqual(broken([0, 3, 4, 5], [20, 90, 91, 92], [0, 1, 1, 1]).y, [20, null, 90, 91, 92]);
  assert.deepEqual(broken([0, 1, 2], [9, 9, 9], [1, 1, 1]), { x: [0, 1, 2], y: [9, 9, 9] });
  assert.deepEqual(broken([], [], []), { x: [], y: [] });
});

test("an ellipse holds 95 % of a normal distribution", () => {
  // Independent normal values by the method of Box and Muller, with a generator of Park and Miller.
  let state = 1;
  const uniform = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const normal = (): [number, number] => {
    const [r, a] = [Math.sqrt(-2 * Math.log(uniform())), 2 * Math.PI * uniform()];
    return [r * Math.cos(a), r * Math.sin(a)];
  };
  const values = Array.from({ length: 20_000 }, normal);
  const [x, y] = [values.map(([a]) => 50 + 3 * a), values.map(([a, b]) => 10 + 2 * a - b)];
  const outline = ellipse({ x, y })!;
  const isInside = (px: number, py: number): boolean => {
    let inside = false;
    outline.x.forEach((x1, i) => {
      const [y1, x2, y2] = [outline.y[i]!, outline.x[(i + 1) % outline.x.length]!, outline.y[(i + 1) % outline.y.length]!];
      if (y1 > py !== y2 > py && px < x1 + ((x2 - x1) * (py - y1)) / (y2 - y1)) inside = !inside;
    });
    return inside;
  };
  const share = x.filter((px, i) => isInside(px, y[i]!)).length / x.length;
  assert.ok(Math.abs(share - 0.95) < 0.005, `${share}`);
  assert.equal(ellipse({ x: [0, 1, 2], y: [0, 1, 2] }), null, "points on a line");
  assert.equal(ellipse({ x: [0, 1], y: [0, 2] }), null, "two points");
});

test("quantiles of a distribution are its values", () => {
  const [x, shares] = [[10, 20, 30], [0.2, 0.5, 0.9]];
  assert.deepEqual([0.05, 0.2, 0.25, 0.5, 0.51, 0.95].map((q) => quantile(x, shares, q)), [10, 10, 20, 20, 30, null]);
});

test("an axis has room for outlines, but not below 0 if no point is there", () => {
  assert.deepEqual(rangeOf([10, 60], [], false), [6, 64]);
  assert.deepEqual(rangeOf([10, 60], [5, 105], false), [0, 113]);
  assert.deepEqual(rangeOf([10, 60], [-40, 60], false), [0, 68]);
  assert.deepEqual(rangeOf([-10, 40, NaN], [], false), [-14, 44]);
  assert.deepEqual(rangeOf([0, 50], [], true), [-4, 54]);
});
