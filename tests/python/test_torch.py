"""nrg.torch: which spans a model's calls become, forward and backward, and that nothing else changes.

A recorder in plain Python stands in for libnrg (recorder_standin.py); PyTorch is the real one. What is
expected comes from the models' own structure, written down here, and from counting in their forward().
"""
import copy
import gc
import os
import pickle
import sys
import threading
import unittest
import weakref

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from recorder_standin import api, log  # noqa: E402  (before nrg)

try:
    import torch
    from torch import nn
    from torch.utils.checkpoint import checkpoint
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed")

import nrg.torch  # noqa: E402
from nrg.torch import _calls, _state  # noqa: E402

TORCH_2 = int(torch.__version__.split(".")[0]) >= 2


class Block(nn.Module):
    """A residual block: a module used twice, in-place operators, a branch of its own."""

    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, 1, 1)
        self.bn = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1)
        self.down = nn.Conv2d(width, width, 1)

    def forward(self, x):
        y = self.conv2(self.relu(self.bn(self.conv1(x))))
        y += self.down(x)
        return self.relu(y)


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3)
        self.layers = nn.Sequential(Block(width), Block(width))
        self.fc = nn.Linear(width, 2)

    def forward(self, x):
        return self.fc(self.layers(self.stem(x)).mean((2, 3)))


def block_names(name):
    return [name] + [name + "." + part for part in ("conv1", "bn", "relu", "conv2", "down", "relu")]


NET_NAMES = ["Net", "stem", "layers"] + block_names("layers.0") + block_names("layers.1") + ["fc"]


def images(n=2):
    return torch.randn(n, 3, 8, 8)


def setUpModule():
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)  # PyTorch itself wraps step() then


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)
        api.listening = True
        api.current += 1
        log.reset()
        self.before = self.patched()

    def tearDown(self):
        nrg.torch.uninstall()
        self.assertEqual(log.unmatched, 0)
        self.assertEqual(log.open(), [])
        self.assertEqual(_state.state.troubles, 0)
        self.assertEqual(self.patched(), self.before)

    def patched(self):
        """Everything that could be left changed."""
        data = torch.utils.data.dataloader
        optim = torch.optim.Optimizer
        places = [(nn.Module, dict(vars(nn.Module))), (optim, dict(vars(optim))),
                  (data.DataLoader, dict(vars(data.DataLoader))),
                  (data._BaseDataLoaderIter, dict(vars(data._BaseDataLoaderIter)))]
        return places + [torch.autograd.backward, torch.optim.SGD.step]

    def parents(self, kind):
        """(name, name of the enclosing span of that kind or None) of all spans of a kind."""
        return [(s.text, s.parent.text if s.parent and s.parent.kind == kind else None)
                for s in log.of(kind)]


class Forward(Case):
    def test_every_call_in_order_with_names_and_classes(self):
        net = Net()
        with nrg.torch.watch(net):
            net(images())
        self.assertEqual(log.texts("module"), NET_NAMES)
        classes = {s.text: s.detail for s in log.of("module")}
        self.assertEqual(classes["Net"], "Net")
        self.assertEqual(classes["layers"], "Sequential")
        self.assertEqual(classes["layers.1.bn"], "BatchNorm2d")
        self.assertEqual(dict(self.parents("module"))["layers.1.bn"], "layers.1")

    def test_names_are_those_of_named_modules(self):
        net = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2)
        net.train()
        with nrg.torch.watch(net, name="encoder"):
            net(torch.randn(3, 2, 8))
        known = {name for name, _ in net.named_modules() if name} | {"encoder"}
        self.assertLessEqual(set(log.texts("module")), known)
        self.assertIn("layers.1.self_attn", log.texts("module"))
        self.assertEqual(log.texts("module")[0], "encoder")

    def test_arguments_by_position_and_by_keyword(self):
        seen = []

        class Takes(nn.Module):
            def forward(self, x, *rest, scale=1.0, mask=None, **more):
                seen.append((rest, scale, mask is not None, sorted(more)))
                return x * scale

        net = Takes()
        x = torch.ones(2)
        with nrg.torch.watch(net):
            self.assertEqual(net(x, 5, scale=3.0, mask=x, other=1).tolist(), [3.0, 3.0])
            self.assertEqual(net(x=x).tolist(), [1.0, 1.0])
        self.assertEqual(seen, [((5,), 3.0, True, ["other"]), ((), 1.0, False, [])])
        self.assertEqual(log.texts("module"), ["Takes", "Takes"])

    def test_an_argument_called_self_or_args(self):
        class Odd(nn.Module):
            def forward(self, args=None, kwargs=None):
                return args, kwargs

        with nrg.torch.watch(Odd()) as _, nrg.torch.watch(odd := Odd()):
            self.assertEqual(odd(args=1, kwargs=2), (1, 2))

    def test_exceptions_leave_nothing_open(self):
        class Fails(nn.Module):
            def __init__(self, error):
                super().__init__()
                self.inner, self.error = nn.Linear(2, 2), error

            def forward(self, x):
                self.inner(x)
                api.begin(api.name("left open"))
                raise self.error

        for error in (ValueError("no"), KeyboardInterrupt(), SystemExit(3)):
            net = nn.Sequential(nn.Linear(2, 2), Fails(error))
            with nrg.torch.watch(net):
                with self.assertRaises(type(error)) as caught:
                    net(torch.ones(1, 2))
                self.assertIs(caught.exception, error)
                self.assertEqual(log.open(), [])
        self.assertEqual(log.texts("module"), ["Sequential", "0", "1", "1.inner"] * 3)

    def test_an_exception_ends_the_step(self):
        net = nn.Sequential(nn.Linear(2, 2))
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        with nrg.torch.watch(net):
            with self.assertRaises(RuntimeError):
                net(torch.ones(1, 3))
            self.assertEqual(log.open(), [])
            net(torch.ones(1, 2)).sum().backward()
            optimizer.step()
        self.assertEqual([s.number for s in log.of("step")][-1] - log.of("step")[0].number, 1)
        self.assertEqual(len(log.of("step")[1].children), 3)

    def test_a_shared_module_keeps_its_first_name(self):
        shared = nn.Linear(4, 4)
        net = nn.Sequential(shared, nn.ReLU(), shared)
        with nrg.torch.watch(net):
            net(torch.ones(1, 4))
        self.assertEqual(log.texts("module"), ["Sequential", "0", "1", "0"])

    def test_recursion(self):
        class Tree(nn.Module):
            def __init__(self):
                super().__init__()
                self.leaf = nn.Linear(2, 2)

            def forward(self, x, depth):
                return self(self.leaf(x), depth - 1) if depth else x

        net = Tree()
        with nrg.torch.watch(net):
            net(torch.ones(1, 2), 3).sum().backward()
        self.assertEqual(self.parents("module"), [("Tree", None), ("leaf", "Tree"), ("Tree", "Tree"),
                                                  ("leaf", "Tree"), ("Tree", "Tree"), ("leaf", "Tree"),
                                                  ("Tree", "Tree")])
        self.assertEqual(log.texts("backward").count("leaf"), 3)

    def test_only_the_watched_model(self):
        watched, other = nn.Linear(2, 2), nn.Linear(2, 2)
        with nrg.torch.watch(watched):
            other(watched(torch.ones(1, 2)))
        self.assertEqual(log.texts("module"), ["Linear"])
        watched(torch.ones(1, 2))
        self.assertEqual(len(log.of("module")), 1)

    def test_two_watches_end_apart(self):
        a, b = nn.Linear(2, 2), nn.Linear(2, 2)
        first, second = nrg.torch.watch(a, name="a"), nrg.torch.watch(b, name="b")
        first.remove()
        first.remove()
        b(a(torch.ones(1, 2)))
        second.remove()
        b(a(torch.ones(1, 2)))
        self.assertEqual(log.texts("module"), ["b"])

    def test_without_a_recorder_nothing_is_recorded(self):
        net = Net()
        api.listening = False
        with nrg.torch.watch(net):
            net(images()).sum().backward()
            api.listening = True
            api.current += 1
            net(images()).sum().backward()
        self.assertEqual(log.texts("module"), NET_NAMES)
        self.assertIn("stem", log.texts("backward"))

    def test_another_recorder_gets_the_same_names(self):
        net = Net()
        with nrg.torch.watch(net):
            net(images()).sum().backward()
            first = log.texts("module") + log.texts("backward")
            log.reset()
            api.current += 1
            net(images()).sum().backward()
            self.assertEqual(log.texts("module") + log.texts("backward"), first)


class Everywhere(Case):
    """install(): modules that watch() was not called for."""

    def test_roots_are_told_apart(self):
        class Other(Net):
            pass

        models = Net(), Other(), Net()
        nrg.torch.install()
        for model in models:
            model(images())
        names = log.texts("module")
        self.assertEqual(names[:len(NET_NAMES)], NET_NAMES)
        self.assertIn("Other.layers.0.conv1", names)
        self.assertIn("Net#2", names)
        self.assertIn("Net#2.fc", names)

    def test_a_loss_is_not_the_model(self):
        net, loss = Net(), nn.CrossEntropyLoss()
        nrg.torch.install()
        loss(torch.randn(2, 2), torch.zeros(2, dtype=torch.long))
        net(images())
        self.assertEqual(log.texts("module"), ["CrossEntropyLoss"] + NET_NAMES)
        self.assertEqual(log.counts, [("samples", 2)])

    def test_the_name_is_free_when_the_model_is_gone(self):
        nrg.torch.install()
        for _ in range(3):
            net = Net()
            net(images())
            del net
            gc.collect()
        self.assertEqual(log.texts("module"), NET_NAMES * 3)

    def test_modules_added_later_and_unregistered_ones(self):
        class Late(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(2, 2)

            def forward(self, x):
                if not hasattr(self, "b"):
                    self.b = nn.Sequential(nn.Linear(2, 2))
                return nn.ReLU()(self.b(self.a(x)))

        net = Late()
        nrg.torch.install()
        net(torch.ones(1, 2))
        net.a = nn.Sequential(nn.Linear(2, 2))
        net(torch.ones(1, 2))
        self.assertEqual(log.texts("module"), ["Late", "a", "b", "b.0", "ReLU",
                                               "Late", "a", "a.0", "b", "b.0", "ReLU"])

    def test_a_part_called_alone_keeps_its_name(self):
        net = Net()
        nrg.torch.install()
        net(images())
        log.reset()
        api.current += 1
        net.layers[1](torch.randn(1, 4, 8, 8))
        self.assertEqual(log.texts("module"), block_names("layers.1"))

    def test_data_parallel_without_gpu(self):
        net = nn.DataParallel(Net())
        nrg.torch.install()
        net(images())
        self.assertEqual(log.texts("module"), ["DataParallel"] + NET_NAMES)

    def test_a_wrapper_put_around_a_known_model(self):
        net = Net()
        nrg.torch.install()
        net(images())
        nn.DataParallel(net)(images())
        self.assertEqual(log.texts("module"), NET_NAMES + ["DataParallel"] + NET_NAMES)
        self.assertEqual(log.counts, [("samples", 2)] * 2)

    def test_replicas_on_threads_have_the_names_of_their_original(self):
        net = nn.DataParallel(Net())
        nrg.torch.install()
        net(images())
        log.reset()
        api.current += 1

        def replicate(module):
            copy_ = module._replicate_for_data_parallel()
            copy_._modules = {k: replicate(m) for k, m in module._modules.items()}
            copy_._parameters = dict(module._parameters)
            return copy_

        together = threading.Barrier(3)  # a thread's number is free for another when it has ended

        def run(replica):
            together.wait()
            replica(images())
            together.wait()

        replicas = [replicate(net.module) for _ in range(3)]
        threads = [threading.Thread(target=run, args=(replica,)) for replica in replicas]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        by_thread = {}
        for span in log.of("module"):
            by_thread.setdefault(span.thread, []).append(span.text)
        self.assertEqual(list(by_thread.values()), [NET_NAMES] * 3)
        self.assertEqual(log.counts, [])

    def test_many_threads_train_at_once(self):
        errors = []

        def train(net):
            try:
                optimizer = torch.optim.SGD(net.parameters(), 0.1)
                for _ in range(5):
                    optimizer.zero_grad()
                    net(images()).sum().backward()
                    optimizer.step()
            except Exception as error:
                errors.append(error)

        nrg.torch.install()
        threads = [threading.Thread(target=train, args=(Net(),)) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(errors, [])
        self.assertEqual(len(log.of("step")), 20)
        self.assertEqual(len(log.of("module")), 20 * len(NET_NAMES))
        for step in log.of("step"):
            self.assertEqual(sum(c.kind == "module" for c in step.children), 1)

    def test_copies_and_pickles_know_nothing(self):
        net = Net()
        nrg.torch.install()
        net(images()).sum().backward()
        for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            for module in other.modules():
                self.assertFalse([key for key in vars(module) if "nrg" in key])
        self.assertNotIn(b"nrg", pickle.dumps(net))
        for parameter in net.parameters():
            self.assertIsNone(parameter._backward_hooks)

    def test_models_are_not_kept_alive(self):
        nrg.torch.install()
        net = Net()
        out = net(images())
        out.sum().backward()
        alive = weakref.ref(net), weakref.ref(net.layers[0]), weakref.ref(out)
        del net, out
        gc.collect()
        self.assertEqual([a() for a in alive], [None] * 3)

    def test_graphs_are_not_kept_alive(self):
        """Hooks on nodes must not make cycles: memory of activations would stay."""
        nrg.torch.install()
        net = Net()
        gc.collect()
        gc.disable()
        try:
            x = images().requires_grad_()
            out = net(x)
            alive = weakref.ref(out)
            held = weakref.ref(x)
            del out, x
            self.assertIsNone(alive())
            self.assertIsNone(held())
        finally:
            gc.enable()


class Backward(Case):
    def test_mirrors_the_forward_pass(self):
        net = Net()
        with nrg.torch.watch(net):
            net(images()).sum().backward()
        mirrored = [("Net", None), ("fc", "Net"), ("layers", "Net")]
        for name in ("layers.1", "layers.0"):
            parts = ("relu", "down", "conv2", "relu", "bn", "conv1")
            mirrored += [(name, "layers")] + [(name + "." + part, name) for part in parts]
        self.assertEqual(self.parents("backward"), mirrored + [("stem", "Net")])

    def test_gradients_are_the_same(self):
        def gradients(watched):
            torch.manual_seed(1)
            net = Net()
            x = images().requires_grad_()
            if watched:
                with nrg.torch.watch(net):
                    net(x).square().sum().backward()
            else:
                net(x).square().sum().backward()
            return [x.grad] + [p.grad for p in net.parameters()]

        for a, b in zip(gradients(False), gradients(True)):
            self.assertTrue(torch.equal(a, b))

    def test_in_place_and_views_after_a_module(self):
        class Harsh(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(4, 4), nn.Linear(2, 2)

            def forward(self, x):
                y = self.a(x)
                y.mul_(2).relu_()
                halves = y.view(2, 2, 2).unbind(0)
                z = self.b(halves[0])
                z[:, 0] = 0
                return z.t_() if False else z.add_(halves[1])

        net = Harsh()
        with nrg.torch.watch(net):
            net(torch.randn(2, 4)).sum().backward()
        self.assertEqual(self.parents("backward"), [("Harsh", None), ("b", "Harsh"), ("a", "Harsh")])

    def test_no_gradient_no_span(self):
        net = Net()
        with nrg.torch.watch(net):
            with torch.no_grad():
                net(images())
            frozen = net.requires_grad_(False)
            frozen(images())
        self.assertEqual(log.of("backward"), [])

    def test_what_is_handed_through_has_no_backward(self):
        net = nn.Sequential(nn.Linear(2, 2), nn.Identity(), nn.Dropout(0.5), nn.Linear(2, 2)).eval()
        with nrg.torch.watch(net):
            net(torch.ones(1, 2)).sum().backward()
        self.assertEqual(log.texts("backward"), ["Sequential", "3", "0"])

    def test_backward_can_be_left_out(self):
        net = Net()
        with nrg.torch.watch(net, backward=False):
            net(images()).sum().backward()
        self.assertEqual(log.of("backward"), [])

    def test_tuples_dicts_and_unused_outputs(self):
        class Many(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

            def forward(self, x):
                return {"a": self.a(x), "b": (self.b(x), None), "n": 3}

        net = Many()
        with nrg.torch.watch(net):
            out = net(torch.ones(1, 2))
            out["a"].sum().backward()
        self.assertEqual(self.parents("backward"), [("Many", None), ("a", "Many")])

    def test_twice_with_a_retained_graph(self):
        net = Net()
        with nrg.torch.watch(net):
            out = net(images()).sum()
            out.backward(retain_graph=True)
            once = log.texts("backward")
            out.backward()
        self.assertEqual(log.texts("backward"), once * 2)

    def test_autograd_grad_and_second_derivatives(self):
        net = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
        x = torch.randn(3, 2, requires_grad=True)
        with nrg.torch.watch(net):
            (first,) = torch.autograd.grad(net(x).sum(), x, create_graph=True)
            self.assertEqual(log.texts("backward"), ["Sequential", "2", "1", "0"])
            first.square().sum().backward()
        self.assertEqual(log.open(), [])

    def test_an_error_in_backward_leaves_nothing_open(self):
        class Breaks(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, g):
                raise ValueError("broken")

        class Bad(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)

            def forward(self, x):
                return self.fc(Breaks.apply(x))

        net = nn.Sequential(nn.Linear(2, 2), Bad())
        with nrg.torch.watch(net):
            with self.assertRaisesRegex(ValueError, "broken"):
                net(torch.ones(1, 2)).sum().backward()
            gc.collect()
            self.assertEqual(log.open(), [])
            net[0](torch.ones(1, 2)).sum().backward()
        self.assertEqual(self.parents("backward"), [("Sequential", None), ("1", "Sequential"), ("1.fc", "1"),
                                                    ("0", None)])

    def test_functions_between_modules_belong_to_the_enclosing_one(self):
        """The heavy operator between two linear layers must not be charged to either of them."""
        order = []

        class Slow(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                order.append([s.text for s in log.stack() if s.kind == "backward"])
                return g

        class Mixed(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.last = nn.Linear(2, 2), nn.Linear(2, 2)

            def forward(self, x):
                return self.last(Slow.apply(self.first(x)))

        net = Mixed()
        with nrg.torch.watch(net):
            net(torch.ones(1, 2)).sum().backward()
        self.assertEqual(order, [["Mixed"]])

    def test_accumulation_into_parameters_is_inside(self):
        inside = []
        net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        net[1].weight.register_hook(lambda g: inside.append([s.text for s in log.stack()]))
        with nrg.torch.watch(net):
            net(torch.ones(1, 2)).sum().backward()
        self.assertEqual(inside, [["Sequential", "1"]])

    def test_checkpoint_recomputes_inside_the_backward_pass(self):
        for reentrant in (True, False):
            with self.subTest(reentrant=reentrant):
                log.reset()
                api.current += 1

                class Saves(nn.Module):
                    def __init__(self):
                        super().__init__()
                        self.head = nn.Linear(2, 2)
                        self.body = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
                        self.tail = nn.Linear(2, 2)

                    def forward(self, x):
                        return self.tail(checkpoint(self.body, self.head(x), use_reentrant=reentrant))

                net = Saves()
                with nrg.torch.watch(net):
                    net(torch.ones(1, 2)).sum().backward()
                self.assertEqual(log.open(), [])
                again = [s for s in log.of("module") if any(p in log.of("backward") for p in ancestors(s))]
                self.assertEqual([s.text for s in again][:4], ["body", "body.0", "body.1", "body.2"])
                self.assertEqual(log.texts("module").count("body.0"), 2)
                self.assertEqual(log.counts, [("samples", 1)])
                self.assertEqual({s.text for s in log.roots}, {"Saves"})

    def test_recurrent_attention_and_encoder(self):
        for net, x in ((nn.LSTM(4, 8, 2), torch.randn(5, 3, 4)), (nn.GRU(4, 8), torch.randn(5, 3, 4)),
                       (nn.TransformerEncoderLayer(8, 2, 16), torch.randn(5, 3, 8))):
            log.reset()
            api.current += 1
            with nrg.torch.watch(net, name="net"):
                out = net(x)
                (out[0] if isinstance(out, tuple) else out).sum().backward()
            self.assertEqual(log.texts("module")[0], "net")
            self.assertEqual(log.texts("backward")[0], "net")
            self.assertEqual(log.open(), [])

    def test_the_fast_path_of_the_encoder_stays(self):
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        x = torch.randn(2, 3, 8)
        with torch.no_grad():
            layer(x)
            with nrg.torch.watch(layer):
                layer(x)
        self.assertEqual(log.texts("module"), ["TransformerEncoderLayer"])


def ancestors(span):
    while span.parent is not None:
        span = span.parent
        yield span


class Others(Case):
    """Other users of nn.Module.__call__ go on working."""

    def test_jit_trace_and_script(self):
        net = Net().eval()
        nrg.torch.install()
        traced = torch.jit.trace(net, images(), check_trace=False)
        self.assertEqual(log.of("module"), [])
        self.assertIn("__module.layers", str(traced.inlined_graph))
        traced(images())
        scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
        scripted(torch.ones(1, 2))
        self.assertEqual(len(log.of("module")), 2)

    def test_fx(self):
        net = Net().eval()
        nrg.torch.install()
        graph = torch.fx.symbolic_trace(net)
        log.reset()
        api.current += 1
        x = images()
        self.assertTrue(torch.equal(graph(x), net(x)))
        self.assertIn("layers.0.conv1", log.texts("module"))

    def test_vmap(self):
        try:
            vmap = torch.func.vmap if TORCH_2 else __import__("functorch").vmap
        except ImportError:
            self.skipTest("functorch is not installed")
        net = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        nrg.torch.install()
        x = torch.randn(5, 2)
        self.assertTrue(torch.allclose(vmap(net)(x), net(x)))
        self.assertEqual(log.texts("module")[:3], ["Sequential", "0", "1"])

    def test_own_hooks_of_the_program(self):
        net, seen = nn.Linear(2, 2), []
        net.register_forward_hook(lambda m, a, out: seen.append("forward"))
        net.register_forward_pre_hook(lambda m, a: seen.append("pre"))
        net.register_full_backward_hook(lambda m, gi, go: seen.append("backward"))
        with nrg.torch.watch(net):
            net(torch.ones(1, 2, requires_grad=True)).sum().backward()
        self.assertEqual(seen, ["pre", "forward", "backward"])
        self.assertEqual((log.texts("module"), log.texts("backward")), (["Linear"], ["Linear"]))

    def test_a_patch_put_over_ours_stays(self):
        net = nn.Linear(2, 2)
        true = nn.Module.__dict__["__call__"]
        watch = nrg.torch.watch(net)
        ours = nn.Module.__call__

        def theirs(self, *args, **kwargs):
            return ours(self, *args, **kwargs)

        nn.Module.__call__ = theirs
        try:
            watch.remove()
            self.assertIs(nn.Module.__call__, theirs)
            net(torch.ones(1, 2))
            self.assertEqual(log.of("module"), [])
        finally:
            nn.Module.__call__ = true

    def test_trouble_of_our_own_is_not_the_programs(self):
        nrg.torch.install()
        find = _calls._names.learn_root
        _calls._names.learn_root = lambda *_: 1 / 0
        try:
            net = nn.Linear(2, 2)
            self.assertEqual(net(torch.ones(1, 2)).shape, (1, 2))
        finally:
            _calls._names.learn_root = find
        self.assertEqual(_state.state.troubles, 1)
        _state.state.troubles = 0


if __name__ == "__main__":
    unittest.main()
