"""ONNX models with the shapes that onnx's own reference gives: make_onnx.py FOLDER

Two kinds. The standard's node tests, with their expected outputs: as they are, and with all inputs but the
first as initializers, so that sizes, axes and scales are known. And chains of random operators with random
attributes (the seed is fixed), run by onnx.reference one node after the other; what it refuses is left out.
Declared shapes are removed, so that everything must be inferred. truth.json has for each file
the shapes of its values by name; null is no tensor.
"""
import json
import os
import random
import sys
import warnings

warnings.filterwarnings("ignore")

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.reference import ReferenceEvaluator

SEED = 12
CHAINS = 300
NODES = 7
LARGEST = 4000  # elements
TYPES = {np.dtype("float32"): TensorProto.FLOAT, np.dtype("int64"): TensorProto.INT64,
         np.dtype("bool"): TensorProto.BOOL}


def shape_of(value):
    return list(np.shape(value)) if isinstance(value, (np.ndarray, np.generic)) else None


def without_shapes(model):
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    del copy.graph.value_info[:]
    for output in copy.graph.output:
        if output.type.HasField("tensor_type"):
            output.type.tensor_type.ClearField("shape")
    return copy


def fix_inputs(model, values):
    """All inputs but the first become initializers."""
    for entry, value in list(zip(model.graph.input, values))[1:]:
        if not isinstance(value, np.ndarray):
            continue
        try:
            model.graph.initializer.append(numpy_helper.from_array(value, entry.name))
        except (TypeError, ValueError, NotImplementedError, KeyError):
            continue
        model.graph.input.remove(entry)


def node_tests():
    for case in collect_testcases(None):
        if case.model is None or not case.data_sets:
            continue
        inputs, outputs = case.data_sets[0]
        for kind in ("open", "fixed"):
            model = without_shapes(case.model)
            if kind == "fixed":
                fix_inputs(model, inputs)
            names = [output.name for output in model.graph.output]
            yield f"{case.name}.{kind}", model, dict(zip(names, map(shape_of, outputs)))


class Chain:
    """A graph that grows by nodes that the reference accepts; `values` are its tensors."""

    def __init__(self, rng):
        self.rng, self.nodes, self.constants = rng, [], {}
        shape = [rng.randint(1, 3), rng.choice((2, 4, 6)), rng.randint(1, 9), rng.randint(1, 9)]
        self.values = {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape) % 7}

    def constant(self, value):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value)
        return name

    def ints(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def tensors(self, rank=None, dtype=np.float32):
        return [n for n, v in self.values.items()
                if v.dtype == dtype and v.size and (rank is None or v.ndim == rank)]

    def pick(self, rank=None, dtype=np.float32):
        return self.rng.choice(self.tensors(rank, dtype))

    def add(self, kind, inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        node = helper.make_node(kind, inputs, names, **attributes)
        feeds = {n: self.values[n] if n in self.values else self.constants[n] for n in inputs if n}
        model = self.model([node], feeds, names, False)
        results = [np.asarray(r) for r in ReferenceEvaluator(model).run(None, feeds)]
        if any(r.dtype not in TYPES or r.size > LARGEST for r in results) or self.disputed(model, results):
            raise ValueError("of no use for the chain")
        self.nodes.append(node)
        self.values.update(zip(names, results))
        return names[0]

    @staticmethod
    def disputed(model, results):
        """The reference rounds some pools otherwise than the standard; onnx's own inference shows it."""
        for output, result in zip(onnx.shape_inference.infer_shapes(model).graph.output, results):
            told = output.type.tensor_type
            dims = [d.dim_value if d.HasField("dim_value") else None for d in told.shape.dim]
            if told.HasField("shape") and any(d not in (None, n) for d, n in zip(dims, result.shape)):
                return True
        return False

    def model(self, nodes, feeds, outputs, keep_constants=True):
        constants = self.constants if keep_constants else {}
        inputs = [helper.make_tensor_value_info(n, TYPES[v.dtype], v.shape)
                  for n, v in feeds.items() if n not in constants]
        graph = helper.make_graph(nodes, "chain", inputs,
                                  [helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in outputs],
                                  [numpy_helper.from_array(v, n) for n, v in constants.items()])
        for output in graph.output:
            output.ClearField("type")
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)

    def whole(self):
        used = {n for node in self.nodes for n in node.input}
        self.constants = {n: v for n, v in self.constants.items() if n in used}
        names = [n for node in self.nodes for n in node.output]
        return self.model(self.nodes, {"x": self.values["x"]}, names), {n: shape_of(self.values[n]) for n in names}


# ---- what a chain may grow by: each picks operands and attributes at random ----

def convolution(c):
    r, x = c.rng, c.pick(4)
    channels = c.values[x].shape[1]
    groups = r.choice([g for g in (1, 2, channels) if channels % g == 0])
    transposed = r.random() < 0.4
    out = groups * r.randint(1, 3)
    kernel = [r.randint(1, 4), r.randint(1, 3)]
    weight = [channels, out // groups] if transposed else [out, channels // groups]
    options = {"strides": [r.randint(1, 3), r.randint(1, 3)], "dilations": [r.randint(1, 2), 1], "group": groups}
    padding = r.choice(("pads", "VALID", "SAME_UPPER", "none"))
    if padding == "pads":
        options["pads"] = [r.randint(0, 2) for _ in range(4)]
    elif padding != "none" and not (transposed and padding == "VALID"):
        options["auto_pad"] = padding
        options["dilations"] = [1, 1]
    if transposed and padding == "none":
        options["output_padding"] = [r.randint(0, s - 1) for s in options["strides"]]
    c.add("ConvTranspose" if transposed else "Conv", [x, c.constant(np.ones(weight + kernel, np.float32))], **options)


def pool(c):
    r, x = c.rng, c.pick(4)
    kind = r.choice(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"))
    if kind.startswith("Global"):
        c.add(kind, [x])
        return
    kernel = [r.randint(1, 4), r.randint(1, 4)]
    options = {"kernel_shape": kernel, "strides": [r.randint(1, 3), r.randint(1, 3)]}
    if r.random() < 0.3:
        options["auto_pad"] = r.choice(("SAME_UPPER", "SAME_LOWER", "VALID"))
    else:
        options.update(pads=[r.randint(0, kernel[i % 2] // 2) for i in range(4)], ceil_mode=r.randint(0, 1))
    c.add(kind, [x], **options)


def resize(c):
    r, x = c.rng, c.pick(4)
    if r.random() < 0.5:
        scales = np.array([1, 1, r.choice((0.5, 1.5, 2, 2.7)), r.choice((0.3, 1, 3))], np.float32)
        c.add("Resize", [x, "", c.constant(scales)], mode="nearest")
    else:
        c.add("Resize", [x, "", "", c.ints(r.randint(1, 12), r.randint(1, 12))], mode="nearest", axes=[2, 3],
              keep_aspect_ratio_policy=r.choice(("stretch", "not_larger", "not_smaller")))


def cut(c):
    r, x = c.rng, c.pick()
    rank = c.values[x].ndim
    axes = r.sample(range(-rank, 0), r.randint(1, rank)) if rank else []
    starts = [r.randint(-6, 6) for _ in axes]
    ends = [r.choice((r.randint(-6, 9), 2 ** 63 - 1)) for _ in axes]
    c.add("Slice", [x, c.ints(*starts), c.ints(*ends), c.ints(*axes), c.ints(*[r.choice((1, 2, 3)) for _ in axes])])


def pad(c):
    r, x = c.rng, c.pick()
    c.add("Pad", [x, c.ints(*[r.randint(0, 3) for _ in range(2 * c.values[x].ndim)])])


def layout(c):
    r, x = c.rng, c.pick()
    value = c.values[x]
    kind = r.choice(("Transpose", "Flatten", "Reshape", "Unsqueeze", "Squeeze", "Expand", "Tile"))
    if kind == "Transpose":
        c.add(kind, [x], perm=r.sample(range(value.ndim), value.ndim))
    elif kind == "Flatten":
        c.add(kind, [x], axis=r.randint(-value.ndim, value.ndim))
    elif kind == "Reshape":
        c.add(kind, [x, c.ints(*r.choice(([-1], [0, -1], [1, -1, value.shape[-1] if value.ndim else 1])))])
    elif kind == "Unsqueeze":
        c.add(kind, [x, c.ints(r.randint(-value.ndim - 1, value.ndim))])
    elif kind == "Squeeze":
        c.add(kind, [x] + ([c.ints(value.shape.index(1))] if 1 in value.shape and r.random() < 0.5 else []))
    elif kind == "Expand":
        c.add(kind, [x, c.ints(*[r.randint(1, 3)] + [d if d > 1 else r.randint(1, 3) for d in value.shape])])
    else:
        c.add(kind, [x, c.ints(*[r.randint(1, 2) for _ in value.shape])])


def reduce(c):
    r, x = c.rng, c.pick()
    rank = c.values[x].ndim
    keep = r.randint(0, 1)
    if r.random() < 0.3:
        c.add("ArgMax", [x], axis=r.randint(-rank, rank - 1), keepdims=keep)
    else:
        axes = [c.ints(*r.sample(range(rank), r.randint(0, rank)))] if r.random() < 0.8 else []
        c.add(r.choice(("ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2")), [x] + axes, keepdims=keep,
              noop_with_empty_axes=r.randint(0, 1))


def choose(c):
    r, x = c.rng, c.pick()
    shape = c.values[x].shape
    axis = r.randint(0, len(shape) - 1)
    kind = r.choice(("TopK", "Gather", "Split", "Concat", "NonZero", "Unique", "Compress", "CumSum", "OneHot"))
    if kind == "TopK":
        c.add(kind, [x, c.ints(r.randint(1, shape[axis]))], 2, axis=axis)
    elif kind == "Gather":
        index = np.zeros([r.randint(1, 3) for _ in range(r.randint(0, 2))], np.int64)
        c.add(kind, [x, c.constant(index)], axis=axis)
    elif kind == "Split":
        n = r.randint(1, min(3, shape[axis]))
        c.add(kind, [x], n, axis=axis, num_outputs=n)
    elif kind == "Concat":
        c.add(kind, [x, x], axis=axis - len(shape))
    elif kind == "Compress":
        c.add(kind, [x, c.constant(np.array([r.random() < 0.5 for _ in range(shape[axis])]))], axis=axis)
    elif kind == "CumSum":
        c.add(kind, [x, c.constant(np.array(axis, np.int64))])
    elif kind == "OneHot":
        c.add(kind, [c.add("Cast", [x], to=TensorProto.INT64), c.ints(r.randint(1, 5)),
                     c.constant(np.array([0, 1], np.float32))], axis=r.randint(-1, len(shape)))
    else:
        c.add(kind, [x])


def product(c):
    r, x = c.rng, c.pick()
    last = c.values[x].shape[-1]
    if r.random() < 0.5:
        c.add("MatMul", [x, c.constant(np.ones([last, r.randint(1, 4)][:r.randint(1, 2)], np.float32))])
    else:
        c.add("Einsum", [x, c.constant(np.ones([last, r.randint(1, 4)], np.float32))], equation="...k,kn->...n")


def arithmetic(c):
    r, x = c.rng, c.pick()
    shape = [1 if r.random() < 0.4 else d for d in c.values[x].shape]
    kind = r.choice(("Add", "Mul", "Sub", "Max", "PRelu"))
    if r.random() < 0.3 and kind != "PRelu":
        shape = [2] + shape
    c.add(kind, [x, c.constant(np.ones(shape, np.float32))])


def sizes(c):
    """A size by arithmetic in floats, as exporters of "same" padding write it."""
    r, x = c.rng, c.pick(4)
    at = c.add("Gather", [c.add("Shape", [x]), c.ints(r.choice((2, 3)))])
    size = c.add("Cast", [at], to=TensorProto.FLOAT)
    for _ in range(r.randint(1, 4)):
        kind = r.choice(("Div", "Mul", "Add", "Sub", "Ceil", "Floor", "Clip", "Sqrt", "Max", "Min"))
        number = c.constant(np.array(r.choice((0.5, 1, 2, 3, 0.1, 7)), np.float32))
        if kind in ("Ceil", "Floor", "Sqrt"):
            size = c.add(kind, [size])
        elif kind == "Clip":
            size = c.add(kind, [size, c.constant(np.array(0, np.float32)), c.constant(np.array(6, np.float32))])
        else:
            size = c.add(kind, [size, number])
    whole = c.add("Cast", [size], to=TensorProto.INT64)
    if not 0 <= int(c.values[whole][0]) <= 40:
        return
    if r.random() < 0.5:
        c.add("ConstantOfShape", [whole])
    else:
        c.add("Pad", [x, c.add("Concat", [c.ints(0, 0, 0, 0, 0, 0, 0), whole], axis=0)])


def block(nodes, inputs, outputs, values):
    """A body: outputs and inputs without shapes."""
    def info(name, dtype):
        return helper.make_tensor_value_info(name, dtype, None)
    return helper.make_graph(nodes, "body", [info(n, t) for n, t in inputs], [info(n, t) for n, t in outputs], values)


def loop(c):
    r, x = c.rng, c.pick()
    grows = r.random() < 0.5
    step = helper.make_node("Concat", ["s", "s"], ["t"], axis=0) if grows else helper.make_node("Neg", ["s"], ["t"])
    # The reference stacks lists alone as the standard says.
    nodes = [step, helper.make_node("Identity", ["go"], ["more"]), helper.make_node("ReduceSum", ["t"], ["u"], keepdims=0),
             helper.make_node("Reshape", ["u" if grows else "t", "list"], ["w"])]
    body = block(nodes, [("i", TensorProto.INT64), ("go", TensorProto.BOOL), ("s", TensorProto.FLOAT)],
                 [("more", TensorProto.BOOL), ("t", TensorProto.FLOAT), ("w", TensorProto.FLOAT)],
                 [numpy_helper.from_array(np.array([-1]), "list")])
    c.add("Loop", [c.constant(np.array(r.randint(1, 3), np.int64)), c.constant(np.array(True)), x], 2, body=body)


def scan(c):
    r, x = c.rng, c.pick()
    rank = c.values[x].ndim
    body = block([helper.make_node("Neg", ["s"], ["t"])], [("s", TensorProto.FLOAT)], [("t", TensorProto.FLOAT)], [])
    c.add("Scan", [x], body=body, num_scan_inputs=1, scan_input_axes=[r.randint(0, rank - 1)],
          scan_output_axes=[r.randint(0, rank - 1)])


def branch(c):
    r, x = c.rng, c.pick()
    value = numpy_helper.from_array(np.ones(c.values[x].shape if r.random() < 0.5 else [2, 3], np.float32), "k")
    yes = block([helper.make_node("Identity", ["k"], ["y"])], [], [("y", TensorProto.FLOAT)], [value])
    no = block([helper.make_node("Constant", [], ["z"], value=numpy_helper.from_array(np.ones([1, 4], np.float32)))],
               [], [("z", TensorProto.FLOAT)], [])
    total = c.add("ReduceSum", [x], keepdims=0)
    condition = c.add("Greater", [total, c.constant(np.array(r.choice((-1, 1e9)), np.float32))])
    c.add("If", [condition], then_branch=yes, else_branch=no)


STEPS = (convolution, convolution, pool, pool, resize, resize, cut, cut, pad, layout, layout, reduce, choose, choose,
         product, arithmetic, sizes, sizes, loop, scan, branch)


def chains():
    rng = random.Random(SEED)
    for number in range(CHAINS):
        chain = Chain(rng)
        for _ in range(3 * NODES):
            if len(chain.nodes) >= NODES:
                break
            try:
                rng.choice(STEPS)(chain)
            except Exception:  # pylint: disable=broad-except
                continue  # the reference or the generator found that it can't be
        if chain.nodes:
            yield (f"chain{number}", *chain.whole())


def main(folder):
    truth = {}
    for name, model, shapes in [*node_tests(), *chains()]:
        with open(os.path.join(folder, name + ".onnx"), "wb") as file:
            file.write(model.SerializeToString())
        truth[name] = shapes
    with open(os.path.join(folder, "truth.json"), "w", encoding="utf-8") as file:
        json.dump(truth, file)


main(sys.argv[1])
