// What the selected time used: joules with interval, power, by domain and process. Follows the selection at once, and can be typed.
import { duration_s } from "./data";
import { el, savers } from "./dom";
import { interval, joules, percent, seconds, watts } from "./format";
import { source } from "./header";
import { peak_w } from "./range";
import type { State } from "./state";

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

export class Selection {
  readonly element: HTMLElement;
  private title = el("h2", { id: "selection-title" });
  private numbers = el("dl", { class: "cards", "aria-live": "polite" });
  private domains = el("tbody");
  private processes = el("tbody");
  private from: HTMLInputElement;
  private to: HTMLInputElement;

  constructor(private state: State) {
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
      el("div", { class: "sides" }, part("By domain", ["domain", "energy", "95 %", "mean", "share"], this.domains),
        state.run.head.series.processes ? part("By process, by CPU time", ["process", "CPU time", "energy"], this.processes) : null,
        containers.length ? part("Containers, of the whole run", ["container", "processes", "CPU time", "energy"], el("tbody", {}, ...containers.map((c) =>
          el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name", title: c.name }, c.name)), el("td", {}, String(c.processes)), el("td", {}, seconds(c.cpu_time_s)), el("td", {}, joules(c.cpu_energy_j)))))) : null));
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
    const channels = run.head.channels.map((_, c) => c).filter((c) => run.head.channels[c].in_total);
    const raw = (key: string, x: number, text: string, tag: "strong" | "span" = "span") => el(tag, { "data-nrg": key, "data-value": String(x) }, text);
    const known = r.domains.length > 0;
    this.title.textContent = r.whole ? "The whole run" : "Selection";
    this.from.value = String(r.from_s);
    this.to.value = String(r.to_s);
    const item = (title: string, ...value: Node[]) => el("div", { class: "card" }, el("dt", {}, title), el("dd", {}, ...value));
    const scale = run.head.attribution.provenance;
    this.numbers.replaceChildren(
      item("energy", raw("selection-energy-j", known ? r.total.energy_j : Number.NaN, known ? joules(r.total.energy_j) : "not known", "strong"),
        el("small", {}, raw("selection-low-j", known ? r.total.low_j : Number.NaN, joules(r.total.low_j)), " … ", raw("selection-high-j", known ? r.total.high_j : Number.NaN, joules(r.total.high_j)), " (95 %)"), source(scale) ?? ""  as unknown as Node),
      item("time", el("strong", {}, seconds(s)), el("small", {}, raw("from-s", r.from_s, `${r.from_s} s`), " … ", raw("to-s", r.to_s, `${r.to_s} s`))),
      item("mean power", el("strong", {}, watts(known ? r.total.energy_j / s : Number.NaN)), el("small", {}, `peak ${watts(peak_w(run, channels, r.from_s, r.to_s))}`)),
      item("in spans", el("strong", {}, joules(r.total.energy_j - r.total.idle_j - r.total.other_j - r.unattributed_j)),
        el("small", {}, `idle ${joules(r.total.idle_j)}, others ${joules(r.total.other_j)}, unattributed ${joules(r.unattributed_j)}`)));
    this.domains.replaceChildren(...run.head.attribution.domains.map((d, i) => {
      const sum = r.domains[i];
      return el("tr", {}, el("th", { scope: "row" }, d.name), el("td", {}, joules(sum.energy_j)), el("td", {}, interval(sum.low_j, sum.high_j)),
        el("td", {}, watts(sum.energy_j / s)), el("td", {}, percent(sum.energy_j / r.total.energy_j)));
    }));
    if (!known) this.domains.append(el("tr", {}, el("td", { colspan: "5" }, "No energy was recorded.")));
    this.processes.replaceChildren(...this.by_process().map(([name, cpu_s, energy_j]) =>
      el("tr", {}, el("th", { scope: "row" }, el("span", { class: "name", title: name }, name)), el("td", {}, seconds(cpu_s)), el("td", {}, joules(energy_j)))));
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
