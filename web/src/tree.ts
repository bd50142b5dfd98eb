// Trees that a flame graph shows. All of them add up to the machine: what belongs to no span has boxes of its own.
import type { Run } from "./data";
import { type Range, Together, mean_w, self_of, whole_of } from "./range";

export interface Box {
  label: string;
  kind: string;
  row: number; // -1: no row
  value: number; // what its width is
  energy_j: number;
  low_j: number;
  high_j: number;
  time_s: number;
  watts?: number; // where it is not energy over time
  calls: number;
  children: Box[];
  rest: boolean; // idle, others, unattributed
}

export type Weight = "joules" | "seconds";
export type Shape = "modules" | "calls" | "kinds";

const box = (label: string, kind: string, energy_j: number, rest = false): Box => ({
  label, kind, row: -1, value: energy_j, energy_j, low_j: Number.NaN, high_j: Number.NaN, time_s: Number.NaN, calls: Number.NaN, children: [], rest,
});

function row_box(run: Run, r: Range, i: number, weight: Weight): Box {
  return {
    label: run.label(i), kind: run.kind(i), row: i, value: weight === "joules" ? r.all_j[i] || 0 : r.all_s[i], energy_j: r.all_j[i],
    low_j: r.low_j[i], high_j: r.high_j[i], time_s: r.all_s[i], calls: r.calls[i], children: [], rest: false,
  };
}

function call_tree(run: Run, r: Range, weight: Weight): Box[] {
  const { row_parent } = run.array;
  const boxes: Box[] = new Array(run.n_rows);
  const top: Box[] = [];
  for (let i = 0; i < run.n_rows; i++) {
    boxes[i] = row_box(run, r, i, weight);
    if (!(boxes[i].value > 0)) continue;
    if (row_parent[i] < 0) top.push(boxes[i]);
    else boxes[row_parent[i]].children.push(boxes[i]);
  }
  return top;
}

/** Boxes of several rows: their intervals by what the rows in them used themselves. */
class Sums {
  private of = new Map<Box, Together>();

  add(b: Box, run: Run, r: Range, i: number) {
    const sum = this.of.get(b) ?? new Together();
    this.of.set(b, sum);
    sum.add(self_of(run, i), r.self_j[i], r.self_s[i]);
  }

  set_ends() {
    for (const [b, sum] of this.of) [b.low_j, b.high_j] = [sum.low_j, sum.high_j];
  }
}

/** Own energy by kind of span, and in it by name. */
function kind_tree(run: Run, r: Range, weight: Weight): Box[] {
  const kinds = new Map<string, Box>();
  const names = new Map<string, Box>();
  const sums = new Sums();
  for (let i = 0; i < run.n_rows; i++) {
    const value = weight === "joules" ? r.self_j[i] : r.self_s[i];
    if (!(value > 0)) continue;
    const kind = run.kind(i);
    const name = run.detail(i) || run.name(i);
    const outer = kinds.get(kind) ?? box(kind, "kind", 0);
    kinds.set(kind, outer);
    const inner = names.get(`${kind}\n${name}`) ?? box(name, kind, 0);
    if (!names.has(`${kind}\n${name}`)) {
      names.set(`${kind}\n${name}`, inner);
      outer.children.push(inner);
      inner.row = i;
      inner.time_s = inner.calls = 0;
    }
    for (const b of [outer, inner]) {
      b.value += value;
      b.energy_j += r.self_j[i];
      b.time_s = (b.time_s || 0) + r.self_s[i];
      sums.add(b, run, r, i);
    }
    inner.calls += r.calls[i];
  }
  sums.set_ends();
  return [...kinds.values()];
}

const MODULES = new Set(["module", "backward"]);
const SAME = 1e-6; // entries have seven digits

export const has_modules = (run: Run) => Array.from({ length: run.n_rows }, (_, i) => run.kind(i)).some((k) => MODULES.has(k));

/** Names of the modules around a row, the model's first; empty outside of all modules. Names are qualified: "blocks.0.up". */
function module_path(run: Run, row: number): string[] {
  const chain: number[] = [];
  for (let i = row; i >= 0; i = run.array.row_parent[i]) if (MODULES.has(run.kind(i))) chain.push(i);
  if (!chain.length) return [];
  const root = run.name(chain[chain.length - 1]);
  const name = run.name(chain[0]);
  return name === root ? [root] : [root, ...name.split(".")];
}

/** Of each module the row that stands for it: a forward one where there is one. And its forward calls. */
function modules_of(run: Run, r: Range): Map<string, { row: number; calls: number }> {
  const out = new Map<string, { row: number; calls: number }>();
  for (let i = 0; i < run.n_rows; i++) {
    if (!MODULES.has(run.kind(i))) continue;
    const key = module_path(run, i).join("\n");
    const known = out.get(key) ?? { row: i, calls: 0 };
    out.set(key, known);
    if (run.kind(i) !== "module") continue;
    if (run.kind(known.row) !== "module") known.row = i;
    known.calls += r.calls[i];
  }
  return out;
}

/** The modules as the program's source has them, forward and backward in sum, wherever they were called from. */
function module_tree(run: Run, r: Range, weight: Weight): Box[] {
  const known = modules_of(run, r);
  const boxes = new Map<string, Box>();
  const sums = new Sums();
  const top: Box[] = [];
  const box_of = (names: string[], depth: number): Box => {
    const key = names.slice(0, depth + 1).join("\n");
    const old = boxes.get(key);
    if (old) return old;
    const module = known.get(key);
    const detail = module ? run.detail(module.row) : "";
    const b = box(detail && detail !== names[depth] ? `${names[depth]} · ${detail}` : names[depth], "module", 0);
    b.row = module?.row ?? -1;
    b.calls = module?.calls ?? Number.NaN;
    b.time_s = 0;
    boxes.set(key, b);
    (depth ? box_of(names, depth - 1).children : top).push(b);
    return b;
  };
  for (let i = 0; i < run.n_rows; i++) {
    const value = weight === "joules" ? r.self_j[i] : r.self_s[i];
    if (!(value > 0)) continue;
    const path = module_path(run, i);
    const names = path.length ? path : ["outside of modules"];
    for (let depth = 0; depth < names.length; depth++) {
      const b = box_of(names, depth);
      b.value += value;
      b.energy_j += r.self_j[i] || 0;
      b.time_s += r.self_s[i];
      sums.add(b, run, r, i);
    }
  }
  sums.set_ends();
  narrow(run, r, boxes);
  return top;
}

/**
 * Where a module is what some rows hold with all that is in them, their own intervals are narrower than those of all parts in sum:
 * what one part has too much, its neighbour lacks.
 */
function narrow(run: Run, r: Range, boxes: Map<string, Box>) {
  const tops = new Map<string, Together>();
  for (let i = 0; i < run.n_rows; i++) {
    const above = run.array.row_parent[i] < 0 ? [] : module_path(run, run.array.row_parent[i]);
    const path = module_path(run, i);
    for (let depth = 0; depth < path.length; depth++) {
      const key = path.slice(0, depth + 1).join("\n");
      if (!(r.all_j[i] >= 0) || above.slice(0, depth + 1).join("\n") === key) continue;
      const sum = tops.get(key) ?? new Together();
      tops.set(key, sum);
      sum.add(whole_of(run, i), r.all_j[i], r.all_s[i]);
    }
  }
  for (const [key, sum] of tops) {
    const b = boxes.get(key);
    if (b && Math.abs(sum.energy_j - b.energy_j) <= SAME * b.energy_j) [b.low_j, b.high_j] = [sum.low_j, sum.high_j];
  }
}

/** `all`: with what belongs to no span. */
export function tree_of(run: Run, r: Range, shape: Shape, weight: Weight, all = true): Box {
  const children = { calls: call_tree, kinds: kind_tree, modules: module_tree }[shape](run, r, weight);
  const rows_j = r.total.energy_j - r.total.idle_j - r.total.other_j - r.unattributed_j;
  const root = all ? box("machine", "total", r.total.energy_j) : box("all spans", "total", rows_j);
  if (all) {
    root.low_j = r.total.low_j;
    root.high_j = r.total.high_j;
    root.watts = mean_w(r.domains);
  }
  root.time_s = r.to_s - r.from_s;
  root.children = children;
  if (weight === "joules" && all)
    root.children.push(box("idle", "idle", r.total.idle_j, true), box("other processes", "others", r.total.other_j, true),
      box("unattributed", "unattributed", r.unattributed_j, true));
  sort(root);
  const inside = root.children.reduce((sum, c) => sum + Math.max(0, c.value), 0);
  root.value = weight === "joules" ? Math.max(inside, root.energy_j) : inside;
  return root;
}

function sort(b: Box) {
  b.children = b.children.filter((c) => c.value > 0).sort((x, y) => Number(x.rest) - Number(y.rest) || y.value - x.value);
  for (const c of b.children) sort(c);
}

/** Half of the interval over the energy; more than a half: not resolved. */
export const doubt = (b: Box) => (b.energy_j > 0 && Number.isFinite(b.high_j - b.low_j) ? (b.high_j - b.low_j) / 2 / b.energy_j : Number.NaN);

/** Where a row stands, as one text: what runs are compared by. */
export function path_of(run: Run, row: number): string {
  const parts: string[] = [];
  for (let i = row; i >= 0; i = run.array.row_parent[i]) parts.push(`${run.kind(i)}\t${run.name(i)}`);
  return parts.reverse().join("\n");
}

/** The same to read: forward and backward have one name, but two labels. */
export function labels_of(run: Run, row: number): string {
  const parts: string[] = [];
  for (let i = row; i >= 0; i = run.array.row_parent[i]) parts.push(run.label(i));
  return parts.reverse().join(" › ");
}
