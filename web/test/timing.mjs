// First paint, all drawn, and the longest of four selections of a page, in ms, and its heap in MB: timing.mjs CHROMIUM PAGE. For bench/page.
import { chromium } from "playwright-core";

const [executablePath, file] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync", "--enable-precise-memory-info"] });
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
await page.goto(`file://${file}`);
await page.waitForSelector("html[data-ready=yes]", { timeout: 120_000 });
const times = await page.evaluate(async () => {
  const drawn = performance.now();
  const end = Number(document.querySelector("[data-nrg=to-s]").dataset.value);
  let longest = 0;
  for (const [a, b] of [[0.1, 0.2], [0.3, 0.9], [0.01, 0.99], [0.5, 0.501]]) {
    const from = performance.now();
    location.hash = `#from=${a * end}&to=${b * end}`;
    await new Promise((done) => setTimeout(done, 0));
    await new Promise((done) => requestAnimationFrame(done));
    longest = Math.max(longest, performance.now() - from);
  }
  return [performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.NaN, drawn, longest, (performance.memory?.usedJSHeapSize ?? Number.NaN) / 1e6];
});
console.log(times.map((t) => Math.round(t)).join(", "));
await browser.close();
