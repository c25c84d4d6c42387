// Round trips a minute in the head of a measurement's page.

import assert from "node:assert/strict";
import test from "node:test";
import { roundTrips } from "../src/responsiveness";

const load = (rpm: unknown, ...ways: string[]) => ({ rpm, directions: ways.map((direction) => ({ direction })) });

test("a measurement tells the round trips a minute under each load that has them", () => {
  assert.equal(roundTrips([load(111.4, "upload")]), "111");
  assert.equal(roundTrips([load(1234, "upload"), load(378, "download", "upload")]), "1\u202f234 (upload), 378 (download and upload)");
  assert.equal(roundTrips([load(null, "upload"), load(378, "download")]), "378 (download)");
});

test("results without round trips a minute, or with something else in their place, tell none", () => {
  for (const loads of [undefined, null, 7, [], [null, 3, {}], [{ rpm: null }], [{ rpm: "9" }]]) {
    assert.equal(roundTrips(loads), "");
  }
});
