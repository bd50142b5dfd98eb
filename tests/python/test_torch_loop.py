"""nrg.torch: steps, epochs, evaluations, samples, operators and the GPU's track.

PyTorch is the real one, the recorder a stand-in (recorder_standin.py). The GPU is a fake torch.cuda
whose clock the test moves: what is placed on its track follows from that clock alone.
"""
import gc
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from recorder_standin import api, log  # noqa: E402  (before nrg)
from support import BUILD, TOP  # noqa: E402
sys.path.insert(0, os.path.join(TOP, "tests", "support"))
import loop_counts  # noqa: E402

try:
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed")

import nrg.torch  # noqa: E402
from nrg.torch import _cuda, _loop, _operators, _state  # noqa: E402


def loader(n=6, batch=2, **options):
    return DataLoader(TensorDataset(torch.randn(n, 4), torch.randn(n, 1)), batch_size=batch, **options)


def model():
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        api.listening = True
        api.current += 1
        log.reset()
        _loop.numbers.__init__()
        self.net = model()
        self.optimizer = torch.optim.SGD(self.net.parameters(), 0.01)
        nrg.torch.install()

    def tearDown(self):
        nrg.torch.uninstall()
        self.optimizer = None
        gc.collect()
        self.assertEqual(log.unmatched, 0)
        self.assertEqual(log.open(), [])
        self.assertEqual(_state.state.troubles, 0)

    def train(self, data, step=True):
        self.net.train()
        for x, y in data:
            self.one(x, y, step)

    def one(self, x, y, step=True):
        loss = (self.net(x) - y).square().mean()
        loss.backward()
        if step:
            self.optimizer.step()
            self.optimizer.zero_grad()

    def evaluate(self, data):
        self.net.eval()
        with torch.no_grad():
            for x, _ in data:
                self.net(x)

    def outline(self, spans=None, skip=("module", "backward")):
        """[(name, number, [children])] of what is not a module."""
        return [(s.text, s.number, self.outline(s.children, skip))
                for s in (log.roots if spans is None else spans) if s.kind not in skip]


PHASE = ("module", "backward", "phase")


class Steps(Case):
    def test_epochs_hold_steps_hold_modules(self):
        data = loader()
        for _ in range(2):
            self.train(data)
            self.evaluate(data)
        epochs = log.of("epoch")
        self.assertEqual([e.number for e in epochs], [1, 2])
        self.assertEqual([s.number for s in log.of("step")], [1, 2, 3, 4, 5, 6])
        for epoch in epochs:
            self.assertIsNone(epoch.parent)
            steps = [c for c in epoch.children if c.kind == "step"]
            self.assertEqual(len(steps), 3)
            for step in steps:
                self.assertEqual([(c.kind, c.text) for c in step.children],
                                 [("module", "Sequential"), ("backward", "Sequential"),
                                  ("phase", "optimizer.step")])
        evaluations = [s for s in log.roots if s.text == "evaluation"]
        self.assertEqual([(e.kind, e.number) for e in evaluations], [("phase", 1), ("phase", 2)])
        self.assertEqual(sum(c.kind == "module" for c in evaluations[0].children), 3)
        self.assertEqual([c for e in evaluations for c in e.children if c.kind == "step"], [])

    def test_zero_grad_first_is_the_same(self):
        for x, y in loader():
            self.optimizer.zero_grad()
            (self.net(x) - y).square().mean().backward()
            self.optimizer.step()
        self.assertEqual(self.outline(skip=PHASE), [("epoch", 1, [("step", n, []) for n in (1, 2, 3)])])

    def test_without_a_data_loader(self):
        for _ in range(3):
            self.one(torch.randn(2, 4), torch.randn(2, 1))
        self.assertEqual(self.outline(skip=PHASE), [("step", n, []) for n in (1, 2, 3)])

    def test_accumulated_gradients_are_one_step(self):
        for i, (x, y) in enumerate(loader(8, 2)):
            self.one(x, y, step=i % 2 == 1)
        self.assertEqual(self.outline(skip=PHASE), [("epoch", 1, [("step", 1, []), ("step", 2, [])])])
        self.assertEqual([len([c for c in s.children if c.kind == "module"]) for s in log.of("step")], [2, 2])

    def test_a_step_left_open_ends_with_its_epoch(self):
        self.train(loader(), step=False)
        self.assertEqual(log.open(), [])
        self.assertEqual(self.outline(skip=PHASE), [("epoch", 1, [("step", 1, [])])])

    def test_break_ends_the_epoch(self):
        for x, y in loader():
            self.one(x, y)
            break
        self.assertEqual(log.open(), [])
        self.train(loader())
        self.assertEqual(self.outline(skip=PHASE), [("epoch", 1, [("step", 1, [])]),
                                                    ("epoch", 2, [("step", n, []) for n in (2, 3, 4)])])

    def test_evaluation_inside_an_epoch(self):
        for i, (x, y) in enumerate(loader()):
            self.net.train()
            self.one(x, y)
            if i == 1:
                self.evaluate(loader(2))
        self.assertEqual(self.outline(skip=("module", "backward")), [
            ("dataloader.next", None, []),
            ("epoch", 1, [("step", 1, [("optimizer.step", None, [])]), ("dataloader.next", None, []),
                          ("step", 2, [("optimizer.step", None, [])]), ("dataloader.next", None, []),
                          ("evaluation", 1, [("dataloader.next", None, [])]), ("dataloader.next", None, []),
                          ("step", 3, [("optimizer.step", None, [])]), ("dataloader.next", None, [])])])

    def test_the_mode_counts_when_the_model_is_called(self):
        """Some call model.train() inside of the loop, after an evaluation."""
        self.evaluate(loader(2))
        for x, y in loader(2):
            self.net.train()
            self.one(x, y)
        self.assertEqual([e[0] for e in self.outline() if e[0] != "dataloader.next"], ["evaluation", "epoch"])

    def test_two_loaders_at_once_are_one_epoch(self):
        for (x, y), _ in zip(loader(), loader()):
            self.one(x, y)
        self.assertEqual(self.outline(skip=PHASE), [("epoch", 1, [("step", n, []) for n in (1, 2, 3)])])

    def test_a_batch_taken_beforehand_is_no_epoch(self):
        x, y = next(iter(loader()))
        self.one(x, y)
        self.assertEqual(self.outline(skip=PHASE), [("step", 1, [])])

    def test_workers_that_persist(self):
        data = loader(num_workers=1, persistent_workers=True)
        for _ in range(2):
            self.train(data)
        for x, y in data:
            self.one(x, y)
            break
        self.train(data)
        self.assertEqual([(e[0], e[1], len(e[2])) for e in self.outline(skip=PHASE)],
                         [("epoch", 1, 3), ("epoch", 2, 3), ("epoch", 3, 1), ("epoch", 4, 3)])

    def test_two_optimizers(self):
        """As in adversarial training: a step ends when both have made theirs."""
        other = model()
        second = torch.optim.Adam(other.parameters(), 0.01)
        for x, y in loader():
            self.one(x, y)
            other(x).sum().backward()
            second.step()
        self.assertEqual(len(log.of("step")), 3)
        self.assertEqual([p.detail for p in log.of("phase") if p.text == "optimizer.step"], ["SGD", "Adam"] * 3)

    def test_closure(self):
        optimizer = torch.optim.LBFGS(self.net.parameters(), max_iter=3)
        x, y = torch.randn(4, 4), torch.randn(4, 1)

        def closure():
            optimizer.zero_grad()
            loss = (self.net(x) - y).square().mean()
            loss.backward()
            return loss

        for _ in range(2):
            optimizer.step(closure)
        self.assertEqual(self.outline(skip=("module", "backward")),
                         [("step", n, [("optimizer.step", None, [])]) for n in (1, 2)])
        self.assertGreater(len([c for c in log.of("phase")[0].children if c.kind == "module"]), 1)

    def test_an_optimizer_class_of_the_program(self):
        class Mine(torch.optim.SGD):
            def step(self, closure=None):
                return super().step(closure)

        before = Mine.__dict__["step"]
        optimizer = Mine(self.net.parameters(), 0.01)
        self.optimizer = optimizer
        self.train(loader())
        self.assertEqual(len(log.of("step")), 3)
        self.assertEqual([p.detail for p in log.of("phase") if p.text == "optimizer.step"], ["Mine"] * 3)
        nrg.torch.uninstall()
        self.assertFalse(hasattr(Mine.step, "nrg_wraps"))
        self.assertIs(getattr(Mine.__dict__["step"], "__wrapped__", Mine.__dict__["step"]), before)

    def test_schedulers_that_wrap_step(self):
        scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1)
        self.train(loader())
        scheduler.step()
        self.assertEqual(len(log.of("step")), 3)
        nrg.torch.uninstall()
        self.one(torch.randn(2, 4), torch.randn(2, 1))
        self.assertEqual(len(log.of("step")), 3)

    def test_inference_without_optimizer_has_no_steps(self):
        self.optimizer = None
        gc.collect()
        for x, _ in loader():
            self.net(x)
        self.assertEqual(log.of("step"), [])
        self.assertEqual([e[:2] for e in self.outline() if e[0] != "dataloader.next"], [("evaluation", 1)])

    def spanned(self, name, x):
        level = api.depth()
        api.begin(api.name(name))
        out = self.net(x)
        api.unwind(level)
        return out

    def test_spans_of_the_program_in_the_loop(self):
        """Opened by us inside of them, epochs and steps would be cut by their end."""
        for x, y in loader():
            (self.spanned("forward", x) - y).square().mean().backward()
            self.optimizer.step()
        self.assertEqual([[c.text for c in s.children] for s in log.of("span")], [["Sequential"]] * 3)
        self.assertEqual(log.of("step") + log.of("epoch"), [])
        self.train(loader())
        self.assertEqual((len(log.of("step")), len(log.of("epoch"))), (3, 1))

    def test_spans_of_the_program_without_a_loader(self):
        for _ in range(3):
            self.spanned("forward", torch.ones(2, 4)).sum().backward()
            self.optimizer.step()
        self.assertEqual(log.texts("span"), ["forward"] * 3)
        self.assertEqual(len(log.of("step")), 1)  # cut, and so given up

    def test_a_span_of_the_program_around_it_all(self):
        level = api.depth()
        api.begin(api.name("training"))
        self.train(loader())
        api.unwind(level)
        self.assertEqual([(e[0], e[1], len(e[2])) for e in self.outline(skip=PHASE)[0][2]], [("epoch", 1, 3)])

    def test_recorder_that_ends_in_the_middle(self):
        data = loader()
        for i, (x, y) in enumerate(data):
            if i == 1:
                api.listening = False
            self.one(x, y)
        api.listening = True
        api.current += 1
        log.reset()
        self.train(data)
        self.assertEqual([(e[0], len(e[2])) for e in self.outline(skip=PHASE)], [("epoch", 3)])


class Samples(Case):
    def counted(self, net, *args, **kwargs):
        del log.counts[:]
        with torch.no_grad():
            net(*args, **kwargs)
        return [n for name, n in log.counts if name == "samples"]

    def test_first_dimension_of_the_first_tensor(self):
        class Takes(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.zeros(1))

            def forward(self, *args, **kwargs):
                return self.w * 1

        net = Takes()
        self.optimizer = None
        self.assertEqual(self.counted(net, torch.ones(5, 2)), [5])
        self.assertEqual(self.counted(net, None, 3, torch.ones(4, 2), torch.ones(9)), [4])
        self.assertEqual(self.counted(net, scale=2.0, ids=torch.ones(7, 2)), [7])
        self.assertEqual(self.counted(net, {"ids": torch.ones(3, 2)}), [3])
        self.assertEqual(self.counted(net, (torch.ones(6, 2), torch.ones(1))), [6])
        self.assertEqual(self.counted(net, [torch.ones(3, 8, 8), torch.ones(3, 9, 9)]), [2])
        packed = nn.utils.rnn.pack_sequence([torch.ones(4, 1), torch.ones(2, 1), torch.ones(1, 1)])
        self.assertEqual(self.counted(net, packed), [3])
        self.assertEqual(self.counted(net, torch.tensor(1.0)), [])
        self.assertEqual(self.counted(net), [])

    def test_only_the_first_model_counts(self):
        other = model()
        self.optimizer = None
        with torch.no_grad():
            self.net(torch.ones(2, 4))
            other(torch.ones(3, 4))
            self.net(torch.ones(2, 4))
        self.assertEqual(log.counts, [("samples", 2), ("samples", 2)])


@unittest.skipIf(int(torch.__version__.split(".")[0]) > 1, "tests/torch2/test_loops.py does it")
class Table(unittest.TestCase):
    def test_counted_is_true(self):
        """The loops of tests/data/loops under `nrg run --torch`."""
        with tempfile.TemporaryDirectory(prefix="nrg-loops-") as folder:
            loop_counts.check(self, BUILD, sys.executable, folder, at_least=50)


class Operators(unittest.TestCase):
    def setUp(self):
        api.listening = True
        api.current += 1
        log.reset()
        if not _operators.available():
            self.skipTest("this PyTorch has no dispatch mode")

    def test_operators_of_forward_backward_and_optimizer(self):
        net = model()
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        with nrg.torch.watch(net, operators=True):
            net(torch.ones(2, 4)).sum().backward()
            optimizer.step()
        self.assertEqual(log.open(), [])
        self.assertEqual(log.unmatched, 0)
        where = {}
        for span in log.of("operator"):
            where.setdefault((span.parent.kind, span.parent.text), []).append(span.text)
        self.assertIn("aten::addmm", where["module", "0"])
        self.assertIn("aten::relu", where["module", "1"])
        self.assertIn("aten::mm", where["backward", "0"])
        self.assertIn("aten::threshold_backward", where["backward", "1"])
        self.assertTrue(where["phase", "optimizer.step"])
        self.assertTrue(log.marks[0][0].startswith("operator spans cost about "))

    def test_modes_of_the_program_stay_in_order(self):
        from torch.utils._python_dispatch import TorchDispatchMode
        seen = []

        class Theirs(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                seen.append(str(func))
                return func(*args, **(kwargs or {}))

        net = model()
        with nrg.torch.watch(net, operators=True):
            with Theirs():
                net(torch.ones(2, 4))
            inside = len(seen)
            net(torch.ones(2, 4))
        self.assertGreater(inside, 3)
        self.assertEqual(len(seen), inside)

    def test_results_are_the_same(self):
        net, x = model(), torch.randn(3, 4)
        alone = net(x)
        with nrg.torch.watch(net, operators=True):
            self.assertTrue(torch.equal(net(x), alone))


class FakeGpu:
    """torch.cuda with one device. Work is what the test says: busy(ms); events record its clock."""

    def __init__(self):
        self.now_ms, self.done_ms, self.syncs = 0.0, float("inf"), 0
        fake = self

        class Event:
            def __init__(self, enable_timing=False):
                self.at = None

            def record(self):
                self.at = fake.now_ms

            def synchronize(self):
                pass

            def query(self):
                return self.at <= fake.done_ms

            def elapsed_time(self, other):
                return other.at - self.at

        self.Event = Event

    def synchronize(self, device=None):
        self.syncs += 1
        self.done_ms = float("inf")

    def patch(self):
        return mock.patch.multiple(
            torch.cuda, Event=self.Event, synchronize=self.synchronize, is_initialized=lambda: True,
            is_available=lambda: True, current_device=lambda: 0, is_current_stream_capturing=lambda: False)


class Gpu(unittest.TestCase):
    """Unverified on a real device: there is none here."""

    def setUp(self):
        api.listening = True
        api.current += 1
        log.reset()
        self.gpu = gpu = FakeGpu()

        class Kernel(nn.Module):
            def __init__(self, ms):
                super().__init__()
                self.ms, self.w = ms, nn.Parameter(torch.ones(1))

            def forward(self, x):
                gpu.now_ms += self.ms
                return x * self.w

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = Kernel(3), Kernel(5)

            def forward(self, x):
                x = self.a(x)
                gpu.now_ms += 2  # an operator of the enclosing module
                return self.b(x)

        self.net = Net()

    def tearDown(self):
        _cuda.cuda.finish()

    def durations(self):
        return [(name[0], name[1], round((t1 - t0) / 1e6, 3)) for name, _, _, t0, t1 in log.pasts]

    def test_work_goes_to_the_innermost_module(self):
        with self.gpu.patch(), nrg.torch.watch(self.net):
            with torch.no_grad():
                self.net(torch.ones(1))
        self.assertEqual(self.durations(), [("a", "module", 3.0), ("Net", "module", 2.0), ("b", "module", 5.0)])
        self.assertEqual({p[1:3] for p in log.pasts}, {("cuda:0", "gpu-0")})
        for (_, _, _, _, end), (_, _, _, begin, _) in zip(log.pasts, log.pasts[1:]):
            self.assertLessEqual(end, begin)

    def test_no_waiting_in_a_step(self):
        optimizer = torch.optim.SGD(self.net.parameters(), 0.1)
        with self.gpu.patch(), nrg.torch.watch(self.net):
            self.net(torch.ones(1)).sum().backward()
            tied = self.gpu.syncs
            self.gpu.done_ms = 4.0  # the GPU lags behind the host
            optimizer.step()
            self.assertEqual(self.durations(), [("a", "module", 3.0)])
            self.assertEqual(self.gpu.syncs, tied)
            self.gpu.done_ms = 100.0
            self.net(torch.ones(1)).sum().backward()
            optimizer.step()
            self.assertEqual(self.gpu.syncs, tied)
            self.assertEqual([d for d in self.durations() if d[1] == "module"],
                             [("a", "module", 3.0), ("Net", "module", 2.0), ("b", "module", 5.0)] * 2)

    def test_backward_is_placed(self):
        gpu = self.gpu

        class Slow(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                gpu.now_ms += 7
                return g

        class Back(nn.Module):
            def forward(self, x):
                return Slow.apply(x)

        net = nn.Sequential(nn.Linear(1, 1), Back(), nn.Linear(1, 1))
        with self.gpu.patch(), nrg.torch.watch(net):
            net(torch.ones(1, 1)).sum().backward()
        self.assertEqual(self.durations(), [("1", "backward", 7.0)])

    def test_the_driver_numbers_the_devices(self):
        with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="3,1"):
            self.assertEqual([_cuda.gpu_of(0), _cuda.gpu_of(1)], [3, 1])
        with mock.patch.dict(os.environ, CUDA_VISIBLE_DEVICES="GPU-8f1a"):
            self.assertEqual(_cuda.gpu_of(0), 0)

    def test_a_broken_device_is_left_alone(self):
        with self.gpu.patch(), mock.patch.object(torch.cuda, "Event", side_effect=RuntimeError("gone")):
            with nrg.torch.watch(self.net):
                self.net(torch.ones(1))
        self.assertEqual(log.pasts, [])
        self.assertEqual(log.texts("module"), ["Net", "a", "b"])
        _state.state.troubles = 0


class End(unittest.TestCase):
    def test_nothing_is_said_when_the_interpreter_ends(self):
        """A watched model, a loop that was left, an iterator and graphs at module level; no uninstall."""
        program = """
import sys
sys.path.insert(0, sys.argv[1])
import recorder_standin, torch, nrg.torch
from torch.utils.data import DataLoader, TensorDataset
net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
watch = nrg.torch.watch(net)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
loader = iter(DataLoader(TensorDataset(torch.ones(6, 2)), batch_size=2))
for (x,) in loader:
    out = net(x)
    break
try:
    torch.autograd.grad(out.sum(), torch.ones(1, requires_grad=True))
except RuntimeError as error:
    kept = error
print(len(recorder_standin.log.of("module")), flush=True)
"""
        done = subprocess.run([sys.executable, "-c", program, os.path.dirname(os.path.abspath(__file__))],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "3\n", ""))


if __name__ == "__main__":
    unittest.main()
