"""The edges of runs: readings and edges are taken together, and what is left between them is in the interval.

tests/unit/test_edges.c has steps of power at the very edges, in closed form; here the recorder takes the readings.
"""
import re
import sqlite3
import unittest

from retries import steadily
from support import *

RATES = (1, 2, 3.5, 7, 12)


class Edges(Case):
    def readings(self, path):
        """{channel: times of its readings}, {kind of series: times of its rows}; by the reader of the document."""
        with open(os.path.join(TOP, "docs", "recording-format.md"), encoding="utf-8") as f:
            source = re.search(r"^```python\n(.*?)^```", f.read(), re.M | re.S)[1]
        reader = {"__name__": "reader"}
        exec(source, reader)
        db = sqlite3.connect(path)
        times = {}
        for name, series, col in db.execute("SELECT name, series, col FROM channel WHERE series > 0"):
            times[name] = [t for t, value in reader["samples"](db, series, col) if value is not None]
        for kind, series in db.execute("SELECT kind, id FROM series WHERE kind = 'processes'"):
            times[kind] = [t for t, _ in reader["samples"](db, series, 0)]
        unit_ns = db.execute("SELECT max(time_unit_ns) FROM chunk").fetchone()[0]
        db.close()
        return times, unit_ns

    def test_a_run_begins_with_a_reading_and_ends_before_one(self):
        """The sampling thread may come in between, on a busy machine: then once more."""
        machine = self.scenario("domain package-0\n power 50\n")

        def record(n):
            out = self.path(f"r{n}.nrg")
            self.run_json("--repeat", "2", "--rate", "5Hz", "-o", out, "--sensor", f"simulate:{machine}", "--", "sleep", "0.1")
            return out
        steadily(self.check_order, record, 3)

    def check_order(self, out):
        times, unit_ns = self.readings(out)
        energy, load, processes = times["package-0"], times["cpu.busy"], times["processes"]
        for begin_ns, end_ns in query(out, "SELECT begin_ns, end_ns FROM run WHERE kind = 'run'"):
            at = min(energy, key=lambda t: abs(t - begin_ns))
            self.assertLessEqual(abs(at - begin_ns), unit_ns)  # the run begins with it
            self.assertTrue([t for t in load if t <= begin_ns + unit_ns])
            after = min(t for t in energy if t >= end_ns - unit_ns)
            self.assertLessEqual(after, min(t for t in load if t > end_ns) + unit_ns)
            self.assertLessEqual(after, min(t for t in processes if t > end_ns) + unit_ns)
            self.assertTrue([t for t in energy if at < t < end_ns])  # once more soon after the begin

    def test_slow_readings_of_a_load_that_changes(self):
        """Reading takes 10 ms; power is 5 or 110 W. The truth is that of the recording's own edges; the emulator's
        files are late where the machine is busy."""
        self.machine = self.scenario("domain package-0\n burst period=230ms duty=0.5 low=5 high=110\n")
        self.zero_ns = self.emulate(self.machine, self.path("root"))
        steadily(self.check_truth, self.record_slowly, 3)

    def record_slowly(self, n):
        env = self.env(LD_PRELOAD=preload(SLOW_READS), NRG_TEST_SLOW="energy_uj", NRG_TEST_SLOW_MS="10")
        names = {rate: self.path(f"{rate}-{n}") for rate in RATES}
        runs = [self.start("run", "-q", "--root", self.path("root"), "--rate", f"{rate}Hz", "-o", name + ".nrg",
                           f"--json={name}.json", "--", "sleep", str(0.2 + rate / 10), env=env) for rate, name in names.items()]
        for process in runs:
            _, err = self.finish(process)
            self.assertEqual(process.returncode, 0, err)
        return names

    def check_truth(self, names):
        for rate, name in names.items():
            with open(name + ".json") as f:
                domain = domains(json.load(f))["package-0"]
            truth_j = self.truth(self.machine, self.zero_ns, run_edges(name + ".nrg"))["package-0"]
            said = f"{rate} Hz: {truth_j} in {domain['energy_j']} [{domain['low_j']}..{domain['high_j']}]"
            print("#", said)
            self.assertTrue(domain["low_j"] <= truth_j <= domain["high_j"], said)


if __name__ == "__main__":
    unittest.main()
