// Why: joules per multiplication, or per byte, against how many multiplications come with a byte, beside what the machine charges at
// best; the most expensive operators, and what of their energy that explains; and predictions beside measurements.
import type { Machine, Prediction } from "./data";
import { choice, el, savers } from "./dom";
import { count, digits, interval, joules, percent, seconds, unit, watts } from "./format";
import { type Pen, Picture, SET, colours } from "./pen";
import { cell, from, of_rows, scale_of, source } from "./how";
import { Together, self_of } from "./range";
import type { State } from "./state";
import { colour_of } from "./timeline";

const INNER = new Set(["operator", "kernel", "layer"]);
const [LEFT, RIGHT, TOP, BOTTOM] = [76, 16, 26, 40];

/** Operators of one name, or other rows that hold no more. */
export interface Group {
  name: string;
  kind: string;
  row: number;
  calls: number;
  time_s: number;
  energy_j: number;
  low_j: number;
  high_j: number;
  macs: number; // NaN: not known of all
  bytes: number;
}

/** Of an operator's energy: what its multiplications and its traffic cost at best, what is left, and idle power beside it. */
export function shares(g: Group, machine: Machine | undefined, idle_w: number) {
  const known = machine && Number.isFinite(g.macs) && Number.isFinite(g.bytes);
  let compute_j = known ? g.macs * (machine.j_per_mac ?? Number.NaN) : Number.NaN;
  let traffic_j = known ? g.bytes * (machine.j_per_byte ?? Number.NaN) : Number.NaN;
  const both = compute_j + traffic_j;
  if (both > g.energy_j) {
    compute_j *= g.energy_j / both; // it was better than the line: no more than all of it
    traffic_j *= g.energy_j / both;
  }
  return { compute_j, traffic_j, rest_j: g.energy_j - (Number.isFinite(both) ? compute_j + traffic_j : 0), idle_j: idle_w * g.time_s };
}

const key = (kind: string, text: string) => el("span", { class: `key ${kind}` }, el("i"), text);

/** Operators, kernels and layers; where none are marked, rows that hold no others. */
function leaves(state: State): number[] {
  const { run } = state;
  const rows = Array.from({ length: run.n_rows }, (_, i) => i);
  const inner = rows.filter((i) => INNER.has(run.kind(i)));
  if (inner.length) return inner;
  const parents = new Set<number>(Array.from(run.array.row_parent));
  return rows.filter((i) => !parents.has(i));
}

/** Rows of one kind and name in sum, by what they used themselves. */
export function groups(state: State): Group[] {
  const { run, range: r } = state;
  const { row_macs, row_bytes } = run.array;
  const out = new Map<string, { group: Group; sum: Together }>();
  for (const i of leaves(state)) {
    if (!(r.self_j[i] > 0)) continue;
    const key = `${run.kind(i)}\n${run.name(i)}`;
    const known = out.get(key) ?? { group: { name: run.label(i), kind: run.kind(i), row: i, calls: 0, time_s: 0, energy_j: 0, low_j: 0, high_j: 0, macs: 0, bytes: 0 }, sum: new Together() };
    out.set(key, known);
    known.sum.add(self_of(run, i), r.self_j[i], r.self_s[i]);
    const g = known.group;
    g.calls += r.calls[i];
    g.time_s += r.self_s[i];
    g.macs += row_macs[i] * r.calls[i];
    g.bytes += row_bytes[i] * r.calls[i];
  }
  const list = [...out.values()].map(({ group, sum }) => ({ ...group, energy_j: sum.energy_j, low_j: sum.low_j, high_j: sum.high_j }));
  return list.sort((a, b) => b.energy_j - a.energy_j);
}

/** Round numbers of a logarithmic axis within [from, to], as logarithms. */
function decades(from: number, to: number): { at: number; major: boolean }[] {
  const out: { at: number; major: boolean }[] = [];
  for (let d = Math.floor(from); d <= Math.ceil(to); d++)
    for (let k = 1; k < 10; k++) {
      const at = d + Math.log10(k);
      if (at >= from - 1e-9 && at <= to + 1e-9) out.push({ at, major: k === 1 || (to - from < 1.6 && (k === 2 || k === 5)) });
    }
  return out;
}

interface Point {
  name: string;
  kind: string;
  row: number;
  per_byte: number;
  pj: number;
  energy_j: number;
}

/** A profile's prices are fitted: operators lie on both sides of its line. */
const quality = (m: Machine) => (m.source === "profile" ? "as fitted" : "at best");

const PREDICTED = "estimated: predicted from the graph by the profile";

function predicted(p: Prediction): HTMLElement {
  const all = p.modules.filter((m) => Number.isFinite(m.predicted_j ?? Number.NaN) && Number.isFinite(m.measured_j ?? Number.NaN));
  const rows = all.sort((a, b) => (b.measured_j ?? 0) - (a.measured_j ?? 0)).slice(0, 15);
  const here = `${p.measured_provenance}, by ${p.method}`;
  const verdict = (m: Prediction["modules"][0]) => (m.verdict ?? "") + (m.flags?.length ? ` (${m.flags.join(", ")})` : "");
  if (!rows.length) return el("p", { class: "note" }, "The profile's prediction and the recording have no module in common whose energy is known.");
  return el("div", {}, el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "prediction and measurement" },
    el("table", {}, el("caption", {}, el("span", { class: "fits" }, `Predicted for ${p.device} beside this run (${p.measured_provenance}, by ${p.method}): one forward pass, ${rows.length} of ${all.length} modules`)),
      el("thead", {}, el("tr", {}, ...["module", "predicted", `${Number((100 * p.confidence).toFixed(2))} %`, "here", "95 %", "predicted / here", ""].map((t) => el("th", { scope: "col" }, t || el("span", { class: "unseen" }, "verdict"))))),
      el("tbody", {}, ...rows.map((m) => el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name", title: m.class ?? m.name }, m.name || "the model")),
        cell(joules(m.predicted_j), PREDICTED), cell(interval(m.predicted_low_j, m.predicted_high_j), PREDICTED), cell(joules(m.measured_j), here), cell(interval(m.measured_low_j, m.measured_high_j), `95 % interval; ${here}`),
        cell(`${digits((m.predicted_j ?? Number.NaN) / (m.measured_j ?? Number.NaN), 3)} ×`, `${from(p.measured_provenance)}: one over the other`), el("td", {}, verdict(m))))))),
    p.reasons?.length ? el("p", { class: "note" }, `What makes the prediction uncertain: ${p.reasons.join("; ")}.`) : null);
}

export class Why {
  readonly element: HTMLElement;
  private body = el("tbody");
  private points: Point[] = [];
  private picture: Picture;
  private plot: HTMLElement;
  private per: "mac" | "byte" = "mac";
  private machine: Machine | undefined;
  private idle_w: number;

  constructor(private state: State) {
    const { head } = state.run;
    this.machine = head.machine;
    this.idle_w = head.attribution.domains.reduce((sum, d) => sum + (d.idle_w ?? 0), 0);
    this.picture = new Picture("energy per MAC or byte against arithmetic intensity", 340, (pen, w, h) => this.draw(pen, w, h));
    this.plot = el("div", {}, this.picture.canvas);
    const scale = scale_of(head);
    const titles = ["name", `energy${scale && ` (all ${scale})`}`, "95 %", "share", "calls", "time", "power", "per MAC", "per byte", "MACs, traffic, rest, idle"];
    this.element = el("section", { id: "why", "aria-labelledby": "why-title" },
      el("div", { class: "bar" }, el("h2", { id: "why-title" }, "Why"),
        choice("energy", [["mac", "per MAC"], ["byte", "per byte"]], this.per, (v) => { this.per = v as "mac" | "byte"; this.show(); }),
        savers("nrg-roofline", () => this.picture.svg(), () => this.rows())),
      this.plot, this.line(),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "most expensive operators" },
        el("table", {}, el("caption", {}, el("span", { class: "fits" }, "The ten most expensive operators, with what they used themselves, wherever they were called from ", source(head.attribution.provenance, `by ${head.attribution.method}`))),
          el("thead", {}, el("tr", {}, ...titles.map((t) => el("th", { scope: "col" }, t)))), this.body)),
      el("p", { class: "legend" }, key("compute", "multiplications"), " and ", key("traffic", "memory traffic"), " at the line's prices; ",
        key("rest", "the rest"), " of its own energy; ", key("idle", "idle"), " power during its time, which is not in its energy."),
      head.prediction ? predicted(head.prediction) : null);
    state.on((what) => what === "range" && this.show());
    this.show();
  }

  private line(): HTMLElement {
    const m = this.machine;
    if (!m) return el("p", { class: "note" }, "The machine's own line is not known: nrg calibrate --json=here.json measures it, and nrg report --profile here.json draws it.");
    const prices = `${unit(m.j_per_mac, "J")} per MAC and ${unit(m.j_per_byte, "J")} per byte (${m.provenance}, ${m.source})`;
    if (!(m.j_per_mac && m.j_per_byte)) return el("p", { class: "note" }, `No line: of ${m.device || "the machine"} not both prices are known, ${prices}.`);
    return el("p", { class: "note" }, `The line is what ${m.device || "the machine"} charges ${quality(m)}, above idle: ${prices}.`);
  }

  private show() {
    const { run, range: r } = this.state;
    this.points = [];
    const all = groups(this.state);
    for (const g of all)
      if (g.macs > 0 && g.bytes > 0) this.points.push({ name: g.name, kind: g.kind, row: g.row, per_byte: g.macs / g.bytes, pj: (g.energy_j / (this.per === "mac" ? g.macs : g.bytes)) * 1e12, energy_j: g.energy_j });
    for (let i = 0; i < run.n_rows; i++) {
      const [macs, moved] = [run.array.row_macs[i] * r.calls[i], run.array.row_bytes[i] * r.calls[i]];
      if (run.kind(i) === "module" && macs > 0 && moved > 0 && r.all_j[i] > 0) this.points.push({ name: run.label(i), kind: "module", row: i, per_byte: macs / moved, pj: (r.all_j[i] / (this.per === "mac" ? macs : moved)) * 1e12, energy_j: r.all_j[i] });
    }
    this.plot.replaceChildren(this.points.length ? this.picture.canvas : el("p", { class: "empty" },
      "No row has both multiplications and bytes, so joules per MAC can't be shown. A recording that keeps the model's graph has them: nrg run --graph MODEL, or nrg.torch.trace in the program."));
    this.body.replaceChildren(...all.slice(0, 10).map((g) => this.line_of(g)));
    if (!all.length) this.body.append(el("tr", {}, el("td", { class: "left", colspan: "10" }, "No spans here.")));
    this.picture.paint();
  }

  private line_of(g: Group): HTMLElement {
    const { run, range: r } = this.state;
    const how = of_rows(run.head);
    const over = (what: string) => `energy over ${what}; ${how}`;
    return el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name", title: run.name(g.row) }, g.name)), cell(joules(g.energy_j), how), cell(interval(g.low_j, g.high_j), `95 % interval; ${how}`),
      cell(percent(g.energy_j / r.total.energy_j), over("that of the machine")), cell(count(g.calls), "counted"), cell(seconds(g.time_s), "measured: the clock at the marks of its spans"), cell(watts(g.energy_j / g.time_s), over("its time")),
      cell(unit(g.energy_j / g.macs, "J"), over("the model's multiplications")), cell(unit(g.energy_j / g.bytes, "J"), over("the model's memory traffic")), el("td", {}, this.bar(g)));
  }

  private bar(g: Group): Node {
    const s = shares(g, this.machine, this.idle_w);
    const whole = g.energy_j + s.idle_j;
    const parts: [string, string, number][] = [["compute", "multiplications", s.compute_j], ["traffic", "memory traffic", s.traffic_j], ["rest", Number.isFinite(s.compute_j + s.traffic_j) ? "the rest" : "own energy", s.rest_j], ["idle", "idle", s.idle_j]];
    const text = parts.filter(([, , j]) => j > 0).map(([, name, j]) => `${name} ${percent(j / whole)}`).join(", ");
    const track = el("span", { class: "shares", role: "img", "aria-label": text, title: text });
    for (const [kind, , j] of parts) {
      if (!(j > 0)) continue;
      const part = el("i", { class: kind });
      part.style.width = `${(100 * j) / whole}%`;
      track.append(part);
    }
    return track;
  }

  private draw(pen: Pen, width: number, height: number) {
    const { ink, dim, line, panel } = colours();
    if (!this.points.length) return;
    const m = this.machine;
    const price = (x: number) => ((m?.j_per_mac ?? Number.NaN) + (m?.j_per_byte ?? Number.NaN) / 10 ** x) * 1e12 * (this.per === "byte" ? 10 ** x : 1);
    const xs = this.points.map((p) => Math.log10(p.per_byte));
    const [x0, x1] = [Math.min(...xs) - 0.35, Math.max(...xs) + 0.6];
    const ys = this.points.map((p) => Math.log10(p.pj));
    for (const at of [x0, x1]) if (price(at) > 0) ys.push(Math.log10(price(at)));
    const [y0, y1] = [Math.min(...ys) - 0.3, Math.max(...ys) + 0.3];
    const x = (v: number) => LEFT + ((v - x0) / (x1 - x0)) * (width - LEFT - RIGHT);
    const y = (v: number) => height - BOTTOM - ((v - y0) / (y1 - y0)) * (height - TOP - BOTTOM);
    for (const t of decades(x0, x1)) {
      pen.shape([x(t.at), TOP, x(t.at), height - BOTTOM], line, t.major ? 1 : 0.4);
      if (t.major) pen.text(digits(10 ** t.at, 2), x(t.at), height - BOTTOM + 15, dim, "middle");
    }
    for (const t of decades(y0, y1)) {
      pen.shape([LEFT, y(t.at), width - RIGHT, y(t.at)], line, t.major ? 1 : 0.4);
      if (t.major) pen.text(unit(10 ** t.at * 1e-12, "J", 2), LEFT - 6, y(t.at) + 4, dim, "end");
    }
    pen.text("MACs per byte of memory traffic", LEFT + (width - LEFT - RIGHT) / 2, height - 6, ink, "middle");
    pen.text(this.per === "mac" ? "energy per MAC" : "energy per byte", 6, 14, ink);
    if (price(x0) > 0) {
      const curve: number[] = [];
      for (let k = 0; k <= 60; k++) {
        const at = x0 + ((x1 - x0) * k) / 60;
        curve.push(x(at), y(Math.log10(price(at))));
      }
      pen.shape(curve, ink, 2);
      pen.text(`${m!.device || "the machine"} ${quality(m!)}`, width - RIGHT - 4, y(Math.log10(price(x1))) - 8, ink, "end");
    }
    this.draw_points(pen, width, x, y, ink, panel);
  }

  /** Largest first; a name is written where it covers no other. */
  private draw_points(pen: Pen, width: number, x: (v: number) => number, y: (v: number) => number, ink: string, panel: string) {
    const { run } = this.state;
    const most = Math.max(...this.points.map((p) => p.energy_j));
    const taken: [number, number, number][] = [];
    const sorted = [...this.points].sort((a, b) => b.energy_j - a.energy_j);
    for (const p of sorted) {
      const [cx, cy] = [x(Math.log10(p.per_byte)), y(Math.log10(p.pj))];
      const radius = 4 + 10 * Math.sqrt(p.energy_j / most);
      const circle: number[] = [];
      for (let a = 0; a <= 24; a++) circle.push(cx + radius * Math.cos((a * Math.PI) / 12), cy + radius * Math.sin((a * Math.PI) / 12));
      pen.shape(circle, run.n_rows ? colour_of(run, p.row) : SET[0], undefined, p.kind === "module" ? 0.25 : 0.8);
      pen.shape(circle, p.kind === "module" ? colour_of(run, p.row) : panel, 1);
    }
    for (const p of sorted) {
      const radius = 4 + 10 * Math.sqrt(p.energy_j / most);
      const [tx, ty] = [x(Math.log10(p.per_byte)) + radius + 4, y(Math.log10(p.pj)) + 4];
      const long = Math.min(150, p.name.length * 6.8);
      if (tx + long > width || taken.some(([a, b, w]) => Math.abs(b - ty) < 14 && tx < a + w && a < tx + long)) continue;
      taken.push([tx, ty, long]);
      pen.text(p.name, tx, ty, ink, "start", 150);
    }
  }

  private rows(): unknown[][] {
    return [["name", "kind", "macs_per_byte", this.per === "mac" ? "pj_per_mac" : "pj_per_byte", "energy_j"], ...this.points.map((p) => [p.name, p.kind, p.per_byte, p.pj, p.energy_j])];
  }
}
