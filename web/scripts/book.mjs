// Reads a built book in a headless Chromium: `node web/scripts/book.mjs DIR WORD PAGE`, where DIR is what mdBook wrote, and WORD a word
// with which the search must find PAGE. Prints what it finds as JSON: counts, and `wrong`, a list of faults. `make docs` and the test of the
// book use it. Exit code 1 if something is wrong, 77 without a Chromium.
import { createServer } from "node:http";
import { readdirSync, readFileSync } from "node:fs";
import { extname, join, relative } from "node:path";
import { launch } from "./chromium.mjs";

const [dir, word, target] = process.argv.slice(2);
if (!dir || !word || !target) {
  console.error("usage: book.mjs DIR WORD PAGE");
  process.exit(2);
}
/** What `make docs` puts beside the book's own pages; other programs have made these and check their links. */
const OTHERS = ["rust", "python"];
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png", ".woff2": "font/woff2" };
const TIMEOUT = 20_000;

const files = new Set(
  readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dir, join(entry.parentPath ?? entry.path, entry.name))),
);
const pages = [...files].filter((name) => name.endsWith(".html") && !OTHERS.includes(name.split("/")[0])).sort();
const wrong = new Set();
const found = { pages: pages.length, links: 0, pictures: 0, results: 0, wrong: [] };

const plain = (text) => text.replaceAll("&amp;", "&").replaceAll("&quot;", '"').replaceAll("&#x27;", "'");
const textOf = new Map(pages.map((name) => [name, readFileSync(join(dir, name), "utf8")]));
const idsOf = new Map([...textOf].map(([name, text]) => [name, new Set([...text.matchAll(/\s(?:id|name)="([^"]*)"/g)].map(([, id]) => plain(id)))]));

/** Each link of a page to another one, to a place in one, or to a file leads there. */
for (const [name, text] of textOf) {
  const base = new URL(name, "http://book/");
  for (const [, link] of text.matchAll(/<(?:a|img|link|script|iframe|source)\b[^>]*?\s(?:href|src)="([^"]*)"/g)) {
    const to = new URL(plain(link), base);
    if (to.host !== base.host || to.protocol !== base.protocol) continue;
    found.links += 1;
    const path = decodeURIComponent(to.pathname.slice(1)) || "index.html";
    const place = decodeURIComponent(to.hash.slice(1));
    if (OTHERS.includes(path.split("/")[0])) continue;
    if (!files.has(path)) wrong.add(`${name}: ${link}: there is no such file`);
    else if (place !== "" && idsOf.has(path) && !idsOf.get(path).has(place)) wrong.add(`${name}: ${link}: there is no such place`);
  }
}

const server = createServer((request, response) => {
  const path = decodeURIComponent(new URL(request.url ?? "/", "http://book/").pathname.slice(1)) || "index.html";
  // Only what was listed above can be asked for.
  const isThere = files.has(path);
  response.writeHead(isThere ? 200 : 404, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream" });
  response.end(isThere ? readFileSync(join(dir, path)) : "");
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const root = `http://127.0.0.1:${server.address().port}/`;
const browser = await launch();
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(TIMEOUT);
  page.on("pageerror", (error) => wrong.add(String(error)));
  page.on("response", (response) => response.status() >= 400 && wrong.add(`${response.url()}: ${response.status()}`));

  for (const [name, text] of textOf) {
    // The page for printing has all others' pictures again.
    if (!/<img\b/.test(text) || name === "print.html") continue;
    await page.goto(root + name, { waitUntil: "load" });
    const pictures = await page.evaluate(async () => {
      // mdBook keeps a large copy of each, which a click shows.
      const all = [...document.querySelectorAll("main img:not(.img-wrapper img)")];
      await Promise.all(all.map((one) => one.decode().catch(() => undefined)));
      return all.map((one) => ({ src: one.getAttribute("src"), alt: one.alt, natural: one.naturalWidth, shown: one.getBoundingClientRect().width }));
    });
    for (const { src, alt, natural, shown } of pictures) {
      found.pictures += 1;
      if (natural === 0 || shown < 100) wrong.add(`${name}: ${src} is not shown (${natural} px wide, shown ${shown} px wide)`);
      if (alt.trim() === "") wrong.add(`${name}: ${src} has no description`);
    }
  }

  await page.goto(`${root}index.html`, { waitUntil: "load" });
  await page.locator("#mdbook-search-toggle").click();
  await page.locator("#mdbook-searchbar").fill(word);
  const results = page.locator("#mdbook-searchresults a");
  await results.first().waitFor();
  found.results = await results.count();
  const hit = page.locator(`#mdbook-searchresults a[href*="${target}"]`).first();
  if ((await hit.count()) === 0) wrong.add(`the search for ${word} does not find ${target}`);
  else {
    await hit.click();
    await page.waitForURL((url) => url.pathname.endsWith(`/${target}`));
    const text = await page.locator("main").textContent();
    if (!text.toLowerCase().includes(word.toLowerCase())) wrong.add(`${target} does not contain ${word}`);
  }
} catch (error) {
  wrong.add(String(error));
} finally {
  found.wrong = [...wrong];
  console.log(JSON.stringify(found));
  await browser.close();
  server.close();
  process.exitCode = found.wrong.length === 0 ? 0 : 1;
}
