"""Sensors that misbehave: every one is survived, the child's code comes through, and what is not
known is reported instead of guessed."""
import json
import unittest

from support import *


class Faults(Case):
    def run_scenario(self, text, *options, command=("sh", "-c", "sleep 1.5; exit 5"), code=5):
        path = self.scenario(text)
        return self.run_json("--sensor", f"simulate:{path}", "-f", "-o", self.path("s.nrg"),
                             *options, "--", *command, code=code)[0]

    def test_a_zone_that_fails_for_a_while_loses_nothing(self):
        for name in ("EINVAL", "EIO", "ENODATA", "ENODEV"):
            r = self.run_scenario("domain package-0\n power 50\n fault 0.4s %s 400ms\n"
                                  "domain dram-0\n power 5\n" % name,
                                  command=("sh", "-c", "sleep 1.1; exit 5"))
            found = domains(r)
            for domain, power_w in (("package-0", 50), ("dram-0", 5)):
                self.assertAlmostEqual(
                    found[domain]["energy_j"] / (power_w * r["duration_s"]), 1, delta=0.005)
            self.assertIn("fault at", self.missing(r, "package-0"), name)

    def test_a_zone_that_fails_for_good_covers_less(self):
        r = self.run_scenario("domain package-0\n power 50\n fault 0.7s EIO\n")
        d = domains(r)["package-0"]
        self.assertLess(d["covered"], 0.7)
        self.assertAlmostEqual(d["energy_j"] / (50 * d["covered"] * r["duration_s"]), 1, delta=0.01)
        self.assertIn("no readings for", self.missing(r, "package-0"))

    def test_a_zone_that_never_answers(self):
        r = self.run_scenario("domain package-0\n power 50\n fault 0s EIO\ndomain dram-0\n"
                              " power 4\n")
        self.assertNotIn("package-0", domains(r))
        self.assertIn("no reading succeeded", self.missing(r, "package-0"))
        self.assertEqual(r["total"]["domains"], ["dram-0"])

    def test_a_sensor_that_is_gone(self):
        r = self.run_scenario("domain package-0\n power 50\n fault 0.6s gone\n")
        self.assertLess(domains(r)["package-0"]["covered"], 0.6)
        self.assertIn("gone", self.missing(r, "simulation"))

    def test_a_gauge_that_fails_has_a_gap(self):
        r = self.run_scenario("domain gpu-0\n kind gauge\n power 80\n update 20ms\n"
                              " fault 0.3s EIO 700ms\n")
        d = domains(r)["gpu-0"]
        self.assertLess(d["covered"], 0.75)
        self.assertAlmostEqual(d["energy_j"] / (80 * d["covered"] * r["duration_s"]), 1, delta=0.02)

    def test_a_counter_that_stands_still(self):
        r = self.run_scenario("domain package-0\n power 0\ndomain dram-0\n power 3\n")
        self.assertNotIn("package-0", domains(r))
        self.assertIn("stood still", self.missing(r, "package-0"))

    def test_a_counter_that_goes_backwards(self):
        r = self.run_scenario("domain package-0\n power 50\n limit 1000\n"
                              " fault 0.6s backwards 20J\n")
        d = domains(r)["package-0"]
        self.assertIn("without a wrap", self.missing(r, "package-0"))
        self.assertAlmostEqual(d["energy_j"] / (50 * d["covered"] * r["duration_s"]), 1, delta=0.01)
        self.assertLessEqual(d["energy_j"], 50 * r["duration_s"] * 1.005)

    def test_wraps_are_unwrapped(self):
        # Wraps about three times; at 100 W at most it takes 0.2 s, and is read twice as often.
        r = self.run_scenario("domain package-0\n power 50\n limit 100\n wrap 20J\n start 15J\n")
        d = domains(r)["package-0"]
        self.assertGreater(d["covered"], 0.5)  # a reader that was held up says "ambiguous"
        self.assertAlmostEqual(d["energy_j"] / (50 * d["covered"] * r["duration_s"]), 1, delta=0.005)
        self.assertEqual(self.missing(r, "package-0") == "", d["covered"] > 0.999)

    def test_many_wraps_while_the_recorder_was_stopped_are_ambiguous(self):
        # 20 J at up to 200 W wrap every 0.1 s at worst; after a stop of 0.6 s the number of wraps is unknown.
        path = self.scenario("domain package-0\n power 100\n limit 200\n wrap 20J\n")
        out, result = self.path("a.nrg"), self.path("a.json")
        p = self.start("run", "-q", f"--json={result}", "--sensor", f"simulate:{path}", "-o", out,
                       "--", "sleep", "1.6")
        eventually(lambda: children_of(p.pid), "the child")
        time.sleep(0.5)
        os.kill(p.pid, signal.SIGSTOP)
        time.sleep(0.6)
        os.kill(p.pid, signal.SIGCONT)
        self.finish(p)
        with open(result) as f:
            r = json.load(f)
        d = domains(r)["package-0"]
        self.assertIn("ambiguous", self.missing(r, "package-0"))
        self.assertLess(d["covered"], 0.8)
        self.assertAlmostEqual(d["energy_j"] / (100 * d["covered"] * r["duration_s"]), 1, delta=0.03)


class FakeRoot(Case):
    """Trees with files that no kernel should show."""
    BASE = "root/sys/class/powercap/"

    def zone(self, zone, name, energy, span="262143328850\n"):
        self.write(f"{self.BASE}{zone}/name", name)
        self.write(f"{self.BASE}{zone}/energy_uj", energy)
        self.write(f"{self.BASE}{zone}/max_energy_range_uj", span)

    BAD = {"empty": b"", "text": b"hello\n", "huge": b"9" * 100000, "binary": b"\xff\xfe\x00\x01\n",
           "two": b"1 2\n", "negative": b"-\n", "large": b"99999999999999999999999\n",
           "nul": b"\0" * 64}

    def test_bad_energy_files_are_refused_with_a_reason(self):
        self.zone("intel-rapl:0", "package-0\n", "1000\n")
        for i, (what, content) in enumerate(self.BAD.items(), 1):
            self.zone(f"intel-rapl:{i}", f"package-{i}\n", content)
        done = self.nrg("sensors", "--json", "--root", self.path("root"))
        self.assertEqual(done.returncode, 0)
        r = json.loads(done.stdout)
        rapl = [c["name"] for c in r["channels"] if c["driver"] == "rapl-powercap"]
        self.assertEqual(rapl, ["package-0"])
        whats = " ".join(u["what"] for u in r["unavailable"])
        for i in range(1, len(self.BAD) + 1):
            self.assertIn(f"package-{i} ", whats + " ")

    def test_bad_names_and_ranges(self):
        self.zone("intel-rapl:0", b"package-\xff\xfe\x1b[31m\n", "1000\n")
        self.zone("intel-rapl:1", b"", "1000\n")
        self.zone("intel-rapl:2", b"p" * 50000, "1000\n")
        self.zone("intel-rapl:3", "package-3\n", "1000\n", "garbage")
        done = self.nrg("sensors", "--root", self.path("root"))
        self.assertEqual(done.returncode, 0)
        done.stdout.decode("utf-8")
        self.assertNotIn(b"\x1b", done.stdout)
        json.loads(self.nrg("sensors", "--json", "--root", self.path("root")).stdout)

    def test_a_file_that_turns_bad_in_the_middle(self):
        for what in ("empty", "text", "huge", "binary"):
            self.zone("intel-rapl:0", "package-0\n", "1000000\n")
            self.zone("intel-rapl:1", "package-1\n", "1000000\n")
            bad = self.write("bad", self.BAD[what])
            energy = self.path(self.BASE, "intel-rapl:%d/energy_uj")
            script = (f"sleep 0.2; echo 3000000 > {energy % 1}; cat {bad} > {energy % 0}; "
                      f"sleep 0.6; echo 9000000 > {energy % 0}; sleep 0.2; exit 4")
            r, _ = self.run_json("--root", self.path("root"), "--sensor", "rapl-powercap", "--force",
                                 "--rate", "100Hz", "-o", self.path("f.nrg"), "--", "sh", "-c", script, code=4)
            found = domains(r)
            self.assertAlmostEqual(found["package-0"]["energy_j"], 8, places=3)
            self.assertAlmostEqual(found["package-1"]["energy_j"], 2, places=3)
            self.assertTrue(self.missing(r, "package-0"))

    def test_a_zone_that_leaves_and_returns_is_read_again(self):
        self.zone("intel-rapl:0", "package-0\n", "5000000\n")
        zone, away = self.path(self.BASE, "intel-rapl:0"), self.path("away")
        script = (f"sleep 0.3; rm -r {zone}; sleep 0.8; mkdir {away}; echo package-0 > {away}/name; "
                  f"echo 262143328850 > {away}/max_energy_range_uj; echo 7000000 > {away}/energy_uj; "
                  f"mv {away} {zone}; sleep 1.2; echo 9000000 > {zone}/energy_uj; sleep 0.3")
        r, _ = self.run_json("--root", self.path("root"), "--sensor", "rapl-powercap", "--force",
                             "--rate", "50Hz", "-o", self.path("f.nrg"), "--", "sh", "-c", script)
        self.assertAlmostEqual(domains(r)["package-0"]["energy_j"], 4, places=3)
        self.assertIn("gone", self.missing(r, "intel-rapl:0"))
        self.assertTrue([m for m in r["missing"] if "read again" in m["why"]])

    def test_a_chip_returns_under_another_number(self):
        chip, device = "root/sys/class/hwmon/%s/", self.path("root/sys/devices/1-0040")
        os.makedirs(device)
        for name in ("hwmon3", "later/hwmon5"):
            self.write(chip % name + "name", "ina226\n")
            self.write(chip % name + "power1_input", "4000000\n")
            os.symlink(device, self.path(chip % name + "device"))
        base = self.path("root/sys/class/hwmon")
        os.rename(base + "/later", self.path("later"))
        script = (f"sleep 0.4; rm -r {base}/hwmon3; sleep 0.8; mv {self.path('later')}/hwmon5 {base}; "
                  "sleep 1.5")
        r, _ = self.run_json("--root", self.path("root"), "--sensor", "hwmon", "--covers",
                             "ina226=machine", "--force", "--rate", "50Hz", "-o", self.path("h.nrg"),
                             "--", "sh", "-c", script)
        ina = domains(r)["ina226"]
        self.assertTrue(0.5 < ina["covered"] < 0.95, ina)
        self.assertAlmostEqual(ina["mean_w"], 4, places=3)
        self.assertAlmostEqual(r["total"]["covered"], ina["covered"], places=6)
        self.assertLessEqual(r["total"]["low_j"], 4 * r["duration_s"])
        self.assertGreaterEqual(r["total"]["high_j"], 4 * r["duration_s"] * 0.999999)
        self.assertTrue([m for m in r["missing"] if "read again" in m["why"]])

    def test_links_that_lead_nowhere_and_in_circles(self):
        self.zone("intel-rapl:0", "package-0\n", "1000\n")
        base = self.path(self.BASE)
        os.symlink("../nowhere", os.path.join(base, "intel-rapl:1"))
        os.symlink("intel-rapl:2", os.path.join(base, "intel-rapl:2"))
        os.symlink("/", os.path.join(base, "intel-rapl:3"))
        done = self.nrg("sensors", "--json", "--root", self.path("root"))
        self.assertEqual(done.returncode, 0)
        self.assertIn("package-0", [c["name"] for c in json.loads(done.stdout)["channels"]])

    def test_an_empty_root_is_explained(self):
        os.mkdir(self.path("empty"))
        done = self.nrg("sensors", "--root", self.path("empty"))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"Not available", done.stdout)
        r, _ = self.run_json("--root", self.path("empty"), "-o", self.path("e.nrg"), "--", "true")
        self.assertNotEqual(r["total"].get("provenance"), "measured")
        self.assertTrue(r["missing"])

    @needs_root
    def test_unreadable_energy_as_an_ordinary_user(self):
        self.zone("intel-rapl:0", "package-0\n", "1000000\n")
        self.zone("intel-rapl:0:0", "core\n", "1000000\n")
        os.chmod(self.path(self.BASE, "intel-rapl:0/energy_uj"), 0o400)
        done = self.nrg("sensors", "--json", "--root", self.path("root"), user=NOBODY)
        r = json.loads(done.stdout)
        self.assertNotIn("package-0", [c["name"] for c in r["channels"]])
        reason = [u for u in r["unavailable"] if "package-0" in u["what"]][0]
        self.assertIn("Permission denied", reason["why"])
        self.assertIn("chmod", reason["fix"])
        r, _ = self.run_json("--root", self.path("root"), "-o", self.path("u.nrg"), "--", "sh", "-c",
                             "exit 9", code=9, user=NOBODY)
        self.assertIn("Permission denied", self.missing(r, "package-0"))


if __name__ == "__main__":
    unittest.main()
