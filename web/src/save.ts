// Saving a plot as SVG, as PNG (the same picture) or its values as CSV, all within the page.

import type uPlot from "uplot";
import type { Cell } from "./csv";
import { h } from "./dom";
import { swatch, type Entry } from "./legend";
import { named, offer, saveCsv } from "./offer";
import { elementOf, svg, type Drawing } from "./shapes";

/** Pixels of a PNG to a pixel of the plot. */
const PNG_SCALE = 3;
/** Around the plotting area, in pixels. */
const MARGIN = { left: 66, right: 20, top: 44, bottom: 46 };
const RIGHT_AXIS = 46;
const LEGEND_ROW = 18;
/** Additional height for rotated names on the horizontal axis. */
const TURNED = 50;
const CHARACTER = 6.4;
const INK = "#1a2230";
const GRID = "#dfe3e9";

/** A plot that can be saved. */
export interface Saved {
  title: string;
  u: uPlot;
  entries: Entry[];
  /** What is drawn besides the lines, with `ink` for what is black on paper. */
  over: (u: uPlot, ink: string) => Drawing[];
  /** Lines of the plot itself, by series: none where `over` draws everything. */
  lines: { s: number; colour: string; width: number; dash?: number[]; steps?: boolean; area?: boolean; scale: string }[];
  head: string[];
  rows: () => Cell[][];
}

/** Buttons that save what `plot` returns once it is drawn. */
export function saveButtons(plot: () => Saved | null): HTMLElement {
  const button = (kind: string, save: (of: Saved) => void): HTMLElement => {
    const one = h("button", { type: "button", title: `Save as ${kind}` }, kind);
    one.addEventListener("click", () => {
      const of = plot();
      // A plot drawn just for this has no layout yet.
      if (of !== null) setTimeout(() => save(of));
    });
    return one;
  };
  return h(
    "span",
    { class: "save", role: "group", "aria-label": "Save this plot" },
    button("PNG", (of) => void png(of)),
    button("SVG", (of) => offer(named(of.title, "svg"), new Blob([svgText(of)], { type: "image/svg+xml" }))),
    button("CSV", (of) => saveCsv(of.title, of.head, of.rows())),
  );
}

async function png(of: Saved): Promise<void> {
  const picture = new Image();
  const text = svgText(of);
  picture.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await picture.decode();
  const canvas = h("canvas");
  canvas.width = picture.naturalWidth * PNG_SCALE;
  canvas.height = picture.naturalHeight * PNG_SCALE;
  canvas.getContext("2d")!.drawImage(picture, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => {
    if (blob !== null) offer(named(of.title, "png"), blob);
  }, "image/png");
}

/** uPlot keeps the positions of its ticks in fields that its types do not declare. */
type Ticked = uPlot.Axis & { _splits?: (number | null)[]; _values?: (string | null)[] };

/** The plot as it is shown now (zoomed, lines hidden), on white, with its title and legend. */
export function svgText(of: Saved): string {
  const { u } = of;
  const [width, height] = [u.over.clientWidth, u.over.clientHeight];
  const right = u.axes.length > 2 ? RIGHT_AXIS : 0;
  const entries = of.entries.filter((_, i) => u.series[i + 1]?.show === true);
  const whole = MARGIN.left + width + MARGIN.right + right;
  const rows = rowsOf(entries, whole - 24);
  // As far down as the axis of the plot goes, with turned names further.
  const bottom = MARGIN.bottom + (turned(u.axes[0] as Ticked) ? TURNED : 0);
  const total = MARGIN.top + height + bottom + rows.length * LEGEND_ROW + 8;
  const area = svg("g", { transform: `translate(${MARGIN.left} ${MARGIN.top})` });
  const inside = svg("g", { "clip-path": "url(#area)" });
  for (const axis of u.axes as Ticked[]) axisInto(area, u, axis, width, height);
  area.append(svg("path", { d: `M0 0V${height}H${width}`, stroke: INK, fill: "none" }));
  for (const line of of.lines) {
    if (u.series[line.s]?.show !== true) continue;
    const { d, from, to } = pathOf(u, line);
    if (line.area === true) inside.append(svg("path", { d: `${d}L${to} ${height}L${from} ${height}Z`, fill: line.colour, "fill-opacity": 0.25 }));
    inside.append(svg("path", { d, stroke: line.colour, "stroke-width": line.width, fill: "none", "stroke-dasharray": line.dash?.join(" "), "stroke-linejoin": "round" }));
  }
  inside.append(...of.over(u, INK).map(elementOf));
  area.append(inside);
  const legend = rows.flatMap((row, i) =>
    row.map(({ entry, x }) => {
      const at = svg("g", { transform: `translate(${x + 12} ${MARGIN.top + height + bottom + i * LEGEND_ROW})` }, swatch(entry));
      at.append(svg("text", { x: 36, y: 10, fill: INK }, entry.label));
      return at;
    }),
  );
  const picture = svg(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", width: whole, height: total, viewBox: `0 0 ${whole} ${total}`, "font-family": "system-ui, sans-serif", "font-size": 11 },
    svg("title", {}, of.title),
    svg("defs", {}, svg("clipPath", { id: "area" }, svg("rect", { x: -4, y: -4, width: width + 8, height: height + 8 }))),
    svg("rect", { width: whole, height: total, fill: "#ffffff" }),
    svg("text", { x: 12, y: 22, fill: INK, "font-size": 14, "font-weight": 600 }, of.title),
    area,
    ...legend,
  );
  return new XMLSerializer().serializeToString(picture);
}

function turned(axis: Ticked): boolean {
  return axis.rotate !== undefined && axis.rotate !== 0;
}

/** The entries in rows that are no wider than `width`, and where each begins. */
function rowsOf(entries: Entry[], width: number): { entry: Entry; x: number }[][] {
  const rows: { entry: Entry; x: number }[][] = [];
  let x = width;
  for (const entry of entries) {
    const size = 48 + entry.label.length * CHARACTER;
    if (x + size > width) {
      rows.push([]);
      x = 0;
    }
    rows.at(-1)!.push({ entry, x });
    x += size;
  }
  return rows;
}

function axisInto(area: SVGElement, u: uPlot, axis: Ticked, width: number, height: number): void {
  const scale = axis.scale ?? (axis.side === 2 ? "x" : "y");
  const label = typeof axis.label === "string" ? axis.label : "";
  (axis._splits ?? []).forEach((at, i) => {
    const text = String(axis._values?.[i] ?? "");
    if (at === null || text === "") return;
    const place = u.valToPos(at, scale);
    if (axis.side === 2) {
      if (place < -1 || place > width + 1) return;
      area.append(svg("path", { d: `M${place.toFixed(1)} 0V${height + 4}`, stroke: GRID }));
      const at = turned(axis) ? { transform: `translate(${place + 4} ${height + 14}) rotate(-30)`, "text-anchor": "end" } : { x: place, y: height + 16, "text-anchor": "middle" };
      area.append(svg("text", { ...at, fill: INK }, text));
    } else if (place >= -1 && place <= height + 1) {
      const left = axis.side === 3;
      if (left) area.append(svg("path", { d: `M-4 ${place.toFixed(1)}H${width}`, stroke: GRID }));
      area.append(svg("text", { x: left ? -7 : width + 7, y: place + 4, fill: INK, "text-anchor": left ? "end" : "start" }, text));
    }
  });
  if (axis.side === 2) area.append(svg("text", { x: width / 2, y: height + 34 + (turned(axis) ? TURNED : 0), fill: INK, "text-anchor": "middle" }, label));
  else {
    const x = axis.side === 3 ? -MARGIN.left + 14 : width + RIGHT_AXIS;
    area.append(svg("text", { transform: `translate(${x} ${height / 2}) rotate(-90)`, fill: INK, "text-anchor": "middle" }, label));
  }
}

/** The line of a series as it is on the screen. A moment without a sample is bridged, one without a value is a gap. */
function pathOf(u: uPlot, line: Saved["lines"][number]): { d: string; from: number; to: number } {
  const [xs, ys] = [u.data[0]!, u.data[line.s] as (number | null | undefined)[]];
  let d = "";
  let down = false;
  let before = 0;
  let [from, to] = [Infinity, 0];
  xs.forEach((x, i) => {
    const y = ys[i];
    if (y === undefined) return;
    if (y === null) {
      down = false;
      return;
    }
    const [px, py] = [u.valToPos(x, "x"), u.valToPos(y, line.scale)];
    if (!Number.isFinite(px) || !Number.isFinite(py)) return;
    if (down && line.steps === true) d += `L${px.toFixed(1)} ${before.toFixed(1)}`;
    d += `${down ? "L" : "M"}${px.toFixed(1)} ${py.toFixed(1)}`;
    [down, before, from, to] = [true, py, Math.min(from, px), px];
  });
  return { d, from: Number.isFinite(from) ? from : 0, to };
}
