// How to look at one link in a capture of several.

import type { Result } from "./data";
import { h } from "./dom";

/** The links that a simulation captured, of which `*` is all. */
function captured(result: Result): string[] {
  const scenario = result.meta.scenario as { record?: { pcap?: unknown } } | null;
  const names = typeof scenario === "object" && scenario !== null ? scenario.record?.pcap : undefined;
  return Array.isArray(names) ? names.filter((name): name is string => typeof name === "string") : [];
}

/** The filter of one link, in a capture that has each packet once for each link that it passed; `null` without such a capture. */
export function linkFilter(result: Result): string | null {
  const names = captured(result);
  const links = result.summary.points.flatMap((point) => point.links.map(({ link }) => link));
  const all = names.includes("*") ? [...new Set(links)] : [...new Set(names)];
  const link = all[0];
  return link === undefined || all.length < 2 ? null : `frame.interface_name == "${link}"`;
}

/** The note about captures of several links, if there are any. */
export function captureNote(results: Result[]): HTMLElement[] {
  const filter = results.map(linkFilter).find((filter) => filter !== null);
  if (filter === undefined || filter === null) return [];
  return [
    h(
      "p",
      { class: "note" },
      "The captures have several links, and each packet once for each of them: opened as they are, Wireshark takes the copies for retransmissions. Write one link to a file of its own first: ",
      h("code", {}, `tshark -r captures/point-0-run-0.pcapng -Y '${filter}' -w link.pcapng`),
    ),
  ];
}
