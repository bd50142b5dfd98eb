"""Names that a program did not choose for us: of runs, tests, layers, modules and folders, with line ends, zeros, surrogates, a megabyte, ../ and
characters that turn a line. No training and no test run ends by them, and what is recorded holds them as text. The frameworks are stand-ins:
what matters here is what nrg makes of their names."""
import json
import subprocess
import unittest

from support import Case, NRG

NAMES = ["a\nb", "a\0b", "x" * 1000000, "../../up", "\ud800\udfff", "\udcff", "\u202eabc\u200b", "<b onload=x>&\"'", "", " ", "\x1b]0;t\x07", "a/b"]
PROLOGUE = f"""
    import json, os, sys, types, warnings
    warnings.simplefilter("always")
    names = json.loads({json.dumps(NAMES)!r})
    import nrg
    from nrg import _nrg
"""
PYTEST = """
    fake = types.ModuleType("pytest")
    fake.fixture = lambda f: f
    fake.hookimpl = lambda **kw: lambda f: f
    sys.modules["pytest"] = fake
    from nrg import pytest_plugin as plugin
"""


class HostileNames(Case):
    def program(self, text, **env):
        done = self.python(PROLOGUE.replace("\n    ", "\n") + text.replace("\n    ", "\n"), PYTHONIOENCODING="utf-8:backslashreplace", **env)
        return done

    def report(self, name):
        done = subprocess.run([NRG, "report", "--json", self.path(name)], capture_output=True, env=self.env())
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def test_notes_and_spans(self):
        self.program("""
    with nrg.record("n.nrg", root=os.getcwd(), note={str(i): name for i, name in enumerate(names)} | {"k\\0y": "v"}) as run:
        for name in names:
            assert _nrg.name(name, "module", name), name[:20]
            _nrg.begin(_nrg.name(name, "module", name))
            _nrg.end()
    with nrg.record("second.nrg", root=os.getcwd()):
        pass
    """)
        text = self.report("n.nrg")
        self.assertIn("\\\\x00", text)
        self.assertNotIn("\x1b", text)

    def test_paths_are_refused_in_one_way(self):
        self.program("""
    for name in set(names) - {"", "../../up"}:
        try:
            with nrg.record(os.path.join("no-folder", name), root=os.getcwd()):
                pass
        except nrg.Error as error:
            assert str(error)
        else:
            raise AssertionError(name[:20])
    """)

    def test_trainer_and_lightning_folders(self):
        """What can't be a folder is a warning, and the training goes on; nothing is made outside of the folder given."""
        self.program("""
    base = types.ModuleType("lightning.pytorch")
    base.Callback = object
    sys.modules["lightning.pytorch"] = base
    transformers = types.ModuleType("transformers")
    transformers.TrainerCallback = object
    sys.modules["transformers"] = transformers
    import nrg.lightning, nrg.transformers
    class Bad:
        def log_metrics(self, scalars, step):
            raise ValueError(names[1] + names[4])
        save = lambda self: None
    for name in names:
        trainer = types.SimpleNamespace(log_dir=os.path.join("out", name.replace("..", "up")), default_root_dir=".", local_rank=0, global_step=1, log_every_n_steps=1,
                                        is_global_zero=True, loggers=[type(name[:50].replace("\\0", "").encode("utf-8", "ignore").decode() or "L", (Bad,), {})()])
        callback = nrg.lightning.Callback(sensors="estimate")
        callback.on_train_start(trainer, None)
        callback.on_train_batch_start(trainer, None, None, 0)
        callback.on_train_batch_end(trainer, None, None, None, 0)
        callback.on_train_end(trainer, None)
        state = types.SimpleNamespace(is_world_process_zero=True, is_local_process_zero=True, global_step=1, log_history=[])
        arguments = types.SimpleNamespace(output_dir=os.path.join("hf", name.replace("..", "up")), report_to=[name], logging_dir=None)
        callback = nrg.transformers.Callback(sensors="estimate")
        callback.on_train_begin(arguments, state, None)
        callback.on_step_begin(arguments, state, None)
        callback.on_step_end(arguments, state, None)
        callback.on_log(arguments, state, None, logs={name: 1.0})
        callback.on_train_end(arguments, state, None)
    assert set(os.listdir(".")) <= {"out", "hf", "program.py"}, os.listdir(".")
    """)

    def test_layers_of_keras(self):
        self.program("""
    import nrg.keras
    class Layer:
        def __init__(self, name): self.name = name
        def call(self, x): return x
    class Model(Layer):
        run_eagerly = True
        layers = [Layer(name) for name in names]
    model = Model(names[1])
    with nrg.record("k.nrg", root=os.getcwd()):
        callback = nrg.keras.Callback()
        callback.set_model(model)
        callback.on_train_begin()
        callback.on_epoch_begin(0)
        callback.on_train_batch_begin(0)
        for layer in model.layers:
            assert layer.call(7) == 7
        callback.on_train_batch_end(0)
        callback.on_epoch_end(0)
        callback.on_train_end()
    """)
        self.report("k.nrg")

    def test_ids_of_tests(self):
        self.program(PYTEST + """
    files = [plugin.file_name("t.py::" + name) for name in names + ["x" * 999999 + "y", "a-b", "\\u4e2d" * 200]]
    assert len(set(files)) == len(files)
    for file in files:
        assert file.isascii() and len(file) < 200 and "/" not in file and file[0] not in "-.", file
    for name in names:
        line = plugin.shown(name)
        assert line.isprintable() and len(line) < 3000, line
        line.encode("utf-8")
    class Config:
        _nrg_rows = [("t.py::" + name, 1.0, None, 1.0, "measured") for name in names]
        def getoption(self, name): return True if name == "--nrg" else None
    class Reporter:
        lines = []
        def section(self, text): pass
        def write_line(self, text): self.lines.append(text)
    plugin.pytest_terminal_summary(Reporter(), Config())
    assert len(Reporter.lines) == len(names) + 1 and all("\\n" not in line for line in Reporter.lines)
    """)

    def test_a_test_is_measured_whatever_its_id(self):
        self.program(PYTEST + """
    class Config:
        _nrg_rows = []
        def getoption(self, option): return {"--nrg": True, "--nrg-folder": "kept"}[option]
    class Item:
        config = Config()
        def __init__(self, nodeid): self.nodeid = nodeid
        def get_closest_marker(self, name): return None
    for name in names:
        item = Item("t.py::" + name)
        call = plugin.pytest_runtest_call(item)
        next(call)
        try: next(call)
        except StopIteration: pass
    assert len(os.listdir("kept")) == len(names), os.listdir("kept")
    assert len(Config._nrg_rows) == len(names)
    """)

    def test_a_folder_that_can_t_be_made_is_no_reason_to_fail(self):
        self.program(PYTEST + """
    open("file", "w").close()
    for folder in ("file/x", "a\\0b", "\\ud800"):
        class Config:
            _nrg_rows = []
            def getoption(self, option): return {"--nrg": True, "--nrg-folder": folder}[option]
        class Item:
            config, nodeid = Config(), "t.py::t"
            def get_closest_marker(self, name): return None
        call = plugin.pytest_runtest_call(Item())
        next(call)
        try: next(call)
        except StopIteration: pass
    """)


if __name__ == "__main__":
    unittest.main()
