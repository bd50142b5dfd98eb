"""What the tests of this folder share: numpy, without which they are skipped, and where nrg and the source are."""
import os
import unittest

try:
    import numpy as np  # noqa: F401
except ImportError:
    raise unittest.SkipTest("numpy is not there")

SOURCE = os.environ.get("NRG_SOURCE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
NRG = os.environ.get("NRG_BIN", os.path.join(SOURCE, "build/nrg"))
