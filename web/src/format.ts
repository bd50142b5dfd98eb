// Numbers for people: four digits, SI units, and the same words everywhere.
const PREFIXES: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""], [1e-3, "m"], [1e-6, "µ"], [1e-9, "n"], [1e-12, "p"]];

/** n digits that mean something, however small the number is. */
export function digits(x: number, n = 4): string {
  if (!Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const whole = Math.floor(Math.log10(Math.abs(Number(x.toPrecision(n))))) + 1; // 9.9999 has two digits before the point
  return whole < -5 ? x.toExponential(n - 1) : x.toFixed(Math.max(0, n - whole));
}

export function unit(x: number | null | undefined, name: string, n = 4): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (Math.abs(x) < 1e-14) return `0 ${name}`; // rounding
  const [factor, prefix] = PREFIXES.find(([f]) => Math.abs(x) >= f) ?? PREFIXES[PREFIXES.length - 1];
  return `${digits(x / factor, n)} ${prefix}${name}`;
}

export const joules = (x?: number | null) => unit(x, "J");
export const watts = (x?: number | null) => unit(x, "W");

export function seconds(x?: number | null): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x >= 120) return `${Math.floor(x / 60)} min ${digits(x % 60, 3)} s`;
  return unit(x, "s");
}

export function bytes(x?: number | null): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  const i = Math.max(0, Math.min(4, Math.floor(Math.log2(Math.max(1, x)) / 10)));
  return `${digits(x / 1024 ** i)} ${["B", "KiB", "MiB", "GiB", "TiB"][i]}`;
}

export const percent = (x: number) => (Number.isFinite(x) ? `${digits(100 * x, 3)} %` : "–");
const ROUNDING = 1e-9;

/** With as many digits as it takes to see the two ends apart. */
export function interval(low?: number | null, high?: number | null): string {
  const [a, b] = [low ?? Number.NaN, high ?? Number.NaN];
  if (!(b - a > ROUNDING * Math.abs(b))) return "interval not known"; // of a gauge that never moved: not ± 0
  let n = 4;
  while (n < 9 && unit(a, "J", n) === unit(b, "J", n)) n++;
  return `${unit(a < ROUNDING * b ? 0 : a, "J", n)} … ${unit(b, "J", n)}`;
}

/** The larger distance from the estimate, or both ends where ± would mislead: nrg_show_band() of src/report/units.c. */
export function plus_minus(energy_j: number, low_j: number, high_j: number): string {
  const [below, above] = [energy_j - low_j, high_j - energy_j];
  const wide = Math.max(below, above, 0);
  if (!Number.isFinite(below + above)) return "";
  return Math.min(below, above) < 0.5 * wide || wide > energy_j ? interval(low_j, high_j) : `± ${joules(wide)}`;
}
export const count = (x: number) => (Number.isFinite(x) ? Math.round(x).toLocaleString("en") : "–");

/** Round steps of an axis: 1, 2 or 5 times a power of ten. */
export function ticks(from: number, to: number, most: number): number[] {
  if (!(to > from)) return [];
  const least = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= least) ?? 10 * power;
  const out: number[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) out.push(Number((i * step).toPrecision(12)));
  return out;
}
