// The view that a link restores: which case, run, flows and UE are shown, what is compared, and the place on the page.

export interface View {
  /** The case, as an index into all of them; a point of the sweep if there is one result. */
  first: number;
  /** The case beside it, or -1. */
  second: number;
  run: number;
  /** The text that names of shown flows contain. */
  filter: string;
  /** One UE, or "" for all. */
  ue: string;
  logRtt: boolean;
  /** The id of the section or figure to show, or "". */
  at: string;
  /** The choices in each comparison, by its place on the page. */
  comparisons: Readonly<Record<number, Choice>>;
}

/** What a comparison shows; an empty text stands for the usual choice. */
export interface Choice {
  readonly metrics: readonly [string, string];
  /** The varied key on the horizontal axis. */
  readonly along: string;
  readonly distribution: string;
}

export const USUAL_CHOICE: Choice = { metrics: ["", ""], along: "", distribution: "" };

/** What exists here, so that a link can be checked against it. */
export interface Limits {
  cases: number;
  comparisons: number;
  runs: (first: number) => number;
}

/** Longest text in a link. */
export const LONGEST = 200;
const NONE = "none";

const textsOf = (choice: Choice): Record<string, string> => ({ metric1: choice.metrics[0], metric2: choice.metrics[1], along: choice.along, distribution: choice.distribution });

/** Returns the part after `#` for `view`: only what differs from `usual`. */
export function encode(view: View, usual: View): string {
  const parts = new URLSearchParams();
  if (view.first !== usual.first) parts.set("point", String(view.first));
  if (view.second !== usual.second) parts.set("beside", view.second < 0 ? NONE : String(view.second));
  if (view.run !== usual.run) parts.set("run", String(view.run));
  if (view.filter !== usual.filter) parts.set("flows", view.filter);
  if (view.ue !== usual.ue) parts.set("ue", view.ue);
  if (view.logRtt !== usual.logRtt) parts.set("log", String(view.logRtt));
  if (view.at !== usual.at) parts.set("at", view.at);
  for (const [i, choice] of Object.entries(view.comparisons)) {
    for (const [key, value] of Object.entries(textsOf(choice))) if (value !== "") parts.set(`${i}.${key}`, value);
  }
  return parts.toString();
}

/** Reads `hash`. What is missing, or does not exist here, stays as in `usual`. */
export function decode(hash: string, usual: View, { cases, comparisons, runs }: Limits): View {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  const index = (key: string, below: number): number | undefined => {
    const text = parts.get(key);
    return text !== null && /^\d{1,9}$/.test(text) && Number(text) < below ? Number(text) : undefined;
  };
  const words = (key: string): string | undefined => parts.get(key)?.slice(0, LONGEST);
  const choices: Record<number, Choice> = {};
  for (let i = 0; i < comparisons; i++) {
    const word = (key: string): string => words(`${i}.${key}`) ?? "";
    const choice: Choice = { metrics: [word("metric1"), word("metric2")], along: word("along"), distribution: word("distribution") };
    if (Object.values(textsOf(choice)).some((value) => value !== "")) choices[i] = choice;
  }
  const first = index("point", cases) ?? usual.first;
  const asked = parts.get("beside") === NONE ? -1 : (index("beside", cases) ?? usual.second);
  return {
    first,
    second: asked === first ? -1 : asked,
    run: index("run", Math.max(runs(first), 1)) ?? 0,
    filter: words("flows") ?? usual.filter,
    ue: words("ue") ?? usual.ue,
    logRtt: parts.has("log") ? parts.get("log") === "true" : usual.logRtt,
    at: words("at") ?? usual.at,
    comparisons: choices,
  };
}

/** Returns an id for a heading that is not in `taken`, and adds it to `taken`. */
export function slug(title: string, taken: Set<string>): string {
  const base = title.toLowerCase().replaceAll(/[^a-z0-9]+/g, "-").replaceAll(/^-|-$/g, "") || "part";
  let id = base;
  for (let n = 2; taken.has(id); n++) id = `${base}-${n}`;
  taken.add(id);
  return id;
}
