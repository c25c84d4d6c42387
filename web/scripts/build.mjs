// Builds the report viewer into one page; with --check, says whether the committed page is what the sources give.
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const target = at("../../crates/record/assets/report.html");

const bundle = await build({
  entryPoints: [at("../src/main.ts")],
  bundle: true,
  minify: true,
  write: false,
  outdir: "out",
  format: "iife",
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none",
});
const text = (ending) => bundle.outputFiles.find((file) => file.path.endsWith(ending)).text.trim();
const licences = `/* ${(await readFile(at("../node_modules/uplot/LICENSE"), "utf8")).trim()} (uPlot) */`;
const template = await readFile(at("../src/page.html"), "utf8");
const script = `${licences}\n${text(".js")}`;
// The page's policy permits this script and no other (Content Security Policy Level 3, section 2.3.1).
const digest = `sha256-${createHash("sha256").update(script).digest("base64")}`;
const page = template
  .replace("/*STYLE*/", () => text(".css"))
  .replace("/*DIGEST*/", () => digest)
  .replace("/*SCRIPT*/", () => script);

if (process.argv.includes("--check")) {
  const committed = await readFile(target, "utf8").catch(() => "");
  if (committed !== page) {
    console.error("crates/record/assets/report.html is stale: run `npm run build` in web/ and commit it");
    process.exit(1);
  }
  console.log("crates/record/assets/report.html is up to date");
} else {
  await writeFile(target, page);
  console.log(`wrote crates/record/assets/report.html, ${Math.round(page.length / 1000)} kB`);
}
