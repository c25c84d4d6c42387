// The legend below a plot: each name with its line's colour, dash and marker, and a switch for the line.

import type uPlot from "uplot";
import { h } from "./dom";
import { markerPath, type Marker } from "./palette";
import { svg } from "./shapes";

/** Names at first; the others on request. */
const FIRST = 8;
/** Maximum distance of a value from the cursor in samples, because lines may have different sampling times. */
const NEAR = 40;

export interface Entry {
  label: string;
  colour: string;
  dash?: number[];
  marker?: Marker;
  /** A filled area or a bar, not a line. */
  filled?: boolean;
}

/** The legend of `u`, whose series from 1 on are `entries`. */
export function legend(u: uPlot, entries: Entry[], show: (s: number, y: number) => string, heading = "", xOf?: (x: number) => string): HTMLElement {
  const values = entries.map(() => h("span", { class: "at" }));
  const keys = entries.map((entry, i) => {
    const key = h("button", { type: "button", class: "key", "aria-pressed": "true", title: `${entry.label}: hide or show` }, swatch(entry), h("span", {}, entry.label), values[i]);
    key.addEventListener("click", () => {
      const on = u.series[i + 1]?.show !== true;
      u.setSeries(i + 1, { show: on });
      key.setAttribute("aria-pressed", String(on));
    });
    return key;
  });
  const more = h("button", { type: "button", class: "key rest" }, `and ${entries.length - FIRST} more`);
  more.addEventListener("click", () => {
    keys.forEach((key) => (key.hidden = false));
    more.remove();
  });
  const many = entries.length > FIRST + 1;
  if (many) keys.slice(FIRST).forEach((key) => (key.hidden = true));
  const moment = h("span", { class: "at" });
  const follow = (): void => {
    const { idx } = u.cursor;
    moment.textContent = idx === null || idx === undefined || xOf === undefined ? "" : xOf(u.data[0]![idx]!);
    values.forEach((value, i) => {
      const y = idx === null || idx === undefined ? null : nearest(u.data[i + 1] as (number | null | undefined)[], idx);
      value.textContent = y === null ? "" : show(i, y);
    });
  };
  (u.hooks.setCursor ??= []).push(follow);
  return h("div", { class: "keys" }, heading !== "" && h("span", { class: "heading" }, heading), ...keys, many && more, moment);
}

/** The value at `at` or, where a line has no sample of its own there, the nearest one. */
function nearest(column: (number | null | undefined)[], at: number): number | null {
  for (let away = 0; away <= NEAR; away++) {
    for (const i of [at - away, at + away]) {
      const y = column[i];
      if (y !== undefined) return y;
    }
  }
  return null;
}

/** A piece of the line, 30 by 12 pixels. */
export function swatch(entry: Entry): SVGElement {
  const picture = svg("svg", { width: 30, height: 12, viewBox: "0 0 30 12", "aria-hidden": "true", class: "swatch" });
  if (entry.filled === true) picture.append(svg("rect", { x: 3, y: 1, width: 24, height: 10, fill: entry.colour, "fill-opacity": 0.85 }));
  else picture.append(svg("path", { d: "M1 6H29", stroke: entry.colour, "stroke-width": 2, "stroke-dasharray": entry.dash?.join(" "), fill: "none" }));
  if (entry.marker !== undefined) picture.append(markerElement(entry.marker, entry.colour, 15, 6));
  return picture;
}

export function markerElement(marker: Marker, colour: string, x: number, y: number): SVGElement {
  const open = marker.hollow === true || marker.shape === "cross" || marker.shape === "plus";
  return svg("path", { d: markerPath(marker.shape, x, y), fill: open ? "none" : colour, stroke: colour, "stroke-width": 1.4 });
}
