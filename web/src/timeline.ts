// Power, load, memory and heat over time, and the spans as lanes below, all on one axis. A drag selects, the wheel zooms; keys do both.
import type { Run } from "./data";
import { duration_s } from "./data";
import { el, savers } from "./dom";
import { digits, joules, seconds, ticks, unit, watts } from "./format";
import { of_row } from "./how";
import { Picture, type Pen, SET, colours, ink_on, svg_of } from "./pen";
import type { State } from "./state";

const LEFT = 70;
const RIGHT = 10;
const LANE = 16;
const MOST_LANES = 48;

interface Plot {
  title: string;
  channels: number[];
  unit: (x: number) => string;
  stacked: boolean;
  picture: Picture;
}

const x_of = (state: State, width: number, s: number) =>
  LEFT + ((s - state.view[0]) / (state.view[1] - state.view[0])) * (width - LEFT - RIGHT);
const s_of = (state: State, width: number, x: number) =>
  state.view[0] + ((x - LEFT) / (width - LEFT - RIGHT)) * (state.view[1] - state.view[0]);

/** Means of a channel per pixel, NaN where nothing was read; and the highest value of each. */
function samples(run: Run, state: State, channel: number, width: number): { mean: Float64Array; most: Float64Array } {
  const { n, period_ns } = run.head.series;
  const columns = Math.max(1, Math.floor(width - LEFT - RIGHT));
  const mean = new Float64Array(columns).fill(Number.NaN);
  const most = new Float64Array(columns).fill(Number.NaN);
  const per = (state.view[1] - state.view[0]) / columns;
  for (let c = 0; c < columns; c++) {
    const from = ((state.view[0] + c * per) * 1e9) / period_ns;
    const to = ((state.view[0] + (c + 1) * per) * 1e9) / period_ns;
    let sum = 0;
    let seen = 0;
    for (let k = Math.max(0, Math.floor(from)); k < n && (k < to || k === Math.floor(from)); k++) {
      const v = run.array.series[channel * n + k];
      if (Number.isNaN(v)) continue;
      sum += v;
      seen++;
      if (!(v <= most[c])) most[c] = v;
    }
    if (seen) mean[c] = sum / seen;
  }
  return { mean, most };
}

function draw_axis(pen: Pen, state: State, width: number, height: number, labels: boolean) {
  const { dim, line } = colours();
  for (const t of ticks(state.view[0], state.view[1], Math.max(2, (width - LEFT) / 110))) {
    const x = x_of(state, width, t);
    pen.shape([x, 0, x, height - (labels ? 16 : 0)], line, 1);
    if (labels) pen.text(`${Number(t.toPrecision(9))} s`, x, height - 3, dim, x > width - RIGHT - 14 ? "end" : "middle");
  }
}

function draw_selection(pen: Pen, state: State, width: number, height: number) {
  if (state.range.whole) return;
  const { accent } = colours();
  const a = Math.max(LEFT, x_of(state, width, state.range.from_s));
  const b = Math.min(width - RIGHT, x_of(state, width, state.range.to_s));
  if (b < LEFT || a > width - RIGHT) return;
  pen.rect(a, 0, Math.max(1, b - a), height, accent, 0.16);
  pen.shape([a, 0, a, height], accent, 1.5);
  pen.shape([b, 0, b, height], accent, 1.5);
}

/** A line or an area, broken where there are gaps. `under`: what it stands on. */
function draw_values(pen: Pen, values: Float64Array, under: Float64Array | null, y: (v: number) => number, colour: string) {
  for (let i = 0; i < values.length; ) {
    while (i < values.length && Number.isNaN(values[i])) i++;
    const from = i;
    while (i < values.length && !Number.isNaN(values[i])) i++;
    if (i === from) break;
    const top: number[] = [];
    for (let k = from; k < i; k++) top.push(LEFT + k, y(values[k]), LEFT + k + 1, y(values[k]));
    if (under) {
      const shape = [...top];
      for (let k = i - 1; k >= from; k--) shape.push(LEFT + k + 1, y(under[k]), LEFT + k, y(under[k]));
      pen.shape(shape, colour, undefined, 0.75);
    } else pen.shape(top, colour, 1.5);
  }
}

function draw_plot(pen: Pen, state: State, plot: Plot, width: number, height: number, labels: boolean) {
  const { ink, dim, line } = colours();
  const bottom = height - (labels ? 18 : 4);
  const all = plot.channels.map((c) => samples(state.run, state, c, width));
  let most = 0;
  const sums = all.map(({ mean }) => Float64Array.from(mean));
  const under = all.map(({ mean }) => new Float64Array(mean.length));
  if (plot.stacked)
    for (let i = 1; i < sums.length; i++)
      for (let k = 0; k < sums[i].length; k++) {
        under[i][k] = Number.isNaN(sums[i - 1][k]) ? under[i - 1][k] : sums[i - 1][k];
        sums[i][k] += under[i][k];
      }
  for (let i = 0; i < sums.length; i++)
    for (let k = 0; k < sums[i].length; k++) most = Math.max(most, sums[i][k] || 0, plot.stacked && sums.length > 1 ? 0 : all[i].most[k] || 0);
  most = most > 0 ? most * 1.08 : 1;
  const y = (v: number) => bottom - (v / most) * (bottom - 18);
  draw_axis(pen, state, width, height, labels);
  for (const t of ticks(0, most, Math.max(1, height / 45))) {
    pen.shape([LEFT, y(t), width - RIGHT, y(t)], line, 1);
    if (y(t) > 20) pen.text(plot.unit(t).replace(/\.0+ /, " "), LEFT - 6, y(t) + 4, dim, "end");
  }
  for (let i = sums.length - 1; i >= 0; i--) {
    draw_values(pen, sums[i], plot.stacked ? under[i] : null, y, SET[plot.channels[i] % SET.length]);
    if (plot.stacked && sums.length === 1) draw_values(pen, all[i].most, null, y, SET[plot.channels[i] % SET.length]);
  }
  let x = LEFT + 4;
  pen.text(plot.title, x, 12, ink);
  x += plot.title.length * 7 + 14;
  for (const c of plot.channels) {
    const { name: channel, provenance } = state.run.head.channels[c];
    const name = provenance === "measured" ? channel : `${channel} (${provenance})`;
    if (x + name.length * 7 > width) break;
    pen.rect(x, 4, 9, 9, SET[c % SET.length]);
    pen.text(name, x + 13, 12, dim);
    x += name.length * 7 + 30;
  }
  draw_selection(pen, state, width, height);
}

const busy = (x: number) => `${digits(x, 3)} CPUs`;
const GROUPS: { title: string; pick: (run: Run, c: number) => boolean; unit: (x: number) => string; stacked: boolean; tall: boolean }[] = [
  { title: "power", pick: (r, c) => r.head.channels[c].in_total, unit: watts, stacked: true, tall: true },
  { title: "power of parts and of meters around", pick: (r, c) => r.head.channels[c].domain && !r.head.channels[c].in_total, unit: watts, stacked: false, tall: false },
  { title: "busy", pick: (r, c) => r.head.channels[c].quantity === "seconds", unit: busy, stacked: true, tall: false },
  { title: "utilisation", pick: (r, c) => r.head.channels[c].quantity === "utilisation", unit: (x) => `${digits(100 * x, 3)} %`, stacked: false, tall: false },
  { title: "memory", pick: (r, c) => r.head.channels[c].quantity === "bytes", unit: (x) => unit(x, "B", 3), stacked: false, tall: false },
  { title: "temperature", pick: (r, c) => r.head.channels[c].quantity === "temperature", unit: (x) => `${digits(x, 3)} °C`, stacked: false, tall: false },
  { title: "clocks", pick: (r, c) => r.head.channels[c].quantity === "clock", unit: (x) => unit(x, "Hz", 3), stacked: false, tall: false },
];

/** Where spans of a track and depth stand; deep ones below MOST_LANES are not drawn. */
export function lanes_of(run: Run): { at: Int32Array; n: number; titles: [number, string][] } {
  const { span_track, span_depth } = run.array;
  const deepest = new Int32Array(run.head.tracks.length + 1).fill(-1);
  for (let i = 0; i < span_track.length; i++) deepest[span_track[i]] = Math.max(deepest[span_track[i]], span_depth[i]);
  const first = new Int32Array(deepest.length);
  const titles: [number, string][] = [];
  let n = 0;
  run.head.tracks.forEach((t, i) => {
    first[i] = n;
    if (deepest[i] < 0) return;
    titles.push([n, `${t.name || t.kind || "track"}${t.tid && t.tid !== t.pid ? ` ${t.tid}` : ""}${t.domain ? ` (${t.domain})` : ""}`]);
    n += deepest[i] + 1;
  });
  const at = new Int32Array(span_track.length);
  for (let i = 0; i < at.length; i++) at[i] = first[span_track[i]] + span_depth[i];
  return { at, n: Math.min(n, MOST_LANES), titles };
}

export function colour_of(run: Run, row: number): string {
  let hash = 0;
  const text = run.kind(row) + (run.detail(row) || run.name(row));
  for (let i = 0; i < text.length; i++) hash = (hash * 31 + text.charCodeAt(i)) | 0;
  return SET[Math.abs(hash) % SET.length];
}

export class Timeline {
  readonly element: HTMLElement;
  private plots: Plot[] = [];
  private lanes: ReturnType<typeof lanes_of>;
  private lane_picture: Picture;
  private hint = el("p", { class: "hint", "aria-hidden": "true" });
  private row_colours: string[];
  private order: Uint32Array;
  private prefix_end: Float64Array;

  constructor(private state: State) {
    const run = state.run;
    this.lanes = lanes_of(run);
    this.row_colours = Array.from({ length: run.n_rows }, (_, i) => colour_of(run, i));
    // By begin, with the latest end so far: so that a part of the axis is found without looking at all spans.
    this.order = Uint32Array.from(run.span_begin.keys()).sort((a, b) => run.span_begin[a] - run.span_begin[b]);
    this.prefix_end = new Float64Array(this.order.length);
    for (let i = 0; i < this.order.length; i++)
      this.prefix_end[i] = Math.max(i ? this.prefix_end[i - 1] : 0, run.span_end[this.order[i]]);
    for (const group of GROUPS) {
      const channels = run.head.channels.map((_, c) => c).filter((c) => group.pick(run, c));
      if (!channels.length) continue;
      const plot = { ...group, channels } as unknown as Plot;
      plot.picture = new Picture(`${group.title} over time`, group.tall ? 210 : 92, (pen, w, h) => draw_plot(pen, state, plot, w, h, group.tall));
      this.plots.push(plot);
    }
    this.lane_picture = new Picture("spans over time", Math.max(1, this.lanes.n) * LANE + 2, (pen, w, h) => this.draw_lanes(pen, w, h));
    const pictures = el("div", { class: "pictures", tabindex: "0", role: "application",
      "aria-label": "Timeline. Arrow keys move, plus and minus zoom, shift with arrows selects, Home shows all, Escape clears the selection.",
      keydown: (e) => this.key(e as KeyboardEvent) });
    for (const plot of this.plots) pictures.append(plot.picture.canvas);
    if (this.lanes.n) pictures.append(this.lane_picture.canvas);
    if (!this.plots.length) pictures.append(el("p", { class: "empty" }, "Nothing was read during this run, so there is no power to show."));
    this.listen(pictures);
    const left_out = run.head.spans_left_out ?? 0;
    this.element = el("section", { id: "timeline", "aria-labelledby": "timeline-title" },
      el("div", { class: "bar" }, el("h2", { id: "timeline-title" }, "Timeline"), this.buttons(),
        savers("nrg-timeline", () => this.svg(), () => this.table())),
      pictures, this.hint,
      left_out > 0 && el("p", { class: "note" }, `${left_out} spans ${run.head.spans_least_s ? `shorter than ${seconds(run.head.spans_least_s)} ` : ""}are not drawn as boxes; their energy is counted below.`));
    state.on((what) => {
      if (what !== "search" || this.lanes.n) this.paint();
    });
  }

  private buttons(): HTMLElement {
    const b = (text: string, title: string, click: () => void) => el("button", { type: "button", title, "aria-label": title, click }, text);
    return el("span", { class: "buttons" },
      b("+", "zoom in", () => this.state.zoom(0.5)), b("−", "zoom out", () => this.state.zoom(2)),
      b("◂", "move left", () => this.pan(-0.25)), b("▸", "move right", () => this.pan(0.25)),
      b("show all", "show all of the run", () => this.state.look(0, duration_s(this.state.run))),
      b("to selection", "zoom to selection", () => this.state.look(this.state.range.from_s, this.state.range.to_s)));
  }

  private pan(part: number) {
    const [a, b] = this.state.view;
    this.state.look(a + part * (b - a), b + part * (b - a));
  }

  private key(e: KeyboardEvent) {
    const s = this.state;
    const { first, last, whole } = s.range;
    const n = s.run.head.buckets.n;
    const step = Math.max(1, Math.round(((s.view[1] - s.view[0]) / 50) * (1e9 / s.run.head.buckets.width_ns)));
    const middle = Math.round((((s.view[0] + s.view[1]) / 2) * 1e9) / s.run.head.buckets.width_ns);
    const keys: Record<string, () => void> = {
      ArrowLeft: () => (e.shiftKey ? (whole ? s.select_buckets(Math.max(0, middle - step), Math.min(n, middle)) : s.select_buckets(Math.min(first, last - 1), Math.max(first + 1, last - step))) : this.pan(-0.1)),
      ArrowRight: () => (e.shiftKey ? (whole ? s.select_buckets(Math.max(0, Math.min(n - 1, middle)), Math.min(n, middle + step)) : s.select_buckets(first, Math.min(n, last + step))) : this.pan(0.1)),
      ArrowUp: () => s.zoom(0.7), ArrowDown: () => s.zoom(1 / 0.7), "+": () => s.zoom(0.5), "=": () => s.zoom(0.5), "-": () => s.zoom(2),
      Home: () => s.look(0, duration_s(s.run)), Escape: () => s.clear(),
    };
    const move = keys[e.key];
    if (!move || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    move();
  }

  private listen(box: HTMLElement) {
    const at = (e: MouseEvent) => s_of(this.state, box.clientWidth, Math.max(LEFT, Math.min(box.clientWidth - RIGHT, e.clientX - box.getBoundingClientRect().left)));
    const down = new Map<number, { x: number; s: number; view: [number, number] }>();
    let pinch = 0;
    box.addEventListener("pointerdown", (e) => {
      down.set(e.pointerId, { x: e.clientX, s: at(e), view: [...this.state.view] });
      box.setPointerCapture(e.pointerId);
      pinch = 0;
    });
    box.addEventListener("pointermove", (e) => {
      const start = down.get(e.pointerId);
      if (!start) return this.hover(box, e);
      if (down.size === 2) {
        start.x = e.clientX;
        const [p, q] = [...down.values()];
        const length = Math.max(20, Math.abs(p.x - q.x));
        if (pinch) this.state.zoom(pinch / length, (p.s + q.s) / 2);
        pinch = length;
      } else if (e.shiftKey || e.buttons === 4) {
        const shift = ((start.x - e.clientX) / (box.clientWidth - LEFT - RIGHT)) * (start.view[1] - start.view[0]);
        this.state.look(start.view[0] + shift, start.view[1] + shift);
      } else if (Math.abs(e.clientX - start.x) > 3) this.state.select(start.s, at(e));
      return undefined;
    });
    const up = (e: PointerEvent) => down.delete(e.pointerId);
    box.addEventListener("pointerup", up);
    box.addEventListener("pointercancel", up);
    box.addEventListener("dblclick", () => this.state.clear());
    box.addEventListener("wheel", (e) => {
      if (!e.ctrlKey && !e.shiftKey && Math.abs(e.deltaX) <= Math.abs(e.deltaY) && document.activeElement !== box) return;
      e.preventDefault();
      if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) this.pan(e.deltaX / 1000);
      else this.state.zoom(2 ** (e.deltaY / 300), at(e));
    }, { passive: false });
  }

  /** Spans within the view, from the latest that begins in it backwards. */
  private each_span(visit: (span: number) => void) {
    const run = this.state.run;
    const [from, to] = this.state.view;
    let low = 0;
    let high = this.order.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.prefix_end[middle] < from) low = middle + 1;
      else high = middle;
    }
    for (let i = low; i < this.order.length && run.span_begin[this.order[i]] <= to; i++)
      if (run.span_end[this.order[i]] >= from) visit(this.order[i]);
  }

  private draw_lanes(pen: Pen, width: number, height: number) {
    const { state, lanes } = this;
    const { ink, dim } = colours();
    const run = state.run;
    const { span_row } = run.array;
    const search = state.search.toLowerCase();
    const painted = new Float64Array(lanes.n).fill(-1);
    draw_axis(pen, state, width, height, false);
    this.each_span((i) => {
      const lane = lanes.at[i];
      if (lane >= lanes.n) return;
      const a = Math.max(LEFT, x_of(state, width, run.span_begin[i]));
      const b = Math.min(width - RIGHT, x_of(state, width, run.span_end[i]));
      const right = Math.max(b, a + 0.7);
      if (right <= painted[lane]) return; // under a pixel that is painted already
      const row = span_row[i];
      const found = !search || run.label(row).toLowerCase().includes(search);
      pen.rect(a, lane * LANE + 1, Math.max(0.7, right - a - (right - a > 4 ? 0.5 : 0)), LANE - 2, this.row_colours[row], found ? 0.9 : 0.2);
      if (right - a > 24) pen.text(run.label(row), a + 3, lane * LANE + 12, ink_on(this.row_colours[row], found ? 0.9 : 0.2), "start", right - a - 4);
      if (right - a < 1.5) painted[lane] = Math.ceil(right);
    });
    for (const [lane, title] of lanes.titles) if (lane < lanes.n) pen.text(title, 2, lane * LANE + 12, lane ? dim : ink, "start", LEFT - 4);
    draw_selection(pen, state, width, height);
  }

  private hover(box: HTMLElement, e: MouseEvent) {
    const { state, lanes } = this;
    const run = state.run;
    const s = s_of(state, box.clientWidth, e.clientX - box.getBoundingClientRect().left);
    if (s < state.view[0] || s > state.view[1]) return;
    const { n, period_ns } = run.head.series;
    const k = Math.floor((s * 1e9) / period_ns);
    const parts = [`${digits(s, 6)} s`];
    for (const plot of this.plots)
      for (const c of plot.channels) {
        const v = run.array.series[c * n + k];
        parts.push(`${run.head.channels[c].name} ${Number.isNaN(v) || k >= n ? "not read" : `${plot.unit(v)} ${run.head.channels[c].provenance}`}`);
      }
    const lane = Math.floor((e.clientY - this.lane_picture.canvas.getBoundingClientRect().top) / LANE);
    let hit = -1;
    if (lane >= 0 && lane < lanes.n)
      this.each_span((i) => {
        if (lanes.at[i] === lane && run.span_begin[i] <= s && run.span_end[i] >= s) hit = i;
      });
    if (hit >= 0) {
      const row = run.array.span_row[hit];
      parts.push(`${run.label(row)}: this call ${seconds(run.span_end[hit] - run.span_begin[hit])}, all ${run.array.row_calls[row]} calls ${joules(run.array.row_energy_j[row])} ${of_row(run, row)}`);
    }
    this.hint.textContent = parts.join("  ·  ");
  }

  private svg(): string {
    const pictures = [...this.plots.map((p) => p.picture), ...(this.lanes.n ? [this.lane_picture] : [])];
    return svg_of(pictures);
  }

  private table(): unknown[][] {
    const run = this.state.run;
    const { n, period_ns } = run.head.series;
    const out: unknown[][] = [["time_s", ...run.head.channels.map((c) => `${c.name} ${["energy", "power"].includes(c.quantity) ? "W" : c.quantity}`)]];
    for (let k = 0; k < n; k++) out.push([(k * period_ns) / 1e9, ...run.head.channels.map((_, c) => {
      const v = run.array.series[c * n + k];
      return Number.isNaN(v) ? "" : v;
    })]);
    return out;
  }

  paint() {
    for (const plot of this.plots) plot.picture.paint();
    this.lane_picture.paint();
  }
}

