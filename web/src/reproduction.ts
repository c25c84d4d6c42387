// Published figures beside measured ones: a table and a plot for each experiment.

import { h } from "./dom";
import type { Drawn, Row, Verdict } from "./generated/reproduction";
import { number } from "./format";
import { meansPlot, type MeanSeries } from "./means";
import { between, colour, dashOf, FAILED, PUBLISHED, shapeOf } from "./palette";
import { linePlot } from "./plots";
import { scatterPlot, type Cloud } from "./scatter";
import { counted, marks, reasons, VERDICTS } from "./verdicts";

export function reproduction(rows: Row[], figures: Drawn[]): HTMLElement {
  const drawn = (name: string): HTMLElement[] => figures.filter((one) => `${one.paper} / ${one.experiment}` === name).flatMap((one) => figure(one) ?? []);
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const name = `${row.paper} / ${row.experiment}`;
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  const all = [...groups];
  const possible = all.filter(([, rows]) => rows.some((row) => row.verdict !== "not possible yet"));
  const others = all.filter(([, rows]) => rows.every((row) => row.verdict === "not possible yet"));
  const { verdicts, apart } = counted(rows);
  const counts = Object.entries(verdicts).map(([verdict, count]) => h("span", {}, badge(verdict as Verdict), ` ${count}`));
  if (apart.length > 0) counts.push(h("span", {}, `held of those counted apart: ${apart.map(({ what, held, all }) => `${held} of ${all} ${what}`).join(", ")}`));
  return h(
    "section",
    {},
    h("h2", {}, "Published and measured"),
    h("p", { class: "verdicts" }, ...counts),
    h("p", { class: "note" }, "± is the published interval and, for measured values, the 95 % confidence interval of the mean over the runs."),
    ...possible.map(([name, rows]) => experiment(name, rows, drawn(name))),
    others.length > 0 &&
      h(
        "details",
        {},
        h("summary", {}, `Not possible yet: ${others.map(([name, rows]) => `${name} (${rows.length})`).join(", ")}`),
        ...others.map(([name, rows]) => experiment(name, rows, [])),
      ),
  );
}

function badge(verdict: Verdict): HTMLElement {
  return h("span", { class: `badge ${verdict.split(" ")[0]!}` }, VERDICTS[verdict]);
}

function experiment(name: string, rows: Row[], figures: HTMLElement[]): HTMLElement {
  const plots = plotsOf(rows);
  const same = shared(rows);
  return h(
    "div",
    { class: "experiment" },
    h("h3", { class: "name" }, name, same !== null && h("small", {}, ` ${same.metric}${same.unit === "" ? "" : `, ${same.unit}`}`)),
    h("div", { class: plots.length > 0 && rows.every((row) => row.floor === undefined && row.ceiling === undefined) ? "sides" : "" }, table(rows), plots.length > 0 && h("div", {}, ...plots)),
    figures.length > 0 && h("div", { class: "figures" }, ...figures),
  );
}

/** Draws a figure that corresponds to one of the paper's. */
function figure(drawn: Drawn): HTMLElement | null {
  if (drawn.kind === "map") return map(drawn);
  if (drawn.kind === "points") {
    const clouds = cloudsOf(drawn.lines);
    const note = clouds.some((one) => (one.outline?.x.length ?? 0) > 0) ? "ellipses cover 95 % of normally distributed points" : undefined;
    return scatterPlot(drawn.title, clouds, drawn.x, drawn.y, note);
  }
  if (drawn.kind === "places") return places(drawn);
  if (drawn.kind === "curves") {
    return scatterPlot(drawn.title, cloudsOf(drawn.lines).map((one) => ({ ...one, joined: true })), drawn.x, drawn.y);
  }
  if (drawn.kind === "means" || drawn.kind === "boxes" || drawn.kind === "spreads") {
    const boxes = drawn.kind !== "means";
    const series: MeanSeries[] = drawn.lines.map((line) => ({
      label: line.label,
      means: line.y.flatMap((mean, i) =>
        mean === null ? [] : [{ x: line.x[i]!, mean, ci95: boxes ? null : (line.ci[i] ?? null), around: line.around[i] ?? null }],
      ),
    }));
    return meansPlot(series, {
      xLabel: drawn.x,
      yLabel: drawn.y,
      names: drawn.names,
      bars: true,
      wide: false,
      title: drawn.title,
      ...(boxes && { note: drawn.kind === "boxes" ? "5, 25, 50, 75 and 95 %" : "mean and standard deviation, least and greatest value" }),
    });
  }
  const lines = drawn.lines.map((line, i) => ({
    label: line.label,
    x: line.x,
    y: line.y,
    colour: line.published ? PUBLISHED : colour(i),
    steps: drawn.kind === "steps",
    marker: { shape: shapeOf(i), hollow: line.published },
    ...(line.published ? { dash: [6, 4] } : dashOf(i) !== undefined && { dash: dashOf(i)! }),
  }));
  const negative = drawn.lines.some((line) => line.y.some((y) => y !== null && y < 0));
  return linePlot(drawn.title, lines, { x: drawn.x, y: drawn.y, ...(negative && { fit: true }), ...(drawn.kind === "steps" && { yMax: 1.02 }) });
}

/** The groups of points of a figure: an outline belongs to the line before it. */
export function cloudsOf(lines: Drawn["lines"]): Cloud[] {
  const clouds: Cloud[] = [];
  for (const { label, x, y, outline } of lines) {
    const points = { x, y: y.map((value) => value ?? NaN) };
    const before = clouds.at(-1);
    if (outline !== true) clouds.push({ label, ...points });
    else if (before !== undefined) before.outline = points;
  }
  return clouds;
}

/** A map: a way in colours, and outlines of what is beside it. */
function places(drawn: Drawn): HTMLElement {
  const shades = drawn.lines.flatMap((line) => line.shade ?? []).filter((shade) => shade !== null);
  const [least, most] = [Math.min(...shades), Math.max(...shades)];
  const named = drawn.names.length > 0;
  const paint = (shade: number | null): string | null => (shade === null ? null : named ? colour(shade) : between((shade - least) / (most - least || 1)));
  const clouds = cloudsOf(drawn.lines).map((one, i) => ({ ...one, colours: (drawn.lines[i]!.shade ?? []).map(paint), hollow: i > 0 }));
  const scale = named ? `colours: ${drawn.down}, ${drawn.names.length} in all` : `${drawn.down}: ${number(least)} blue, ${number(most)} orange`;
  return scatterPlot(drawn.title, clouds, drawn.x, drawn.y, shades.length > 0 ? `${scale}; the axes have different scales` : undefined);
}

/** A table of coloured cells: blue above zero, orange below. */
function map(drawn: Drawn): HTMLElement {
  const values = drawn.lines.flatMap((line) => line.y.filter((value) => value !== null));
  const most = Math.max(...values.map(Math.abs), 1);
  const cell = (value: number | null, ci: number | null): HTMLElement => {
    if (value === null) return h("td", { class: "number" }, "–");
    const share = Math.round(Math.sqrt(Math.abs(value) / most) * 70);
    const hue = value >= 0 ? colour(0) : FAILED;
    const text = `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(1)}`;
    const title = ci === null ? text : `${text} ± ${ci.toFixed(1)}`;
    return h("td", { class: "number", title, style: `background: color-mix(in srgb, ${hue} ${share}%, transparent)` }, text);
  };
  const head = h("tr", {}, h("th", {}, `${drawn.down} ↓  ${drawn.x} →`), ...drawn.names.map((name) => h("th", { class: "number" }, name)));
  const rows = drawn.lines.map((line) => h("tr", {}, h("th", { scope: "row" }, line.label), ...line.y.map((y, i) => cell(y, line.ci[i] ?? null))));
  return h(
    "figure",
    {},
    h("figcaption", {}, h("b", {}, drawn.title), h("span", {}, drawn.y)),
    h("div", { class: "table plain" }, h("table", { class: "map" }, h("thead", {}, head), h("tbody", {}, ...rows))),
  );
}

/** The metric and unit of all rows, if they are the same. */
function shared(rows: Row[]): Row | null {
  const first = rows[0]!;
  return rows.length > 1 && rows.every((row) => row.metric === first.metric && row.unit === first.unit) ? first : null;
}

function table(rows: Row[]): HTMLElement {
  const same = shared(rows);
  const unit = (row: Row): string => (row.unit === "" || row.unit === "1" || same !== null ? "" : ` ${row.unit}`);
  const printed = (row: Row): string =>
    row.published === null ? "" : typeof row.published === "string" ? row.published + unit(row) : withCi(row.published, row.published_ci) + unit(row);
  const published = (row: Row): string => [printed(row), row.expected === undefined ? "" : `(${row.expected})`].filter((part) => part !== "").join(" ");
  const bound = (sign: string, value?: number): string[] => (value === undefined ? [] : [`${sign} ${number(value)}`]);
  const measured = (row: Row): string =>
    row.measured === null ? "–" : typeof row.measured === "string" ? row.measured + unit(row) : withCi(row.measured, row.ci) + unit(row);
  const columns: [string, string, (row: Row) => string][] = [
    ["Variant", "wrap", (row) => row.variant],
    ["Parameter", "wrap", (row) => row.parameter],
    ["Metric", "wrap", (row) => (same === null ? row.metric : "")],
    ["Published", "number", published],
    ["Measured", "number", measured],
    ["Bound", "number", (row) => [...bound("≥", row.floor), ...bound("≤", row.ceiling)].map((text) => text + unit(row)).join(", ")],
    ["Off by", "number", offBy],
  ];
  const shown = columns.filter(([, , text]) => rows.some((row) => text(row) !== ""));
  const lines = rows.flatMap((row) => [
    h("tr", {}, ...shown.map(([head, kind, text]) => h("td", { class: kind, "data-head": head }, text(row))), h("td", { "data-head": "Verdict" }, badge(row.verdict), marks(row))),
    ...(reasons(row) === "" ? [] : [h("tr", { class: "why" }, h("td", { colspan: String(shown.length + 1) }, reasons(row)))]),
  ]);
  const heads = shown.map(([head, kind]) => h("th", { class: kind, scope: "col" }, head));
  return h(
    "div",
    { class: "table plain" },
    h("table", {}, h("thead", {}, h("tr", {}, ...heads, h("th", { scope: "col" }, "Verdict"))), h("tbody", {}, ...lines)),
  );
}

/** The axis and what all rows of the plot have in common. */
function titleOf(axis: string, rows: Row[], keys: readonly ("variant" | "parameter")[]): string {
  const common = (["variant", "parameter"] as const).filter((key) => !keys.includes(key)).map((key) => rows[0]![key]);
  return [...common.filter((part) => part !== ""), axis].join(": ");
}

function withCi(value: number, ci: number | null): string {
  if (ci === null) return number(value);
  const decimals = /\.(\d+)/.exec(number(value))?.[1]?.length ?? 0;
  return `${number(value)} ± ${ci === 0 ? "0" : ci.toFixed(Math.max(decimals, ci < 1 ? 2 : 1))}`;
}

function offBy(row: Row): string {
  if (typeof row.published !== "number" || row.published === 0 || typeof row.measured !== "number") return "";
  const percent = (row.measured / row.published - 1) * 100;
  return `${percent >= 0 ? "+" : "−"}${Math.abs(percent).toFixed(1)} %`;
}

/** A plot for each metric: what was published and what was measured, side by side for each variant and parameter. */
function plotsOf(rows: Row[]): HTMLElement[] {
  const both = rows.filter((row) => typeof row.published === "number" && typeof row.measured === "number");
  const metrics = new Map<string, Row[]>();
  for (const row of both) {
    const axis = row.unit === "" || row.unit === "1" ? row.metric : `${row.metric}, ${row.unit}`;
    metrics.set(axis, [...(metrics.get(axis) ?? []), row]);
  }
  const left = rows.filter((row) => typeof row.published === "number").length - both.length;
  const note = left > 0 ? `${left} published values without a measured one are not drawn` : undefined;
  return [...metrics].map(([axis, rows]) => {
    // Rows are named by the keys that differ between them.
    const differs = (["variant", "parameter"] as const).filter((key) => rows.some((row) => row[key] !== rows[0]![key]));
    const keys = differs.length > 0 ? differs : (["variant", "parameter"] as const);
    const names = rows.map((row) => keys.map((key) => row[key]).filter((part) => part !== "").join(", "));
    const published: MeanSeries = {
      label: "published",
      colour: PUBLISHED,
      means: rows.map((row, x) => ({ x, mean: row.published as number, ci95: row.published_ci })),
    };
    const measured: MeanSeries = {
      label: "measured",
      colour: colour(0),
      means: rows.map((row, x) => ({ x, mean: row.measured as number, ci95: row.ci })),
    };
    return meansPlot([published, measured], { xLabel: "", yLabel: axis, names, bars: true, wide: false, title: titleOf(axis, rows, keys), ...(note !== undefined && { note }) });
  });
}
