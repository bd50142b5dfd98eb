"""Ordinary PyTorch programs print and return the same with `nrg run --torch` and without, byte for byte.

All of tests/data/silent run under a current PyTorch (tests/torch2/test_silent.py); here are those that broke most.
"""
import os
import sys
import unittest

import support
from support import Case, PYTHON, TOOLS, TOP

sys.path.insert(0, os.path.join(TOP, "tests", "support"))
import silent  # noqa: E402

# Not a sanitized build: what nrg injects is loaded by an interpreter that is not sanitized.
BUILD = os.path.abspath(os.environ.get("NRG_PLAIN_BUILD") or os.path.dirname(TOOLS))

try:
    import torch
except ImportError:
    torch = None


@unittest.skipIf(torch is None, "PyTorch is not installed (Debian: python3-torch)")
class Silent(Case):
    def check(self, name):
        if not os.path.exists(os.path.join(BUILD, "python", "nrg", "_nrg.abi3.so")):
            self.skipTest("the extension is not built (Debian: python3-dev)")
        silent.check(self, os.path.join(BUILD, "nrg"), PYTHON, name, self.path(""))

    def test_what_lives_until_the_end(self):
        self.check("module_level")

    def test_tracebacks(self):
        self.check("exceptions")

    def test_warnings(self):
        self.check("warns")

    def test_hooks(self):
        self.check("hooks")

    def test_interrupt(self):
        self.check("interrupted")


if __name__ == "__main__":
    unittest.main()
