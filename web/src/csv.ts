// Tables and plots as comma-separated values (RFC 4180).

export type Cell = string | number | null | undefined;

/**
 * Rows as CSV. A text that a spreadsheet would take for a formula (it begins with `=`, `+`, `-`, `@` or a control
 * character) gets an apostrophe in front: names come from files of others.
 */
export function csv(head: string[], rows: Cell[][]): string {
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

function cell(value: Cell): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
