// Scatter plots: a point for each pair of values, and outlines around groups of them.

import uPlot from "uplot";
import { h } from "./dom";
import { number } from "./format";
import { legend, type Entry } from "./legend";
import { colour, markerPath, shapeOf } from "./palette";
import { axis, caption, PlotHost, ticks, widthOf } from "./plots";
import type { Saved } from "./save";
import { drawOn, type Drawing } from "./shapes";

/** A group of points, and the closed line around them, if there is one. */
export interface Cloud {
  label: string;
  x: number[];
  y: number[];
  outline?: { x: number[]; y: number[] };
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
  // The range is that of the points: an outline may leave it.
  const range = (of: (one: Cloud) => number[]): [number, number] => {
    const all = clouds.flatMap(of);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const margin = (high - low) * 0.08 || 1;
    return [low >= 0 ? Math.max(low - margin, 0) : low - margin, high + margin];
  };
  const over = (u: uPlot): Drawing[] => clouds.flatMap((one, i) => (u.series[i + 1]?.show === true ? cloud(u, one, i) : []));
  const sorted = (one: Cloud): uPlot.AlignedData => {
    const order = one.x.map((_, i) => i).sort((a, b) => one.x[a]! - one.x[b]!);
    return [order.map((i) => one.x[i]!), order.map((i) => one.y[i]!)];
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
        ...clouds.map((one, i): uPlot.Series => ({ label: one.label, stroke: colour(i), points: { show: false }, paths: () => null })),
      ],
      hooks: { draw: [(u) => drawOn(u, over(u))] },
    },
    uPlot.join(clouds.map(sorted)),
    host,
  );
  const entries = clouds.map(({ label }, i): Entry => ({ label, colour: colour(i), marker: { shape: shapeOf(i) } }));
  host.append(legend(u, entries, (_, y) => number(y)));
  return {
    title,
    u,
    entries,
    over,
    lines: [],
    head: ["group", xLabel, yLabel],
    rows: () => clouds.flatMap((one) => one.x.map((x, i) => [one.label, x, one.y[i]!])),
  };
}

function cloud(u: uPlot, one: Cloud, i: number): Drawing[] {
  const at = (x: number, y: number): [number, number] => [u.valToPos(x, "x"), u.valToPos(y, "y")];
  const shape = shapeOf(i);
  const open = shape === "cross" || shape === "plus";
  const points = one.x.map((x, k): Drawing => {
    const [px, py] = at(x, one.y[k]!);
    return { d: markerPath(shape, px, py, 2.5), opacity: 0.55, ...(open ? { stroke: colour(i), width: 1 } : { fill: colour(i) }) };
  });
  if (one.outline === undefined || one.outline.x.length === 0) return points;
  const path = one.outline.x.map((x, k) => at(x, one.outline!.y[k]!).map((p) => p.toFixed(1)).join(" "));
  return [...points, { d: `M${path.join("L")}Z`, stroke: colour(i), width: 1.6 }];
}
