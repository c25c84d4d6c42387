// Runs @m-lab/ndt7's client in a headless Chromium against a server: `node web/scripts/ndt7.mjs HOST:PORT [DIRECTION]`, and prints the last
// measurements of both sides as JSON. The tests of `ranway measure serve` use it.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { launch } from "./chromium.mjs";

const [server, only] = process.argv.slice(2);
if (!server) {
  console.error("usage: ndt7.mjs HOST:PORT [download|upload]");
  process.exit(2);
}
const source = dirname(createRequire(import.meta.url).resolve("@m-lab/ndt7"));
const page = '<!doctype html><meta charset="utf-8"><script src="ndt7.js"></script>';
const files = createServer((request, response) => {
  const file = (request.url ?? "/").slice(1);
  const known = /^ndt7(-(down|up)load-worker)?\.js$/.test(file);
  response.setHeader("Content-Type", known ? "text/javascript" : "text/html");
  response.end(known ? readFileSync(join(source, file)) : page);
});
await new Promise((done) => files.listen(0, "127.0.0.1", done));
const browser = await launch();
try {
  const tab = await browser.newPage();
  tab.on("console", (message) => console.error(message.text()));
  await tab.goto(`http://127.0.0.1:${files.address().port}/`);
  const result = await tab.evaluate(
    async ([server, only]) => {
      const result = { server: 0, errors: [] };
      const config = { server, protocol: "ws", mlabDataPolicyInapplicable: true };
      const callbacks = {
        error: (why) => result.errors.push(String(why)),
        downloadMeasurement: ({ Source }) => (result.server += Source === "server" ? 1 : 0),
        uploadMeasurement: ({ Source }) => (result.server += Source === "server" ? 1 : 0),
        downloadComplete: (last) => (result.download = last),
        uploadComplete: (last) => (result.upload = last),
      };
      const urls = window.ndt7.discoverServerURLs(config, callbacks);
      if (only !== "upload") result.downloadCode = await window.ndt7.downloadTest(config, callbacks, urls);
      if (only !== "download") result.uploadCode = await window.ndt7.uploadTest(config, callbacks, urls);
      return result;
    },
    [server, only],
  );
  console.log(JSON.stringify(result));
  process.exitCode = result.errors.length ? 1 : 0;
} finally {
  await browser.close();
  files.close();
}
