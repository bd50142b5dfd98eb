"""nrg attribute --power-log LOG --layers FILE: the Jetson notes' pipeline as one command.

The truth is a second implementation of compute_layer_metrics_by_cycle, written from its description, and the values that are
published with the data (NRG_SHARED, default ../shared beside the repository; skipped without it).
"""
import csv
import datetime
import io
import json
import os
import random
import unittest

from support import TOP, Case

SHARED = os.environ.get("NRG_SHARED", os.path.join(os.path.dirname(TOP), "shared"))
JETSON = os.path.join(SHARED, "data", "jetson")
LENET = os.path.join(JETSON, "jetson", "power_logging", "raw_data_pruned", "prebuilt_models")
SIMPLE = os.path.join(JETSON, "model_training", "tests", "test_data", "example_raw_data")
MOBILENET = os.path.join(JETSON, "jetson", "power_logging", "results_for_testing")
needs_data = unittest.skipUnless(os.path.isdir(JETSON), "no shared data (NRG_SHARED)")

START = datetime.datetime(2025, 1, 28, 13, 38, 26)
COLUMNS = ["cycle", "layer_name", "layer_type", "layer_power_including_idle_power_micro_watt",
           "layer_power_excluding_idle_power_micro_watt", "layer_run_time"]
# data/jetson/README.md: all other 342 executions have no reading.
LENET_UW = {(2, "_feat_conv1"): 8653824, (30, "_feat_conv2"): 8333312, (40, "_classifer_fc1"): 8213120,
            (50, "_feat_conv2"): 8132992, (54, "_classifer_fc2"): 8092928, (60, "_feat_conv2"): 8052864,
            (61, "_feat_conv2"): 8052864, (70, "_feat_conv1"): 8012800}


def stamp(t):
    return f"{t:%Y%m%d-%H:%M:%S.%f}"


def parse(text):
    return datetime.datetime.strptime(text, "%Y%m%d-%H:%M:%S.%f")


def us(n):
    return datetime.timedelta(microseconds=n)


def by_cycle(layers, log, idle_uw):
    """The earlier tool's rule. layers: {name: [[ms, stamp]...]}; log: [(time, mV, mA)...]."""
    readings, rows = iter(log), []
    reading = next(readings, None)
    cycles = max(map(len, layers.values()))
    for cycle in range(cycles):
        for name, runs in layers.items():
            ms, end = runs[cycle][0], parse(runs[cycle][1])
            start = end - datetime.timedelta(milliseconds=ms)
            taken = []
            while reading and reading[0] < start:
                reading = next(readings, None)
            while reading and reading[0] <= end:
                taken.append(reading[1] * reading[2])
                reading = next(readings, None)
            power = sum(taken) / len(taken) if taken else None
            rows.append((cycle + 1, name, power, power - idle_uw if power else None, ms))
            if not reading:
                return rows
    return rows


class Pipeline(Case):
    def attribute(self, log, layers, *args, code=0):
        done = self.nrg("attribute", "--power-log", log, "--layers", layers, *args)
        self.assertEqual(done.returncode, code, done.stderr.decode(errors="replace"))
        return done

    def results(self, log, layers, *args):
        return json.loads(self.attribute(log, layers, "--json", *args).stdout)

    def table(self, log, layers, *args):
        text = self.attribute(log, layers, "--csv", *args).stdout.decode()
        return list(csv.DictReader(io.StringIO(text, newline="")))

    def log_file(self, readings, name="power.log"):
        return self.write(name, "".join(f"{stamp(t)},{mv},{ma}\n" for t, mv, ma in readings))

    def layer_file(self, layers, name="trt_layer_latency.json"):
        return self.write(name, json.dumps(layers))

    def check_rule(self, readings, layers, idle_uw=5000000.0):
        """JSON and CSV of `--method window` against the second implementation."""
        log, file = self.log_file(readings), self.layer_file(layers)
        expected = by_cycle(layers, readings, idle_uw)
        options = ("--method", "window", "--idle-power", str(idle_uw / 1e6))
        table = self.table(log, file, *options)
        self.assertEqual([(int(r["cycle"]), r["layer_name"]) for r in table], [e[:2] for e in expected])
        for row, (_, _, power, above, ms) in zip(table, expected):
            self.assertEqual(row["layer_type"], "Unknown")
            self.assertAlmostEqual(float(row["layer_run_time"]), ms, delta=1e-6)
            for key, value in ((COLUMNS[3], power), (COLUMNS[4], above)):
                if value is None:
                    self.assertEqual(row[key], "")
                else:
                    self.assertAlmostEqual(float(row[key]), value, delta=1e-5 * abs(power))
        result = self.results(log, file, *options)
        rows = {(r["cycle"], r["name"]): r for r in result["rows"] if "cycle" in r}
        self.assertEqual(sorted(rows), sorted(e[:2] for e in expected))
        for cycle, name, power, above, ms in expected:
            self.assertEqual("power_w" in rows[cycle, name], power is not None)
            self.assertEqual("power_above_idle_w" in rows[cycle, name], above is not None)
            if power is not None:
                self.assertAlmostEqual(rows[cycle, name]["power_w"], power / 1e6, delta=1e-9)
            if above is not None:
                self.assertAlmostEqual(rows[cycle, name]["power_above_idle_w"], above / 1e6, delta=1e-9)
        every = sum(map(len, layers.values()))
        self.assertEqual(result["layers"]["executions"], every)
        self.assertEqual(result["layers"]["left_out"], every - len(expected))
        self.assertEqual(result["layers"]["with_power"], sum(e[2] is not None for e in expected))
        return result


class Rule(Pipeline):
    def test_ties_and_forward_only(self):
        readings = [(START + us(n), 5000.0, 1000.0 + n) for n in (0, 100, 200, 300, 400, 500, 600, 700, 10**6)]
        layers = {  # A takes the reading at its end, which is B's start; C overlaps and comes too late
            "A": [[0.1, stamp(START + us(200))]],
            "B": [[0.1, stamp(START + us(300))]],
            "C": [[0.25, stamp(START + us(350))]],
            "D": [[0.0, stamp(START + us(500))]],
            "E": [[0.1, stamp(START + us(100))]],
        }
        result = self.check_rule(readings, layers)
        powers = {r["name"]: r.get("power_w") for r in result["rows"] if "cycle" in r}
        self.assertAlmostEqual(powers["A"], 5e-6 * (1100 + 1200) / 2 * 1000, delta=1e-9)
        self.assertAlmostEqual(powers["B"], 5 * 1.3, delta=1e-9)
        self.assertIsNone(powers["C"])
        self.assertAlmostEqual(powers["D"], 5 * 1.5, delta=1e-9)
        self.assertIsNone(powers["E"])

    def test_the_log_ends(self):
        readings = [(START + us(n), 5000.0, 1100.0) for n in (0, 100, 200)]
        layers = {"a": [[0.1, stamp(START + us(150 + 1000 * k))] for k in range(3)],
                  "b": [[0.1, stamp(START + us(300 + 1000 * k))] for k in range(3)]}
        result = self.check_rule(readings, layers)
        self.assertEqual(result["layers"]["left_out"], 4)
        self.assertTrue([n for n in result["notes"] if "left out" in n["why"]])

    def test_the_log_ends_before(self):
        readings = [(START - us(n), 5000.0, 1100.0) for n in (300, 200, 100)]
        layers = {"a": [[0.05, stamp(START + us(100))]], "b": [[0.05, stamp(START + us(200))]]}
        self.check_rule(readings, layers)

    def test_the_log_begins_after(self):
        readings = [(START + us(10**6 + n), 5000.0, 1100.0) for n in (0, 100, 200)]
        layers = {"a": [[0.05, stamp(START + us(100))]], "b": [[0.05, stamp(START + us(200))]]}
        result = self.check_rule(readings, layers)
        for row in result["rows"]:
            self.assertNotIn("power_w", row)
            self.assertNotIn("energy_lag_corrected_j", row)

    def test_a_meter_that_shows_nothing(self):
        readings = [(START + us(n), 5000.0, 0.0) for n in (0, 100, 10**6)]
        self.check_rule(readings, {"a": [[0.2, stamp(START + us(150))]]})

    def test_random_logs(self):
        rng = random.Random(42)
        for turn in range(15):
            at, readings = 0, []
            for _ in range(rng.randrange(1, 120)):
                readings.append((START + us(at), 5000.0 + 8 * rng.randrange(6), 8.0 * rng.randrange(100, 250)))
                at += rng.randrange(1, 400)
            names = [f"layer{k}" for k in range(rng.randrange(1, 6))]
            layers, t = {name: [] for name in names}, rng.randrange(-2000, 2000)
            for _ in range(rng.randrange(1, 30)):
                t += 1500  # a layer does not run twice at once
                for name in names:
                    t += rng.randrange(0, 500) - (200 if turn % 3 == 0 else 0)  # windows that overlap
                    layers[name].append([rng.randrange(0, 400) / 1000 + rng.randrange(1000) / 1e6, stamp(START + us(t))])
            with self.subTest(turn=turn):
                self.check_rule(readings, layers)


class Energy(Pipeline):
    def falling(self):
        """10 W falling to 6 W within a second, two layers of 100 ms in each of three cycles."""
        readings = [(START + us(1000 * k), 5000.0, 2000.0 - 0.8 * k) for k in range(1001)]
        cycles = [{name: {"elapsed_time": 100.0, "start_time": 1738071506.0 + 0.3 * c + at}
                   for name, at in (("conv", 0.05), ("fc", 0.16))} for c in range(3)]
        return self.log_file(readings), self.write("net_layerwise_latency.json", json.dumps(cycles))

    def truth_j(self, begin, end, lag=0.0):
        watts = [10 - 4 * t for t in (begin, end)]
        return (end - begin) * sum(watts) / 2 + lag * (watts[1] - watts[0])

    def test_with_and_without_lag(self):
        log, layers = self.falling()
        windows = [(0.3 * c + at, 0.3 * c + at + 0.1) for c in range(3) for at in (0.05, 0.16)]
        for lag in (0.0, 0.3):
            result = self.results(log, layers, "--method", "window", "--lag", str(lag) if lag else "none")
            found = result["layers"]
            self.assertAlmostEqual(found["energy_j"], sum(self.truth_j(*w) for w in windows), delta=1e-5)
            self.assertAlmostEqual(found["lag_corrected_j"], sum(self.truth_j(*w, lag) for w in windows), delta=1e-4)
            self.assertAlmostEqual(found["between_s"], windows[-1][1] - windows[0][0], delta=1e-6)
            self.assertAlmostEqual(found["time_s"], 0.6, delta=1e-6)
            self.assertAlmostEqual(found["between_j"], self.truth_j(windows[0][0], windows[-1][1]), delta=1e-5)
            self.assertAlmostEqual(found["between_lag_corrected_j"],
                                   self.truth_j(windows[0][0], windows[-1][1], lag), delta=1e-4)
            self.assertAlmostEqual(found["not_layers_lag_corrected_j"],
                                   found["between_lag_corrected_j"] - found["lag_corrected_j"], delta=1e-9)
            rows = [r for r in result["rows"] if "cycle" in r]
            for row, window in zip(rows, windows):
                self.assertAlmostEqual(row["energy_lag_corrected_j"], self.truth_j(*window, lag), delta=1e-4)
                mean = sum(10 - 0.004 * k for k in range(round(window[0] * 1000), round(window[1] * 1000) + 1)) / 101
                self.assertAlmostEqual(row["power_w"], mean, delta=1e-6)

    def test_methods_say_what_they_are(self):
        log, layers = self.falling()
        for method in ("window", "nearest", "integrate"):
            result = self.results(log, layers, "--method", method, "--lag", "none")
            row = [r for r in result["rows"] if "cycle" in r][0]
            self.assertEqual(row["method"], method)
            begin, end = 0.05, 0.15
            truth = {"window": (10 - 4 * begin + 10 - 4 * end) / 2, "nearest": 10 - 4 * end,
                     "integrate": self.truth_j(begin, end) / (end - begin)}[method]
            self.assertAlmostEqual(row["power_w"], truth, delta=1e-4)
            self.assertNotIn("power_above_idle_w", row)

    def test_table(self):
        log, layers = self.falling()
        text = self.attribute(log, layers, "--method", "window", "--lag", "0.3").stdout.decode()
        for word in ("conv", "NOT LAYERS", "lag of 0.3 s corrected", "unattributed"):
            self.assertIn(word, text)

    def test_the_same_from_two_steps(self):
        log, layers = self.falling()
        path = self.path("joined.nrg")
        done = self.nrg("import", "-q", "--power-log", log, "-o", path, layers)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = self.nrg("attribute", "--json", "--by", "cycle", "--method", "window", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        two, one = json.loads(done.stdout), self.results(log, layers, "--method", "window")
        self.assertEqual(two["rows"], one["rows"])
        self.assertEqual(two["layers"], one["layers"])

    def test_power_from_csv_and_recording(self):
        log, layers = self.falling()
        one = self.results(log, layers, "--method", "window")
        recording = self.path("power.nrg")
        self.assertEqual(self.nrg("import", "-q", "-o", recording, log).returncode, 0)
        self.assertEqual(self.results(recording, layers, "--method", "window")["rows"], one["rows"])
        lines = ["time,VDD_IN:power_w"]
        lines += [f"{START + us(1000 * k):%Y-%m-%dT%H:%M:%S.%fZ},{10 - 0.004 * k:.6f}" for k in range(1001)]
        table = self.write("power.csv", "\n".join(lines) + "\n")
        for ours, theirs in zip(self.results(table, layers, "--method", "window")["rows"], one["rows"]):
            self.assertAlmostEqual(ours.get("power_w", 0), theirs.get("power_w", 0), delta=1e-6)

    def test_time_zone_and_offset(self):
        log, layers = self.falling()
        one = self.results(log, layers, "--method", "window")
        local = self.log_file([(START + us(1000 * k) + datetime.timedelta(hours=2), 5000.0, 2000.0 - 0.8 * k)
                               for k in range(1001)], "local.log")
        self.assertEqual(self.results(local, layers, "--method", "window", "--timezone-offset", "+02:00")["rows"],
                         one["rows"])
        with open(layers) as f:
            cycles = json.load(f)
        for cycle in cycles:
            for run in cycle.values():
                run["start_time"] -= 100
        moved = self.write("moved_layerwise_latency.json", json.dumps(cycles))
        rows = self.results(log, moved, "--method", "window", "--offset", "100")["rows"]
        for ours, theirs in zip(rows, one["rows"]):
            self.assertAlmostEqual(ours.get("power_w", 0), theirs.get("power_w", 0), delta=1e-9)


class Bad(Pipeline):
    def good(self):
        readings = [(START + us(1000 * k), 5000.0, 1000.0) for k in range(100)]
        return self.log_file(readings), self.layer_file({"a": [[1.0, stamp(START + us(5000))]]})

    def test_files(self):
        log, layers = self.good()
        for args in ((log, "/nonexistent.json"), ("/nonexistent.log", layers), (layers, layers),
                     (log, self.write("x.json", "{")), (log, self.write("y.json", '{"a": 5}')),
                     (self.write("empty.log", ""), layers)):
            with self.subTest(args=args):
                self.one_line(self.attribute(*args, code=1).stderr)

    def test_names(self):
        names = ['quo"te', "com,ma", "semi;colon", "<b>", "x" * 10240, "new\nline", ""]
        log, _ = self.good()
        layers = self.layer_file({n: [[1.0, stamp(START + us(5000 + 2000 * i))]] for i, n in enumerate(names)})
        rows = [r for r in self.results(log, layers, "--method", "window")["rows"] if "cycle" in r]
        table = self.table(log, layers, "--method", "window")
        self.assertEqual([r["layer_name"] for r in table], [r["name"] for r in rows])
        self.assertEqual(len(rows), len(names))
        self.assertEqual([r["name"] for r in rows][:5], names[:5])
        self.attribute(log, layers)

    def test_a_layer_as_long_as_its_cycle(self):
        log, layers = self.good()
        rows = self.results(log, layers, "--method", "window")["rows"]
        self.assertEqual([(r["kind"], r.get("parent")) for r in rows], [("cycle", None), ("layer", 0)])

    def test_one_reading(self):
        log = self.log_file([(START, 5000.0, 1000.0)])
        layers = self.layer_file({"a": [[1.0, stamp(START + us(500))]]})
        rows = [r for r in self.results(log, layers, "--method", "window")["rows"] if "cycle" in r]
        self.assertAlmostEqual(rows[0]["power_w"], 5.0)


@needs_data
class Published(Pipeline):
    LOG = os.path.join(LENET, "lenet", "lenet_power_log.rows600-1009.log")
    LAYERS = os.path.join(LENET, "lenet", "lenet_layerwise_latency.first70cycles.json")

    def test_lenet_powers(self):
        result = self.results(self.LOG, self.LAYERS, "--idle-power", os.path.join(LENET, "idling_power.json"),
                              "--method", "window", "--graph", os.path.join(LENET, "lenet", "model_summary.json"))
        rows = [r for r in result["rows"] if "cycle" in r]
        self.assertEqual(len(rows), 350)
        found = {(r["cycle"], r["name"]): r["power_w"] for r in result["rows"] if "power_w" in r}
        self.assertEqual(set(found), set(LENET_UW))
        for key, power_uw in LENET_UW.items():
            self.assertAlmostEqual(found[key], power_uw / 1e6, delta=1e-9)
        above = {(r["cycle"], r["name"]): r["power_above_idle_w"] for r in rows if "power_above_idle_w" in r}
        self.assertAlmostEqual(above[2, "_feat_conv1"], 8.653824 - 4.182323798965708, delta=1e-9)
        self.assertEqual({r["detail"] for r in rows}, {"Conv2d", "Linear"})

    def test_lenet_energy(self):
        # 0.186382 J is what double arithmetic on Unix seconds gives; exact run times give 0.01 % more.
        result = self.results(self.LOG, self.LAYERS, "--lag", "none", "--idle", "none", "--method", "integrate")
        layers = sum(r["energy_j"] for r in result["rows"] if r["kind"] == "layer")
        self.assertAlmostEqual(layers, 0.186382, delta=3e-5)
        self.assertAlmostEqual(result["layers"]["energy_j"], layers, delta=1e-9)
        self.assertAlmostEqual(result["layers"]["between_j"], 2.5287, delta=1e-4)
        self.assertAlmostEqual(result["layers"]["between_s"], 0.305385, delta=1e-6)
        result = self.results(self.LOG, self.LAYERS, "--lag", "0.42", "--idle", "none", "--method", "integrate")
        layers = sum(r["energy_j"] for r in result["rows"] if r["kind"] == "layer")
        self.assertAlmostEqual(layers, 0.165, delta=5e-4)
        self.assertAlmostEqual(result["layers"]["between_lag_corrected_j"], 2.243, delta=1e-3)

    def test_lenet_lag_is_found(self):
        layers = self.results(self.LOG, self.LAYERS, "--method", "window")["layers"]
        self.assertEqual(layers["lag_source"], "fitted")
        self.assertAlmostEqual(layers["lag_s"], 0.42, delta=0.03)
        self.assertAlmostEqual(layers["lag_corrected_j"], 0.165, delta=1e-3)

    def test_synthetic_examples(self):
        for name in ("simple", "multiple_readings", "multiple_layers"):
            folder = os.path.join(SIMPLE, name)
            with open(os.path.join(folder, "expected_metrics_by_cycle.json")) as f:
                expected = json.load(f)
            profiling = os.path.join(folder, "trt_profiling")
            table = self.table(os.path.join(folder, name + "_power_log.log"),
                               os.path.join(profiling, "trt_layer_latency.json"), "--method", "window", "--idle-power",
                               os.path.join(SIMPLE, "idling_power.json"), "--graph",
                               os.path.join(profiling, "trt_engine_info.json"))
            with self.subTest(name=name):
                self.assertEqual(len(table), len(expected))
                for row, want in zip(table, expected):
                    self.assertEqual(list(row), COLUMNS)
                    self.assertEqual(row["layer_type"], want["layer_type"])
                    self.assertEqual(row["layer_name"], want["layer_name"])
                    for key in ["cycle"] + COLUMNS[3:]:
                        self.assertAlmostEqual(float(row[key]), want[key], delta=1e-3)

    def test_tensorrt_windows_that_overlap(self):
        with open(os.path.join(MOBILENET, "trt_layer_latency.json")) as f:
            layers = json.load(f)
        first = min(parse(run[1]) for runs in layers.values() for run in runs)
        rng = random.Random(7)
        at, readings = first - us(20000), []
        while at < first + us(60000):
            readings.append((at, 5000.0, 8.0 * rng.randrange(120, 220)))
            at += us(rng.randrange(100, 400))
        result = self.check_rule(readings, layers)
        self.assertGreater(result["layers"]["with_power"], 10)


if __name__ == "__main__":
    unittest.main()
