// A page that follows a run: where its data comes from, and what only such a page shows: state, progress, map, events, controls.

import type { Controls, Data, Live } from "./data";
import { h } from "./dom";
import { count, number, percent, seconds, text } from "./format";
import { commandText } from "./marks";
import { forgetTrails, map } from "./map";
import { append, replace, type Batch, type Store } from "./store";

/** How the page stands with who sends its data. */
type Link = "connecting" | "live" | "reconnecting" | "refused" | "ended";

const WORDS: Record<Link, string> = {
  connecting: "connecting",
  live: "live",
  reconnecting: "reconnecting",
  refused: "the token has changed: open the address that the command printed",
  ended: "ended",
};
/** Pause before another attempt after the server has refused one. */
const PAUSE_MS = 2_000;
/** Events that are shown. */
const MOST_EVENTS = 200;

let link: Link = "connecting";
/** The address of the report, once the run has written it and the page has it. */
let report = "";
const badge = h("span", { class: "badge", role: "status", "aria-live": "polite" });

function say(now: Link): void {
  link = now;
  badge.className = `badge ${now === "live" ? "held" : now === "ended" || now === "connecting" ? "" : "missed"}`;
  badge.textContent = WORDS[now];
  badge.dataset["link"] = now;
}

/** Follows the run whose data the page has: receives what is new until it ends. */
export function follow(store: Store): void {
  const connect = (): void => {
    const { last, live } = store.state.data.content;
    if (live?.ended === true) return void end(store);
    const source = new EventSource(`events?after=${encodeURIComponent(last ?? "")}`);
    const take = (apply: (data: string) => void) => (event: MessageEvent<string>) => {
      say("live");
      apply(event.data);
      // The server goes when its readers have gone: the report comes first.
      if (store.state.data.content.live?.ended === true) void end(store).finally(() => source.close());
    };
    source.addEventListener("open", () => say("live"));
    source.addEventListener("batch", take((data) => store.dispatch(append(JSON.parse(data) as Batch))));
    source.addEventListener(
      "whole",
      take((data) => {
        forgetTrails();
        store.dispatch(replace(JSON.parse(data) as Data));
      }),
    );
    source.addEventListener("error", () => {
      if (link === "ended") return source.close();
      say("reconnecting");
      // A browser gives up when the server answers with an error, as after a restart with another token.
      if (source.readyState !== EventSource.CLOSED) return;
      setTimeout(() => {
        fetch("events", { method: "HEAD" })
          .then(({ status }) => {
            if (status === 401) say("refused");
            else connect();
          })
          .catch(connect);
      }, PAUSE_MS);
    });
  };
  say("connecting");
  connect();
}

/** Keeps the report, which goes with its server. */
async function end(store: Store): Promise<void> {
  say("ended");
  const path = store.state.data.content.live?.report ?? null;
  if (path === null || report !== "") return;
  try {
    const answer = await fetch("report");
    if (!answer.ok) return;
    report = URL.createObjectURL(new Blob([await answer.arrayBuffer()], { type: "text/html" }));
    store.dispatch((state) => ({ ...state, data: { ...state.data } }));
  } catch {
    // The server has gone; the report is where the page says.
  }
}

/** The state of the run, for the page's top. */
export function liveBar(live: Live): HTMLElement {
  const { progress } = live;
  const bar = progress === null ? false : h("progress", { max: "1", value: String(progress.share), "aria-label": "Progress" });
  const facts = [
    live.t_s === null ? "" : `at ${seconds(live.t_s)}`,
    progress === null ? "" : `${count(progress.done)} of ${count(progress.of)} ${progress.of === 1 ? "run" : "runs"}, ${percent(progress.share)}, ${seconds(progress.elapsed_s)} so far`,
    progress !== null && progress.done > 0 && progress.elapsed_s > 0 ? `${number(progress.done / progress.elapsed_s)} runs a second` : "",
    ...live.counters.map(({ what, value }) => `${count(value)} ${what}`),
    live.left_out > 0 ? `${count(live.left_out)} flows or runs are not shown singly` : "",
  ];
  return h(
    "p",
    { class: "live" },
    badge,
    h("span", {}, `ranway ${live.command}`),
    bar,
    h("span", {}, facts.filter((fact) => fact !== "").join(" · ")),
    report !== "" && h("a", { href: report, target: "_blank", rel: "noopener" }, "Open the report"),
    link === "ended" && live.report !== null && h("span", { class: "note" }, live.report),
  );
}

/** The map, the controls and the events, as far as there are any. */
export function liveSections(content: Data): HTMLElement[] {
  const { live, events = [], results } = content;
  if (live === undefined) return [];
  const sections: HTMLElement[] = [];
  if (live.controls !== null && !live.ended) sections.push(controls(live.controls));
  if (live.places !== null && live.places.ues.length + live.places.cells.length > 0) sections.push(map(live.places));
  const moved = (results[0]?.mobility ?? []).map((row) => {
    const cell = text(row.cell);
    return { t_s: row.t_s as number | null, text: `${text(row.ue)}: ${text(row.event)}${cell === "" ? "" : ` (${cell})`}` };
  });
  const given = (results[0]?.commands ?? []).map((row) => ({ t_s: row.t_s as number | null, text: commandText(row) }));
  const all = [...events, ...moved, ...given].sort((a, b) => (b.t_s ?? Infinity) - (a.t_s ?? Infinity));
  if (all.length > 0) {
    const lines = all.slice(0, MOST_EVENTS).map((event) => h("li", {}, h("span", { class: "at" }, event.t_s === null ? "" : `${event.t_s.toFixed(3)} s`), h("span", {}, event.text)));
    sections.push(
      h(
        "section",
        { id: "events" },
        h("h2", {}, "Events"),
        // So that it can be scrolled without a mouse.
        h("ol", { class: "log", tabindex: "0", "aria-label": "Events, newest first" }, ...lines),
        all.length > MOST_EVENTS && h("p", { class: "note" }, `The newest ${MOST_EVENTS} of ${count(all.length)}.`),
      ),
    );
  }
  return sections;
}

/** The controls are made once for the same names, so that what is being entered stays. */
let panel: { names: string; element: HTMLElement } | null = null;

function controls(of: Controls): HTMLElement {
  const names = JSON.stringify(of);
  if (panel?.names === names) return panel.element;
  const answer = h("output", { class: "answer", "aria-live": "polite" });
  const send = (...words: string[]): void => {
    const line = words.map((word) => (/\s/.test(word) || word === "" ? `"${word}"` : word)).join(" ");
    answer.textContent = `${line} …`;
    fetch("control", { method: "POST", headers: { "X-Ranway": "1", "Content-Type": "text/plain" }, body: line })
      .then(async (reply) => {
        const said = (await reply.text()).trim();
        answer.textContent = `${line}: ${said === "" ? "done" : said}`;
      })
      .catch(() => (answer.textContent = `${line}: no answer`));
  };
  const choice = (name: string, values: string[]): HTMLSelectElement => h("select", { "aria-label": name }, ...values.map((value) => h("option", { value }, value)));
  const form = (title: string, fields: HTMLElement[], act: () => void, more: HTMLElement[] = []): HTMLElement => {
    const one = h("form", { class: "control" }, h("b", {}, title), ...fields, h("button", { type: "submit" }, "Set"), ...more);
    one.addEventListener("submit", (event) => {
      event.preventDefault();
      act();
    });
    return one;
  };
  const forms: HTMLElement[] = [];
  if (of.ues.length > 0) {
    const [ue, db] = [choice("UE", of.ues), h("input", { type: "number", step: "any", min: "-100", max: "100", value: "10", required: "", "aria-label": "SINR in dB" })];
    const off = h("button", { type: "button" }, "Restore");
    off.addEventListener("click", () => send("sinr", ue.value, "off"));
    forms.push(form("SINR, dB", [ue, db], () => send("sinr", ue.value, db.value), [off]));
  }
  if (of.ues.length > 0 && of.cells.length > 1) {
    const [ue, cell] = [choice("UE", of.ues), choice("Target cell", of.cells)];
    forms.push(form("Handover", [ue, cell], () => send("handover", ue.value, cell.value)));
  }
  if (of.cells.length > 1) {
    const [cell, share] = [choice("Cell", of.cells), h("input", { type: "number", step: "0.05", min: "0", max: "1", value: "0.5", required: "", "aria-label": "Share of resource blocks, 0 to 1" })];
    forms.push(form("Interference load", [cell, share], () => send("load", cell.value, share.value)));
  }
  if (of.links.length > 0) {
    const [link, rate] = [choice("Link", of.links), h("input", { type: "text", value: "10 Mbit/s", required: "", "aria-label": "Rate, as in 10 Mbit/s" })];
    const off = h("button", { type: "button" }, "Off");
    off.addEventListener("click", () => send("rate", link.value, "off"));
    forms.push(form("Rate", [link, rate], () => send("rate", link.value, rate.value), [off]));
    const [all, span] = [choice("Link of the outage", ["all links", ...of.links]), h("input", { type: "text", value: "10 s", required: "", "aria-label": "Duration, as in 10 s" })];
    forms.push(form("Outage", [all, span], () => send("outage", ...(all.selectedIndex === 0 ? [] : [all.value]), span.value)));
    const [lossy, loss] = [choice("Link", of.links), h("input", { type: "number", step: "any", min: "0", max: "1", value: "0.01", required: "", "aria-label": "Share of packets lost, 0 to 1" })];
    forms.push(form("Loss", [lossy, loss], () => send("loss", lossy.value, loss.value)));
  }
  const stop = h("button", { type: "button" }, "Stop the emulation");
  stop.addEventListener("click", () => {
    if (confirm("Stop the emulation and write its results?")) send("stop");
  });
  const element = h("section", { id: "control" }, h("h2", {}, "Controls"), h("div", { class: "forms" }, ...forms, stop), answer);
  panel = { names, element };
  return element;
}
