// What speedscope makes of files, as told on stdin: errors by its schema, and the title of its page. tests/cli/test_profilers.py judges.
// In: {chromium, pages: [{file, script}]}; chromium "": the schema alone.
import { readFileSync } from "node:fs";
import Ajv from "ajv";
import { chromium } from "playwright-core";

const release = new URL("../node_modules/speedscope/dist/release/", import.meta.url);
const check = new Ajv({ strict: false }).compile(JSON.parse(readFileSync(new URL("file-format-schema.json", release), "utf8")));
const job = JSON.parse(readFileSync(0, "utf8"));
const browser = job.chromium ? await chromium.launch({ executablePath: job.chromium, args: ["--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader", "--allow-file-access-from-files"] }) : null;
const out = [];
for (const { file, script } of job.pages) {
  const seen = { file, errors: [], schema: check(JSON.parse(readFileSync(file, "utf8"))) ? [] : check.errors.slice(0, 5) };
  if (browser) {
    const page = await browser.newPage();
    page.on("pageerror", (e) => seen.errors.push(String(e)));
    page.on("dialog", (d) => { seen.errors.push(d.message()); d.dismiss(); });
    await page.goto(`${new URL("index.html", release)}#localProfilePath=${script}`);
    await page.waitForFunction(() => document.title.includes(" - speedscope"), null, { timeout: 30_000 }).catch(() => {});
    seen.title = await page.title();
    await page.close();
  }
  out.push(seen);
}
await browser?.close();
console.log(JSON.stringify(out));
