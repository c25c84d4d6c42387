// The logic behind the page: links to parts of it, files to save, names.

import assert from "node:assert/strict";
import test from "node:test";
import { csv } from "../src/csv";
import { titleOf, type Result } from "../src/data";
import { decode, encode, slug, type View } from "../src/location";

const USUAL: View = { first: 0, second: -1, run: 0, filter: "", ue: "", logRtt: false, at: "", comparisons: {} };
const read = (hash: string): View => decode(hash, USUAL, { cases: 8, comparisons: 1, runs: (first) => (first === 7 ? 1 : 5) });

test("a link restores what was chosen", () => {
  const view: View = { first: 3, second: 5, run: 4, filter: "call & down=1#", ue: "ue-2", logRtt: true, at: "queue-backlog-and-drops", comparisons: { 0: { metrics: ["link:Drops", ""], along: "a & b", distribution: "" } } };
  assert.deepEqual(read(`#${encode(view, USUAL)}`), view);
  assert.equal(encode(USUAL, USUAL), "");
  const beside: View = { ...USUAL, second: 1 };
  assert.deepEqual(decode(`#${encode({ ...beside, second: -1 }, beside)}`, beside, { cases: 8, comparisons: 1, runs: () => 1 }), { ...beside, second: -1 });
});

test("what a link asks for and is not there is left out", () => {
  assert.deepEqual(read("#point=8&beside=99&run=-1&log=maybe&more=x"), USUAL);
  assert.deepEqual(read("#point=1e3&run=0x2&point=%"), USUAL);
  assert.equal(read("#point=7&run=4").run, 0, "that point has one run");
  assert.equal(read("#point=2&beside=2").second, -1, "a case is not beside itself");
  assert.equal(read(`#flows=${"a".repeat(10_000)}`).filter.length, 200);
});

test("headings get addresses of their own", () => {
  const taken = new Set<string>();
  assert.deepEqual(["Queueing delay", "Queueing delay", "→", "RTT, ms"].map((title) => slug(title, taken)), ["queueing-delay", "queueing-delay-2", "part", "rtt-ms"]);
});

test("CSV quotes what needs it and starts no formula", () => {
  assert.equal(csv(["a", "b"], [["x,y", 1.5], ['say "x"', null], ["=1+1", Number.NaN]]), 'a,b\r\n"x,y",1.5\r\n"say ""x""",\r\n\'=1+1,\r\n');
});

test("a result without a title is called after its flows", () => {
  const result = (title: string, flows: string[]): Result =>
    ({ meta: { title }, timing: {}, summary: { points: [{ flows: flows.map((flow) => ({ flow })) }] } }) as unknown as Result;
  assert.equal(titleOf(result("A title", ["a"])), "A title");
  assert.equal(titleOf(result(" ", ["download", "call"])), "Simulation: download, call");
  assert.equal(titleOf(result("", ["a", "b", "c", "d"])), "Simulation: 4 flows");
  assert.equal(titleOf(result("", [])), "Simulation: no flow");
});
