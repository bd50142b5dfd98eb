// The arithmetic of selections, against closed forms.
import { describe, expect, test } from "vitest";
import { edge_s, nearest_edge, parse } from "../src/data";
import { digits, plus_minus } from "../src/format";
import { per_title } from "../src/how";
import { Together, domain_sum, mean_w, peak_of, range_of, row_end } from "../src/range";
import { labels_of, path_of, tree_of } from "../src/tree";
import { type Group, shares } from "../src/why";

const SIZES: Record<string, number> = { f8: 8, f4: 4, u4: 4, i4: 4, u1: 1 };
const KINDS = { f8: Float64Array, f4: Float32Array, u4: Uint32Array, i4: Int32Array, u1: Uint8Array };

/** Bytes as nrg writes them. */
function blob(head: object, arrays: [string, keyof typeof KINDS, number[]][]): ArrayBuffer {
  const text = new TextEncoder().encode(JSON.stringify({ ...head, arrays: arrays.map(([n, t, v]) => [n, t, v.length]) }));
  const up = (n: number) => Math.ceil(n / 8) * 8;
  const size = arrays.reduce((at, [, t, v]) => up(at + SIZES[t] * v.length), up(8 + text.length));
  const out = new ArrayBuffer(size);
  new Uint32Array(out, 0, 1)[0] = text.length;
  new Uint8Array(out, 8).set(text);
  let at = up(8 + text.length);
  for (const [, t, v] of arrays) {
    new KINDS[t](out, at, v.length).set(v);
    at = up(at + SIZES[t] * v.length);
  }
  return out;
}

const exact = { factor_low: 1, factor_high: 1, fixed_j: 0, update_s: 0, per_s_j: 0, noise_j2_per_s: 0, most_w: 0 };
const nan = Number.NaN;

/** Four buckets of 1 s, the last of 0.5 s; 10 J each, 2 idle, 1 others; a row with 5 J each, one inside of it with 1 J in the second. */
function made(error = exact, band = [nan, nan]) {
  const bucket = (s: number) => [10, 2, 1, s, ...band];
  const row = (x: number, y: number) => [x, y];
  const head = {
    strings: ["", "outer", "inner"], span_tick_ns: 100, tracks: [], channels: [], series: { n: 0, period_ns: 1, processes: 0 },
    buckets: { n: 4, width_ns: 1e9, duration_ns: 3.5e9 }, attribution: { domains: [{ name: "a", error }] }, report: {},
  };
  return parse(blob(head, [
    ["row_label", "u4", [1, 2]], ["row_name", "u4", [1, 2]], ["row_kind", "u4", [0, 0]], ["row_detail", "u4", [0, 0]], ["row_parent", "i4", [-1, 0]],
    ["row_energy_j", "f8", row(21, 1)], ["row_low_j", "f8", row(19, 0)], ["row_high_j", "f8", row(24, 5)], ["row_random_j", "f8", row(1, 0)],
    ["row_time_s", "f8", row(3.75, 0.25)], ["row_self_j", "f8", row(20, 1)], ["row_self_low_j", "f8", row(18, 0)], ["row_self_high_j", "f8", row(22, 5)],
    ["row_self_random_j", "f8", row(1, 0)], ["row_self_time_s", "f8", row(3.5, 0.25)],
    ["domain_buckets", "f8", [1, 1, 1, 0.5].flatMap(bucket)],
    ["row_first", "u4", [0, 4, 5]], ["entry_bucket", "u4", [0, 1, 2, 3, 1]], ["entry_calls", "u4", [1, 1, 1, 1, 3]],
    ["entry_j", "f4", [5, 5, 5, 5, 1]], ["entry_s", "f4", [1, 1, 1, 0.5, 0.25]], ["span_step", "u4", [10_000_000, 5_000_000]], ["span_length", "u4", [5_000_000, 5_000_000]],
  ]));
}

describe("data", () => {
  test("spans are found again", () => {
    const run = made();
    for (const [i, [begin, end]] of [[0.5, 1], [1, 1.5]].entries()) {
      expect(run.span_begin[i]).toBeCloseTo(begin, 12);
      expect(run.span_end[i]).toBeCloseTo(end, 12);
    }
  });
  test("edges", () => {
    const run = made();
    expect([0, 1, 3, 4].map((i) => edge_s(run, i))).toEqual([0, 1, 3, 3.5]);
    expect([-1, 0.4, 0.6, 3.2, 3.4, 99].map((s) => nearest_edge(run, s))).toEqual([0, 0, 1, 3, 4, 4]);
  });
});

describe("domains", () => {
  test("sums", () => {
    expect(domain_sum(made(), 0, 1, 3)).toEqual({ energy_j: 20, low_j: 20, high_j: 20, idle_j: 4, other_j: 2, covered_s: 2 });
  });
  test("what is common is in proportion to the energy", () => {
    const run = made({ ...exact, factor_low: 0.9, factor_high: 1.2 });
    for (const last of [1, 2, 3, 4]) {
      const d = domain_sum(run, 0, 0, last);
      expect(d.low_j).toBeCloseTo(9 * last, 12);
      expect(d.high_j).toBeCloseTo(12 * last, 12);
    }
  });
  test("noise adds up as squares, edges count once", () => {
    const noise = domain_sum(made({ ...exact, noise_j2_per_s: 0.25 }), 0, 0, 4);
    expect(noise.high_j - noise.energy_j).toBeCloseTo(0.5 * Math.sqrt(3.5), 12);
    const edges = domain_sum(made({ ...exact, fixed_j: 0.5, update_s: 0.1, per_s_j: 0.01 }), 0, 1, 3);
    expect(edges.high_j - 20).toBeCloseTo(0.5 + 0.1 * 10 + 0.02, 12);
    expect(20 - edges.low_j).toBeCloseTo(0.5 + 0.1 * 10 + 0.02, 12);
  });
  test("a band is the sum of its own, and time without readings widens upwards", () => {
    const banded = domain_sum(made(exact, [4, 30]), 0, 0, 3);
    expect([banded.low_j, banded.high_j]).toEqual([12, 90]);
    const run = made({ ...exact, most_w: 100 });
    run.array.domain_buckets[3] = 0.75;
    const d = domain_sum(run, 0, 0, 1);
    expect([d.low_j, d.high_j]).toEqual([10, 35]);
  });
});

describe("mean power", () => {
  const sum = (energy_j: number, covered_s: number) => ({ energy_j, covered_s, low_j: 0, high_j: 0, idle_j: 0, other_j: 0 });
  test("is over the time that was read, of domains in sum", () => {
    expect(mean_w([sum(30, 1.5), sum(25, 0.5)])).toBe(70);
    expect(mean_w([sum(30, 1.5), sum(0, 0)])).toBe(20);
    expect(mean_w([sum(0, 0)])).toBeNaN();
  });
});

describe("rows", () => {
  test("self, inside, calls and time", () => {
    const r = range_of(made(), 1, 3);
    expect([...r.self_j]).toEqual([10, 1]);
    expect([...r.all_j]).toEqual([11, 1]);
    expect([...r.all_s]).toEqual([2.25, 0.25]);
    expect([...r.calls]).toEqual([2, 3]);
    expect(r.unattributed_j).toBeCloseTo(20 - 4 - 2 - 11, 12);
  });
  test("the whole is as nrg said it", () => {
    const r = range_of(made(), 0, 4);
    expect(r.whole).toBe(true);
    expect([...r.low_j]).toEqual([19, 0]);
    expect([...r.high_j]).toEqual([24, 5]);
  });
  test("a part keeps what is common and grows what is random", () => {
    const of = (energy_j: number, random_j: number) => ({ energy_j, random_j, low_j: 0, high_j: 0, time_s: 4 });
    expect(row_end(of(100, 0), 90, 25, 2)).toBeCloseTo(22.5, 12);
    expect(row_end(of(100, 10), 90, 25, 2)).toBeCloseTo(20, 12);
    expect(row_end(of(100, 10), 110, 25, 2)).toBeCloseTo(30, 12);
    expect(row_end(of(100, 0), 10, 0, 2)).toBe(0);
    expect(row_end(of(100, 0), nan, 5, 2)).toBeNaN();
    expect(row_end(of(0, 0), 0, 0, 2)).toBe(0);
  });
  test("an estimate of 0 keeps its high end, a part of its time a part of that", () => {
    const zero = { energy_j: 0, random_j: 0, low_j: 0, high_j: 8, time_s: 4 };
    expect(row_end(zero, 8, 0, 4)).toBe(8);
    expect(row_end(zero, 8, 0, 1)).toBe(2);
    expect(row_end({ ...zero, random_j: 8 }, 8, 0, 1)).toBe(4);
    expect(row_end(zero, 0, 0, 1)).toBe(0);
    expect(row_end({ ...zero, time_s: 0 }, 8, 0, 0)).toBe(8);
    expect(row_end({ ...zero, energy_j: 10, high_j: 18 }, 18, 0, 1)).toBe(2);
  });
  test("rows in sum: common errors add up, random ones as squares", () => {
    const sum = new Together();
    sum.add({ energy_j: 10, low_j: 5, high_j: 16, random_j: 3, time_s: 1 }, 10, 1);
    sum.add({ energy_j: 20, low_j: 15, high_j: 26, random_j: 4, time_s: 1 }, 20, 1);
    expect([sum.energy_j, sum.low_j, sum.high_j]).toEqual([30, 30 - 3 - 5, 30 + 5 + 5]);
  });
  test("boxes of all trees have intervals", () => {
    for (const shape of ["calls", "kinds", "modules"] as const)
      for (const b of tree_of(made(), range_of(made(), 1, 3), shape, "joules").children.filter((c) => !c.rest)) {
        expect(b.low_j).toBeLessThan(b.energy_j);
        expect(b.high_j).toBeGreaterThan(b.energy_j);
      }
  });
  test("rows of one name, such as forward and backward, are called by their labels", () => {
    const run = made();
    run.head.strings.push("inner (backward)");
    run.array.row_label[1] = 3;
    expect(path_of(run, 1)).toContain("inner");
    expect(labels_of(run, 1)).toBe("outer › inner (backward)");
  });
  test("boxes add up to the machine", () => {
    for (const shape of ["calls", "kinds", "modules"] as const) {
      const tree = tree_of(made(), range_of(made(), 0, 4), shape, "joules");
      expect(tree.children.reduce((sum, c) => sum + c.value, 0)).toBeCloseTo(40, 9);
    }
  });
});

describe("numbers for people", () => {
  test("digits mean something however small a number is", () => {
    expect([0, 12345, 12.345, 0.000012345, 1.2345e-12].map((x) => digits(x, 3))).toEqual(["0", "12345", "12.3", "0.0000123", "1.23e-12"]);
  });
  test("± is the larger distance; both ends where that would mislead", () => {
    expect(plus_minus(10, 7, 14)).toBe("± 4.000 J");
    expect(plus_minus(10, 4, 15)).toBe("± 6.000 J");
    expect(plus_minus(10, 9, 14)).toBe("9.000 J … 14.00 J");
    expect(plus_minus(10, 0, 19)).toBe("± 10.00 J");
    expect(plus_minus(10, 0, 21)).toBe("0 J … 21.00 J");
    expect(plus_minus(10, nan, 11)).toBe("");
  });
});

describe("peak", () => {
  /** 20 steps of 50 ms; a step of 100 W is half of the least window. */
  const run = (n_domains: number) => {
    const r = made();
    const watts = Array.from({ length: n_domains * 20 }, (_, k) => (k % 20 === 4 ? 100 : k % 20 > 15 ? nan : 10));
    r.array.series = Float32Array.from(watts);
    const names = Array.from({ length: n_domains }, (_, i) => `d${i}`);
    Object.assign(r.head, { series: { n: 20, period_ns: 50e6, processes: 0 }, channels: names.map(() => ({ in_total: true })), report: { domains: names.map((name) => ({ name, peak_w: 54 })), total: { domains: names } } });
    return r;
  };
  const between = (from_s: number, to_s: number, whole = false) => ({ ...range_of(made(), 0, 4), from_s, to_s, whole });
  test("is nrg report's for the whole run", () => expect(peak_of(run(1), between(0, 1, true)).watts).toBe(54));
  test("is a mean over 100 ms, in a part no more than in all", () => {
    expect(peak_of(run(1), between(0, 0.5)).watts).toBe(54);
    expect(peak_of(run(1), between(0.3, 0.6)).watts).toBe(10);
    expect(peak_of(run(2), between(0, 1, true)).watts).toBe(108);
    expect(peak_of(run(1), between(0.85, 1)).watts).toBeNaN();
  });
});

describe("why", () => {
  const g = { calls: 1, time_s: 2, energy_j: 10, macs: 4e9, bytes: 1e9 } as Group;
  const machine = { device: "", provenance: "measured", source: "", j_per_mac: 1e-9, j_per_byte: 2e-9 };
  test("an operator's energy is what it did at the machine's prices, and a rest", () => {
    expect(shares(g, machine, 3)).toEqual({ compute_j: 4, traffic_j: 2, rest_j: 4, idle_j: 6 });
  });
  test("no more than all of it, and nothing where it is not known", () => {
    const better = shares({ ...g, energy_j: 3 }, machine, 0);
    expect([better.compute_j, better.traffic_j, better.rest_j]).toEqual([2, 1, 0]);
    for (const s of [shares(g, undefined, 0), shares({ ...g, macs: nan }, machine, 0)]) expect([s.compute_j, s.traffic_j, s.rest_j]).toEqual([nan, nan, 10]);
  });
});

describe("joules per unit", () => {
  const unit = { amount: 10, flags: [] };
  test("the title names what is divided by what", () => {
    expect(per_title({ ...unit, name: "tokens", kind: "counter", of: "decode", of_kind: "phase" })).toBe("per token of decode");
    expect(per_title({ ...unit, name: "tokens", kind: "counter", of: "this program", of_kind: "program" })).toBe("per token of this program");
    expect(per_title({ ...unit, name: "train_step", kind: "step", of: "train_step", of_kind: "step" })).toBe("per step");
  });
});
