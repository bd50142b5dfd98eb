// The data inside the page: unpacks what src/report/page writes (see internal.h there) into typed arrays.

export interface RangeError {
  factor_low: number;
  factor_high: number;
  fixed_j: number;
  update_s: number;
  per_s_j: number;
  noise_j2_per_s: number;
  most_w: number;
}

export interface Domain {
  name: string;
  provenance: string;
  method: string;
  why?: string;
  idle_w?: number;
  idle_source?: string;
  total_j: number;
  error: RangeError;
}

export interface Note {
  what: string;
  why: string;
}

export interface Unit {
  name: string;
  kind: string;
  /** Whose energy is divided: a class of spans, the program or the machine. */
  of: string;
  of_kind: string;
  amount: number;
  energy_j?: number;
  low_j?: number;
  high_j?: number;
  low_with_scale_j?: number;
  high_with_scale_j?: number;
  provenance?: string;
  flags: string[];
}

export interface Channel {
  name: string;
  parent?: string;
  quantity: string;
  provenance: string;
  driver: string;
  in_total: boolean;
  domain: boolean;
}

export interface Track {
  name?: string;
  kind?: string;
  domain?: string;
  pid?: number;
  tid?: number;
}

export interface ReportDomain {
  name: string;
  parent?: string;
  sensor: string;
  driver: string;
  provenance: string;
  method?: string;
  energy_j?: number;
  low_j?: number;
  high_j?: number;
  mean_w?: number;
  peak_w?: number;
  covered?: number;
}

export interface Process {
  pid?: number;
  command: string;
  container?: string;
  cpu_time_s?: number;
  peak_rss_bytes?: number;
  energy_j: { cpu?: number; dram?: number; gpu?: number };
}

export interface Report {
  command?: string;
  recording?: string;
  duration_s: number;
  program?: { energy_j: number | null; low_j: number | null; high_j: number | null; share_method?: string; why?: string };
  total: { energy_j?: number; low_j?: number; high_j?: number; mean_w?: number; provenance?: string; domains: string[] };
  domains: ReportDomain[];
  processes: Process[];
  containers?: { name: string; processes: number; cpu_time_s?: number; cpu_energy_j?: number }[];
  idle_j?: number;
  idle_w?: number;
  idle_method?: string;
  other_processes_j?: number;
  missing: Note[];
  metadata?: Record<string, string>;
  carbon_g?: number;
  carbon_intensity_g_per_kwh?: number;
  cost?: number;
  price_per_kwh?: number;
  cpu_utilisation?: number;
  peak_memory_bytes?: number;
  exit_code?: number;
}

/** What the machine charges above idle: at best (of nrg calibrate), or as fitted (of a profile). */
export interface Machine {
  device: string;
  provenance: string;
  source: string;
  j_per_mac?: number;
  j_per_byte?: number;
}

/** As nrg predict --against --json. */
export interface Prediction {
  device: string;
  confidence: number;
  measured_provenance: string;
  method: string;
  modules: { name: string; class?: string; calls: number; predicted_j?: number; predicted_low_j?: number; predicted_high_j?: number; measured_j?: number; measured_low_j?: number; measured_high_j?: number; error_percent?: number; verdict?: string; flags?: string[] }[];
  reasons?: string[];
}

export interface Effect {
  ratio?: number;
  low?: number;
  high?: number;
  p_value?: number;
  verdict?: string;
}

/** As nrg compare --json; sides: 0 or 1 per recording. */
export interface Comparison {
  answer?: string;
  sides: number[];
  a: { runs: number };
  b: { runs: number };
  confidence?: number;
  runs_needed?: number;
  energy?: Effect;
  duration?: Effect;
  mean_power?: Effect;
  rows: (Effect & { name: string; kind: string; a_j?: number; b_j?: number; p_adjusted?: number })[];
  warnings?: string[];
  refusals?: string[];
}

export interface Head {
  counters: string[];
  machine?: Machine;
  prediction?: Prediction;
  comparison?: Comparison;
  nrg_version: string;
  redacted: boolean;
  report: Report;
  attribution: {
    method: string;
    provenance: string;
    total_j?: number;
    total_low_j?: number;
    total_high_j?: number;
    idle_j?: number;
    other_processes_j?: number;
    unattributed_j?: number;
    scale_low?: number;
    scale_high?: number;
    spans: number;
    domains: Domain[];
    notes: Note[];
    per: Unit[];
  };
  began_s?: number;
  buckets: { n: number; width_ns: number; duration_ns: number };
  channels: Channel[];
  series: { n: number; period_ns: number; processes: number };
  tracks: Track[];
  spans_left_out?: number;
  spans_least_s?: number;
  span_tick_ns: number;
  strings: string[];
  arrays: [string, string, number][];
}

type Numbers = Float64Array | Float32Array | Uint32Array | Int32Array | Uint8Array;

const TYPES: Record<string, { new (buffer: ArrayBuffer, at: number, n: number): Numbers; BYTES_PER_ELEMENT: number }> = {
  f8: Float64Array,
  f4: Float32Array,
  u4: Uint32Array,
  i4: Int32Array,
  u1: Uint8Array,
};

/** One recording. Times are seconds from the start of its run. */
export interface Run {
  head: Head;
  n_rows: number;
  array: Record<string, Numbers>;
  label: (row: number) => string;
  name: (row: number) => string;
  kind: (row: number) => string;
  detail: (row: number) => string;
  /** Begin and end of the spans, in order of their ends. */
  span_begin: Float64Array;
  span_end: Float64Array;
}

const up8 = (n: number) => (n + 7) & ~7;

export function parse(bytes: ArrayBuffer): Run {
  const size = new Uint32Array(bytes, 0, 1)[0];
  const head: Head = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, size)));
  const array: Record<string, Numbers> = {};
  let at = up8(8 + size);
  for (const [name, type, n] of head.arrays) {
    array[name] = new TYPES[type](bytes, at, n);
    at = up8(at + n * TYPES[type].BYTES_PER_ELEMENT);
  }
  const text = (column: string) => (row: number) => head.strings[array[column][row]];
  const step = array.span_step;
  const length = array.span_length;
  const tick_s = head.span_tick_ns * 1e-9;
  const span_begin = new Float64Array(step.length);
  const span_end = new Float64Array(step.length);
  let end = 0;
  for (let i = 0; i < step.length; i++) {
    end += step[i];
    span_end[i] = end * tick_s;
    span_begin[i] = (end - length[i]) * tick_s;
  }
  return {
    head, array, n_rows: array.row_parent.length, span_begin, span_end,
    label: (row) => {
      const [name, detail] = [head.strings[array.row_label[row]], head.strings[array.row_detail[row]]];
      return detail && detail !== name && !name.includes(detail) ? `${name} · ${detail}` : name;
    },
    name: text("row_name"), kind: text("row_kind"), detail: text("row_detail"),
  };
}

export async function unpack(base64: string): Promise<Run> {
  const packed = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return parse(await new Response(stream).arrayBuffer());
}

export const edge_s = (run: Run, i: number) =>
  (i < run.head.buckets.n ? i * run.head.buckets.width_ns : run.head.buckets.duration_ns) / 1e9;

export const duration_s = (run: Run) => run.head.buckets.duration_ns / 1e9;

/** The edge nearest to a time. */
export function nearest_edge(run: Run, s: number): number {
  const { n, width_ns } = run.head.buckets;
  const i = Math.max(0, Math.min(n, Math.round((s * 1e9) / width_ns)));
  return i < n && Math.abs(edge_s(run, i + 1) - s) < Math.abs(edge_s(run, i) - s) ? i + 1 : i;
}
