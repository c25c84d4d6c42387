// The page's store: actions, selectors, subscriptions, batches of data, and links.

import assert from "node:assert/strict";
import test from "node:test";
import type { Data, Result, Series } from "../src/data";
import { append, thinned, replace, choiceOf, choose, chosen, filterFlows, linkOf, moveTo, pickCase, pickRun, pickUe, putBeside, restore, runsOf, Store, toggleLogRtt, type Action } from "../src/store";

const point = (number: number, values: Record<string, unknown> = { loss: number }) => ({ point: number, values, flows: [], links: [], ues: [] });
const result = (title: string, points: number, runs = 3): Result =>
  ({
    meta: { title, version: "0", scenario: {}, points: [], runs, seed: 1 },
    timing: { wall_s: 1, cpu_s: 1, simulated_s: 1, events: 0, packets: 0, threads: 1 },
    summary: { points: Array.from({ length: points }, (_, i) => point(i)) },
    flows: [],
    links: [],
    ues: [],
    mobility: [],
    commands: [],
    series: [],
  }) as unknown as Result;
const shown = { points_per_series: 1500, runs: 1, runs_of: 1, series: 0, series_of: 0, rows: 0, rows_of: 0, summaries: 0, summaries_of: 0, max_bytes: 1 };
const content = (...results: Result[]): Data => ({ shown, reproduction: [], figures: [], results });
const series = (name: string, columns: Series["columns"]): Series => ({ point: 0, run: 0, kind: "goodput", name, conn: 0, columns });

test("an action changes the view only, and leaves the state before as it was", () => {
  const store = new Store(content(result("a", 4)));
  const before = store.state;
  store.dispatch(pickCase(2), pickRun(1), filterFlows("call"), pickUe("ue-1"), toggleLogRtt, moveTo("queueing-delay"));
  assert.deepEqual(store.state.view, { first: 2, second: -1, run: 1, filter: "call", ue: "ue-1", logRtt: true, at: "queueing-delay", comparisons: {} });
  assert.equal(store.state.data, before.data);
  assert.equal(before.view.first, 0);
});

test("another case begins with its first run, and is never beside itself", () => {
  const store = new Store(content(result("a", 4)));
  store.dispatch(putBeside(3), pickRun(2), moveTo("radio"), pickCase(3));
  assert.deepEqual([store.state.view.second, store.state.view.run, store.state.view.at], [-1, 0, ""]);
});

test("selectors return the chosen cases, their runs and the choices of a comparison", () => {
  const store = new Store(content(result("a", 2, 1), result("b", 2, 5)));
  assert.deepEqual(chosen(store.state).map((one) => one.label), ["a: loss = 0", "b: loss = 0"]);
  assert.equal(runsOf(store.state), 5);
  store.dispatch(choose(0, { along: "loss" }), choose(0, { distribution: "Goodput" }));
  assert.deepEqual(choiceOf(store.state, 0), { metrics: ["", ""], along: "loss", distribution: "Goodput" });
  assert.deepEqual(choiceOf(store.state, 1), { metrics: ["", ""], along: "", distribution: "" });
});

test("a subscriber hears once of each dispatch that changes its part, until it stops", () => {
  const store = new Store(content(result("a", 4)));
  const heard: number[] = [];
  const stop = store.subscribe(({ view }) => [view.first, view.run], ({ view }) => heard.push(view.first));
  store.dispatch(pickCase(1), pickRun(1));
  store.dispatch(filterFlows("x"));
  store.dispatch(pickCase(1), pickRun(1));
  store.dispatch(pickCase(2));
  stop();
  store.dispatch(pickCase(3));
  assert.deepEqual(heard, [1, 2]);
});

test("batches extend series, rows and points, with one notification and without touching the view", () => {
  const store = new Store(content(result("a", 1)));
  let notified = 0;
  store.subscribe(({ data }) => [data], () => (notified += 1));
  store.dispatch(filterFlows("down"));
  const { view } = store.state;
  const before = store.state.data.content;
  store.dispatch(
    append(
      { results: [{ index: 0, series: [series("download", { t: [0, 1], y: [5, 6] }), series("call", { t: [0] })] }] },
      { results: [{ index: 0, series: [series("download", { t: [2], z: [7] })], summary: { points: [point(1)] } as unknown as Result["summary"] }], shown: { ...shown, series: 2 } },
    ),
  );
  assert.equal(notified, 1);
  assert.deepEqual(store.state.view, view);
  assert.deepEqual(before.results[0]!.series, [], "the data before is left as it was");
  const [download, call] = store.state.data.content.results[0]!.series;
  assert.deepEqual(download!.columns, { t: [0, 1, 2], y: [5, 6, null], z: [null, null, 7] });
  assert.deepEqual(call!.columns, { t: [0] });
  assert.equal(store.state.data.cases.length, 2);
  assert.equal(store.state.data.content.shown.series, 2);
});

test("a new result is added, the chosen case stays chosen, and growth of a result that does not exist is ignored", () => {
  const store = new Store(content(result("a", 1), result("b", 1)));
  store.dispatch(pickCase(1), append({ results: [{ index: 0, summary: { points: [point(1)] } as unknown as Result["summary"] }] }));
  assert.equal(store.state.view.first, 2);
  assert.equal(chosen(store.state)[0]!.result.meta.title, "b");
  const { timing, meta, summary } = result("c", 1);
  store.dispatch(append({ results: [{ index: 2, meta, timing, summary }, { index: 9, meta }] }));
  assert.deepEqual(store.state.data.names, ["a", "b", "c"]);
  const { state } = store;
  store.dispatch(append());
  assert.equal(store.state, state);
});

const live = { instance: "one", command: "run", ended: false, t_s: 1, progress: null, places: null, controls: null, report: null, points: 10, left_out: 0, counters: [] };

test("rows of a flow and distributions are replaced, flows that are gone leave, and events are bounded", () => {
  const store = new Store({ ...content(result("a", 1)), live, events: [], last: "one-1" });
  const row = (flow: string, bytes: number) => ({ point: 0, run: 0, flow, conn: 0, bytes }) as unknown as Result["flows"][number];
  const rtts = (share: number[]): Series => ({ ...series("download", { x: [1, 2], share }), kind: "rtts" });
  store.dispatch(append({ live, results: [{ index: 0, flows: [row("download", 1), row("call", 2)], series: [rtts([0.5, 1]), series("call", { t: [1], goodput_mbps: [2] })] }] }));
  store.dispatch(append({ live: { ...live, t_s: 2 }, results: [{ index: 0, flows: [row("download", 3)], series: [rtts([0.2, 1])] }] }));
  const now = (): Result => store.state.data.content.results[0]!;
  assert.deepEqual(now().flows.map(({ flow, bytes }) => [flow, bytes]), [["download", 3], ["call", 2]]);
  assert.deepEqual(now().series[0]!.columns["share"], [0.2, 1]);
  assert.equal(store.state.data.content.live!.t_s, 2);
  store.dispatch(append({ live, results: [{ index: 0, gone: [{ name: "call", conn: 0 }] }], events: Array.from({ length: 3000 }, (_, i) => ({ t_s: i, text: "x" })) }));
  assert.deepEqual([now().flows.length, now().series.map(({ kind }) => kind)], [1, ["rtts"]]);
  const events = store.state.data.content.events!;
  assert.deepEqual([events.length, events.at(-1)!.t_s], [1000, 2999]);
  assert.equal(store.state.data.content.last, undefined, "what follows is not what followed then");
});

test("a UE that is gone leaves with its rows and series, and its cell stays", () => {
  const store = new Store({ ...content(result("a", 1)), live, events: [] });
  const row = (ue: string) => ({ point: 0, run: 0, ue, direction: "downlink" }) as unknown as Result["ues"][number];
  const of = (kind: Series["kind"], name: string): Series => ({ ...series(name, { t: [1], dl_prbs: [0.5] }), kind, conn: null });
  store.dispatch(append({ live, results: [{ index: 0, ues: [row("one"), row("two")], series: [of("radio", "one"), of("radio", "two"), of("cell", "one")] }] }));
  store.dispatch(append({ live, results: [{ index: 0, gone: [{ name: "one", conn: null }] }] }));
  const now = store.state.data.content.results[0]!;
  assert.deepEqual(now.ues.map(({ ue }) => ue), ["two"]);
  assert.deepEqual(now.series.filter(({ kind }) => kind === "radio" || kind === "cell").map(({ kind, name }) => [kind, name]), [["radio", "two"], ["cell", "one"]]);
});

test("a series that grows keeps its peaks, its newest values and a bounded length", () => {
  const store = new Store({ ...content(result("a", 1)), live, events: [] });
  for (let t = 0; t < 500; t++) store.dispatch(append({ live, results: [{ index: 0, series: [series("download", { t: [t], y: [t === 123 ? 1e6 : 1] })] }] }));
  const { t, y } = store.state.data.content.results[0]!.series[0]!.columns as { t: number[]; y: number[] };
  assert.ok(t.length <= 20 && t.length > 8, `${t.length} points`);
  assert.deepEqual([t.length === y.length, y.includes(1e6), t.at(-1), t[0]], [true, true, 499, 0]);
  assert.deepEqual(t, [...t].sort((a, b) => a - b));
  assert.deepEqual(thinned([3, 1, 2, 9, 5, 4, null, null], 4), [1, 9, 5, 4]);
});

test("data that begins anew keeps the view as far as it exists", () => {
  const store = new Store({ ...content(result("a", 3)), live });
  store.dispatch(pickCase(2), filterFlows("call"));
  store.dispatch(replace({ ...content(result("b", 1)), live: { ...live, instance: "two" } }));
  assert.deepEqual([store.state.view.first, store.state.view.filter, store.state.data.names], [0, "call", ["b"]]);
});

/** A generator of numbers below `n` (mulberry32), so that a failure can be repeated. */
function generator(seed: number): (n: number) => number {
  return (n) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
  };
}

const LETTERS = [..."ab &=#%+;/?é\u202f😀\u0000<>\"'1.:"];

test("a link restores any view", () => {
  for (const data of [content(result("a", 5)), content(result("a", 2), result("b", 3)), content(result("a", 1, 1))]) {
    for (let seed = 0; seed < 500; seed++) {
      const below = generator(seed);
      const text = (): string => Array.from({ length: below(12) }, () => LETTERS[below(LETTERS.length)]).join("");
      const cases = data.results.reduce((sum, { summary }) => sum + summary.points.length, 0);
      const actions: Action[] = [pickCase(below(cases)), pickRun(below(data.results[0]!.meta.runs)), filterFlows(text()), pickUe(text()), moveTo(text())];
      if (below(2) === 1) actions.push(toggleLogRtt);
      if (below(2) === 1) actions.push(choose(0, { metrics: [text(), text()], along: text() }), choose(0, { distribution: `x${text()}` }));
      const [sender, receiver] = [new Store(data), new Store(data)];
      sender.dispatch(...actions);
      const beside = below(cases + 1) - 1;
      if (beside !== sender.state.view.first) sender.dispatch(putBeside(beside));
      receiver.dispatch(restore(`#${linkOf(sender.state)}`));
      assert.deepEqual(receiver.state.view, sender.state.view, `seed ${seed}: ${linkOf(sender.state)}`);
    }
  }
});

test("a link that asks for what does not exist, or is hostile, is ignored", () => {
  const store = new Store(content(result("a", 3)));
  const { view } = store.state;
  const links = ["#", "#point=99&run=7&beside=-4", "#point=1e1&run=NaN", "#%E0%A4%A&&&==", "#__proto__=1&constructor.along=x&__proto__.along=x", "#7.along=loss&-1.along=x&0.5.along=x", "#log=<script>"];
  for (const link of links) {
    store.dispatch(restore(link));
    assert.deepEqual(store.state.view, view, link);
  }
  store.dispatch(restore(`#0.along=${"x".repeat(1e5)}&ue=${"y".repeat(1e5)}`));
  assert.deepEqual([choiceOf(store.state, 0).along.length, store.state.view.ue.length], [200, 200]);
  assert.equal(({} as Record<string, unknown>)["along"], undefined);
});
