// The report page: the scenario, the results and their course over time.

import { campaign } from "./campaign";
import { captureNote } from "./captures";
import { comparison, withInterval, type Chooser } from "./compare";
import {
  column,
  datagramFlows,
  flowOf,
  rowsOf,
  seriesOf,
  told,
  type Case,
  type Data,
  type Kind,
  type FlowSummary,
  type Limited,
  type PointSummary,
  type Result,
  type Row,
  type Series,
  titleOf,
  type Stat,
} from "./data";
import { h, select, sortable, type TableColumn } from "./dom";
import { keptTime, notValid } from "./emulation";
import { factsOf } from "./facts";
import { goodputAgainstRtt, rttBoxes, stackedInFlight } from "./flows";
import { bytes, count, number, percent, rounded, seconds, text } from "./format";
import { FLOW_FIGURES } from "./generated/figures";
import { follow, liveBar, liveSections } from "./live";
import { slug, type View } from "./location";
import { cellMarks, COMMAND_COLOUR, commandText } from "./marks";
import { measuredSpan, measurement } from "./measurement";
import { FAILED } from "./palette";
import { distributionLine, drawAll, linePlot, lineOf, PlotHost, resizePlots, type Line, type Look, type Mark } from "./plots";
import { lookOf, plotGrid, radio, type Shown } from "./radio";
import { keepPlace, whenIdle } from "./place";
import { reproduction } from "./reproduction";
import { sequenceLines } from "./sequence";
import {
  choiceOf,
  choose,
  chosen as chosenOf,
  filterFlows,
  linkOf,
  moveTo,
  pickCase,
  pickRun,
  pickUe,
  putBeside,
  restore,
  runsOf,
  Store,
  toggleLogRtt,
  type DataSlice,
} from "./store";
// After the plots, so that it overrides the plot library's own style.
import "./style.css";

/** Maximum number of lines in a plot, so that readers can tell them apart. */
const MOST_LINES = 14;
/** Number of flows above which slow-start thresholds are left out. */
const MOST_THRESHOLDS = 3;
/** Titles that fit into a heading. */
const MOST_TITLES = 3;
/** Flows that are named in a sentence. */
const MOST_NAMES = 3;
/** Flows whose completion times get a card. */
const MOST_CARDS = 2;
/** Maximum number of links whose capacity is drawn behind the goodput: the busiest one and those about as busy. */
const MOST_CAPACITIES = 2;
const ABOUT_AS_BUSY = 0.8;
/** Share of the carrier below which a UE's rate is a poor estimate of the carrier's capacity. */
const LEAST_SHARE = 0.05;
/** Number of marks above which narrow plots have none at first. */
const MANY_MARKS = 50;
const CAPACITY_COLOUR = "#8c96a5";
const LIMITS: [keyof Limited, string][] = [
  ["app", "application"],
  ["cwnd", "congestion window"],
  ["rwnd", "receive window"],
  ["pacing", "pacing"],
  ["sndbuf", "send buffer"],
  ["other", "other"],
];

const store = new Store(JSON.parse(document.getElementById("data")!.textContent!) as Data);
const app = document.getElementById("app")!;

/** Writes the view into the page's address, so that it can be passed on. */
function updateAddress(): void {
  const hash = linkOf(store.state);
  try {
    history.replaceState(null, "", hash === "" ? location.pathname + location.search : `#${hash}`);
  } catch {
    // Some browsers keep the address of a local file as it is.
  }
}

function render(): void {
  const { content, names, cases, groups } = store.state.data;
  document.title = `${names.length === 0 ? "Reproduction" : names.join(" | ")} – Ranway`;
  app.replaceChildren(
    header(store.state.data),
    ...liveSections(content),
    ...(content.reproduction.length > 0 ? [reproduction(content.reproduction, content.figures)] : []),
    ...content.results.flatMap(campaign),
    ...groups.flatMap((group, i) => (group.length > 1 ? [comparison(group, comparisonTitle(group[0]!), chooserOf(i))] : [])),
    ...(cases.length > 0
      ? [
          controls(),
          ...(chosen().length > 1 ? [legend()] : []),
          cards(),
          details(),
          ...measurement(shown(), view().run),
          ...radio(shown(), view().run, view().ue, (ue) => store.dispatch(pickUe(ue))),
          h("section", {}, ...tables()),
          ...captureNote(content.results),
          footer(),
        ]
      : []),
  );
  anchors();
}

/** Gives each heading and figure an id and a link. */
function anchors(): void {
  const taken = new Set<string>(["app", "data", "case", "radio", "measurement"]);
  for (const one of app.querySelectorAll<HTMLElement>("h2, h3.name, figcaption")) {
    const title = one.tagName === "FIGCAPTION" ? (one.querySelector("b") ?? one) : one;
    const target = one.tagName === "FIGCAPTION" ? one.parentElement! : one;
    const id = slug(title.textContent ?? "", taken);
    if (target.id === "") target.id = id;
    const link = h("a", { class: "anchor", href: `#at=${target.id}`, title: "Link to this part and the current selection", "aria-label": "Link to this" }, "#");
    link.addEventListener("click", (event) => {
      event.preventDefault();
      store.dispatch(moveTo(target.id));
      target.scrollIntoView({ behavior: "smooth" });
    });
    title.append(link);
  }
}

/** Draws the page anew where the reader is. */
function redraw(): void {
  keepPlace(app, () => PlotHost.redraw(render));
}

/** Draws the page anew for new data, at times that do not disturb the reader. */
const redrawSoon = whenIdle(redraw);

function pick(i: number): void {
  store.dispatch(pickCase(i));
  document.getElementById("case")?.scrollIntoView({ behavior: "smooth" });
}

/** The choices in comparison `i`, which draws its own changes. */
function chooserOf(i: number): Chooser {
  return {
    choice: () => choiceOf(store.state, i),
    choose: (change) => store.dispatch(choose(i, change)),
    pick: (one) => pick(store.state.data.cases.indexOf(one)),
  };
}

const view = (): View => store.state.view;
const chosen = (): Case[] => chosenOf(store.state);

function comparisonTitle(first: Case): string {
  return store.state.data.groups.length > 1 ? `Comparison: ${titleOf(first.result)}` : "Comparison";
}

function header({ content: data, names: titles }: DataSlice): HTMLElement {
  const theme = h("button", { type: "button", title: "Switch between light and dark" }, "◐ Theme");
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset["theme"] ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    root.dataset["theme"] = dark === "dark" ? "light" : "dark";
    redraw();
  });
  const print = h("button", { type: "button" }, "Print");
  print.addEventListener("click", () => window.print());
  if (data.live !== undefined) {
    return h("header", {}, h("div", { class: "bar" }, h("span", { class: "brand" }, "ranway"), h("span", { class: "grow" }), theme, print), h("h1", {}, titles.join(" · ")), liveBar(data.live), scenarioOf(data.results[0]!));
  }
  const facts = data.results.map(({ timing }, i) => {
    const list = factsOf(data.results[i]!);
    return h(
      "div",
      { class: "facts" },
      titles.length > 1 && h("strong", {}, titles[i]!),
      timing.lateness !== undefined && keptTime(timing.lateness),
      h("dl", {}, ...list.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value)))),
      scenarioOf(data.results[i]!),
    );
  });
  return h(
    "header",
    {},
    h("div", { class: "bar" }, h("span", { class: "brand" }, "ranway"), h("span", { class: "grow" }), theme, print),
    h("h1", {}, titles.length === 0 ? "Reproduction" : titles.length > MOST_TITLES ? `${titles.length} results` : titles.join(" · ")),
    ...data.results.flatMap(({ timing }, i) => (timing.lateness?.valid === false ? [notValid(timing.lateness, titles.length > 1 ? titles[i]! : "")] : [])),
    ...(facts.length > MOST_TITLES ? [h("details", {}, h("summary", {}, "About the results"), ...facts)] : facts),
  );
}

function scenarioOf({ meta }: Result): HTMLElement | false {
  return meta.scenario !== null && h("details", {}, h("summary", {}, "Scenario"), h("pre", { tabindex: "0" }, JSON.stringify(meta.scenario, null, 2)));
}

function controls(): HTMLElement {
  const { cases } = store.state.data;
  const options = cases.map((one, i) => [String(i), one.label] as const);
  const runs = runsOf(store.state);
  const filter = h("input", { type: "search", placeholder: "all", value: view().filter });
  filter.addEventListener("change", () => store.dispatch(filterFlows(filter.value)));
  return h(
    "nav",
    { class: "controls sticky", id: "case" },
    cases.length > 1 && select("Case", options, String(view().first), (value) => pick(Number(value))),
    cases.length > 1 &&
      select("beside", [["-1", "nothing"], ...options], String(view().second), (value) =>
        store.dispatch(putBeside(Number(value))),
      ),
    runs > 1 &&
      select(
        "Run",
        Array.from({ length: runs }, (_, i) => [String(i), `${i + 1} of ${runs}`] as const),
        String(view().run),
        (value) => store.dispatch(pickRun(Number(value))),
      ),
    h("label", { class: "field" }, h("span", {}, "Flows"), filter),
  );
}

/** Explains the labels A and B. */
function legend(): HTMLElement {
  return h(
    "div",
    { class: "cases" },
    ...chosen().map((one, i) => h("div", {}, h("b", {}, prefix(i).trim()), ` ${one.label}${i > 0 ? " (dashed lines)" : ""}`)),
  );
}

function cards(): HTMLElement {
  type Card = [name: string, unit: string, of: (p: PointSummary) => Stat | null, show: (x: number) => string];
  const flows = chosen().flatMap((one) => one.summary.flows.filter((flow) => flow.completion_p50_s !== null).map((flow) => flow.flow));
  flows.splice(0, flows.length, ...[...new Set(flows)].slice(0, MOST_CARDS));
  const measured = (cards: Card[]): Card[] => cards.filter(([, , of]) => chosen().some((one) => of(one.summary) !== null));
  const list: Card[] = [
    ["Goodput, all flows", "Mbit/s", (p) => p.goodput_mbps, number],
    ...measured([
      ["RTT, median", "ms", (p) => p.rtt_p50_ms, number],
      ["RTT, 95th percentile", "ms", (p) => p.rtt_p95_ms, number],
      ["Retransmissions", "", (p) => (p.flows.some((flow) => flow.transport === "tcp") ? p.retransmission_rate : null), percent],
    ]),
    ...(chosen().some((one) => busiest(one.summary) !== null) ? [["Utilisation, busiest link", "", busiest, percent] as Card] : []),
    ...(chosen().some((one) => one.summary.jain !== null) ? [["Fairness (Jain)", "", (p: PointSummary) => p.jain, number] as Card] : []),
    ...measured(
      datagramFlows(chosen(), MOST_CARDS).flatMap((name): Card[] => {
        const own = (p: PointSummary): FlowSummary | undefined => p.flows.find((one) => one.flow === name);
        return [
          [`One-way delay, 95th percentile: ${name}`, "ms", (p) => own(p)?.owd_p95_ms ?? null, number],
          [`Lost packets: ${name}`, "", (p) => own(p)?.loss ?? null, percent],
        ];
      }),
    ),
    ...flows.map((flow): Card => [`Completion, median: ${flow}`, "s", (p) => p.flows.find((one) => one.flow === flow)?.completion_p50_s ?? null, number]),
  ];
  const figure = (one: Case, i: number, of: (p: PointSummary) => Stat | null, show: (x: number) => string, unit: string): HTMLElement => {
    const stat = of(one.summary);
    const spread =
      stat === null
        ? ""
        : stat.ci95 === null
          ? "one run"
          : one.summary.identical_runs === true
            ? `${stat.n} identical runs`
            : `± ${rounded(stat.mean, stat.ci95, show === percent).slice(1).join("")} over ${stat.n} runs, ${show(stat.min)} to ${show(stat.max)}`;
    const mean = stat === null ? "–" : stat.ci95 === null || show !== number ? show(stat.mean) : rounded(stat.mean, stat.ci95)[0];
    return h(
      "div",
      { class: i === 0 ? "value" : "value second" },
      chosen().length > 1 && h("span", { class: "who", title: one.label }, prefix(i).trim()),
      h("b", {}, mean, unit !== "" && stat !== null && h("small", {}, ` ${unit}`)),
      h("span", { class: "spread" }, spread),
    );
  };
  return h(
    "section",
    { class: "cards" },
    ...list.map(([name, unit, of, show]) =>
      h("article", {}, h("h3", {}, name), ...chosen().map((one, i) => figure(one, i, of, show, unit))),
    ),
  );
}

function busiest(point: PointSummary): Stat | null {
  const all = point.links.flatMap((link) => link.utilisation ?? []);
  return all.length === 0 ? null : all.reduce((a, b) => (b.mean > a.mean ? b : a));
}

/** Returns the prefix that distinguishes the cases in a legend. */
function prefix(i: number): string {
  return chosen().length > 1 ? (i === 0 ? "A " : "B ") : "";
}

/** Returns the chosen cases with the look of their lines. */
function shown(): Shown[] {
  return chosen().map((of, i) => ({ of, prefix: prefix(i), second: i > 0 }));
}

/** Connections of captures whose sequence numbers are drawn. */
const MOST_SEQUENCES = 4;

interface Picked {
  of: Case;
  series: Series;
  label: string;
  look: Look;
}

/** The chosen cases' series of a kind in the scenario's order, with a look and a label each; of many, the largest. */
function pickSeries(kind: Kind): Picked[] {
  return chosen().flatMap((one, i) => {
    const flows = rowsOf(one.result.flows, one.point, view().run);
    const size = new Map(flows.map((row) => [`${row["flow"]} ${row["conn"]}`, row["bytes"] as number]));
    const sizeOf = (series: Series): number => size.get(`${series.name} ${series.conn}`) ?? 0;
    const names = [...one.summary.flows.map((flow) => flow.flow), ...one.summary.links.map((link) => link.link)];
    const all = wanted(one, kind).sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name) || (a.conn ?? 0) - (b.conn ?? 0));
    const several = (name: string): boolean => all.filter((series) => series.name === name).length > 1;
    const largest = [...all].sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, MOST_LINES / chosen().length);
    return all
      .filter((series) => largest.includes(series))
      .map((series, n) => ({
        of: one,
        series,
        label: `${prefix(i)}${series.name}${several(series.name) ? ` #${series.conn}` : ""}`,
        look: lookOf(n, i > 0),
      }));
  });
}

/** Returns the series of a kind to draw: those of the flows that match the filter, or of the queues that were not always empty. */
function wanted(one: Case, kind: Kind): Series[] {
  // Transfers of all runs form one series.
  const distribution = kind === "rtts" || kind === "owds";
  return seriesOf(one, kind === "transfers" ? 0 : view().run, kind).filter((series) =>
    distribution && series.conn === null ? false : kind === "queue" ? (column(series, "bytes") ?? []).some((bytes) => (bytes ?? 0) > 0) : series.name.includes(view().filter),
  );
}

function leftOut(kind: Kind, drawn: number): string | undefined {
  const all = chosen().reduce((sum, one) => sum + wanted(one, kind).length, 0);
  const idle = kind === "queue" ? chosen().reduce((sum, one) => sum + seriesOf(one, view().run, kind).length, 0) - all : 0;
  if (all > drawn) return `${kind === "queue" ? "the first" : "the largest"} ${drawn} of ${all}`;
  return idle > 0 ? `${idle} empty ${idle === 1 ? "queue is" : "queues are"} not drawn` : undefined;
}

/** Returns a note about the warm-up, if the measurements exclude one. */
function warmUp(): string {
  const rows = chosen().flatMap((one) => rowsOf(one.result.flows, one.point, view().run));
  const cut = rows.filter((row) => (row["start_s"] as number) < (row["measured_from_s"] as number));
  if (cut.length === 0) return "";
  const from = Math.min(...cut.map((row) => row["measured_from_s"] as number));
  return ` The plots over time include the warm-up; means, tables and RTT distributions exclude the time before ${number(from)} s.`;
}

function details(): HTMLElement {
  const goodput = pickSeries("goodput");
  const sampled = pickSeries("samples");
  const of = (only: (flow: FlowSummary) => boolean): Picked[] =>
    sampled.filter((one) => {
      const flow = flowOf(one.of, one.series.name);
      return flow === undefined || only(flow);
    });
  // Packets of real hosts show the bytes in flight but not the congestion window.
  const [flying, windowed] = [of((flow) => flow.transport === "tcp"), of(told)];
  const untold = windowed.length < flying.length ? "unknown for real senders" : undefined;
  const windows = goodput.map(({ series }) => (column(series, "t")?.[1] ?? 0) - (column(series, "t")?.[0] ?? 0));
  const averaged = [Math.max(...windows, 0) > 0 ? `means over ${seconds(Math.max(...windows))}` : "", leftOut("goodput", goodput.length) ?? ""];
  const note = leftOut("samples", sampled.length);
  const over = (which: Picked[], y: string, dash?: number[], suffix = ""): Line[] =>
    which.flatMap(({ series, label, look }) => lineOf(series, "t", y, label + suffix, dash === undefined ? look : { ...look, dash }));
  const marks = cellMarks(shown(), view().run, view().filter);
  const time = { x: "Time, s", time: true, ...measuredSpan(chosen(), view().run), marks };
  const joined = (...parts: (string | undefined)[]): string => parts.filter((part) => part !== undefined && part !== "").join("; ");

  const cdf = (kind: "rtts" | "owds", name: string, x: string, of: string): HTMLElement | null => {
    const picked = pickSeries(kind);
    const lines = picked.flatMap(({ series, label, look }) => distributionLine(series, label, look));
    const figure = linePlot(name, lines, { x, y: `Share of ${of}`, logX: view().logRtt, yMax: 1 }, leftOut(kind, picked.length));
    const log = h("button", { type: "button", class: "toggle", "aria-pressed": String(view().logRtt) }, "log axis");
    log.addEventListener("click", () => store.dispatch(toggleLogRtt));
    figure?.querySelector("figcaption .save")?.before(log);
    return figure;
  };

  const queues = pickSeries("queue");
  const backlog: Line[] = queues.flatMap(({ series, label, look }) => [
    ...lineOf(series, "t", "bytes", label, look),
    ...drops(series, `${label}: drops`, queues.length > 1 ? look.colour : FAILED),
  ]);
  // Of many queues, the longest waits alone: a mean hides the packet that waited through an outage.
  const few = queues.length <= MOST_THRESHOLDS;
  const delay = queues.flatMap(({ series, label, look }) => {
    const longest = lineOf(series, "t", "sojourn_max_ms", few ? `${label}: longest` : label, few ? { ...look, dash: [2, 4] } : look);
    return few || longest.length === 0 ? [...lineOf(series, "t", "sojourn_ms", label, look), ...longest] : longest;
  });
  const transfers = pickSeries("transfers").flatMap(({ series, label, look }) => distributionLine(series, label, look));
  const proxied = pickSeries("proxy");
  const thresholds = windowed.length <= MOST_THRESHOLDS;
  // Only moments with losses have a value.
  const lost = over(sampled, "lost").map((line) => ({ ...line, y: line.y.map((n) => n ?? 0), steps: true }));
  const capacity = capacities();
  // One connection to a plot: the largest ones.
  const sequences = pickSeries("sequence").slice(0, MOST_SEQUENCES);

  return h(
    "section",
    {},
    h("h2", {}, "Over time"),
    h("p", { class: "note screen" }, "Drag to zoom, double-click to reset, click a name to hide or show its line." + marked(marks) + warmUp()),
    ...plotGrid([
      linePlot(
        "Goodput",
        goodput.length === 0 ? [] : [...capacity, ...goodput.flatMap(({ series, label, look }) => lineOf(series, "t", "goodput_mbps", label, look))],
        { ...time, y: "Mbit/s" },
        joined(...averaged, capacity.length > 0 ? "grey: link capacity" : ""),
      ),
      linePlot("One-way delay", over(sampled, "owd_ms"), { ...time, y: "ms" }, joined("mean of the data packets in each sampling interval", note)),
      linePlot("Round-trip time, smoothed", over(sampled, "srtt_ms"), { ...time, y: "ms" }, note),
      linePlot(
        thresholds ? "Congestion window and slow-start threshold" : "Congestion window",
        [...over(windowed, "cwnd_bytes"), ...(thresholds ? over(windowed, "ssthresh_bytes", [2, 4], ": ssthresh") : [])],
        { ...time, y: "bytes" },
        untold ?? note,
      ),
      linePlot("Bytes in flight", over(flying, "in_flight_bytes").filter(isKnown), { ...time, y: "bytes" }, note),
      ...stackedInFlight(shown(), view().run, view().filter, { ...time, y: "bytes" }),
      ...sequences.map(({ series, label }) =>
        linePlot(`Time–sequence: ${label}`, sequenceLines(series), { ...time, y: "Sequence number, MB" }, "strokes: data sent again, overtaken, or selectively acknowledged"),
      ),
      linePlot("Lost packets", lost, { ...time, y: "packets per sampling interval" }, note),
      linePlot("Promised by RAPID", over(proxied, "promised_mbps"), { ...time, y: "Mbit/s" }, leftOut("proxy", proxied.length)),
      linePlot("Held by the proxy", over(proxied, "held_bytes"), { ...time, y: "bytes" }, leftOut("proxy", proxied.length)),
      linePlot("Queue backlog and drops", backlog, { ...time, y: "bytes", right: "Packets dropped" }, leftOut("queue", queues.length)),
      linePlot("Queueing delay", delay, { ...time, y: "ms" }, joined(`${few ? "mean and longest" : "longest"} of the packets that left in each sampling interval`, leftOut("queue", queues.length))),
      cdf("owds", "One-way delay distribution", "One-way delay of data packets, ms", "packets"),
      cdf("rtts", "RTT distribution", "RTT, ms", "samples"),
      // A page that follows a run would draw these anew with each batch.
      store.state.data.content.live === undefined && rttBoxes(shown(), view().filter),
      store.state.data.content.live === undefined && goodputAgainstRtt(shown(), view().run, view().filter),
      linePlot(
        "Completion time of transfers",
        transfers,
        { x: "Completion time, s", y: "Share of transfers", yMax: 1 },
        "all runs together; transfers started in parentheses",
      ),
    ]),
    commands(),
    goodput.length === 0 && h("p", { class: "note" }, "This page has no samples over time for this run: they were not recorded (see record.samples) or did not fit."),
    limits(),
  );
}

/** Returns what was changed from outside while the shown cases ran, as a table. */
function commands(): HTMLElement | false {
  type Of = { of: string; row: Row };
  const rows = shown().flatMap(({ of, prefix }) => rowsOf(of.result.commands, of.point, view().run).map((row): Of => ({ of: prefix.replace(/: $/, ""), row })));
  if (rows.length === 0) return false;
  const at = (head: string, key: string): TableColumn<Of> => ({
    head,
    value: ({ row }) => row[key] as number | null,
    text: ({ row }) => (row[key] === null ? "–" : (row[key] as number).toFixed(3)),
  });
  const columns: TableColumn<Of>[] = [
    ...(shown().length > 1 ? [{ head: "Result", value: ({ of }: Of) => of }] : []),
    at("Time, s", "t_s"),
    { head: "Command", value: ({ row }) => commandText(row) },
    { ...at("Until, s", "until_s"), title: "The end of an outage" },
  ];
  return h("details", { open: "" }, h("summary", {}, `Changes while it ran (${count(rows.length)})`), sortable<Of>(columns, rows, { title: "Changes" }));
}

/** Returns an explanation of the marks, if there are any. */
function marked(marks: Mark[]): string {
  const some = marks.filter((mark) => Number.isFinite(mark.x));
  const [given, cells] = [some.filter((mark) => mark.colour === COMMAND_COLOUR).length, some.filter((mark) => mark.colour !== COMMAND_COLOUR).length];
  const what = [cells > 0 ? "the change to another cell or, in orange, a failed handover or a lost link" : "", given > 0 ? "what was changed from outside, in red" : ""];
  const zoom = some.length > MANY_MARKS ? "; zoom in to see them where they are dense" : "";
  return some.length > 0 ? ` Vertical lines mark ${what.filter((part) => part !== "").join(", and ")}${zoom}.` : "";
}

/** Whether a line is not zero throughout, as what a receiver cannot know of a sender. */
function isKnown(line: Line): boolean {
  return line.y.some((y) => (y ?? 0) > 0);
}

/** Returns the capacities of the busiest links and of the carrier of a single UE. */
function capacities(): Line[] {
  return chosen().flatMap((one, i) => {
    const links = one.summary.links.filter((link) => (link.utilisation?.mean ?? 0) > 0).sort((a, b) => b.utilisation!.mean - a.utilisation!.mean);
    const busy = links.filter((link) => link.utilisation!.mean >= ABOUT_AS_BUSY * links[0]!.utilisation!.mean).slice(0, MOST_CAPACITIES);
    const dash = i > 0 ? { dash: [8, 4] } : {};
    const look = { colour: CAPACITY_COLOUR, ...dash };
    const series = seriesOf(one, view().run, "queue").filter((one) => busy.some((link) => link.link === one.name));
    const ofLinks = series.flatMap((one) => lineOf(one, "t", "capacity_mbps", `${prefix(i)}capacity of ${one.name}`, look));
    const ues = seriesOf(one, view().run, "radio");
    // The flows of a single UE share its carrier; with several UEs, the section on radio shows each one's.
    const carried = ues.length !== 1 ? [] : ues.flatMap((ue) => carrierLine(ue, `${prefix(i)}carrier capacity for ${ue.name}`, look));
    return [...ofLinks, ...carried].map((line): Line => ({ ...line, area: true, steps: true }));
  });
}

/** Estimates a UE's rate with all resource blocks from its rate with the share that it was granted. */
function carrierLine(ue: Series, label: string, look: Look): Line[] {
  const [t, mbps, prbs] = [column(ue, "t"), column(ue, "dl_mbps"), column(ue, "dl_prbs")];
  if (t === undefined || mbps === undefined || prbs === undefined) return [];
  const y = mbps.map((rate, k) => ((prbs[k] ?? 0) >= LEAST_SHARE && rate !== null ? rate / prbs[k]! : undefined));
  const known = t.flatMap((x, k) => (y[k] === undefined ? [] : [[x, y[k]!] as const]));
  return known.length < 2 ? [] : [{ label, x: known.map(([x]) => x), y: known.map(([, y]) => y), ...look }];
}

/** Returns the packets dropped in each sampling interval with drops. */
function drops(series: Series, label: string, hue: string): Line[] {
  const [t, dropped] = [column(series, "t"), column(series, "dropped")];
  if (t === undefined || dropped === undefined) return [];
  const since = dropped.map((now, i) => {
    const n = (now ?? 0) - (i === 0 ? 0 : (dropped[i - 1] ?? 0));
    return n > 0 ? n : null;
  });
  return since.some((n) => n !== null) ? [{ label, x: t, y: since, colour: hue, dots: true }] : [];
}

/** Shows what limited each TCP flow; returns nothing without TCP flows. */
function limits(): HTMLElement | false {
  if (!chosen().some((one) => one.summary.flows.some((flow) => flow.transport === "tcp"))) return false;
  const flows = chosen().map((one) => one.summary.flows.filter((flow) => flow.transport === "tcp" && flow.flow.includes(view().filter)));
  const untold = flows.flat().filter((flow) => flow.limited === null && flow.goodput_mbps !== null);
  const rows = flows.flatMap((flows, i) =>
    flows
      .filter((flow) => flow.limited !== null)
      .slice(0, 40)
      .map((flow) => {
        const parts = LIMITS.map(([key, name]) => {
          const share = flow.limited![key]?.mean ?? 0;
          const part = h("span", { class: `limit ${key}`, title: `${name}: ${percent(share)}` }, share >= 0.06 ? percent(share) : "");
          part.style.flexGrow = String(share);
          return part;
        });
        return h(
          "div",
          { class: "limits" },
          h("span", { class: "who" }, `${prefix(i)}${flow.flow}`, h("small", {}, ` ${flow.cc ?? ""}`)),
          h("div", { class: "stack" }, ...parts),
        );
      }),
  );
  return h(
    "figure",
    { class: "wide" },
    h("figcaption", {}, h("b", {}, "What limited each flow"), h("span", {}, "share of time, mean over the runs")),
    rows.length > 0 && h("div", { class: "legend" }, ...LIMITS.map(([key, name]) => h("span", {}, h("i", { class: `limit ${key}` }), name))),
    ...(rows.length > 0 || untold.length > 0 ? rows : [h("p", { class: "empty" }, "No flow was measured.")]),
    untold.length > 0 && h("p", { class: "note" }, `Unknown for ${named(untold)}: only the senders know, and their state was not observed.`),
  );
}

/** Lists the first names and the number of the others. */
function named(flows: FlowSummary[]): string {
  const first = flows.slice(0, MOST_NAMES).map((flow) => flow.flow);
  return flows.length > first.length ? `${first.join(", ")} and ${flows.length - first.length} more` : first.join(", ");
}

function tables(): (HTMLElement | string)[] {
  const several = chosen().length > 1;
  const rows = (of: "flows" | "links"): Row[] =>
    chosen().flatMap((one, i) => {
      const names = one.summary.flows.map((flow) => flow.flow);
      const place = (row: Row): number => names.indexOf(text(row["flow"]));
      const own = rowsOf(one.result[of], one.point, view().run).map((row) => ({ ...row, case: prefix(i).trim() }));
      return of === "links" ? own : own.sort((a: Row, b: Row) => place(a) - place(b) || (a["conn"] as number) - (b["conn"] as number));
    });
  const num = (head: string, key: string, show: (x: number | null) => string = number, title?: string): TableColumn<Row> => ({
    head,
    value: (row) => (row[key] as number | null | undefined) ?? null,
    text: (row) => show((row[key] as number | null | undefined) ?? null),
    ...(title !== undefined && { title }),
  });
  const str = (head: string, key: string): TableColumn<Row> => ({ head, value: (row) => text(row[key] ?? "") });
  const which = several ? [str("", "case")] : [];
  const timeouts = (row: Row): number | null => (row["cc"] === null ? null : (row["rtos"] as number));
  const dropped = (row: Row): number => ["dropped_overflow", "dropped_control", "dropped_loss"].reduce((sum, key) => sum + (row[key] as number), 0);
  const utilisation = (row: Row): number | null => (row["utilisation"] === 0 && row["bytes_out"] !== 0 ? null : (row["utilisation"] as number));
  const copies = rows("flows").some((row) => row["conn"] !== 0);
  const flows = sortable<Row>(
    [
      ...which,
      str("Flow", "flow"),
      ...(copies ? [num("#", "conn", count, "The copy of the flow")] : []),
      str("Control", "cc"),
      { head: "Path", value: (row) => `${text(row["from"])} → ${text(row["to"])}` },
      num("Delivered", "bytes", bytes),
      num("Goodput", "goodput_mbps", number, "Payload that reached the application, Mbit/s"),
      num("IP, Mbit/s", "throughput_mbps", number, "IP bytes that reached the host, including headers and retransmissions, Mbit/s"),
      num("RTT min", "rtt_min_ms", number, "RTT, minimum, ms"),
      num("p50", "rtt_p50_ms", number, "RTT, median, ms"),
      num("p95", "rtt_p95_ms", number, "RTT, 95th percentile, ms"),
      num("max, ms", "rtt_max_ms", number, "RTT, maximum, ms"),
      num("One-way p50", "owd_p50_ms", number, "One-way delay of data packets, median, ms"),
      num("p95, ms", "owd_p95_ms", number, "One-way delay of data packets, 95th percentile, ms"),
      num("Retrans.", "retransmitted_share", percent, "Retransmitted over sent segments"),
      { head: "RTOs", title: "Retransmission timeouts, if the sender reports them", value: timeouts, text: (row) => count(timeouts(row)) },
      num("Lost", "lost_packets", count, "Packets of the flow lost in the network, in either direction"),
      num("CE", "ce_marks", count, "Packets marked with congestion experienced"),
      ...(rows("flows").some((row) => row["completion_s"] !== null) ? [num("Completion, s", "completion_s", number, "Mean completion time of its transfers, s")] : []),
    ],
    rows("flows").filter((row) => text(row["flow"]).includes(view().filter)),
    { title: "Flows" },
  );
  const links = sortable<Row>(
    [
      ...which,
      str("Link", "link"),
      { head: "Utilisation", title: "None for a link without a rate", value: utilisation, text: (row) => percent(utilisation(row)) },
      num("Carried", "bytes_out", bytes),
      num("Packets in", "packets_in", count),
      { head: "Dropped", value: dropped, text: (row) => count(dropped(row)) },
      num("overflow", "dropped_overflow", count, "Dropped because the queue was full"),
      num("control", "dropped_control", count, "Dropped by the queue discipline's control law"),
      num("loss", "dropped_loss", count, "Lost at random on the link"),
      num("Marked", "marked", count),
      num("Queued p50", "sojourn_p50_ms", number, "Time in the queue, median, ms"),
      num("p95", "sojourn_p95_ms", number, "Time in the queue, 95th percentile, ms"),
      num("p99, ms", "sojourn_p99_ms", number, "Time in the queue, 99th percentile, ms"),
    ],
    rows("links"),
    { title: "Links" },
  );
  const run = runsOf(store.state) > 1 ? `, run ${view().run + 1}` : "";
  return [h("h2", {}, `Flows${run}`), perFlow(), flows, ...(rows("links").length > 0 ? [h("h2", {}, `Links${run}`), links] : [])];
}

/** Shows the means over several runs; for a single run only the completion times, which its rows do not have. */
function perFlow(): HTMLElement | string {
  const rows = chosen().flatMap((one, i) => one.summary.flows.map((flow) => ({ flow, i, runs: one.result.meta.runs })));
  const transfers = rows.some((row) => row.flow.transfers !== null);
  const several = rows.some((row) => row.runs > 1);
  if (!several && !transfers) return "";
  type R = (typeof rows)[number];
  const stat = (head: string, of: (row: R) => Stat | null, show = number): TableColumn<R> => ({
    head,
    value: (row) => of(row)?.mean ?? null,
    text: (row) => withInterval(of(row), show),
  });
  return h(
    "details",
    { open: "" },
    h("summary", {}, several ? "Means over the runs, with 95 % confidence intervals" : "All copies of a flow together"),
    sortable<R>(
      [
        { head: "Flow", value: (row) => `${prefix(row.i)}${row.flow.flow}` },
        { head: "Control", value: (row) => row.flow.cc },
        ...FLOW_FIGURES.filter(({ head, of }) => head !== "" && rows.some((row) => of(row.flow) !== null)).map(({ head, unit, of }) => {
          const title = `${head[0]!.toUpperCase()}${head.slice(1)}`;
          // A share has its unit with each number.
          return unit === "%" ? stat(title, (row) => of(row.flow), percent) : stat(unit === "" ? title : `${title}, ${unit}`, (row) => of(row.flow));
        }),
      ],
      rows.filter((row) => row.flow.flow.includes(view().filter)),
      { title: "Flows, means over the runs" },
    ),
  );
}

function footer(): HTMLElement {
  const { live, shown } = store.state.data.content;
  if (live !== undefined) {
    const kept = `Each series has at most ${count(2 * live.points)} points: of its older half, each group of neighbouring samples keeps its smallest and largest value. Means are renewed every 2 s or less often. 1 Mbit/s is 10⁶ bit/s; goodput counts the data delivered to the application.`;
    return h("footer", {}, h("p", {}, kept));
  }
  const notes = [
    `Each series has at most ${count(shown.points_per_series)} points: each group of neighbouring samples keeps its smallest and largest value, so that no peak is lost.`,
    shown.runs < shown.runs_of ? `It draws ${count(shown.runs)} of ${count(shown.runs_of)} runs, the first ones of each point; means are of all.` : "",
    shown.series < shown.series_of
      ? `To stay below ${number(shown.max_bytes / 1e6)} MB, this page holds ${count(shown.series)} of ${count(shown.series_of)} series, those of the first runs and the largest flows and UEs.`
      : "",
    shown.rows < shown.rows_of ? `It holds ${count(shown.rows)} of ${count(shown.rows_of)} rows of flows, links, UEs and mobility.` : "",
    shown.summaries < shown.summaries_of
      ? `It holds the means of ${count(shown.summaries)} of ${count(shown.summaries_of)} flows, links and UEs, the largest of each point.`
      : "",
    "The Parquet tables beside it hold all data. 1 Mbit/s is 10⁶ bit/s; goodput counts the data delivered to the application.",
  ];
  return h("footer", {}, h("p", {}, notes.filter((note) => note !== "").join(" ")));
}

/** Scrolls to the part named in the address. Plots that are not drawn yet already have their height. */
function goTo(id: string): void {
  if (id !== "") document.getElementById(id)?.scrollIntoView();
}

window.addEventListener("resize", resizePlots);
window.addEventListener("beforeprint", drawAll);
window.addEventListener("hashchange", () => {
  const { comparisons } = view();
  store.dispatch(restore(location.hash));
  // A comparison only redraws itself for changes made in it, not for those of a link.
  if (view().comparisons !== comparisons) redraw();
  goTo(view().at);
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
matchMedia("print").addEventListener("change", ({ matches }) => {
  redraw();
  if (matches) drawAll();
});
store.dispatch(restore(location.hash));
const isLive = store.state.data.content.live !== undefined;
store.subscribe(({ data, view }) => [isLive || data, view.first, view.second, view.run, view.filter, view.ue, view.logRtt], redraw);
if (isLive) store.subscribe(({ data }) => [data], redrawSoon);
store.subscribe(({ view }) => [view], updateAddress);
render();
goTo(view().at);
if (isLive) follow(store);
