// Colours, dashes and markers that distinguish lines, also for readers with red-green colour blindness.

/**
 * The colours of M. Okabe and K. Ito, "Color Universal Design" (2008), without yellow, which is hardly visible on white, and
 * with a grey that is seen on a light and on a dark page in place of black. `test/palette.test.ts` proves that each two
 * differ for deuteranopes and protanopes.
 */
export const COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666"] as const;

/** Dashes of the first round through the colours, the second, and so on. */
const DASHES: readonly (readonly number[])[] = [[], [9, 3], [2, 3], [9, 3, 2, 3]];

/** Shapes of markers; as many as there are colours, so that a colour always has the same one. */
const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "plus", "down"] as const;
export type Shape = (typeof SHAPES)[number];

export interface Marker {
  shape: Shape;
  /** Drawn as an outline: of the second of two cases. */
  hollow?: boolean;
}

/** The colour of failures. */
export const FAILED = "#d55e00";
/** The colour of published values. */
export const PUBLISHED = "#666666";

export function colour(i: number): string {
  return COLOURS[i % COLOURS.length]!;
}

/** The colour of a value between the least (0) and the greatest (1): from blue over grey to orange. */
export function between(share: number): string {
  const [low, high] = [COLOURS[0], COLOURS[4]].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16))) as [number[], number[]];
  return `#${low.map((from, i) => Math.round(from + (high[i]! - from) * share).toString(16).padStart(2, "0")).join("")}`;
}

/** The dash of line `i`, none in the first round. */
export function dashOf(i: number): number[] | undefined {
  const dash = DASHES[Math.floor(i / COLOURS.length) % DASHES.length]!;
  return dash.length === 0 ? undefined : [...dash];
}

export function shapeOf(i: number): Shape {
  return SHAPES[i % SHAPES.length]!;
}

/** The outline of a marker around (x, y), as an SVG path. */
export function markerPath(shape: Shape, x: number, y: number, r = 3.5): string {
  const at = (...points: [number, number][]): string =>
    points.map(([dx, dy], i) => `${i === 0 ? "M" : "L"}${(x + dx * r).toFixed(1)} ${(y + dy * r).toFixed(1)}`).join("");
  switch (shape) {
    case "circle":
      return `M${(x - r).toFixed(1)} ${y.toFixed(1)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
    case "square":
      return `${at([-0.9, -0.9], [0.9, -0.9], [0.9, 0.9], [-0.9, 0.9])}Z`;
    case "triangle":
      return `${at([0, -1.2], [1.1, 0.9], [-1.1, 0.9])}Z`;
    case "down":
      return `${at([0, 1.2], [1.1, -0.9], [-1.1, -0.9])}Z`;
    case "diamond":
      return `${at([0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0])}Z`;
    case "cross":
      return at([-1, -1], [1, 1]) + at([-1, 1], [1, -1]);
    case "plus":
      return at([-1.2, 0], [1.2, 0]) + at([0, -1.2], [0, 1.2]);
  }
}
