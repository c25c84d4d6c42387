// The comparison of cases: plots of metrics over a varied key, distributions, and a table of all cases.

import { datagramFlows, seriesOf, valuesLabel, type Case, type FlowSummary, type Kind, type PointSummary, type Series, type Stat } from "./data";
import type { Choice } from "./location";
import { h, select, sortable, type TableColumn } from "./dom";
import { number, percent, rounded, text } from "./format";
import { FLOW_FIGURES, LINK_FIGURES, POINT_FIGURES, UE_FIGURES, type Figure } from "./generated/figures";
import { meansPlot, type MeanSeries } from "./means";
import { dashOf, colour, shapeOf, COLOURS } from "./palette";
import { distributionLine, distributionOf, linePlot, type Line, type Look } from "./plots";

/** Maximum number of lines in a chart, so that readers can tell them apart. */
const MOST_SERIES = COLOURS.length * 2;
/** Maximum number of distributions in a plot, so that their lines do not hide each other. */
const MOST_DISTRIBUTIONS = 28;
/** Flows whose completion times get a column. */
const MOST_COLUMNS = 3;

type Of = "all" | "flow" | "link" | "ue";

/** A figure that can be plotted over the cases. */
interface Metric {
  of: Of;
  name: string;
  unit: string;
  scale: number;
  /** The values of a point, each with the name of the flow, link or UE. */
  stats: (point: PointSummary) => [who: string, stat: Stat | null][];
}

/** Returns the metrics of figures that are plotted, of all `subjects` of a point. */
function metrics<T>(of: Of, figures: readonly Figure<T>[], subjects: (point: PointSummary) => [who: string, one: T][]): Metric[] {
  return figures.flatMap(({ label: name, unit, scale, of: value }) => {
    if (name === "") return [];
    return [{ of, name, unit, scale, stats: (point) => subjects(point).map(([who, one]) => [who, value(one)]) }];
  });
}

const METRICS: Metric[] = [
  ...metrics("all", POINT_FIGURES, (point) => [["", point]]),
  ...metrics("flow", FLOW_FIGURES, (point) => point.flows.map((flow) => [flow.flow, flow])),
  ...metrics("link", LINK_FIGURES, (point) => point.links.map((link) => [link.link, link])),
  ...metrics("ue", UE_FIGURES, (point) => point.ues.map((ue) => [ue.ue, ue])),
];

const GROUPS: Record<Of, string> = { all: "All flows together", flow: "Each flow", link: "Each link", ue: "Each UE" };

const keyOf = (metric: Metric): string => `${metric.of}:${metric.name}`;

/** The reader's choices in one comparison, and how to change them. */
export interface Chooser {
  choice: () => Choice;
  choose: (change: Partial<Choice>) => void;
  /** Shows a case below. */
  pick: (one: Case) => void;
}

/** The metrics shown first: goodput, and completion times if any were measured, else the delay, preferably of datagrams. */
function usualMetrics(cases: Case[]): readonly [string, string] {
  const transfers = cases.some((one) => one.summary.flows.some((flow) => flow.completion_p50_s !== null));
  const datagrams = datagramFlows(cases, 1).length > 0;
  const delay = transfers ? "flow:Completion time, median" : datagrams ? "flow:One-way delay, 95th percentile" : "all:RTT, 95th percentile";
  return ["all:Goodput, sum of the flows", delay];
}

/** A number with the unit that follows it, as in `20ms`. */
function quantity(value: unknown): { x: number; unit: string } | null {
  if (typeof value === "number") return { x: value, unit: "" };
  const match = typeof value === "string" ? /^([\d.]+(?:e-?\d+)?)\s*([a-z/%]*)$/i.exec(value.trim()) : null;
  const x = Number(match?.[1]);
  return match === null || !Number.isFinite(x) ? null : { x, unit: match[2] ?? "" };
}

/** Returns the keys whose values differ between cases, in order of appearance. */
function variedKeys(cases: Case[]): string[] {
  const keys = [...new Set(cases.flatMap((one) => Object.keys(one.values)))];
  return keys.filter((key) => new Set(cases.map((one) => text(one.values[key] ?? null))).size > 1);
}

export function comparison(cases: Case[], title: string, chooser: Chooser): HTMLElement {
  const usual = usualMetrics(cases);
  const keys = variedKeys(cases);
  const numeric = (key: string): boolean => {
    const all = cases.map((one) => quantity(one.values[key]));
    return all.every((q) => q !== null && q.unit === all[0]!.unit);
  };
  /** Returns whether the numbers would crowd on a linear axis but include zero, which a logarithmic axis cannot show. */
  const uneven = (key: string): boolean => {
    const all = cases.map((one) => quantity(one.values[key])!.x);
    const positive = all.filter((x) => x > 0);
    return Math.min(...all) <= 0 && positive.length > 0 && Math.max(...positive) / Math.min(...positive) >= 20;
  };
  const varied = [...keys].sort((a, b) => Number(numeric(b)) - Number(numeric(a)));
  const along = (): string => (varied.includes(chooser.choice().along) ? chooser.choice().along : (varied[0] ?? ""));
  const metricAt = (which: number): Metric => {
    const key = chooser.choice().metrics[which];
    return METRICS.find((metric) => keyOf(metric) === key) ?? METRICS.find((metric) => keyOf(metric) === usual[which])!;
  };
  const charts = usual.map(() => h("div"));
  const section = h("section", { class: "comparison" }, h("h2", {}, title));
  const measured = (m: Metric): boolean => cases.some(({ summary }) => m.stats(summary).some(([, stat]) => stat !== null));

  function draw(which: number): void {
    const chart = charts[which]!;
    const metric = metricAt(which);
    const key = along();
    const byLabel = new Map<string, MeanSeries>();
    const names = key === "" || (numeric(key) && !uneven(key)) ? undefined : [...new Set(cases.map((one) => valueOf(one, key)))];
    const unit = names === undefined ? (quantity(cases[0]?.values[key])?.unit ?? "") : "";
    cases.forEach((one, i) => {
      const x = key === "" ? i : (names?.indexOf(valueOf(one, key)) ?? quantity(one.values[key])!.x);
      const others = varied.filter((other) => other !== key).map((other) => valueOf(one, other));
      for (const [who, stat] of metric.stats(one.summary)) {
        if (stat === null) continue;
        const label = [who, ...others].filter((part) => part !== "").join(", ") || metric.name;
        const { scale } = metric;
        const series = byLabel.get(label) ?? { label, means: [] };
        byLabel.set(label, series);
        series.means.push({ x, mean: stat.mean * scale, ci95: stat.ci95 === null ? null : stat.ci95 * scale });
      }
    });
    const all = [...byLabel.values()];
    const ticks = key === "" ? cases.map((one) => one.label) : names;
    const plot = meansPlot(all.slice(0, MOST_SERIES), {
      xLabel: unit === "" ? key : `${key} (${unit})`,
      yLabel: metric.unit === "" ? metric.name : `${metric.name}, ${metric.unit}`,
      ...(ticks !== undefined && { names: ticks }),
      bars: key === "" || !numeric(key),
      wide: false,
      title: metric.of === "all" ? metric.name : `${metric.name}, ${GROUPS[metric.of].toLowerCase()}`,
      heading: varied.filter((other) => other !== key).join(", "),
    });
    chart.replaceChildren(
      ...[plot, all.length > MOST_SERIES ? h("p", { class: "note" }, `The first ${MOST_SERIES} of ${all.length} are drawn.`) : ""],
    );
  }

  const offered = METRICS.flatMap((m) => (measured(m) ? [[keyOf(m), m.name, GROUPS[m.of]] as const] : []));
  const shown = charts.map((chart, which) =>
    h(
      "div",
      {},
      select("Show", offered, keyOf(metricAt(which)), (value) => {
        const [first, second] = chooser.choice().metrics;
        chooser.choose({ metrics: which === 0 ? [value, second] : [first, value] });
        draw(which);
      }),
      chart,
    ),
  );
  const over = select("Over", varied.map((key) => [key, key] as const), along(), (value) => {
    chooser.choose({ along: value });
    charts.forEach((_, which) => draw(which));
  });
  charts.forEach((_, which) => draw(which));
  const note = "Means over the runs; bars are 95 % confidence intervals (Student's t). Click a row to show its case below.";
  section.append(
    ...(varied.length > 1 ? [h("div", { class: "controls" }, over)] : []),
    h("div", { class: "grid" }, ...shown),
    ...distributions(cases, keys, chooser),
    h("p", { class: "note" }, note),
    caseTable(cases, keys, chooser.pick),
  );
  return section;
}

function valueOf(one: Case, key: string): string {
  return one.values[key] === undefined ? "–" : text(one.values[key]);
}

/** A quantity whose distribution can be drawn for all cases. */
interface Distribution {
  name: string;
  x: string;
  y: string;
  note: string;
  lines: (one: Case, label: string, look: Look) => Line[];
}

const merged = (one: Case, kind: Kind): Series[] => seriesOf(one, 0, kind).filter((series) => series.conn === null);

/** Lines of the flows of a case, named after the flow if there are several. */
function perFlow(kind: Kind): Distribution["lines"] {
  return (one, label, look) => {
    const all = merged(one, kind);
    return all.flatMap((series) => distributionLine(series, all.length > 1 ? `${series.name}: ${label}` : label, look));
  };
}

const DISTRIBUTIONS: Distribution[] = [
  { name: "Completion time of transfers", x: "Completion time, s", y: "Share of transfers", note: "all runs together; transfers started in parentheses", lines: perFlow("transfers") },
  { name: "One-way delay", x: "One-way delay of data packets, ms", y: "Share of packets", note: "all copies and runs together", lines: perFlow("owds") },
  { name: "Round-trip time", x: "RTT, ms", y: "Share of samples", note: "all copies and runs together", lines: perFlow("rtts") },
  {
    name: "Goodput",
    x: "Goodput, Mbit/s",
    y: "Share of copies and runs",
    note: "one value for each copy of a flow and run",
    lines: (one, label, look) => {
      const rows = one.result.flows.filter((row) => row.point === one.point);
      const flows = [...new Set(rows.map((row) => text(row["flow"])))];
      return flows.flatMap((flow) => {
        const values = rows.filter((row) => row["flow"] === flow).map((row) => row["goodput_mbps"] as number);
        return distributionOf(values, flows.length > 1 ? `${flow}: ${label}` : label, look);
      });
    },
  },
];

/** Distributions of all cases in one plot. */
function distributions(cases: Case[], keys: string[], chooser: Chooser): HTMLElement[] {
  const labelled = (one: Case): string => (keys.length === 1 ? valueOf(one, keys[0]!) : keys.length === 0 ? one.label : valuesLabel(one.values));
  const usual: Look = { colour: "" };
  const there = DISTRIBUTIONS.filter((of) => cases.some((one) => of.lines(one, "", usual).length > 0));
  // A single value is not a distribution.
  const offered = there.filter((of) => of.name !== "Goodput" || cases.some((one) => of.lines(one, "", usual).some((line) => line.x.length > 3)));
  if (offered.length === 0) return [];
  const host = h("div");
  const shown = (): Distribution => offered.find((one) => one.name === chooser.choice().distribution) ?? offered[0]!;
  const draw = (): void => {
    const of = shown();
    const all = cases.flatMap((one) => of.lines(one, labelled(one), usual));
    const lines = all.slice(0, MOST_DISTRIBUTIONS).map((line, i): Line => ({ ...line, colour: colour(i), marker: { shape: shapeOf(i) }, ...(dashOf(i) !== undefined && { dash: dashOf(i)! }) }));
    const note = [of.note, keys.length === 1 ? `by ${keys[0]!}` : "", all.length > lines.length ? `the first ${lines.length} of ${all.length}` : ""];
    const figure = linePlot(`${of.name}: distribution at each point`, lines, { x: of.x, y: of.y, yMax: 1 }, note.filter((part) => part !== "").join("; "));
    figure?.classList.add("wide");
    host.replaceChildren(figure ?? "");
  };
  draw();
  const selector = select("Distribution of", offered.map(({ name }) => [name, name] as const), shown().name, (distribution) => {
    chooser.choose({ distribution });
    draw();
  });
  return [h("div", { class: "controls", style: "margin-top: 14px" }, offered.length > 1 && selector), host];
}

function caseTable(cases: Case[], keys: string[], choose: (one: Case) => void): HTMLElement {
  const figure = (head: string, of: (p: PointSummary) => Stat | null, show = number): TableColumn<Case> => ({
    head,
    value: (one) => of(one.summary)?.mean ?? null,
    text: (one) => withInterval(of(one.summary), show),
  });
  const measured = (columns: TableColumn<Case>[]): TableColumn<Case>[] => columns.filter((column) => cases.some((one) => column.value(one) !== null));
  const withTransfers = cases.flatMap((one) => one.summary.flows.filter((flow) => flow.completion_p50_s !== null).map((flow) => flow.flow));
  const flows = [...new Set(withTransfers)].slice(0, MOST_COLUMNS);
  return sortable<Case>(
    [
      ...(keys.length > 0 ? keys : ["case"]).map((key): TableColumn<Case> => ({
        head: key,
        value: (one) => (keys.length === 0 ? one.label : (quantity(one.values[key])?.x ?? valueOf(one, key))),
        text: (one) => (keys.length === 0 ? one.label : valueOf(one, key)),
      })),
      figure("Goodput, Mbit/s", (p) => p.goodput_mbps),
      ...measured([
        figure("RTT p50, ms", (p) => p.rtt_p50_ms),
        figure("RTT p95, ms", (p) => p.rtt_p95_ms),
        figure("Retransmissions", (p) => p.retransmission_rate, percent),
      ]),
      ...(cases.some((one) => one.summary.jain !== null) ? [figure("Jain", (p) => p.jain)] : []),
      ...datagramFlows(cases, MOST_COLUMNS).flatMap((name) => {
        const own = (p: PointSummary): FlowSummary | undefined => p.flows.find((one) => one.flow === name);
        return [
          figure(`${name}: one-way p95, ms`, (p) => own(p)?.owd_p95_ms ?? null),
          figure(`${name}: lost`, (p) => own(p)?.loss ?? null, percent),
        ];
      }),
      ...flows.map((flow) => figure(`${flow}: completion p50, s`, (p) => p.flows.find((one) => one.flow === flow)?.completion_p50_s ?? null)),
    ],
    cases,
    { onRow: choose, title: "Points" },
  );
}

export function withInterval(stat: Stat | null, show: (x: number) => string): string {
  if (stat === null) return "–";
  if (stat.ci95 === null) return show(stat.mean);
  const [mean, half, unit] = rounded(stat.mean, stat.ci95, show === percent);
  return `${mean} ± ${half}${unit}`;
}
