"""nrg.record(model=...): parameters and MACs of PyTorch models, against closed forms."""
import json
import unittest

from support import Case, PYTHON

PROGRAM = """
    import json, torch, nrg
    from torch import nn

    class Words(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(10, 4), nn.Linear(4, 3)
        def forward(self, words, mask=None):
            return self.out(self.table(words))

    pictures = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16 * 16, 10))
    counts = []
    for model, size in ((pictures, (2, 3, 16, 16)), (Words(), [(1, 7)]), (Words(), None)):
        with nrg.record("run.nrg", overwrite=True, sensors="estimate", model=model, input_size=size) as run:
            pass
        counts.append(run.model)
    print(json.dumps(counts))
"""


class Model(Case):
    def test_counts(self):
        if self.run_process(PYTHON, "-c", "import torch, nrg.torch").returncode:
            self.skipTest("PyTorch is not installed")
        self.assertEqual(json.loads(self.python(PROGRAM).stdout), [
            {"params": 8 * 3 * 9 + 8 + 2048 * 10 + 10, "macs": 2 * (8 * 16 * 16 * 3 * 9 + 2048 * 10)},
            {"params": 10 * 4 + 4 * 3 + 3, "macs": 7 * 4 * 3},
            {"params": 10 * 4 + 4 * 3 + 3}])

    def test_a_note_that_is_no_number(self):
        done = self.python("""
            import nrg
            for text in ("about a million", "-3", "12"):
                with nrg.record("run.nrg", overwrite=True, sensors="estimate", note={"model_params": text}) as run:
                    pass
                print(run.model)
        """)
        self.assertEqual(done.stdout, "{}\n{}\n{'params': 12}\n")


if __name__ == "__main__":
    unittest.main()
