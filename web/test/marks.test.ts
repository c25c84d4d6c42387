// Where plots over time are marked because the serving cell changed, or somebody changed the network.

import assert from "node:assert/strict";
import test from "node:test";
import type { Case } from "../src/data";
import { cellMarks, COMMAND_COLOUR, marksOf } from "../src/marks";
import { FAILED } from "../src/palette";

const event = (t_s: number, ue: string, event: string, cell: string, run = 0, point = 0) => ({ point, run, t_s, ue, event, cell, interruption_ms: null });
const flow = (flow: string, from: string, to: string) => ({ flow, from, to });
const radio = (name: string, cells: string[]) => ({ point: 0, run: 0, kind: "radio", name, conn: null, cells, columns: { t: [0, 1], cell: [null, 0] } });
const caseOf = (ues: string[], flows: object[], mobility: object[], series: object[] = []): Case =>
  ({ point: 0, result: { mobility, commands: [], series }, summary: { flows, ues: ues.map((ue) => ({ ue })) } }) as unknown as Case;
const changed = (commands: object[]): Case => ({ point: 0, result: { mobility: [], commands, series: [] }, summary: { flows: [], ues: [] } }) as unknown as Case;
const said = (marks: { x: number; text: string }[]): [number, string][] => marks.map(({ x, text }) => [x, text]);

test("handovers of a simulation, failures and changes of a real modem are marked", () => {
  const one = caseOf(
    ["car"],
    [flow("download", "server", "car")],
    [event(1, "car", "triggered", "b"), event(1.1, "car", "left", "b"), event(2, "car", "failed", ""), event(3, "car", "link-lost", "a"), event(4, "car", "connected", "b"), event(5, "car", "connected", "c", 1), event(6, "car", "connected", "d", 0, 1)],
    [radio("car", ["a"])],
  );
  const marks = cellMarks([{ of: one, prefix: "" }], 0);
  assert.deepEqual(said(marks), [[-Infinity, "a"], [2, "failed"], [3, "link-lost"], [4, "b"]]);
  assert.deepEqual(marks.map((mark) => mark.colour === FAILED), [false, true, true, false]);
  const measured = caseOf([], [flow("upload", "here", "server")], [event(7, "wwan0", "changed", "52200194")]);
  assert.deepEqual(said(cellMarks([{ of: measured, prefix: "" }], 0)), [[7, "52200194"]]);
});

test("the first cell of a real modem is named as its events name cells", () => {
  const modem = (technology: string, columns: object, name = "wwan0") => ({ point: 0, run: 0, kind: "modem", name, technology, conn: null, columns: { t: [0, 1, 2], ...columns } });
  const marks = (...series: object[]) => said(cellMarks([{ of: caseOf([], [flow("upload", "here", "server")], [event(7, "wwan0", "changed", "52200194")], series), prefix: "" }], 0));
  const lte = modem("lte", { cell_id: [null, 52200193, 52200194], pci: [null, 17, 18] });
  assert.deepEqual(marks(lte), [[-Infinity, "52200193"], [7, "52200194"]]);
  assert.deepEqual(marks(modem("lte", { pci: [17, 18, 18] })), [[-Infinity, "PCI 17"], [7, "52200194"]]);
  assert.deepEqual(marks(lte, modem("nr", { pci: [900, 900, 900] })), [[-Infinity, "52200193 and PCI 900"], [7, "52200194"]]);
  assert.deepEqual(marks(modem("lte", { rsrp_dbm: [-90, -91, -92] })), [[7, "52200194"]]);
  assert.deepEqual(marks(lte, modem("lte", { cell_id: [5, 5, 5] }, "wwan1")), [[7, "wwan0: 52200194"]]);
});

test("marks are of the UEs at which the flows that are drawn end, with their names if there are several", () => {
  const moves = [event(1, "car", "connected", "b"), event(2, "bus", "connected", "c")];
  const one = caseOf(["car", "bus"], [flow("to car", "server", "car"), flow("from bus", "bus", "server"), flow("wired", "server", "pc")], moves);
  const marks = (filter: string) => said(cellMarks([{ of: one, prefix: "" }], 0, filter));
  assert.deepEqual(marks("car"), [[1, "b"]]);
  assert.deepEqual(marks("bus"), [[2, "c"]]);
  assert.deepEqual(marks(""), [[1, "car: b"], [2, "bus: c"]]);
  assert.deepEqual(marks("wired"), [[1, "car: b"], [2, "bus: c"]]);
  assert.deepEqual(said(marksOf(one, 0, ["bus"])), [[2, "c"]]);
});

test("of two cases, what both have is marked once, and what one has says which", () => {
  const of = (...mobility: object[]) => caseOf(["car"], [flow("download", "server", "car")], mobility);
  const [a, b] = [of(event(1, "car", "connected", "b"), event(2, "car", "connected", "c")), of(event(1, "car", "connected", "b"), event(3, "car", "connected", "c"))];
  assert.deepEqual(said(cellMarks([{ of: a, prefix: "A " }, { of: b, prefix: "B " }], 0)), [[1, "b"], [2, "A c"], [3, "B c"]]);
});

test("what was changed from outside is marked, and the end of an outage", () => {
  const given = (t_s: number, command: string, subject: string, value: string, until_s: number | null = null) => ({ point: 0, run: 0, t_s, command, subject, value, until_s });
  const one = changed([given(1, "outage", "", "10 s", 11), given(12, "rate", "s1", "off"), { ...given(13, "loss", "s1", "0.01"), run: 1 }]);
  const marks = cellMarks([{ of: one, prefix: "" }], 0);
  assert.deepEqual(said(marks), [[1, "outage 10 s"], [11, "outage ends"], [12, "rate s1 off"]]);
  assert.ok(marks.every((mark) => mark.colour === COMMAND_COLOUR));
});
