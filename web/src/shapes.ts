// Shapes over a plot: drawn on its canvas and written to an SVG file from the same description.

import type uPlot from "uplot";

/** A path in pixels from the upper left corner of the plotting area, or a text that begins there. */
export type Drawing =
  | { d: string; stroke?: string; fill?: string; width?: number; dash?: readonly number[]; opacity?: number }
  | { text: string; x: number; y: number; fill: string };

/** Draws onto the canvas of `u`, within its plotting area. */
export function drawOn(u: uPlot, drawings: Drawing[]): void {
  const { ctx, bbox } = u;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left - 4 * ratio, bbox.top - 4 * ratio, bbox.width + 8 * ratio, bbox.height + 8 * ratio);
  ctx.clip();
  ctx.translate(bbox.left, bbox.top);
  ctx.scale(ratio, ratio);
  for (const one of drawings) {
    if ("text" in one) {
      ctx.font = "11px system-ui, sans-serif";
      ctx.textAlign = "left";
      ctx.textBaseline = "top";
      ctx.fillStyle = one.fill;
      ctx.fillText(one.text, one.x, one.y);
      continue;
    }
    const path = new Path2D(one.d);
    if (one.fill !== undefined) {
      ctx.globalAlpha = one.opacity ?? 1;
      ctx.fillStyle = one.fill;
      ctx.fill(path);
      ctx.globalAlpha = 1;
    }
    if (one.stroke !== undefined) {
      ctx.strokeStyle = one.stroke;
      ctx.lineWidth = one.width ?? 1;
      ctx.setLineDash([...(one.dash ?? [])]);
      ctx.stroke(path);
    }
  }
  ctx.restore();
}

const SVG = "http://www.w3.org/2000/svg";

/** An SVG element; attributes without a value are left out. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number | undefined>,
  ...children: (Node | string)[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) element.setAttribute(name, typeof value === "number" ? String(Number(value.toFixed(2))) : value);
  }
  element.append(...children);
  return element;
}

/** `one` as an SVG element. */
export function elementOf(one: Drawing): SVGElement {
  if ("text" in one) return svg("text", { x: one.x, y: one.y + 9, fill: one.fill, "font-size": 11 }, one.text);
  return svg("path", {
    d: one.d,
    fill: one.fill ?? "none",
    "fill-opacity": one.fill === undefined ? undefined : one.opacity,
    stroke: one.stroke,
    "stroke-width": one.stroke === undefined ? undefined : (one.width ?? 1),
    "stroke-dasharray": one.dash === undefined || one.dash.length === 0 ? undefined : one.dash.join(" "),
  });
}
