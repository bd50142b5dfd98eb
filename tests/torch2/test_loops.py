"""Samples, steps, epochs and evaluations of training loops, counted against true: PyTorch 2, Accelerate, Trainer, Lightning."""
import os
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "support"))
import loop_counts  # noqa: E402

BUILD = os.path.abspath(os.environ.get("NRG_BUILD") or os.path.join(TOP, "build"))
PYTHON = os.environ.get("NRG_TORCH_PYTHON")


@unittest.skipUnless(PYTHON, "NRG_TORCH_PYTHON is not set")
class Loops(unittest.TestCase):
    def test_counted_is_true(self):
        with tempfile.TemporaryDirectory(prefix="nrg-loops-") as folder:
            loop_counts.check(self, BUILD, os.path.abspath(PYTHON), folder, at_least=60)


if __name__ == "__main__":
    unittest.main()
