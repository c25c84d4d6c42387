// The section about a campaign: medians with intervals of each combination, differences within blocks, and what failed.

import type { Result } from "./data";
import { h, sortable, type TableColumn } from "./dom";
import { count, number, text } from "./format";

/** A median with its interval, in the measure's unit. */
interface Estimate {
  median: number;
  low: number | null;
  high: number | null;
  tests?: number;
  blocks?: number;
  larger?: number;
  smaller?: number;
}

type Measures = Record<string, Record<string, Estimate>>;

interface Combination {
  cc: string;
  flows: number;
  direction: string;
  interface?: string;
  tests: number;
  measures: Measures;
}

interface Comparison {
  first: string;
  second: string;
  flows: number;
  direction: string;
  interface?: string;
  measures: Measures;
}

/** What a campaign's page says about it, as crates/campaign/src/report.rs writes it. */
export interface Campaign {
  planned: number;
  finished: number;
  method: string;
  /** The least number of tests, or blocks, whose median has an interval. */
  least_tests: number;
  failed: { test: string; attempts: number; reason: string }[];
  combinations: Combination[];
  comparisons: Comparison[];
}

/** The campaign that a result is; `null` of anything else. */
export function campaignOf(result: Result): Campaign | null {
  const scenario = result.meta.scenario as { campaign?: Campaign } | null;
  return (typeof scenario === "object" && scenario !== null && scenario.campaign) || null;
}

/** The measures of the tables, with their headings. */
const SHOWN: [measure: string, head: string][] = [
  ["throughput_mbps", "Throughput, Mbit/s"],
  ["flow_rtt_ms", "RTT, ms"],
  ["flow_rtt_p95_ms", "RTT, 95th percentile, ms"],
  ["flow_retransmitted", "Retransmitted, share"],
  ["jain", "Fairness (Jain)"],
];

/** A median with its interval, which few tests do not have. */
export function shownEstimate(of: Estimate | undefined, least: number): string {
  if (of === undefined) return "–";
  const enough = (of.tests ?? of.blocks ?? 0) >= least;
  return of.low === null || of.high === null || !enough ? number(of.median) : `${number(of.median)} [${number(of.low)}, ${number(of.high)}]`;
}

interface Line<T> {
  of: T;
  /** Of the flows with this name. */
  name: string;
  measures: Record<string, Estimate>;
}

const linesOf = <T extends { measures: Measures }>(all: T[]): Line<T>[] => all.flatMap((of) => Object.entries(of.measures).map(([name, measures]) => ({ of, name, measures })));

function columns<T extends { flows: number; interface?: string }>(first: TableColumn<Line<T>>[], lines: Line<T>[], least: number): TableColumn<Line<T>>[] {
  const measured = SHOWN.filter(([measure]) => lines.some((line) => line.measures[measure] !== undefined));
  return [
    ...first,
    { head: "Flows", value: ({ of }) => of.flows },
    { head: "Direction", value: ({ name }) => name },
    ...(lines.some(({ of }) => of.interface !== undefined) ? [{ head: "Interface", value: ({ of }: Line<T>) => of.interface ?? "–" }] : []),
    ...measured.map(([measure, head]): TableColumn<Line<T>> => ({ head, value: ({ measures }) => measures[measure]?.median ?? null, text: ({ measures }) => shownEstimate(measures[measure], least) })),
  ];
}

/** The section, if the result is a campaign. */
export function campaign(result: Result): HTMLElement[] {
  const of = campaignOf(result);
  if (of === null) return [];
  const [lines, differences] = [linesOf(of.combinations), linesOf(of.comparisons)];
  const few = of.combinations.some((one) => one.tests > 0 && one.tests < of.least_tests);
  const medians = sortable(columns<Combination>([{ head: "Congestion control", value: ({ of }) => of.cc }, { head: "Tests", value: ({ of }) => of.tests }], lines, of.least_tests), lines, { title: "Campaign" });
  const within = columns<Comparison>(
    [
      { head: "Difference", value: ({ of }) => `${of.second} − ${of.first}` },
      { head: "Blocks", value: ({ measures }) => Math.max(0, ...Object.values(measures).map((one) => one.blocks ?? 0)) },
    ],
    differences,
    of.least_tests,
  );
  return [
    h(
      "section",
      { id: "campaign" },
      h("h2", {}, "Campaign"),
      h("p", {}, `${count(of.finished)} of ${count(of.planned)} tests have finished. Medians over tests, with 95 % intervals in brackets${few ? `; fewer than ${of.least_tests} tests have none` : ""}.`),
      medians,
      differences.length > 0 && h("h3", { class: "name" }, "Differences within blocks"),
      differences.length > 0 && sortable(within, differences, { title: "Differences within blocks" }),
      of.failed.length > 0 &&
        h("details", { open: "" }, h("summary", {}, `Tests that failed (${count(of.failed.length)})`), h("ul", {}, ...of.failed.map((one) => h("li", {}, `${one.test}, ${count(one.attempts)} ${one.attempts === 1 ? "attempt" : "attempts"}: ${text(one.reason)}`)))),
      h("p", { class: "note" }, `${of.method.charAt(0).toUpperCase()}${of.method.slice(1)}. Below, each combination is a case and each block a run: means there are over blocks.`),
    ),
  ];
}
