// Several recordings side by side: what they used, and which rows differ most. No verdict: one run of each says nothing of chance.
import type { Run } from "./data";
import { el, savers } from "./dom";
import { interval, joules, percent, seconds, watts } from "./format";
import { source } from "./header";
import { path_of } from "./tree";

function differences(a: Run, b: Run): [string, number, number][] {
  const rows = new Map<string, [string, number, number]>();
  const add = (run: Run, k: 1 | 2) => {
    for (let i = 0; i < run.n_rows; i++) {
      const key = path_of(run, i);
      const entry = rows.get(key) ?? [key.split("\n").map((p) => p.split("\t")[1]).join(" › "), 0, 0];
      entry[k] += run.array.row_self_j[i] || 0;
      rows.set(key, entry);
    }
  };
  add(a, 1);
  add(b, 2);
  return [...rows.values()].sort((x, y) => Math.abs(y[2] - y[1]) - Math.abs(x[2] - x[1]));
}

export function compare(runs: Run[], show: (index: number) => void): HTMLElement {
  const first = runs[0].head.report;
  const change = (x?: number | null, y?: number | null) => (Number.isFinite(x ?? Number.NaN) && Number.isFinite(y ?? Number.NaN) && y ? `${x! >= y ? "+" : "−"}${percent(Math.abs(x! / y - 1))}` : "–");
  const body = el("tbody", {}, ...runs.map((run, i) => {
    const r = run.head.report;
    return el("tr", {}, el("th", { scope: "row" }, el("button", { type: "button", click: () => show(i) }, `${i + 1}. ${r.command || "recording"}`)),
      el("td", {}, joules(r.program?.energy_j)), el("td", {}, joules(r.total.energy_j)), el("td", {}, interval(r.total.low_j, r.total.high_j)), el("td", {}, source(r.total.provenance)),
      el("td", {}, seconds(r.duration_s)), el("td", {}, watts(r.total.mean_w)),
      el("td", {}, i ? change(r.total.energy_j, first.total.energy_j) : ""), el("td", {}, i ? change(r.duration_s, first.duration_s) : ""));
  }));
  const last = runs[runs.length - 1];
  const rows = differences(runs[0], last).filter(([, a, b]) => a || b);
  const head = (titles: string[]) => el("thead", {}, el("tr", {}, ...titles.map((t) => el("th", { scope: "col" }, t))));
  const scroll = (label: string, table: HTMLElement) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, table);
  return el("section", { id: "compare", "aria-labelledby": "compare-title" },
    el("div", { class: "bar" }, el("h2", { id: "compare-title" }, "Side by side"), savers("nrg-compare", null, () => [["row", "first_j", "last_j"], ...rows])),
    scroll("runs", el("table", {}, head(["run", "program", "machine", "95 %", "source", "duration", "mean power", "energy to the first", "time to the first"]), body)),
    el("p", { class: "note" }, "Two runs differ by chance, too: nrg compare says whether a difference is real."),
    rows.length ? scroll("rows that differ most", el("table", {}, el("caption", {}, `Rows that differ most, first run and run ${runs.length}, own energy`), head(["row", "first", `run ${runs.length}`, "difference"]),
      el("tbody", {}, ...rows.slice(0, 15).map(([name, a, b]) => el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name", title: name }, name)), el("td", {}, joules(a)), el("td", {}, joules(b)),
        el("td", { class: b > a ? "more" : "less" }, `${b >= a ? "+" : "−"}${joules(Math.abs(b - a))}`)))))) : null);
}
