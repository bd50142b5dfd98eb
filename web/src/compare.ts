// Several recordings side by side: what they used, what nrg compare says of the difference, and which rows differ most.
import type { Comparison, Effect, Run } from "./data";
import { el, savers } from "./dom";
import { digits, interval, joules, percent, seconds, watts } from "./format";
import { cell, of_rows, source } from "./how";
import { labels_of, path_of } from "./tree";

const SHOWN = 15;
const CHANGE = "derived by nrg compare: side B over side A, from the runs' spread and their own uncertainty";
const CHANCE = "derived by nrg compare: how often chance alone would show as much";

function differences(a: Run, b: Run): [string, number, number][] {
  const rows = new Map<string, [string, number, number]>();
  const add = (run: Run, k: 1 | 2) => {
    for (let i = 0; i < run.n_rows; i++) {
      const key = path_of(run, i);
      const entry = rows.get(key) ?? [labels_of(run, i), 0, 0];
      entry[k] += run.array.row_self_j[i] || 0;
      rows.set(key, entry);
    }
  };
  add(a, 1);
  add(b, 2);
  return [...rows.values()].filter(([, x, y]) => x || y).sort((x, y) => Math.abs(y[2] - y[1]) - Math.abs(x[2] - x[1]));
}

const known = (x?: number | null): x is number => Number.isFinite(x ?? Number.NaN);
const signed = (x: number) => (x > 999 ? "more than × 1000" : x > 9 ? `× ${digits(x + 1, 3)}` : `${x >= 0 ? "+" : "−"}${percent(Math.abs(x))}`);
const change = (x?: number | null, y?: number | null) => (known(x) && known(y) && y ? signed(x / y - 1) : "–");
const effect_interval = (e: Effect) => (known(e.low) && known(e.high) ? `${signed(e.low - 1)} … ${signed(e.high - 1)}` : "one run a side has none");
const head = (titles: string[]) => el("thead", {}, el("tr", {}, ...titles.map((t) => el("th", { scope: "col" }, t))));
const caption = (text: string) => el("caption", {}, el("span", { class: "fits" }, text));
const scroll = (label: string, table: HTMLElement) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);

/** Rows that nrg compare could judge, the most certain first. */
function judged(c: Comparison): HTMLElement | null {
  const rows = c.rows.filter((r) => known(r.ratio)).sort((a, b) => (a.p_adjusted ?? 2) - (b.p_adjusted ?? 2) || Math.abs(Math.log(b.ratio ?? 1)) - Math.abs(Math.log(a.ratio ?? 1)));
  if (!rows.length) return null;
  return scroll("rows by significance", el("table", {}, caption("Rows, most certain first; p is adjusted for their number"),
    head(["row", "kind", "A", "B", "change", "95 %", "p"]),
    el("tbody", {}, ...rows.slice(0, SHOWN).map((r) => el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name", title: r.name }, r.name)), el("td", {}, r.kind), cell(joules(r.a_j), "mean of side A's runs"), cell(joules(r.b_j), "mean of side B's runs"),
      cell(signed((r.ratio ?? 1) - 1), CHANGE, { class: (r.p_adjusted ?? 1) < 0.05 ? ((r.ratio ?? 1) > 1 ? "more" : "less") : "" }), cell(effect_interval(r), CHANGE), cell(known(r.p_adjusted) ? digits(r.p_adjusted, 3) : "–", CHANCE))))));
}

function most_different(runs: Run[]): HTMLElement | null {
  const rows = differences(runs[0], runs[runs.length - 1]);
  if (!rows.length) return null;
  return scroll("rows that differ most", el("table", {}, caption(`Rows that differ most, first run and run ${runs.length}, own energy`), head(["row", "first", `run ${runs.length}`, "difference"]),
    el("tbody", {}, ...rows.slice(0, SHOWN).map(([name, a, b]) => el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name", title: name }, name)), cell(joules(a), of_rows(runs[0].head)), cell(joules(b), of_rows(runs[runs.length - 1].head)),
      cell(`${b >= a ? "+" : "−"}${joules(Math.abs(b - a))}`, "derived: the last run less the first", { class: b > a ? "more" : "less" }))))));
}

/** The answer, and what speaks against comparing at all. */
function verdict(c: Comparison | undefined): HTMLElement[] {
  if (!c) return [el("p", { class: "note" }, "Two runs differ by chance, too: nrg compare says whether a difference is real.")];
  const names = (side: number) => c.sides.flatMap((s, i) => (s === side ? [i + 1] : [])).join(", ");
  const rows: [string, Effect | undefined][] = [["energy", c.energy], ["time", c.duration], ["mean power", c.mean_power]];
  const out: HTMLElement[] = [el("p", { class: "answer" }, `${c.answer ?? "No answer can be given"}.`),
    el("p", { class: "note" }, `A: run ${names(0)}; B: run ${names(1)}.${c.runs_needed ? ` ${c.runs_needed} runs of each would show 1 %.` : ""} As nrg compare says it (docs/compare.md).`)];
  for (const [title, list] of [["They can't be compared", c.refusals], ["With care", c.warnings]] as [string, string[] | undefined][])
    if (list?.length) out.push(el("ul", { class: "warn" }, ...list.map((t) => el("li", {}, `${title}: ${t}`))));
  if (rows.some(([, e]) => known(e?.ratio)))
    out.push(scroll("B over A", el("table", {}, caption("B against A"), head(["", "change", "95 %", "p", "verdict"]),
      el("tbody", {}, ...rows.filter(([, e]) => known(e?.ratio)).map(([name, e]) => el("tr", {}, el("th", { scope: "row" }, name), cell(signed((e!.ratio ?? 1) - 1), CHANGE), cell(effect_interval(e!), CHANGE), cell(known(e!.p_value) ? digits(e!.p_value, 3) : "–", CHANCE), el("td", {}, e!.verdict ?? "")))))));
  return out;
}

export function compare(runs: Run[], shown: number, show: (index: number) => void): HTMLElement {
  const first = runs[0].head.report;
  const c = runs[0].head.comparison;
  const body = el("tbody", {}, ...runs.map((run, i) => {
    const r = run.head.report;
    return el("tr", {}, el("th", { scope: "row" }, el("button", { type: "button", "aria-pressed": String(i === shown), click: () => show(i) }, el("span", { class: "name", title: r.command ?? "" }, `${i + 1}${c ? ` ${"AB"[c.sides[i]]}` : ""}. ${r.command || "recording"}`))),
      cell(joules(r.program?.energy_j), `shared out by ${r.program?.share_method ?? "use"}`), cell(joules(r.total.energy_j), r.total.provenance ?? ""), cell(interval(r.total.low_j, r.total.high_j), "95 % interval of the machine's energy"), el("td", {}, source(r.total.provenance)),
      cell(seconds(r.duration_s), "measured, by the clock"), cell(watts(r.total.mean_w), "energy of the machine over time"),
      cell(i ? change(r.total.energy_j, first.total.energy_j) : "", "derived: the machine's energy against the first run's"), cell(i ? change(r.duration_s, first.duration_s) : "", "derived: duration against the first run's"));
  }));
  return el("section", { id: "compare", "aria-labelledby": "compare-title" },
    el("div", { class: "bar" }, el("h2", { id: "compare-title" }, "Side by side"), savers("nrg-compare", null, () => [["row", "first_j", "last_j"], ...differences(runs[0], runs[runs.length - 1])])),
    ...verdict(c),
    scroll("runs", el("table", {}, caption("Runs; one of them is shown below, coloured by its difference to the first"), head(["run", "program", "machine", "95 %", "source", "duration", "mean power", "energy to the first", "time to the first"]), body)),
    (c && judged(c)) ?? most_different(runs));
}
