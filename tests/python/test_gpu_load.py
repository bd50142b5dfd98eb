"""The load of nrg calibrate --gpu: its turns, its spans, and what it does without a GPU."""
import unittest

from support import Case

# As much of PyTorch as the load uses; a product takes a ms of a clock that only it moves.
TORCH = """
    import time
    clock = [0.0]
    time.perf_counter = lambda: clock[0]
    time.sleep = lambda s: clock.__setitem__(0, clock[0] + s)
    float16 = "float16"
    def randn(*shape, device, dtype):
        return shape
    def matmul(a, b):
        clock[0] += 0.0002
    class cuda:
        is_available = staticmethod(lambda: True)
        synchronize = staticmethod(lambda device: None)
"""


class Load(Case):
    def test_turns_are_irregular_and_of_known_length(self):
        _, done = self.logged("""
            from nrg import gpu_load
            pairs = list(gpu_load.durations(60, 1))
            turns = [t for pair in pairs for t in pair]
            print(min(turns) >= 0.004, max(turns) <= 0.3, len(turns) > 500, 60 <= sum(turns) < 60.6)
            print(pairs == list(gpu_load.durations(60, 1)), pairs != list(gpu_load.durations(60, 2)))
        """)
        self.assertEqual(done.stdout, "True True True True\nTrue True\n")

    def test_spans_say_when_it_was_on(self):
        self.write("torch.py", TORCH)
        calls, done = self.logged("""
            import sys
            sys.path.insert(0, ".")
            sys.argv = ["gpu_load", "--seconds", "1"]
            import torch
            from nrg import gpu_load
            gpu_load.main()
            print(torch.clock[0] > 1)
        """)
        self.assertEqual(done.stdout, "True\n")
        names = [call[2] for call in calls if call[1] == "begin"]
        self.assertEqual(set(names[::2]), {"on"})
        self.assertEqual(set(names[1::2]), {"off"})
        self.assertEqual(len(calls), 2 * len(names))

    def test_without_pytorch(self):
        self.write("torch.py", "raise ImportError")
        _, done = self.logged("""
            import sys
            sys.path.insert(0, ".")
            sys.argv = ["gpu_load"]
            from nrg import gpu_load
            try:
                gpu_load.main()
            except SystemExit as said:
                print(said)
        """)
        self.assertIn("needs PyTorch", done.stdout)


if __name__ == "__main__":
    unittest.main()
