// The page's state: the data, which may grow, and the view, which the reader chooses. Views read it through selectors,
// change it through actions and subscribe to the parts that they draw.

import { casesOf, comparable, namesOf, type Case, type Column, type Data, type Gone, type Result, type Series } from "./data";
import { decode, encode, LONGEST, USUAL_CHOICE, type Choice, type View } from "./location";

/** The data with what follows from it. */
export interface DataSlice {
  readonly content: Data;
  /** Titles of the results. */
  readonly names: string[];
  readonly cases: Case[];
  /** Cases that are compared with each other. */
  readonly groups: Case[][];
}

export interface State {
  readonly data: DataSlice;
  readonly view: View;
}

/** Returns the next state; never changes the one that it is given. */
export type Action = (state: State) => State;

/**
 * Entries to add to a result. `meta` and `timing` replace what was known; so do a point's summary, a row of a flow, link or UE,
 * and a distribution.
 */
export interface Growth extends Partial<Result> {
  /** Index of the result; the first unused one, with `meta`, `timing` and `summary`, begins a new result. */
  index: number;
  /** Flows and UEs that leave the page. */
  gone?: Gone[];
}

/** Events that the page keeps. */
const MOST_EVENTS = 1_000;

/** Data to add at once. */
export interface Batch extends Partial<Omit<Data, "results">> {
  results?: Growth[];
}

interface Subscription {
  select: (state: State) => readonly unknown[];
  listener: (state: State) => void;
}

export class Store {
  #state: State;
  readonly #subscriptions = new Set<Subscription>();

  constructor(content: Data) {
    const data = sliceOf(content);
    this.#state = { data, view: usualView(data) };
  }

  get state(): State {
    return this.#state;
  }

  /** Applies `actions` in order and notifies each subscriber at most once. */
  dispatch(...actions: Action[]): void {
    const before = this.#state;
    this.#state = actions.reduce((state, action) => action(state), before);
    const after = this.#state;
    for (const { select, listener } of [...this.#subscriptions]) {
      const [old, now] = [select(before), select(after)];
      if (now.length !== old.length || now.some((value, i) => !Object.is(value, old[i]))) listener(after);
    }
  }

  /** Calls `listener` after each dispatch that changes one of the values that `select` returns; returns how to stop it. */
  subscribe(select: Subscription["select"], listener: Subscription["listener"]): () => void {
    const subscription = { select, listener };
    this.#subscriptions.add(subscription);
    return () => void this.#subscriptions.delete(subscription);
  }
}

function sliceOf(content: Data): DataSlice {
  const cases = casesOf(content);
  return { content, names: namesOf(content), cases, groups: comparable(cases, content.reproduction.length > 0) };
}

/** The view of a page whose address asks for nothing: with two comparable results, the second beside the first. */
export function usualView({ content, cases, groups }: DataSlice): View {
  const beside = content.results.length > 1 && groups.length === 1 && content.reproduction.length === 0;
  const second = beside ? cases.findIndex((one) => one.result === content.results[1]) : -1;
  return { first: 0, second, run: 0, filter: "", ue: "", logRtt: false, at: "", comparisons: {} };
}

// Selectors.

/** The chosen case and the one beside it. */
export function chosen({ data, view }: State): Case[] {
  return [view.first, view.second].flatMap((i) => data.cases[i] ?? []);
}

/** The largest number of runs of a chosen case. */
export function runsOf(state: State): number {
  return Math.max(...chosen(state).map((one) => one.result.meta.runs), 1);
}

export function choiceOf({ view }: State, comparison: number): Choice {
  return view.comparisons[comparison] ?? USUAL_CHOICE;
}

/** What a link to this view has after `#`. */
export function linkOf({ data, view }: State): string {
  return encode(view, usualView(data));
}

// Actions.

const changeView = (change: Partial<View>): Action => (state) => ({ ...state, view: { ...state.view, ...change } });

export const pickCase = (first: number): Action => (state) => {
  const second = state.view.second === first ? -1 : state.view.second;
  return changeView({ first, second, run: 0, at: "" })(state);
};
export const putBeside = (second: number): Action => changeView({ second });
export const pickRun = (run: number): Action => changeView({ run });
export const filterFlows = (filter: string): Action => changeView({ filter: filter.slice(0, LONGEST) });
export const pickUe = (ue: string): Action => changeView({ ue });
export const toggleLogRtt: Action = (state) => changeView({ logRtt: !state.view.logRtt })(state);
export const moveTo = (at: string): Action => changeView({ at });
export const choose = (comparison: number, change: Partial<Choice>): Action => (state) =>
  changeView({ comparisons: { ...state.view.comparisons, [comparison]: { ...choiceOf(state, comparison), ...change } } })(state);

/** Takes the view that a link asks for; ignores what does not exist here. */
export const restore = (hash: string): Action => (state) => {
  const { cases, groups } = state.data;
  const runs = (first: number): number => cases[first]?.result.meta.runs ?? 1;
  return { ...state, view: decode(hash, usualView(state.data), { cases: cases.length, comparisons: groups.length, runs }) };
};

/** Adds data. The chosen cases stay chosen, wherever new cases appear. */
export const append = (...batches: Batch[]): Action => (state) => {
  if (batches.length === 0) return state;
  const data = sliceOf(batches.reduce(grown, state.data.content));
  const place = (i: number): number => {
    const old = state.data.cases[i];
    if (old === undefined) return i;
    const result = data.content.results[state.data.content.results.indexOf(old.result)];
    return data.cases.findIndex((one) => one.result === result && one.point === old.point);
  };
  return { data, view: { ...state.view, first: place(state.view.first), second: place(state.view.second) } };
};

/** Takes all data anew, as after a restart of who sends it. The view stays as far as it exists. */
export const replace = (content: Data): Action => (state) => {
  const next = { ...state, data: sliceOf(content) };
  return restore(linkOf(state))(next);
};

function grown(data: Data, batch: Batch): Data {
  const results = [...data.results];
  const live = batch.live ?? data.live;
  for (const { index, ...growth } of batch.results ?? []) {
    const result = results[index];
    if (result !== undefined) results[index] = grownResult(result, growth, live?.points);
    else if (index === results.length && growth.meta !== undefined && growth.timing !== undefined && growth.summary !== undefined)
      results.push({ flows: [], links: [], ues: [], mobility: [], commands: [], series: [], ...(growth as Pick<Result, "meta" | "timing" | "summary">) });
  }
  return {
    ...(live !== undefined && { live, events: [...(data.events ?? []), ...(batch.events ?? [])].slice(-MOST_EVENTS) }),
    shown: batch.shown ?? data.shown,
    reproduction: [...data.reproduction, ...(batch.reproduction ?? [])],
    figures: [...data.figures, ...(batch.figures ?? [])],
    results,
  };
}

function grownResult(result: Result, { gone = [], ...growth }: Partial<Result> & { gone?: Gone[] }, points = Infinity): Result {
  const summaries = new Map(result.summary.points.map((point) => [point.point, point]));
  for (const point of growth.summary?.points ?? []) summaries.set(point.point, point);
  const left = new Set(gone.map(({ name, conn }) => `${name}\u0000${conn}`));
  const stays = ({ name, conn }: { name: string; conn: number | null }): boolean => !left.has(`${name}\u0000${conn}`);
  const flows = left.size === 0 ? result.flows : result.flows.filter(({ flow, conn }) => stays({ name: flow, conn }));
  const series = left.size === 0 ? result.series : result.series.filter((one) => !LEAVING_KINDS.has(one.kind) || stays(one));
  const ues = left.size === 0 ? result.ues : result.ues.filter(({ ue }) => stays({ name: ue, conn: null }));
  return {
    meta: growth.meta ?? result.meta,
    timing: growth.timing ?? result.timing,
    summary: { points: [...summaries.values()] },
    flows: withRows(flows, growth.flows, (row) => `${row.point} ${row.run} ${row.conn} ${row.flow}`),
    links: withRows(result.links, growth.links, (row) => `${row.point} ${row.run} ${row.link}`),
    ues: withRows(ues, growth.ues, (row) => `${row.point} ${row.run} ${row.direction} ${row.ue}`),
    mobility: [...result.mobility, ...(growth.mobility ?? [])],
    commands: [...result.commands, ...(growth.commands ?? [])],
    series: withSeries(series, growth.series ?? [], points),
  };
}

/** The kinds of series that flows and UEs take with them. */
const LEAVING_KINDS: ReadonlySet<string> = new Set(["goodput", "samples", "rtts", "owds", "proxy", "radio"]);

/** Puts each of `more` in the place of the row with the same key, or at the end. */
function withRows<R>(rows: R[], more: R[] = [], keyOf: (row: R) => string): R[] {
  if (more.length === 0) return rows;
  const all = new Map(rows.map((row) => [keyOf(row), row]));
  for (const row of more) all.set(keyOf(row), row);
  return [...all.values()];
}

/** Extends the series of the same names, and adds the others; replaces distributions. A series keeps at most `2 * points` points. */
function withSeries(series: Series[], more: Series[], points: number): Series[] {
  if (more.length === 0) return series;
  const keyOf = (one: Series): string => [one.point, one.run, one.kind, one.name, one.conn, one.technology].join("\u0000");
  const all = [...series];
  const places = new Map(all.map((one, i) => [keyOf(one), i]));
  for (const one of more) {
    const at = places.get(keyOf(one));
    if (at === undefined) places.set(keyOf(one), all.push(one) - 1);
    else all[at] = "x" in one.columns ? one : bounded(extended(all[at]!, one), points);
  }
  return all;
}

/** Thins the older half of `series` until it has at most `2 * points` points. */
function bounded(series: Series, points: number): Series {
  let { columns } = series;
  for (let rows = lengthOf(series); rows > 2 * points; rows = lengthOf({ ...series, columns })) {
    const half = Math.floor(rows / 2);
    columns = Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, [...thinned(values.slice(0, half), half / 2), ...values.slice(half)]]));
  }
  return columns === series.columns ? series : { ...series, columns };
}

/** Keeps the smallest and the largest value of each group of neighbours, in their order: at most `points` values, as the report does. */
export function thinned(column: Column, points: number): Column {
  const groups = Math.max(Math.floor(points / 2), 1);
  if (column.length <= groups * 2) return column;
  const kept: Column = [];
  for (let group = 0; group < groups; group++) {
    const [from, to] = [Math.floor((group * column.length) / groups), Math.floor(((group + 1) * column.length) / groups)];
    let [low, high] = [-1, -1];
    for (let i = from; i < to; i++) {
      const value = column[i];
      if (value === null || value === undefined) continue;
      if (low < 0 || value < column[low]!) low = i;
      if (high < 0 || value >= column[high]!) high = i;
    }
    kept.push(...(low < 0 ? [null, null] : [column[Math.min(low, high)]!, column[Math.max(low, high)]!]));
  }
  return kept;
}

/** `series` with the columns of `more` below its own; a column that one of them lacks has no values there. */
function extended(series: Series, more: Series): Series {
  const [before, after] = [lengthOf(series), lengthOf(more)];
  const names = new Set([...Object.keys(series.columns), ...Object.keys(more.columns)]);
  const none = (n: number): null[] => Array<null>(n).fill(null);
  const columns = [...names].map((name): [string, Column] => [name, [...(series.columns[name] ?? none(before)), ...(more.columns[name] ?? none(after))]]);
  return { ...series, ...more, columns: Object.fromEntries(columns) };
}

function lengthOf(series: Series): number {
  return Math.max(...Object.values(series.columns).map((column) => column.length), 0);
}
