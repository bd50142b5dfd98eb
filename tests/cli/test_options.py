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

    def test_a_wrong_word_is_answered_with_the_right_ones(self):
        for args, wants in ((["attribute", "--by", "x", "a"],
                             "--by wants path, module, name, operator, step, epoch or cycle, not 'x'"),
                            (["export", "--format", "x", "a"],
                             "--format wants csv, json, aipowermeter, firefox or speedscope, not 'x'"),
                            (["run", "--torch=x", "true"],
                             "--torch wants modules or operators, not 'x'"),
                            (["evaluate", "--confidence", "1", "a"],
                             "--confidence wants a number above 0 and below 1, not '1'"),
                            (["calibrate", "--threads", "257"],
                             "--threads wants 1 to 256, not '257'"),
                            (["predict", "--dim", "batch=0", "m"],
                             "--dim wants NAME=N, not 'batch=0'"),
                            (["predict", "--what-if", "batch=1,,2", "m"],
                             "--what-if wants sizes such as batch=8,16,32, not 'batch=1,,2'"),
                            (["import", "--timezone-offset", "25:00", "f"],
                             "--timezone-offset wants hours and minutes such as +02:00, not '25:00'")):
            with self.subTest(args):
                done = self.nrg(*args)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(self.one_line(done.stderr), f"nrg {args[0]}: {wants}")

    def test_words_are_in_help_and_completion(self):
        text = self.nrg("attribute", "--help").stdout.decode()
        self.assertIn("auto (default), integrate, nearest, window, regress or cpu-time ", " ".join(text.split()))
        script = self.nrg("help", "--completion").stdout.decode() + """
            COMP_WORDS=(nrg attribute %s '') COMP_CWORD=3
            _nrg
            echo "${COMPREPLY[@]}"
        """
        for option in ("--method", "-m"):
            done = subprocess.run(["bash", "-c", script % option], stdout=subprocess.PIPE, text=True,
                                  check=True)
            self.assertEqual(done.stdout, "auto integrate nearest window regress cpu-time\n")

    def test_help_is_on_stdout_and_fine(self):
        for args in (["help"], ["--help"], ["run", "--help"], ["report", "-h"],
                     ["sensors", "--help"], ["--version"]):
            done = self.nrg(*args)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(done.stderr, b"")
            self.assertTrue(done.stdout)


def ended(path):
    """True when the command of a recording that is being made has ended."""
    try:
        return query(path, "SELECT count(*) FROM run WHERE kind='run' AND end_ns IS NOT NULL")[0][0] > 0
    except sqlite3.OperationalError:
        return False


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

    def runs(self):
        return query(self.path("o.nrg"), "SELECT kind, begin_ns, end_ns, exit_code FROM run ORDER BY id")

    def test_baseline_after_a_command_that_fails(self):
        self.simulate("--baseline", "0.2s", command=("sh", "-c", "exit 7"), code=7)
        self.assertEqual([kind for kind, *_ in self.runs()], ["baseline", "run", "baseline"])
        done = self.nrg("run", "-q", "-o", self.path("n.nrg"), "--baseline", "0.1s", "--", "/none/such")
        self.assertEqual(done.returncode, 127)

    def test_second_baseline_is_skipped_by_a_signal(self):
        scenario = self.scenario(SCENARIO)
        result = self.path("r.json")
        process = self.start("run", f"--json={result}", "-o", self.path("p.nrg"), "--sensor", f"simulate:{scenario}",
                             "--baseline", "3s", "--", "sh", "-c", "exit 5")
        eventually(lambda: ended(self.path("p.nrg")), "the end of the command")
        process.send_signal(signal.SIGINT)
        self.finish(process)
        self.assertEqual(process.returncode, 5)
        with open(result) as f:
            self.assertEqual(json.load(f)["exit_code"], 5)
        self.assertEqual([k for k, in query(self.path("p.nrg"), "SELECT kind FROM run ORDER BY id")], ["baseline", "run"])

    def said(self, *options, sensor=SCENARIO):
        """Lines on stderr before the table."""
        path = self.scenario(sensor)
        done = self.nrg("run", "-f", "-o", self.path("o.nrg"), "--sensor", f"simulate:{path}", *options, "--", "true")
        self.assertEqual(done.returncode, 0)
        return done.stderr.decode().split("\n\n")[0]

    def test_what_the_run_can_not_tell_is_said_first(self):
        self.assertIn("--baseline 5s", self.said())
        self.assertNotIn("--baseline 5s", self.said("--baseline", "0.1s"))
        self.assertIn("--rate 100Hz", self.said("--torch", "--rate", "10Hz"))
        self.assertNotIn("--rate 100Hz", self.said("--torch"))
        self.assertNotIn("--rate 100Hz", self.said("--rate", "10Hz"))
        self.assertEqual(self.said("-q"), "")
        done = self.nrg("run", "-o", self.path("m.nrg"), "--sensor", "machine", "--", "true")
        self.assertIn("nrg sensors", done.stderr.decode().split("\n\n")[0])
        done = self.nrg("run", "-o", self.path("e.nrg"), "--sensor", "estimate", "--", "true")
        self.assertIn("estimated", done.stderr.decode().split("\n\n")[0])

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

    def test_price(self):
        r, _ = self.simulate("--price", "0.36")
        self.assertAlmostEqual(r["cost"], r["total"]["energy_j"] / 1e7, places=12)

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
