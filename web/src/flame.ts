// The flame graph, or icicle: width is joules (or seconds), a box fades with its interval and is hatched where it is not resolved.
import { choice, el, savers } from "./dom";
import { count, interval, joules, percent, seconds, unit, watts } from "./format";
import { from, of_row, of_rows, one, scale_note } from "./how";
import { Picture, type Pen, SET, colours, ink_on } from "./pen";
import { unresolved } from "./range";
import type { State } from "./state";
import { colour_of } from "./timeline";
import { type Box, type Shape, type Weight, doubt, has_modules, path_of, tree_of } from "./tree";

const LEVEL = 22;
const MOST_LEVELS = 40;
type Paint = "kind" | "watts" | "mac" | "count" | "difference";

interface Placed {
  box: Box;
  x: number;
  w: number;
  depth: number;
}

const mix = (t: number, from: [number, number, number], to: [number, number, number]) =>
  `#${from.map((f, i) => Math.round(f + (to[i] - f) * Math.max(0, Math.min(1, t || 0))).toString(16).padStart(2, "0")).join("")}`;

export class Flame {
  readonly element: HTMLElement;
  private picture: Picture;
  private root!: Box;
  private focus!: Box;
  private placed: Placed[] = [];
  private shape: Shape;
  private weight: Weight = "joules";
  private paint_by: Paint = "kind";
  private upward = false;
  private of = "machine";
  private at = 0;
  private most_w = 1;
  private most_per_count = 1;
  private other_j = new Map<string, number>();
  private about = el("p", { class: "hint", "aria-live": "polite" });
  private crumbs = el("p", { class: "crumbs" });

  constructor(private state: State) {
    this.shape = "calls";
    if (state.index > 0) this.paint_by = "difference";
    this.picture = new Picture("flame graph of energy; the table below has the same numbers", 100, (pen, w, h) => this.draw(pen, w, h));
    const c = this.picture.canvas;
    c.tabIndex = 0;
    c.setAttribute("role", "application");
    c.setAttribute("aria-label", "Flame graph of energy. Arrow keys go from box to box, Enter looks closer, Escape shows all. The table below has the same numbers.");
    c.addEventListener("click", (e) => {
      const hit = this.hit(e);
      if (hit) this.look(hit.box === this.focus ? this.root : hit.box);
    });
    c.addEventListener("mousemove", (e) => {
      const hit = this.hit(e);
      if (hit) this.tell(hit.box);
    });
    c.addEventListener("keydown", (e) => this.key(e));
    const compare: [string, string][] = state.runs.length > 1 && state.index > 0 ? [["difference", "difference to the first run"]] : [];
    const count_choice: [string, string][] = state.run.head.counters.length ? [["count", `joules per ${one(state.run.head.counters[0])} inside`]] : [];
    this.element = el("div", { class: "flame" },
      el("div", { class: "bar" },
        choice("boxes", [...(has_modules(state.run) ? [["modules", "module tree"] as [string, string]] : []), ["calls", "call tree"], ["kinds", "operators by kind"]], this.shape, (v) => { this.shape = v as Shape; this.make(); }),
        choice("of", [["machine", "the machine"], ["spans", "spans alone"]], this.of, (v) => { this.of = v; this.make(); }),
        choice("width", [["joules", "joules"], ["seconds", "seconds"]], this.weight, (v) => { this.weight = v as Weight; this.make(); }),
        choice("colour", [["kind", "what it is"], ["watts", "watts"], ["mac", "joules per MAC"], ...count_choice, ...compare], this.paint_by, (v) => { this.paint_by = v as Paint; this.picture.paint(); }),
        choice("grows", [["down", "down"], ["up", "up"]], "down", (v) => { this.upward = v === "up"; this.picture.paint(); }),
        savers("nrg-flame", () => this.picture.svg(), () => this.table())),
      this.crumbs, c, this.about,
      compare.length ? el("p", { class: "legend" }, el("span", { class: "key more" }, "■ more"), " than the first run, ", el("span", { class: "key less" }, "■ less"), "; grey: the same. Deepest where it doubled or halved.") : null,
      el("p", { class: "legend" }, "A box fades as its interval grows and is hatched where it is not resolved. Idle, other processes and what belongs to no span are boxes, so that all of it adds up to the machine."));
    if (compare.length) this.learn();
    state.on((what) => (what === "range" ? this.make() : what === "search" ? this.picture.paint() : undefined));
    this.make();
  }

  /** Joules of the first run by place. */
  private learn() {
    const first = this.state.runs[0];
    for (let i = 0; i < first.n_rows; i++) this.other_j.set(path_of(first, i), first.array.row_energy_j[i]);
  }

  private make() {
    const r = this.state.range;
    this.root = tree_of(this.state.run, r, this.shape, this.weight, this.of === "machine");
    this.most_w = this.most_per_count = 0;
    const visit = (b: Box, depth: number) => {
      if (b.time_s > 0 && b.row >= 0) this.most_w = Math.max(this.most_w, b.energy_j / b.time_s);
      this.most_per_count = Math.max(this.most_per_count, this.per_count(b) || 0);
      for (const c of b.children) visit(c, depth + 1);
    };
    visit(this.root, 0);
    this.look(this.root);
  }

  private look(box: Box) {
    this.focus = box;
    this.at = 0;
    this.placed = [];
    const trail: Box[] = [];
    const find = (b: Box): boolean => {
      trail.push(b);
      if (b === box || b.children.some(find)) return true;
      trail.pop();
      return false;
    };
    find(this.root);
    for (const [depth, b] of trail.entries()) this.placed.push({ box: b, x: 0, w: 1, depth });
    const place = (b: Box, x: number, w: number, depth: number) => {
      let at = x;
      for (const c of b.children) {
        const part = box.value > 0 ? c.value / box.value : 0;
        if (part > 0.0004 && depth + 1 < MOST_LEVELS) {
          this.placed.push({ box: c, x: at, w: part, depth: depth + 1 });
          place(c, at, part, depth + 1);
        }
        at += part;
      }
      void w;
    };
    place(box, 0, 1, trail.length - 1);
    this.crumbs.replaceChildren(...(trail.length > 1 ? trail.map((b) => el("button", { type: "button", click: () => this.look(b) }, b.label)) : []));
    this.tell(box);
    this.picture.resize((1 + Math.max(...this.placed.map((p) => p.depth))) * LEVEL + 2);
  }

  private colour(b: Box): string {
    const run = this.state.run;
    if (b.rest || b.row < 0) return b.kind === "kind" ? SET[b.label.length % SET.length] : colours().line;
    if (this.paint_by === "watts") return mix(b.energy_j / b.time_s / (this.most_w || 1), [255, 237, 160], [189, 0, 38]);
    if (this.paint_by === "mac") {
      const pj = (b.energy_j / this.macs(b)) * 1e12;
      return Number.isFinite(pj) ? mix(Math.log10(Math.max(1, pj)) / 4, [199, 233, 192], [0, 90, 50]) : colours().line;
    }
    if (this.paint_by === "count") {
      const j = this.per_count(b);
      return Number.isFinite(j) ? mix(j / (this.most_per_count || 1), [222, 235, 247], [8, 48, 107]) : colours().line;
    }
    if (this.paint_by === "difference") {
      const before = this.other_j.get(path_of(run, b.row)) ?? 0;
      const now = run.array.row_energy_j[b.row];
      const change = (now - before) / Math.max(now, before, 1e-30);
      return change > 0 ? mix(change * 2, [235, 225, 225], [200, 30, 30]) : mix(-change * 2, [225, 228, 235], [30, 70, 200]);
    }
    return colour_of(run, b.row);
  }

  /** Of its calls; a module's energy has its backward pass in it, of which nothing is counted. */
  private macs(b: Box): number {
    return b.row >= 0 && this.shape !== "modules" ? this.state.run.array.row_macs[b.row] * b.calls : Number.NaN;
  }

  /** Joules of the box per token that was counted while it was open, or what the first counter counts; of the whole run, because counts are not known by time. */
  private per_count(b: Box): number {
    const run = this.state.run;
    const amount = b.row >= 0 ? run.array.row_counts[b.row] : Number.NaN;
    return amount > 0 && this.shape === "calls" ? run.array.row_energy_j[b.row] / amount : Number.NaN;
  }

  private draw(pen: Pen, width: number, height: number) {
    const { ink, panel } = colours();
    const search = this.state.search.toLowerCase();
    this.placed.forEach((p, i) => {
      const x = p.x * width;
      const w = Math.max(0.5, p.w * width - 0.5);
      const y = this.upward ? height - (p.depth + 1) * LEVEL : p.depth * LEVEL;
      const off = doubt(p.box);
      const found = !search || p.box.label.toLowerCase().includes(search);
      const alpha = (Number.isNaN(off) ? 1 : 1 - 0.65 * Math.min(1, off)) * (found ? 1 : 0.25);
      pen.rect(x, y, w, LEVEL - 1, this.colour(p.box), alpha);
      if (unresolved(p.box) && w > 3) pen.hatch(x, y, w, LEVEL - 1, panel);
      const letters = ink_on(this.colour(p.box), alpha);
      if (w > 28) pen.text(`${p.box.label}${w > 160 ? `  ${this.weight === "joules" ? joules(p.box.energy_j) : seconds(p.box.time_s)}` : ""}`, x + 4, y + 15, letters, "start", w - 6);
      if (i === this.at && document.activeElement === this.picture.canvas) pen.shape([x, y, x + w, y, x + w, y + LEVEL - 1, x, y + LEVEL - 1, x, y], ink, 2);
    });
  }

  private hit(e: MouseEvent): Placed | undefined {
    const r = this.picture.canvas.getBoundingClientRect();
    const y = e.clientY - r.top;
    const depth = Math.floor((this.upward ? r.height - y : y) / LEVEL);
    const x = (e.clientX - r.left) / r.width;
    return this.placed.find((p) => p.depth === depth && x >= p.x && x <= p.x + p.w);
  }

  private key(e: KeyboardEvent) {
    const now = this.placed[this.at];
    const pick = (test: (p: Placed) => boolean, last = false) => {
      const found = this.placed.map((p, i) => ({ p, i })).filter(({ p }) => test(p));
      if (found.length) this.at = (last ? found[found.length - 1] : found[0]).i;
    };
    const inside = (p: Placed) => p.x >= now.x - 1e-9 && p.x < now.x + now.w;
    if (e.key === "ArrowDown") pick((p) => p.depth === now.depth + (this.upward ? -1 : 1) && (this.upward ? now.x >= p.x - 1e-9 && now.x < p.x + p.w : inside(p)));
    else if (e.key === "ArrowUp") pick((p) => p.depth === now.depth - (this.upward ? -1 : 1) && (this.upward ? inside(p) : now.x >= p.x - 1e-9 && now.x < p.x + p.w));
    else if (e.key === "ArrowRight") pick((p) => p.depth === now.depth && p.x > now.x);
    else if (e.key === "ArrowLeft") pick((p) => p.depth === now.depth && p.x < now.x, true);
    else if (e.key === "Enter") this.look(now.box);
    else if (e.key === "Escape") this.look(this.root);
    else return;
    e.preventDefault();
    this.tell(this.placed[this.at].box);
    this.picture.paint();
  }

  private tell(b: Box) {
    const parts = [b.label, `${joules(b.energy_j)}, ${percent(b.energy_j / this.state.range.total.energy_j)} of the machine`];
    if (Number.isFinite(b.low_j)) parts.push(`95 %: ${interval(b.low_j, b.high_j)}${unresolved(b) && b !== this.root ? " (not resolved)" : ""}`);
    if (Number.isFinite(b.time_s)) parts.push(`${seconds(b.time_s)} at ${watts(b.watts ?? b.energy_j / b.time_s)}`);
    if (b.calls > 0) parts.push(`${count(b.calls)} calls of ${joules(b.energy_j / b.calls)}`);
    const macs = this.macs(b);
    if (macs > 0) parts.push(`${unit(b.energy_j / macs, "J")} per MAC`);
    const per = this.per_count(b);
    if (per > 0) parts.push(`${joules(per)} per ${one(this.state.run.head.counters[0])} counted inside`);
    if (this.paint_by === "difference" && b.row >= 0) parts.push(this.change(b));
    const head = this.state.run.head;
    if (this.is_of_rows(b) && scale_note(head)) parts.push(scale_note(head));
    parts.push(this.how(b));
    this.about.textContent = parts.join("  ·  ");
  }

  /** Not idle, others or the machine: its energy is what rows have. */
  private is_of_rows(b: Box): boolean {
    return !b.rest && (b !== this.root || this.of !== "machine");
  }

  private how(b: Box): string {
    const { run } = this.state;
    if (b === this.root && !this.is_of_rows(b)) return `${run.head.attribution.provenance}, sum of the domains`;
    if (b.rest) return `${from(run.head.attribution.provenance)}: what belongs to no span`;
    return b.row >= 0 && this.shape === "calls" ? of_row(run, b.row) : of_rows(run.head);
  }

  /** "+1.2 J to the first run (+10 %)". */
  private change(b: Box): string {
    const before = this.other_j.get(path_of(this.state.run, b.row));
    const now = this.state.run.array.row_energy_j[b.row];
    if (before === undefined || !Number.isFinite(now)) return "not in the first run";
    return `${now >= before ? "+" : "−"}${joules(Math.abs(now - before))} to the first run${before > 0 ? ` (${now >= before ? "+" : "−"}${percent(Math.abs(now / before - 1))})` : ""}`;
  }

  private table(): unknown[][] {
    const out: unknown[][] = [["depth", "name", "kind", "energy_j", "low_j", "high_j", "time_s", "calls"]];
    const visit = (b: Box, depth: number) => {
      out.push([depth, b.label, b.kind, b.energy_j, b.low_j, b.high_j, b.time_s, b.calls]);
      for (const c of b.children) visit(c, depth + 1);
    };
    visit(this.root, 0);
    return out;
  }
}
