// Vertical lines on plots over time where the serving cell changed, or somebody changed the network.

import { column, rowsOf, seriesOf, type Case, type Row, type Series } from "./data";
import { text } from "./format";
import { FAILED } from "./palette";
import type { Mark } from "./plots";

export const MARK_COLOUR = "#7d8796";
/** Of what was changed from outside. */
export const COMMAND_COLOUR = "#b0446a";
/** Another cell serves a UE, or a real modem was found in another one. */
const SERVED = ["connected", "changed"];
const UNSERVED = ["failed", "link-lost"];

/** The marks of some UEs of a case, or of all: with the cell's name, or in orange what went wrong. */
export function marksOf(of: Case, run: number, ues: string[] | null, colour = MARK_COLOUR): Mark[] {
  const isOwn = (ue: string): boolean => ues === null || ues.includes(ue);
  const rows = rowsOf(of.result.mobility, of.point, run).filter((row) => [...SERVED, ...UNSERVED].includes(text(row["event"])) && isOwn(text(row["ue"])));
  const radio = [...seriesOf(of, run, "radio"), ...seriesOf(of, run, "modem")].filter((series) => isOwn(series.name));
  const several = new Set([...rows.map((row) => text(row["ue"])), ...radio.map((series) => series.name)]).size > 1;
  const said = (ue: string, what: string): string => (several ? `${ue}: ${what}` : what);
  // A modem has a series for each technology.
  const first = several ? "" : [...new Set(radio.flatMap(cellAtStart))].join(" and ");
  const start = first === "" ? [] : [{ x: -Infinity, text: first, colour, lasts: true }];
  return [
    ...start,
    ...rows.map((row): Mark => {
      const isServed = SERVED.includes(text(row["event"]));
      return { x: row["t_s"] as number, text: said(text(row["ue"]), text(row[isServed ? "cell" : "event"])), colour: isServed ? colour : FAILED, lasts: !several };
    }),
  ];
}

/** A command to an emulation, as it is written. */
export function commandText(row: Row): string {
  return [row["command"], row["subject"], row["value"]].map(text).filter((word) => word !== "").join(" ");
}

/** The marks of what was changed from outside, and of the ends of outages. */
export function commandMarks(of: Case, run: number): Mark[] {
  return rowsOf(of.result.commands, of.point, run).flatMap((row): Mark[] => {
    const what = commandText(row);
    const until = row["until_s"] as number | null;
    return [{ x: row["t_s"] as number, text: what, colour: COMMAND_COLOUR }, ...(until === null ? [] : [{ x: until, text: "outage ends", colour: COMMAND_COLOUR }])];
  });
}

/**
 * The marks of cases beside each other: of the UEs at which the flows end whose names contain `filter` or, if there are none, of
 * all; and of what was changed from outside. What all cases share has no prefix.
 */
export function cellMarks(cases: { of: Case; prefix: string }[], run: number, filter = ""): Mark[] {
  const keyOf = (mark: Mark): string => `${mark.x} ${mark.text}`;
  const all = cases.map(({ of }) => [...marksOf(of, run, endsOf(of, filter)), ...commandMarks(of, run)]);
  const keys = all.map((marks) => new Set(marks.map(keyOf)));
  return all.flatMap((marks, i) =>
    marks
      .filter((mark) => !keys.slice(0, i).some((before) => before.has(keyOf(mark))))
      .map((mark) => (keys.every((own) => own.has(keyOf(mark))) ? mark : { ...mark, text: cases[i]!.prefix + mark.text }))
      // The cell at the left edge is that of one UE.
      .map((mark) => (cases.length > 1 ? { ...mark, lasts: false } : mark)),
  );
}

function endsOf(of: Case, filter: string): string[] | null {
  const ends = of.summary.flows.filter((flow) => flow.flow.includes(filter)).flatMap((flow) => [flow.from, flow.to]);
  const ues = of.summary.ues.map((ue) => ue.ue).filter((ue) => ends.includes(ue));
  return ues.length === 0 ? null : ues;
}

/** The first cell that served a UE, or in which a real modem was found: named as in events, by its identity or else by its physical one. */
function cellAtStart(series: Series): string[] {
  if (series.kind === "modem") {
    const [identities, physical] = [column(series, "cell_id"), column(series, "pci")];
    const named = column(series, "t")!.flatMap((_, i) => identities?.[i]?.toString() ?? (physical?.[i] == null ? [] : `PCI ${physical[i]}`));
    return named.slice(0, 1);
  }
  const first = column(series, "cell")?.find((cell) => cell !== null);
  const name = typeof first === "number" ? series.cells?.[first] : undefined;
  return name === undefined ? [] : [name];
}
