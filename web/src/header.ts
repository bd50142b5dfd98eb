// What ran, where and when, what it used, and what is not known of it.
import type { Head, Note, ReportDomain, Run, Unit } from "./data";
import { el } from "./dom";
import { bytes, count, digits, interval, joules, percent, seconds, watts } from "./format";
import { cell, from, of_rows, per_title, scale_note, scale_of, source } from "./how";
import { type Range, peak_of } from "./range";

type Below = string | Node | null | undefined | false;

/** A tile: a number, what it may be off by, and how it was made. */
export function card(title: string, value: string | Node, word: string | undefined, how: string, ...below: Below[]): HTMLElement {
  return el("div", { class: "card", title: word ? `${word}: ${how}` : how }, el("dt", {}, title),
    el("dd", {}, typeof value === "string" ? el("strong", {}, value) : value, ...below.filter(Boolean).map((b) => (typeof b === "string" ? el("small", {}, b) : (b as Node))), source(word, how)));
}

/** Mean and peak power of a range, by one rule in all places. */
export function power_card(run: Run, r: Range, mean_w: number | undefined): HTMLElement {
  const { watts: peak_w, over_s } = peak_of(run, r);
  return card("mean power", watts(mean_w), from(run.head.report.total.provenance), `energy of the machine over the time that was read; the peak is the highest mean over ${seconds(over_s)}`, `peak ${watts(peak_w)}`);
}

function program_card(head: Head): HTMLElement | null {
  const { program: p, total, other_processes_j, idle_j } = head.report;
  if (!p) return null;
  if (p.energy_j === null || p.energy_j === undefined) return card("this program", "not known", undefined, p.why ?? "", p.why ?? "no reason given");
  const rest = [other_processes_j !== undefined && `others ${joules(other_processes_j)}`, idle_j !== undefined && `the processors idle ${joules(idle_j)}`].filter(Boolean).join(", ");
  return card("this program", joules(p.energy_j), from(total.provenance), `the machine's energy, shared out by ${p.share_method ?? "use"}`, interval(p.low_j, p.high_j), p.share_method && `shared out by ${p.share_method}`, rest);
}

function unit_card(head: Head, u: Unit): HTMLElement {
  const counted = u.kind === "counter";
  const per = (x?: number) => (x ?? Number.NaN) / u.amount;
  const whole = u.of_kind === "program" || u.of_kind === "machine";
  const scaled = scale_of(head) && !whole ? `; with the estimate's scale, common to all rows, ${interval(per(u.low_with_scale_j), per(u.high_with_scale_j))}` : "";
  const where = counted ? ` ${u.name} counted ${whole ? "outside of all spans" : "directly in it"}` : "";
  return card(per_title(u), joules(per(u.energy_j)), from(u.provenance ?? head.attribution.provenance), `energy of ${u.of} (${of_rows(head)}) over ${count(u.amount)}${where}${scaled}`,
    Number.isFinite(per(u.low_j)) && interval(per(u.low_j), per(u.high_j)), u.flags.join(", "), whole ? false : scale_note(head), `${count(u.amount)} in all`);
}

function cards(run: Run, whole: Range): HTMLElement {
  const { report: r, attribution: a } = run.head;
  const word = r.total.provenance;
  const out = el("dl", { class: "cards" });
  const program = program_card(run.head);
  if (program) out.append(program);
  out.append(card("whole machine", joules(r.total.energy_j), word, r.domains.filter((d) => r.total.domains.includes(d.name)).map((d) => `${d.name} by ${d.method ?? d.driver}`).join(" + ") || "no sensor", interval(r.total.low_j, r.total.high_j)));
  out.append(card("duration", seconds(r.duration_s), "measured", "by the clock, from the begin of the run to its end", r.cpu_utilisation !== undefined && `machine ${percent(r.cpu_utilisation)} busy`, r.peak_memory_bytes !== undefined && `peak memory ${bytes(r.peak_memory_bytes)}`));
  out.append(power_card(run, whole, r.total.mean_w));
  for (const u of a.per.slice(0, 4)) if (u.amount > 0) out.append(unit_card(run.head, u));
  if (r.cost !== undefined) out.append(card("cost", digits(r.cost, 3), from(word), "energy of the machine times the price that was given", `at ${r.price_per_kwh} per kWh`));
  if (r.carbon_g !== undefined) out.append(card("carbon", `${digits(r.carbon_g, 3)} g CO₂e`, from(word), "energy of the machine times the intensity that was given", `at ${r.carbon_intensity_g_per_kwh} g/kWh`));
  return out;
}

function domain_row(head: Head, d: ReportDomain): HTMLElement {
  const how = `${d.provenance}: ${d.method ?? d.driver}`;
  return el("tr", {}, el("th", { scope: "row" }, `${d.parent ? "↳ " : ""}${d.name}`), cell(joules(d.energy_j), how), cell(interval(d.low_j, d.high_j), `95 % interval; ${how}`),
    cell(watts(d.mean_w), `energy over the time that was read; ${how}`), cell(watts(d.peak_w), `highest mean over at least 100 ms; ${how}`), el("td", {}, source(d.provenance, d.method), ` ${d.driver}`),
    el("td", {}, head.report.total.domains.includes(d.name) ? "in the total" : "beside it"));
}

function domains(head: Head): HTMLElement {
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "sensors" }, el("table", {},
    el("caption", { class: "unseen" }, "Energy by domain"),
    el("thead", {}, el("tr", {}, ...["domain", "energy", "95 %", "mean", "peak", "source", ""].map((t) => el("th", { scope: "col" }, t || el("span", { class: "unseen" }, "part of the total"))))),
    el("tbody", {}, ...head.report.domains.map((d) => domain_row(head, d)))));
}

function notes(title: string, list: Note[]): HTMLElement | null {
  if (!list.length) return null;
  return el("details", {}, el("summary", {}, `${title} (${list.length})`), el("ul", {}, ...list.map((n) => el("li", {}, el("b", {}, n.what), `: ${n.why}`))));
}

function advice(head: Head): Note[] {
  const out: Note[] = [];
  const { report: r, attribution: a } = head;
  if (r.total.provenance === "estimated") out.push({ what: "a measured energy", why: "nrg sensors says which sensors this machine has and what they need; a meter at the plug works everywhere (nrg run --meter)" });
  if (!r.domains.length) out.push({ what: "energy", why: "no channel of energy or power was recorded; nrg sensors says what there is" });
  if (!a.spans) out.push({ what: "joules per module, layer and step", why: "the program marked no spans: nrg run --torch for PyTorch programs, nrg.span() in Python, nrg_span_begin() in C, or nrg import of layer times" });
  else if (a.scale_low !== undefined) out.push({ what: "the scale of the rows", why: `the truth of every row is its energy ${scale_of(head)}, with one factor for all of them` });
  return out;
}

export function header(run: Run, whole: Range): HTMLElement {
  const { head } = run;
  const { report: r, attribution: a } = head;
  const meta = r.metadata ?? {};
  const where = [meta.host, meta.cpu && `${meta.cpu}${meta.cpus ? `, ${meta.cpus} CPUs` : ""}`, meta.kernel && `Linux ${meta.kernel}`,
    head.began_s && new Date(head.began_s * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" }),
    r.exit_code !== undefined && r.exit_code > 0 && `ended with code ${r.exit_code}`, head.redacted && "names and arguments were left out"].filter(Boolean) as string[];
  return el("header", {},
    el("h1", {}, r.command || "A recording"), el("p", { class: "where" }, where.join("  ·  ")), cards(run, whole),
    r.domains.length ? domains(head) : null,
    notes("What is missing, and what would get it", [...r.missing, ...advice(head)]), notes("Notes of the attribution", a.notes));
}
