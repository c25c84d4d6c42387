// The facts in the head of a page.

import assert from "node:assert/strict";
import test from "node:test";
import type { Result } from "../src/data";
import { factsOf } from "../src/facts";

const timing = { wall_s: 2, cpu_s: 4, simulated_s: 100, events: 1, packets: 7, threads: 2 };
const result = (scenario: unknown, more: object = {}) =>
  ({ meta: { scenario, points: [{}], runs: 1, seed: 1, version: "0.1.0" }, timing: { ...timing, ...more } }) as unknown as Result;
const facts = (...of: Parameters<typeof result>) => Object.fromEntries(factsOf(result(...of)));

test("a simulation tells its wall time, or what its processors took if jobs ran side by side", () => {
  assert.match(facts({})["In"]!, /^2(\.0+)? s \(50(\.0+)?× real time\)$/);
  const sweep = facts({}, { wall_s: undefined });
  assert.equal(sweep["In"], undefined);
  assert.match(sweep["Processor time"]!, /^4(\.0+)? s \(25(\.0+)?× real time\)$/);
});

test("an analysis has simulated nothing", () => {
  const analysis = facts({ analysed: { files: ["a.pcap", "b.pcap"] } });
  assert.deepEqual(Object.keys(analysis), ["Files", "Measured", "Packets", "Ranway"]);
  assert.equal(analysis["Files"], "2");
  assert.equal(facts({ analysed: { files: ["a.json"] } }, { packets: 0 })["Packets"], undefined);
});
