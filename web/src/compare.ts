// The comparison of all cases: one metric over what was varied, and a table of everything.

import type { Case, FlowSummary, LinkSummary, PointSummary, Stat } from "./data";
import { h, select, sortable, type TableColumn } from "./dom";
import { number, percent, text } from "./format";
import { drawPlots, meansPlot, type MeanSeries } from "./plots";

/** Lines of a chart that a person can tell apart. */
const MOST_SERIES = 10;

type Of = "all" | "flow" | "link";

interface Metric {
  of: Of;
  name: string;
  axis: string;
  scale?: number;
  all?: (point: PointSummary) => Stat | null;
  flow?: (flow: FlowSummary) => Stat | null;
  link?: (link: LinkSummary) => Stat | null;
}

const METRICS: Metric[] = [
  { of: "all", name: "Goodput, sum of the flows", axis: "Mbit/s", all: (p) => p.goodput_mbps },
  { of: "all", name: "RTT, median", axis: "ms", all: (p) => p.rtt_p50_ms },
  { of: "all", name: "RTT, 95th percentile", axis: "ms", all: (p) => p.rtt_p95_ms },
  { of: "all", name: "Retransmissions", axis: "%", scale: 100, all: (p) => p.retransmission_rate },
  { of: "all", name: "Jain's fairness index", axis: "index", all: (p) => p.jain },
  { of: "flow", name: "Goodput", axis: "Mbit/s", flow: (f) => f.goodput_mbps },
  { of: "flow", name: "Throughput", axis: "Mbit/s", flow: (f) => f.throughput_mbps },
  { of: "flow", name: "RTT, median", axis: "ms", flow: (f) => f.rtt_p50_ms },
  { of: "flow", name: "RTT, 95th percentile", axis: "ms", flow: (f) => f.rtt_p95_ms },
  { of: "flow", name: "Completion time", axis: "s", flow: (f) => f.completion_s },
  { of: "flow", name: "Retransmissions", axis: "%", scale: 100, flow: (f) => f.retransmission_rate },
  { of: "link", name: "Utilisation", axis: "%", scale: 100, link: (l) => l.utilisation },
  { of: "link", name: "Drops", axis: "%", scale: 100, link: (l) => l.drop_rate },
  { of: "link", name: "Queueing delay, median", axis: "ms", link: (l) => l.sojourn_p50_ms },
  { of: "link", name: "Queueing delay, 95th percentile", axis: "ms", link: (l) => l.sojourn_p95_ms },
];

const GROUPS: Record<Of, string> = { all: "All flows together", flow: "Each flow", link: "Each link" };

/** What the reader chose to see; kept while the page is drawn anew. */
const choice: { metric: number; along: string | null } = { metric: 0, along: null };

/** A number with the unit that follows it, as in `20ms`. */
function quantity(value: unknown): { x: number; unit: string } | null {
  if (typeof value === "number") return { x: value, unit: "" };
  const match = typeof value === "string" ? /^([\d.]+(?:e-?\d+)?)\s*([a-z/%]*)$/i.exec(value.trim()) : null;
  const x = Number(match?.[1]);
  return match === null || !Number.isFinite(x) ? null : { x, unit: match[2] ?? "" };
}

/** The keys that differ between cases, in the order in which they come. */
function variedKeys(cases: Case[]): string[] {
  const keys = [...new Set(cases.flatMap((one) => Object.keys(one.values)))];
  return keys.filter((key) => new Set(cases.map((one) => text(one.values[key] ?? null))).size > 1);
}

export function comparison(cases: Case[], choose: (one: Case) => void): HTMLElement {
  const keys = variedKeys(cases);
  const numeric = (key: string): boolean => {
    const all = cases.map((one) => quantity(one.values[key]));
    return all.every((q) => q !== null && q.unit === all[0]!.unit);
  };
  /** Whether the numbers would crowd on a line and cannot go on a logarithmic one, because one is zero. */
  const uneven = (key: string): boolean => {
    const all = cases.map((one) => quantity(one.values[key])!.x);
    const positive = all.filter((x) => x > 0);
    return Math.min(...all) <= 0 && positive.length > 0 && Math.max(...positive) / Math.min(...positive) >= 20;
  };
  const varied = [...keys].sort((a, b) => Number(numeric(b)) - Number(numeric(a)));
  const chart = h("div");
  const section = h("section", {}, h("h2", {}, "Comparison"));

  function draw(): void {
    const metric = METRICS[choice.metric]!;
    const along = choice.along ?? varied[0] ?? "";
    const byLabel = new Map<string, MeanSeries>();
    const names = along === "" || (numeric(along) && !uneven(along)) ? undefined : [...new Set(cases.map((one) => text(one.values[along] ?? null)))];
    const unit = names === undefined ? (quantity(cases[0]?.values[along])?.unit ?? "") : "";
    cases.forEach((one, i) => {
      const x = along === "" ? i : (names?.indexOf(text(one.values[along] ?? null)) ?? quantity(one.values[along])!.x);
      const others = varied.filter((key) => key !== along).map((key) => `${key} = ${text(one.values[key] ?? null)}`);
      const add = (who: string, stat: Stat | null): void => {
        if (stat === null) return;
        const label = [who, ...others].filter((part) => part !== "").join(", ") || metric.name;
        const scale = metric.scale ?? 1;
        const series = byLabel.get(label) ?? { label, means: [] };
        byLabel.set(label, series);
        series.means.push({ x, mean: stat.mean * scale, ci95: stat.ci95 === null ? null : stat.ci95 * scale });
      };
      if (metric.all !== undefined) add("", metric.all(one.summary));
      for (const flow of one.summary.flows) if (metric.flow !== undefined) add(flow.flow, metric.flow(flow));
      for (const link of one.summary.links) if (metric.link !== undefined) add(link.link, metric.link(link));
    });
    const all = [...byLabel.values()];
    const plot = meansPlot(
      all.slice(0, MOST_SERIES),
      unit === "" ? along : `${along} (${unit})`,
      metric.axis,
      along === "" ? cases.map((one) => one.label) : names,
      along === "" || !numeric(along),
    );
    chart.replaceChildren(
      ...[plot, all.length > MOST_SERIES ? h("p", { class: "note" }, `The first ${MOST_SERIES} of ${all.length} are drawn.`) : ""],
    );
    if (chart.isConnected) drawPlots();
  }

  const controls = h(
    "div",
    { class: "controls" },
    select("Show", METRICS.map((m, i) => [String(i), m.name, GROUPS[m.of]] as const), String(choice.metric), (value) => {
      choice.metric = Number(value);
      draw();
    }),
    varied.length > 1 &&
      select("over", varied.map((key) => [key, key] as const), choice.along ?? varied[0]!, (value) => {
        choice.along = value;
        draw();
      }),
  );
  draw();
  const note = "Means over the runs; bars are 95 % confidence intervals (Student's t). A click on a row shows that case below.";
  section.append(controls, chart, h("p", { class: "note" }, note), caseTable(cases, keys, choose));
  return section;
}

function caseTable(cases: Case[], keys: string[], choose: (one: Case) => void): HTMLElement {
  const figure = (head: string, of: (p: PointSummary) => Stat | null, show = number): TableColumn<Case> => ({
    head,
    value: (one) => of(one.summary)?.mean ?? null,
    text: (one) => withInterval(of(one.summary), show),
  });
  return sortable<Case>(
    [
      ...(keys.length > 0 ? keys : ["case"]).map((key): TableColumn<Case> => ({
        head: key,
        value: (one) => (keys.length === 0 ? one.label : (quantity(one.values[key])?.x ?? text(one.values[key] ?? null))),
        text: (one) => (keys.length === 0 ? one.label : text(one.values[key] ?? null)),
      })),
      figure("Goodput, Mbit/s", (p) => p.goodput_mbps),
      figure("RTT p50, ms", (p) => p.rtt_p50_ms),
      figure("RTT p95, ms", (p) => p.rtt_p95_ms),
      figure("Retransmissions", (p) => p.retransmission_rate, percent),
      figure("Jain", (p) => p.jain),
    ],
    cases,
    choose,
  );
}

export function withInterval(stat: Stat | null, show: (x: number) => string): string {
  if (stat === null) return "–";
  return stat.ci95 === null ? show(stat.mean) : `${show(stat.mean)} ± ${interval(stat, show)}`;
}

/** Half the confidence interval with one more decimal than the mean, so that the two can be read together. */
export function interval(stat: Stat, show: (x: number) => string): string {
  const ci95 = (stat.ci95 ?? 0) * (show === percent ? 100 : 1);
  const decimals = /\.(\d+)/.exec(show(stat.mean))?.[1]?.length ?? 0;
  return ci95 === 0 ? "0" : ci95.toFixed(Math.min(decimals + 1, 6));
}
