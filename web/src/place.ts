// What the reader is doing, while the page is drawn anew: the place on the page, the focus, what is open and what is being entered.

/** The shortest interval between two drawings for new data. */
const REDRAW_MS = 500;
/** An interval so many times as long as drawing takes, so that the page stays usable with much data. */
const LEISURE = 4;
/** How long a drawing waits for a reader who is in the middle of something. */
const PATIENCE_MS = 10_000;
/** How long a list that the reader has opened counts as open. */
const CHOOSING_MS = 3_000;

const FOCUSABLE = "a, button, input, select, summary, [tabindex]";
/** What scrolls by itself. */
const BOXES = ".table, pre, .log";

/** What stays of a text when its numbers change. */
function steady(text: string): string {
  return text.replace(/[\d.,\s\u202f]+/g, " ");
}

/** A name for `element` that it has again when the page is drawn anew. */
function nameOf(element: Element): string {
  if (element.matches("details")) return `DETAILS ${steady(element.querySelector("summary")?.textContent ?? "")}`;
  if (element.matches(BOXES) && !element.matches(".log")) return element.className;
  const field = element.closest("label")?.firstElementChild?.textContent ?? "";
  const own = element.getAttribute("aria-label") ?? element.getAttribute("href") ?? (element.matches("input, select, [tabindex]") ? "" : (element.textContent ?? ""));
  return `${element.tagName} ${field} ${steady(own)}`;
}

/** Each of `elements` by its name, and its number among those with the same. */
function named<E extends Element>(elements: Iterable<E>): Map<string, E> {
  const seen = new Map<string, number>();
  const all = new Map<string, E>();
  for (const element of elements) {
    const name = nameOf(element);
    const n = seen.get(name) ?? 0;
    seen.set(name, n + 1);
    all.set(`${name} ${n}`, element);
  }
  return all;
}

/** Draws the contents of `page` anew by `draw`. */
export function keepPlace(page: HTMLElement, draw: () => void): void {
  const scroll = window.scrollY;
  const active = document.activeElement;
  const focused = active !== null && page.contains(active) ? [...named(page.querySelectorAll(FOCUSABLE))].find(([, element]) => element === active)?.[0] : undefined;
  const closed = new Map([...named(page.querySelectorAll("details"))].map(([name, element]) => [name, element.open]));
  const scrolled = [...named(page.querySelectorAll<HTMLElement>(BOXES))].filter(([, { scrollLeft, scrollTop }]) => scrollLeft > 0 || scrollTop > 0).map(([name, { scrollLeft, scrollTop }]) => [name, scrollLeft, scrollTop] as const);
  draw();
  for (const [name, element] of named(page.querySelectorAll("details"))) element.open = closed.get(name) ?? element.open;
  const boxes = named(page.querySelectorAll<HTMLElement>(BOXES));
  for (const [name, left, top] of scrolled) boxes.get(name)?.scrollTo(left, top);
  if (focused !== undefined && document.activeElement !== active) {
    const next = named(page.querySelectorAll<HTMLElement>(FOCUSABLE)).get(focused);
    if (next instanceof HTMLInputElement && active instanceof HTMLInputElement) {
      next.value = active.value;
      next.focus({ preventScroll: true });
      if (next.type === "search" || next.type === "text") next.setSelectionRange(active.selectionStart, active.selectionEnd);
    } else next?.focus({ preventScroll: true });
  } else if (focused !== undefined && active instanceof HTMLElement) active.focus({ preventScroll: true });
  window.scrollTo(0, scroll);
}

/**
 * Returns how to ask for `draw`, which is called soon: not more often than the page can bear, not while it is hidden, and not while
 * a button is pressed, a list is open or text is selected.
 */
export function whenIdle(draw: () => void): () => void {
  let asked: number | null = null;
  let next = 0;
  let pressed = false;
  let touched = -Infinity;
  const isBusy = (): boolean => {
    const selection = getSelection();
    const isChoosing = document.activeElement instanceof HTMLSelectElement && performance.now() - touched < CHOOSING_MS;
    return pressed || isChoosing || (selection !== null && !selection.isCollapsed);
  };
  const attempt = (): void => {
    if (asked === null || document.hidden) return;
    const now = performance.now();
    if (now < next || (isBusy() && now - asked < PATIENCE_MS)) return void setTimeout(attempt, Math.max(next - now, 100));
    asked = null;
    draw();
    const took = performance.now() - now;
    next = performance.now() + Math.max(REDRAW_MS, took * LEISURE);
  };
  addEventListener("pointerdown", () => ([pressed, touched] = [true, performance.now()]), true);
  addEventListener("keydown", () => (touched = performance.now()), true);
  for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (pressed = false), true);
  addEventListener("blur", ({ target }) => (pressed &&= target !== window));
  document.addEventListener("visibilitychange", attempt);
  return () => {
    if (asked !== null) return;
    asked = performance.now();
    attempt();
  };
}
