// The data that the page holds, as crates/record/src/report.rs writes it, and how the viewer looks it up.

import { text } from "./format";

export interface Stat {
  n: number;
  mean: number;
  ci95: number | null;
  min: number;
  max: number;
}

export type Limited = Record<"app" | "cwnd" | "rwnd" | "pacing" | "other", Stat>;

export interface FlowSummary {
  flow: string;
  transport: string;
  cc: string;
  from: string;
  to: string;
  copies: Stat;
  goodput_mbps: Stat | null;
  throughput_mbps: Stat | null;
  rtt_p50_ms: Stat | null;
  rtt_p95_ms: Stat | null;
  owd_p50_ms: Stat | null;
  owd_p95_ms: Stat | null;
  /** Share of the packets sent that were lost; not of TCP. */
  loss: Stat | null;
  transfers: Stat | null;
  transfers_finished: Stat | null;
  completion_s: Stat | null;
  completion_p50_s: Stat | null;
  completion_p95_s: Stat | null;
  retransmission_rate: Stat | null;
  limited: Limited | null;
}

export interface LinkSummary {
  link: string;
  utilisation: Stat | null;
  drop_rate: Stat | null;
  mark_rate: Stat | null;
  sojourn_p50_ms: Stat | null;
  sojourn_p95_ms: Stat | null;
  sojourn_p99_ms: Stat | null;
}

export interface UeDirection {
  scheduled_mbps: Stat | null;
  block_error_rate: Stat | null;
  utilisation: Stat | null;
  core_ms: Stat | null;
  queue_ms: Stat | null;
  air_ms: Stat | null;
  harq_ms: Stat | null;
  rlc_ms: Stat | null;
}

export interface UeSummary {
  ue: string;
  downlink: UeDirection;
  uplink: UeDirection;
  handovers: Stat | null;
  handover_failures: Stat | null;
  link_failures: Stat | null;
}

export interface PointSummary {
  point: number;
  values: Record<string, unknown>;
  /** Whether all runs came out the same to the last digit, so that they are one run, told several times. */
  identical_runs?: boolean;
  goodput_mbps: Stat | null;
  rtt_p50_ms: Stat | null;
  rtt_p95_ms: Stat | null;
  retransmission_rate: Stat | null;
  jain: Stat | null;
  flows: FlowSummary[];
  links: LinkSummary[];
  ues: UeSummary[];
}

/** A row of the table of flows, links, UEs or mobility. */
export type Row = Record<string, string | number | null | number[]> & { point: number; run: number };

export type Column = (number | null)[];

/**
 * Columns over a common first one: `t` or, of a distribution, `x`. Distributions whose `conn` is null, and transfers, are
 * those of all copies and runs together, under run 0. The column `cell` of a UE numbers its `cells`.
 */
export interface Series {
  point: number;
  run: number;
  kind: "goodput" | "samples" | "rtts" | "owds" | "queue" | "transfers" | "radio" | "cell";
  name: string;
  conn: number | null;
  [column: string]: Column | number | string | string[] | null;
}

/** How well an emulation kept to the time. */
export interface Lateness {
  p50_ms: number;
  p99_ms: number;
  max_ms: number;
  bound_ms: number;
  packets: number;
  missed: number;
  cpu_share: number;
  realtime: boolean;
  valid: boolean;
}

export interface Result {
  meta: {
    title: string;
    version: string;
    scenario: unknown;
    points: Record<string, unknown>[];
    runs: number;
    seed: number;
  };
  timing: {
    wall_s: number;
    cpu_s: number;
    simulated_s: number;
    events: number;
    packets: number;
    threads: number;
    lateness?: Lateness;
  };
  summary: { points: PointSummary[] };
  flows: Row[];
  links: Row[];
  ues: Row[];
  mobility: Row[];
  series: Series[];
}

/** A published figure beside what was measured. */
export interface ReproductionRow {
  paper: string;
  experiment: string;
  variant: string;
  parameter: string;
  metric: string;
  unit: string;
  published: number | string | null;
  published_ci: number | null;
  measured: number | string | null;
  ci: number | null;
  floor?: number | null;
  verdict: string;
  why?: string | null;
}

export interface DrawnLine {
  label: string;
  x: number[];
  y: (number | null)[];
  ci: (number | null)[];
  around: ([number, number, number, number] | null)[];
  published: boolean;
}

/** A figure of a reproduction. */
export interface Drawn {
  paper: string;
  experiment: string;
  kind: "lines" | "steps" | "means" | "boxes" | "map";
  title: string;
  x: string;
  y: string;
  down: string;
  names: string[];
  lines: DrawnLine[];
}

export interface Data {
  shown: {
    points_per_series: number;
    series: number;
    series_of: number;
    rows: number;
    rows_of: number;
    summaries: number;
    summaries_of: number;
    max_bytes: number;
  };
  reproduction: ReproductionRow[];
  figures: Drawn[];
  results: Result[];
}

/** One point of one result: what a reader picks and compares. */
export interface Case {
  result: Result;
  point: number;
  label: string;
  values: Record<string, unknown>;
  summary: PointSummary;
}

/** What a result is called: its title or, without one, what was run. */
export function titleOf(result: Result): string {
  if (result.meta.title.trim() !== "") return result.meta.title;
  const flows = (result.summary.points[0]?.flows ?? []).map((flow) => flow.flow);
  const named = flows.length === 0 ? "no flow" : flows.length <= 3 ? flows.join(", ") : `${flows.length} flows`;
  return `${result.timing.lateness === undefined ? "Simulation" : "Emulation"}: ${named}`;
}

/** The results' titles, with a number where several have the same. */
export function namesOf(data: Data): string[] {
  const titles = data.results.map(titleOf);
  return titles.map((title, i) => (titles.indexOf(title) === titles.lastIndexOf(title) ? title : `${title} (${i + 1})`));
}

/** All cases, results first. With several results, which one it is counts as a varied value. */
export function casesOf(data: Data): Case[] {
  const names = namesOf(data);
  return data.results.flatMap((result, i) =>
    result.summary.points.map((summary) => {
      const parts = [data.results.length > 1 ? names[i]! : "", valuesLabel(summary.values)].filter((x) => x !== "");
      const values = data.results.length > 1 ? { result: names[i]!, ...summary.values } : summary.values;
      return { result, point: summary.point, label: parts.join(": ") || titleOf(result), values, summary };
    }),
  );
}

/** `key = value` of each, for a person. */
export function valuesLabel(values: Record<string, unknown>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key} = ${text(value)}`)
    .join(", ");
}

export function rowsOf(rows: Row[], point: number, run: number): Row[] {
  return rows.filter((row) => row.point === point && row.run === run);
}

export function seriesOf(of: Case, run: number, kind: Series["kind"]): Series[] {
  return of.result.series.filter((series) => series.point === of.point && series.run === run && series.kind === kind);
}

/** Whether a flow's sender told of itself: one of the simulator's or the kernel's TCP. Of others only packets are seen. */
export function told(flow: FlowSummary): boolean {
  return flow.cc !== "";
}

/** The flows without acknowledgements, of which delay and loss are what counts; the first ones. */
export function datagramFlows(cases: Case[], most: number): string[] {
  const names = cases.flatMap((one) => one.summary.flows.filter((flow) => flow.transport === "udp").map((flow) => flow.flow));
  return [...new Set(names)].slice(0, most);
}

export function flowOf(of: Case, name: string): FlowSummary | undefined {
  return of.summary.flows.find((one) => one.flow === name);
}

export function column(series: Series, name: string): Column | undefined {
  const values = series[name];
  return Array.isArray(values) ? (values as Column) : undefined;
}
