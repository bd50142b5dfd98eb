"""nrg.keras.Callback: spans for training, epochs, steps and layers of a Keras model.

    model.fit(x, y, callbacks=[nrg.keras.Callback()])

Works with Keras 3 (all backends) and with tf.keras 2.x. It is not derived from Keras's own
Callback, because there may be two Kerases in one process and this module must import without
any; Keras asks only for the methods.

Layers can be seen where Keras calls them one by one in Python: `compile(run_eagerly=True)`, and the
torch backend without jit_compile. A compiled graph runs as a whole; a message says so once, and
steps stay the finest spans. Backward passes are in the step, outside of all layers.
"""
import functools
import sys
import warnings

from . import _nrg


class Callback:
    """Give one to fit(), evaluate() or predict().

    layers: also a span for each call of a layer, where that can be seen. batch_size: samples of
    a step, for joules per sample; found where Keras's own data adapter has it.
    """

    _supports_tf_logs = True  # the logs are not looked at: Keras need not fetch them from the device
    _chief_worker_only = None

    def __init__(self, layers=True, batch_size=None):
        self.model = None
        self.params = {}
        self._want_layers = layers
        self._given_batch_size = batch_size
        self._batches = None
        self._open = []  # (what, depth before it)
        self._first = 0  # step that the current execution began with
        self._wrapped = []

    def set_model(self, model):
        self.model = model

    def set_params(self, params):
        self.params = params or {}

    # What Keras 2 asks for before it calls the hooks of batches.
    def _implements_train_batch_hooks(self):
        return True

    _implements_test_batch_hooks = _implements_predict_batch_hooks = _implements_train_batch_hooks

    def close(self):
        """Ends spans that an exception inside fit() left open. The next fit() does it, too."""
        if self._open:
            _nrg.unwind(self._open[0][1])
            del self._open[:]
        self._unwrap()

    def _begin(self, what, kind, number=None):
        self._open.append((what, _nrg.depth()))
        _nrg.span(what, kind, number).begin()

    def _end(self, what):
        if not any(name == what for name, _ in self._open):
            return
        while True:
            name, depth = self._open.pop()
            if name == what:
                _nrg.unwind(depth)
                return

    def _begin_phase(self, what):
        if not self._open:
            self._wrap()
        self._batches = _Batches.find(sys._getframe(2), self._given_batch_size)
        self._begin(what, "phase")

    def _end_phase(self, what):
        self._end(what)
        if not self._open:
            self._unwrap()

    def _begin_step(self, what, batch):
        self._first = int(batch)
        self._begin(what, "step", batch)

    def _end_step(self, what, batch):
        if self._batches:
            samples = self._batches.samples(self._first, int(batch))
            if samples:
                _count_samples(samples)
        self._end(what)

    def on_train_begin(self, logs=None):
        self.close()
        self._begin_phase("training")

    def on_train_end(self, logs=None):
        self._end_phase("training")

    def on_epoch_begin(self, epoch, logs=None):
        self._training = self._batches
        self._begin("epoch", "epoch", epoch)

    def on_epoch_end(self, epoch, logs=None):
        self._end("epoch")

    def on_train_batch_begin(self, batch, logs=None):
        self._begin_step("step", batch)

    def on_train_batch_end(self, batch, logs=None):
        self._end_step("step", batch)

    on_batch_begin, on_batch_end = on_train_batch_begin, on_train_batch_end

    def on_test_begin(self, logs=None):
        self._training = self._batches
        self._begin_phase("evaluation")

    def on_test_end(self, logs=None):
        self._end_phase("evaluation")
        self._batches = self._training

    def on_test_batch_begin(self, batch, logs=None):
        self._begin_step("evaluation step", batch)

    def on_test_batch_end(self, batch, logs=None):
        self._end_step("evaluation step", batch)

    def on_predict_begin(self, logs=None):
        self.close()
        self._begin_phase("prediction")

    def on_predict_end(self, logs=None):
        self._end_phase("prediction")

    def on_predict_batch_begin(self, batch, logs=None):
        self._begin_step("prediction step", batch)

    def on_predict_batch_end(self, batch, logs=None):
        self._end_step("prediction step", batch)

    def _wrap(self):
        """Puts a span before every layer's call(), when they are called one by one."""
        if not self._want_layers or self.model is None or not _nrg.active():
            return
        if not _is_eager(self.model):
            _say_once("the layers of a compiled model can't be seen: nrg.keras marks its steps "
                      "(compile(run_eagerly=True) shows the layers, and is slower)")
            return
        for name, layer in _layers(self.model):
            # Not by setattr: Keras tracks what is set.
            if "call" not in vars(layer):
                vars(layer)["call"] = _marked(layer.call, name, type(layer).__name__)
                self._wrapped.append(layer)

    def _unwrap(self):
        for layer in self._wrapped:
            vars(layer).pop("call", None)
        del self._wrapped[:]


def _marked(call, name, class_name):
    span = _nrg.span(*(text.replace("\0", "\\x00") if text else text for text in (name, "module", None, class_name)))

    @functools.wraps(call)
    def marked(*args, **kwargs):
        with span:
            return call(*args, **kwargs)
    return marked


def _layers(model):
    """(qualified name, layer) of the model and all below it, each once. Names are whatever the program gave them."""
    seen = set()

    def walk(layer, name):
        if id(layer) in seen:
            return
        seen.add(id(layer))
        yield name, layer
        inner = getattr(layer, "layers", None) or getattr(layer, "_layers", None) or []
        for part in inner if isinstance(inner, (list, tuple)) else []:
            if callable(getattr(part, "call", None)):
                yield from walk(part, "%s.%s" % (name, getattr(part, "name", type(part).__name__)))
    return walk(model, str(getattr(model, "name", type(model).__name__)))


def _is_eager(model):
    if getattr(model, "run_eagerly", False):
        return True
    if _backend(model) != "torch":
        return False
    return not getattr(model, "jit_compile", False)


def _backend(model):
    """"tensorflow", "torch" or "jax"."""
    for base in type(model).__mro__:
        keras = sys.modules.get(base.__module__.split(".")[0])
        config = getattr(keras, "config", None)
        if hasattr(config, "backend"):
            return config.backend()
    return "tensorflow"


class _Batches:
    """How many samples the steps of one fit(), evaluate() or predict() have."""

    def __init__(self, size, last=None, steps=None):
        self.size, self.last, self.steps = size, last, steps

    @classmethod
    def find(cls, frame, given):
        """From what was given, or from the data adapter of the Keras function that called us."""
        if given:
            return cls(int(given))
        while frame is not None:
            for name in ("epoch_iterator", "data_handler"):
                found = frame.f_locals.get(name)
                adapter = getattr(found, "data_adapter", None) or getattr(found, "_adapter", None)
                if adapter is not None:
                    return cls.of(adapter)
            frame = frame.f_back
        return None

    @classmethod
    def of(cls, adapter):
        # Values in Keras 3, methods in Keras 2; not all adapters know.
        def ask(*names):
            for name in names:
                try:
                    value = getattr(adapter, name)
                    value = value() if callable(value) else value
                except Exception:
                    continue
                if value is not None:
                    return int(value)
            return None
        size = ask("batch_size", "representative_batch_size")
        return cls(size, ask("partial_batch_size"), ask("num_batches", "get_size")) if size else None

    def samples(self, first, last):
        """Of the steps first to last: one execution may take several."""
        n = (max(last, first) - first + 1) * self.size
        if self.last and self.steps and last == self.steps - 1:
            n += self.last - self.size
        return n


def _count_samples(n):
    from . import count
    count("samples", n)


_said = set()


def _say_once(text):
    if text not in _said:
        _said.add(text)
        warnings.warn("nrg: " + text, stacklevel=4)
