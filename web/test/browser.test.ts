// The committed page in a real browser, if there is a Chromium: widths, links to a view, saving. Skipped without one.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

const browser = ["chromium", "chromium-browser", "google-chrome"].find((name) => spawnSync(name, ["--version"]).status === 0);
const WIDTHS = [375, 768, 1024, 1280, 1440];
/** Real pages are seldom ready later than this; virtual time passes as fast as the page allows. */
const BUDGET_MS = 4_000;

const stat = (mean: number) => ({ n: 2, mean, ci95: mean / 10, min: mean, max: mean });
const flow = (name: string, transport: string) => ({
  flow: name,
  transport,
  cc: transport === "tcp" ? "cubic" : null,
  from: "server",
  to: "a-host-with-a-rather-long-name",
  copies: stat(1),
  goodput_mbps: stat(10),
  throughput_mbps: stat(11),
  rtt_p50_ms: transport === "tcp" ? stat(40) : null,
  rtt_p95_ms: transport === "tcp" ? stat(80) : null,
  owd_p50_ms: stat(20),
  owd_p95_ms: stat(60),
  loss: transport === "tcp" ? null : stat(0.02),
  transfers: null,
  transfers_finished: null,
  completion_s: null,
  completion_p50_s: null,
  completion_p95_s: null,
  retransmission_rate: transport === "tcp" ? stat(0.01) : null,
  limited: transport === "tcp" ? { app: stat(0.1), cwnd: stat(0.9), rwnd: stat(0), pacing: stat(0), sndbuf: null, other: stat(0) } : null,
});
const t = Array.from({ length: 50 }, (_, i) => i / 10);
const series = (point: number, run: number) =>
  ["download", "call"].flatMap((name) => {
    const of = (kind: string, columns: object, conn: number | null = 0) => ({ point, run, kind, name, conn, columns });
    const distribution = { x: [10, 20, 30], share: [0.2, 0.5, 1] };
    return [
      of("goodput", { t, goodput_mbps: t.map((x) => 5 + Math.sin(x)) }),
      of("samples", { t, in_flight_bytes: t.map(() => 9000), cwnd_bytes: t.map(() => 9000), srtt_ms: t.map((x) => 40 + Math.cos(x)), owd_ms: t.map((x) => 20 + x) }),
      ...(name === "download" ? [of("sequence", { t, sent: t })] : []),
      of("rtts", distribution),
      of("owds", distribution),
      ...(run === 0 ? [of("owds", distribution, null), of("rtts", distribution, null)] : []),
    ];
  });
const row = (point: number, run: number, name: string, transport: string) => ({
  point,
  run,
  flow: name,
  conn: 0,
  transport,
  cc: transport === "tcp" ? "cubic" : null,
  from: "server",
  to: "phone",
  start_s: 0,
  measured_from_s: 0,
  completion_s: null,
  bytes: 1e7,
  goodput_mbps: 10,
  throughput_mbps: 11,
  segments_sent: 1000,
  retransmitted: 10,
  rtos: 0,
  ce_marks: 0,
  lost_packets: 20,
});
const points = [0, 1];
const data = {
  shown: { points_per_series: 1500, runs: 1, runs_of: 1, series: 1, series_of: 1, rows: 1, rows_of: 1, summaries: 1, summaries_of: 1, max_bytes: 2e7 },
  reproduction: [
    { paper: "a-paper", experiment: "an-experiment", variant: "a variant with a long name", parameter: "rate = 35 Mbit/s, loss=1e-4", metric: "throughput of the whole", unit: "Mbit/s", published: 34.34, published_ci: 0.3, measured: 34.5, ci: 0.31, origin: "paper", verdict: "held" },
    { paper: "a-paper", experiment: "an-experiment", variant: "another", parameter: "loss=1e-4", metric: "gain", unit: "%", published: 10, published_ci: 1, measured: 2, ci: 1, origin: "paper", verdict: "missed", tolerance: 0.5, because: "read from a plot", why: "a reason that takes more than a line ".repeat(6) },
  ],
  figures: [],
  results: [
    {
      meta: { title: "", version: "0", scenario: {}, points: points.map((loss) => ({ loss })), runs: 2, seed: 1 },
      timing: { wall_s: 1, cpu_s: 1, simulated_s: 10, events: 1, packets: 1, threads: 1 },
      summary: {
        points: points.map((point) => ({
          point,
          values: { loss: point },
          goodput_mbps: stat(10),
          rtt_p50_ms: stat(40),
          rtt_p95_ms: stat(80),
          retransmission_rate: stat(0.01),
          jain: null,
          flows: [flow("download", "tcp"), flow("call", "udp")],
          links: [],
          ues: [],
        })),
      },
      flows: points.flatMap((point) => [0, 1].flatMap((run) => [row(point, run, "download", "tcp"), row(point, run, "call", "udp")])),
      links: [],
      ues: [],
      mobility: points.flatMap((point) => [0, 1].map((run) => ({ point, run, t_s: 2 + run, ue: "phone", event: "connected", cell: "cell-2", interruption_ms: 30 }))),
      commands: [
        { point: 0, run: 0, t_s: 0.5, command: "outage", subject: "", value: "500 ms", until_s: 1 },
        { point: 0, run: 0, t_s: 3.5, command: "rate", subject: "s1", value: "5 Mbit/s", until_s: null },
      ],
      series: points.flatMap((point) => [0, 1].flatMap((run) => series(point, run))),
    },
  ],
};

const none = { scheduled_mbps: null, block_error_rate: null, utilisation: null, core_ms: null, queue_ms: null, air_ms: null, harq_ms: null, rlc_ms: null };
/** A result with a UE for each of these lines of sight and numbers of beams, ten a second. */
const street = (ues: { los: number[]; cell: (number | null)[]; ue: (number | null)[] }[]) => {
  const result = data.results[0]!;
  const name = (i: number) => `walker-${i + 1}`;
  const summaries = ues.map((_, i) => ({ ue: name(i), downlink: none, uplink: none, handovers: null, handover_failures: null, link_failures: null }));
  const ofUe = ({ los, cell, ue }: (typeof ues)[number], i: number) => {
    const columns = { t: los.map((_, at) => at / 10), dl_mbps: los.map(() => 100), los, cell_beam: cell, ue_beam: ue };
    return { point: 0, run: 0, kind: "radio", name: name(i), conn: null, columns };
  };
  const points = result.summary.points.slice(0, 1).map((point) => ({ ...point, ues: summaries }));
  const meta = { ...result.meta, points: result.meta.points.slice(0, 1), runs: 1 };
  return { ...data, results: [{ ...result, meta, summary: { points }, mobility: [], series: [...series(0, 0), ...ues.map(ofUe)] }] };
};

/** A measurement of a CUBIC and a BBR flow through a modem that changes its cell after 2 s. */
const measured = () => {
  const result = data.results[0]!;
  // As crates/record writes them: without columns in which nothing is known.
  const known = (columns: Record<string, (number | null)[]>) => Object.fromEntries(Object.entries(columns).filter(([, column]) => column.some((value) => value !== null)));
  const of = (kind: string, name: string, columns: Record<string, (number | null)[]>, conn: number | null = null) => ({ point: 0, run: 0, kind, name, conn, columns: known(columns) });
  const upload = (cc: string, cwnd: number) => {
    const limited = { app: stat(0), cwnd: stat(cwnd), rwnd: stat(0), pacing: stat(1 - cwnd), sndbuf: stat(0), other: stat(0) };
    return { ...flow(`upload-${cc}`, "tcp"), cc, from: "client", to: "server", owd_p50_ms: null, owd_p95_ms: null, limited };
  };
  const flows = [upload("cubic", 1), upload("bbr", 0.25)];
  const load = t.map((x) => (x > 1 && x < 4 ? 1 : 0));
  const all = [
    ...flows.flatMap(({ flow: name }, conn) => [
      of("goodput", name, { t, goodput_mbps: t.map(() => 5) }, conn),
      of("samples", name, { t: t.map((x) => x + conn / 1000), in_flight_bytes: t.map(() => 9000), srtt_ms: t.map(() => 40) }, conn),
    ]),
    of("latency", "echo", { t, rtt_ms: t.map((x, i) => (x === 3 ? null : 20 + 80 * load[i]!)), lost: t.map((x) => (x === 3 ? 1 : null)), load }),
    of("latency", "hop", { t, rtt_ms: t.map(() => 9), lost: t.map(() => null), load }, 2),
    of("waits", "", { t, host_ms: t.map(() => null), modem_ms: load.map((on) => 75 * on), network_ms: t.map(() => 1), total_ms: load.map((on) => 80 * on) }),
    { ...of("modem", "wwan0", { t, rsrp_dbm: t.map((x) => -80 - x), rsrq_db: t.map(() => -10), rssi_dbm: t.map(() => null), sinr_db: t.map(() => null), cell_id: t.map(() => 7), pci: t.map(() => null) }), technology: "lte" },
  ];
  const loads = [{ rpm: 1234.4, directions: [{ direction: "upload" }] }, { rpm: null, directions: [] }, { rpm: 378, directions: [{ direction: "download" }, { direction: "upload" }] }];
  const scenario = { measurement: { protocol: "rmbt", flows: 2, kernel: "6.1", proxy: { found: true, signs: [], text: "a proxy on the path answers for the server: TCP is answered within 1 ms" }, missing: ["the host's queue: the kernel stamped no data of uploads"], loads } };
  const meta = { ...result.meta, scenario, points: [{}], runs: 1 };
  const points = result.summary.points.slice(0, 1).map((point) => ({ ...point, values: {}, flows }));
  const rows = flows.map(({ flow: name }, conn) => ({ ...row(0, 0, name, "tcp"), conn }));
  const mobility = [{ point: 0, run: 0, t_s: 2, ue: "wwan0", event: "changed", cell: "cell-2", interruption_ms: null }];
  return { ...data, results: [{ ...result, meta, summary: { points }, flows: rows, mobility, series: all }] };
};

/** What the script below finds out, as the page's data attributes. */
const PROBE = `
addEventListener("error", (event) => (document.body.dataset.error = event.message));
URL.createObjectURL = (blob) => (blob.text().then((text) => (keep(text), document.body.dataset["saved"] = (document.body.dataset["saved"] ?? "") + text.slice(0, 300) + "\\u0001")), "#");
const keep = (text) => {
  const title = /<title>([^<]*)/.exec(text)?.[1];
  if (/>cell-2</.test(text)) document.body.dataset["marked"] = (document.body.dataset["marked"] ?? "") + title + "|";
  const lines = [...text.matchAll(/<text x="36"[^>]*>([^<]*)/g)].map(([, label]) => label);
  if (["Latency of probes", "Where packets waited", "RSRP of the serving cell"].includes(title)) document.body.dataset["lines"] = (document.body.dataset["lines"] ?? "") + title + ": " + lines.join() + "|";
  if (["Line of sight", "Beams"].includes(title)) {
    const paths = [...new DOMParser().parseFromString(text, "image/svg+xml").querySelectorAll("g[clip-path] path[stroke-linejoin]")].map((path) => path.getAttribute("d"));
    const labels = [...text.matchAll(/<text x="36"[^>]*>([^<]*)/g)].map(([, label]) => label);
    document.body.dataset[title === "Beams" ? "beams" : "sight"] = [labels.join(), ...paths, />hidden</.test(text)].join("|");
  }
};
setTimeout(() => {
  const { dataset } = document.body;
  dataset.over = document.documentElement.scrollWidth - innerWidth;
  dataset.cut = [...document.querySelectorAll(".table.plain")].filter((one) => one.scrollWidth > one.clientWidth).length;
  dataset.empty = document.querySelectorAll("figure .empty").length;
  dataset.heading = document.querySelector("h1").textContent;
  dataset.chosen = [...document.querySelectorAll("#case select")].map((one) => one.selectedOptions[0].textContent).join("|");
  dataset.filter = document.querySelector("#case input").value;
  dataset.scroll = scrollY > 0;
  dataset.limits = [...document.querySelectorAll(".limits")].map((one) => [one.querySelector(".who").textContent, ...[...one.querySelectorAll(".limit")].map((part) => part.style.flexGrow)].join()).join("|");
  dataset.facts = [...document.querySelectorAll(".facts dl > div")].map((one) => [...one.children].map((part) => part.textContent).join(": ")).join("|");
  dataset.notes = [...document.querySelectorAll("#measurement > .note")].map((one) => one.textContent).join("|");
  dataset.titles = [...document.querySelectorAll("figcaption b")].map((one) => one.firstChild.textContent).join("|");
  if (location.hash.includes("at=marks")) for (const one of document.querySelectorAll(".save")) one.children[1].click();
  for (const kind of ["SVG", "CSV"]) {
    // The last plot of the page, which has not been seen yet.
    const figure = [...document.querySelectorAll("figure")].filter((one) => one.querySelector(".save")).at(-1);
    dataset.drawn ??= figure.querySelector("canvas") !== null;
    [...figure.querySelectorAll(".save button")].find((one) => one.textContent === kind).click();
  }
}, 1500);`;

function page(width: number, hash: string, height = 900, shown: object = data): Record<string, string> {
  const dir = mkdtempSync(join(tmpdir(), "ranway-page-"));
  try {
    // The page permits only its own script; the probe is another one.
    const template = readFileSync("../crates/record/assets/report.html", "utf8")
      .replace(/script-src '[^']*'/, "script-src 'unsafe-inline'");
    const html = template.replace('"RANWAY-DATA"', () => JSON.stringify(shown)).replace("</body>", () => `<script>${PROBE}</script></body>`);
    writeFileSync(join(dir, "page.html"), html);
    const quiet = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
    const options = ["--headless", "--no-sandbox", "--disable-gpu", ...quiet, `--user-data-dir=${dir}/profile`, `--window-size=${width},${height}`];
    const { stdout } = spawnSync(browser!, [...options, `--virtual-time-budget=${BUDGET_MS}`, "--dump-dom", `file://${dir}/page.html${hash}`], { encoding: "utf8", timeout: 120_000 });
    const body = /<body([^>]*)>/.exec(stdout ?? "")?.[1] ?? "";
    return Object.fromEntries([...body.matchAll(/data-([a-z]+)="([^"]*)"/g)].map(([, name, value]) => [name!, value!]));
  } finally {
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

const skip = browser === undefined ? "no Chromium here" : false;

test("nothing is cut off and nothing scrolls sideways, from phones to wide screens", { skip }, () => {
  for (const width of WIDTHS) {
    const found = page(width, "");
    assert.equal(found["error"], undefined, `${width} px`);
    assert.ok(Number(found["over"]) <= 0, `${width} px: ${found["over"]} px too wide`);
    assert.deepEqual([found["cut"], found["empty"]], ["0", "0"], `${width} px`);
  }
});

test("a plot that was never on the screen is saved whole", { skip }, () => {
  const found = page(1280, "", 300);
  assert.equal(found["drawn"], "false", "it has been seen");
  const width = Number(/ width=(?:"|&quot;)(\d+)/.exec(found["saved"]!)?.[1]);
  assert.ok(width > 300, `the saved picture is ${width} px wide`);
});

test("a link restores the view, a page without a title has a heading, and plots are saved", { skip }, () => {
  const found = page(1280, "#point=1&run=1&flows=call&at=one-way-delay&0.metric1=flow:Goodput&0.metric2=unknown");
  assert.equal(found["error"], undefined);
  assert.equal(found["heading"], "Simulation: download, call");
  assert.equal(found["chosen"], "loss = 1|nothing|2 of 2");
  assert.deepEqual([found["filter"], found["scroll"]], ["call", "true"]);
  const titles = found["titles"]!.split("|");
  for (const title of ["Goodput, each flow", "One-way delay", "One-way delay distribution", "One-way delay: distribution at each point"]) assert.ok(titles.includes(title), `${title} in ${titles}`);
  assert.ok(!titles.includes("Queueing delay"), "nothing was recorded of queues");
  const saved = found["saved"]!.split("\u0001");
  assert.ok(saved[0]!.startsWith("&lt;svg") || saved[0]!.startsWith("<svg"), saved[0]);
  assert.ok(saved[1]!.startsWith("line,"), saved[1]);
});

test("plots over time are marked where the cell changed", { skip }, () => {
  const found = page(1280, "#at=marks");
  assert.equal(found["error"], undefined);
  const marked = found["marked"]!.split("|");
  for (const title of ["Goodput", "Round-trip time, smoothed", "Congestion window and slow-start threshold", "Bytes in flight", "Bytes in flight, stacked", "Time–sequence: download", "One-way delay"]) {
    assert.ok(marked.includes(title), `${title} in ${marked}`);
  }
  for (const title of ["RTT distribution", "RTT of each flow", "Goodput against RTT"]) {
    assert.ok(found["titles"]!.split("|").includes(title), `${title} in ${found["titles"]}`);
    assert.ok(!marked.includes(title), `${title} in ${marked}`);
  }
});

/** The heights of a saved path's points, each once a step, and the distances between its steps. */
const steps = (path: string) => {
  const points = [...path.matchAll(/[ML]([\d.-]+) ([\d.-]+)/g)].map(([, x, y]) => [Number(x), Number(y)] as const);
  const turns = points.filter(([, y], i) => i > 0 && y !== points[i - 1]![1]);
  return { heights: [points[0]![1], ...turns.map(([, y]) => y)], at: turns.map(([x]) => (x - points[0]![0]) / (points.at(-1)![0] - points[0]![0])) };
};

test("the line of sight and the beams are drawn where they change", { skip }, () => {
  const at = (values: [number, number][]) => t.map((x) => values.filter(([from]) => from <= x).at(-1)![1]);
  // It passes a corner from 1 to 3 s, and another one stands in the open, with an array at the cell alone.
  const corner = { los: at([[0, 1], [1, 0], [3, 1]]), cell: at([[0, 4], [2, 5]]), ue: at([[0, 0], [4, 2]]) };
  const open = { los: t.map(() => 1), cell: t.map(() => 7), ue: t.map(() => null) };
  const found = page(1280, "#at=marks", 900, street([corner, open]));
  assert.equal(found["error"], undefined);
  const [labels, first, second, hidden] = found["sight"]!.split("|");
  assert.deepEqual([labels, hidden], ["walker-1,walker-2", "true"]);
  const passes = steps(first!);
  assert.equal(passes.heights.length, 3, first);
  // Hidden is below.
  assert.ok(passes.heights[1]! > passes.heights[0]! && passes.heights[2] === passes.heights[0], first);
  // The last of 50 samples is at 4.9 s.
  for (const [i, s] of [1, 3].entries()) assert.ok(Math.abs(passes.at[i]! - s / 4.9) < 0.01, `${passes.at}`);
  assert.deepEqual(steps(second!).heights, [passes.heights[0]]);
  const [beams, cell, still, ue] = found["beams"]!.split("|");
  assert.equal(beams, "walker-1: cell,walker-2: cell,walker-1: UE");
  assert.ok(Math.abs(steps(cell!).at[0]! - 2 / 4.9) < 0.01 && Math.abs(steps(ue!).at[0]! - 4 / 4.9) < 0.01, found["beams"]);
  // Beams 4, 5 and 7 are above one another.
  const [four, five] = steps(cell!).heights;
  assert.ok(Math.abs((five! - steps(still!).heights[0]!) / (four! - five!) - 2) < 0.02, found["beams"]);
  const alone = page(1280, "#at=marks", 900, street([open]));
  assert.equal(alone["error"], undefined);
  for (const title of ["Line of sight", "Beams"]) {
    assert.ok(found["titles"]!.split("|").includes(title), found["titles"]);
    assert.ok(!alone["titles"]!.split("|").includes(title) && alone["titles"]!.includes("Downlink capacity"), alone["titles"]);
  }
});

test("a measurement has its latency, queues and radio on one time axis, and what limited each of its flows", { skip }, () => {
  const found = page(1280, "#at=marks", 900, measured());
  assert.equal(found["error"], undefined);
  assert.equal(found["empty"], "0");
  const marked = found["marked"]!.split("|");
  for (const title of ["Goodput", "Bytes in flight, stacked", "Latency of probes", "Where packets waited", "RSRP of the serving cell", "RSRQ of the serving cell"]) {
    assert.ok(marked.includes(title), `${title} in ${marked}`);
  }
  assert.ok(!found["titles"]!.includes("SINR of the serving cell"), "the modem does not tell it");
  assert.deepEqual(found["lines"]!.split("|").slice(0, 3), [
    "Latency of probes: ICMP echo,ICMP echo: lost,router 2",
    "Where packets waited: modem and radio,network behind,whole path",
    "RSRP of the serving cell: wwan0: LTE",
  ]);
  assert.equal(found["limits"], "upload-cubic cubic,0,1,0,0,0,0|upload-bbr bbr,0,0.25,0,0.75,0,0");
  assert.ok(found["facts"]!.split("|").includes("Round trips a minute: 1\u202f234 (upload), 378 (download and upload)"), found["facts"]);
  assert.equal(found["notes"], "A proxy on the path answers for the server: TCP is answered within 1 ms.|Not measured: the host's queue: the kernel stamped no data of uploads.");
});
