// How numbers were made: the word that stands beside them, and what is said on hover.
import type { Head, Run, Unit } from "./data";
import { el } from "./dom";

const WORDS: Record<string, string> = {
  measured: "a sensor measured this",
  derived: "computed from what sensors measured",
  estimated: "no sensor could be read: a model of the processor's load stands in for it",
};

/** The word, with what it means on hover. */
export const source = (word?: string, how = "") => (word ? el("span", { class: `source ${word}`, title: `${word}: ${how || (WORDS[word] ?? "")}` }, word) : null);

/** What is computed from a number of some provenance. */
export const from = (word?: string) => (word === "estimated" ? "estimated" : "derived");

/** A cell that says on hover how its number was made. */
export const cell = (value: string | Node, how: string, attributes: Record<string, string> = {}) => el("td", { ...attributes, title: how }, value);

/** "× 0.53 … 1.70": the factor that all energies of spans have in common; "" where nothing is estimated. */
export function scale_of(head: Head): string {
  const { scale_low, scale_high } = head.attribution;
  return scale_low === undefined || scale_high === undefined ? "" : `× ${scale_low.toFixed(2)} … ${scale_high.toFixed(2)}`;
}

/** Of an energy that the scale is not in yet. */
export const scale_note = (head: Head) => (scale_of(head) ? `${scale_of(head)}: the estimate's scale` : "");

/** How a row's energy was made. */
export const of_row = (run: Run, i: number) => `${run.head.strings[run.array.row_provenance[i]]}, by ${run.head.strings[run.array.row_method[i]]}`;

export const of_rows = (head: Head) => `${head.attribution.provenance}, by ${head.attribution.method}`;

/** "token" of "tokens". */
export const one = (counter: string) => counter.replace(/s$/, "");

/** What is divided by what: "per token of decode", "per step". */
export const per_title = (u: Unit) => (u.kind === "counter" ? `per ${one(u.name)} of ${u.of}` : `per ${u.kind}`);
