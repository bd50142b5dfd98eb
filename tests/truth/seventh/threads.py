"""A thread (or a GPU's stream) of the simulated program: it opens and closes spans, works and waits, and keeps the truth."""
import numpy as np


class Thread:
    """Work is rectangles: (begin, end, on a CPU or not, watts by domain); truth is joules by path and by step."""

    def __init__(self, program, cpu, kind="thread", domain="", name="main", at=0.0):
        self.program, self.cpu, self.kind, self.domain, self.name, self.t = program, cpu, kind, domain, name, at
        self.stack, self.events, self.work, self.step = [], [], [], None

    def begin(self, kind, name, number=None, detail="", parent=None):
        self.stack.append((kind, name))
        if kind == "step":
            self.step = (self.name, number)
        self.events.append((self.t, 0, (kind, name, detail), number, parent))
        self.tick()

    def end(self):
        kind, name = self.stack.pop()
        self.events.append((self.t, 1, (kind, name, ""), None, None))
        self.tick()
        if kind == "step":
            self.step = None

    def tick(self):
        """A few hundred ns between two marks, as clocks have it."""
        self.t += 3e-7

    def run(self, seconds, on_cpu=1, where=None, **watts):
        """Work for that long; `where` is a path of another track that the energy belongs to (else the open spans)."""
        if seconds <= 0:
            return
        path = tuple(self.stack) if where is None else where
        self.work.append((self.t, self.t + seconds, on_cpu, watts))
        joules = {d: w * seconds for d, w in watts.items()}
        self.program.truth(path, self.step, joules)
        if on_cpu:
            self.program.cpu_s[path] = self.program.cpu_s.get(path, 0) + seconds
        self.t += seconds

    def wait(self, seconds):
        self.t += max(seconds, 0)

    def arrays(self, domain):
        hit = [(a, b, w[domain]) for a, b, _, w in self.work if w.get(domain)]
        return np.array(hit).reshape(-1, 3).T

    def running(self):
        """Intervals on a CPU, merged where they touch."""
        hit = sorted((a, b) for a, b, on, _ in self.work if on)
        merged = []
        for a, b in hit:
            if merged and a - merged[-1][1] < 2e-6:
                merged[-1][1] = max(b, merged[-1][1])
            else:
                merged.append([a, b])
        return np.array(merged).reshape(-1, 2).T


class Program:
    """Threads of one process, and what is true of them."""

    def __init__(self, name="python", pid=4000, start=1.0):
        self.name, self.pid, self.start, self.threads = name, pid, start, []
        self.helpers = []  # threads without spans whose work belongs to what the main thread has open
        self.self_j, self.steps, self.cpu_s = {}, {}, {}

    def truth(self, path, step, joules):
        into = self.self_j.setdefault(path, {})
        for d, j in joules.items():
            into[d] = into.get(d, 0) + j
        if step is not None:
            self.steps[step] = self.steps.get(step, 0) + sum(joules.values())

    def thread(self, cpu, **options):
        self.threads.append(Thread(self, cpu, **options))
        return self.threads[-1]

    def helper(self, cpu):
        self.helpers.append(Thread(self, cpu, name="helper"))
        return self.helpers[-1]
