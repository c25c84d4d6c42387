// Files for the reader to save.

import { csv, type Cell } from "./csv";
import { latex } from "./latex";
import { slug } from "./location";

export function saveCsv(title: string, head: string[], rows: Cell[][]): void {
  offer(named(title, "csv"), new Blob([csv(head, rows)], { type: "text/csv" }));
}

export function saveLatex(title: string, head: string[], isNumber: boolean[], rows: string[][]): void {
  offer(named(title, "tex"), new Blob([latex(head, isNumber, rows)], { type: "application/x-tex" }));
}

export function named(title: string, ending: string): string {
  return `${slug(title, new Set())}.${ending}`;
}

/** Lets the browser save `blob` under `name`. */
export function offer(name: string, blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
