// What the selected time used: joules with interval, power, by domain and process. Follows the selection at once, and can be typed.
import { duration_s } from "./data";
import { el, savers } from "./dom";
import { interval, joules, percent, seconds, watts } from "./format";
import { card, power_card } from "./header";
import { cell, from, of_rows, scale_note } from "./how";
import { mean_w } from "./range";
import type { State } from "./state";

const CPU_TIME = "measured: CPU time as the kernel counts it";

/** CPU seconds of the processes in the range, and in all of the run. */
function cpu(state: State, process: number): [number, number] {
  const { n, period_ns } = state.run.head.series;
  const { from_s, to_s } = state.range;
  let [part, all] = [0, 0];
  for (let k = 0; k < n; k++) {
    const s = state.run.array.process_cpu_s[process * n + k];
    const inside = Math.max(0, Math.min(to_s, ((k + 1) * period_ns) / 1e9) - Math.max(from_s, (k * period_ns) / 1e9)) / (period_ns / 1e9);
    all += s;
    part += s * Math.min(1, inside);
  }
  return [part, all];
}

/** A raw number for scripts, in its text, its value and data-value. Unseen where a rounded one stands beside it. */
const raw = (key: string, x: number, seen = false) =>
  el("data", { "data-nrg": key, "data-value": String(x), value: String(x), ...(seen ? {} : { class: "unseen raw", "aria-hidden": "true" }) }, String(x));

/** None where no idle power is known is not 0. */
const idle = (energy_j: number, idle_w?: number) => (idle_w === undefined && !energy_j ? "not known" : joules(energy_j));

/** Two answers to "what does it use idle": the rows' by domain, and the one that shares out between processes. */
function idle_note(state: State): string {
  const { report, attribution } = state.run.head;
  const rows = attribution.domains.filter((d) => d.idle_w !== undefined && d.idle_source !== "none").map((d) => `${d.name} ${watts(d.idle_w)} (${d.idle_source})`);
  const shares = report.idle_method ? `${watts(report.idle_w)} (${report.idle_method})` : "";
  if (!rows.length && !shares) return "Idle power is not known: nrg run --baseline 5s measures it first.";
  return `Idle power of rows and selections: ${rows.join(", ") || "not known"}.${shares ? ` The program's share at the top and the processes' are made with ${shares} of the processors over the whole run.` : ""}`;
}

export class Selection {
  readonly element: HTMLElement;
  private title = el("h2", { id: "selection-title" });
  private numbers = el("dl", { class: "cards", "aria-live": "polite" });
  private domains = el("tbody");
  private processes = el("tbody");
  private from: HTMLInputElement;
  private to: HTMLInputElement;
  private shared: string;

  constructor(private state: State) {
    this.shared = `${from(state.run.head.report.total.provenance)}: the processors' energy above idle, shared out by CPU time; GPUs' by their own accounts`;
    const all = duration_s(state.run);
    const containers = state.run.head.report.containers ?? [];
    const input = () => el("input", { type: "number", min: "0", max: String(all), step: "any", change: () => this.typed() });
    this.from = input();
    this.to = input();
    const part = (caption: string, columns: string[], body: HTMLElement) => el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
      el("table", {}, el("caption", {}, caption), el("thead", {}, el("tr", {}, ...columns.map((c) => el("th", { scope: "col" }, c)))), body));
    this.element = el("section", { id: "selection", "aria-labelledby": "selection-title" },
      el("div", { class: "bar" }, this.title,
        el("label", {}, "from ", this.from, " s"), el("label", {}, "to ", this.to, " s"),
        el("button", { type: "button", click: () => state.clear() }, "all"), savers("nrg-selection", null, () => this.rows())),
      this.numbers,
      el("div", { class: "sides" }, el("div", {}, part("By domain", ["domain", "energy", "95 %", "mean", "idle", "share"], this.domains), el("p", { class: "note" }, idle_note(state))),
        state.run.head.series.processes ? part("By process, by CPU time", ["process", "energy", "CPU time"], this.processes) : null,
        containers.length ? part("Containers, of the whole run", ["container", "energy", "processes", "CPU time"], el("tbody", {}, ...containers.map((c) =>
          el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name", title: c.name }, c.name)), cell(joules(c.cpu_energy_j), this.shared), cell(String(c.processes), "counted"), cell(seconds(c.cpu_time_s), CPU_TIME))))) : null));
    state.on((what) => what === "range" && this.show());
    this.show();
  }

  private typed() {
    const [from, to] = [Number.parseFloat(this.from.value), Number.parseFloat(this.to.value)];
    if (to > from) this.state.select(from, to);
  }

  private show() {
    const { run, range: r } = this.state;
    const s = r.to_s - r.from_s;
    const known = r.domains.length > 0;
    const word = run.head.attribution.provenance;
    this.title.textContent = r.whole ? "The whole run" : "Selection";
    this.from.value = String(r.from_s);
    this.to.value = String(r.to_s);
    const sum = (x: number) => (known ? x : Number.NaN);
    const spans_j = sum(r.total.energy_j - r.total.idle_j - r.total.other_j - r.unattributed_j);
    this.numbers.replaceChildren(
      card("energy", el("strong", {}, known ? joules(r.total.energy_j) : "not known", raw("selection-energy-j", sum(r.total.energy_j))), known ? word : undefined, "sum of the domains below",
        el("small", {}, raw("selection-low-j", sum(r.total.low_j)), raw("selection-high-j", sum(r.total.high_j)), `${interval(sum(r.total.low_j), sum(r.total.high_j))} (95 %)`)),
      card("time", seconds(s), "measured", "by the clock; edges of buckets of time", el("small", {}, raw("from-s", r.from_s, true), " s … ", raw("to-s", r.to_s, true), " s")),
      power_card(run, r, mean_w(r.domains)),
      card("in spans", joules(spans_j), from(word), `what the rows below have, ${of_rows(run.head)}`, scale_note(run.head),
        `idle ${idle(sum(r.total.idle_j), run.head.attribution.domains.find((d) => d.idle_w !== undefined)?.idle_w)}, others ${joules(sum(r.total.other_j))}, unattributed ${joules(sum(r.unattributed_j))}`));
    this.domains.replaceChildren(...run.head.attribution.domains.map((d, i) => {
      const sum = r.domains[i];
      return el("tr", {}, el("th", { scope: "row" }, d.name), cell(joules(sum.energy_j), d.provenance), cell(interval(sum.low_j, sum.high_j), `95 % interval; ${d.provenance}`),
        cell(watts(mean_w([sum])), `energy over the time that was read; ${d.provenance}`), cell(idle(sum.idle_j, d.idle_w), `${from(d.provenance)}: idle power by ${d.idle_source || "nothing known"}`), cell(percent(sum.energy_j / r.total.energy_j), `of the sum of domains; ${d.provenance}`));
    }));
    if (!known) this.domains.append(el("tr", {}, el("td", { colspan: "6", class: "left" }, "No energy was recorded.")));
    this.processes.replaceChildren(...this.by_process().map(([name, cpu_s, energy_j]) =>
      el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name", title: name }, name)), cell(joules(energy_j), this.shared), cell(seconds(cpu_s), CPU_TIME))));
  }

  private by_process(): [string, number, number][] {
    const { head } = this.state.run;
    return head.report.processes.slice(0, head.series.processes).map((p, i) => {
      const [part, all] = cpu(this.state, i);
      const e = p.energy_j;
      const known = [e.cpu, e.dram, e.gpu].some((x) => x !== undefined);
      const whole = (e.cpu ?? 0) + (e.dram ?? 0) + (e.gpu ?? 0);
      return [`${p.pid ? `${p.pid} ` : ""}${p.command}`, part, known && all > 0 ? (whole * part) / all : Number.NaN] as [string, number, number];
    }).filter(([, s]) => s > 0).sort((a, b) => b[1] - a[1]).slice(0, 12);
  }

  private rows(): unknown[][] {
    const { run, range: r } = this.state;
    return [["domain", "from_s", "to_s", "energy_j", "low_j", "high_j", "idle_j", "other_processes_j"],
      ...run.head.attribution.domains.map((d, i) => [d.name, r.from_s, r.to_s, r.domains[i].energy_j, r.domains[i].low_j, r.domains[i].high_j, r.domains[i].idle_j, r.domains[i].other_j])];
  }
}
