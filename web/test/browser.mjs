// Looks at pages in a real browser, as told on stdin, and says what it saw on stdout, both JSON. tests/cli/test_page.py judges.
// In: {chromium, pages: [{file, ranges: [[from_s, to_s], …], shot?}]}. Nothing here knows what is right.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
const job = JSON.parse(readFileSync(0, "utf8"));

/** By what the elements are called, as a script would that knows nothing else: their text. */
const selection = (page) => page.evaluate(() => Object.fromEntries([...document.querySelectorAll("[data-nrg]")].map((e) => [e.dataset.nrg, e.textContent])));

/** Names of the rows that are shown, with their energy and what stands behind ±. */
const row_texts = (page) => page.evaluate(() => [...document.querySelectorAll(".rows tbody tr")].map((r) => ["th", ".energy b", ".energy small"].map((s) => r.querySelector(s)?.textContent ?? "")));

const tiles = (page, within) => page.evaluate((w) => Object.fromEntries([...document.querySelectorAll(`${w} .card`)].map((c) => [c.querySelector("dt").textContent, [c.querySelector("dd").textContent, c.title]])), within);

/** Cells with a number that do not say on hover how it was made. */
const silent = (page) => page.evaluate(() => [...document.querySelectorAll("td")].filter((c) => /\d/.test(c.textContent) && !c.title && !c.querySelector("[title]")).map((c) => c.outerHTML.slice(0, 200)));

/** Whether what stands in the first line of the rows and domains is within the screen's width. */
const in_sight = (page) => page.evaluate(() => [...document.querySelectorAll(".rows tbody tr:first-child .energy b, .rows tbody tr:first-child .energy small, #selection tbody tr:first-child td:nth-child(-n+3)")]
  .filter((e) => e.textContent).map((e) => Math.ceil(e.getBoundingClientRect().right)));

/** On paper: headings, what was folded away, and the colours of pictures. */
async function paper(page) {
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
  const out = await page.evaluate(() => ({
    headings: [...document.querySelectorAll("thead th *")].filter((h) => !h.getClientRects().length).length,
    folded: document.querySelectorAll("details:not([open])").length,
    ink: getComputedStyle(document.documentElement).getPropertyValue("--ink").trim(),
  }));
  await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
  await page.emulateMedia({ media: "screen" });
  return { ...out, pages: (await page.pdf({ format: "A4" })).length };
}

async function ranges(page, list) {
  const out = [];
  for (const [from, to] of list) {
    await page.evaluate(([a, b]) => { location.hash = `#from=${a}&to=${b}`; }, [from, to]);
    await page.waitForFunction(([a, b]) => window.location.hash.length > 0 && a < b, [from, to]);
    await page.evaluate(() => new Promise((done) => setTimeout(done, 0)));
    out.push({ ...(await selection(page)), rows: await row_texts(page) });
  }
  return out;
}

/** Everything by keys alone: to the timeline with Tab, a selection, its end; a search; a column that is sorted. */
async function keys(page) {
  const out = { tabs: 0 };
  await page.evaluate(() => { location.hash = ""; document.activeElement?.blur(); });
  for (; out.tabs < 80 && !(await page.evaluate(() => document.activeElement?.className === "pictures")); out.tabs++) await page.keyboard.press("Tab");
  out.whole = await selection(page);
  await page.keyboard.press("Shift+ArrowRight");
  out.selected = await selection(page);
  await page.keyboard.press("Shift+ArrowRight");
  out.longer = await selection(page);
  out.address = await page.evaluate(() => location.hash);
  await page.keyboard.press("+");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Home");
  await page.keyboard.press("Escape");
  out.cleared = await selection(page);
  return out;
}

async function mouse(page) {
  const box = await page.locator(".pictures").boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 45, { steps: 4 });
  await page.mouse.up();
  const dragged = await selection(page);
  await page.mouse.dblclick(box.x + box.width * 0.8, box.y + 40);
  return { dragged, cleared: await selection(page) };
}

async function search(page) {
  if (!(await page.locator(".rows").count())) return null;
  const names = () => page.evaluate(() => [...document.querySelectorAll(".rows tbody th")].map((e) => e.textContent));
  const all = await names();
  await page.fill("input[type=search]", all[all.length - 1].slice(0, 40));
  const found = await names();
  await page.fill("input[type=search]", "");
  const energies = () => page.evaluate(() => [...document.querySelectorAll(".rows thead th")].map((e) => e.getAttribute("aria-sort")));
  const before = await energies();
  await page.locator(".rows thead button").first().click();
  return { all, found, before, after: await energies(), sorted: await names() };
}

/** Every choice of every list, then what the buttons save as SVG. */
async function choices(page) {
  const out = { tried: 0, svg: [] };
  const lists = page.locator("select");
  for (let i = 0; i < (await lists.count()); i++) {
    const list = lists.nth(i);
    const [now, values] = await list.evaluate((s) => [s.value, [...s.options].map((o) => o.value)]);
    for (const value of [...values.filter((v) => v !== now), now]) {
      await list.selectOption(value);
      out.tried++;
    }
  }
  const buttons = page.locator(".savers button", { hasText: "SVG" });
  for (let i = 0; i < (await buttons.count()); i++) {
    const [saved] = await Promise.all([page.waitForEvent("download"), buttons.nth(i).click()]);
    out.svg.push(readFileSync(await saved.path(), "utf8"));
  }
  return out;
}

async function look(browser, { file, ranges: list, shot }) {
  const seen = { file, errors: [], requests: [] };
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && seen.errors.push(m.text()));
  page.on("pageerror", (e) => seen.errors.push(String(e)));
  page.on("dialog", (d) => { seen.errors.push(`dialog ${d.message()}`); d.dismiss(); });
  page.on("request", (r) => !r.url().startsWith("file://") && !r.url().startsWith("data:") && seen.requests.push(r.url()));
  await page.goto(`file://${file}`);
  await page.waitForSelector("html[data-ready=yes]", { timeout: 60_000 });
  seen.title = await page.title();
  seen.h1 = await page.textContent("h1");
  seen.text = await page.evaluate(() => document.getElementById("page").textContent.slice(0, 20_000));
  seen.painted = await page.evaluate(() => [...document.querySelectorAll("canvas")].filter((c) => {
    const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    return d.some((x) => x);
  }).length);
  seen.tiles = { head: await tiles(page, "header"), selection: await tiles(page, "#selection") };
  seen.silent = await silent(page);
  seen.selections = await ranges(page, list);
  seen.keys = await keys(page);
  seen.mouse = await mouse(page);
  seen.search = await search(page);
  seen.choices = await choices(page);
  seen.axe = {};
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
    seen.axe[colorScheme] = violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 200)}`);
    if (shot) await page.screenshot({ path: `${shot}-1440-${colorScheme}.png`, fullPage: true });
  }
  await page.setViewportSize({ width: 390, height: 844 });
  seen.in_sight = await in_sight(page);
  seen.overflow = await page.evaluate(() => document.documentElement.scrollWidth);
  if (shot) await page.screenshot({ path: `${shot}-390-dark.png`, fullPage: true });
  seen.paper = await paper(page);
  await page.close();
  return seen;
}

const browser = await chromium.launch({ executablePath: job.chromium, args: FLAGS });
const out = [];
for (const page of job.pages) out.push(await look(browser, page));
await browser.close();
console.log(JSON.stringify(out));
