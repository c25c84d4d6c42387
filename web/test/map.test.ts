// Where the live map writes the names of cells and UEs.

import assert from "node:assert/strict";
import test from "node:test";
import { labels, type Box } from "../src/map";

const WHOLE: Box = { left: 0, top: 0, right: 350, bottom: 197 };
const apart = (a: Box, b: Box): boolean => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;

test("labels are within the map, and on no marker and no other label", () => {
  // Five cells in a row and UEs close to them, as on a phone.
  const cells = Array.from({ length: 5 }, (_, i) => ({ name: `cell-${i + 1}`, x: 36 + i * 69.5, y: 100 }));
  for (let east = 0; east <= 278; east += 3) {
    const points = [...cells, { name: "car", x: 36 + east, y: 97 }, { name: "a-bus", x: 314 - east, y: 104 }];
    const found = labels(points, WHOLE);
    const boxes = found.map((label) => {
      assert.ok(label !== null, `all have room: ${east}`);
      return label.box;
    });
    for (const [i, box] of boxes.entries()) {
      assert.ok(box.left >= 0 && box.top >= 0 && box.right <= WHOLE.right && box.bottom <= WHOLE.bottom, `${points[i]!.name} is within: ${east}`);
      assert.ok(boxes.every((other, k) => k === i || apart(box, other)), `${points[i]!.name} is on no other: ${east}`);
      for (const { x, y } of points) assert.ok(apart(box, { left: x - 5, top: y - 5, right: x + 5, bottom: y + 5 }), `${points[i]!.name} is on no marker: ${east}`);
    }
  }
});

test("a name without room is left out", () => {
  const crowd = Array.from({ length: 400 }, (_, i) => ({ name: `ue-${i}`, x: 20 + (i % 20) * 16, y: 10 + Math.floor(i / 20) * 9 }));
  const found = labels(crowd, WHOLE);
  assert.ok(found.some((label) => label === null));
  assert.equal(labels([{ name: "x".repeat(60), x: 175, y: 100 }], WHOLE)[0], null);
});
