"""Joules of requests to a language model, where those of each are known (request_truth.py): a few seeds of the whole bar."""
import unittest

from support import NRG, np  # first: it skips where there is no numpy

from request_truth import judge


class Requests(unittest.TestCase):
    def test_sums_are_exact_and_requests_are_close(self):
        rows = [judge(NRG, seed, clients, 150) for clients in (1, 8) for seed in range(3)]
        for row in rows:
            self.assertLess(row["off"], 1e-12, row)
            self.assertEqual(row["method"], "regression")
        self.assertGreater(np.mean([row["held"] for row in rows]), 0.85, rows)
        eight = [row for row in rows if row["clients"] == 8]
        self.assertLess(np.median([row["request_error"] for row in eight]), 0.05, eight)

    def test_prompts_of_which_the_server_says_nothing(self):
        """A fifth of the requests: where their prompts were left out, prices were 18 % too small, and 86 % of the requests held."""
        rows = [judge(NRG, seed, 8, 300, unsaid=0.2) for seed in range(4)]
        for name in ("prompt", "output"):
            self.assertLess(abs(np.mean([row[name]["error"] for row in rows])), 0.05, rows)
        self.assertGreater(np.mean([row["held"] for row in rows]), 0.95, rows)

    def test_short_runs_share_equally(self):
        row = judge(NRG, 7, 4, 1)
        self.assertLess(row["off"], 1e-12)
        self.assertEqual(row["method"], "equal shares")
        self.assertGreater(row["held"], 0.95, row)


if __name__ == "__main__":
    unittest.main()
