// The page: unpacks the recordings inside it and shows one of them, or several side by side.
import { compare } from "./compare";
import { unpack } from "./data";
import { el } from "./dom";
import { Flame } from "./flame";
import { header } from "./header";
import { Selection } from "./selection";
import { State } from "./state";
import { Table } from "./table";
import { Timeline } from "./timeline";
import { Why } from "./why";

const page = document.getElementById("page")!;

function search(state: State): HTMLElement {
  const input = el("input", { type: "search", placeholder: "search", "aria-label": "search rows and spans", input: () => state.find(input.value) });
  return input;
}

function show(state: State) {
  const timeline = new Timeline(state);
  const where = el("section", { id: "where", "aria-labelledby": "where-title" }, el("div", { class: "bar" }, el("h2", { id: "where-title" }, "Where the joules went"), search(state)));
  where.append(new Flame(state).element);
  if (state.run.n_rows) where.append(new Table(state).element);
  const switcher = state.runs.length > 1 ? compare(state.runs, state.index, (i) => show(new State(state.runs, i))) : null;
  page.replaceChildren(...[header(state.run, state.whole), switcher, timeline.element, new Selection(state).element, where, state.run.n_rows ? new Why(state).element : null,
    el("footer", {}, el("p", {}, `nrg ${state.run.head.nrg_version}. This file holds all of its data and asks the network for nothing. Intervals hold the truth 95 times of 100 as far as nrg knows its sensors; their own calibration is not in them.`))].filter(Boolean) as Node[]);
  document.title = `${state.run.head.report.command || "recording"}: nrg`;
  window.onhashchange = () => state.from_address();
  state.from_address();
  const redraw = () => {
    timeline.paint();
    state.find(state.search);
  };
  matchMedia("(prefers-color-scheme: dark)").onchange = redraw;
  print_well(redraw);
}

/** Paper is white and can't be clicked: pictures in light colours, and everything that is folded away. */
function print_well(redraw: () => void) {
  let opened: HTMLDetailsElement[] = [];
  window.onbeforeprint = () => {
    opened = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open])")];
    for (const d of opened) d.open = true;
    document.documentElement.dataset.paper = "yes";
    redraw();
  };
  window.onafterprint = () => {
    for (const d of opened) d.open = false;
    delete document.documentElement.dataset.paper;
    redraw();
  };
}

async function start() {
  const data = [...document.querySelectorAll("script.nrg-run")];
  if (!data.length) {
    page.append(el("p", {}, "There is no recording in this page."));
    return;
  }
  const runs = await Promise.all(data.map((script) => unpack(script.textContent ?? "")));
  for (const script of data) script.remove(); // the packed copy is not needed any more
  show(new State(runs));
  document.documentElement.dataset.ready = "yes";
}

start().catch((e) => {
  page.replaceChildren(el("h1", {}, "nrg"), el("p", { role: "alert" }, `This page can't be shown: ${e instanceof Error ? e.message : String(e)}. It may be cut off, or the browser may be too old (it must know DecompressionStream).`));
});
