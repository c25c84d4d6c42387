// The lateness of an emulation, and the warning if it invalidates the results.

import type { Lateness } from "./data";
import { h } from "./dom";
import { count, percent } from "./format";

export function keptTime(late: Lateness): HTMLElement {
  const figures =
    late.packets === 0
      ? "No packet was delivered to a host."
      : `Lateness of packets to the hosts: median ${ms(late.p50_ms)}, 99th percentile ${ms(late.p99_ms)}, maximum ${ms(late.max_ms)}.`;
  const verdict = late.valid ? `Valid: the bound on the 99th percentile is ${ms(late.bound_ms)}.` : "";
  const cost = `Timekeeping used ${percent(late.cpu_share)} of a core${late.realtime ? "" : ", without real-time priority"}.`;
  return h("p", { class: "kept" }, [figures, verdict, cost].filter((part) => part !== "").join(" "));
}

/** Returns a prominent warning about an invalid emulation. */
export function notValid(late: Lateness, title: string): HTMLElement {
  const why = [
    late.missed > 0 ? `${count(late.missed)} packets from the hosts were lost before they entered the emulated network, because this machine was too slow.` : "",
    late.p99_ms > late.bound_ms
      ? `1 % of the packets reached the hosts more than ${ms(late.p99_ms)} late; the bound is ${ms(late.bound_ms)}.`
      : "",
    late.realtime ? "" : "The emulation ran without real-time priority.",
    "The results below reflect this machine rather than the network.",
  ];
  return h("div", { class: "banner", role: "alert" }, h("b", {}, title === "" ? "Invalid. " : `${title}: invalid. `), why.filter((part) => part !== "").join(" "));
}

function ms(x: number): string {
  const short = (x: number): string => String(Number(x.toPrecision(3)));
  return x > 0 && x < 0.001 ? `${short(x * 1e6)} ns` : `${short(x)} ms`;
}
