// HTML elements. No string of the data is ever interpreted as HTML.

import { saveCsv, saveLatex } from "./offer";

type Child = Node | string | null | undefined | false;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return element;
}

export function select(
  label: string,
  options: (readonly [value: string, text: string, group?: string])[],
  chosen: string,
  onChange: (value: string) => void,
): HTMLElement {
  const element = h("select");
  const groups = new Map<string, HTMLElement>();
  for (const [value, text, group] of options) {
    const option = h("option", { value }, text);
    option.selected = value === chosen;
    let parent: HTMLElement = element;
    if (group !== undefined) {
      parent = groups.get(group) ?? h("optgroup", { label: group });
      if (!groups.has(group)) element.append(parent);
      groups.set(group, parent);
    }
    parent.append(option);
  }
  element.addEventListener("change", () => onChange(element.value));
  return h("label", { class: "field" }, h("span", {}, label), element);
}

export interface TableColumn<T> {
  head: string;
  title?: string;
  /** The value to sort by. */
  value: (row: T) => string | number | null;
  text?: (row: T) => string;
}

const ROWS_AT_FIRST = 100;
/** Rows at first on a phone, where each row is a card. */
const CARDS_AT_FIRST = 10;
const PHONE = "(max-width: 640px)";

export interface TableOptions<T> {
  onRow?: (row: T) => void;
  /** The base of the name of the saved file. */
  title: string;
}

/** How the reader has sorted the tables, by their titles, so that they stay so when the page is drawn anew. */
const orders = new Map<string, { by: string; falling: boolean; all: boolean }>();

/** Returns a table that a click on a heading sorts, and that shows only its first rows at first. */
export function sortable<T>(columns: TableColumn<T>[], rows: T[], { onRow, title }: TableOptions<T>): HTMLElement {
  const order = orders.get(title);
  let by = columns.findIndex((column) => column.head === order?.by);
  let falling = order?.falling ?? false;
  let limit = order?.all === true ? rows.length : matchMedia(PHONE).matches ? CARDS_AT_FIRST : ROWS_AT_FIRST;
  const remember = (): void => void orders.set(title, { by: columns[by]?.head ?? "", falling, all: limit >= rows.length && rows.length > ROWS_AT_FIRST });
  const numeric = columns.map((column) => rows.every((row) => typeof column.value(row) !== "string"));
  const shown = (row: T, column: TableColumn<T>): string => column.text?.(row) ?? String(column.value(row) ?? "–");
  const body = h("tbody");
  const more = h("button", { type: "button", class: "more" });
  const buttons = columns.map((column, i) => {
    const button = h("button", { type: "button" }, column.head);
    if (column.title !== undefined) button.title = column.title;
    button.addEventListener("click", () => {
      falling = by === i ? !falling : numeric[i] === true;
      by = i;
      remember();
      draw();
    });
    return h("th", numeric[i] ? { class: "number", scope: "col" } : { scope: "col" }, button);
  });

  function draw(): void {
    const sorted = [...rows];
    const column = columns[by];
    if (column !== undefined) {
      const sign = falling ? -1 : 1;
      sorted.sort((a, b) => {
        const [x, y] = [column.value(a), column.value(b)];
        if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y)));
      });
    }
    buttons.forEach((head, i) => head.setAttribute("aria-sort", i !== by ? "none" : falling ? "descending" : "ascending"));
    body.replaceChildren(
      ...sorted.slice(0, limit).map((row) => {
        const cells = columns.map((column, i) =>
          h("td", { "data-head": column.title ?? column.head, ...(numeric[i] && { class: "number" }) }, shown(row, column)),
        );
        const line = h("tr", {}, ...cells);
        if (onRow !== undefined) {
          line.classList.add("choice");
          line.tabIndex = 0;
          line.addEventListener("click", () => onRow(row));
          line.addEventListener("keydown", (event) => {
            if (event.key === "Enter") onRow(row);
          });
        }
        return line;
      }),
    );
    more.hidden = sorted.length <= limit;
    more.textContent = `Show all ${sorted.length} rows`;
  }
  more.addEventListener("click", () => {
    limit = rows.length;
    remember();
    draw();
  });
  draw();
  const tex = h("button", { type: "button", class: "more", title: "Save all rows as LaTeX" }, "LaTeX");
  const heads = columns.map((column) => column.head);
  tex.addEventListener("click", () => saveLatex(title, heads, numeric, rows.map((row) => columns.map((column) => shown(row, column)))));
  const save = h("button", { type: "button", class: "more", title: "Save all rows as CSV" }, "CSV");
  save.addEventListener("click", () => saveCsv(title, heads, rows.map((row) => columns.map((column) => column.value(row)))));
  return h("div", { class: "table" }, h("table", {}, h("thead", {}, h("tr", {}, ...buttons)), body), h("div", { class: "below" }, more, save, tex));
}
