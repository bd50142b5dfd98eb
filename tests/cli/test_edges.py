"""The edges of runs: readings and edges are taken together, and what is left between them is in the interval.

tests/unit/test_edges.c has steps of power at the very edges, in closed form; here the recorder takes the readings.
"""
import re
import sqlite3
import unittest

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
        machine = self.scenario("domain package-0\n power 50\n")
        out = self.path("r.nrg")
        self.run_json("--repeat", "2", "--rate", "5Hz", "-o", out, "--sensor", f"simulate:{machine}", "--", "sleep", "0.1")
        times, unit_ns = self.readings(out)
        energy, load, processes = times["package-0"], times["cpu.busy"], times["processes"]
        for begin_ns, end_ns in query(out, "SELECT begin_ns, end_ns FROM run WHERE kind = 'run'"):
            at = min(energy, key=lambda t: abs(t - begin_ns))
            self.assertLessEqual(abs(at - begin_ns), unit_ns)  # the run begins with it
            before = [t for t in load if t <= begin_ns + unit_ns]
            self.assertTrue(before)
            self.assertLess(at - before[-1], 100_000_000)  # of this edge, not of the sampling thread
            after = min(t for t in energy if t >= end_ns - unit_ns)
            self.assertLessEqual(after, min(t for t in load if t > end_ns) + unit_ns)
            self.assertLessEqual(after, min(t for t in processes if t > end_ns) + unit_ns)
            self.assertTrue([t for t in energy if at < t < end_ns])  # once more soon after the begin

    def test_slow_readings_of_a_load_that_changes(self):
        """Reading takes 10 ms; power is 5 or 110 W. The truth is that of the recording's own edges."""
        machine = self.scenario("domain package-0\n burst period=230ms duty=0.5 low=5 high=110\n")
        root = self.path("root")
        zero_ns = self.emulate(machine, root)
        env = self.env(LD_PRELOAD=preload(SLOW_READS), NRG_TEST_SLOW="energy_uj", NRG_TEST_SLOW_MS="10")
        runs = [(self.start("run", "-q", "--root", root, "--rate", f"{rate}Hz", "-o", self.path(f"{rate}.nrg"),
                            f"--json={self.path(f'{rate}.json')}", "--", "sleep", str(0.2 + rate / 10), env=env), rate)
                for rate in RATES]
        for process, rate in runs:
            _, err = self.finish(process)
            self.assertEqual(process.returncode, 0, err)
            with open(self.path(f"{rate}.json")) as f:
                domain = domains(json.load(f))["package-0"]
            truth_j = self.truth(machine, zero_ns, run_edges(self.path(f"{rate}.nrg")))["package-0"]
            said = f"{rate} Hz: {truth_j} in {domain['energy_j']} [{domain['low_j']}..{domain['high_j']}]"
            print("#", said)
            self.assertTrue(domain["low_j"] <= truth_j <= domain["high_j"], said)


if __name__ == "__main__":
    unittest.main()
