// The section about a measurement of a real network: latency before, during and after the load, where packets waited, and what
// the modem told about its cell.

import { column, seriesOf, type Case, type Result, type Series } from "./data";
import { h } from "./dom";
import { aboutOf } from "./facts";
import { text } from "./format";
import { cellMarks, MARK_COLOUR } from "./marks";
import { linePlot, lineOf, type Line, type Mark, type PlotOptions } from "./plots";
import { lookOf, plotGrid, type Shown } from "./radio";
import { broken } from "./statistics";

const PROBES: Record<string, string> = { echo: "ICMP echo", request: "request to the server", handshake: "TCP handshake", hop: "router" };
const PROBE_ORDER = ["echo", "request", "handshake", "hop"];
const PLACES: [string, string][] = [
  ["host_ms", "host"],
  ["modem_ms", "modem and radio"],
  ["network_ms", "network behind"],
  ["total_ms", "whole path"],
];

/** The time from the first to the last probe of the cases, which all plots over time show. */
export function measuredSpan(cases: Case[], run: number): Pick<PlotOptions, "span"> {
  const times = cases.flatMap((one) => seriesOf(one, run, "latency").flatMap((series) => column(series, "t") ?? [])).filter((t) => t !== null);
  if (times.length === 0) return {};
  return { span: times.reduce(([low, high], t) => [Math.min(low, t), Math.max(high, t)], [Infinity, -Infinity] as [number, number]) };
}

/** When the load began and ended. */
function loadMarks(cases: Case[], run: number): Mark[] {
  return cases.flatMap((one) => {
    const times = seriesOf(one, run, "latency").flatMap((series) => {
      const [t, load] = [column(series, "t") ?? [], column(series, "load") ?? []];
      return t.filter((x, i): x is number => x !== null && load[i] === 1);
    });
    if (times.length === 0) return [];
    const [begin, end] = times.reduce(([low, high], t) => [Math.min(low, t), Math.max(high, t)], [Infinity, -Infinity]);
    return [
      { x: begin!, text: "load", colour: MARK_COLOUR },
      { x: end!, text: "ends", colour: MARK_COLOUR },
    ];
  });
}

/** The section, if any case is a measurement. */
export function measurement(cases: Shown[], run: number): HTMLElement[] {
  const all = cases.map(({ of }) => of);
  const has = (kind: "latency" | "waits" | "modem"): boolean => all.some((one) => seriesOf(one, run, kind).length > 0);
  const missing = [...new Set(all.flatMap((one) => reasons(one.result)))];
  const proxies = [...new Set(all.flatMap((one) => proxy(one.result)))];
  if (!has("latency") && !has("waits") && !has("modem")) return [];
  const time = { x: "Time, s", time: true, ...measuredSpan(all, run) };
  const load = loadMarks(all, run);
  const changes = cellMarks(cases, run);
  const modems = (y: string): Line[] =>
    cases.flatMap(({ of, prefix, second }) =>
      seriesOf(of, run, "modem").flatMap((series, i) => lineOf(series, "t", y, prefix + modemName(series), lookOf(i, second)).map((line) => ({ ...line, steps: true }))),
    );
  return [
    h(
      "section",
      { id: "measurement" },
      h("h2", {}, "Latency, queues and radio"),
      ...plotGrid([
        linePlot("Latency of probes", cases.flatMap((shown) => probes(shown, run)), { ...time, y: "ms", right: "Probes lost", marks: [...load, ...changes] }, "before, during and after the load"),
        linePlot("Where packets waited", cases.flatMap((shown) => waits(shown, run)), { ...time, y: "ms", marks: [...load, ...changes] }, "in each second, beyond the shortest time before the load; gaps: not longer than the uncertainty"),
        linePlot("RSRP of the serving cell", modems("rsrp_dbm"), { ...time, y: "dBm", fit: true, marks: changes }),
        linePlot("SINR of the serving cell", modems("sinr_db"), { ...time, y: "dB", fit: true, marks: changes }),
        linePlot("RSRQ of the serving cell", modems("rsrq_db"), { ...time, y: "dB", fit: true, marks: changes }),
      ]),
      ...proxies.map((found) => h("p", { class: "note" }, `${found.charAt(0).toUpperCase()}${found.slice(1)}.`)),
      missing.length > 0 && h("p", { class: "note" }, `Not measured: ${missing.join("; ")}.`),
    ),
  ];
}

/** That a proxy on the path answers for the server, if there are signs of one. */
function proxy(result: Result): string[] {
  const found = aboutOf(result)?.proxy as { text?: unknown } | null | undefined;
  return typeof found?.text === "string" ? [found.text] : [];
}

/** Why something was not measured. */
function reasons(result: Result): string[] {
  const missing = aboutOf(result)?.missing;
  return Array.isArray(missing) ? missing.map(text) : [];
}

function modemName(series: Series): string {
  const technology = series.technology ?? "";
  return technology === "" ? `${series.name}: no service` : `${series.name}: ${technology.toUpperCase()}`;
}

function probes({ of, prefix, second }: Shown, run: number): Line[] {
  const order = (series: Series): number => PROBE_ORDER.indexOf(series.name) * 1000 + (series.conn ?? 0);
  const all = seriesOf(of, run, "latency").sort((a, b) => order(a) - order(b));
  return all.flatMap((series, i) => {
    const label = `${prefix}${PROBES[series.name] ?? series.name}${series.conn === null ? "" : ` ${series.conn}`}`;
    const look = lookOf(i, second);
    const lost = column(series, "lost")?.some((n) => n !== null) ?? false;
    const load = column(series, "load") ?? [];
    const rtts = lineOf(series, "t", "rtt_ms", label, look).map((line) => ({ ...line, ...broken(line.x, line.y, load) }));
    return [...rtts, ...(lost ? lineOf(series, "t", "lost", `${label}: lost`, { colour: look.colour }).map((line) => ({ ...line, dots: true })) : [])];
  });
}

function waits({ of, prefix, second }: Shown, run: number): Line[] {
  return seriesOf(of, run, "waits").flatMap((series) =>
    PLACES.flatMap(([key, name], i) => lineOf(series, "t", key, prefix + name, lookOf(i, second)).map((line) => ({ ...line, steps: true }))),
  );
}
