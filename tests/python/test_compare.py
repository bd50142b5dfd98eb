"""nrg.compare on recordings of known power; energy per step with stand-ins for Hugging Face's Trainer, Lightning and the trackers, which call as those do.

The real packages are tested by `make test-torch2` (tests/torch2/test_tools.py).
"""
import json
import unittest

from support import Case, NRG, PYTHON

MACHINE = "domain package-0\n  power %d\n"

# What is left of the two frameworks when everything but callbacks is taken away.
STAND_INS = {
    "transformers.py": """
        class TrainerCallback:
            def on_init_end(self, args, state, control, **kwargs): pass
            def on_train_begin(self, args, state, control, **kwargs): pass
            def on_train_end(self, args, state, control, **kwargs): pass
            def on_step_begin(self, args, state, control, **kwargs): pass
            def on_step_end(self, args, state, control, **kwargs): pass
            def on_log(self, args, state, control, **kwargs): pass
        class Holder:
            def __init__(self, **values):
                self.__dict__.update(values)
        class Trainer:
            def __init__(self, step, callbacks):
                self.step = step
                self.args = Holder(output_dir="out", report_to=[])
                self.state = Holder(global_step=0, log_history=[], is_world_process_zero=True, is_local_process_zero=True)
                self.callback_handler = Holder(callbacks=callbacks)
                self.call("on_init_end")
            def call(self, event, **more):
                for callback in self.callback_handler.callbacks:
                    getattr(callback, event)(self.args, self.state, None, **more)
            def train(self, steps=6, every=2):
                self.call("on_train_begin")
                for i in range(steps):
                    self.call("on_step_begin")
                    self.step(i)
                    self.state.global_step += 1
                    self.call("on_step_end")
                    if (i + 1) % every == 0:
                        logs = {"loss": 1.0}
                        self.state.log_history.append({**logs, "step": self.state.global_step})
                        self.call("on_log", logs=logs)
                self.call("on_train_end")
        """,
    "pytorch_lightning.py": """
        class Callback:
            pass
        """,
}


class Compare(Case):
    def record(self, name, power, minute):
        """Ten seconds of constant power, from a log: nothing depends on how busy this machine is."""
        log = self.write("log.csv", "timestamp,package-0:power_w\n" + "".join("2026-01-01T00:%02d:%02dZ,%g\n" % (minute, s, power) for s in range(11)))
        done = self.run_process(NRG, "import", "-q", "-o", name, log)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_ratio_gate_and_errors(self):
        for i in range(3):
            self.record("a%d.nrg" % i, 50 + 0.1 * (i % 2), 2 * i)
            self.record("b%d.nrg" % i, 100 + 0.1 * (i % 2), 2 * i + 1)
        self.record("./-odd.nrg", 50, 30)
        done = self.python("""
            import json, nrg
            a, b = ["a0.nrg", nrg.open("a1.nrg"), "a2.nrg"], ["b0.nrg", "b1.nrg", "b2.nrg"]
            said = nrg.compare(a, b, fail_if=["mean_power > +50%", "mean_power > +900%"])
            power = said.effect("mean_power")
            print(json.dumps([said.answer, power, said.failed, bool(said), said.document["schema"], [r["kind"] for r in said.rows][:1], said.effect("none")]))
            few = nrg.compare("-odd.nrg", "a0.nrg")
            print(bool(nrg.compare(a[:2], ["a2.nrg", "-odd.nrg"])), bool(few), few.energy.low, few.energy.verdict)
            for arguments in (("a0.nrg", []), ("none.nrg", "a0.nrg"), (a, a), ("a0.nrg", "b0.nrg", 95, 1, "energy > +2%")):
                try:
                    nrg.compare(*arguments)
                except nrg.Error as error:
                    print("error:", error)
            print(nrg.compare(a, b)._repr_html_()[:6])
            """).stdout.splitlines()
        answer, power, failed, differs, schema, kinds, none = json.loads(done[0])
        self.assertEqual((schema, differs, kinds, none), ("nrg.compare/1", True, ["domain"], None))
        self.assertIn("more energy than A", answer)
        self.assertAlmostEqual(power[0], 2, delta=0.02)
        self.assertLess(power[1], power[0])
        self.assertEqual(power[4], "more")
        self.assertEqual(failed, ["mean_power > +50%"])
        self.assertEqual(done[1], "False False None None")
        self.assertIn("error: B: no recordings", done[2])
        self.assertIn("none.nrg", done[3])
        self.assertIn("both sides", done[4])
        self.assertIn("can't be decided", "".join(done[5:]))
        self.assertEqual(done[-1], "<p><b>")


class Steps(Case):
    def setUp(self):
        super().setUp()
        for name, text in STAND_INS.items():
            self.write(name, text)
        self.write("machine.txt", MACHINE % 100)

    def test_a_trainer_that_fails(self):
        """Its steps so far are logged, its recording is whole, its exception is its own."""
        done = self.python("""
            import json, time, transformers, nrg, nrg.transformers
            class Writer:
                got = []
                def add_scalar(self, *scalar):
                    self.got.append(scalar)
            def step(i):
                with nrg.span("work"):
                    time.sleep(0.02)
                    if i == 4 and fails:
                        raise ArithmeticError("mine")
            for fails in (True, False):
                callback = nrg.transformers.Callback(sensors="simulate:machine.txt", writer=Writer(), path="run.nrg")
                trainer = transformers.Trainer(step, [callback])
                try:
                    trainer.train(steps=5)
                except ArithmeticError as error:
                    print(error)
                run = nrg.open("run.nrg")
                print(json.dumps([trainer.state.log_history, callback.energy_j, [r["calls"] for r in run.table("path") if r["kind"] == "step"], nrg._nrg.depth()]))
            print(json.dumps(Writer.got))
            """).stdout.splitlines()
        self.assertEqual(done[0], "mine")
        for line, logs, calls in ((done[1], [2, 4], [5]), (done[2], [2, 4, 5], [5])):
            history, joules, steps, depth = json.loads(line)
            energies = [entry["nrg/energy_j"] for entry in history if "nrg/energy_j" in entry]
            self.assertEqual([entry["step"] for entry in history if "nrg/energy_j" in entry], logs)
            self.assertEqual(energies, sorted(energies))
            self.assertAlmostEqual(energies[-1], joules)
            self.assertGreater(joules, 0.02 * 100 * 0.9 * logs[-1])
            self.assertEqual((steps, depth), (calls, 0))
        self.assertEqual([step for name, _, step in json.loads(done[3]) if name == "nrg/energy_j"], [2, 4, 2, 4, 5])

    def test_lightning_and_trackers_that_fail(self):
        done = self.python("""
            import json, sys, time, types, warnings, nrg, nrg.lightning, nrg._scalars
            warnings.simplefilter("ignore")
            class Good:
                got, saved = [], 0
                def log_metrics(self, scalars, step):
                    self.got.append((step, scalars["nrg/energy_per_step_j"]))
                def save(self):
                    self.saved += 1
            class Bad(Good):
                asked = 0
                def log_metrics(self, scalars, step):
                    self.asked += 1
                    raise ConnectionError("away")
            good, bad = Good(), Bad()
            callback = nrg.lightning.Callback(sensors="simulate:machine.txt")
            trainer = types.SimpleNamespace(default_root_dir="lt", local_rank=0, is_global_zero=True, global_step=0, loggers=[bad, good], log_every_n_steps=2)
            callback.on_train_start(trainer, None)
            for i in range(5):
                callback.on_train_batch_start(trainer, None, None, i)
                time.sleep(0.01)
                trainer.global_step += 1
                callback.on_train_batch_end(trainer, None, None, None, i)
            callback.on_train_batch_start(trainer, None, None, 5)
            callback.on_exception(trainer, None, ArithmeticError())
            print(json.dumps([good.got, good.saved, bad.asked, nrg._nrg.depth(), nrg.open(callback.recording.path).duration_s]))

            # W&B and MLflow as far as they are used: a run that is open.
            logged = []
            sys.modules["wandb"] = types.SimpleNamespace(run=types.SimpleNamespace(log=lambda data: logged.append(("wandb", data))))
            sys.modules["mlflow"] = types.SimpleNamespace(active_run=lambda: 1, log_metrics=lambda data, step: logged.append(("mlflow", data, step)))
            scalars = nrg._scalars.Scalars()
            scalars.log({"nrg/energy_j": 1.5}, 7)
            sys.modules["wandb"].run = None
            scalars.log({"nrg/energy_j": 2.5}, 8)
            print(json.dumps(logged))
            """).stdout.splitlines()
        got, saved, asked, depth, duration_s = json.loads(done[0])
        self.assertEqual([step for step, _ in got], [2, 4, 5])
        self.assertTrue(all(joules > 0.5 for _, joules in got), got)
        self.assertEqual((saved, asked, depth), (1, 1, 0))
        self.assertGreater(duration_s, 0.05)
        self.assertEqual(json.loads(done[1]), [["wandb", {"nrg/energy_j": 1.5, "nrg/step": 7}], ["mlflow", {"nrg/energy_j": 1.5}, 7],
                                               ["mlflow", {"nrg/energy_j": 2.5}, 8]])

    def test_under_nrg_run(self):
        """Steps are spans of that recording, nothing is logged, and it is said once."""
        script = self.write("program.py", """
            import time, transformers, nrg.transformers
            trainer = transformers.Trainer(lambda i: time.sleep(0.01), [nrg.transformers.Callback()])
            trainer.train()
            trainer.train()
            print([entry for entry in trainer.state.log_history if "nrg/energy_j" in entry])
            """)
        done = self.run_process(NRG, "run", "-q", "--sensor", "simulate:machine.txt", "-o", "run.nrg", "--", PYTHON, script)
        self.assertEqual((done.returncode, done.stdout), (0, "[]\n"), done.stderr)
        self.assertEqual(done.stderr.count("recorded by nrg run"), 1, done.stderr)
        rows = json.loads(self.run_process(NRG, "attribute", "--json", "run.nrg").stdout)["rows"]
        self.assertEqual([row["calls"] for row in rows if row["kind"] == "step"], [12])


if __name__ == "__main__":
    unittest.main()
