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

/** low or high of a part of a row: `end` is the whole's. */
export function row_end(whole_j: number, end_j: number, random_j: number, part_j: number): number {
  if (Number.isNaN(end_j)) return Number.NaN;
  const share = whole_j > 0 ? part_j / whole_j : 0;
  const off_j = Math.abs(end_j - whole_j);
  const random = Number.isNaN(random_j) ? 0 : Math.min(random_j, off_j);
  const width_j = (off_j - random) * share + random * Math.sqrt(Math.max(0, share));
  return end_j < whole_j ? Math.max(0, part_j - width_j) : part_j + width_j;
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
  const { row_energy_j, row_low_j, row_high_j, row_random_j } = run.array;
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
    r.low_j[i] = row_end(row_energy_j[i], row_low_j[i], row_random_j[i], r.all_j[i]);
    r.high_j[i] = row_end(row_energy_j[i], row_high_j[i], row_random_j[i], r.all_j[i]);
    if (Number.isNaN(row_energy_j[i])) r.all_j[i] = Number.NaN;
  }
  r.unattributed_j = total.energy_j - rows_j - total.idle_j - total.other_j;
  return r;
}

/** Highest power of a channel's steps within a range; NaN: none is known. */
export function peak_w(run: Run, channels: number[], from_s: number, to_s: number): number {
  const { n, period_ns } = run.head.series;
  let peak = Number.NaN;
  for (let k = Math.floor((from_s * 1e9) / period_ns); k < n && k * period_ns < to_s * 1e9; k++) {
    let sum = Number.NaN;
    for (const c of channels) {
      const w = run.array.series[c * n + k];
      if (!Number.isNaN(w)) sum = (Number.isNaN(sum) ? 0 : sum) + w;
    }
    if (!(sum <= peak)) peak = Number.isNaN(sum) ? peak : sum;
  }
  return peak;
}
