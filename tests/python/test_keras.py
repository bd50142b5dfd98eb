"""nrg.keras.Callback with a stand-in for Keras that calls it as Keras 2 and Keras 3 do.

With NRG_KERAS_PYTHON naming a Python that has Keras 3 (and tf_keras, for Keras 2) the same model
is trained for real.
"""
import os
import unittest

from support import Case, LOG_LIBRARY, balanced, tree

# Keras as the callback sees it: layers with call(), a model with run_eagerly, and a fit() whose
# local `epoch_iterator` (Keras 3) or `data_handler` (Keras 2) has the data adapter.
STAND_IN = '''
import types
config = types.SimpleNamespace(backend=lambda: "tensorflow")

class Layer:
    def __init__(self, name, layers=()):
        self.name, self.layers = name, list(layers)
    def __call__(self, x):
        return self.call(x)
    def call(self, x):
        for layer in self.layers:
            x = layer(x)
        if x == 666:
            raise ArithmeticError(self.name)
        return x

class Model(Layer):
    run_eagerly, jit_compile = True, False
    def _steps(self, callbacks, kind, sizes, x=1, per_execution=1):
        for i in range(0, len(sizes), per_execution):
            getattr(callbacks, "on_%s_batch_begin" % kind)(i)
            if self.run_eagerly:
                self(x)
            getattr(callbacks, "on_%s_batch_end" % kind)(min(i + per_execution, len(sizes)) - 1, {"loss": 0})
    def _fit(self, callbacks, sizes, epochs, x, per_execution):
        callbacks.set_params({"epochs": epochs}); callbacks.set_model(self)
        callbacks.on_train_begin()
        for epoch in range(epochs):
            callbacks.on_epoch_begin(epoch)
            self._steps(callbacks, "train", sizes, x, per_execution)
            self.evaluate(callbacks, [5])
            callbacks.on_epoch_end(epoch)
        callbacks.on_train_end()
    def fit(self, callbacks, sizes, epochs=1, x=1, per_execution=1):
        adapter = types.SimpleNamespace(batch_size=sizes[0], num_batches=len(sizes),
                                        partial_batch_size=sizes[-1] if sizes[-1] != sizes[0] else None)
        epoch_iterator = types.SimpleNamespace(data_adapter=adapter)
        self._fit(callbacks, sizes, epochs, x, per_execution)
    def fit2(self, callbacks, sizes):
        adapter = types.SimpleNamespace(batch_size=lambda: sizes[0], get_size=lambda: len(sizes),
                                        partial_batch_size=lambda: sizes[-1])
        data_handler = types.SimpleNamespace(_adapter=adapter)
        self._fit(callbacks, sizes, 1, 1, 1)
    def evaluate(self, callbacks, sizes):
        epoch_iterator = types.SimpleNamespace(data_adapter=types.SimpleNamespace(batch_size=sizes[0]))
        callbacks.set_model(self)
        callbacks.on_test_begin()
        self._steps(callbacks, "test", sizes)
        callbacks.on_test_end()
    def predict(self, callbacks, sizes):
        callbacks.set_model(self)
        callbacks.on_predict_begin()
        self._steps(callbacks, "predict", sizes)
        callbacks.on_predict_end()

net = Model("net", [Layer("block", [Layer("a"), Layer("b")]), Layer("head")])
'''
MODULES = ["net", "  net.block", "    net.block.a", "    net.block.b", "  net.head"]

REAL = """
    import os, sys
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
    try:
        import %s as keras
    except ImportError as error:
        print("not here:", error)
        sys.exit(0)
    import numpy as np
    import nrg.keras
    x, y = np.ones((70, 8), "float32"), np.ones((70, 1), "float32")
    block = keras.Sequential([keras.layers.Dense(5, name="a"), keras.layers.Dense(4, name="b")], name="block")
    net = keras.Sequential([block, keras.layers.Dense(1, name="head")], name="net")
    net.build((None, 8))
    net.compile(loss="mse", optimizer="sgd", run_eagerly=%s)
    net.fit(x, y, batch_size=32, epochs=2, validation_data=(x[:10], y[:10]), verbose=0,
            callbacks=[nrg.keras.Callback()])
    net.predict(x, batch_size=70, verbose=0, callbacks=[nrg.keras.Callback()])
    print(keras.__version__, [l.name for l in (net, block) if "call" in vars(l)])
"""


def below(name, depth):
    return ["  " * depth + name] + ["  " * (depth + 1) + line for line in MODULES]


class Callback(Case):
    def setUp(self):
        super().setUp()
        self.write("keras.py", STAND_IN)

    def train(self, program, **env):
        return self.logged("import keras, nrg.keras\n" + program, PYTHONWARNINGS="default", **env)

    def test_training_epochs_steps_layers_and_samples(self):
        calls, done = self.train(
            "keras.net.fit(nrg.keras.Callback(), [32, 32, 6], epochs=2)\n"
            "print([l.name for l in (keras.net, *keras.net.layers) if 'call' in vars(l)])")
        epoch = ["  epoch"]
        for _ in range(3):
            epoch += below("step", 2) + ["      samples"]
        epoch += ["    evaluation"] + below("evaluation step", 3) + ["        samples"]
        self.assertEqual(tree(calls), ["training"] + epoch * 2)
        self.assertTrue(balanced(calls))
        self.assertEqual([c[5] for c in calls if c[1] == "count"], ["32", "32", "6", "5"] * 2)
        self.assertEqual([c[5] for c in calls if c[1:3] == ("begin", "epoch")], ["0", "1"])
        self.assertEqual([c[5] for c in calls if c[1:3] == ("begin", "step")], ["0", "1", "2"] * 2)
        self.assertIn((5, "begin", "net.block.a", "module", "Layer"), [c[:5] for c in calls])
        self.assertEqual((done.stdout, done.stderr), ("[]\n", ""))

    def test_keras_2(self):
        calls, _ = self.train("keras.net.fit2(nrg.keras.Callback(), [32, 32, 6])")
        self.assertEqual([c[5] for c in calls if c[1] == "count"], ["32", "32", "6", "5"])

    def test_a_compiled_model_says_so_once_and_has_steps(self):
        calls, done = self.train(
            "keras.Model.run_eagerly = False\n"
            "for i in range(2):\n    keras.net.fit(nrg.keras.Callback(), [4, 4])")
        self.assertEqual(tree(calls)[:4], ["training", "  epoch", "    step", "      samples"])
        self.assertNotIn("net", " ".join(tree(calls)))
        self.assertEqual(done.stderr.count("can't be seen"), 1)

    def test_the_torch_backend_is_eager(self):
        calls, _ = self.train(
            "keras.Model.run_eagerly = False\nkeras.config.backend = lambda: 'torch'\n"
            "keras.net.fit(nrg.keras.Callback(), [4])")
        self.assertTrue(balanced(calls))
        self.assertEqual([c for c in calls if c[2:3] == ("net",)], [])  # the stand-in calls it in eager mode only
        calls, done = self.train(
            "keras.Model.jit_compile = True\nkeras.Model.run_eagerly = False\n"
            "keras.config.backend = lambda: 'torch'\nkeras.net.fit(nrg.keras.Callback(), [4])")
        self.assertIn("can't be seen", done.stderr)

    def test_several_steps_in_one_execution(self):
        calls, _ = self.train("keras.net.fit(nrg.keras.Callback(layers=False), [8, 8, 8, 8, 3], per_execution=2)")
        self.assertEqual([c[5] for c in calls if c[1] == "count"], ["16", "16", "3", "5"])

    def test_prediction_with_a_given_batch_size(self):
        calls, _ = self.train("keras.net.predict(nrg.keras.Callback(batch_size=9), [9, 9])\n"
                              "keras.net.predict(nrg.keras.Callback(), [9])")
        self.assertEqual(tree(calls)[:1], ["prediction"])
        self.assertEqual([c[5] for c in calls if c[1] == "count"], ["9", "9"])

    def test_an_exception_in_a_layer(self):
        calls, done = self.train("""
callback = nrg.keras.Callback()
try:
    keras.net.fit(callback, [4], x=666)
except ArithmeticError as error:
    print(error, nrg._nrg.depth())
callback.close()
print(nrg._nrg.depth(), [l.name for l in keras.net.layers if 'call' in vars(l)])
try:
    keras.net.fit(callback, [4], x=666)
except ArithmeticError:
    pass
keras.net.fit(callback, [4])
print(nrg._nrg.depth())
""")
        # The layer's span is closed; training, epoch and step are open until Keras or close() ends them.
        self.assertEqual(done.stdout, "a 3\n0 []\n0\n")
        self.assertTrue(balanced(calls))

    def test_without_a_recorder_layers_are_left_alone(self):
        calls, done = self.train(
            "class Look(nrg.keras.Callback):\n"
            "    def on_train_batch_end(self, *a):\n"
            "        print('call' in vars(keras.net))\n"
            "keras.net.fit(Look(), [4])", active=False)
        self.assertEqual((calls, done.stdout), ([], "False\n"))


class RealKeras(Case):
    """Not part of `make test`: it needs a Python with Keras."""

    def setUp(self):
        super().setUp()
        self.interpreter = os.environ.get("NRG_KERAS_PYTHON")
        if not self.interpreter:
            self.skipTest("NRG_KERAS_PYTHON names no Python with Keras")

    def train(self, module, eager, **env):
        done = self.python(REAL % (module, eager), python=self.interpreter, NRG_SPAN_LOG_ACTIVE="1",
                           NRG_LIBRARY=LOG_LIBRARY,
                           NRG_SPAN_LOG=self.log, HOME=self.folder, **env)
        if done.stdout.startswith("not here"):
            self.skipTest(done.stdout.strip())
        self.assertIn("[]", done.stdout)
        return self.calls(), done

    def check(self, calls, modules):
        self.assertTrue(balanced(calls))
        self.assertEqual([c[5] for c in calls if c[1] == "count"], ["32", "32", "6", "10"] * 2 + ["70"])
        self.assertEqual([c[5] for c in calls if c[1:3] == ("begin", "epoch")], ["0", "1"])
        heads = [c[0] for c in calls if c[2:3] == ("net.head",)]
        self.assertEqual(len(heads), 9 if modules else 0)
        if modules:
            self.assertEqual(heads, [4, 4, 4, 5] * 2 + [3])

    def test_keras_3(self):
        for backend in ("tensorflow", "torch", "jax"):
            with self.subTest(backend):
                self.check(self.train("keras", True, KERAS_BACKEND=backend)[0], True)

    def test_keras_3_compiled(self):
        calls, done = self.train("keras", False)
        self.check(calls, False)
        self.assertEqual(done.stderr.count("can't be seen"), 1)

    def test_keras_2(self):
        calls, _ = self.train("tf_keras", True)
        self.check(calls, True)
        calls, _ = self.train("tf_keras", False)
        self.check(calls, False)


if __name__ == "__main__":
    unittest.main()
