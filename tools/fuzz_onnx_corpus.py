#!/usr/bin/env python3
"""Writes tests/fuzz/corpus/graph_onnx: tiny ONNX models, field by field (onnx.proto's numbers).

Between them they use every part of the format that the reader knows: both encodings of repeated
integers, raw and typed data, external data, subgraphs, functions, symbols, metadata.
"""
import os
import struct
import sys

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../tests/fuzz/corpus/graph_onnx")


def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def num(field, value):
    return varint(field << 3) + varint(value)


def raw(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dims, dtype=1, **data):
    out = b"".join(num(1, d) for d in dims) + num(2, dtype) + raw(8, name)
    if "ints" in data:
        out += raw(9, struct.pack("<%dq" % len(data["ints"]), *data["ints"]))
    if "typed" in data:
        out += raw(7, b"".join(varint(v) for v in data["typed"]))
    if "external" in data:
        out += num(14, 1)
        for key, value in data["external"].items():
            out += raw(13, raw(1, key) + raw(2, value))
    return out


def attr(name, value):
    if isinstance(value, int):
        return raw(5, raw(1, name) + num(3, value) + num(20, 2))
    if isinstance(value, float):
        return raw(5, raw(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + num(20, 1))
    if isinstance(value, str):
        return raw(5, raw(1, name) + raw(4, value) + num(20, 3))
    if isinstance(value, list):
        return raw(5, raw(1, name) + b"".join(num(8, v) for v in value) + num(20, 7))
    kind, data = value  # (5, tensor) or (6, graph)
    return raw(5, raw(1, name) + raw(kind, data) + num(20, kind - 1))


def node(kind, inputs, outputs, name="", extra=b"", **attrs):
    out = b"".join(raw(1, i) for i in inputs) + b"".join(raw(2, o) for o in outputs)
    out += raw(4, kind) + (raw(3, name) if name else b"")
    return raw(1, out + b"".join(attr(k, v) for k, v in attrs.items()) + extra)


def info(field, name, dims, dtype=1):
    shape = b"".join(raw(1, raw(2, d) if isinstance(d, str) else num(1, d)) for d in dims)
    return raw(field, raw(1, name) + raw(2, raw(1, num(1, dtype) + raw(2, shape))))


def model(graph, opset=13, more=b""):
    return (num(1, 8) + raw(2, "nrg") + raw(8, raw(1, "") + num(2, opset)) + raw(7, graph) + more)


def init(*args, **kw):
    return raw(5, tensor(*args, **kw))


MODELS = {
    "conv": model(
        node("Conv", ["x", "c.weight", ""], ["a"], "/c/Conv", strides=[2, 2], pads=[1, 1, 1, 1])
        + node("BatchNormalization", ["a", "s", "s", "s", "s"], ["b"])
        + node("MaxPool", ["b"], ["p"], kernel_shape=[3, 3], ceil_mode=1)
        + node("Flatten", ["p"], ["f"]) + node("Gemm", ["f", "w"], ["y"], transB=1)
        + init("c.weight", [4, 3, 3, 3]) + init("s", [4]) + init("w", [5, 36])
        + info(11, "x", [1, 3, 9, 9]) + info(12, "y", [1, 5])),
    "chain": model(
        node("Shape", ["x"], ["s"]) + node("Gather", ["s", "i"], ["b"])
        + node("Unsqueeze", ["b", "z"], ["u"]) + node("Concat", ["u", "m"], ["t"], axis=0)
        + node("Reshape", ["x", "t"], ["r"]) + node("Slice", ["r", "z", "m", "o", "e"], ["y"])
        + init("i", [], 7, typed=[0]) + init("z", [1], 7, ints=[0]) + init("m", [1], 7, ints=[-1])
        + init("o", [1], 7, ints=[1]) + init("e", [1], 7, ints=[2])
        + info(11, "x", ["N", 3, 4]) + info(12, "y", ["N", "k"])),
    "loop": model(
        node("Constant", [], ["n"], value=(5, tensor("", [], 7, ints=[3])))
        + node("Loop", ["n", "", "x"], ["y", "all"], body=(6,
            node("Add", ["v", "w"], ["o"]) + raw(11, raw(1, "i")) + raw(11, raw(1, "c"))
            + raw(11, raw(1, "v")) + raw(12, raw(1, "c")) + raw(12, raw(1, "o"))
            + raw(12, raw(1, "o"))))
        + init("w", [2]) + info(11, "x", [4, 2]) + info(12, "all", [3, 4, 2])),
    "branch": model(
        node("If", ["c"], ["y"],
             then_branch=(6, node("Neg", ["x"], ["a"]) + raw(12, raw(1, "a"))),
             else_branch=(6, node("Split", ["x"], ["b", "d"], axis=1, split=[1, 2])
                          + raw(12, raw(1, "d"))))
        + info(11, "x", [2, 3]) + info(11, "c", [], 9) + info(12, "y", [2, 3])),
    "function": model(
        node("F", ["x"], ["y"], "/m/F", raw(7, "my")) + info(11, "x", [2, 3]) + info(12, "y", [2, 3]),
        18, raw(25, raw(1, "F") + raw(4, "a") + raw(5, "r") + raw(10, "my")
                + raw(7, raw(1, "a") + raw(2, "r") + raw(4, "Softmax")
                      + raw(5, raw(1, "axis") + raw(21, "axis")))
                + raw(11, raw(1, "axis") + num(3, 1) + num(20, 2)))),
    "external": model(
        node("Reshape", ["x", "s"], ["r"]) + node("MatMul", ["r", "w"], ["y"])
        + init("s", [2], 7, external={"location": "w.bin", "offset": "0", "length": "16"})
        + init("w", [3, 1 << 20], 1, external={"location": "w.bin", "offset": "16"})
        + info(11, "x", [6])),
    "recurrent": model(
        node("LSTM", ["x", "w", "r"], ["y", "", "c"], hidden_size=4, direction="bidirectional")
        + node("Einsum", ["y", "y"], ["e"], equation="tdbh,sdbh->ts")
        + node("Resize", ["i", "", "k"], ["z"], mode="nearest")
        + node("Identity", ["k"], ["m.k"]) + node("QLinearConv", list("issqsssst"), ["v"])
        + init("w", [2, 16, 3]) + init("r", [2, 16, 4]) + init("s", [1]) + init("q", [2, 1, 1, 1])
        + init("t", [2]) + raw(5, num(1, 4) + num(2, 1) + raw(8, "k")
                               + raw(4, struct.pack("<4f", 1, 1, 2, 2)))
        + info(11, "x", [5, 2, 3]) + info(11, "i", [1, 1, 4, 4])),
    "metadata": model(
        node("Relu", ["x"], ["y"], "n", raw(9, raw(1, "pkg.torch.onnx.name_scopes")
                                           + raw(2, "['', 'a', 'a.b', 'relu']"))
             + raw(9, raw(1, "pkg.torch.onnx.class_hierarchy") + raw(2, "['N', 'm.A', 'B', 'r']")))
        + node("Gelu", ["y"], ["g"], "", raw(7, "com.microsoft"))
        + node("Tanh", ["g"], ["h"], "k", raw(9, raw(1, "namespace") + raw(2, "/a: A/b: B/t: c")))
        + info(11, "x", [2]) + info(13, "g", [2]) + info(12, "h", [2])),
}

if __name__ == "__main__":
    os.makedirs(FOLDER, exist_ok=True)
    for file_name, content in MODELS.items():
        if len(content) >= 1024:
            sys.exit("%s is too large" % file_name)
        with open(os.path.join(FOLDER, file_name), "wb") as out:
            out.write(content)
