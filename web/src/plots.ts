// Plots over uPlot: lines over time or a distribution, zoomed together; and means with error bars.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { column, type Column, type Series } from "./data";
import { h } from "./dom";
import { number, tick } from "./format";

const PALETTE = ["#4269d0", "#e8870e", "#3ca951", "#e6507a", "#22a5b8", "#a463f2", "#9c6b4e", "#c3a800", "#7f8fa6", "#b0413e"];
const HEIGHT = 250;
const ZOOM_GROUP = "time";

export function colour(i: number): string {
  return PALETTE[i % PALETTE.length]!;
}

/** A line of a plot. */
export interface Line {
  label: string;
  x: Column;
  y: Column;
  colour: string;
  dash?: number[];
  /** On the right axis, as dots. */
  dots?: boolean;
  steps?: boolean;
}

/** A moment: a line from the bottom to the top. */
export interface Mark {
  x: number;
  text: string;
  colour: string;
}

export interface PlotOptions {
  x: string;
  y: string;
  right?: string;
  /** Over time: zooms and points together with the others. */
  time?: boolean;
  logX?: boolean;
  yMax?: number;
  /** The vertical axis goes from the smallest to the largest value, not from zero. */
  fit?: boolean;
  /** Values are places of these names, from 0. */
  names?: string[];
  marks?: Mark[];
}

/** The plots on the page; they follow its width and end with it. */
const shown = new Set<uPlot>();
const timePlots = new Set<uPlot>();
let zooming = false;
/** Plots whose figure is not on the page yet: they need its width. */
let waiting: (() => void)[] = [];

/** Draws the plots whose figures are on the page by now. */
export function drawPlots(): void {
  const ready = waiting;
  waiting = [];
  for (const draw of ready) draw();
}

export function forgetPlots(): void {
  for (const plot of shown) plot.destroy();
  shown.clear();
  timePlots.clear();
  waiting = [];
}

export function resizePlots(): void {
  for (const plot of shown) {
    const width = plot.root.parentElement?.clientWidth ?? 0;
    if (width > 0 && width !== plot.width) plot.setSize({ width, height: plot.height });
  }
}

function style(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function axis(label: string, side: 0 | 1 | 2 | 3, values: uPlot.Axis.Values, scale?: string): uPlot.Axis {
  const axis: uPlot.Axis = {
    label,
    side,
    values,
    stroke: style("--muted"),
    font: "11px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    labelSize: 18,
    labelGap: 2,
    size: side % 2 === 1 ? 50 : 32,
    grid: { stroke: style("--grid"), width: 1, show: scale !== "right" },
    ticks: { stroke: style("--grid"), width: 1, size: 4 },
  };
  return scale === undefined ? axis : { ...axis, scale };
}

const ticks = (_: uPlot, splits: number[]): string[] => splits.map(tick);
/** A logarithmic axis names its powers of ten, and others only while there are few. */
const logTicks = (_: uPlot, splits: (number | null)[]): string[] => splits.map((x) => (x === null ? "" : tick(x)));

function title(text: string, note?: string): HTMLElement {
  return h("figcaption", {}, h("b", {}, text), note !== undefined && h("span", {}, note));
}

/** Draws `lines` into a new figure. */
export function linePlot(name: string, lines: Line[], options: PlotOptions, note?: string): HTMLElement {
  const host = h("div", { class: "plot" });
  const figure = h("figure", {}, title(name, note), host);
  if (lines.length === 0) {
    host.append(h("p", { class: "empty" }, "No data was recorded for this."));
    return figure;
  }
  waiting.push(() => {
    const data = uPlot.join(lines.map((line) => [line.x as number[], line.y] as uPlot.AlignedData));
    const stepped = uPlot.paths.stepped!({ align: 1 });
    const series: uPlot.Series[] = lines.map((line) => ({
      label: line.label,
      stroke: line.colour,
      width: 1.6,
      scale: line.dots === true ? "right" : "y",
      points: line.dots === true ? { show: true, size: 5, fill: line.colour } : { show: false },
      value: (_: uPlot, y: number | null) => (names === undefined || y === null ? number(y) : named(y)),
      ...(line.dash !== undefined && { dash: line.dash }),
      ...(line.dots === true ? { paths: () => null } : line.steps === true ? { paths: stepped } : {}),
    }));
    const { names } = options;
    const named = (y: number): string => names?.[Math.round(y)] ?? "";
    const fitting = (_: uPlot, min: number | null, max: number | null): [number, number] => {
      if (min === null || max === null) return [0, 1];
      const margin = (max - min) * 0.08 || 1;
      return [min - margin, max + margin];
    };
    const fromZero = (_: uPlot, __: number, max: number | null): [number, number] => [0, (max ?? 0) > 0 ? max! * 1.06 : 1];
    const plot = new uPlot(
      {
        width: Math.max(host.clientWidth, 300),
        height: HEIGHT,
        cursor: options.time === true ? { sync: { key: ZOOM_GROUP }, drag: { x: true, y: false } } : { drag: { x: true, y: false } },
        scales: {
          x: options.logX === true ? { time: false, distr: 3 } : { time: false },
          y: {
            range: names !== undefined ? [-0.5, names.length - 0.5] : options.fit === true ? fitting : options.yMax === undefined ? fromZero : [0, options.yMax],
          },
          right: { range: fromZero },
        },
        axes: [
          axis(options.x, 2, options.logX === true ? logTicks : ticks),
          names === undefined ? axis(options.y, 3, ticks) : namesAxis(options.y, names),
          ...(options.right === undefined ? [] : [axis(options.right, 1, ticks, "right")]),
        ],
        series: [{ label: options.x, value: (_, x) => number(x) }, ...series],
        hooks: {
          ...(options.time === true && { setScale: [zoomTogether] }),
          ...(options.marks !== undefined && { draw: [(u) => drawMarks(u, options.marks!)] }),
        },
      },
      data,
      host,
    );
    shown.add(plot);
    if (options.time === true) timePlots.add(plot);
  });
  return figure;
}

/** A vertical axis of names at equal distances. */
function namesAxis(label: string, names: string[]): uPlot.Axis {
  const longest = Math.max(...names.map((name) => name.length));
  const places = names.map((_, i) => i);
  return { ...axis(label, 3, (_, at) => at.map((i) => names[i] ?? "")), splits: () => places, size: Math.min(50 + Math.max(longest - 5, 0) * 6, 160), labelSize: 0 };
}

/** Lines at moments, with their texts at the top where there is room. */
function drawMarks(u: uPlot, marks: Mark[]): void {
  const { ctx } = u;
  const ratio = devicePixelRatio;
  const { left, top, width, height } = u.bbox;
  let end = left;
  ctx.save();
  ctx.font = `${11 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "left";
  ctx.textBaseline = "top";
  ctx.lineWidth = ratio;
  ctx.setLineDash([4 * ratio, 3 * ratio]);
  for (const mark of [...marks].sort((a, b) => a.x - b.x)) {
    const x = u.valToPos(mark.x, "x", true);
    if (x < left || x > left + width) continue;
    ctx.strokeStyle = ctx.fillStyle = mark.colour;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    const size = ctx.measureText(mark.text).width + 6 * ratio;
    if (x < end || x + size > left + width) continue;
    ctx.fillText(mark.text, x + 3 * ratio, top + 2 * ratio);
    end = x + size;
  }
  ctx.restore();
}

function zoomTogether(from: uPlot, key: string): void {
  if (key !== "x" || zooming) return;
  const { min, max } = from.scales.x!;
  if (min === undefined || max === undefined || min === null || max === null) return;
  zooming = true;
  for (const plot of timePlots) {
    if (plot !== from) plot.setScale("x", { min, max });
  }
  zooming = false;
}

/** The line of a column of `series`, if it has that column. */
export function lineOf(series: Series, x: string, y: string, label: string, hue: string, dash?: number[]): Line[] {
  const [xs, ys] = [column(series, x), column(series, y)];
  if (xs === undefined || ys === undefined) return [];
  return [{ label, x: xs, y: ys, colour: hue, ...(dash !== undefined && { dash }) }];
}

/** The distribution of a flow's completion times, from zero on; it stays below 1 by those that did not finish. */
export function completionLine(series: Series, label: string, hue: string, dash?: number[]): Line[] {
  const [xs, shares] = [column(series, "x"), column(series, "share")];
  if (xs === undefined || shares === undefined) return [];
  const of = series["begun"];
  const name = typeof of === "number" ? `${label} (${of})` : label;
  return [{ label: name, x: [0, ...xs], y: [0, ...shares], colour: hue, steps: true, ...(dash !== undefined && { dash }) }];
}

export interface Mean {
  x: number;
  mean: number;
  ci95: number | null;
  /** The 5th, 25th, 75th and 95th percentiles, of a box, whose median `mean` is. */
  around?: [number, number, number, number] | null;
}

export interface MeanSeries {
  label: string;
  means: Mean[];
  colour?: string;
}

export interface MeansOptions {
  xLabel: string;
  yLabel: string;
  /** Names at equal distances instead of numbers. */
  names?: string[];
  bars: boolean;
  /** As wide as the page. */
  wide: boolean;
  title?: string;
  note?: string;
}

/** Characters of names on an axis as wide as the page, or as half of it, before they have to be turned. */
const NAMES_WIDE = 150;
const NAMES_HALF = 70;
/** Least distance of ticks, of the axis. */
const CLOSEST_MARKS = 0.06;
/** Bars are drawn over a logarithmic axis if the largest is so many times the smallest. */
const LOG_BARS = 100;

/** Means with 95 % confidence intervals, as lines or as groups of bars; or boxes. */
export function meansPlot(series: MeanSeries[], options: MeansOptions): HTMLElement {
  const { xLabel, yLabel, names, bars, wide } = options;
  const host = h("div", { class: "plot" });
  const figure = h("figure", wide ? { class: "wide" } : {}, options.title !== undefined && title(options.title, options.note), host);
  const hue = (i: number): string => series[i]!.colour ?? colour(i);
  const low = (m: Mean): number => m.around?.[0] ?? m.mean - (m.ci95 ?? 0);
  const high = (m: Mean): number => m.around?.[3] ?? m.mean + (m.ci95 ?? 0);
  const all = series.flatMap((one) => one.means);
  if (all.length === 0) {
    host.append(h("p", { class: "empty" }, "No run has a value for this."));
    return figure;
  }
  const top = Math.max(...all.map(high)) * 1.08 || 1;
  const xs = all.map((m) => m.x);
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const log = names === undefined && first > 0 && last / first >= 50;
  const range = (): [number, number] => {
    if (names !== undefined) return [-0.5, names.length - 0.5];
    if (log) return [first / 1.3, last * 1.3];
    const margin = (last - first) * 0.05 || 1;
    return [first - margin, last + margin];
  };
  const marks = names === undefined ? marksAt(xs, log) : undefined;
  const ends = all.flatMap((m) => (m.around == null ? [m.mean] : [low(m), high(m)]));
  const smallest = Math.min(...ends);
  const logY = smallest > 0 && Math.max(...ends) / smallest >= LOG_BARS;
  // An interval that reaches below zero, where no value can be, is cut there.
  const bottom = logY ? 10 ** Math.floor(Math.log10(smallest)) : smallest >= 0 ? 0 : Math.min(...all.map(low));
  const text = Math.max(...(names ?? [""]).map((name) => name.length)) * (names?.length ?? 0);
  const turned = text > (wide ? NAMES_WIDE : NAMES_HALF);
  waiting.push(() => {
    const line = (one: MeanSeries): uPlot.AlignedData => {
      const sorted = [...one.means].sort((a, b) => a.x - b.x);
      return [sorted.map((m) => m.x), sorted.map((m) => m.mean)];
    };
    const plot = new uPlot(
      {
        width: Math.max(host.clientWidth, 300),
        height: turned ? 360 : 280,
        cursor: { drag: { x: false, y: false } },
        scales: { x: { time: false, range, ...(log && { distr: 3 as const }) }, y: { range: [bottom, top], ...(logY && { distr: 3 as const }) } },
        axes: [
          {
            ...axis(xLabel, 2, names === undefined ? (log ? logTicks : ticks) : (_, at) => at.map((i) => names[i] ?? "")),
            ...(names !== undefined && { splits: () => names.map((_, i) => i), grid: { show: false } }),
            ...(marks !== undefined && { splits: () => marks, filter: (_: uPlot, at: number[]) => at }),
            ...(turned && { rotate: 30, size: 90 }),
            ...(xLabel === "" && { labelSize: 0 }),
          },
          axis(logY ? `${yLabel} (logarithmic)` : yLabel, 3, logY ? logTicks : ticks),
        ],
        series: [
          { label: xLabel === "" ? "Case" : xLabel, value: (_, x) => (x === null ? "–" : (names?.[x] ?? number(x))) },
          ...series.map((one, i) => ({
            label: one.label,
            stroke: hue(i),
            width: 2,
            value: (_: uPlot, y: number | null) => number(y),
            points: { show: !bars, size: 8, fill: hue(i) },
            ...(bars ? { fill: hue(i), paths: () => null } : {}),
          })),
        ],
        hooks: { draw: [(u) => drawMeans(u, series, hue, bars, logY ? bottom : 0)] },
      },
      uPlot.join(series.map(line)),
      host,
    );
    shown.add(plot);
  });
  return figure;
}

/** Where a person wants the ticks: at the values that were swept, if these are few and not too close. */
function marksAt(xs: number[], log: boolean): number[] | undefined {
  const values = [...new Set(xs)].sort((a, b) => a - b);
  const place = values.map((x) => (log ? Math.log(x) : x));
  const range = place.at(-1)! - place[0]!;
  const close = place.some((x, i) => i > 0 && x - place[i - 1]! < range * CLOSEST_MARKS);
  return close ? undefined : values;
}

function drawMeans(u: uPlot, series: MeanSeries[], hue: (i: number) => string, bars: boolean, ground: number): void {
  const { ctx } = u;
  const ratio = devicePixelRatio;
  const visible = series.map((_, i) => u.series[i + 1]?.show === true);
  const slots = visible.filter((show) => show).length;
  const group = Math.abs(u.valToPos(1, "x", true) - u.valToPos(0, "x", true)) * 0.8;
  const width = Math.min(group / Math.max(slots, 1), 64 * ratio);
  let slot = 0;
  ctx.save();
  series.forEach((one, i) => {
    if (visible[i] !== true) return;
    const shift = bars ? (slot - (slots - 1) / 2) * width : 0;
    slot += 1;
    for (const m of one.means) {
      const x = u.valToPos(m.x, "x", true) + shift;
      const y = (value: number): number => u.valToPos(value, "y", true);
      if (m.around != null) {
        drawBox(ctx, x, width * 0.7, y(m.mean), m.around.map(y), hue(i));
        continue;
      }
      if (bars) {
        ctx.fillStyle = hue(i);
        ctx.fillRect(x - width * 0.45, y(m.mean), width * 0.9, y(ground) - y(m.mean));
      }
      if (m.ci95 === null) continue;
      ctx.strokeStyle = bars ? style("--text") : hue(i);
      ctx.lineWidth = 1.5 * ratio;
      const cap = 4 * ratio;
      const [bottom, top] = [y(Math.max(m.mean - m.ci95, u.scales.y!.min ?? -Infinity)), y(m.mean + m.ci95)];
      ctx.beginPath();
      ctx.moveTo(x, bottom);
      ctx.lineTo(x, top);
      for (const end of [bottom, top]) {
        ctx.moveTo(x - cap, end);
        ctx.lineTo(x + cap, end);
      }
      ctx.stroke();
    }
  });
  ctx.restore();
}

/** Whiskers, a box between the inner two of `at`, and its median. */
function drawBox(ctx: CanvasRenderingContext2D, x: number, width: number, median: number, at: number[], hue: string): void {
  const [low, from, to, high] = at as [number, number, number, number];
  ctx.strokeStyle = hue;
  ctx.lineWidth = 1.5 * devicePixelRatio;
  ctx.beginPath();
  for (const [end, near] of [[low, from], [high, to]] as const) {
    ctx.moveTo(x, near);
    ctx.lineTo(x, end);
    ctx.moveTo(x - width / 4, end);
    ctx.lineTo(x + width / 4, end);
  }
  ctx.moveTo(x - width / 2, median);
  ctx.lineTo(x + width / 2, median);
  ctx.rect(x - width / 2, to, width, from - to);
  ctx.globalAlpha = 0.25;
  ctx.fillStyle = hue;
  ctx.fillRect(x - width / 2, to, width, from - to);
  ctx.globalAlpha = 1;
  ctx.stroke();
}
