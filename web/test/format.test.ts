// Numbers with intervals, and tables for papers.

import assert from "node:assert/strict";
import test from "node:test";
import { namesOf, type Data, type Result } from "../src/data";
import { rounded } from "../src/format";
import { latex } from "../src/latex";

test("a mean has as many decimals as its interval, which has two significant digits", () => {
  assert.deepEqual(rounded(0.002, 0.00284), ["0.0020", "0.0028", ""]);
  assert.deepEqual(rounded(5.51e-4, 0.001), ["0.0006", "0.0010", ""]);
  assert.deepEqual(rounded(12.4712, 0.0123), ["12.471", "0.012", ""]);
  assert.deepEqual(rounded(1234.5, 321), ["1235", "321", ""]);
  assert.deepEqual(rounded(0.0512, 0.0031, true), ["5.12", "0.31", "\u202f%"]);
  // Runs that agree in every digit.
  assert.deepEqual(rounded(3.14159, 0), ["3.14", "0", ""]);
  assert.deepEqual(rounded(30.847, 3.5e-15), ["30.8", "0", ""]);
});

test("a table for LaTeX escapes what LaTeX would take for its own", () => {
  const text = latex(["flow_a", "loss %"], [false, true], [["A & B", "0.5 ± 0.1"], ["~^\\{}", "–"]]);
  assert.equal(
    text,
    "% \\usepackage{booktabs}\n\\begin{tabular}{lr}\n\\toprule\nflow\\_a & loss \\% \\\\\n\\midrule\nA \\& B & 0.5 $\\pm$ 0.1 \\\\\n" +
      "\\textasciitilde{}\\textasciicircum{}\\textbackslash{}\\{\\} & -- \\\\\n\\bottomrule\n\\end{tabular}\n",
  );
});

function result(title: string, scenario: unknown, seed = 1): Result {
  return { meta: { title, version: "0.1.0", scenario, points: [{}], runs: 1, seed }, timing: {}, summary: { points: [] } } as unknown as Result;
}

test("results of the same title are named by what differs between them", () => {
  const flow = (cc: string, rate: string): unknown => ({ flows: [{ name: "bulk", cc }], dumbbell: { rate } });
  const named = (...results: Result[]): string[] => namesOf({ results } as unknown as Data);
  assert.deepEqual(named(result("A", flow("bbr", "9 Mbit/s")), result("B", {})), ["A", "B"]);
  assert.deepEqual(named(result("A", flow("bbr", "9 Mbit/s")), result("B", {}), result("A", flow("cubic", "9 Mbit/s"))), ["A: cc = bbr", "B", "A: cc = cubic"]);
  assert.deepEqual(named(result("A", { seed: 1 }, 1), result("A", { seed: 2 }, 2)), ["A: seed = 1", "A: seed = 2"]);
  // The same twice, and too much at once, are numbered.
  assert.deepEqual(named(result("A", {}), result("A", {})), ["A (1)", "A (2)"]);
  assert.deepEqual(named(result("A", { a: 1, b: 1, c: 1 }), result("A", { a: 2, b: 2, c: 2 })), ["A (1)", "A (2)"]);
});
