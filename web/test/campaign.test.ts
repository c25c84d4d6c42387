// The medians of a campaign, and the note about captures of several links.

import assert from "node:assert/strict";
import test from "node:test";
import { campaignOf, shownEstimate } from "../src/campaign";
import { linkFilter } from "../src/captures";
import type { Result } from "../src/data";

const resultOf = (scenario: unknown, links: string[] = []): Result => ({ meta: { scenario }, summary: { points: [{ links: links.map((link) => ({ link })) }] } }) as unknown as Result;

test("few tests have no interval", () => {
  const of = (tests: number) => ({ median: 9.31, low: 9.01, high: 9.42, tests });
  assert.deepEqual([5, 6].map((tests) => shownEstimate(of(tests), 6)), ["9.31", "9.31 [9.01, 9.42]"]);
  assert.equal(shownEstimate({ median: 2, low: -1, high: 3, blocks: 5 }, 6), "2");
  assert.equal(shownEstimate({ median: 2, low: null, high: null, tests: 1 }, 6), "2");
  assert.equal(shownEstimate(undefined, 6), "–");
});

test("a result that is no campaign has no such section", () => {
  for (const scenario of [null, {}, { measurement: {} }]) assert.equal(campaignOf(resultOf(scenario)), null);
  assert.equal(campaignOf(resultOf({ campaign: { planned: 3 } }))?.planned, 3);
});

test("the filter of one link is shown with captures of several", () => {
  const of = (pcap: unknown, links: string[] = []) => linkFilter(resultOf({ record: { pcap } }, links));
  assert.equal(of(["bottleneck", "access"]), 'frame.interface_name == "bottleneck"');
  assert.equal(of(["*"], ["s1", "s1-reverse"]), 'frame.interface_name == "s1"');
  for (const one of [of(["bottleneck"]), of([]), of(["*"], ["only"]), of(undefined), linkFilter(resultOf(null))]) assert.equal(one, null);
});
