// What the verdicts of a reproduction are called, how rows are counted, and what is said about one.

import type { Origin, Row, Verdict } from "./generated/reproduction";

export const VERDICTS: Record<Verdict, string> = { held: "✓ held", missed: "✗ missed", impossible: "impossible", "not possible yet": "not possible yet" };
const ORIGINS: Record<Origin, string> = { paper: "", artefact: "the artefact's", ours: "ours" };

/** The paper's own predictions by verdict, and how many hold of the rows that are none: marked, the artefact's and ours. */
export function counted(rows: Row[]): { verdicts: Partial<Record<Verdict, number>>; apart: { what: string; held: number; all: number }[] } {
  const own = rows.filter((row) => row.origin === "paper");
  const predicted = own.filter((row) => row.fitted === undefined && row.given === undefined);
  const verdicts: Partial<Record<Verdict, number>> = {};
  for (const verdict of Object.keys(VERDICTS) as Verdict[]) {
    const count = predicted.filter((row) => row.verdict === verdict).length;
    if (count > 0 || verdict === "held" || verdict === "missed") verdicts[verdict] = count;
  }
  const groups: [string, Row[]][] = [
    ["fitted", own.filter((row) => row.fitted !== undefined)],
    ["given", own.filter((row) => row.given !== undefined)],
    ["of the artefact", rows.filter((row) => row.origin === "artefact")],
    ["of ours", rows.filter((row) => row.origin === "ours")],
  ];
  const apart = groups.map(([what, rows]) => ({ what, held: rows.filter((row) => row.verdict === "held").length, all: rows.length }));
  return { verdicts, apart: apart.filter(({ all }) => all > 0) };
}

/** Whose row it is and whether it is a prediction, in parentheses. */
export function marks(row: Row): string {
  const all = [ORIGINS[row.origin], row.fitted === undefined ? "" : "fitted", row.given === undefined ? "" : "given"].filter((mark) => mark !== "");
  return all.length === 0 ? "" : ` (${all.join(", ")})`;
}

/** The reasons of the marks, of a tolerance of the row's own, and of a miss. */
export function reasons(row: Row): string {
  const because = row.because === undefined ? "" : row.tolerance === undefined ? row.because : `within ${row.tolerance}: ${row.because}`;
  const fitted = row.fitted === undefined ? "" : `fitted: ${row.fitted}`;
  const given = row.given === undefined ? "" : `given: ${row.given}`;
  return [fitted, given, because, row.why ?? ""].filter((reason) => reason !== "").join("; ");
}
