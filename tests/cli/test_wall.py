"""A meter at the plug beside the chips' own sensors: compared with the parts, never added to them."""
import unittest

from support import Case

BAR = 0.01


def by_name(report):
    return {d["name"]: d for d in report["domains"]}


class Wall(Case):
    def run_scenario(self, scenario, *command):
        path = self.write("scenario.txt", scenario)
        return self.run_json("--sensor", f"simulate:{path}", "-f", "-o", self.path("w.nrg"), "--",
                             *(command or ("sleep", "0.8")))[0]

    def text(self):
        done = self.nrg("report", self.path("w.nrg"))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def test_wall_against_the_sum_of_disjoint_parts(self):
        r = self.run_scenario("domain wall\n power 150\ndomain package-0\n power 60\n"
                              "domain core-0\n power 40\ndomain gpu-0\n power 40\n")
        wall, t = r["wall"], r["duration_s"]
        self.assertEqual((wall["name"], wall["driver"], wall["provenance"]), ("wall", "simulate", "measured"))
        self.assertEqual(sorted(wall["parts"]), ["gpu-0", "package-0"])
        self.assertAlmostEqual(wall["energy_j"] / (150 * t), 1, delta=BAR)
        self.assertAlmostEqual(wall["parts_j"] / (100 * t), 1, delta=BAR)
        self.assertAlmostEqual(wall["ratio"], 1.5, delta=1.5 * BAR)
        self.assertAlmostEqual(wall["left_over_w"], 50, delta=1)
        self.assertAlmostEqual(wall["left_over_j"], wall["energy_j"] - wall["parts_j"], places=6)
        self.assertGreater(wall["left_over_uncertainty_j"], 0)
        self.assertNotIn("wall", r["total"]["domains"])
        self.assertAlmostEqual(r["total"]["energy_j"] / (100 * t), 1, delta=BAR)
        text = self.text()
        self.assertIn("wall against the parts (simulate, not added)", text)
        self.assertRegex(text, r"ratio 1\.(49|50)\d; left over \d+")

    def test_wall_alone_is_the_total(self):
        r = self.run_scenario("domain wall\n kind gauge\n power 90\n update 10ms\n")
        self.assertEqual(r["total"]["domains"], ["wall"])
        self.assertEqual(r["total"]["provenance"], "measured")
        self.assertAlmostEqual(r["total"]["energy_j"] / (90 * r["duration_s"]), 1, delta=BAR)
        self.assertNotIn("wall", r)
        self.assertNotIn("against the parts", self.text())

    def test_parts_without_processor_leave_the_total_to_the_wall(self):
        r = self.run_scenario("domain wall\n power 150\ndomain gpu-0\n power 40\n")
        self.assertEqual(r["total"]["domains"], ["wall"])
        self.assertEqual(r["wall"]["parts"], ["gpu-0"])
        self.assertAlmostEqual(r["wall"]["left_over_w"], 110, delta=2)

    def test_next_meter_below_is_the_part_where_there_is_no_other(self):
        r = self.run_scenario("domain wall\n power 150\ndomain psys\n power 120\n")
        self.assertEqual(r["total"]["domains"], ["wall"])
        self.assertEqual(r["wall"]["parts"], ["psys"])
        self.assertAlmostEqual(r["wall"]["ratio"], 1.25, delta=0.02)

    def test_lines_of_one_meter_are_one_wall(self):
        r = self.run_scenario("".join(f"domain line{i}\n wide\n covers-cpu\n power {30 * i}\n" for i in (1, 2, 3))
                              + "domain package-0\n power 90\n")
        self.assertEqual(r["wall"]["name"], "line1 + line2 + line3")
        self.assertAlmostEqual(r["wall"]["ratio"], 2, delta=0.03)
        self.assertEqual(r["total"]["domains"], ["package-0"])
        alone = self.run_scenario("".join(f"domain line{i}\n wide\n covers-cpu\n power 30\n" for i in (1, 2, 3)))
        self.assertEqual(sorted(alone["total"]["domains"]), ["line1", "line2", "line3"])
        self.assertAlmostEqual(alone["total"]["energy_j"] / (90 * alone["duration_s"]), 1, delta=BAR)

    def test_gaps_of_the_wall_are_not_left_over(self):
        r = self.run_scenario("domain wall\n power 150\n fault 0.3s EIO 400ms\n"
                              "domain package-0\n power 100\n", "sleep", "1.2")
        wall = r["wall"]
        self.assertAlmostEqual(wall["left_over_w"], 50, delta=3)
        self.assertAlmostEqual(wall["ratio"], 1.5, delta=0.05)
        self.assertAlmostEqual(wall["left_over_j"] / (50 * wall["covered"] * r["duration_s"]), 1, delta=0.1)

    def test_a_wall_that_reads_less_than_its_parts_is_said(self):
        r = self.run_scenario("domain wall\n power 50\ndomain package-0\n power 100\n")
        self.assertLess(r["wall"]["left_over_w"], -45)
        self.assertTrue([m for m in r["missing"] if m["what"] == "wall" and "less than the parts" in m["why"]])


if __name__ == "__main__":
    unittest.main()
