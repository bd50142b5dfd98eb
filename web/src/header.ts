// What ran, where and when, what it used, and what is not known of it.
import type { Head, Note, Run } from "./data";
import { el } from "./dom";
import { bytes, count, digits, interval, joules, percent, seconds, watts } from "./format";
import { peak_w } from "./range";

function card(title: string, value: string, ...below: (string | Node | null | undefined | false)[]): HTMLElement {
  return el("div", { class: "card" }, el("dt", {}, title), el("dd", {}, el("strong", {}, value), ...below.filter(Boolean).map((b) => (typeof b === "string" ? el("small", {}, b) : b))));
}

const HOW: Record<string, string> = {
  measured: "a sensor measured this",
  derived: "computed from what sensors measured",
  estimated: "no sensor could be read: a model of the processor's load stands in for it",
};

export const source = (word?: string) => (word ? el("span", { class: `source ${word}`, title: HOW[word] ?? word }, word) : null);

function cards(run: Run): HTMLElement {
  const { report: r, attribution: a } = run.head;
  const channels = run.head.channels.map((_, c) => c).filter((c) => run.head.channels[c].in_total);
  const p = r.program;
  const out = el("dl", { class: "cards" });
  if (p)
    out.append(card("this program", joules(p.energy_j), interval(p.low_j, p.high_j), p.energy_j === null ? `not known: ${p.why ?? "no reason given"}` : p.share_method && `shared out by ${p.share_method}`));
  out.append(card("whole machine", joules(r.total.energy_j), interval(r.total.low_j, r.total.high_j), source(r.total.provenance)));
  out.append(card("duration", seconds(r.duration_s), r.cpu_utilisation !== undefined && `machine ${percent(r.cpu_utilisation)} busy`, r.peak_memory_bytes !== undefined && `peak memory ${bytes(r.peak_memory_bytes)}`));
  out.append(card("power", watts(r.total.mean_w), `peak ${watts(peak_w(run, channels, 0, run.head.buckets.duration_ns / 1e9))}`, "mean of the machine"));
  for (const u of a.per.slice(0, 4))
    if (u.amount > 0) out.append(card(`per ${u.kind === "counter" ? u.name.replace(/s$/, "") : u.kind}${u.phase ? `, ${u.phase}` : ""}`, joules((u.energy_j ?? Number.NaN) / u.amount),
      Number.isFinite(u.low_j ?? Number.NaN) ? interval((u.low_j ?? 0) / u.amount, (u.high_j ?? 0) / u.amount) : "", `${count(u.amount)} in all`));
  if (r.cost !== undefined) out.append(card("cost", digits(r.cost, 3), `at ${r.price_per_kwh} per kWh`));
  if (r.carbon_g !== undefined) out.append(card("carbon", `${digits(r.carbon_g, 3)} g CO₂e`, `at ${r.carbon_intensity_g_per_kwh} g/kWh`));
  return out;
}

function domains(head: Head): HTMLElement {
  const body = el("tbody");
  for (const d of head.report.domains)
    body.append(el("tr", {}, el("th", { scope: "row" }, `${d.parent ? "↳ " : ""}${d.name}`), el("td", {}, joules(d.energy_j)), el("td", {}, interval(d.low_j, d.high_j)),
      el("td", {}, watts(d.mean_w)), el("td", {}, watts(d.peak_w)), el("td", { title: d.method ?? "" }, source(d.provenance), ` ${d.driver}`),
      el("td", {}, head.report.total.domains.includes(d.name) ? "in the total" : "beside it")));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "sensors" }, el("table", {},
    el("caption", { class: "unseen" }, "Energy by domain"),
    el("thead", {}, el("tr", {}, ...["domain", "energy", "95 %", "mean", "peak", "source", ""].map((t) => el("th", { scope: "col" }, t || el("span", { class: "unseen" }, "part of the total"))))), body));
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
  else if (a.scale_low !== undefined) out.push({ what: "the scale of the rows", why: `every row is the truth times one factor between ${digits(a.scale_low, 3)} and ${digits(a.scale_high ?? Number.NaN, 3)}, the same for all of them` });
  return out;
}

export function header(run: Run): HTMLElement {
  const { head } = run;
  const { report: r, attribution: a } = head;
  const meta = r.metadata ?? {};
  const where = [meta.host, meta.cpu && `${meta.cpu}${meta.cpus ? `, ${meta.cpus} CPUs` : ""}`, meta.kernel && `Linux ${meta.kernel}`,
    head.began_s && new Date(head.began_s * 1000).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" }),
    r.exit_code !== undefined && r.exit_code > 0 && `ended with code ${r.exit_code}`, head.redacted && "names and arguments were left out"].filter(Boolean) as string[];
  return el("header", {},
    el("h1", {}, r.command || "A recording"), el("p", { class: "where" }, where.join("  ·  ")), cards(run),
    r.domains.length ? domains(head) : null,
    notes("What is missing, and what would get it", [...r.missing, ...advice(head)]), notes("Notes of the attribution", a.notes));
}
