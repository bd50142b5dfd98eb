// What is looked at: the recording, the part of the time axis that is shown, the selection, the search. Views listen.
import type { Run } from "./data";
import { duration_s, edge_s, nearest_edge } from "./data";
import type { Range } from "./range";
import { range_of } from "./range";

export class State {
  run: Run;
  view: [number, number];
  range: Range;
  whole: Range;
  search = "";
  private listeners: ((what: "view" | "range" | "search") => void)[] = [];

  constructor(public runs: Run[], public index = 0) {
    this.run = runs[index];
    this.view = [0, duration_s(this.run)];
    this.whole = range_of(this.run, 0, this.run.head.buckets.n);
    this.range = this.whole;
  }

  on(listener: (what: "view" | "range" | "search") => void) {
    this.listeners.push(listener);
  }

  private tell(what: "view" | "range" | "search") {
    for (const listener of this.listeners) listener(what);
  }

  look(from: number, to: number) {
    const all = duration_s(this.run);
    const least = Math.min(all, Math.max(1e-4, this.run.head.buckets.width_ns / 1e9));
    const length = Math.max(least, Math.min(all, to - from));
    const begin = Math.max(0, Math.min(all - length, (from + to - length) / 2));
    this.view = [begin, begin + length];
    this.tell("view");
  }

  zoom(factor: number, around?: number) {
    const [a, b] = this.view;
    const at = around ?? (a + b) / 2;
    this.look(at - (at - a) * factor, at + (b - at) * factor);
  }

  /** Snaps to edges of buckets; at least one bucket. */
  select(from: number, to: number) {
    let first = nearest_edge(this.run, Math.min(from, to));
    let last = nearest_edge(this.run, Math.max(from, to));
    const n = this.run.head.buckets.n;
    if (first === last) {
      if (last < n) last++;
      else first--;
    }
    this.select_buckets(first, last);
  }

  select_buckets(first: number, last: number) {
    const n = this.run.head.buckets.n;
    this.range = first <= 0 && last >= n ? this.whole : range_of(this.run, Math.max(0, first), Math.min(n, last));
    const hash = this.range.whole ? " " : `#from=${edge_s(this.run, this.range.first)}&to=${edge_s(this.run, this.range.last)}`;
    history.replaceState(null, "", hash === " " ? location.pathname + location.search : hash);
    this.tell("range");
  }

  clear() {
    this.select_buckets(0, this.run.head.buckets.n);
  }

  from_address() {
    const given = new URLSearchParams(location.hash.slice(1));
    const from = Number.parseFloat(given.get("from") ?? "");
    const to = Number.parseFloat(given.get("to") ?? "");
    if (to > from && to > 0 && from < duration_s(this.run)) this.select(from, to);
    else if (!this.range.whole) this.clear();
  }

  find(text: string) {
    this.search = text;
    this.tell("search");
  }
}
