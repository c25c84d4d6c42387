// What a time–sequence plot draws of a capture.

import assert from "node:assert/strict";
import test from "node:test";
import type { Series } from "../src/data";
import { sequenceLines } from "../src/sequence";

const linesOf = (columns: Record<string, (number | null)[]>): Map<string, [(number | null)[], (number | null)[]]> => {
  const series = { point: 0, run: 0, kind: "sequence", name: "download", conn: 0, columns } as unknown as Series;
  return new Map(sequenceLines(series).map(({ label, x, y }) => [label, [[...x], [...y]]]));
};

test("data, acknowledgements and the window are lines, with the highest value of each moment", () => {
  const lines = linesOf({ t: [0, 1, 1, 2], sent: [10, 20, 15, null], acked: [null, 0, 10, 20], window: [null, 60, 70, 80] });
  assert.deepEqual(Object.fromEntries(lines), {
    window: [[1, 2], [70, 80]],
    sent: [[0, 1], [10, 20]],
    acknowledged: [[1, 2], [10, 20]],
  });
});

test("selective acknowledgements, retransmissions and what was overtaken are strokes, beside each other at one moment", () => {
  const none = [null, null, null];
  const lines = linesOf({
    t: [0, 1, 1],
    sack_from: [null, 10, 30],
    sack_to: [null, 20, 40],
    again_from: [null, null, 0],
    again_to: [null, null, 10],
    late_from: none,
    late_to: none,
  });
  assert.deepEqual([...lines.keys()], ["SACK", "retransmitted"]);
  const [x, y] = lines.get("SACK")!;
  assert.deepEqual(y, [10, 20, null, 30, 40, null]);
  assert.ok(x.every((at, i) => i === 0 || at! > x[i - 1]!) && x.every((at) => Math.abs(at! - 1) < 1e-5));
  assert.deepEqual(lines.get("retransmitted")![1], [0, 10, null]);
});
