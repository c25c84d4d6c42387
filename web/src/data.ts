// The data that the page holds, as crates/record/src/report.rs writes it, and how the viewer looks it up.

import { text } from "./format";
import type { Event, FlowSummary, Kind, Live, PointSummary, Result, Series, Shown } from "./generated/report";
import type { Drawn, Row as PublishedRow } from "./generated/reproduction";

export type { Controls, Event, Gone, Live, Place, Places, Progress, FlowSummary, Kind, Lateness, Limited, LinkSummary, PointSummary, Result, Series, Shown, Stat, UeDirection, UeSummary } from "./generated/report";

/** A row of any of the tables: flows, links, UEs or mobility. */
export type Row = Record<string, string | number | null> & { point: number; run: number };

export type Column = (number | null)[];

export interface Data {
  /** Of a page that follows a run: its state, what happened, and the name of the last batch. */
  live?: Live;
  events?: Event[];
  last?: string;
  shown: Shown;
  reproduction: PublishedRow[];
  figures: Drawn[];
  results: Result[];
}

/** A point of a result: the unit that readers pick and compare. */
export interface Case {
  result: Result;
  point: number;
  label: string;
  values: Record<string, unknown>;
  summary: PointSummary;
}

/** Returns the title of a result or, without one, its kind and flows. */
export function titleOf(result: Result): string {
  if (result.meta.title.trim() !== "") return result.meta.title;
  const flows = (result.summary.points[0]?.flows ?? []).map((flow) => flow.flow);
  const named = flows.length === 0 ? "no flow" : flows.length <= 3 ? flows.join(", ") : `${flows.length} flows`;
  return `${result.timing.lateness === undefined ? "Simulation" : "Emulation"}: ${named}`;
}

/** The results' titles; those of the same title have what differs between them, or a number. */
export function namesOf(data: Data): string[] {
  const titles = data.results.map(titleOf);
  const names = titles.map((title, i) => {
    const same = data.results.filter((_, other) => titles[other] === title);
    return same.length === 1 ? title : [title, difference(data.results[i]!, same)].filter((part) => part !== "").join(": ");
  });
  return names.map((name, i) => (names.indexOf(name) === names.lastIndexOf(name) ? name : `${name} (${names.slice(0, i + 1).filter((other) => other === name).length})`));
}

/** Differences that a name tells at most. */
const MOST_DIFFERENCES = 2;

/** What a result's scenario has that others of the same title have not: the values of a few keys, or nothing. */
function difference(result: Result, same: Result[]): string {
  const all = same.map(({ meta }) => new Map([...leaves(meta.scenario), ["seed", text(meta.seed)], ["runs", text(meta.runs)], ["version", text(meta.version)]]));
  const own = all[same.indexOf(result)]!;
  const differ = [...new Set(all.flatMap((leaves) => [...leaves.keys()]))].filter((key) => new Set(all.map((leaves) => leaves.get(key))).size > 1);
  // A key within another one, such as the seed of the scenario, is told once.
  const keys = differ.filter((key) => !differ.some((other) => other !== key && key.endsWith(`.${other}`)));
  if (keys.length > MOST_DIFFERENCES) return "";
  return keys.map((key) => `${key.split(".").at(-1)!} = ${own.get(key) ?? "–"}`).join(", ");
}

/** The values of a scenario by their paths. */
function leaves(value: unknown, path = ""): [string, string][] {
  if (typeof value !== "object" || value === null) return [[path, text(value)]];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, path === "" ? key : `${path}.${key}`));
}

/** Returns all cases, ordered by result. With several results, the result is one of the varied values. */
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

export function seriesOf(of: Case, run: number, kind: Kind): Series[] {
  return of.result.series.filter((series) => series.point === of.point && series.run === run && series.kind === kind);
}

/** Returns whether a flow's sender reports its state, as TCP of the simulator and of the kernel does. */
export function told(flow: FlowSummary): boolean {
  return flow.cc !== null;
}

/** Returns the first `most` datagram flows, which are judged by delay and loss. */
export function datagramFlows(cases: Case[], most: number): string[] {
  const names = cases.flatMap((one) => one.summary.flows.filter((flow) => flow.transport === "udp").map((flow) => flow.flow));
  return [...new Set(names)].slice(0, most);
}

export function flowOf(of: Case, name: string): FlowSummary | undefined {
  return of.summary.flows.find((one) => one.flow === name);
}

export function column(series: Series, name: string): Column | undefined {
  return series.columns[name];
}

/** Cases that can be compared: all, or those of each result if requested or if the results varied different keys. */
export function comparable(cases: Case[], apart: boolean): Case[][] {
  const byResult = new Map<unknown, Case[]>();
  for (const one of cases) byResult.set(one.result, [...(byResult.get(one.result) ?? []), one]);
  const results = [...byResult.values()];
  const keys = new Set(results.map((cases) => Object.keys(cases[0]!.summary.values).sort().join()));
  return apart || (keys.size > 1 && results.every((cases) => cases.length > 1)) ? results : [cases];
}
