// What is counted and said of the rows of a reproduction.

import assert from "node:assert/strict";
import test from "node:test";
import type { Row } from "../src/generated/reproduction";
import { counted, marks, reasons } from "../src/verdicts";

const row = (more: Partial<Row>): Row => ({
  paper: "p", experiment: "e", variant: "", parameter: "", metric: "m", unit: "", published: 1, published_ci: null, measured: 1, ci: null,
  origin: "paper", verdict: "held", ...more,
});

test("marked rows and those of others are counted apart", () => {
  const rows = [
    row({}),
    row({ verdict: "impossible" }),
    row({ verdict: "missed", fitted: "a buffer" }),
    row({ given: "the distances" }),
    row({ origin: "artefact", verdict: "missed" }),
    row({ origin: "ours", fitted: "a buffer" }),
  ];
  assert.deepEqual(counted(rows), {
    verdicts: { held: 1, missed: 0, impossible: 1 },
    apart: [
      { what: "fitted", held: 0, all: 1 },
      { what: "given", held: 1, all: 1 },
      { what: "of the artefact", held: 0, all: 1 },
      { what: "of ours", held: 1, all: 1 },
    ],
  });
});

test("a verdict says whose row it is, and why it allows what it allows", () => {
  assert.equal(marks(row({})), "");
  assert.equal(marks(row({ origin: "ours", given: "the distances" })), " (ours, given)");
  assert.equal(reasons(row({ fitted: "a buffer", tolerance: 0.5, because: "read from a plot", why: "unknown" })), "fitted: a buffer; within 0.5: read from a plot; unknown");
  assert.equal(reasons(row({})), "");
});
