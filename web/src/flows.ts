// Plots of all flows together: bytes in flight as a stack, goodput against round-trip time, and boxes of round-trip times.

import { column, seriesOf, type Case, type Series } from "./data";
import { meansPlot, type MeanSeries } from "./means";
import { colour } from "./palette";
import { linePlot, lineOf, type Line, type PlotOptions } from "./plots";
import type { Shown } from "./radio";
import { scatterPlot, type Cloud } from "./scatter";
import { aligned, ellipse, pairs, quantile, stacked, type Points } from "./statistics";

/** Maximum number of flows in a plot; the smallest ones of a stack are one layer. */
const MOST = 14;
/** Maximum number of groups of points, which overlap; more flows than that are grouped by their congestion control. */
const MOST_GROUPS = 7;
const REST_COLOUR = "#8c96a5";
/** Percentiles of a box. */
const BOX = [0.05, 0.25, 0.5, 0.75, 0.95];

/** Flows of a case whose names contain `filter`, with the values of a kind of series. */
function wanted(of: Case, run: number, kind: "goodput" | "samples", filter: string): Series[] {
  const names = of.summary.flows.map((flow) => flow.flow);
  const place = (series: Series): number => names.indexOf(series.name) * 1e6 + (series.conn ?? 0);
  return seriesOf(of, run, kind)
    .filter((series) => series.name.includes(filter))
    .sort((a, b) => place(a) - place(b));
}

/** The bytes in flight of each case's flows, one on top of the other: their sum is the path's. */
export function stackedInFlight(cases: Shown[], run: number, filter: string, options: PlotOptions): (HTMLElement | null)[] {
  return cases.map(({ of, prefix }) => {
    const all = wanted(of, run, "samples", filter).flatMap((series) => lineOf(series, "t", "in_flight_bytes", nameOf(series, of, run), { colour: "" }));
    const sizes = new Map(all.map((line) => [line, line.y.reduce<number>((sum, y) => sum + (y ?? 0), 0)]));
    const flying = all.filter((line) => sizes.get(line)! > 0);
    if (flying.length < 2) return null;
    const largest = flying.length > MOST ? new Set([...flying].sort((a, b) => sizes.get(b)! - sizes.get(a)!).slice(0, MOST - 1)) : new Set(flying);
    const rest = flying.filter((line) => !largest.has(line));
    const own = flying.filter((line) => largest.has(line)).map((line, i): Line => ({ ...line, colour: colour(all.length > MOST ? i : all.indexOf(line)) }));
    return linePlot(`Bytes in flight, stacked${prefix === "" ? "" : `: ${prefix.trim()}`}`, rest.length === 0 ? own : [...own, sumOf(rest)], { ...options, stacked: true }, "the sum of all flows");
  });
}

function sumOf(lines: Line[]): Line {
  const { x, ys } = aligned(lines);
  return { label: `${lines.length} others`, x, y: stacked(ys, () => true).at(-1)!, colour: REST_COLOUR };
}

function nameOf(series: Series, of: Case, run: number): string {
  const copies = seriesOf(of, run, series.kind).filter((other) => other.name === series.name).length;
  return copies > 1 ? `${series.name} #${series.conn}` : series.name;
}

/** Goodput against round-trip time of each flow with all its copies, or of each congestion control; `null` if there is only one copy. */
export function goodputAgainstRtt(cases: Shown[], run: number, filter: string): HTMLElement | null {
  const copies = cases.flatMap(({ of, prefix }) => {
    const samples = wanted(of, run, "samples", filter);
    const controls = new Map(of.summary.flows.map((flow) => [flow.flow, flow.cc]));
    return wanted(of, run, "goodput", filter).flatMap((series) => {
      const state = samples.find((other) => other.name === series.name && other.conn === series.conn);
      const [t, srtt] = [state && column(state, "t"), state && column(state, "srtt_ms")];
      if (t === undefined || srtt === undefined) return [];
      const points = pairs({ t, x: srtt }, { t: column(series, "t") ?? [], y: column(series, "goodput_mbps") ?? [] });
      const cc = controls.get(series.name) ?? null;
      return points.x.length === 0 ? [] : [{ points, flow: `${prefix}${series.name}${cc === null || cc === series.name ? "" : ` (${cc})`}`, control: `${prefix}${cc ?? "unknown control"}` }];
    });
  });
  if (copies.length < 2) return null;
  const byFlow = new Set(copies.map((copy) => copy.flow)).size <= MOST_GROUPS;
  const groups = new Map<string, Points>();
  for (const { points, flow, control } of copies) {
    const group = groups.get(byFlow ? flow : control) ?? { x: [], y: [] };
    groups.set(byFlow ? flow : control, { x: [...group.x, ...points.x], y: [...group.y, ...points.y] });
  }
  const clouds = [...groups].map(([label, points]): Cloud => {
    const outline = ellipse(points);
    return { label, ...points, ...(outline !== null && { outline }) };
  });
  const note = `${byFlow ? "" : "by congestion control; "}means over the windows of the goodput; ellipses cover 95 % of normally distributed points`;
  return scatterPlot("Goodput against RTT", clouds, "Round-trip time, smoothed, ms", "Mbit/s", note);
}

/** Round-trip times of each flow, all copies and runs together, as boxes; `null` if there is only one. */
export function rttBoxes(cases: Shown[], filter: string): HTMLElement | null {
  const boxes = cases.map(({ of }) =>
    seriesOf(of, 0, "rtts").flatMap((series) => {
      if (series.conn !== null || !series.name.includes(filter)) return [];
      const at = BOX.map((q) => quantile(column(series, "x") ?? [], column(series, "share") ?? [], q));
      return at.includes(null) ? [] : [{ name: series.name, at: at as number[] }];
    }),
  );
  const order = cases.flatMap(({ of }) => of.summary.flows.map((flow) => flow.flow));
  const names = [...new Set(order)].filter((name) => boxes.some((own) => own.some((box) => box.name === name))).slice(0, MOST);
  const series = cases.map(({ prefix }, i): MeanSeries => ({
    label: prefix === "" ? "all copies and runs" : prefix.trim(),
    means: boxes[i]!.filter(({ name }) => names.includes(name)).map(({ name, at: [low, from, mean, to, high] }) => ({ x: names.indexOf(name), mean: mean!, ci95: null, around: [low!, from!, to!, high!] })),
  }));
  if (series.reduce((sum, one) => sum + one.means.length, 0) < 2) return null;
  return meansPlot(series, { xLabel: "", yLabel: "RTT, ms", names, bars: true, wide: false, title: "RTT of each flow", note: "5, 25, 50, 75 and 95 %" });
}
