// Means with confidence intervals, over numbers as lines or over names as bars; and boxes.

import uPlot from "uplot";
import { h } from "./dom";
import { number, rounded } from "./format";
import { legend, type Entry } from "./legend";
import { colour, dashOf, markerPath, shapeOf } from "./palette";
import { axis, caption, logTicks, PlotHost, style, ticks, widthOf } from "./plots";
import type { Saved } from "./save";
import { drawOn, type Drawing } from "./shapes";

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
  title: string;
  note?: string;
  /** The key whose values the legend shows. */
  heading?: string;
}

/** Characters of names on an axis as wide as the page, or as half of it, before they have to be turned. */
const NAMES_WIDE = 150;
const NAMES_HALF = 70;
/** Minimum distance of ticks, as a share of the axis. */
const CLOSEST_MARKS = 0.06;
/** Characters of a turned name at most, and the height in pixels that each takes. */
const TURNED_NAME = 40;
const TURNED_HEIGHT = 3.5;
/** Bars are drawn over a logarithmic axis if the largest is so many times the smallest. */
const LOG_BARS = 100;

/** Means with 95 % confidence intervals, as lines or as groups of bars; or boxes. */
export function meansPlot(series: MeanSeries[], options: MeansOptions): HTMLElement {
  const host = new PlotHost();
  const figure = h("figure", options.wide ? { class: "wide" } : {}, caption(options.title, options.note, () => host.drawNow()), host);
  if (series.every((one) => one.means.length === 0)) {
    host.append(h("p", { class: "empty" }, "No run has a value for this metric."));
    return figure;
  }
  host.whenSeen(() => draw(host, series, options));
  return figure;
}

function draw(host: HTMLElement, series: MeanSeries[], options: MeansOptions): Saved {
  const { xLabel, yLabel, names, bars, wide } = options;
  const hue = (i: number): string => series[i]!.colour ?? colour(i);
  const low = (m: Mean): number => m.around?.[0] ?? m.mean - (m.ci95 ?? 0);
  const high = (m: Mean): number => m.around?.[3] ?? m.mean + (m.ci95 ?? 0);
  const all = series.flatMap((one) => one.means);
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
  const turned = text > (wide ? NAMES_WIDE : NAMES_HALF) || host.clientWidth < text * 7;
  const short = (name: string): string => (turned && name.length > TURNED_NAME ? `${name.slice(0, TURNED_NAME - 1)}…` : name);
  const shown = names?.map(short);
  const depth = turned ? 30 + TURNED_HEIGHT * Math.max(...(shown ?? [""]).map((name) => name.length)) : 0;
  const line = (one: MeanSeries): uPlot.AlignedData => {
    const sorted = [...one.means].sort((a, b) => a.x - b.x);
    return [sorted.map((m) => m.x), sorted.map((m) => m.mean)];
  };
  const over = (u: uPlot, ink = style("--text")): Drawing[] => drawings(u, series, hue, bars, logY ? bottom : 0, ink);
  const dash = (i: number): number[] | undefined => (bars ? undefined : dashOf(i));
  const u = new uPlot(
    {
      width: widthOf(host),
      height: turned ? 270 + depth : 280,
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, range, ...(log && { distr: 3 as const }) }, y: { range: [bottom, top], ...(logY && { distr: 3 as const }) } },
      axes: [
        {
          ...axis(xLabel, 2, names === undefined ? (log ? logTicks : ticks) : (_, at) => at.map((i) => shown?.[i] ?? "")),
          ...(names !== undefined && { splits: () => names.map((_, i) => i), grid: { show: false } }),
          ...(marks !== undefined && { splits: () => marks, filter: (_: uPlot, at: number[]) => at }),
          ...(turned && { rotate: 30, size: depth }),
          ...(xLabel === "" && { labelSize: 0 }),
        },
        axis(logY ? `${yLabel} (logarithmic)` : yLabel, 3, logY ? logTicks : ticks),
      ],
      series: [
        { label: xLabel === "" ? "Case" : xLabel },
        ...series.map((one, i): uPlot.Series => ({
          label: one.label,
          stroke: hue(i),
          width: 2,
          points: { show: false },
          ...(dash(i) !== undefined && { dash: dash(i)! }),
          ...(bars ? { paths: () => null } : {}),
        })),
      ],
      hooks: { draw: [(u) => drawOn(u, over(u))] },
    },
    uPlot.join(series.map(line)),
    host,
  );
  const entries = series.map(({ label }, i): Entry => ({
    label,
    colour: hue(i),
    ...(bars ? { filled: true } : { marker: { shape: shapeOf(i) } }),
    ...(dash(i) !== undefined && { dash: dash(i)! }),
  }));
  const said = (s: number, y: number): string => {
    const ci95 = series[s]!.means.find((m) => m.mean === y)?.ci95 ?? null;
    return ci95 === null ? number(y) : rounded(y, ci95).slice(0, 2).join(" ± ");
  };
  host.append(legend(u, entries, said, options.heading));
  const boxes = all.some((m) => m.around != null);
  return {
    title: options.title,
    u,
    entries,
    over,
    lines: bars ? [] : series.map((_, i) => ({ s: i + 1, colour: hue(i), width: 2, scale: "y", ...(dash(i) !== undefined && { dash: dash(i)! }) })),
    head: [options.heading || "series", xLabel || "case", yLabel, ...(boxes ? ["p5", "p25", "p75", "p95"] : ["ci95"])],
    rows: () => series.flatMap((one) => one.means.map((m) => [one.label, names?.[m.x] ?? m.x, m.mean, ...(boxes ? (m.around ?? [null, null, null, null]) : [m.ci95])])),
  };
}

/** Returns ticks at the swept values, if these are few and not too close. */
function marksAt(xs: number[], log: boolean): number[] | undefined {
  const values = [...new Set(xs)].sort((a, b) => a - b);
  const place = values.map((x) => (log ? Math.log(x) : x));
  const range = place.at(-1)! - place[0]!;
  const close = place.some((x, i) => i > 0 && x - place[i - 1]! < range * CLOSEST_MARKS);
  return close ? undefined : values;
}

function drawings(u: uPlot, series: MeanSeries[], hue: (i: number) => string, bars: boolean, ground: number, ink: string): Drawing[] {
  const visible = series.map((_, i) => u.series[i + 1]?.show === true);
  const slots = visible.filter((show) => show).length;
  const group = Math.abs(u.valToPos(1, "x") - u.valToPos(0, "x")) * 0.8;
  const width = Math.min(group / Math.max(slots, 1), 64);
  const y = (value: number): number => u.valToPos(value, "y");
  const found: Drawing[] = [];
  let slot = 0;
  series.forEach((one, i) => {
    if (visible[i] !== true) return;
    const shift = bars ? (slot - (slots - 1) / 2) * width : 0;
    slot += 1;
    for (const m of one.means) {
      const x = u.valToPos(m.x, "x") + shift;
      if (m.around != null) {
        found.push(...box(x, width * 0.7, y(m.mean), m.around.map(y), hue(i)));
        continue;
      }
      if (bars) found.push({ d: `M${x - width * 0.45} ${y(m.mean)}h${width * 0.9}V${y(ground)}h${-width * 0.9}Z`, fill: hue(i) });
      if (m.ci95 !== null) {
        const [bottom, top] = [y(Math.max(m.mean - m.ci95, u.scales.y!.min ?? -Infinity)), y(m.mean + m.ci95)];
        found.push({ d: `M${x} ${bottom}V${top}M${x - 4} ${bottom}h8M${x - 4} ${top}h8`, stroke: bars ? ink : hue(i), width: 1.5 });
      }
      if (!bars) {
        const shape = shapeOf(i);
        const open = shape === "cross" || shape === "plus";
        found.push({ d: markerPath(shape, x, y(m.mean), 4.5), stroke: hue(i), width: 1.6, ...(!open && { fill: hue(i) }) });
      }
    }
  });
  return found;
}

/** Whiskers, a box between the inner two of `at`, and its median. */
function box(x: number, width: number, median: number, at: number[], hue: string): Drawing[] {
  const [low, from, to, high] = at as [number, number, number, number];
  const half = width / 2;
  const whisker = (near: number, end: number): string => `M${x} ${near}V${end}M${x - half / 2} ${end}h${half}`;
  return [
    { d: `M${x - half} ${from}h${width}V${to}h${-width}Z`, fill: hue, opacity: 0.25, stroke: hue, width: 1.5 },
    { d: `${whisker(from, low)}${whisker(to, high)}M${x - half} ${median}h${width}`, stroke: hue, width: 1.5 },
  ];
}
