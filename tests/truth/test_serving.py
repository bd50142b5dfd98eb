"""nrg report of a server whose prices are known (serving.py): a few seeds; tests/truth/serving_bars has 200 of each."""
import unittest

from support import np  # first: it skips where there is no numpy

from serving_judge import judge, results
from token_server import LAW, changed


class Serving(unittest.TestCase):
    def test_prices_of_tokens(self):
        for clients in (1, 8, 32):
            with self.subTest(clients=clients):
                llms = results(range(1, 7), clients, seconds=200)
                for key in ("j_per_input_token", "j_per_output_token"):
                    found = judge(llms, key)
                    self.assertLess(found["error"], 0.03)  # the median
                    self.assertGreaterEqual(found["covered"], 4 / 6)
                for llm in llms:
                    self.assertEqual([d["name"] for d in llm["domains"]], ["package-0", "gpu-0"])
                    gpu = llm["domains"][1]
                    self.assertAlmostEqual(gpu["late_s"], 0.13, delta=0.12)  # its sensor's delay, and half a step
                    parts = [llm[key]["energy_j"] for key in llm if isinstance(llm[key], dict) and "energy_j" in llm[key]]
                    self.assertAlmostEqual(sum(parts) / llm["energy_j"], 1, delta=0.05)
                    idle = llm["idle_share"]
                    self.assertTrue(0 <= idle["low"] <= idle["value"] <= idle["high"] <= 1, idle)
                    self.assertAlmostEqual(idle["value"] / (llm["idle_w"]["energy_j"] / llm["energy_j"]), 1, delta=0.02)

    def test_prompts_that_are_counted_later_than_output_cost_no_less(self):
        """A step that reads a prompt is longer, and counted when it ends: 1.5 % too cheap, and 88 % held, where all counts had one delay."""
        llms = results(range(401, 417), 8, seconds=250)
        errors = [llm["j_per_input_token"]["value"] / LAW["prompt"] - 1 for llm in llms]
        self.assertLess(abs(np.mean(errors)), 0.009)
        self.assertGreaterEqual(judge(llms, "j_per_input_token")["covered"], 14 / 16)

    def test_tokens_that_are_counted_late_are_not_believed_early(self):
        """Some request ends at nearly every reading of 32 clients: that was taken for tokens counted as they are made, and prices were off by all."""
        for clients in (1, 32):
            for llm in results(range(1, 5), clients, seconds=300, lumps=True):
                self.assertGreater(llm["lump_s"], 1)
                if "unfitted" not in llm:
                    price = llm["j_per_output_token"]
                    self.assertTrue(price["low"] <= LAW["output"] <= price["high"], price)

    def test_a_token_with_its_seconds_is_known_where_the_token_is_not(self):
        """One client: tokens and seconds nearly go together. Intervals that knew of no bound of the other price had a half width of 23 %."""
        llms = results(range(301, 309), 1, **changed("and sequences"))
        alone, both = judge(llms, "j_per_output_token"), judge(llms, "j_per_output_token_with_time")
        self.assertLess(alone["half_width"], 0.19)
        self.assertLess(both["half_width"], 0.045)
        self.assertLess(both["error"], 0.02)
        for found in (alone, both):
            self.assertGreaterEqual(found["covered"], 6 / 8)

    def test_delays_are_found_where_nothing_varies_but_the_tokens(self):
        """One client that never waits: delays were wrong by up to a second, and a prompt's tokens 9 % too cheap."""
        llms = results(range(321, 329), 1, **changed("no thinking"))
        self.assertLess(abs(judge(llms, "j_per_input_token")["bias"]), 0.025)
        for llm in llms:
            self.assertAlmostEqual(llm["domains"][1]["late_s"], 0.13, delta=0.12)

    def test_seconds_of_one_sequence_are_not_told_from_being_busy(self):
        for llm in results([3], 1, seconds=200, law={**LAW, "busy": 60.0}):
            self.assertTrue(llm["busy_w"]["joined"])
            self.assertTrue(llm["sequence_w"]["low"] <= 60 <= llm["sequence_w"]["high"], llm["sequence_w"])


if __name__ == "__main__":
    unittest.main()
