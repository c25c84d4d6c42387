// The live map: cells and UEs from above, with the places where UEs have been.

import type { Place, Places } from "./data";
import { h } from "./dom";
import { number } from "./format";
import { colour } from "./palette";
import { svg } from "./shapes";

/** Height over width, and the greatest height in pixels. */
const SHAPE = 9 / 16;
const MOST_HEIGHT = 420;
/** Room for labels at each side. */
const EDGE = 36;
/** Size of the labels in pixels, whatever the width of the page, the height of a row of them, and about the width of a character. */
const FONT = 12;
const ROW = 15;
const CHARACTER = 7;
/** Characters of a name that are shown; a tooltip has all of it. */
const MOST_CHARACTERS = 20;
/** Names that are shown at most: finding room for more takes long, and there is hardly any. */
const MOST_LABELS = 200;
/** Half the size of a marker. */
const MARKER = 8;
/** Earlier places of a UE that are shown. */
const TRAIL = 60;

const trails = new Map<string, [number, number][]>();
/** Width of the map on the page in pixels, as it was laid out last. */
let width = 640;

/** Forgets where UEs have been, because another run is shown. */
export function forgetTrails(): void {
  trails.clear();
}

/** A part of the picture, in pixels. */
export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

function overlaps(a: Box, b: Box): boolean {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

/** The base line of a label's text, and its part of the picture. */
interface Label {
  y: number;
  box: Box;
}

/**
 * The places of labels beside markers at `points`, in order: within `whole`, and neither on a marker nor on each other.
 * `null` where there is no room.
 */
export function labels(points: { name: string; x: number; y: number }[], whole: Box): (Label | null)[] {
  const taken: Box[] = points.map(({ x, y }) => ({ left: x - MARKER, top: y - MARKER, right: x + MARKER, bottom: y + MARKER }));
  return points.map(({ name, x, y }, i) => {
    if (i >= MOST_LABELS) return null;
    const size = name.length * CHARACTER;
    const [right, left, middle] = [x + MARKER, x - MARKER - size, x - size / 2];
    const rows = [0, 1].flatMap((row) => [y - MARKER - 1 - row * ROW, y + MARKER + FONT + row * ROW]);
    const candidates = [...rows.flatMap((y) => [middle, right, left].map((x) => [x, y] as const)), [right, y + FONT / 3] as const, [left, y + FONT / 3] as const];
    for (const [x, y] of candidates) {
      const box: Box = { left: x, top: y - FONT + 2, right: x + size, bottom: y + 3 };
      const isInside = box.left >= whole.left && box.right <= whole.right && box.top >= whole.top && box.bottom <= whole.bottom;
      if (!isInside || taken.some((other) => overlaps(box, other))) continue;
      taken.push(box);
      return { y, box };
    }
    return null;
  });
}

/** Cells and UEs from above, each UE in the colour of its cell and joined to it, dashed where it does not see it. */
export function map(places: Places): HTMLElement {
  for (const { name, x, y } of places.ues) {
    const trail = trails.get(name) ?? [];
    const last = trail.at(-1);
    if (last === undefined || last[0] !== x || last[1] !== y) trails.set(name, [...trail, [x, y] as [number, number]].slice(-TRAIL));
  }
  const picture = svg("svg", { role: "img", "aria-label": told(places.ues) });
  const reach = extent(places);
  draw(picture, places, reach);
  // In pixels of the screen, so that texts keep their size on a phone.
  new ResizeObserver(([entry]) => {
    const now = Math.round(entry?.contentRect.width ?? 0);
    if (now === 0 || now === width) return;
    width = now;
    draw(picture, places, reach);
  }).observe(picture);
  const km = (reach.right - reach.left || reach.top - reach.bottom) / 1000;
  return h(
    "section",
    { id: "map" },
    h("h2", {}, "Map"),
    h(
      "figure",
      { class: "wide map-figure" },
      h("figcaption", {}, h("b", {}, "Cells and UEs"), h("span", {}, `triangles: cells; circles: UEs; dashed: out of sight; ${number(km)} km from left to right`)),
      picture,
    ),
  );
}

/** The part of the world that is shown, in metres east and north. */
function extent({ cells, ues }: Places): Box {
  const all: [number, number][] = [...cells, ...ues].map(({ x, y }) => [x, y]);
  for (const { name } of ues) all.push(...(trails.get(name) ?? []));
  const [xs, ys] = [all.map(([x]) => x), all.map(([, y]) => y)];
  return { left: Math.min(...xs), right: Math.max(...xs), bottom: Math.min(...ys), top: Math.max(...ys) };
}

/** Draws everything into `picture`. */
function draw(picture: SVGSVGElement, { cells, ues }: Places, reach: Box): void {
  const height = Math.min(Math.round(width * SHAPE), MOST_HEIGHT);
  const scale = Math.min((width - 2 * EDGE) / (reach.right - reach.left || 1), (height - 2 * EDGE) / (reach.top - reach.bottom || 1));
  const at = (x: number, y: number): [number, number] => [width / 2 + (x - (reach.left + reach.right) / 2) * scale, height / 2 - (y - (reach.bottom + reach.top) / 2) * scale];
  const hue = (cell: string | null): string => {
    const i = cells.findIndex(({ name }) => name === cell);
    return i < 0 ? "#666666" : colour(i);
  };
  const path = (points: [number, number][]): string => points.map(([x, y], i) => `${i === 0 ? "M" : "L"}${at(x, y).map((p) => p.toFixed(1)).join(" ")}`).join("");
  const shapes: SVGElement[] = [];
  for (const { name } of ues) shapes.push(svg("path", { class: "trail", d: path(trails.get(name) ?? []), fill: "none" }));
  for (const { x, y, cell, los } of ues) {
    const serving = cells.find(({ name }) => name === cell);
    if (serving === undefined) continue;
    shapes.push(svg("path", { class: "serves", d: path([[x, y], [serving.x, serving.y]]), fill: "none", ...(los === false && { "stroke-dasharray": "4 3" }) }));
  }
  for (const { name, x, y } of cells) {
    const [px, py] = at(x, y);
    // Its outline is seen whatever its colour.
    shapes.push(svg("path", { class: "cell", d: `M${px.toFixed(1)} ${(py - 8).toFixed(1)}l8 14h-16Z`, fill: hue(name), stroke: "currentColor" }, svg("title", {}, name)));
  }
  for (const { name, x, y, cell } of ues) {
    const [px, py] = at(x, y);
    shapes.push(svg("circle", { class: "ue", cx: px, cy: py, r: 5, fill: hue(cell), stroke: "currentColor" }, svg("title", {}, name)));
  }
  const named = [...cells, ...ues].map(({ name, x, y }) => {
    const [px, py] = at(x, y);
    return { name: name.length > MOST_CHARACTERS ? `${name.slice(0, MOST_CHARACTERS - 1)}…` : name, x: px, y: py };
  });
  const words = labels(named, { left: 0, top: 0, right: width, bottom: height }).flatMap((label, i) => {
    if (label === null) return [];
    const { left, right } = label.box;
    return [svg("text", { x: (left + right) / 2, y: label.y, "text-anchor": "middle", "font-size": FONT, fill: "currentColor" }, named[i]!.name)];
  });
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.replaceChildren(...shapes, ...words);
}

function told(ues: Place[]): string {
  const at = ues.slice(0, 20).map(({ name, x, y, cell }) => `${name} at ${x.toFixed(0)} m east, ${y.toFixed(0)} m north, ${cell === null ? "between cells" : `served by ${cell}`}`);
  return `Map. ${at.join("; ")}`;
}
