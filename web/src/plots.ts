// Line plots: values over time, which zoom together, and distributions.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { column, type Column, type Series } from "./data";
import { h } from "./dom";
import { number, tick } from "./format";
import { legend, type Entry } from "./legend";
import { markerPath, type Marker } from "./palette";
import { saveButtons, type Saved } from "./save";
import { drawOn, type Drawing } from "./shapes";
import { aligned, stacked } from "./statistics";

const HEIGHT = 250;
const ZOOM_GROUP = "time";
/** Pixels between the markers of a line, and from one line's to the next one's, so that they do not cover each other. */
const MARKER_EVERY = 110;
const MARKER_SHIFT = 17;
/** Minimum mean distance of marks in pixels. In a crowd there are none before the reader zooms in. */
const MARK_EVERY = 4;
/** Approximate width of a character of a mark's text. */
const CHARACTER = 6;

/** A line of a plot. */
export interface Line {
  label: string;
  x: Column;
  y: Column;
  colour: string;
  dash?: number[];
  marker?: Marker;
  /** On the right axis, as dots. */
  dots?: boolean;
  steps?: boolean;
  /** Filled, as an upper bound of the other lines. */
  area?: boolean;
}

/** A vertical line at a moment. */
export interface Mark {
  x: number;
  text: string;
  colour: string;
  /** Holds until the next such mark: while the last one is left of the visible part, its text stands at the left edge. */
  lasts?: boolean;
}

export interface PlotOptions {
  x: string;
  y: string;
  right?: string;
  /** Over time: zooms and points together with the others. */
  time?: boolean;
  /** One area on top of the other. */
  stacked?: boolean;
  logX?: boolean;
  yMax?: number;
  /** The vertical axis goes from the smallest to the largest value, not from zero. */
  fit?: boolean;
  /** Values are places of these names, from 0. */
  names?: string[];
  marks?: Mark[];
  /** A part of the horizontal axis that is shown, whether or not there are values. */
  span?: [number, number];
}

/** A plot that is drawn, and how it takes new values. */
export interface Drawn extends Saved {
  refresh?: (lines: Line[], options: PlotOptions) => void;
}

/** Distance from the visible part of the page, in pixels, below which a plot is drawn. */
const NEAR = 600;

/**
 * A plot's place on the page. It draws itself shortly before it is seen, because a long page must open before all of its
 * plots are drawn, and destroys its plot when it leaves the page, unless the page is being drawn anew and takes it over.
 */
export class PlotHost extends HTMLElement {
  /** The hosts of the page that is being replaced, by what they draw. */
  static #old: Map<string, PlotHost[]> | null = null;
  #draw: (() => Drawn) | null = null;
  #saved: Drawn | null = null;
  #key = "";
  #next: [Line[], PlotOptions] | null = null;
  #seen = false;
  #observer: IntersectionObserver | null = null;

  /** Draws the page anew by `render`, whose plots with the same lines as before take new values instead of being drawn again. */
  static redraw(render: () => void): void {
    const old = new Map<string, PlotHost[]>();
    for (const host of hosts()) old.set(host.#key, [...(old.get(host.#key) ?? []), host]);
    PlotHost.#old = old;
    try {
      render();
    } finally {
      PlotHost.#old = null;
      for (const host of [...old.values()].flat()) host.#end();
    }
  }

  /** Returns the host of the page before that draws `key`, with new values, or a new one. */
  static of(key: string, lines: Line[], options: PlotOptions): PlotHost {
    const before = key === "" ? undefined : PlotHost.#old?.get(key)?.shift();
    if (before !== undefined) {
      before.#next = [lines, options];
      return before;
    }
    const host = new PlotHost();
    host.#key = key;
    return host;
  }

  /** Draws `draw` once the host is on the page and near the visible part. */
  whenSeen(draw: () => Drawn): void {
    // One that is drawn already takes its new values.
    if (this.#saved === null) [this.#draw, this.#next] = [draw, null];
  }

  /** Draws the plot if that has not happened yet, with its newest values, and returns it. */
  drawNow(): Drawn | null {
    const draw = this.#draw;
    this.#draw = null;
    if (draw !== null) this.#saved = draw();
    const next = this.#next;
    this.#next = null;
    if (next !== null) this.#saved?.refresh?.(...next);
    return this.#saved;
  }

  get plot(): uPlot | null {
    return this.#saved?.u ?? null;
  }

  resize(): void {
    const { plot, clientWidth: width } = this;
    if (plot !== null && width > 0 && width !== plot.width) plot.setSize({ width, height: plot.height });
  }

  connectedCallback(): void {
    this.classList.add("plot");
    if (this.#draw === null && this.#saved === null) return;
    if (PlotHost.#old !== null && (this.#seen || this.getBoundingClientRect().top < innerHeight + NEAR)) this.drawNow();
    this.#observer ??= new IntersectionObserver(
      (entries) => {
        this.#seen = entries.at(-1)?.isIntersecting ?? false;
        if (this.#seen) this.drawNow();
      },
      { rootMargin: `${NEAR}px` },
    );
    this.#observer.observe(this);
  }

  disconnectedCallback(): void {
    if (PlotHost.#old === null) this.#end();
  }

  #end(): void {
    this.#observer?.disconnect();
    this.#observer = null;
    this.plot?.destroy();
    this.#saved = null;
  }
}
customElements.define("ranway-plot", PlotHost);

const hosts = (): NodeListOf<PlotHost> => document.querySelectorAll<PlotHost>("ranway-plot");

/** Draws all plots that have not been seen yet, before the page is printed. */
export function drawAll(): void {
  for (const host of hosts()) host.drawNow();
}

/** Fits all plots to the page's width. */
export function resizePlots(): void {
  for (const host of hosts()) host.resize();
}

export function style(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export function axis(label: string, side: 0 | 1 | 2 | 3, values: uPlot.Axis.Values, scale?: string): uPlot.Axis {
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

export const ticks = (_: uPlot, splits: number[]): string[] => splits.map(tick);
/** A logarithmic axis names its powers of ten, and others only while there are few. */
export const logTicks = (_: uPlot, splits: (number | null)[]): string[] => splits.map((x) => (x === null ? "" : tick(x)));

/** A figure's heading, with what saves it. */
export function caption(text: string, note: string | undefined, saved: () => Saved | null): HTMLElement {
  return h("figcaption", {}, h("b", {}, text), note !== undefined && note !== "" && h("span", {}, note), saveButtons(saved));
}

/** Draws `lines` into a new figure; `null` if there is nothing to draw. */
export function linePlot(name: string, lines: Line[], options: PlotOptions, note?: string): HTMLElement | null {
  if (lines.length === 0) return null;
  const shape = lines.map(({ label, colour, dash, dots, steps, area }) => [label, colour, dash, dots, steps, area]);
  const host = PlotHost.of(JSON.stringify([name, shape, { ...options, marks: [], span: [] }, style("--card")]), lines, options);
  if (options.time === true) host.dataset["zoom"] = ZOOM_GROUP;
  const figure = h("figure", {}, caption(name, note, () => host.drawNow()), host);
  host.whenSeen(() => draw(host, name, lines, options));
  return figure;
}

/** The values of `lines` over the moments of all of them. */
function joined(lines: Line[], { span, stacked }: PlotOptions): uPlot.AlignedData {
  if (stacked === true) {
    const { x, ys } = aligned(span === undefined ? lines : [...lines, { x: span, y: [0, 0] }]);
    return [x, ...ys.slice(0, lines.length)];
  }
  const tables = lines.map((line) => [line.x as number[], line.y] as uPlot.AlignedData);
  return span === undefined ? uPlot.join(tables) : (uPlot.join([...tables, [span, [null, null]]]).slice(0, -1) as uPlot.AlignedData);
}

/** The part of the time that the reader has zoomed into, in all plots over time. */
let zoom: { min: number; max: number } | null = null;
/** The plot in which the reader zooms in or out at this moment. uPlot changes the range of a plot for other reasons, too. */
let zooming: { plot: uPlot; isIn: boolean } | null = null;

/** Notes that `handler`, of the first mouse button, zooms in `plot`, until the plot has its new range, which it gets in a microtask. */
function zooms(plot: uPlot, _: HTMLElement, handler: (event: MouseEvent) => null): (event: MouseEvent) => null {
  return (event) => {
    if (event.button !== 0) return null;
    zooming = { plot, isIn: event.type !== "dblclick" };
    handler(event);
    queueMicrotask(() => (zooming = null));
    return null;
  };
}

/** The range that a plot over time of these moments has: what the reader has zoomed into, as far as there is something. */
function zoomOf(moments: ArrayLike<number>): { min: number; max: number } | null {
  const [first, last] = [moments[0], moments[moments.length - 1]];
  return zoom !== null && first !== undefined && last !== undefined && zoom.min < last && zoom.max > first ? zoom : null;
}

function draw(host: HTMLElement, name: string, lines: Line[], options: PlotOptions): Drawn {
  const data = joined(lines, options);
  const stepped = uPlot.paths.stepped!({ align: 1 });
  const { names } = options;
  const named = (y: number): string => names?.[Math.round(y)] ?? "";
  const said = (y: number): string => (names === undefined ? number(y) : named(y));
  const scaleOf = (line: Line): string => (line.dots === true ? "right" : "y");
  const series: uPlot.Series[] = lines.map((line) => ({
    label: line.label,
    stroke: line.colour,
    width: line.area === true ? 1 : 1.6,
    scale: scaleOf(line),
    points: line.dots === true ? { show: true, size: 5, fill: line.colour } : { show: false },
    ...(line.area === true && { fill: `${line.colour}40` }),
    ...(line.dash !== undefined && { dash: line.dash }),
    ...(line.dots === true || options.stacked === true ? { paths: () => null } : line.steps === true ? { paths: stepped } : {}),
  }));
  const fitting = (_: uPlot, min: number | null, max: number | null): [number, number] => {
    if (min === null || max === null) return [0, 1];
    const margin = (max - min) * 0.08 || 1;
    return [min - margin, max + margin];
  };
  const fromZero = (_: uPlot, __: number, max: number | null): [number, number] => [0, (max ?? 0) > 0 ? max! * 1.06 : 1];
  const toTop = (u: uPlot): [number, number] => {
    const [from, to] = u.series[0]!.idxs ?? [0, u.data[0].length - 1];
    return fromZero(u, 0, edgesOf(u).at(-1)!.slice(from, to + 1).reduce((most, y) => Math.max(most, y), 0));
  };
  const over = (u: uPlot, ink: string): Drawing[] => [
    ...(options.stacked === true ? layersOf(u, lines) : []),
    ...moments(u, options.marks ?? [], ink),
    ...lines.flatMap((line, i) => markersOf(u, line, i, scaleOf(line))),
  ];
  const u = new uPlot(
    {
      width: widthOf(host),
      height: HEIGHT,
      legend: { show: false },
      cursor: {
        drag: { x: true, y: false },
        ...(options.time === true && { sync: { key: ZOOM_GROUP }, bind: { mouseup: zooms, dblclick: zooms } }),
        ...(options.stacked === true && { points: { show: false } }),
      },
      scales: {
        x: options.logX === true ? { time: false, distr: 3 } : { time: false },
        y: {
          range: options.stacked === true ? toTop : names !== undefined ? [-0.5, names.length - 0.5] : options.fit === true ? fitting : options.yMax === undefined ? fromZero : [0, options.yMax],
        },
        right: { range: fromZero },
      },
      axes: [
        axis(options.x, 2, options.logX === true ? logTicks : ticks),
        names === undefined ? axis(options.y, 3, ticks) : namesAxis(options.y, names),
        ...(options.right === undefined ? [] : [axis(options.right, 1, ticks, "right")]),
      ],
      series: [{ label: options.x }, ...series],
      hooks: {
        ...(options.time === true && { setScale: [zoomTogether] }),
        draw: [(u) => drawOn(u, over(u, style("--muted")))],
      },
    },
    data,
    host,
  );
  const entries: Entry[] = lines.map(({ label, colour, dash, marker, dots, area }) => ({
    label,
    colour,
    ...(dash !== undefined && { dash }),
    ...(marker !== undefined && { marker }),
    ...(dots === true && { dash: [0.1, 7], marker: { shape: "circle" } as Marker }),
    ...((area === true || options.stacked === true) && { filled: true }),
  }));
  host.append(legend(u, entries, (_, y) => said(y), "", (x) => `${options.x.split(",")[0]!}: ${number(x)}`));
  /** What is shown of the horizontal axis, if not all of it. */
  const partOf = (data: uPlot.AlignedData): { min: number; max: number } | null => {
    if (options.time === true) return zoomOf(data[0]);
    const [min, max, first, last] = [u.scales.x!.min, u.scales.x!.max, u.data[0][0], u.data[0].at(-1)];
    const isZoomed = options.logX !== true && min !== undefined && max !== undefined && first !== undefined && last !== undefined && (min > first || max < last);
    return isZoomed ? { min, max } : null;
  };
  const part = options.time === true ? zoomOf(data[0]) : null;
  if (part !== null) u.setScale("x", part);
  const refresh = (newLines: Line[], newOptions: PlotOptions): void => {
    [lines, options] = [newLines, newOptions];
    const data = joined(lines, options);
    const part = partOf(data);
    u.setData(data, part === null);
    // With this, the vertical axis fits what is shown.
    if (part !== null) u.setScale("x", part);
  };
  return {
    title: name,
    refresh,
    u,
    entries,
    // On the screen uPlot draws the dots.
    over: (u, ink) => [...over(u, ink), ...lines.flatMap((line, i) => (line.dots === true && u.series[i + 1]?.show === true ? dotsOf(u, line) : []))],
    lines: lines.flatMap(({ colour, dash, steps, dots, area }, i) =>
      dots === true || options.stacked === true
        ? []
        : [{ s: i + 1, colour, width: area === true ? 1 : 1.6, scale: "y", ...(dash !== undefined && { dash }), ...(steps === true && { steps }), ...(area === true && { area }) }],
    ),
    head: ["line", options.x, options.y],
    rows: () => lines.flatMap((line) => line.x.map((x, i) => [line.label, x, names === undefined ? line.y[i] : line.y[i] == null ? null : named(line.y[i]!)])),
  };
}

/** The width for a plot in `host`, which is on the page. */
export function widthOf(host: HTMLElement): number {
  return Math.max(host.clientWidth, 220);
}

/** Markers along a line, at distances on the screen, so that they do not crowd; or each dot of a line of dots. */
function markersOf(u: uPlot, line: Line, i: number, scale: string): Drawing[] {
  const ys = u.data[i + 1] as (number | null | undefined)[];
  if (line.marker === undefined || line.dots === true || line.area === true || u.series[i + 1]?.show !== true) return [];
  const open = line.marker.hollow === true || line.marker.shape === "cross" || line.marker.shape === "plus";
  const found: Drawing[] = [];
  let next = (MARKER_SHIFT / 2 + i * MARKER_SHIFT) % MARKER_EVERY;
  const width = u.over.clientWidth;
  u.data[0]!.forEach((x, k) => {
    const y = ys[k];
    if (y === undefined || y === null) return;
    const px = u.valToPos(x, "x");
    if (px < next || px > width) return;
    next = px + MARKER_EVERY;
    found.push({ d: markerPath(line.marker!.shape, px, u.valToPos(y, scale)), stroke: line.colour, width: 1.4, fill: open ? style("--card") : line.colour });
  });
  return found;
}

/** The upper edges of the layers of a stack that are not hidden. */
function edgesOf(u: uPlot): number[][] {
  return stacked(u.data.slice(1) as (number | null | undefined)[][], (i) => u.series[i + 1]?.show === true);
}

/** The areas of a stack, from the lowest to the highest. */
function layersOf(u: uPlot, lines: Line[]): Drawing[] {
  const { min, max } = u.scales.x!;
  const [xs, edges] = [u.data[0] as number[], edgesOf(u)];
  // With a neighbour on each side of what is visible.
  const from = Math.max(xs.findIndex((x) => x >= (min ?? x)) - 1, 0);
  const beyond = xs.findIndex((x) => x > (max ?? x));
  const places = xs.slice(from, beyond === -1 ? xs.length : beyond + 1);
  const at = (x: number, y: number): string => `${u.valToPos(x, "x").toFixed(1)} ${u.valToPos(y, "y").toFixed(1)}`;
  return lines.flatMap((line, i): Drawing[] => {
    if (u.series[i + 1]?.show !== true || places.length < 2) return [];
    const upper = places.map((x, k) => at(x, edges[i]![from + k]!));
    const lower = places.map((x, k) => at(x, edges[i - 1]?.[from + k] ?? 0)).reverse();
    return [{ d: `M${[...upper, ...lower].join("L")}Z`, fill: line.colour, opacity: 0.85 }];
  });
}

function dotsOf(u: uPlot, line: Line): Drawing[] {
  return line.x.flatMap((x, k): Drawing[] => {
    const y = line.y[k];
    if (x === null || y === null || y === undefined) return [];
    return [{ d: markerPath("circle", u.valToPos(x, "x"), u.valToPos(y, "right"), 2.5), fill: line.colour }];
  });
}

/** A vertical axis of names at equal distances. */
function namesAxis(label: string, names: string[]): uPlot.Axis {
  const longest = Math.max(...names.map((name) => name.length));
  const places = names.map((_, i) => i);
  return { ...axis(label, 3, (_, at) => at.map((i) => names[i] ?? "")), splits: () => places, size: Math.min(50 + Math.max(longest - 5, 0) * 6, 160), labelSize: 0 };
}

/** Lines at moments, with their texts at the top where there is room, in the colour `ink`: lines may be too pale for texts. */
function moments(u: uPlot, marks: Mark[], ink: string): Drawing[] {
  const [width, height] = [u.over.clientWidth, u.over.clientHeight];
  const placed = [...marks].sort((a, b) => a.x - b.x).map((mark) => ({ mark, x: u.valToPos(mark.x, "x") }));
  const visible = placed.filter(({ x }) => x >= 0 && x <= width);
  if (visible.length * MARK_EVERY > width) return [];
  const sizeOf = (mark: Mark): number => mark.text.length * CHARACTER + 6;
  const before = placed.filter(({ mark, x }) => mark.lasts === true && x < 0).slice(-1);
  const edge = before.flatMap(({ mark }) => ((visible[0]?.x ?? width) < sizeOf(mark) ? [] : [{ mark, x: 0 }]));
  const drawings: Drawing[] = visible.map(({ mark, x }) => ({ d: `M${x.toFixed(1)} 0V${height}`, stroke: mark.colour, dash: [4, 3] }));
  let end = 0;
  for (const { mark, x } of [...edge, ...visible]) {
    const size = sizeOf(mark);
    if (x < end || x + size > width) continue;
    drawings.push({ text: mark.text, x: x + 3, y: 2, fill: ink });
    end = x + size;
  }
  return drawings;
}

/** Gives all plots over time the range that the reader has given `from`. */
function zoomTogether(from: uPlot, key: string): void {
  if (key !== "x" || zooming?.plot !== from) return;
  const { min, max } = from.scales.x!;
  if (min === undefined || max === undefined || min === null || max === null) return;
  zoom = zooming.isIn ? { min, max } : null;
  for (const { plot, dataset } of hosts()) {
    if (plot === null || plot === from || dataset["zoom"] !== ZOOM_GROUP) continue;
    const { x } = plot.scales;
    if (x?.min !== min || x.max !== max) plot.setScale("x", { min, max });
  }
}

/** The look of a line. */
export type Look = Pick<Line, "colour" | "dash" | "marker">;

/** The line of a column of `series`, if it has that column. */
export function lineOf(series: Series, x: string, y: string, label: string, look: Look): Line[] {
  const [xs, ys] = [column(series, x), column(series, y)];
  return xs === undefined || ys === undefined ? [] : [{ label, x: xs, y: ys, ...look }];
}

/** Returns a distribution, starting at zero. That of completion times ends below 1 if transfers did not finish. */
export function distributionLine(series: Series, label: string, look: Look): Line[] {
  const [xs, shares] = [column(series, "x"), column(series, "share")];
  if (xs === undefined || shares === undefined) return [];
  const of = series.begun;
  const start = series.kind === "transfers" ? 0 : justBefore(xs as number[]);
  const name = typeof of === "number" ? `${label} (${of})` : label;
  return [{ label: name, x: [start, ...xs], y: [0, ...shares], steps: true, ...look }];
}

/** Returns the distribution of `values`: the share of them at or below each one. */
export function distributionOf(values: number[], label: string, look: Look): Line[] {
  if (values.length === 0) return [];
  const sorted = [...values].sort((a, b) => a - b);
  return [{ label, x: [justBefore(sorted), ...sorted], y: [0, ...sorted.map((_, i) => (i + 1) / sorted.length)], steps: true, ...look }];
}

/** Where the first step of a distribution rises: an axis has one value at each place. */
function justBefore(sorted: number[]): number {
  const first = sorted[0]!;
  return first - (sorted.at(-1)! - first || Math.abs(first) || 1) * 1e-6;
}
