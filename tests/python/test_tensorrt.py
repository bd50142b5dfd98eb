"""nrg.tensorrt.Profiler with a stand-in for TensorRT that reports as TensorRT does: in a burst."""
import json
import re
import unittest

from support import Case

STAND_IN = '''
class IProfiler:
    def __init__(self):
        self.base_was_initialised = True
    def report_layer_time(self, layer_name, ms):
        raise NotImplementedError

class Context:
    """Runs for as long as its layers take, then reports them all."""
    def __init__(self, layers):
        self.layers, self.profiler = layers, None
    def execute_v2(self, bindings=None):
        import time
        until = time.monotonic_ns() + int(sum(ms for _, ms in self.layers) * 1e6) + 200000
        while time.monotonic_ns() < until:
            pass
        assert self.profiler.base_was_initialised
        self.ended_ns = time.monotonic_ns()
        for name, ms in self.layers:
            self.profiler.report_layer_time(name, ms)
'''


class Profiler(Case):
    def setUp(self):
        super().setUp()
        self.write("tensorrt.py", STAND_IN)

    def past(self, calls):
        return [(c[2], c[3], c[5], c[6], int(c[7]), int(c[8])) for c in calls if c[1] == "past"]

    def test_layers_are_laid_out_before_the_burst(self):
        calls, done = self.logged("""
            import tensorrt, nrg.tensorrt
            context = tensorrt.Context([("conv1", 0.5), ("relu", 0.0), ("conv2", 1.25)])
            context.profiler = profiler = nrg.tensorrt.Profiler()
            assert isinstance(profiler, tensorrt.IProfiler)
            for i in range(3):
                context.execute_v2()
                print(context.ended_ns)
            print(profiler.moved, profiler.times_ms)
        """)
        lines = done.stdout.splitlines()
        ended, spans = [int(line) for line in lines[:3]], self.past(calls)
        self.assertEqual([s[0] for s in spans], ["conv1", "relu", "conv2"] * 3)
        self.assertEqual({s[1:4] for s in spans}, {("layer", "gpu-0", "gpu-0")})
        self.assertEqual([s[5] - s[4] for s in spans], [500000, 0, 1250000] * 3)
        for cycle in range(3):
            rows = spans[3 * cycle:3 * cycle + 3]
            for row, following in zip(rows, rows[1:]):
                self.assertEqual(row[5], following[4])
            # They end when the first report came: after the work had ended, before the next cycle.
            self.assertGreaterEqual(rows[2][5], ended[cycle])
            if cycle < 2:
                self.assertLess(rows[2][5], ended[cycle + 1])
        self.assertEqual(lines[3], "0 {'conv1': [0.5, 0.5, 0.5], 'relu': [0.0, 0.0, 0.0], 'conv2': [1.25, 1.25, 1.25]}")

    def test_times_that_do_not_fit_never_overlap(self):
        calls, done = self.logged("""
            import nrg.tensorrt
            a, b = nrg.tensorrt.Profiler(track="t", domain=None), nrg.tensorrt.Profiler(track="t", domain=None)
            for i in range(5):
                for profiler in (a, b):
                    for name, ms in (("x", 40.0), ("y", 2.0)):
                        profiler.report_layer_time(name, ms)
            a.flush(); b.flush()
            print(a.moved + b.moved)
        """)
        spans = self.past(calls)
        self.assertEqual(len(spans), 20)
        for span, following in zip(spans, spans[1:]):
            self.assertLessEqual(span[5], following[4])
        self.assertEqual(done.stdout, "9\n")

    def test_a_recording_gets_the_last_cycle(self):
        calls, _ = self.logged("""
            import nrg, nrg.tensorrt
            with nrg.record("run.nrg"):
                profiler = nrg.tensorrt.Profiler()
                profiler.report_layer_time("only", 1.0)
        """, active=False)
        self.assertEqual([c[1] for c in calls], ["start", "past", "stop"])

    def test_save_writes_the_known_form(self):
        self.logged("""
            import nrg.tensorrt
            profiler = nrg.tensorrt.Profiler()
            for i in range(2):
                profiler.report_layer_time("a\\"b", 0.1 + i)
                profiler.report_layer_time("c", 0.3)
            profiler.save("layers.json")
        """, active=False)
        with open(self.path("layers.json"), encoding="utf-8") as text:
            layers = json.load(text)
        self.assertEqual([ms for ms, _ in layers['a"b']], [0.1, 1.1])
        self.assertEqual([ms for ms, _ in layers["c"]], [0.3, 0.3])
        for rows in layers.values():
            for _, stamp in rows:
                self.assertTrue(re.match(r"^\d{8}-\d\d:\d\d:\d\d\.\d{6}$", stamp), stamp)

    def test_without_tensorrt_it_imports(self):
        self.write("tensorrt.py", "raise ImportError('no TensorRT here')")
        _, done = self.logged("""
            import nrg.tensorrt
            try:
                nrg.tensorrt.Profiler
            except ImportError as error:
                print(error)
            print(hasattr(nrg.tensorrt, "nonsense"))
        """)
        self.assertEqual(done.stdout, "no TensorRT here\nFalse\n")


if __name__ == "__main__":
    unittest.main()
