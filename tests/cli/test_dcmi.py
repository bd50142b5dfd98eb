"""The machine's power by its management controller: a stand-in behind /dev/ipmi0 (tests/preload/fake_bmc.c) that answers, changes
its mind, refuses, lies and falls silent. No real one has confirmed this."""
import errno
import unittest

from nrgd_client import *


class Bmc(DaemonCase):
    def setUp(self):
        super().setUp()
        self.root = self.path("root")
        self.fifo = os.path.join(self.root, "dev/ipmi0")
        os.makedirs(os.path.dirname(self.fifo))
        os.makedirs(os.path.join(self.root, "sys/class"))
        os.mkfifo(self.fifo, 0o600)

    def env(self, **more):
        return super().env(LD_PRELOAD=preload(FAKE_BMC), NRG_TEST_BMC=self.fifo, NRG_TEST_BMC_SAYS=self.path("says"), **more)

    def says(self, words):
        """The file is replaced whole: half of it is never read."""
        os.rename(self.write("says.new", f"{words}\n"), self.path("says"))

    def sensors(self, *args, **env):
        done = self.nrg("sensors", "--json", *args, env=self.env(**env))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def measure(self, script):
        """Results, and the readings of `machine` as (time of day in s, W)."""
        out = self.path("run.nrg")
        r, _ = self.run_json("-f", "-o", out, "--root", self.root, "--sensor", "dcmi", "--", "sh", "-c", script, env=self.env(NRG_DAEMON=""))
        done = self.nrg("export", "--format", "csv", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split(",") for line in done.stdout.decode().splitlines()]
        return r, [(float(row[1]), float(row[5])) for row in rows if row[2] == "machine"]

    def later(self, words):
        """For a script: the controller changes its mind."""
        return f"echo {words} > {self.path('x')} && mv {self.path('x')} {self.path('says')}"


class Direct(Bmc):
    def test_what_it_is(self):
        self.says(263)
        found = self.sensors("--root", self.root, NRG_DAEMON="")
        machine = [c for c in found["channels"] if c["driver"] == "dcmi"]
        self.assertEqual([c["name"] for c in machine], ["machine"])
        self.assertEqual((machine[0]["unit"], machine[0]["resolution"], machine[0]["update_period_s"]), ("W", 1, 1))
        self.assertEqual(machine[0]["provenance"], "measured")
        # It covers the processors, so nothing is estimated beside it.
        self.assertEqual([c["name"] for c in found["channels"] if c["driver"] == "estimate"], [])

    def test_constant_power(self):
        self.says(263)
        r, readings = self.measure("sleep 1.5")
        machine = domains(r)["machine"]
        self.assertEqual((machine["driver"], machine["provenance"]), ("dcmi", "measured"))
        self.assertEqual({w for _, w in readings}, {263})
        self.assertAlmostEqual(machine["energy_j"] / (263 * r["duration_s"]), 1, delta=0.02)

    def test_a_step(self):
        self.says(100)
        r, readings = self.measure(f"sleep 1.3; date +%s.%N > {self.path('before')}; {self.later(300)}; date +%s.%N > {self.path('after')}; sleep 2")
        before, after = (float(open(self.path(name)).read()) for name in ("before", "after"))
        self.assertEqual({w for t, w in readings if t < before}, {100})
        self.assertEqual({w for t, w in readings if t > after + 0.5}, {300})  # asked ten times a second at most
        self.assertTrue(100 < domains(r)["machine"]["energy_j"] / r["duration_s"] < 300)

    def test_a_controller_that_refuses_or_lies_is_a_line(self):
        for words, why in (("code c1", "no DCMI power reading"), ("code c0", "busy"), ("code d4", "Permission denied"), ("code ff", "error"),
                           ("short", "no power reading"), ("long", "no power reading"), ("another", "no power reading"),
                           ("inactive", "does not measure"), ("0", "0 W"), ("65535", "does not measure"), ("silent", "does not answer")):
            self.says(words)
            found = self.sensors("--root", self.root, NRG_DAEMON="")
            self.assertEqual([c["name"] for c in found["channels"] if c["driver"] == "dcmi"], [], words)
            said = [u["why"] for u in found["unavailable"] if u["what"] == "power by the BMC (DCMI)"]
            self.assertEqual(len(said), 1, words)
            self.assertIn(why, said[0])

    def test_what_stops_is_missing_and_not_zero(self):
        """The program runs on, also when the controller never answers again."""
        for words in ("silent", "inactive", "code c0"):
            self.says(200)
            r, readings = self.measure(f"sleep 1.2; {self.later(words)}; sleep 1.8; echo lived > {self.path('lived')}")
            os.remove(self.path("lived"))
            self.assertEqual({w for _, w in readings}, {200}, words)
            self.assertTrue(self.missing(r, "machine"), words)


@needs_root
class ByDaemon(Bmc):
    def test_numbers_but_never_the_device(self):
        self.says(150)
        daemon, path = self.daemon(root=self.root)
        with Client(path) as client, Client(path) as other:
            self.assertEqual(client.greet()[:2], (FULL, 1))
            sensor = client.sensor(0)
            self.assertEqual((sensor["driver"], sensor["how"], sensor["channels"][0]["name"]), ("dcmi", ASK, "machine"))
            self.assertEqual(client.open(0, 1), (ASK, []))
            self.assertEqual(client.read()[3][0], 150)
            self.says(320)
            eventually(lambda: client.read()[3][0] == 320, "the step")
            # A controller that falls silent is missing, and holds nobody up for good.
            self.says("silent")
            eventually(lambda: client.read()[3][0] == MISSING, "the silence")
            self.assertEqual(client.read()[2][0], -errno.ETIMEDOUT)
            self.assertEqual(other.greet()[0], FULL)
            self.says(90)
            eventually(lambda: client.read()[3][0] == 90, "it speaks again")
        self.stop(daemon)


if __name__ == "__main__":
    unittest.main()
