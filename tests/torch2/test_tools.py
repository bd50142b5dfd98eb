"""nrg with the real packages that people train, test and write notebooks with: Hugging Face's Trainer, Lightning, TensorBoard, W&B, MLflow, pytest and IPython.

The machine is simulated: 100 W, constant, so that joules are 100 times the seconds. Each test is skipped where its package can't be had. W&B runs offline, MLflow into a folder.
"""
import csv
import json
import os
import re
import shutil
import subprocess
import tempfile
import textwrap
import unittest

PYTHON = os.environ.get("NRG_TORCH_PYTHON")
SOURCE = os.path.abspath(os.environ.get("NRG_SOURCE") or ".")
BUILD = os.path.abspath(os.environ.get("NRG_BUILD") or os.path.join(SOURCE, "build"))
LIMIT_S = 300
POWER_W = 100

TRAIN_HF = """
    import json, time, torch, transformers, nrg
    import nrg.transformers
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
            self.calls = 0
        def forward(self, x, labels=None):
            self.calls += 1
            time.sleep(0.03)  # many updates of the sensor
            if self.calls > FAIL_AT:
                raise ArithmeticError("in the model")
            return {"loss": ((self.layer(x) - labels) ** 2).mean()}
    class Data(torch.utils.data.Dataset):
        def __len__(self):
            return 48
        def __getitem__(self, i):
            return {"x": torch.full((4,), float(i)), "labels": torch.zeros(1)}
    args = transformers.TrainingArguments(output_dir="out", per_device_train_batch_size=4, num_train_epochs=1, logging_steps=4,
                                          report_to=REPORT, disable_tqdm=True, save_strategy="no", use_cpu=True, learning_rate=1e-4)
    callback = nrg.transformers.Callback(sensors="simulate:machine.txt")
    trainer = transformers.Trainer(Net(), args, train_dataset=Data(), callbacks=[callback])
    try:
        trainer.train()
    except ArithmeticError as error:
        print("raised:", error)
    run = nrg.open(callback.recording.path)
    print(json.dumps({"history": trainer.state.log_history, "joules": callback.energy_j, "run_j": run.energy().joules,
                      "duration_s": run.duration_s, "steps": [r for r in run.table("path") if r["kind"] == "step"]}))
"""

TRAIN_LIGHTNING = """
    import json, torch, nrg
    import lightning.pytorch as pl
    from lightning.pytorch.loggers import CSVLogger
    import nrg.lightning
    class Net(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
        def training_step(self, batch, i):
            if self.global_step >= FAIL_AT:
                raise ArithmeticError("in the model")
            return (self.layer(batch) ** 2).mean()
        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 1e-4)
    callback = nrg.lightning.Callback(sensors="simulate:machine.txt")
    loggers = [CSVLogger("logs", flush_logs_every_n_steps=1), *MORE]
    trainer = pl.Trainer(max_epochs=1, callbacks=[callback], logger=loggers, log_every_n_steps=4, enable_progress_bar=False,
                         enable_checkpointing=False, enable_model_summary=False, accelerator="cpu")
    try:
        trainer.fit(Net(), torch.utils.data.DataLoader(torch.rand(48, 4), batch_size=4))
    except ArithmeticError as error:
        print("raised:", error)
    run = nrg.open(callback.recording.path)
    print(json.dumps({"joules": callback.energy_j, "run_j": run.energy().joules, "csv": loggers[0].log_dir + "/metrics.csv"}))
"""


def has(*modules):
    return PYTHON and not subprocess.run([PYTHON, "-c", "import " + ", ".join(modules)], capture_output=True).returncode


def needs(*modules):
    return unittest.skipUnless(has(*modules), "NRG_TORCH_PYTHON is not set" if not PYTHON else "not from PyPI here: " + ", ".join(modules))


@unittest.skipUnless(PYTHON, "NRG_TORCH_PYTHON is not set")
class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="nrg-tools-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.write("machine.txt", "domain package-0\n power %d\n" % POWER_W)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(textwrap.dedent(text))

    def run_python(self, *arguments, code=0, **env):
        more = {k: v for k, v in os.environ.items() if not k.startswith(("NRG_", "PYTHON", "WANDB", "MLFLOW"))}
        more.update(PYTHONPATH=os.path.join(BUILD, "python"), NRG_BIN=os.path.join(BUILD, "nrg"), HF_HUB_OFFLINE="1", WANDB_MODE="offline",
                    WANDB_SILENT="true", MLFLOW_ALLOW_FILE_STORE="true", PYTHONDONTWRITEBYTECODE="1", HOME=self.folder, CUDA_VISIBLE_DEVICES="", **env)
        done = subprocess.run([PYTHON, *arguments], cwd=self.folder, env=more, capture_output=True, text=True, timeout=LIMIT_S,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def program(self, text, before="", **values):
        text = textwrap.dedent(text)
        for key, value in values.items():
            text = text.replace(key, value)
        self.write("program.py", textwrap.dedent(before) + text)
        done = self.run_python("program.py")
        return json.loads(done.stdout.strip().splitlines()[-1]), done

    def events(self, folder):
        """Scalars of a TensorBoard folder: {tag: [(step, value)]}."""
        done = self.run_python("-c", textwrap.dedent("""
            import json, sys
            from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
            found = EventAccumulator(sys.argv[1]); found.Reload()
            print(json.dumps({tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}))"""), folder)
        return json.loads(done.stdout.strip().splitlines()[-1])


@needs("transformers", "accelerate")
class HuggingFace(Case):
    def check(self, got, steps, logs):
        """12 steps, or fewer; each log has the energy of its steps."""
        entries = [entry for entry in got["history"] if "nrg/energy_j" in entry]
        self.assertEqual([entry["step"] for entry in entries], logs, got["history"])
        self.assertAlmostEqual(entries[-1]["nrg/energy_j"], got["joules"], places=6)
        self.assertAlmostEqual(sum(e["nrg/energy_per_step_j"] * n for e, n in zip(entries, steps)), got["joules"], places=6)
        for entry in entries:
            self.assertAlmostEqual(entry["nrg/power_w"] / POWER_W, 1, delta=0.1)
        self.assertLess(got["joules"], got["run_j"])
        self.assertAlmostEqual(got["run_j"] / (POWER_W * got["duration_s"]), 1, delta=0.01)

    def test_logs(self):
        got, _ = self.program(TRAIN_HF, FAIL_AT="99", REPORT="'none'")
        self.check(got, [4, 4, 4], [4, 8, 12])
        self.assertEqual([row["calls"] for row in got["steps"]], [12])

    def test_an_exception(self):
        got, done = self.program(TRAIN_HF, FAIL_AT="6", REPORT="'none'")
        self.assertIn("raised: in the model", done.stdout)
        self.check(got, [4, 2], [4, 6])

    @needs("tensorboard", "wandb", "mlflow")
    def test_trackers(self):
        self.program(TRAIN_HF, before="""
            import wandb, mlflow
            mlflow.set_tracking_uri("file:tracked")
            mlflow.set_experiment("e"); mlflow.start_run(run_name="nrg")
            run = wandb.init(project="nrg", mode="offline")
            logged = []
            original = run.log
            run.log = lambda data, *a, **k: (logged.append(dict(data)), original(data, *a, **k))[1]
            import atexit
            @atexit.register
            def keep():
                import json
                client = mlflow.MlflowClient()
                mine = client.search_runs([client.get_experiment_by_name("e").experiment_id])[0]
                history = client.get_metric_history(mine.info.run_id, "nrg/energy_j")
                json.dump({"wandb": logged, "mlflow": [(m.step, m.value) for m in history]}, open("trackers.json", "w"))
            """, FAIL_AT="99", REPORT="['tensorboard']")
        with open(self.path("trackers.json"), encoding="utf-8") as text:
            kept = json.load(text)
        shown = [folder for folder, _, files in os.walk(self.path("out")) if any(f.startswith("events.") for f in files)]
        energies = {folder: self.events(folder).get("nrg/energy_j") for folder in shown}
        found = [e for e in energies.values() if e]
        self.assertEqual([[step for step, _ in e] for e in found], [[4, 8, 12]], energies)
        self.assertEqual([step for step, _ in kept["mlflow"]], [4, 8, 12])
        ours = [entry["nrg/energy_j"] for entry in kept["wandb"] if "nrg/energy_j" in entry]
        for (_, a), (_, b), c in zip(found[0], kept["mlflow"], ours):
            self.assertAlmostEqual(a / b, 1, places=5)  # TensorBoard keeps single precision
            self.assertAlmostEqual(c, b, places=6)
        self.assertEqual(len(ours), 3)


@needs("lightning")
class Lightning(Case):
    def rows(self, got):
        with open(self.path(got["csv"]), encoding="utf-8") as text:
            return [row for row in csv.DictReader(text) if row.get("nrg/energy_j")]

    def test_logs(self):
        got, _ = self.program(TRAIN_LIGHTNING, FAIL_AT="99", MORE="[]")
        rows = self.rows(got)
        self.assertEqual([int(row["step"]) for row in rows], [4, 8, 12])
        self.assertAlmostEqual(float(rows[-1]["nrg/energy_j"]), got["joules"], places=6)
        self.assertAlmostEqual(sum(4 * float(row["nrg/energy_per_step_j"]) for row in rows), got["joules"], places=6)
        self.assertLess(got["joules"], got["run_j"])

    def test_an_exception(self):
        got, done = self.program(TRAIN_LIGHTNING, FAIL_AT="6", MORE="[]")
        self.assertIn("raised: in the model", done.stdout)
        self.assertEqual([int(row["step"]) for row in self.rows(got)], [4, 6])

    @needs("tensorboard")
    def test_tensorboard(self):
        self.program(TRAIN_LIGHTNING, before="from lightning.pytorch.loggers import TensorBoardLogger\n", FAIL_AT="6",
                     MORE="[TensorBoardLogger('tb', version='v')]")
        self.assertEqual([step for step, _ in self.events(self.path("tb", "lightning_logs", "v"))["nrg/energy_j"]], [4, 6])


@needs("pytest")
class Pytest(Case):
    TESTS = """
        import asyncio, time, unittest, pytest

        def test_plain():
            time.sleep(0.05)

        @pytest.mark.nrg(joules=1e6)
        def test_within():
            time.sleep(0.05)

        @pytest.mark.nrg(joules=1e-6, of="machine")
        def test_marked():
            time.sleep(0.3)

        def test_says_so_itself(nrg_energy):
            nrg_energy.limit(1e-6, of="machine", sure=True)
            time.sleep(0.3)

        @pytest.mark.nrg(joules=1e-6, of="machine")
        def test_fails_by_itself():
            assert 1 == 2

        class Old(unittest.TestCase):
            def test_method(self):
                time.sleep(0.05)
        """

    def run_pytest(self, *arguments, code):
        self.write("test_some.py", self.TESTS)
        return self.run_python("-m", "pytest", "-p", "nrg.pytest_plugin", "-p", "no:cacheprovider", *arguments, "test_some.py", code=code).stdout

    def test_limits(self):
        out = self.run_pytest("-q", "-rA", code=1)
        for name, outcome in (("test_plain", "PASSED"), ("test_within", "PASSED"), ("test_marked", "FAILED"), ("test_says_so_itself", "FAILED"),
                              ("test_fails_by_itself", "FAILED"), ("Old::test_method", "PASSED")):
            self.assertRegex(out, r"%s test_some.py::%s\b" % (outcome, name))
        # By line: with CI set, pytest repeats each reason in its summary.
        self.assertEqual(len(re.findall("^nrg: .*more than 1e-06 J", out, re.M)), 2, out)
        self.assertIn("assert 1 == 2", out)
        self.assertNotIn("energy of tests", out)

    def test_the_table(self):
        out = self.run_pytest("--nrg", "--nrg-folder", "kept", code=1)
        table = out.split("energy of tests")[1]
        for name in ("test_plain", "test_within", "test_marked", "test_says_so_itself", "test_fails_by_itself", "test_method"):
            self.assertIn(name, table)
        self.assertEqual(len([f for f in os.listdir(self.path("kept")) if f.endswith(".nrg")]), 6)


@needs("IPython")
class Notebook(Case):
    PROGRAM = """
        import json, sys, os
        from IPython.core.interactiveshell import InteractiveShell
        from IPython.utils.capture import capture_output
        shell = InteractiveShell.instance()
        shell.run_line_magic("load_ext", "nrg")
        found = {}
        def cell(name, text):
            with capture_output() as captured:
                result = shell.run_cell(text)
            shown = [o for o in captured.outputs if "this cell" in str(o.data.get("text/plain"))]
            found[name] = {"result": repr(result.result), "error": repr(result.error_in_exec or result.error_before_exec), "out": captured.stdout,
                           "text": shown[0].data["text/plain"] if shown else None, "html": shown[0].data.get("text/html") if shown else None}
        cell("value", "%%nrg -o kept.nrg\\nimport nrg, time\\nx = 20\\nwith nrg.span('<work>'):\\n    t = time.process_time()\\n    while time.process_time() - t < 0.3: pass\\nx + 1")
        cell("names", "def f():\\n    return x\\nf()")
        cell("inside", "%%nrg --no-page\\ndef g():\\n    return x * 2\\ng()")
        cell("raises", "%%nrg --no-page\\n1/0")
        cell("syntax", "%%nrg --no-page\\nthis is no Python")
        cell("usage", "%%nrg --unknown\\n1")
        cell("magics", "%%nrg --no-page\\n%time y = 3\\n!echo from the shell\\ny")
        print(json.dumps(found))
        """

    def test_a_cell(self):
        got, _ = self.program(self.PROGRAM)
        self.assertEqual((got["value"]["result"], got["names"]["result"], got["inside"]["result"]), ("21", "20", "40"))
        self.assertRegex(got["value"]["text"], r"^this cell: [\d.]+ m?J of the machine's")
        self.assertIn("<work>", got["value"]["text"])
        page = got["value"]["html"]
        self.assertIn("&lt;work&gt;", page)
        self.assertIn("<iframe", page)
        self.assertIn('sandbox="allow-scripts', page)
        self.assertNotIn("<iframe", got["inside"]["html"], got["inside"])
        self.assertTrue(os.path.exists(self.path("kept.nrg")))
        self.assertIn("ZeroDivisionError", got["raises"]["error"])
        self.assertIn("this cell", got["raises"]["text"])
        self.assertIn("SyntaxError", got["syntax"]["error"])
        self.assertIn("does not know '--unknown'", got["usage"]["error"])
        self.assertEqual(got["magics"]["result"], "3")
        self.assertIn("from the shell", got["magics"]["out"])


if __name__ == "__main__":
    unittest.main()
