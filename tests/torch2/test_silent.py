"""Ordinary programs under a current PyTorch print and return the same with `nrg run --torch` and without."""
import os
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "support"))
import silent  # noqa: E402

NRG = os.path.join(os.path.abspath(os.environ.get("NRG_BUILD") or os.path.join(TOP, "build")), "nrg")
PYTHON = os.environ.get("NRG_TORCH_PYTHON")


@unittest.skipUnless(PYTHON, "NRG_TORCH_PYTHON is not set")
class Silent(unittest.TestCase):
    """One test per program of tests/data/silent."""


def add(name):
    def test(self):
        with tempfile.TemporaryDirectory(prefix="nrg-silent-") as folder:
            silent.check(self, NRG, PYTHON, name, folder)
    setattr(Silent, "test_" + name, test)


for file in sorted(os.listdir(silent.PROGRAMS)):
    if file.endswith(".py"):
        add(file[:-3])

if __name__ == "__main__":
    unittest.main()
