"""nrg run --torch and nrg attribute: joules of the modules of unchanged programs, on a machine of known power."""
import os
import unittest
from collections import Counter

import test_torch
from retries import steadily

POWER = """
    import sys, time
    import torch
    from torch import nn

    class Sleeps(nn.Module):
        def forward(self, x):
            time.sleep(0.4)
            return x

    class Burns(nn.Module):
        def forward(self, x):
            until = time.monotonic() + 0.4
            while time.monotonic() < until:
                pass
            return x

    net = nn.Sequential(Sleeps(), Burns())
    with torch.no_grad():
        for _ in range(int(sys.argv[1])):
            net(torch.ones(1))
"""


class Joules(test_torch.TorchCase):
    """A machine of constant 50 W: a module's energy is 50 W times its time, whatever it does in it."""

    def test_sleeping_and_burning_at_50_watts(self):
        root = self.path("root")
        os.mkdir(root)
        self.emulate(self.scenario("domain package-0\n  power 50\n"), root)
        script = self.program(POWER)
        # The emulator's counter stands still while a busy machine keeps it waiting: then once more, for longer.
        def measure(n):
            self.torch_run(test_torch.TORCH_PYTHON, script, str(4 << n),
                           options=("--root", root, "--sensor", "rapl-powercap", "--rate", "100Hz"))
            return self.power_ratios()

        def check(found):
            self.assertEqual(set(found), {"Sequential.0", "Sequential.1", "Sequential"})
            for name, ratio in found.items():
                self.assertAlmostEqual(ratio, 1, delta=0.02, msg=name)

        steadily(check, measure, 3)

    def power_ratios(self):
        """A module's energy by 50 W times its time, per name."""
        time_s = Counter()
        for span in self.spans():
            if span.kind == "module":
                time_s[span.name] += (span.end_ns - span.begin_ns) / 1e9
        result = self.attribute("--idle", "share")
        return {row["name"]: row["energy_j"] / (50 * time_s[row["name"]]) for row in result["rows"]
                if row["kind"] == "module"}

    def test_inclusive_joules_add_up(self):
        root = self.path("root")
        os.mkdir(root)
        self.emulate(self.scenario("domain package-0\n  power 50\n"), root)
        for program in ("resnet18.py", "bert.py"):
            self.torch_run(test_torch.TORCH_PYTHON, os.path.join(test_torch.PROGRAMS, program), "3",
                           options=("--root", root, "--sensor", "rapl-powercap", "--rate", "100Hz"))
            result = self.attribute("--idle", "share")
            rows = result["rows"]
            below = Counter()
            for row in rows:
                below[row.get("parent")] += row["energy_j"]
            for row in rows:
                self.assertAlmostEqual(row["energy_self_j"] + below[row["id"]], row["energy_j"], places=6)
            others_j = result["other_processes_j"]  # whoever else runs here meanwhile
            self.assertAlmostEqual(below[None] + others_j + result["unattributed_j"], result["total_j"], places=6)
            modules = [row["name"] for row in rows if row["kind"] == "module"]
            self.assertGreater(len(modules), 40)
            self.assertEqual((result["dropped"], result["unmatched_ends"]), (0, 0))


if __name__ == "__main__":
    unittest.main()
