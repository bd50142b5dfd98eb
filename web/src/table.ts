// The rows as a table that sorts, with a bar for the energy and a whisker for its interval. The same numbers as the flame graph, for everybody.
import { el, savers } from "./dom";
import { count, interval, joules, percent, plus_minus, seconds, unit, watts } from "./format";
import { cell, of_row, one, scale_note, scale_of, source } from "./how";
import { unresolved, with_scale } from "./range";
import type { State } from "./state";

const SHOWN = 25;

interface Column {
  title: string;
  value: (row: number) => number | string;
  show: (row: number) => Node | string;
  how: (row: number) => string;
  left?: boolean;
}

const MARKS = "measured: the clock at the marks of its spans";

export class Table {
  readonly element: HTMLElement;
  private body = el("tbody");
  private headings = el("tr");
  private more = el("button", { type: "button", click: () => { this.limit = Number.POSITIVE_INFINITY; this.fill(); } });
  private limit = SHOWN;
  private by = 1;
  private down = true;
  private columns: Column[];
  private most_j = 1;

  constructor(private state: State) {
    const run = state.run;
    const r = () => state.range;
    const n = (f: (i: number) => number, show: (x: number) => string, how: string | null) => ({ value: f, show: (i: number) => show(f(i)), how: (i: number) => how ?? of_row(run, i) });
    const over = (what: string) => (i: number) => `energy over ${what}; ${of_row(run, i)}`;
    const scale = scale_of(run.head);
    this.columns = [
      { title: "name", value: (i) => run.label(i), show: (i) => this.name(i), how: () => "" },
      { title: `energy${scale && ` (all ${scale})`}`, value: (i) => r().all_j[i], show: (i) => this.bar(i), how: (i) => this.energy_how(i), left: true },
      { title: "own", ...n((i) => r().self_j[i], joules, null) },
      { title: "share", ...n((i) => r().all_j[i] / r().total.energy_j, percent, null), how: over("that of the machine") },
      { title: "calls", ...n((i) => r().calls[i], count, "counted") },
      { title: "time", ...n((i) => r().all_s[i], seconds, MARKS) },
      { title: "per call", ...n((i) => (r().calls[i] ? r().all_j[i] / r().calls[i] : Number.NaN), joules, null), how: over("calls") },
      { title: "power", ...n((i) => r().all_j[i] / r().all_s[i], watts, null), how: over("its time") },
      { title: "kind", value: (i) => run.kind(i), show: (i) => run.kind(i), how: () => "" },
    ];
    if (run.head.counters.length)
      this.columns.push({ title: `per ${one(run.head.counters[0])} inside`, ...n((i) => (run.array.row_counts[i] > 0 ? run.array.row_energy_j[i] / run.array.row_counts[i] : Number.NaN), joules, null), how: over(`${run.head.counters[0]} that were counted while it was open, in the whole run`) });
    if (run.array.row_macs.some((x) => x > 0))
      this.columns.push({ title: "per MAC", ...n((i) => r().all_j[i] / (run.array.row_macs[i] * r().calls[i]), (x) => unit(x, "J"), null), how: over("the model's multiplications") });
    for (const [k, c] of this.columns.entries())
      this.headings.append(el("th", { scope: "col", "aria-sort": "none", class: c.left ? "left" : "" }, el("button", { type: "button", click: () => this.sort(k) }, c.title)));
    this.element = el("div", { class: "rows" },
      el("div", { class: "bar" }, el("h3", {}, "Rows"), source(run.head.attribution.provenance, `by ${run.head.attribution.method}`), savers("nrg-rows", null, () => this.rows())),
      scale ? el("p", { class: "note" }, `± does not have the estimate's scale in it: the truth of all rows is their energy ${scale}, with one factor for all of them.`) : null,
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "rows of the attribution" },
        el("table", {}, el("caption", { class: "unseen" }, "Energy of each row with its 95 % interval"), el("thead", {}, this.headings), this.body)),
      this.more);
    state.on((what) => what !== "view" && this.fill());
    this.fill();
  }

  private name(i: number): Node {
    const { run } = this.state;
    let depth = 0;
    for (let p = run.array.row_parent[i]; p >= 0 && depth < 12; p = run.array.row_parent[p]) depth++;
    return el("span", { class: "name", title: `${run.name(i)}${run.detail(i) ? ` (${run.detail(i)})` : ""}, level ${depth + 1}` }, run.label(i));
  }

  private bar(i: number): Node {
    const r = this.state.range;
    const [e, low, high] = [r.all_j[i], r.low_j[i], r.high_j[i]];
    const at = (x: number) => `${Math.max(0, Math.min(100, (100 * x) / this.most_j))}%`;
    const fill = el("i", { class: "fill" });
    const whisker = el("i", { class: "whisker" });
    fill.style.width = at(e);
    whisker.style.left = at(low);
    whisker.style.width = `${Math.max(0.5, Math.min(100, (100 * (high - low)) / this.most_j))}%`;
    const open = unresolved({ energy_j: e, low_j: low, high_j: high });
    return el("span", { class: open ? "energy open" : "energy" },
      el("b", {}, joules(e)), el("span", { class: "track", "aria-hidden": "true" }, fill, Number.isFinite(high - low) && whisker),
      el("small", {}, plus_minus(e, low, high), open ? " not resolved" : ""));
  }

  private energy_how(i: number): string {
    const { run, range: r } = this.state;
    const scaled = with_scale(run, r, i);
    return `${of_row(run, i)}; 95 %: ${interval(r.low_j[i], r.high_j[i])}${scaled ? `; ${scale_note(run.head)}: ${interval(...scaled)}` : ""}`;
  }

  private sort(k: number) {
    this.down = this.by === k ? !this.down : typeof this.columns[k].value(0) === "number";
    this.by = k;
    this.fill();
  }

  private order(): number[] {
    const { run, range, search } = this.state;
    const words = search.toLowerCase();
    const value = this.columns[this.by].value;
    const rows: number[] = [];
    for (let i = 0; i < run.n_rows; i++)
      if ((range.all_s[i] > 0 || range.calls[i] > 0) && (!words || `${run.name(i)} ${run.label(i)} ${run.detail(i)}`.toLowerCase().includes(words))) rows.push(i);
    const sign = this.down ? -1 : 1;
    return rows.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (typeof x === "string" || typeof y === "string") return sign * String(x).localeCompare(String(y));
      return Number.isNaN(x) || Number.isNaN(y) ? Number(Number.isNaN(x)) - Number(Number.isNaN(y)) : sign * (x - y);
    });
  }

  private fill() {
    const rows = this.order();
    this.most_j = 0;
    for (const i of rows) this.most_j = Math.max(this.most_j, this.state.range.all_j[i] || 0);
    this.most_j = this.most_j || 1;
    for (const [k, h] of [...this.headings.children].entries()) h.setAttribute("aria-sort", k !== this.by ? "none" : this.down ? "descending" : "ascending");
    this.body.replaceChildren(...rows.slice(0, this.limit).map((i) => el("tr", {}, ...this.columns.map((c, k) =>
      k ? cell(c.show(i), c.how(i), c.left ? { class: "left" } : {}) : el("th", { scope: "row" }, c.show(i))))));
    if (!rows.length) this.body.append(el("tr", {}, el("td", { class: "left", colspan: String(this.columns.length) }, this.state.search ? "Nothing is called that." : "No spans here.")));
    this.more.hidden = rows.length <= this.limit;
    this.more.textContent = `show all ${rows.length}`;
  }

  private rows(): unknown[][] {
    const { run, range: r } = this.state;
    const out: unknown[][] = [["name", "detail", "kind", "parent", "calls", "time_s", "energy_j", "low_j", "high_j", "low_with_scale_j", "high_with_scale_j", "energy_self_j", "provenance", "method"]];
    const { row_provenance, row_method, row_parent } = run.array;
    for (let i = 0; i < run.n_rows; i++)
      out.push([run.name(i), run.detail(i), run.kind(i), row_parent[i], r.calls[i], r.all_s[i], r.all_j[i], r.low_j[i], r.high_j[i], ...(with_scale(run, r, i) ?? ["", ""]), r.self_j[i],
        run.head.strings[row_provenance[i]], run.head.strings[row_method[i]]]);
    return out;
  }
}
