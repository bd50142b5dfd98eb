"""nrg run --torch: unchanged PyTorch programs, and all the programs that it must not harm.

The programs are run with and without nrg: what they print and how they exit must be the same. Names of
spans come from the models' own named_modules().
"""
import glob
import json
import os
import re
import shutil
import sqlite3
import subprocess
import textwrap
import unittest
from collections import Counter

import support
from support import Case, LIMIT_S, PYTHON, TOOLS, TOP, query

# Not a sanitized build: what nrg injects is loaded by an interpreter that is not sanitized.
BUILD = os.path.abspath(os.environ.get("NRG_PLAIN_BUILD") or os.path.dirname(TOOLS))
support.NRG = NRG = os.path.join(BUILD, "nrg")
LIBRARY = os.path.join(BUILD, "src", "libnrg.so.0")
PROGRAMS = os.path.join(TOP, "tests", "data", "torch")
TORCH_PYTHON = os.environ.get("NRG_TORCH_PYTHON") or PYTHON

try:
    import torch
except ImportError:
    torch = None

TINY = """
    import torch
    from torch import nn

    class Tiny(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 1)

        def forward(self, x, scale=1.0):
            return self.last(self.first(x)) * scale

    def work():
        net = Tiny()
        net(torch.ones(3, 4), scale=2.0).sum().backward()
"""


class Span:
    def __init__(self, name, number, begin_ns, parent):
        (self.kind, self.name), self.number, self.begin_ns, self.end_ns = name, number, begin_ns, None
        self.parent, self.children = parent, []
        if parent:
            parent.children.append(self)


def follow(read, names):
    """Spans from events: an end closes what its track began last."""
    found, stacks = [], {}
    for (t_ns, track), (_, event), (_, name), (_, value) in zip(*(read[c] for c in ("track", "event", "name",
                                                                                  "value"))):
        stack = stacks.setdefault(track, [])
        if event == 0:
            stack.append(Span(names[name], value, t_ns, stack[-1] if stack else None))
            found.append(stack[-1])
        elif event == 1:
            stack.pop().end_ns = t_ns
    assert not any(stacks.values()), "spans are open at the end"
    return found


@unittest.skipIf(torch is None, "PyTorch is not installed (Debian: python3-torch)")
class TorchCase(Case):
    def setUp(self):
        super().setUp()
        if not os.path.exists(os.path.join(BUILD, "python", "nrg", "_nrg.abi3.so")):
            self.skipTest("the extension is not built (Debian: python3-dev)")
        self.out = self.path("out.nrg")

    def environment(self, **more):
        env = {k: v for k, v in self.env().items() if not k.startswith("PYTHON")}
        env.update(NRG_LIBRARY=LIBRARY, NRG_DEBUG="1", PYTHONDONTWRITEBYTECODE="1")
        env.update(more)
        return env

    def program(self, text, name="program.py"):
        return self.write(name, textwrap.dedent(text))

    def torch_run(self, *command, options=(), code=0, **env):
        """nrg run --torch; its output, after checking that nothing went wrong inside."""
        done = self.nrg("run", "--quiet", "--torch", "--force", "-o", self.out, *options, "--", *command,
                        env=self.environment(**env))
        err = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, err)
        self.assertNotIn("Traceback", err)
        return done

    def same_as_without(self, *command, **env):
        """Prints and exits as it does alone; returns what it printed."""
        alone = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.dir,
                               stdin=subprocess.DEVNULL, env=self.environment(**env), timeout=LIMIT_S)
        done = self.nrg("run", "--quiet", "--torch", "--force", "-o", self.out, "--", *command,
                        env=self.environment(**env))
        self.assertEqual(done.stdout, alone.stdout)
        self.assertEqual(done.stderr, alone.stderr)
        self.assertEqual(done.returncode, alone.returncode)
        return done.stdout.decode()

    def names(self, kind):
        return {name for name, in query(self.out, f"SELECT name FROM span_name WHERE kind='{kind}'")}

    def pids(self):
        return {pid for pid, in query(self.out, "SELECT pid FROM span_track WHERE kind='thread'")}

    def spans(self):
        """All spans of the recording, by the reader that docs/recording-format.md gives."""
        with open(os.path.join(TOP, "docs", "recording-format.md"), encoding="utf-8") as f:
            reader = {"__name__": "reader"}
            exec(re.search(r"^```python\n(.*?)^```", f.read(), re.M | re.S)[1], reader)
        db = sqlite3.connect(f"file:{self.out}?mode=ro", uri=True)
        names = {row[0]: row[1:] for row in db.execute("SELECT id, kind, name FROM span_name")}
        found = []
        for series, columns in db.execute("SELECT id, columns FROM series WHERE kind='spans'").fetchall():
            order = columns.split(",")
            read = {c: list(reader["samples"](db, series, order.index(c)))
                    for c in ("track", "event", "name", "value")}
            found += follow(read, names)
        db.close()
        return found

    def attribute(self, *options):
        done = self.nrg("attribute", "--json", *options, self.out, env=self.environment())
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)


class Unchanged(TorchCase):
    def test_resnet18(self):
        self.same_as_without(TORCH_PYTHON, os.path.join(PROGRAMS, "resnet18.py"), "2")
        modules = self.names("module")
        for name in ("ResNet", "conv1", "layer1", "layer2.0.downsample.0", "layer4.1.bn2", "fc"):
            self.assertIn(name, modules)
            self.assertIn(name, self.names("backward"))
        self.assertEqual(len(modules), 67 + 2)  # those of named_modules() that are called, and the loss
        self.assertEqual((self.names("step"), self.names("epoch")), ({"step"}, {"epoch"}))
        self.assertIn("optimizer.step", self.names("phase"))
        self.assertEqual(self.names("counter"), {"samples"})
        spans = self.spans()
        calls = Counter((s.kind, s.name) for s in spans)
        for kind in ("module", "backward"):
            self.assertEqual([calls[kind, n] for n in ("ResNet", "layer3.0.conv1", "layer1.0.relu")], [2, 2, 4])
        steps = [s for s in spans if s.kind == "step"]
        self.assertEqual([(s.number, s.parent.kind) for s in steps], [(1, "epoch"), (2, "epoch")])
        for step in steps:
            self.assertEqual([(c.kind, c.name) for c in step.children],
                             [("module", "ResNet"), ("module", "CrossEntropyLoss"), ("backward", "CrossEntropyLoss"),
                              ("backward", "ResNet"), ("phase", "optimizer.step")])

    def test_bert(self):
        self.same_as_without(TORCH_PYTHON, os.path.join(PROGRAMS, "bert.py"), "2")
        modules = self.names("module")
        for name in ("Bert", "embeddings.word_embeddings", "layers.3.attention.query", "layers.0.output", "head"):
            self.assertIn(name, modules)
            self.assertIn(name, self.names("backward"))

    def test_operators(self):
        script = self.program(TINY + "\n    work()\n")
        self.torch_run(TORCH_PYTHON, script, options=("--torch=operators",))
        self.assertIn("aten::addmm", self.names("operator"))
        marks = self.names("mark")
        self.assertEqual([m.rsplit(" ", 3)[0] for m in marks], ["operator spans cost about"])
        notes = json.loads(self.nrg("attribute", "--json", self.out).stdout)["notes"]
        self.assertEqual([note["why"] for note in notes if note["why"] in marks], list(marks))

    def test_as_a_module_and_as_a_script_with_arguments(self):
        self.write("package/__init__.py", "")
        self.program(TINY + "\n    import sys\n    work()\n    print(sys.argv[1:], __name__)\n", "package/__main__.py")
        out = self.same_as_without(TORCH_PYTHON, "-m", "package", "-x", "--torch")
        self.assertIn("['-x', '--torch'] __main__", out)
        self.assertIn("first", self.names("module"))

    def test_entry_point(self):
        self.program(TINY + "\n    def main():\n        work()\n        return 3\n", "tinymodule.py")
        script = self.write("bin/tiny", "#!%s\nimport sys\nfrom tinymodule import main\nsys.exit(main())\n"
                            % TORCH_PYTHON, 0o755)
        self.torch_run(script, code=3, PYTHONPATH=self.dir)
        self.assertIn("first", self.names("module"))

    def test_workers_forked_and_spawned(self):
        self.program(TINY, "tiny.py")
        script = self.program("""
            import multiprocessing, os, sys
            import tiny

            def job(n):
                tiny.work()
                return os.getpid()

            if __name__ == "__main__":
                tiny.work()
                with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
                    pids = set(pool.map(job, range(8), chunksize=1))
                print(sorted(pids | {os.getpid()}))
            """)
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method=method):
                done = self.torch_run(TORCH_PYTHON, script, method, OMP_NUM_THREADS="1")
                self.assertLessEqual(set(json.loads(done.stdout)), self.pids())
                self.assertIn("first", self.names("module"))

    def test_a_program_that_fails(self):
        script = self.program(TINY + "\n    work()\n    raise SystemExit('gone wrong')\n")
        self.same_as_without(TORCH_PYTHON, script)
        self.assertIn("first", self.names("module"))

    def test_traced_model_is_kept(self):
        script = self.program(TINY + """
    import nrg.torch
    traced = nrg.torch.trace(Tiny(), torch.ones(3, 4), scale=3.0)
    print(traced.stored)
    """)
        result = self.path("result.json")
        done = self.torch_run(TORCH_PYTHON, script, options=(f"--json={result}",))
        self.assertEqual(done.stdout, b"True\n")
        self.assertNotIn(b"not kept", done.stderr)
        self.assertEqual(query(self.out, "SELECT name, format FROM graph"), [("Tiny", "torchscript")])
        with open(result) as f:
            self.assertEqual(json.load(f)["model"], {"params": 25, "macs": 3 * 4 * 4 + 3 * 4})


class Harmless(TorchCase):
    def test_torch_is_never_imported(self):
        script = self.program("import sys\nprint('torch' in sys.modules, 'nrg' in sys.modules, sys.argv)\n")
        self.assertEqual(self.same_as_without(PYTHON, script, "a"), f"False False ['{script}', 'a']\n")
        self.assertEqual(self.names("module"), set())

    def test_torch_can_not_be_imported(self):
        self.write("broken/torch.py", "raise ImportError('no torch today')\n")
        script = self.program("""
            try:
                import torch
            except ImportError as error:
                print(error)
            """)
        self.same_as_without(PYTHON, script, PYTHONPATH=self.path("broken"))
        self.write("other/torch.py", "import sys\nloaded = __spec__.loader.__class__.__name__\n")
        script = self.program("import torch\nprint(torch.loaded, vars(torch.__spec__.loader))\n")
        self.same_as_without(PYTHON, script, PYTHONPATH=self.path("other"), NRG_DEBUG="")

    def test_nothing_is_left_in_the_path_or_in_torch(self):
        script = self.program("""
            import sys
            print(sys.path)
            import torch
            print([p for p in sys.path if "inject" in p], type(torch.__spec__.loader).__name__,
                  "exec_module" in vars(torch.__spec__.loader))
            # One that waits for transformers may stay; that for torch is gone.
            print([f for f in sys.meta_path if "nrg" in type(f).__module__ and f.name == "torch"])
            """)
        self.same_as_without(TORCH_PYTHON, script)

    def test_own_sitecustomize_and_usercustomize(self):
        self.write("site/sitecustomize.py", "import builtins\nbuiltins.seen = getattr(builtins, 'seen', 0) + 1\n")
        script = self.program("""
            import os, sys
            site = sys.modules["sitecustomize"].__file__
            print(seen, os.path.basename(os.path.dirname(site)), os.environ["PYTHONSTARTUP"])
            import torch
            """)
        out = self.same_as_without(TORCH_PYTHON, script, PYTHONPATH=self.path("site"), PYTHONSTARTUP="/nowhere")
        self.assertEqual(out, "1 site /nowhere\n")
        self.write("site/sitecustomize.py", "import torch\nprint('early')\n")
        script = self.program(TINY + "\n    work()\n")
        self.same_as_without(TORCH_PYTHON, script, PYTHONPATH=self.path("site"))
        self.assertIn("first", self.names("module"))

    def test_a_sitecustomize_that_fails(self):
        self.write("site/sitecustomize.py", "raise RuntimeError('mine')\n")
        script = self.program(TINY + "\n    work()\n    print('ran')\n")
        alone = subprocess.run([TORCH_PYTHON, script], env=self.environment(PYTHONPATH=self.path("site")),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S)
        done = self.nrg("run", "--quiet", "--torch", "-o", self.out, "--", TORCH_PYTHON, script,
                        env=self.environment(PYTHONPATH=self.path("site")))
        self.assertEqual((done.returncode, done.stdout), (alone.returncode, alone.stdout))
        self.assertIn(b"RuntimeError: mine", done.stderr)
        self.assertIn("first", self.names("module"))

    def test_a_module_of_the_program_called_nrg(self):
        self.write("nrg.py", "WHO = 'the program'\n")
        script = self.program("import torch\nimport nrg\nprint(nrg.WHO, nrg.__file__)\n" + textwrap.dedent(TINY)
                              + "\nwork()\nimport nrg\nprint(nrg.WHO)\n")
        self.assertIn("the program", self.same_as_without(TORCH_PYTHON, script))
        self.assertIn("first", self.names("module"))

    def test_isolated_interpreters_run_without(self):
        script = self.program("print('ran')\n")
        for flag in ("-I", "-E", "-S"):
            self.assertEqual(self.same_as_without(PYTHON, flag, script), "ran\n")

    def test_another_interpreter(self):
        fake = self.write("python", "#!/bin/sh\necho \"fake $1\"\nexit 7\n", 0o755)
        self.assertEqual(self.same_as_without(fake, "train.py"), "fake train.py\n")
        self.same_as_without("sh", "-c", "exit 9")

    def test_python_path_of_the_program_counts(self):
        self.write("lib/only_here.py", "X = 5\n")
        script = self.program("import only_here\nprint(only_here.X)\n")
        self.assertEqual(self.same_as_without(PYTHON, script, PYTHONPATH=self.path("lib")), "5\n")

    def test_warnings_as_errors(self):
        script = self.program(TINY + "\n    import warnings\n    warnings.simplefilter('error')\n    work()\n"
                                     "    print('ran')\n")
        self.torch_run(TORCH_PYTHON, script)

    def test_interpreters_of_all_ages(self):
        found = {shutil.which(name) for name in ["python2", "python2.7"] + ["python3.%d" % n for n in range(4, 16)]}
        found |= set(glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python")))
        ran = [self.same_as_without(python, "-c", "import sys; sys.stdout.write('%d.%d ran' % sys.version_info[:2])",
                                    HOME=os.path.expanduser("~")) for python in sorted(found - {None})
               if subprocess.run([python, "-c", ""], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0]
        self.assertEqual([line for line in ran if not line.endswith(" ran")], [])
        if not any(line.startswith("2.") for line in ran):
            with open(os.path.join(TOP, "python", "nrg", "inject", "sitecustomize.py")) as f:
                text = f.read()
            for word in ("f\"", "f'", ":=", "async ", "nonlocal ", "yield from", "print("):
                self.assertNotIn(word, text)


class Memory(TorchCase):
    def test_no_objects_are_left_behind(self):
        """Calls of modules in all the ways that they can go: a block per call would be thousands."""
        script = self.program("""
            import gc, sys, torch
            from torch import nn
            from torch.utils.checkpoint import checkpoint

            class Odd(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.inner, self.fails = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), False

                def forward(self, x):
                    x = self.inner(x)
                    if self.fails:
                        raise ValueError
                    return x

            torch.set_num_threads(1)
            odd = Odd()
            net = nn.Sequential(nn.Sequential(nn.Linear(4, 4), odd), nn.Linear(4, 1))
            optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
            x = torch.ones(3, 4, requires_grad=True)

            def train():
                optimizer.zero_grad()
                net(x).sum().backward()
                optimizer.step()

            def infer():
                with torch.no_grad():
                    net(x)

            def forget(): net(x)  # a graph that is never run

            def fail():
                odd.fails = True
                try:
                    net(x)
                except ValueError:
                    pass
                odd.fails = False

            def twice():
                loss = net(x).sum()
                loss.backward(retain_graph=True)
                loss.backward()

            def recompute(): checkpoint(net, x).sum().backward()

            for way in train, infer, forget, fail, twice, recompute:
                for rounds in 50, 400:
                    gc.collect()
                    before = sys.getallocatedblocks()
                    for _ in range(rounds): way()
                    gc.collect()
                print(way.__name__, sys.getallocatedblocks() - before < 200)
            """)
        out = self.torch_run(TORCH_PYTHON, "-W", "ignore", script).stdout.decode()
        self.assertEqual(dict(line.split() for line in out.splitlines()),
                         dict.fromkeys(("train", "infer", "forget", "fail", "twice", "recompute"), "True"))


class Usage(TorchCase):
    def test_what_to_mark(self):
        done = self.nrg("run", "--torch=layers", "--", "true")
        self.assertEqual(done.returncode, 2)
        self.assertIn("layers", self.one_line(done.stderr))

    def test_only_with_a_command(self):
        done = self.nrg("run", "--torch", "--system", "--for", "1s")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--torch", self.one_line(done.stderr))

    def test_python_parts_that_are_not_there(self):
        copy = shutil.copy(NRG, self.path("nrg"))
        done = subprocess.run([copy, "run", "--quiet", "--torch", "-o", self.out, "--", "sh", "-c", "exit 5"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.dir, timeout=LIMIT_S,
                              env=dict(self.env(), LD_LIBRARY_PATH=os.path.join(BUILD, "src")))
        self.assertEqual(done.returncode, 5)
        self.assertIn("runs without", self.one_line(done.stderr))

    def test_no_folder_is_left_behind(self):
        self.write("tmp/x", "")
        done = self.nrg("run", "--quiet", "--torch", "-o", self.out, "--", "true",
                        env=self.environment(TMPDIR=self.path("tmp")))
        self.assertEqual(done.returncode, 0)
        self.assertEqual(os.listdir(self.path("tmp")), ["x"])


class Against(TorchCase):
    """nrg predict --against: every module of a real program finds its prediction."""
    NET = """
        import torch, nrg.torch
        from torch import nn

        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b, self.same = nn.Linear(32, 64), nn.Linear(64, 32), nn.Identity()

            def forward(self, x):
                return x + self.same(self.b(torch.relu(self.a(x))))

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.blocks, self.head = nn.ModuleList(Block() for _ in range(2)), nn.Linear(32, 4)

            def forward(self, x):
                for block in self.blocks:
                    x = block(block(x))
                return self.head(x)

        net, x = Net(), torch.ones(16, 32)
        nrg.torch.trace(net, x)
        optimizer = torch.optim.SGD(net.parameters(), 0.01)
        for _ in range(5):
            optimizer.zero_grad()
            net(x).sum().backward()
            optimizer.step()
    """

    def test_all_modules_are_found(self):
        machine = self.write("machine.txt", "domain package-0\n  power 0s:30\n")
        self.torch_run(TORCH_PYTHON, self.program(self.NET), options=["--sensor", "simulate:" + machine])
        rows = "".join(f"box,m{i},aten::linear,operator,{macs},{macs},{macs},{macs * 1e-9 * (1 + i / 50)}\n"
                       for i in range(3) for macs in (1000, 10000, 100000))
        data = self.write("d.csv", "device,model,kind,level,macs,read_bytes,written_bytes,energy_j\n" + rows)
        self.assertEqual(self.nrg("train", "-q", data, "-o", self.path("p.json")).returncode, 0)
        done = self.nrg("predict", "--profile", self.path("p.json"), "--against", self.out, "--json")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        got = json.loads(done.stdout)
        modules = {m["name"]: m for m in got["modules"]}
        self.assertEqual((got["only_in_graph"], got["only_in_recording"]), ([], []))
        self.assertEqual(got["without_operators"], ["blocks.0.same", "blocks.1.same"])
        for name, calls in (("", 1), ("head", 1), ("blocks.0", 2), ("blocks.1.a", 2)):
            self.assertEqual((modules[name]["calls"], modules[name]["recorded_calls"]), (calls, 5 * calls), name)
            self.assertGreater(modules[name]["predicted_j"], 0)
        self.assertGreater(got["left_out"]["backward_calls"], 0)


if __name__ == "__main__":
    unittest.main()
