// What plots show of several flows together: stacks, pairs of values, ellipses and quantiles; and where a line of probes breaks.

import type { Column } from "./data";

/** The 95 % quantile of the chi-squared distribution with two degrees of freedom. */
const CHI2_95 = 5.991;
/** Points of an ellipse's outline. */
const OUTLINE = 73;

export interface Points {
  x: number[];
  y: number[];
}

/** The points of `x` and `y` that have both values. */
function known(x: Column, y: Column): Points {
  const at = x.flatMap((t, i) => (t === null || y[i] === null || y[i] === undefined ? [] : [i]));
  return { x: at.map((i) => x[i]!), y: at.map((i) => y[i]!) };
}

/** Lines over the moments of all of them: interpolated between their own, and zero before the first and after the last one. */
export function aligned(lines: { x: Column; y: Column }[]): { x: number[]; ys: number[][] } {
  const all = lines.map((line) => known(line.x, line.y));
  const x = [...new Set(all.flatMap((line) => line.x))].sort((a, b) => a - b);
  const ys = all.map((line) => {
    let next = 0;
    return x.map((t) => {
      while (next < line.x.length && line.x[next]! < t) next += 1;
      if (next === line.x.length || (next === 0 && line.x[0]! > t)) return 0;
      if (line.x[next] === t) return line.y[next]!;
      const [from, to] = [line.x[next - 1]!, line.x[next]!];
      return line.y[next - 1]! + ((line.y[next]! - line.y[next - 1]!) * (t - from)) / (to - from);
    });
  });
  return { x, ys };
}

/** The upper edges of layers, one on top of the other; those that are not shown have no height. */
export function stacked(ys: (number | null | undefined)[][], shown: (i: number) => boolean): number[][] {
  let below: number[] = [];
  return ys.map((layer, i) => {
    below = layer.map((y, k) => (below[k] ?? 0) + (shown(i) ? (y ?? 0) : 0));
    return below;
  });
}

/** Pairs of the mean of `x` in each window with the window's `y`. A window ends at its `t`, where the next one begins. */
export function pairs(x: { t: Column; x: Column }, windows: { t: Column; y: Column }): Points {
  const [values, means] = [known(x.t, x.x), known(windows.t, windows.y)];
  const found: Points = { x: [], y: [] };
  let next = 0;
  means.x.forEach((end, i) => {
    const from = next;
    while (next < values.x.length && values.x[next]! <= end) next += 1;
    if (next === from) return;
    found.x.push(values.y.slice(from, next).reduce((sum, value) => sum + value, 0) / (next - from));
    found.y.push(means.y[i]!);
  });
  return found;
}

/**
 * The outline of the ellipse that holds 95 % of a normal distribution with the mean and covariance of the points, as in
 * crates/reproduce/src/study/statistic.rs; `null` for fewer than three points or for points on a line.
 */
export function ellipse({ x, y }: Points): Points | null {
  const n = x.length;
  if (n < 3) return null;
  const mean = (of: number[]): number => of.reduce((sum, value) => sum + value, 0) / n;
  const [mx, my] = [mean(x), mean(y)];
  const covariance = (a: number[], ma: number, b: number[], mb: number): number => a.reduce((sum, value, i) => sum + (value - ma) * (b[i]! - mb), 0) / (n - 1);
  const xx = Math.sqrt(covariance(x, mx, x, mx));
  const yx = covariance(x, mx, y, my) / xx;
  const rest = covariance(y, my, y, my) - yx * yx;
  if (!(xx > 0 && rest > 0)) return null;
  const [r, yy] = [Math.sqrt(CHI2_95), Math.sqrt(rest)];
  const angles = Array.from({ length: OUTLINE }, (_, i) => (2 * Math.PI * i) / (OUTLINE - 1));
  return { x: angles.map((a) => mx + r * xx * Math.cos(a)), y: angles.map((a) => my + r * (yx * Math.cos(a) + yy * Math.sin(a))) };
}

/**
 * A line of probes over time, broken where they pause before a load (`load` is 1 under it), as while its flows are warmed up: where the
 * load's first probe comes more than twice the median interval after the one before it. The median, the upper one of two, is over the
 * intervals before the load, or over all if there are none.
 */
export function broken(t: Column, y: Column, load: Column): { x: Column; y: Column } {
  const begin = load.findIndex((on, i) => on === 1 && load[i - 1] === 0);
  if (begin === -1) return { x: t, y };
  const steps = t.slice(1).map((x, i) => x! - t[i]!);
  const before = steps.slice(0, begin - 1);
  const sorted = (before.length > 0 ? before : steps).sort((a, b) => a - b);
  const [from, to] = [t[begin - 1]!, t[begin]!];
  if (to - from <= 2 * sorted[Math.floor(sorted.length / 2)]!) return { x: t, y };
  const split = (of: Column, value: number | null): Column => [...of.slice(0, begin), value, ...of.slice(begin)];
  return { x: split(t, (from + to) / 2), y: split(y, null) };
}

/** The nearest rank of a distribution: the least value with at least a share `q` at or below it; `null` if so many have no value. */
export function quantile(x: Column, shares: Column, q: number): number | null {
  const i = shares.findIndex((share) => share !== null && share >= q - 1e-9);
  return i === -1 ? null : (x[i] ?? null);
}

/** The range of an axis with some points and the outlines around them: from 0 at least, if no point is below and it is no map. */
export function rangeOf(points: number[], outlines: number[], isMap: boolean): [number, number] {
  const extremes = (of: number[]): [number, number] => of.filter(Number.isFinite).reduce<[number, number]>(([low, high], one) => [Math.min(low, one), Math.max(high, one)], [Infinity, -Infinity]);
  const [least] = extremes(points);
  const [low, high] = extremes([...points, ...outlines]);
  const margin = (high - low) * 0.08 || 1;
  return [least >= 0 && !isMap ? Math.max(low - margin, 0) : low - margin, high + margin];
}
