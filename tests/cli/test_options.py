"""Options, their errors, and the JSON that other programs rely on."""
import json
import unittest

from support import *

SCENARIO = "domain package-0\n power 50\ndomain dram-0\n power 5\n"


class WrongUsage(Case):
    CASES = [
        ["run"], ["run", "--bogus", "--", "true"], ["run", "-Z", "--", "true"],
        ["run", "--rate"], ["run", "--rate", "0", "--", "true"], ["run", "-r", "1x", "--", "true"],
        ["run", "--rate", "-1Hz", "--", "true"], ["run", "--rate", "1MHz", "--", "true"],
        ["run", "--rate", "nan", "--", "true"], ["run", "--for", "1s", "--", "true"],
        ["run", "--for", "0s", "--system"], ["run", "--for", "-1s", "--system"],
        ["run", "--for", "1parsec", "--system"], ["run", "--repeat", "0", "--", "true"],
        ["run", "--repeat", "1.5", "--", "true"], ["run", "--repeat", "x", "--", "true"],
        ["run", "--repeat", "2", "--system", "--for", "1s"], ["run", "--pid", "abc"],
        ["run", "--pid", "0"], ["run", "--pid", "-5"], ["run", "--pid", "99999999999"],
        ["run", "--pid", "1", "--", "true"], ["run", "--pid", "1", "--system"],
        ["run", "--system", "--", "true"], ["run", "--note", "novalue", "--", "true"],
        ["run", "--note", "=x", "--", "true"], ["run", "--split", "half", "--", "true"],
        ["run", "--carbon-intensity", "-1", "--", "true"],
        ["run", "--carbon-intensity", "x", "--", "true"],
        ["run", "--cpu-watts", "10", "--", "true"], ["run", "--cpu-watts", "9:3", "--", "true"],
        ["run", "--quiet=3", "--", "true"], ["run", "--root", "/nonexistent", "--", "true"],
        ["report"], ["report", "a.nrg", "b.nrg"], ["report", "--split", "x", "a.nrg"],
        ["report", "--bogus", "a.nrg"], ["sensors", "operand"], ["sensors", "--bogus"],
        ["sensors", "--sensor", "nosuch"], ["nosuch"], ["--nosuch"],
    ]

    def test_each_gives_one_line_and_two(self):
        for args in self.CASES:
            with self.subTest(args):
                done = self.nrg(*args)
                self.assertEqual(done.returncode, 2)
                self.one_line(done.stderr)
                self.assertEqual(done.stdout, b"")
        self.assertEqual(os.listdir(self.dir), [], "nothing is left behind")

    def test_help_is_on_stdout_and_fine(self):
        for args in (["help"], ["--help"], ["run", "--help"], ["report", "-h"],
                     ["sensors", "--help"], ["--version"]):
            done = self.nrg(*args)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stderr, b"")
            self.assertTrue(done.stdout)


class Options(Case):
    def simulate(self, *options, command=("sleep", "0.6"), code=0):
        path = self.scenario(SCENARIO)
        return self.run_json("-f", "-o", self.path("o.nrg"), "--sensor", f"simulate:{path}",
                             "--sensor", "machine", *options, "--", *command, code=code)

    def test_keys_that_others_rely_on(self):
        r, _ = self.simulate("--baseline", "0.3s", command=("sh", "-c", "sleep 0.6; exit 3"), code=3)
        self.assertEqual(r["schema"], "nrg.report/1")
        for key in ("duration_s", "domains", "total", "processes", "idle_j", "other_processes_j",
                    "missing", "exit_code"):
            self.assertIn(key, r)
        for d in r["domains"]:
            for key in ("name", "sensor", "provenance", "energy_j", "uncertainty_j", "mean_w",
                        "peak_w"):
                self.assertIn(key, d)
        self.assertEqual(set(r["total"]) & {"energy_j", "provenance", "domains"},
                         {"energy_j", "provenance", "domains"})
        for p in r["processes"]:
            for key in ("pid", "command", "cpu_time_s", "energy_j"):
                self.assertIn(key, p)
            self.assertLessEqual(set(p["energy_j"]), {"cpu", "dram", "gpu"})
        self.assertEqual(r["exit_code"], 3)

        def nulls(value):
            if isinstance(value, dict):
                return any(map(nulls, value.values()))
            return any(map(nulls, value)) if isinstance(value, list) else value is None
        self.assertFalse(nulls(r))

    def test_keys_of_sensors(self):
        path = self.scenario(SCENARIO)
        done = self.nrg("sensors", "--json", "--sensor", f"simulate:{path}")
        r = json.loads(done.stdout)
        self.assertEqual(r["schema"], "nrg.sensors/1")
        self.assertEqual([c["name"] for c in r["channels"]], ["package-0", "dram-0"])
        for c in r["channels"]:
            for key in ("name", "driver", "sensor", "quantity", "kind", "provenance",
                        "update_period_s", "resolution"):
                self.assertIn(key, c)
        for u in json.loads(self.nrg("sensors", "--json").stdout)["unavailable"]:
            self.assertTrue(u["what"] and u["why"])

    def test_repeat(self):
        r, done = self.simulate("--repeat", "4", command=("sh", "-c", "echo x; sleep 0.2"))
        self.assertEqual(done.stdout, b"x\n" * 4)
        self.assertEqual(len(r["runs"]), 4)
        self.assertEqual(r["repeat"]["n"], 4)
        e = [run["energy_j"] for run in r["runs"]]
        self.assertAlmostEqual(r["repeat"]["energy"]["mean_j"], sum(e) / 4, places=6)
        self.assertLess(r["repeat"]["energy"]["low95_j"], r["repeat"]["energy"]["high95_j"])

    def test_repeat_stops_at_a_failure(self):
        counter = self.path("count")
        script = f"echo x >> {counter}; [ $(wc -l < {counter}) -lt 3 ] || exit 9"
        r, _ = self.simulate("--repeat", "8", command=("sh", "-c", script), code=9)
        self.assertEqual(len(r["runs"]), 3)
        self.assertEqual(r["runs"][-1]["exit_code"], 9)

    def test_notes(self):
        r, _ = self.simulate("--note", "model=resnet", "--note", "text=a=b \"c\" ü", "--note",
                             b"bytes=\xff\xfe")
        self.assertEqual(r["metadata"]["note.model"], "resnet")
        self.assertEqual(r["metadata"]["note.text"], "a=b \"c\" ü")
        self.assertIn("note.bytes", r["metadata"])

    def test_quiet_and_loud(self):
        path = self.scenario(SCENARIO)
        args = ("-f", "-o", self.path("q.nrg"), "--sensor", f"simulate:{path}", "--", "true")
        self.assertEqual(self.nrg("run", "-q", *args).stderr, b"")
        loud = self.nrg("run", *args)
        self.assertIn(b"package-0", loud.stderr)
        self.assertEqual(loud.stdout, b"")

    def test_carbon(self):
        r, _ = self.simulate("--carbon-intensity", "360")
        self.assertAlmostEqual(r["carbon_g"], r["total"]["energy_j"] / 1e4, places=9)

    def test_rate_is_respected(self):
        self.simulate("--rate", "100Hz", command=("sleep", "1"))
        rows, took_s = query(self.path("o.nrg"), "SELECT sum(n), (max(last_ns) - min(first_ns)) / 1e9 FROM chunk c "
                             "JOIN series s ON c.series=s.id JOIN sensor d ON d.id = s.sensor "
                             "WHERE d.driver='simulate'")[0]
        ticks = query(self.path("o.nrg"), "SELECT value FROM meta WHERE key='late_ticks'")[0][0]
        self.assertGreaterEqual(took_s, 1)
        self.assertGreater(rows + int(ticks), 95 * took_s)
        self.assertLess(rows, 105 * took_s + 10)

    def test_default_names_do_not_clash(self):
        path = self.scenario(SCENARIO)
        jobs = [self.start("run", "-q", "--sensor", f"simulate:{path}", "--", "true")
                for _ in range(4)]
        for p in jobs:
            self.finish(p)
            self.assertEqual(p.returncode, 0)
        self.assertEqual(len([n for n in os.listdir(self.dir) if n.endswith(".nrg")]), 4)

    def test_options_after_the_command_are_its_own(self):
        done = self.nrg("run", "-q", "-o", self.path("e.nrg"), "echo", "-n", "--rate", "-q")
        self.assertEqual(done.stdout, b"--rate -q")

    def test_a_pipe_that_closes(self):
        path = self.scenario(SCENARIO)
        done = subprocess.run(f"{NRG} run -q --json -o p.nrg --sensor simulate:{path} -- sh -c "
                              f"'sleep 0.2; exit 4' | true; echo ${{PIPESTATUS[0]}}",
                              shell=True, executable="/bin/bash", cwd=self.dir,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env())
        self.assertEqual(done.stdout, b"4\n")


if __name__ == "__main__":
    unittest.main()
