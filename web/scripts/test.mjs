// Runs test/*.test.ts under Node's test runner.
import { readdir, mkdtemp, rm } from "node:fs/promises";
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const web = fileURLToPath(new URL("..", import.meta.url));
const tests = (await readdir(join(web, "test"))).filter((name) => name.endsWith(".test.ts"));
const dir = await mkdtemp(join(tmpdir(), "ranway-web-"));
try {
  await build({ entryPoints: tests.map((name) => join(web, "test", name)), bundle: true, platform: "node", format: "esm", outdir: dir, outExtension: { ".js": ".mjs" }, logLevel: "error" });
  const { status } = spawnSync(process.execPath, ["--test", "--test-reporter=spec", dir], { cwd: web, stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  await rm(dir, { recursive: true });
}
