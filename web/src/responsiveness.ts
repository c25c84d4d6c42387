// Responsiveness of a measurement, as `ranway measure` writes it for each load.

import { count, text } from "./format";

/** Round trips a minute under each load that has them, with its directions if there are several loads; empty without any. */
export function roundTrips(loads: unknown): string {
  const all = Array.isArray(loads) ? (loads as unknown[]) : [];
  const told = all.flatMap((load) => {
    const { rpm, directions } = (load ?? {}) as { rpm?: unknown; directions?: unknown };
    if (typeof rpm !== "number") return [];
    const ways = (Array.isArray(directions) ? (directions as unknown[]) : []).map((one) => text(((one ?? {}) as { direction?: unknown }).direction ?? ""));
    return [all.length > 1 ? `${count(rpm)} (${ways.join(" and ")})` : count(rpm)];
  });
  return told.join(", ");
}
