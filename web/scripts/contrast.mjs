// What is hard to see on a page, by WCAG 2.2: 4.5:1 for texts (3:1 for large ones; success criterion 1.4.3) and 3:1 for the parts of
// pictures and for fields (1.4.11). Lines of plots are not checked: test/palette.test.ts has their colours, and dashes, markers and values
// tell them apart as well.

/** Runs in the page before its own scripts: notes what is written on canvases, and defines `contrast` for the functions below. */
export function prepare() {
  const context = CanvasRenderingContext2D.prototype;
  const { clearRect, fillText } = context;
  context.clearRect = function (x, y, width, height) {
    if (x <= 0 && y <= 0 && width >= this.canvas.width && height >= this.canvas.height) this.canvas.texts = [];
    return clearRect.call(this, x, y, width, height);
  };
  context.fillText = function (text, ...place) {
    (this.canvas.texts ??= []).push({ text, colour: this.fillStyle });
    return fillText.call(this, text, ...place);
  };
  const parse = (text) => {
    const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(text);
    if (hex !== null) return [...hex.slice(1).map((part) => parseInt(part, 16)), 1];
    const [r, g, b, a = 1] = (/^rgba?\(([^)]*)\)/.exec(text)?.[1] ?? "0,0,0,0").split(/[ ,/]+/).map(Number);
    return [r, g, b, a];
  };
  const over = ([r, g, b, a], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ancestors = (element) => {
    const all = [];
    for (let one = element; one !== null; one = one.parentElement) all.push(one);
    return all;
  };
  const behind = (element) => ancestors(element).reverse().reduce((below, one) => over(parse(getComputedStyle(one).backgroundColor), below), [255, 255, 255]);
  /** The contrast of a colour with the background of `element`, as it is seen through the opacities of `element` and around it. */
  const of = (colour, element, opacity = 1) => {
    const background = behind(element);
    const [r, g, b, a] = parse(colour);
    const seen = ancestors(element).reduce((rest, one) => rest * Number(getComputedStyle(one).opacity), a * opacity);
    const [x, y] = [luminance(over([r, g, b, seen], background)), luminance(background)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  window.contrast = { of };
}

/** Runs in the page: what has too little contrast, and how many things of each kind were looked at. */
export function faint() {
  const { of } = window.contrast;
  const [wrong, seen] = [new Set(), { texts: 0, labels: 0, shapes: 0, fields: 0, canvases: 0 }];
  const expect = (kind, least, found, what) => {
    seen[kind] += 1;
    if (found < least) wrong.add(`${kind}: ${found.toFixed(2)} of ${least}: ${what.trim().slice(0, 60)}`);
  };
  const isVisible = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const least = ({ fontSize, fontWeight }) => (parseFloat(fontSize) >= 24 || (parseFloat(fontSize) >= 18.66 && Number(fontWeight) >= 700) ? 3 : 4.5);
  const name = (element) => `${element.tagName}.${element.getAttribute("class") ?? ""}`;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent;
    if (text.trim() === "" || element.closest("script, style, option, title") || !isVisible(element)) continue;
    const style = getComputedStyle(element);
    const inPicture = element.closest("svg") !== null;
    const colour = inPicture ? style.fill : style.color;
    expect(inPicture ? "labels" : "texts", least(style), of(colour, element, inPicture ? Number(style.fillOpacity) : 1), `${name(element)}: ${text}`);
  }
  for (const shape of document.querySelectorAll(".map-figure svg :is(path, circle)")) {
    const style = getComputedStyle(shape);
    const parts = [
      [style.fill, style.fillOpacity],
      [style.stroke, style.strokeOpacity],
    ].filter(([colour]) => colour !== "none");
    expect("shapes", 3, Math.max(0, ...parts.map(([colour, opacity]) => of(colour, shape, Number(opacity)))), name(shape));
  }
  for (const field of document.querySelectorAll("input, select, progress")) {
    if (!isVisible(field)) continue;
    const style = getComputedStyle(field);
    const what = `${name(field)} ${field.getAttribute("aria-label") ?? field.closest("label")?.textContent ?? ""}`;
    if (field.matches("progress")) {
      expect("fields", 3, of(style.accentColor, field), what);
      continue;
    }
    expect("fields", 4.5, of(style.color, field), `value of ${what}`);
    if (field.matches(":placeholder-shown")) expect("fields", 4.5, of(getComputedStyle(field, "::placeholder").color, field), `placeholder of ${what}`);
    expect("fields", 3, Math.max(of(style.borderTopColor, field.parentElement), of(style.backgroundColor, field.parentElement)), `edge of ${what}`);
  }
  for (const canvas of document.querySelectorAll("canvas")) {
    for (const { text, colour } of canvas.texts ?? []) expect("canvases", 4.5, of(colour, canvas), text);
  }
  return { wrong: [...wrong], seen };
}
