"""nrg compare where the ratio is known, briefly: the same few comparisons every time. `make compare-bars` runs thousands (docs/compare.md)."""
import tempfile
import unittest

from support import np  # first: it skips where there is no numpy

import comparisons

EACH = 40


class Compare(unittest.TestCase):
    def worlds(self, runs, ratio=None):
        """(world, what is said of it) of the same comparisons every time."""
        with tempfile.TemporaryDirectory(prefix="nrg-truth-") as folder:
            for seed in range(EACH):
                rng = np.random.default_rng([seed, runs])
                world = comparisons.draw(rng, runs, ratio)
                yield world, comparisons.compare(rng, world, folder)

    def test_intervals_hold_the_ratio(self):
        held = {runs: np.mean([comparisons.holds(said["energy"], world.ratio) for world, said in self.worlds(runs)]) for runs in (3, 6, 20)}
        for share in held.values():
            self.assertGreaterEqual(share, 0.85, held)  # 34 of 40: chance alone goes so low once in a hundred times
        self.assertGreaterEqual(np.mean(list(held.values())), 0.90, held)

    def test_one_program_is_no_difference(self):
        different = np.mean([said["energy"]["verdict"] != "none" for _, said in self.worlds(5, ratio=1.0)])
        self.assertLessEqual(different, 0.125)

    def test_runs_needed(self):
        pairs = [(said["runs_needed_low"], said["runs_needed"], said["runs_needed_high"],
                  comparisons.runs_for(comparisons.true_scatter(world), 0.01)) for world, said in self.worlds(15)]
        low, said, high, true = np.array(pairs).T
        self.assertLess(np.median(np.exp(np.abs(np.log(said / true)))), 1.4)
        self.assertGreaterEqual(np.mean((np.floor(low) <= np.ceil(true)) & (true <= high)), 0.85)

    def test_the_judge(self):
        """Textbook: 15.7 times the squared ratio of scatter and difference, and a little for Student."""
        self.assertAlmostEqual(comparisons.runs_for([0.05, 0.05], 0.01) / (15.7 * (0.05 / np.log(1.01)) ** 2), 1, delta=0.01)
        self.assertEqual(comparisons.runs_for([1e-5, 1e-5], 0.01), 2)


if __name__ == "__main__":
    unittest.main()
