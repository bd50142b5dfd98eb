"""nrg report of a server whose prices are known (serving.py): a few seeds; tests/truth/serving_bars has 200 of each."""
import unittest

from support import np  # first: it skips where there is no numpy

from serving import LAW
from serving_judge import judge, results


class Serving(unittest.TestCase):
    def test_prices_of_tokens(self):
        for clients in (1, 8, 32):
            with self.subTest(clients=clients):
                llms = results(range(1, 7), clients, seconds=200)
                for key in ("j_per_input_token", "j_per_output_token"):
                    found = judge(llms, key, LAW)
                    self.assertLess(found["error"], 0.03)  # the median
                    self.assertGreaterEqual(found["covered"], 4 / 6)
                for llm in llms:
                    self.assertEqual([d["name"] for d in llm["domains"]], ["package-0", "gpu-0"])
                    gpu = llm["domains"][1]
                    self.assertAlmostEqual(gpu["late_s"], 0.13, delta=0.12)  # its sensor's delay, and half a step
                    parts = [llm[key]["energy_j"] for key in llm if isinstance(llm[key], dict) and "energy_j" in llm[key]]
                    self.assertAlmostEqual(sum(parts) / llm["energy_j"], 1, delta=0.05)

    def test_prompts_that_are_counted_later_than_output_cost_no_less(self):
        """A step that reads a prompt is longer, and counted when it ends: 1.5 % too cheap, and 88 % held, where all counts had one delay."""
        llms = results(range(401, 417), 8, seconds=250)
        errors = [llm["j_per_input_token"]["value"] / LAW["prompt"] - 1 for llm in llms]
        self.assertLess(abs(np.mean(errors)), 0.009)
        self.assertGreaterEqual(judge(llms, "j_per_input_token", LAW)["covered"], 14 / 16)

    def test_tokens_that_are_counted_late_are_not_believed_early(self):
        for llm in results(range(1, 5), 1, seconds=300, lumps=True):
            self.assertGreater(llm["lump_s"], 1)
            if "unfitted" not in llm:
                price = llm["j_per_output_token"]
                self.assertTrue(price["low"] <= LAW["output"] <= price["high"], price)

    def test_seconds_of_one_sequence_are_not_told_from_being_busy(self):
        for llm in results([3], 1, seconds=200, law={**LAW, "busy": 60.0}):
            self.assertTrue(llm["busy_w"]["joined"])
            self.assertTrue(llm["sequence_w"]["low"] <= 60 <= llm["sequence_w"]["high"], llm["sequence_w"])


if __name__ == "__main__":
    unittest.main()
