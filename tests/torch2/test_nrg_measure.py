"""nrg.torch.measure with a current PyTorch: the same tests as with Debian's."""
import os
import sys
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ["NRG_TEST_PYTHON"] = os.environ.get("NRG_TORCH_PYTHON") or sys.executable
sys.path.insert(0, os.path.join(TOP, "tests", "python"))
from test_measure import Measure  # noqa: E402,F401

if __name__ == "__main__":
    unittest.main()
