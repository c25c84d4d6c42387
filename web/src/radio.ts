// The radio section: grants, measurements and serving cells of each UE over time, and the parts of its packets' delay.

import { withInterval } from "./compare";
import { rowsOf, seriesOf, type Case, type Column, type Row, type Series, type Stat, type UeDirection, type UeSummary } from "./data";
import { h, select, sortable, type TableColumn } from "./dom";
import { bytes, count, number, percent, text } from "./format";
import { commandMarks, marksOf } from "./marks";
import { colour, dashOf, shapeOf } from "./palette";
import { linePlot, lineOf, type Line, type Look, type PlotOptions } from "./plots";

/** Maximum number of UEs in a plot, so that readers can tell them apart. */
const MOST_UES = 10;
const ALL = "";
const HOST_DASH = [2, 4];
const SPLIT: [keyof UeDirection & ("core_ms" | "queue_ms" | "air_ms" | "harq_ms" | "rlc_ms"), string, string][] = [
  ["core_ms", "core", "core: outside the radio access network"],
  ["queue_ms", "queue", "queue: until the first byte is sent over the air"],
  ["air_ms", "air", "air: until the last byte is sent (segmentation and scheduling)"],
  ["harq_ms", "harq", "HARQ: until the last byte is decoded"],
  ["rlc_ms", "rlc", "RLC: until in-order delivery"],
];

/** A case beside others: what tells it apart in a legend, and whether it is the second one. */
export interface Shown {
  of: Case;
  prefix: string;
  second: boolean;
}

/** Dashes of the second case's lines. */
export const BESIDE = [8, 4];

/** How line `i` of a case looks: of the second case dashed, with hollow markers, in the first one's colours. */
export function lookOf(i: number, second: boolean): Look {
  const dash = second ? BESIDE : dashOf(i);
  return { colour: colour(i), marker: { shape: shapeOf(i), hollow: second }, ...(dash !== undefined && { dash }) };
}

interface OfUe {
  shown: Shown;
  series: Series;
  label: string;
  look: Look;
}

/** The section, if any case has UEs. */
export function radio(cases: Shown[], run: number, ue: string, choose: (ue: string) => void): HTMLElement[] {
  const names = [...new Set(cases.flatMap(({ of }) => of.summary.ues.map((ue) => ue.ue)))];
  if (names.length === 0) return [];
  const wanted = names.includes(ue) ? ue : ALL;
  const drawn = wanted === ALL ? names.slice(0, MOST_UES) : [wanted];
  const all: [string, string] = [ALL, names.length > MOST_UES ? `the first ${MOST_UES} of ${names.length}` : `all ${names.length}`];
  const choice = select("UE", [all, ...names.map((name): [string, string] => [name, name])], wanted, choose);
  return [
    h(
      "section",
      { id: "radio" },
      h("h2", {}, "Radio"),
      ...(names.length > 1 ? [h("div", { class: "controls" }, choice)] : []),
      ...plots(cases, run, drawn),
      // Reports of cells tell nothing of packets.
      !cases.some(({ of }) => of.result.ues.some((row) => !("core_ms" in row))) && split(cases, drawn),
      ...tables(cases, run, drawn),
    ),
  ];
}

function plots(cases: Shown[], run: number, names: string[]): HTMLElement[] {
  const ues: OfUe[] = cases.flatMap((shown) => {
    const all = seriesOf(shown.of, run, "radio");
    return names.flatMap((name, i) => {
      const series = all.find((one) => one.name === name);
      return series === undefined ? [] : [{ shown, series, label: shown.prefix + name, look: lookOf(i, shown.second) }];
    });
  });
  const held = cases.reduce((sum, { of }) => sum + of.summary.ues.filter((ue) => names.includes(ue.ue)).length, 0);
  const note = ues.length < held ? `${ues.length} of ${held}; the others did not fit into this page` : undefined;
  const lines = (y: string, suffix = "", dash?: number[]): Line[] =>
    ues.flatMap(({ series, label, look }) => lineOf(series, "t", y, label + suffix, dash === undefined ? look : { ...look, dash }));
  const above = lines("dl_above_bytes", ": above", HOST_DASH).filter((line) => line.y.some((bytes) => (bytes ?? 0) > 0));
  const percents = (y: string): Line[] => lines(y).map((line) => ({ ...line, y: scaled(line.y, 100) }));
  // What says the same about all UEs at all times is left out.
  const sight = lines("los").map((line) => ({ ...line, steps: true }));
  const hides = sight.some((line) => line.y.includes(0));
  const beams = (y: string, suffix: string, dash?: number[]): Line[] => lines(y, suffix, dash).map((line) => ({ ...line, steps: true }));
  // Either end may have no array.
  const directed = [...beams("cell_beam", ": cell"), ...beams("ue_beam", ": UE", HOST_DASH)].filter((line) => line.y.some((beam) => beam !== null));
  const moves = directed.some((line) => new Set(line.y.filter((beam) => beam !== null)).size > 1);
  const cells = cases.flatMap(({ of, prefix, second }) =>
    seriesOf(of, run, "cell").map((series, i) => ({ series, label: prefix + series.name, look: lookOf(i, second) })),
  );
  const used = (y: string): Line[] =>
    cells.slice(0, MOST_UES).flatMap(({ series, label, look }) => lineOf(series, "t", y, label, look).map((line) => ({ ...line, y: scaled(line.y, 100) })));
  const cellNote = cells.length > MOST_UES ? `the first ${MOST_UES} of ${cells.length}` : undefined;
  const changed =
    ues.length === 1
      ? marksOf(ues[0]!.shown.of, run, [ues[0]!.series.name])
      : ues.flatMap(({ shown, series, look }) => marksOf(shown.of, run, [series.name], look.colour).map((mark) => ({ ...mark, lasts: false })));
  const marks = [...changed, ...cases.flatMap(({ of }) => commandMarks(of, run))];
  const time = { x: "Time, s", time: true, marks };
  const rate = "transport blocks, first transmissions";
  const join = (...parts: (string | undefined)[]): string => parts.filter((part) => part !== undefined).join("; ");
  return plotGrid([
    linePlot("Downlink capacity", lines("dl_mbps"), { ...time, y: "Mbit/s" }, join(rate, note)),
    linePlot("Uplink capacity", lines("ul_mbps"), { ...time, y: "Mbit/s" }, join(rate, note)),
    linePlot("Downlink MCS", lines("dl_mcs"), { ...time, y: "index" }, note),
    linePlot("Uplink MCS", lines("ul_mcs"), { ...time, y: "index" }, note),
    linePlot("Downlink block errors", percents("dl_bler"), { ...time, y: "% of first transmissions" }, note),
    linePlot("Uplink block errors", percents("ul_bler"), { ...time, y: "% of first transmissions" }, note),
    linePlot("Downlink SINR", lines("sinr_db"), { ...time, y: "dB", fit: true }, note),
    linePlot("RSRP of the serving cell", lines("rsrp_dbm"), { ...time, y: "dBm", fit: true }, note),
    linePlot(
      "Queues in the base station",
      [...lines("dl_queue_bytes", ": RLC"), ...above],
      { ...time, y: "bytes" },
      join(above.length > 0 ? "PDCP and RLC and, dotted, above them" : "PDCP and RLC", note),
    ),
    linePlot("Buffers of PDCP and RLC in the base station", lines("dl_buffer_bytes"), { ...time, y: "bytes" }, join("with what is sent and not acknowledged", note)),
    hides && linePlot("Line of sight", sight, { ...time, y: "", names: ["hidden", "in sight"] }, note),
    moves && linePlot("Beams", directed, { ...time, y: "number" }, join("of the cell and, dotted, of the UE", note)),
    linePlot(
      "Queues of the UE",
      [...lines("ul_queue_bytes", ": modem"), ...lines("host_queue_bytes", ": host", HOST_DASH)],
      { ...time, y: "bytes" },
      join("modem (PDCP and RLC) and, dotted, host", note),
    ),
    linePlot("Downlink resource blocks of each cell", used("dl_prbs"), { ...time, y: "% in use", yMax: 105 }, cellNote),
    linePlot("Uplink resource blocks of each cell", used("ul_prbs"), { ...time, y: "% in use", yMax: 105 }, cellNote),
    serving(ues, { x: time.x, time: true }, note),
  ]);
}

/** Figures in columns; what has nothing to show is left out. */
export function plotGrid(figures: (HTMLElement | null | false)[]): HTMLElement[] {
  const drawn = figures.filter((figure) => figure !== null && figure !== false);
  return drawn.length === 0 ? [] : [h("div", { class: "grid" }, ...drawn)];
}

function scaled(values: Column, by: number): Column {
  return values.map((value) => (value === null ? null : value * by));
}

/** Which cell serves each UE, if there is more than one. */
function serving(ues: OfUe[], time: Pick<PlotOptions, "x" | "time">, note: string | undefined): HTMLElement | null {
  const cellsOf = (series: Series): string[] => series.cells ?? [];
  const names = [...new Set(ues.flatMap(({ series }) => cellsOf(series)))].sort();
  if (names.length < 2) return null;
  // UEs served by the same cell are drawn next to each other, so that their lines do not overlap.
  const lines = ues.flatMap(({ series, label, look }, i) => {
    const shift = ((i + 0.5) / ues.length - 0.5) * 0.5;
    const place = cellsOf(series).map((cell) => names.indexOf(cell) + shift);
    return lineOf(series, "t", "cell", label, look).map((line) => ({ ...line, steps: true, y: line.y.map((at) => (at === null ? null : place[at]!)) }));
  });
  return linePlot("Serving cell", lines, { ...time, y: "", names }, note);
}

/** Bars as long as the delay, of one scale. */
function split(cases: Shown[], names: string[]): HTMLElement {
  const bars = names.flatMap((name) =>
    cases.flatMap(({ of, prefix }) => {
      const ue = of.summary.ues.find((ue) => ue.ue === name);
      if (ue === undefined) return [];
      return (["downlink", "uplink"] as const).flatMap((direction) => {
        const parts = SPLIT.map(([key, kind, title]) => ({ kind, title, ms: ue[direction][key]?.mean ?? null }));
        if (parts.some((part) => part.ms === null)) return [];
        return [{ who: prefix + name, direction, parts, sum: parts.reduce((sum, part) => sum + part.ms!, 0) }];
      });
    }),
  );
  const longest = Math.max(...bars.map((bar) => bar.sum), 0);
  const rows = bars.map(({ who, direction, parts, sum }) => {
    const stack = h(
      "div",
      { class: "stack" },
      ...parts.map(({ kind, title, ms }) => {
        const part = h("span", { class: `limit ${kind}`, title: `${title}: ${number(ms)} ms` }, ms! >= longest * 0.05 ? number(ms) : "");
        part.style.flexGrow = String(ms);
        return part;
      }),
    );
    stack.style.width = `${longest > 0 ? (sum / longest) * 100 : 0}%`;
    return h("div", { class: "limits delays" }, h("span", { class: "who", title: who }, who, h("small", {}, ` ${direction}`)), h("div", {}, stack), h("span", { class: "sum" }, `${number(sum)} ms`));
  });
  return h(
    "figure",
    { class: "wide" },
    h("figcaption", {}, h("b", {}, "Components of the one-way delay"), h("span", {}, "mean over packets and runs, ms")),
    h("div", { class: "legend" }, ...SPLIT.map(([, kind, title]) => h("span", {}, h("i", { class: `limit ${kind}` }), title))),
    ...(rows.length > 0 ? rows : [h("p", { class: "empty" }, "No packet was delivered.")]),
  );
}

type Of = Row & { case: string };

function tables(cases: Shown[], run: number, names: string[]): HTMLElement[] {
  const rows = (of: "ues" | "mobility"): Of[] =>
    cases.flatMap(({ of: one, prefix }) =>
      rowsOf(one.result[of], one.point, run)
        .filter((row) => names.includes(text(row["ue"])))
        .map((row): Of => ({ ...row, case: prefix.trim() })),
    );
  const value = (row: Of, key: string): number | null => (row[key] as number | null | undefined) ?? null;
  const num = (head: string, key: string, show: (x: number | null) => string = number, title?: string): TableColumn<Of> => ({
    head,
    value: (row) => value(row, key),
    text: (row) => show(value(row, key)),
    ...(title !== undefined && { title }),
  });
  const str = (head: string, key: string): TableColumn<Of> => ({ head, value: (row) => text(row[key] ?? "") });
  const derived = (head: string, of: (row: Of) => number | null, show: (x: number | null) => string, title: string): TableColumn<Of> => ({
    head,
    title,
    value: of,
    text: (row) => show(of(row)),
  });
  const ratio = (part: number | null, whole: number | null): number | null => (part === null || whole === null || whole <= 0 ? null : part / whole);
  const padding = (row: Of): number | null => {
    const bytes = value(row, "padding_bytes");
    return bytes === null ? null : bytes * 8e-6;
  };
  /** A counter of both directions, shown in the row of the uplink. */
  const both = (head: string, key: string, title: string): TableColumn<Of> =>
    derived(head, (row) => (row["direction"] === "uplink" ? value(row, key) : null), (x) => (x === null ? "" : count(x)), title);
  const which = cases.length > 1 ? [str("", "case")] : [];
  const ues = sortable<Of>(
    [
      ...which,
      str("UE", "ue"),
      str("Direction", "direction"),
      derived("Mbit/s", (row) => ratio(value(row, "mbits"), value(row, "measured_s")), number, "Bits of the transport blocks, each counted once"),
      num("PRBs", "utilisation", percent, "Share of the carrier's resource blocks granted to the UE"),
      num("Blocks", "blocks", count, "Transport blocks"),
      derived("BLER", (row) => (row["blocks"] === 0 ? null : value(row, "block_error_rate")), percent, "Share of the blocks whose first transmission failed"),
      num("HARQ retx", "retransmissions", count, "HARQ retransmissions"),
      num("given up", "residual_errors", count, "Blocks that HARQ failed to deliver"),
      num("RLC retx", "rlc_retx_pdus", count, "PDUs retransmitted by RLC"),
      num("bytes", "rlc_retx_bytes", bytes, "Bytes of the PDUs retransmitted by RLC"),
      derived("Padding", (row) => ratio(padding(row), value(row, "mbits")), percent, "Share of the blocks' bits that were padding"),
      both("SR", "scheduling_requests", "Scheduling requests"),
      both("RA", "random_accesses", "Random accesses because scheduling requests went unanswered"),
      both("Handovers", "handovers", "Handovers that reached their target"),
      both("failed", "handover_failures", "Handovers that did not reach their target"),
      both("Links lost", "link_failures", "Radio links lost"),
    ],
    rows("ues"),
    { title: "UEs" },
  );
  const events = rows("mobility");
  const mobility = sortable<Of>(
    [...which, num("Time, s", "t_s", (x) => (x === null ? "–" : x.toFixed(3))), str("UE", "ue"), str("Event", "event"), str("Cell", "cell"), num("Interruption, ms", "interruption_ms", number, "Time without a serving cell")],
    events,
    { title: "Mobility" },
  );
  const runs = Math.max(...cases.map(({ of }) => of.result.meta.runs));
  return [
    h("h2", {}, runs > 1 ? `UEs, run ${run + 1}` : "UEs"),
    ...(runs > 1 ? [means(cases, names)] : []),
    ues,
    ...(events.length > 0 ? [h("details", {}, h("summary", {}, `Handovers and lost links (${count(events.length)} events)`), mobility)] : []),
  ];
}

/** Means over the runs. */
function means(cases: Shown[], names: string[]): HTMLElement {
  const rows = cases.flatMap(({ of, prefix }) =>
    of.summary.ues
      .filter((ue) => names.includes(ue.ue))
      .flatMap((ue) => (["downlink", "uplink"] as const).map((direction) => ({ ue, direction, prefix, own: ue[direction] }))),
  );
  type R = (typeof rows)[number];
  const stat = (head: string, of: (row: R) => Stat | null, show: (x: number) => string = number): TableColumn<R> => ({
    head,
    value: (row) => of(row)?.mean ?? null,
    text: (row) => withInterval(of(row), show),
  });
  const both = (head: string, of: (ue: UeSummary) => Stat | null): TableColumn<R> => {
    const own = (row: R): Stat | null => (row.direction === "uplink" ? of(row.ue) : null);
    return { head, value: (row) => own(row)?.mean ?? null, text: (row) => (own(row) === null ? "" : withInterval(own(row), number)) };
  };
  return h(
    "details",
    { open: "" },
    h("summary", {}, "Means over the runs, with 95 % confidence intervals"),
    sortable<R>(
      [
        { head: "UE", value: (row) => row.prefix + row.ue.ue },
        { head: "Direction", value: (row) => row.direction },
        stat("Mbit/s", (row) => row.own.scheduled_mbps),
        stat("PRBs", (row) => row.own.utilisation, percent),
        stat("BLER", (row) => row.own.block_error_rate, percent),
        stat("Core, ms", (row) => row.own.core_ms),
        stat("queue", (row) => row.own.queue_ms),
        stat("air", (row) => row.own.air_ms),
        stat("HARQ", (row) => row.own.harq_ms),
        stat("RLC", (row) => row.own.rlc_ms),
        both("Handovers", (ue) => ue.handovers),
        both("failed", (ue) => ue.handover_failures),
        both("Links lost", (ue) => ue.link_failures),
      ],
      rows,
      { title: "UEs, means over the runs" },
    ),
  );
}
