// Starts Debian's Chromium without a window, for the scripts that tests run. Without one, the process ends with exit code 77.
import { spawnSync } from "node:child_process";
import { chromium } from "playwright-core";

/** Starts the browser, which the caller closes. */
export async function launch() {
  const name = ["chromium", "chromium-browser", "google-chrome"].find((name) => spawnSync(name, ["--version"]).status === 0);
  if (!name) {
    console.error("no Chromium");
    process.exit(77);
  }
  return chromium.launch({ executablePath: spawnSync("which", [name]).stdout.toString().trim(), args: ["--no-sandbox"] });
}

/** Waits until `script` returns something true in `page`, also where the page's policy forbids what Playwright's own function does. */
export async function until(page, script, timeout) {
  for (const end = Date.now() + timeout; !(await page.evaluate(script)); await page.waitForTimeout(50)) {
    if (Date.now() > end) throw new Error(`not within ${timeout} ms: ${script}`);
  }
}
