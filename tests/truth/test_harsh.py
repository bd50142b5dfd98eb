"""nrg report of servers that are hard to measure (harsh_server.py): clients that never wait, a gauge like NVML's. serving_bars --harsh has more of them."""
import os
import subprocess
import tempfile
import unittest

from support import NRG, np  # first: it skips where there is no numpy

import harsh_server
from harsh_server import SERVERS, Harsh
from serving_judge import judge, results


def harsh(name, seeds, **more):
    return results(seeds, 0, harsh=Harsh(**{**SERVERS[name], **more}))


def half(price):
    return (price["high"] - price["low"]) / 2 / price["value"]


class HarshServers(unittest.TestCase):
    def test_a_token_with_all_its_time_is_known_where_it_is_not_alone(self):
        """Tokens are made as time passes: their price alone was 27 % off with an interval from nothing to several times itself."""
        for name in ("as it is", "45 s", "32 clients", "power that saturates", "a gauge of 1 s, in W", "no count of steps", "pauses of 3 s"):
            with self.subTest(name):
                llms = harsh(name, range(601, 606))
                for key, error, width in (("all_in_j_per_output_token", 0.02, 0.05), ("all_in_j_per_input_token", 0.08, 0.2)):
                    found = judge(llms, key)
                    self.assertEqual(found["n"], 5)
                    self.assertLess(found["error"], error)
                    self.assertLess(found["half_width"], width)
                    self.assertGreaterEqual(found["covered"], 4 / 5)
                for llm in llms:
                    both = sum(llm[f"all_in_j_per_{kind}_token"]["value"] * llm[f"j_per_{kind}_token"]["amount"] for kind in ("input", "output"))
                    alone = sum(llm[key]["energy_j"] for key in llm if isinstance(llm[key], dict) and "energy_j" in llm[key])
                    self.assertAlmostEqual(both / alone, 1, delta=1e-6)  # all joules of the law, no more and no less

    def test_prices_that_are_not_told_from_time_say_so(self):
        """Counts that are late at edges made them too small: 80 % of the intervals held. And none is dearer than all joules are."""
        llms = harsh("32 clients", range(611, 627))
        self.assertGreaterEqual(judge(llms, "j_per_output_token")["covered"], 14 / 16)
        self.assertGreaterEqual(judge(llms, "j_per_input_token")["covered"], 14 / 16)
        for llm in llms:
            price = llm["j_per_output_token"]
            self.assertFalse(price["resolved"])
            self.assertLess(price["high"], 1.05 * llm["all_j_per_output_token"]["value"])
            self.assertLess(llm["idle_w"]["high"], 1.05 * llm["energy_j"] / (llm["end_s"] - llm["begin_s"]))

    def test_plain_ratios_have_the_interval_of_what_is_divided(self):
        llms = harsh("as it is", range(631, 639))
        self.assertGreaterEqual(judge(llms, "all_j_per_output_token")["covered"], 7 / 8)
        for llm in llms:
            self.assertLess(llm["energy_low_j"], llm["energy_j"])
            self.assertGreater(llm["energy_high_j"], llm["energy_j"])
            for key, amount in (("all_j_per_output_token", llm["output_tokens"]), ("j_per_request", llm["requests"])):
                self.assertLess(llm[key]["low"], llm["energy_low_j"] / amount)  # the counts' edges come on top
                self.assertGreater(llm[key]["high"], llm["energy_high_j"] / amount)
            ratio, inverse = llm["all_j_per_output_token"], llm["tokens_per_joule"]
            self.assertAlmostEqual(inverse["low"] * ratio["high"], 1)
            self.assertAlmostEqual(inverse["high"] * ratio["low"], 1)

    def test_a_run_as_long_as_was_said_is_about_as_precise(self):
        for name, key, percent, seconds in (("as it is", "all_in_j_per_output_token", 1, 60), ("pauses of 3 s", "j_per_input_token", 5, 150)):
            with self.subTest(key):
                said = [llm[key] for llm in harsh(name, range(641, 646), seconds=seconds)]
                for_s = float(np.median([price[f"s_for_{percent}_percent"] for price in said]))
                self.assertGreater(for_s, 1.2 * seconds)
                reached = np.median([half(llm[key]) for llm in harsh(name, range(651, 656), seconds=for_s)])
                self.assertGreater(reached, percent / 100 / 2)
                self.assertLess(reached, percent / 100 * 2)

    def test_the_report_says_what_would_help(self):
        with tempfile.TemporaryDirectory(prefix="nrg-harsh-") as folder:
            path = os.path.join(folder, "run.nrg")
            harsh_server.write(path, 661, Harsh())
            text = subprocess.run([NRG, "report", path], capture_output=True, text=True, check=True).stdout
        self.assertRegex(text, r"a token of the output is known to (±|-100 \.\. \+|-\d\d? \.\. \+)\d+ %: this load hardly tells it from time; one that varies does")
        self.assertRegex(text, r"with all its time it is known to ±[\d.]+ %, to ±1 % after about [\d.]+ (s|min|h) of this load")


if __name__ == "__main__":
    unittest.main()
