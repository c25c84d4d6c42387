// How well an emulation kept to the time, and what a reader has to know if it did not.

import type { Lateness } from "./data";
import { h } from "./dom";
import { count, percent } from "./format";

export function keptTime(late: Lateness): HTMLElement {
  const figures =
    late.packets === 0
      ? "No packet was given to a host."
      : `Packets reached the hosts late by ${ms(late.p50_ms)} (median), ${ms(late.p99_ms)} (99 %), ${ms(late.max_ms)} at most.`;
  const verdict = late.valid ? `Valid: 99 % may be late by up to ${ms(late.bound_ms)}.` : "";
  const cost = `Keeping the time took ${percent(late.cpu_share)} of a core${late.realtime ? "" : ", without a real-time priority"}.`;
  return h("p", { class: "kept" }, [figures, verdict, cost].filter((part) => part !== "").join(" "));
}

/** A banner that no reader overlooks. */
export function notValid(late: Lateness, title: string): HTMLElement {
  const why = [
    late.missed > 0 ? `${count(late.missed)} packets of the hosts were lost before they came to the network, because this machine was too slow.` : "",
    late.p99_ms > late.bound_ms
      ? `1 % of the packets were given to the hosts more than ${ms(late.p99_ms)} late, and ${ms(late.bound_ms)} is the bound.`
      : "",
    late.realtime ? "" : "The network ran without a real-time priority.",
    "What is below says more about the machine than about the network.",
  ];
  return h("div", { class: "banner", role: "alert" }, h("b", {}, title === "" ? "Not valid. " : `${title}: not valid. `), why.filter((part) => part !== "").join(" "));
}

function ms(x: number): string {
  const short = (x: number): string => String(Number(x.toPrecision(3)));
  return x > 0 && x < 0.001 ? `${short(x * 1e6)} ns` : `${short(x)} ms`;
}
