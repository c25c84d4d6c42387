// Scatter plots: a point for each pair of values, and outlines around groups of them; places on a map; curves.

import uPlot from "uplot";
import { h } from "./dom";
import { number } from "./format";
import { legend, type Entry } from "./legend";
import { colour, markerPath, shapeOf } from "./palette";
import { axis, caption, PlotHost, style, ticks, widthOf } from "./plots";
import type { Saved } from "./save";
import { drawOn, type Drawing } from "./shapes";
import { rangeOf } from "./statistics";

/** A group of points, and the closed line around them, if there is one. */
export interface Cloud {
  label: string;
  x: number[];
  y: number[];
  outline?: { x: number[]; y: number[] };
  /** A colour for each point, instead of one for all; a point without one is hollow. */
  colours?: (string | null)[];
  /** The points are joined in their order, with a gap where `y` is not a number: each piece has a colour of its own unless there is only one. */
  joined?: boolean;
  /** The markers are outlines. */
  hollow?: boolean;
}

/** Draws groups of points, with one axis for all. */
export function scatterPlot(title: string, clouds: Cloud[], xLabel: string, yLabel: string, note?: string): HTMLElement {
  const host = new PlotHost();
  const figure = h("figure", {}, caption(title, note, () => host.drawNow()), host);
  if (clouds.every((one) => one.x.length === 0)) {
    host.append(h("p", { class: "empty" }, "No run has a value for this figure."));
    return figure;
  }
  host.whenSeen(() => draw(host, title, clouds, xLabel, yLabel));
  return figure;
}

function draw(host: HTMLElement, title: string, clouds: Cloud[], xLabel: string, yLabel: string): Saved {
  // A map has a margin on all sides.
  const isMap = clouds.some((one) => one.colours !== undefined);
  const range = (of: (one: { x: number[]; y: number[] }) => number[]): [number, number] =>
    rangeOf(clouds.flatMap(of), clouds.flatMap((one) => (one.outline === undefined ? [] : of(one.outline))), isMap);
  const over = (u: uPlot): Drawing[] => clouds.flatMap((one, i) => (u.series[i + 1]?.show === true ? cloud(u, one, i) : []));
  const sorted = (one: Cloud): uPlot.AlignedData => {
    const order = one.x.map((_, i) => i).sort((a, b) => one.x[a]! - one.x[b]!);
    return [order.map((i) => one.x[i]!), order.map((i) => (Number.isFinite(one.y[i]) ? one.y[i]! : null))];
  };
  const u = new uPlot(
    {
      width: widthOf(host),
      height: 280,
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      scales: { x: { time: false, range: range((one) => one.x) }, y: { range: range((one) => one.y) } },
      axes: [axis(xLabel, 2, ticks), axis(yLabel, 3, ticks)],
      series: [
        { label: xLabel },
        ...clouds.map((one, i): uPlot.Series => ({ label: one.label, stroke: colourOf(one, i), points: { show: false }, paths: () => null })),
      ],
      hooks: { draw: [(u) => drawOn(u, over(u))] },
    },
    uPlot.join(clouds.map(sorted)),
    host,
  );
  const entries = clouds.map((one, i): Entry => ({ label: one.label, colour: colourOf(one, i), ...(one.joined !== true && { marker: { shape: shapeOf(i), hollow: one.hollow === true } }) }));
  host.append(legend(u, entries, (_, y) => number(y)));
  return {
    title,
    u,
    entries,
    over,
    lines: [],
    head: ["group", xLabel, yLabel],
    rows: () => clouds.flatMap((one) => one.x.flatMap((x, i) => (Number.isFinite(one.y[i]) ? [[one.label, x, one.y[i]!]] : []))),
  };
}

function cloud(u: uPlot, one: Cloud, i: number): Drawing[] {
  const at = (x: number, y: number): [number, number] => [u.valToPos(x, "x"), u.valToPos(y, "y")];
  if (one.joined === true) return curves(one, i, at);
  const shape = shapeOf(i);
  const open = shape === "cross" || shape === "plus";
  const points = one.x.map((x, k): Drawing => {
    const [px, py] = at(x, one.y[k]!);
    const own = one.colours === undefined ? colour(i) : one.colours[k];
    if (open || own == null || one.hollow === true) return { d: markerPath(shape, px, py, 2.5), stroke: own ?? colourOf(one, i), width: 1 };
    return { d: markerPath(shape, px, py, 2.5), opacity: one.colours === undefined ? 0.55 : 1, fill: own };
  });
  if (one.outline === undefined || one.outline.x.length === 0) return points;
  const path = one.outline.x.map((x, k) => at(x, one.outline!.y[k]!).map((p) => p.toFixed(1)).join(" "));
  return [...points, { d: `M${path.join("L")}Z`, stroke: colour(i), width: 1.6 }];
}

function colourOf(one: Cloud, i: number): string {
  return one.hollow === true || (one.joined === true && !hasPieces(one)) ? style("--text") : colour(i);
}

function hasPieces(one: Cloud): boolean {
  return one.y.some((y) => !Number.isFinite(y));
}

/** The pieces of a curve: thin and each in a colour of its own, or one thick line. */
function curves(one: Cloud, i: number, at: (x: number, y: number) => [number, number]): Drawing[] {
  const pieces: string[][] = [[]];
  one.x.forEach((x, k) => {
    const y = one.y[k]!;
    if (Number.isFinite(y)) pieces.at(-1)!.push(at(x, y).map((p) => p.toFixed(1)).join(" "));
    else pieces.push([]);
  });
  const several = hasPieces(one);
  return pieces
    .filter((piece) => piece.length > 0)
    .map((piece, k): Drawing => ({ d: `M${piece.join("L")}`, stroke: several ? colour(k) : colourOf(one, i), width: several ? 0.6 : 2.4 }));
}
