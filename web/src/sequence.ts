// Sequence numbers over time, as tcptrace draws them.

import { column, type Series } from "./data";
import type { Line } from "./plots";

/** The lines of a time–sequence plot. Each has one value at a moment, and strokes lead from a first to a last byte. */
export function sequenceLines(series: Series): Line[] {
  const xs = column(series, "t") ?? [];
  const line = (name: string, label: string, colour: string, steps = false): Line[] => {
    const at = new Map<number, number>();
    (column(series, name) ?? []).forEach((y, i) => {
      if (y !== null && xs[i] !== null && xs[i] !== undefined) at.set(xs[i], Math.max(y, at.get(xs[i]) ?? y));
    });
    return at.size === 0 ? [] : [{ label, x: [...at.keys()], y: [...at.values()], colour, steps }];
  };
  const strokes = (name: string, label: string, colour: string): Line[] => {
    const [from, to] = [column(series, `${name}_from`) ?? [], column(series, `${name}_to`) ?? []];
    const span = ((xs.at(-1) ?? 1) - (xs[0] ?? 0) || 1) * 1e-6;
    const [x, y]: [number[], (number | null)[]] = [[], []];
    from.forEach((start, i) => {
      const [t, end, last] = [xs[i], to[i], x.at(-1)];
      if (t === null || t === undefined || start === null || end === null || end === undefined) return;
      const begin = last === undefined || t > last ? t : last + span;
      x.push(begin, begin + span, begin + 2 * span);
      y.push(start, end, null);
    });
    return x.length === 0 ? [] : [{ label, x, y, colour }];
  };
  return [
    ...line("window", "window", "#E69F00", true),
    ...line("sent", "sent", "#0072B2"),
    ...line("acked", "acknowledged", "#56B4E9", true),
    ...strokes("sack", "SACK", "#009E73"),
    ...strokes("again", "retransmitted", "#D55E00"),
    ...strokes("late", "out of order", "#CC79A7"),
  ];
}
