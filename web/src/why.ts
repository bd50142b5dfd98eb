// Why: joules per multiplication against how many come with a byte, and the most expensive operators.
import { el, savers } from "./dom";
import { count, digits, interval, joules, percent, seconds, ticks, unit, watts } from "./format";
import { Picture, type Pen, SET, colours } from "./pen";
import type { State } from "./state";
import { colour_of } from "./timeline";

const INNER = new Set(["operator", "kernel", "layer"]);

interface Point {
  row: number;
  per_byte: number;
  pj: number;
  energy_j: number;
}

/** Operators, kernels and layers; where none are marked, rows that hold no others. */
function leaves(state: State): number[] {
  const { run } = state;
  const rows = Array.from({ length: run.n_rows }, (_, i) => i);
  const inner = rows.filter((i) => INNER.has(run.kind(i)));
  if (inner.length) return inner;
  const parents = new Set<number>(Array.from(run.array.row_parent));
  return rows.filter((i) => !parents.has(i));
}

export class Why {
  readonly element: HTMLElement;
  private body = el("tbody");
  private points: Point[] = [];
  private picture: Picture;
  private plot: HTMLElement;

  constructor(private state: State) {
    this.picture = new Picture("energy per MAC against arithmetic intensity", 300, (pen, w, h) => this.draw(pen, w, h));
    this.plot = el("div", {}, this.picture.canvas);
    this.element = el("section", { id: "why", "aria-labelledby": "why-title" },
      el("div", { class: "bar" }, el("h2", { id: "why-title" }, "Why"), savers("nrg-why", () => this.picture.svg(), () => this.rows())),
      this.plot,
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "most expensive operators" },
        el("table", {}, el("caption", {}, "The ten most expensive operators, with what they used themselves"), el("thead", {}, el("tr", {},
          ...["name", "calls", "time", "energy", "95 %", "share", "power", "per MAC", "per byte"].map((t) => el("th", { scope: "col" }, t)))), this.body)));
    state.on((what) => what === "range" && this.show());
    this.show();
  }

  private top(): number[] {
    return leaves(this.state).filter((i) => this.state.range.self_j[i] > 0).sort((a, b) => this.state.range.self_j[b] - this.state.range.self_j[a]).slice(0, 10);
  }

  private show() {
    const { run, range: r } = this.state;
    this.points = [];
    for (let i = 0; i < run.n_rows; i++) {
      const [macs, moved] = [run.array.row_macs[i], run.array.row_bytes[i]];
      if (macs > 0 && moved > 0 && r.calls[i] > 0 && r.all_j[i] > 0) this.points.push({ row: i, per_byte: macs / moved, pj: (r.all_j[i] / (macs * r.calls[i])) * 1e12, energy_j: r.all_j[i] });
    }
    this.plot.replaceChildren(this.points.length ? this.picture.canvas : el("p", { class: "empty" },
      "No row has both multiplications and bytes, so joules per MAC can't be shown. A recording that keeps the model's graph has them: nrg run --graph MODEL, or nrg.torch.trace in the program."));
    this.body.replaceChildren(...this.top().map((i) => {
      const macs = run.array.row_macs[i] * r.calls[i];
      const moved = run.array.row_bytes[i] * r.calls[i];
      return el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name", title: run.name(i) }, run.label(i))), el("td", {}, count(r.calls[i])), el("td", {}, seconds(r.self_s[i])),
        el("td", {}, joules(r.self_j[i])), el("td", {}, interval(r.low_j[i], r.high_j[i])), el("td", {}, percent(r.self_j[i] / r.total.energy_j)), el("td", {}, watts(r.self_j[i] / r.self_s[i])),
        el("td", {}, unit(r.self_j[i] / macs, "J")), el("td", {}, unit(r.self_j[i] / moved, "J")));
    }));
    if (!this.body.children.length) this.body.append(el("tr", {}, el("td", { colspan: "9" }, "No spans here.")));
    this.picture.paint();
  }

  private draw(pen: Pen, width: number, height: number) {
    const { ink, dim, line } = colours();
    if (!this.points.length) return;
    const logs = (f: (p: Point) => number) => this.points.map((p) => Math.log10(f(p)));
    const span = (v: number[]) => [Math.floor(Math.min(...v) - 0.2), Math.ceil(Math.max(...v) + 0.2)];
    const [x0, x1] = span(logs((p) => p.per_byte));
    const [y0, y1] = span(logs((p) => p.pj));
    const x = (v: number) => 60 + ((v - x0) / (x1 - x0)) * (width - 80);
    const y = (v: number) => height - 34 - ((v - y0) / (y1 - y0)) * (height - 54);
    for (const t of ticks(x0, x1, 8).filter(Number.isInteger)) {
      pen.shape([x(t), 14, x(t), height - 34], line, 1);
      pen.text(digits(10 ** t, 3), x(t), height - 19, dim, "middle");
    }
    for (const t of ticks(y0, y1, 6).filter(Number.isInteger)) {
      pen.shape([60, y(t), width - 20, y(t)], line, 1);
      pen.text(unit(10 ** t * 1e-12, "J", 2), 54, y(t) + 4, dim, "end");
    }
    pen.text("MACs per byte of memory traffic", width / 2, height - 4, ink, "middle");
    pen.text("joules per MAC", 4, 11, ink);
    const most = Math.max(...this.points.map((p) => p.energy_j));
    for (const p of this.points) {
      const [cx, cy] = [x(Math.log10(p.per_byte)), y(Math.log10(p.pj))];
      const radius = 3 + 9 * Math.sqrt(p.energy_j / most);
      const circle: number[] = [];
      for (let a = 0; a < 20; a++) circle.push(cx + radius * Math.cos((a * Math.PI) / 10), cy + radius * Math.sin((a * Math.PI) / 10));
      pen.shape(circle, this.state.run.n_rows ? colour_of(this.state.run, p.row) : SET[0], undefined, 0.7);
      pen.text(this.state.run.label(p.row), cx + radius + 3, cy + 4, dim, "start", 140);
    }
  }

  private rows(): unknown[][] {
    const { run } = this.state;
    return [["name", "kind", "macs_per_byte", "pj_per_mac", "energy_j"], ...this.points.map((p) => [run.name(p.row), run.kind(p.row), p.per_byte, p.pj, p.energy_j])];
  }
}
