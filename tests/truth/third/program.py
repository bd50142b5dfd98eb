"""The program: which spans its steps have, in which order, and by which law each call takes its time and draws its power.

A step (or a phase) is drawn as a tree of nodes and then written out as a list of marks: begin of a span, its own work, its end.
Random numbers are drawn in the order of the code, within arguments, too: in another order, the same seeds are other programs.
"""

from dataclasses import dataclass, field

import numpy as np

OUTSIDE = -1  # the path of what is in no span
BEGIN, END, WORK = 0, 1, 2
NAMES = "conv1 bn1 relu conv2 attn mlp norm embed head pool drop act fc1 fc2 softmax proj".split()


class Paths:
    """Numbers of the places in the tree of spans: tuples of (kind, name)."""

    def __init__(self):
        self.numbers = {}

    def number(self, path):
        return self.numbers.setdefault(path, len(self.numbers))

    def __len__(self):
        return len(self.numbers)

    def __iter__(self):
        return iter(self.numbers)


@dataclass
class Law:
    """What a call does: its length, watts of package and memory, how both follow a step's size, waits, workers."""
    median_s: float
    spread: float
    watts: float
    dram_w: float = 0.0
    size_time: float = 0.0
    size_watts: float = 0.0
    percall: float = 0.0
    wait: float = 0.0
    place: float = None
    workers: float = 0
    passive: bool = False
    dispatch: float = 0.0
    ramp: float = 0.0
    ragged: float = 0.0

    def mean_s(self):
        return self.median_s * np.exp(self.spread**2 / 2)


@dataclass
class Node:
    """A span. Its own law, where it has one, is what it does before each child and at its end."""
    kind: str
    name: str
    law: Law
    children: list = field(default_factory=list)
    repeat: int = 1


def draw_law(rng, words):
    median_s = np.exp(rng.uniform(*np.log(words.call_s)))
    spread = rng.uniform(*words.spread)
    watts = np.exp(rng.uniform(*np.log(words.watts)))
    wait = 0.0
    if words.wait:
        wait = words.wait * (rng.choice([0.1, 0.5, 2.0]) if words.wait_uneven else rng.uniform(0.5, 1.5))
    size_time = words.size_time * rng.uniform(0.3, 1.2) if words.size_time else 0.0
    size_watts = words.size_watts * rng.uniform(-0.3, 1.0) if words.size_watts else 0.0
    place = rng.choice([0.0, 0.5, 1.0]) if words.wait_place == "own" else None
    workers = draw_workers(rng, words) if words.workers else 0
    dram_w = rng.uniform(0.5, 6)
    percall = rng.choice([0.0, words.percall]) if words.percall_some else words.percall
    return Law(median_s, spread, watts, dram_w, size_time, size_watts, percall, wait, place, workers, words.passive,
               words.dispatch, words.ramp, words.ragged)


def draw_workers(rng, words):
    workers = rng.choice([0, 0, 1, words.workers])
    return workers * rng.uniform(0.4, 1.0) if words.workers_vary else workers


class Program:
    """Of one thread: `plans` are lists of marks (what, path) of a step and of the phases, `laws` those of all paths."""

    def __init__(self, rng, words, paths, root):
        self.rng, self.words, self.paths = rng, words, paths
        self.laws, self.plans = {}, []
        parts = self.draw_flat() if words.shape == "flat" else self.draw_net()
        self.plan(Node("step", root, self.own(), parts))
        if words.eval_every:
            evaluated = self.draw_evaluation(parts)
            self.plan(Node("phase", "evaluation", self.own(), evaluated))
        if words.checkpoint_every:
            self.plan(Node("phase", "checkpoint", self.own(), [self.leaf("state_dict"), self.leaf("write")]))

    def own(self):
        """The law of a span's own time."""
        if not self.words.overhead:
            return None
        return Law(self.rng.uniform(8e-6, 60e-6), 0.3, self.rng.uniform(8, 25), dram_w=1.0)

    def leaf(self, name, kind="layer"):
        return Node(kind, name, draw_law(self.rng, self.words))

    def draw_flat(self):
        names = [NAMES[i % 16] + ("" if i < 16 else str(i)) for i in range(self.words.layers)]
        return self.with_extras([self.leaf(name) for name in names])

    def draw_net(self):
        forward, backward = zip(*[self.draw_block(b) for b in range(max(self.words.layers // 4, 1))])
        self.forward = Node("module", "Net", self.own(), [*forward, self.leaf("classifier", "module")])
        back = Node("backward", "Net", self.own(), [self.leaf("classifier", "backward"), *backward[::-1]])
        return self.with_extras([self.forward, self.leaf("loss", "operator"), back, self.leaf("optimizer", "operator")])

    def draw_block(self, b):
        """Two layers, forward and in reverse order backward."""
        names = [f"blocks.{b}.{NAMES[(b * 3 + i) % 16]}" for i in range(2)]
        forward = [self.leaf(name, "module") for name in names]
        backward = [self.leaf(name, "backward") for name in names[::-1]]
        return Node("module", f"blocks.{b}", self.own(), forward), Node("backward", f"blocks.{b}", self.own(), backward)

    def with_extras(self, parts):
        """A loader before them that waits, then works; a short operator, called many times, in their middle."""
        rng, words = self.rng, self.words
        if words.load_wait:
            work_s = words.load_wait * 0.3
            law = Law(work_s, 0.4, 14.0, wait=words.load_wait / work_s * 0.7, place=0.2)
            parts = [Node("span", "dataloader.next", law), *parts]
        if words.tiny_calls:
            law = Law(rng.uniform(30e-6, 90e-6), 0.3, rng.uniform(8, 30), dram_w=2.0)
            parts.insert(len(parts) // 2, Node("operator", "aten::add", law, repeat=words.tiny_calls))
        return parts

    def draw_evaluation(self, parts):
        """Some of what a step does, and something of its own."""
        if self.words.shape == "flat":
            return [self.leaf("eval." + name) for name in NAMES[:3]] + parts[:2]
        return [self.forward, self.leaf("metrics", "operator")]

    def plan(self, node):
        self.plans.append(list(self.marks(node, ())))

    def marks(self, node, parent):
        path = parent + ((node.kind, node.name),)
        number = self.paths.number(path)
        self.laws[number] = node.law
        own = [(WORK, number)] if node.law else []
        for _ in range(node.repeat):
            yield BEGIN, number
            for child in node.children:
                yield from own
                yield from self.marks(child, path)
            yield from own
            yield END, number

    def pick(self, i):
        """Which plan the i-th step follows, and how many times as long it takes."""
        words = self.words
        if words.eval_every and i % words.eval_every >= words.eval_every * 4 // 5:
            return 1, 1.0
        if words.checkpoint_every and i % words.checkpoint_every == words.checkpoint_every - 1:
            return len(self.plans) - 1, 1.0
        return 0, 4.0 if i < words.warm_steps else 1.0
