// Joules of a range of buckets and what they may be off by: the rule of src/attribute/range.h, once more. What is common to the
// run adds up linearly, what is independent as squares; intervals of buckets are never added.
import type { Run } from "./data";
import { edge_s } from "./data";

export interface Sum {
  energy_j: number;
  low_j: number;
  high_j: number;
  idle_j: number;
  other_j: number;
  covered_s: number;
}

const FIELDS = 6; // of a bucket of a domain: total, idle, others, covered time, least, most

export function domain_sum(run: Run, domain: number, first: number, last: number): Sum {
  const all = run.array.domain_buckets;
  const error = run.head.attribution.domains[domain].error;
  const sum = [0, 0, 0, 0, 0, 0];
  for (let i = first; i < last; i++)
    for (let f = 0; f < FIELDS; f++) sum[f] += all[(domain * run.head.buckets.n + i) * FIELDS + f];
  const [energy_j, idle_j, other_j, covered_s, band_low_j, band_high_j] = sum;
  const s = edge_s(run, last) - edge_s(run, first);
  const banded = !Number.isNaN(band_low_j) && !Number.isNaN(band_high_j);
  const mean_w = covered_s > 0 ? Math.abs(energy_j) / covered_s : 0;
  const off_j = error.fixed_j + error.update_s * mean_w + error.per_s_j * s + Math.sqrt(error.noise_j2_per_s * covered_s);
  const unread_j = Math.max(0, s - covered_s) * error.most_w;
  return {
    energy_j, idle_j, other_j, covered_s,
    low_j: Math.max(0, (banded ? band_low_j : energy_j * error.factor_low) - off_j),
    high_j: (banded ? band_high_j : energy_j * error.factor_high) + off_j + unread_j,
  };
}

/** Mean power of domains over the time that was read of each, as nrg report has it: what was not read is no power of 0. */
export const mean_w = (domains: Sum[]) => domains.reduce((sum, d) => (d.covered_s > 0 ? sum + d.energy_j / d.covered_s : sum), domains.some((d) => d.covered_s > 0) ? 0 : Number.NaN);

/** A row in all of the run, with all in it or by itself; random_j: what of its interval is random. */
export interface Whole {
  energy_j: number;
  low_j: number;
  high_j: number;
  random_j: number;
  time_s: number;
}

const ROUNDING = 1e-9; // of what an energy may be off by: less is none

/** What a part may be off by towards an end of the whole: common to the run, and random. Where the estimate is 0 the part is that of the time. */
function off(whole: Whole, end_j: number, part_j: number, part_s: number): { common_j: number; random_j: number } {
  const all_j = Math.abs(end_j - whole.energy_j);
  const random_j = Number.isNaN(whole.random_j) ? 0 : Math.min(whole.random_j, all_j);
  const time_share = part_s < whole.time_s ? part_s / whole.time_s : 1;
  const some = Math.min(whole.energy_j, part_j) > ROUNDING * all_j;
  const share = some ? part_j / whole.energy_j : time_share;
  return { common_j: (all_j - random_j) * share, random_j: random_j * Math.sqrt(share) };
}

/** low or high of a part of a row, where the whole's is `end_j`. */
export function row_end(whole: Whole, end_j: number, part_j: number, part_s: number): number {
  const { common_j, random_j } = off(whole, end_j, part_j, part_s);
  return end_j < whole.energy_j ? Math.max(0, part_j - common_j - random_j) : part_j + common_j + random_j;
}

/** Parts of rows in sum: what is common to the run adds up linearly, what is independent as squares. */
export class Together {
  energy_j = 0;
  private common_j = [0, 0];
  private random2 = [0, 0];

  add(whole: Whole, part_j: number, part_s: number) {
    this.energy_j += part_j;
    for (const [k, end_j] of [whole.low_j, whole.high_j].entries()) {
      const { common_j, random_j } = off(whole, end_j, part_j, part_s);
      this.common_j[k] += common_j;
      this.random2[k] += random_j * random_j;
    }
  }

  get low_j(): number {
    return Math.max(0, this.energy_j - this.common_j[0] - Math.sqrt(this.random2[0]));
  }

  get high_j(): number {
    return this.energy_j + this.common_j[1] + Math.sqrt(this.random2[1]);
  }
}

/** A row with all that is in it. */
export function whole_of(run: Run, i: number): Whole {
  const a = run.array;
  return { energy_j: a.row_energy_j[i], low_j: a.row_low_j[i], high_j: a.row_high_j[i], random_j: a.row_random_j[i], time_s: a.row_time_s[i] };
}

/** What a row used itself. */
export function self_of(run: Run, i: number): Whole {
  const a = run.array;
  return { energy_j: a.row_self_j[i], low_j: a.row_self_low_j[i], high_j: a.row_self_high_j[i], random_j: a.row_self_random_j[i], time_s: a.row_self_time_s[i] };
}

/** What a range used: of the machine, of each domain, of each row. */
export interface Range {
  first: number;
  last: number;
  from_s: number;
  to_s: number;
  whole: boolean;
  total: Sum;
  domains: Sum[];
  unattributed_j: number;
  self_j: Float64Array;
  all_j: Float64Array;
  low_j: Float64Array;
  high_j: Float64Array;
  self_s: Float64Array;
  all_s: Float64Array;
  calls: Float64Array;
}

/** First entry of a row, between `low` and `high`, whose bucket is not before `bucket`. */
function entry_from(buckets: ArrayLike<number>, low: number, high: number, bucket: number): number {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (buckets[middle] < bucket) low = middle + 1;
    else high = middle;
  }
  return low;
}

function add_rows(run: Run, r: Range) {
  const { row_first, entry_bucket, entry_j, entry_s, entry_calls, row_parent } = run.array;
  for (let i = 0; i < run.n_rows; i++) {
    const end = row_first[i + 1];
    for (let k = entry_from(entry_bucket, row_first[i], end, r.first); k < end && entry_bucket[k] < r.last; k++) {
      r.self_j[i] += entry_j[k];
      r.self_s[i] += entry_s[k];
      r.calls[i] += entry_calls[k];
    }
  }
  r.all_j.set(r.self_j);
  r.all_s.set(r.self_s);
  for (let i = run.n_rows - 1; i >= 0; i--) {
    if (row_parent[i] < 0) continue;
    r.all_j[row_parent[i]] += r.all_j[i];
    r.all_s[row_parent[i]] += r.all_s[i];
  }
}

export function range_of(run: Run, first: number, last: number): Range {
  const numbers = () => new Float64Array(run.n_rows);
  const domains = run.head.attribution.domains.map((_, d) => domain_sum(run, d, first, last));
  const total: Sum = { energy_j: 0, low_j: 0, high_j: 0, idle_j: 0, other_j: 0, covered_s: 0 };
  for (const d of domains) for (const key of Object.keys(total) as (keyof Sum)[]) total[key] += d[key];
  const r: Range = {
    first, last, from_s: edge_s(run, first), to_s: edge_s(run, last), whole: first === 0 && last === run.head.buckets.n,
    total, domains, unattributed_j: 0, self_j: numbers(), all_j: numbers(), low_j: numbers(), high_j: numbers(),
    self_s: numbers(), all_s: numbers(), calls: numbers(),
  };
  add_rows(run, r);
  let rows_j = 0;
  for (let i = 0; i < run.n_rows; i++) {
    rows_j += r.self_j[i];
    const whole = whole_of(run, i);
    r.low_j[i] = row_end(whole, whole.low_j, r.all_j[i], r.all_s[i]);
    r.high_j[i] = row_end(whole, whole.high_j, r.all_j[i], r.all_s[i]);
    if (Number.isNaN(whole.energy_j)) r.all_j[i] = Number.NaN;
  }
  r.unattributed_j = total.energy_j - rows_j - total.idle_j - total.other_j;
  return r;
}

/** As nrg attribute says it: the interval is wider than the energy. */
export const unresolved = (x: { energy_j: number; low_j: number; high_j: number }) => x.high_j - x.low_j > x.energy_j;

/** Interval of a row with the scale of what is estimated in it; null: nothing is. */
export function with_scale(run: Run, r: Range, i: number): [number, number] | null {
  const { row_scaled_low_j: low_j, row_scaled_high_j: high_j } = run.array;
  if (!low_j) return null;
  return [row_end(whole_of(run, i), low_j[i], r.all_j[i], r.all_s[i]), row_end(whole_of(run, i), high_j[i], r.all_j[i], r.all_s[i])];
}

const PEAK_NS = 100e6; // docs/json.md: the highest mean over at least 100 ms

/** Watts of the channels of the total in a step, in sum; NaN: none was read. */
function step_w(run: Run, channels: number[], k: number): number {
  let sum = Number.NaN;
  for (const c of channels) {
    const w = run.array.series[c * run.head.series.n + k];
    if (!Number.isNaN(w)) sum = (Number.isNaN(sum) ? 0 : sum) + w;
  }
  return sum;
}

/** Peak power of the machine in a range and the time it is a mean of; of the whole run what nrg report says, where that is one domain's. */
export function peak_of(run: Run, r: Range): { watts: number; over_s: number } {
  const { n, period_ns } = run.head.series;
  const channels = run.head.channels.map((_, c) => c).filter((c) => run.head.channels[c].in_total);
  const peaks_w = run.head.report.domains.filter((d) => run.head.report.total.domains.includes(d.name)).map((d) => d.peak_w ?? Number.NaN);
  const first = Math.max(0, Math.floor((r.from_s * 1e9) / period_ns + 1e-6));
  const last = Math.min(n, Math.ceil((r.to_s * 1e9) / period_ns - 1e-6));
  const width = Math.max(1, Math.min(last - first, Math.ceil(PEAK_NS / period_ns - 1e-6)));
  const most_w = peaks_w.reduce((sum, w) => sum + w, 0);
  let watts = Number.NaN;
  let [sum, known] = [0, 0];
  for (let k = first; k < last; k++) {
    const w = step_w(run, channels, k);
    if (Number.isNaN(w)) [sum, known] = [0, 0]; // a gap: begins anew
    else [sum, known] = [sum + w, known + 1];
    if (known > width) [sum, known] = [sum - step_w(run, channels, k - width), width];
    if (known === width && !(sum / width <= watts)) watts = sum / width;
  }
  if (r.whole && (peaks_w.length === 1 || Number.isNaN(watts))) watts = most_w;
  return { watts: Number.isFinite(most_w) ? Math.min(watts, most_w) : watts, over_s: Math.max(PEAK_NS, width * period_ns) / 1e9 };
}
