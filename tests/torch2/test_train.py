"""The training example under a current PyTorch: run by `make test-torch2`, which sets the Python."""
import json
import os
import re
import subprocess
import tempfile
import unittest

PYTHON = os.environ.get("NRG_TORCH_PYTHON")
NRG = os.environ.get("NRG_BIN") or "build/nrg"
SOURCE = os.environ.get("NRG_SOURCE") or "."


@unittest.skipUnless(PYTHON, "NRG_TORCH_PYTHON is not set")
class Train(unittest.TestCase):
    def test_train(self):
        with tempfile.TemporaryDirectory() as folder:
            result = os.path.join(folder, "result.json")
            done = subprocess.run([NRG, "run", "-o", os.path.join(folder, "run.nrg"), "--json=" + result, "--",
                                   PYTHON, os.path.join(SOURCE, "examples/train.py"), "--epochs", "3",
                                   "--samples", "1500"], capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(result, encoding="utf-8") as text:
                report = json.load(text)
        self.assertIn("PyTorch 2.", done.stdout)
        losses = [float(x) for x in re.findall(r"loss ([\d.]+)", done.stdout)]
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(report["schema"], "nrg.report/1")
        self.assertEqual(report["exit_code"], 0)
        self.assertGreater(report["total"]["energy_j"], 0)
        self.assertIn(report["total"]["provenance"], ("measured", "derived", "estimated"))
        trainer = max(report["processes"], key=lambda p: p["cpu_time_s"])
        self.assertIn("train.py", trainer["command"])
        self.assertLessEqual(trainer["energy_j"]["cpu"], report["cpu_domain_j"] * 1.0001)


if __name__ == "__main__":
    unittest.main()
