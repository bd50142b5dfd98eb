"""One thread of the program: its events (begins and ends of spans) and its segments (stretches in which it draws the same power).

All steps that follow the same plan are drawn at once, as a table: a row for each step, a column for each piece of work in it.
"""

import numpy as np

from program import OUTSIDE, WORK

COLUMNS = ("begin", "end", "path", "watts", "dram_w", "on_cpu", "workers")  # of segments


class Thread:
    """Events and segments are added in any order; finish() sorts them and makes arrays of their columns."""

    def __init__(self):
        self.events, self.segments = [], []

    def event(self, t, what, path, number, order):
        """number: of the step, or -1; order: events are sorted by it."""
        self.events.append(np.broadcast_arrays(np.atleast_1d(t), what, path, number, order))

    def segment(self, *values):
        """values: of COLUMNS, numbers or arrays."""
        self.segments.append(np.broadcast_arrays(np.atleast_1d(values[0]), *values[1:]))

    def finish(self, end_s):
        self.end_s = end_s
        t, what, path, number, order = (np.concatenate(column) for column in zip(*self.events))
        by = np.argsort(order, kind="stable")
        self.event_t, self.event_what, self.event_path, self.event_number = t[by], what[by], path[by], number[by]
        columns = {name: np.concatenate(column).astype(float) for name, column in zip(COLUMNS, zip(*self.segments))}
        kept = np.flatnonzero(columns["end"] > columns["begin"])
        kept = kept[np.argsort(columns["begin"][kept], kind="stable")]
        for name in COLUMNS:
            setattr(self, name, columns[name][kept])
        self.path = self.path.astype(int)

    def cut(self, times):
        """Cuts segments in two at these times."""
        times = np.unique(times)
        i = np.searchsorted(self.begin, times, side="right") - 1
        inside = (i >= 0) & (self.begin[i] < times) & (times < self.end[i])
        i, times = i[inside], times[inside]
        for name in COLUMNS:
            column = getattr(self, name)
            setattr(self, name, np.insert(column, i + 1, column[i]))
        first = i + 1 + np.arange(len(i))  # of the pieces that the cuts begin
        self.begin[first] = self.end[first - 1] = times


class Table:
    """The work of all steps that follow one plan: how long each piece works and waits, and its watts."""

    def __init__(self, rng, program, plan, steps, sizes, slowness):
        self.program, self.plan, self.steps = program, plan, steps
        laws = [program.laws[path] for what, path in plan if what == WORK]
        median_s, spread, percall, wait, watts, size_time, size_watts = (
            np.array([getattr(law, name) for law in laws])
            for name in ("median_s", "spread", "percall", "wait", "watts", "size_time", "size_watts"))
        size = sizes[steps, None]
        scatter = rng.normal(size=(len(steps), len(laws)))
        self.work_s = median_s * np.exp(spread * scatter) * size**size_time * slowness[steps, None]
        shape = self.work_s.shape
        self.wait_s = wait * median_s * rng.exponential(1, shape) * (rng.random(shape) < 0.7) / 0.7
        mean_s = median_s * np.exp(spread**2 / 2)
        self.watts = watts * size**size_watts * ((1 - percall) + percall * mean_s / self.work_s)

    def seconds(self):
        """Of each step."""
        return (self.work_s + self.wait_s).sum(1)

    def keep(self, n_steps):
        """Only what belongs to the first n steps of the thread."""
        kept = self.steps < n_steps
        for name in ("steps", "work_s", "wait_s", "watts"):
            setattr(self, name, getattr(self, name)[kept])

    def add_to(self, thread, rng, starts):
        """Adds events and segments of all the steps, mark by mark."""
        seconds = self.work_s + self.wait_s
        ends = starts[self.steps, None] + np.cumsum(seconds, 1)
        begins = ends - seconds
        begins[:, 1:] = ends[:, :-1]
        now, piece = starts[self.steps], 0
        for m, (what, path) in enumerate(self.plan):
            if what == WORK:
                self.add_piece(thread, rng, piece, path, begins[:, piece], ends[:, piece])
                now, piece = ends[:, piece], piece + 1
            else:
                thread.event(now, what, path, self.steps if m == 0 else -1, self.steps * 1e6 + m)

    def add_piece(self, thread, rng, piece, path, begin, end):
        """Works, waits, works."""
        law, n = self.program.laws[path], len(self.steps)
        place = rng.random(n) if law.place is None else np.full(n, law.place)
        stop = begin + self.work_s[:, piece] * place
        go_on = stop + self.wait_s[:, piece]
        workers = law.workers
        if workers != int(workers):
            workers = np.floor(workers) + (rng.random(n) < workers % 1)
        on_cpu = np.where(np.asarray(workers) > 0, 0, 1) if law.passive else 1
        at_work = (path, self.watts[:, piece] * (1 + workers), law.dram_w, on_cpu, workers)
        if law.dispatch or law.ramp or law.ragged:
            self.add_uneven(thread, rng, piece, path, begin, end)
            return
        thread.segment(begin, stop, *at_work)
        thread.segment(stop, go_on, path, 0.0, 0.0, 0, 0)
        thread.segment(go_on, end, *at_work)

    def add_uneven(self, thread, rng, piece, path, begin, end):
        """Dispatches, draws less for a while, works, and ends without workers; never waits."""
        law, n = self.program.laws[path], len(self.steps)
        watts, length = self.watts[:, piece], end - begin
        dispatched = begin + np.minimum(law.dispatch * rng.uniform(0.8, 1.2, n), length / 2)
        ramped = dispatched + (end - dispatched) * (0.3 if law.ramp else 0.0)
        ragged = end - (end - ramped) * law.ragged * rng.random(n)
        all_of_it = watts * (1 + law.workers)
        thread.segment(begin, dispatched, path, np.full(n, 7.0), law.dram_w, 1, 0)
        thread.segment(dispatched, ramped, path, all_of_it * (1 - law.ramp), law.dram_w, 1, law.workers)
        thread.segment(ramped, ragged, path, all_of_it, law.dram_w, 1, law.workers)
        thread.segment(ragged, end, path, watts, law.dram_w, 1, 0)


def picks(program, seconds):
    """Plan and slowness of the steps that about fill so many seconds."""
    laws, gap = program.laws, program.words.gap
    mean_s = [sum(laws[path].mean_s() * (1 + laws[path].wait) for what, path in plan if what == WORK) for plan in program.plans]
    t, chosen = 0.0, []
    while t < seconds:
        plan, slow = program.pick(len(chosen))
        chosen.append((plan, slow))
        t += mean_s[plan] * slow + gap
    return (np.array(column) for column in zip(*chosen))


def perform(rng, program, begin_s, end_s):
    """Runs the program in a new thread, whole steps only; returns that and when the last step ended."""
    thread, words = Thread(), program.words
    plan_of, slowness = picks(program, end_s - begin_s)
    n = len(plan_of)
    sizes = np.exp(rng.normal(0, words.size_spread, n)) if words.size_spread else np.ones(n)
    tables, seconds = [], np.zeros(n)
    for k, plan in enumerate(program.plans):
        tables.append(Table(rng, program, plan, np.flatnonzero(plan_of == k), sizes, slowness))
        seconds[tables[-1].steps] = tables[-1].seconds()
    gaps = words.gap * rng.exponential(1, n) if words.gap else np.zeros(n)
    ends = begin_s + np.cumsum(seconds + gaps)
    n_whole = int(np.searchsorted(ends, end_s))
    if not n_whole:
        raise ValueError(f"no step ends within {end_s - begin_s:g} s: run_s is too short")
    for table in tables:
        table.keep(n_whole)
        if len(table.steps):
            table.add_to(thread, rng, ends - seconds - gaps)
    if words.gap and words.gap_busy:
        gap_ends, gap_begins = ends[:n_whole], (ends - gaps)[:n_whole]
        thread.segment(gap_begins, gap_begins + (gap_ends - gap_begins) * words.gap_busy, OUTSIDE, 15.0, 0.0, 1, 0)
    return thread, ends[n_whole - 1]


def host_thread(rng, program, times, i):
    """The i-th thread with what it does in no span: it loads libraries (the first), and ends a little after its last step."""
    first_s = times.first_s + i * 0.013 + i * program.words.thread_start
    thread, last_s = perform(rng, program, first_s, times.stop_s)
    end_s = last_s + rng.uniform(0.002, 0.03)
    if i == 0 and program.words.startup:
        thread.segment(times.work_s, first_s, OUTSIDE, rng.uniform(10, 25), 2.0, 1, 0)
    thread.segment(last_s, end_s, OUTSIDE, 12.0, 1.0, 1, 0)
    thread.finish(end_s)
    return thread
