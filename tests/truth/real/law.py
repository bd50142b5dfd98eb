"""What a recording of a real run would have shown of a machine of known power: a law over who really ran when, and a counter that follows it.

    power = idle + sum over CPUs (watts of who runs: of the innermost span's class, of work outside of spans, of others)

Threads of the program without spans draw what the class does that its main thread is in. All of it is piecewise constant, so energy at any
time is known in closed form.
"""
import os
import shutil
import sqlite3

from support import np  # first: it says so where there is no numpy
from recording import coded
from schedule import cut
from test_versions import documented_reader

UNIT_J, UPDATE_S, JITTER_S = 1 / 16384, 0.976e-3, 20e-6  # of the counter
OUTSIDE_W, STEP_W, LEAST_W, MOST_W = 10.0, 9.0, 6.0, 40.0
OTHERS_SPREAD = 0.4  # of processes' watts, a deviation of their logarithm


def columns(db, series):
    """Times and columns of a series."""
    column = documented_reader()["column"]
    n_columns, = db.execute("SELECT n_columns FROM series WHERE id = ?", (series,)).fetchone()
    parts = []
    for first, unit, n, data in db.execute("SELECT first_ns, time_unit_ns, n, data FROM chunk WHERE series = ? ORDER BY first_ns", (series,)):
        values, at = column(data, 0, n)
        rows = [[first + v * unit for v in values]]
        for _ in range(n_columns):
            values, at = column(data, at, n)
            rows.append([-1 if v is None else v for v in values])
        parts.append(np.array(rows, np.int64))
    return np.concatenate(parts, axis=1)


class Law:
    """Joules of each path of spans in the run, of others and in all; `paths`: class by ((kind, name), ...), () for none."""

    def __init__(self, path, runs, seed, idle_w, others_w):
        self.rng, self.idle_w = np.random.default_rng(seed), idle_w
        self.db = sqlite3.connect(path)
        self.edges = self.db.execute("SELECT begin_ns, end_ns FROM run").fetchall()
        self.begin, self.end = self.db.execute("SELECT begin_ns, end_ns FROM run WHERE kind = 'run'").fetchone()
        self.paths, self.watts = {(): 0}, [OUTSIDE_W]
        pids = [pid for pid, in self.db.execute("SELECT pid FROM process")]
        tracks = dict((track, (pid, tid)) for track, pid, tid in self.db.execute("SELECT id, pid, tid FROM span_track"))
        places = {tid: self.places(track) for track, (_, tid) in tracks.items()}
        main = next((places[tid] for pid, tid in tracks.values() if pid == tid), next(iter(places.values())))
        mine = np.isin(runs[:, 1], pids) | np.isin(runs[:, 0], list(places))
        self.watts = np.array(self.watts)
        self.joules, pieces = np.zeros(len(self.watts)), []
        for tid in np.unique(runs[mine, 0]):
            begin, end, of = cut(runs[runs[:, 0] == tid], *places.get(tid, main))
            pieces.append((begin, end, self.watts[of]))
            np.add.at(self.joules, of, self.within(*pieces[-1]))
        others = runs[~mine]
        names, which = np.unique(others[:, 1], return_inverse=True)
        each_w = others_w * np.exp(self.rng.normal(0, OTHERS_SPREAD, len(names)))
        pieces.append((others[:, 2], others[:, 3], each_w[which]))
        self.others_j = float(self.within(*pieces[-1]).sum())
        self.add_up(pieces)
        self.total_j = float(self.energy_j(self.end) - self.energy_j(self.begin))

    def within(self, begin, end, watts):
        return np.clip(np.minimum(end, self.end) - np.maximum(begin, self.begin), 0, None) * 1e-9 * watts

    def places(self, track):
        """When a track changes its place, and to which class."""
        names = {i: (kind, name) for i, kind, name in self.db.execute("SELECT id, kind, name FROM span_name")}
        rows = [columns(self.db, series) for series, in self.db.execute("SELECT id FROM series WHERE kind = 'spans'")]
        t, of, event, name = np.concatenate([r[:4] for r in rows if r.shape[1]], axis=1)
        chosen = np.flatnonzero((of == track) & (event <= 1))
        chosen = chosen[np.argsort(t[chosen], kind="stable")]
        stack, classes = [], []
        for i in chosen:
            if event[i] == 0:
                stack.append(names[name[i]])
            elif stack:
                stack.pop()
            classes.append(self.class_of(tuple(stack)))
        return t[chosen], np.array(classes, np.int64)

    def class_of(self, path):
        if path not in self.paths:
            self.paths[path] = len(self.paths)
            self.watts.append(STEP_W if path[-1][0] == "step" else self.rng.uniform(LEAST_W, MOST_W))
        return self.paths[path]

    def add_up(self, pieces):
        begin, end, watts = (np.concatenate(c) for c in zip(*pieces))
        t, change = np.concatenate([begin, end]), np.concatenate([watts, -watts])
        order = np.argsort(t, kind="stable")
        self.zero, self.t = t[order[0]], (t[order] - t[order[0]]) * 1e-9
        self.sum_j = np.concatenate([[0], np.cumsum(np.cumsum(change[order])[:-1] * np.diff(self.t))])

    def energy_j(self, t_ns):
        t = (np.asarray(t_ns, float) - self.zero) * 1e-9
        return self.idle_w * (t + 10) + np.interp(t, self.t, self.sum_j)

    def inside_j(self):
        """Of each path with all that is inside."""
        sums = {}
        for path, of in self.paths.items():
            for n in range(1, len(path) + 1):
                sums[path[:n]] = sums.get(path[:n], 0) + float(self.joules[of])
        return sums


def thinned(t, rate_hz, edges):
    """Readings of a slower recorder: the first of each period, and those at the edges of runs."""
    period = (t - t[0]) * 1e-9 * rate_hz // 1
    kept = np.concatenate([[True], np.diff(period) > 0])
    for edge in edges:
        at = int(np.searchsorted(t, edge))
        kept[max(at - 1, 0):at + 1] = True
    return t[kept]


def with_counter(law, source, target, rate_hz=None, baseline=True):
    """Copies a recording; its simulated sensor, read when it really was, becomes a counter of the law."""
    shutil.copy(source, target)
    db = sqlite3.connect(target)
    series, sensor = db.execute("SELECT series, sensor FROM channel WHERE name = 'package-0'").fetchone()
    t = columns(db, series)[0]
    if rate_hz:
        t = thinned(t, rate_hz, [edge for run in law.edges for edge in run])
    n = int((t[-1] - t[0]) * 1e-9 / UPDATE_S) + 10
    updates = t[0] - 2e6 + np.sort((np.arange(n) + law.rng.random()) * UPDATE_S + law.rng.normal(0, JITTER_S, n)) * 1e9
    shown = np.floor(law.energy_j(updates) / UNIT_J).astype(np.int64)[np.searchsorted(updates, t, side="right") - 1]
    db.execute("DELETE FROM chunk WHERE series = ?", (series,))
    db.execute("INSERT INTO chunk(series, first_ns, last_ns, n, width_ns, time_unit_ns, data) VALUES(?,?,?,?,2000,1,?)",
               (series, int(t[0]), int(t[-1]), len(t), coded(t - t[0]) + coded(shown)))
    db.execute("UPDATE channel SET scale = ?, wrap = ?, update_ns = 1000000, resolution = ?, limit_w = 500 WHERE series = ?",
               (UNIT_J, 1 << 32, UNIT_J, series))
    db.execute("UPDATE sensor SET driver = 'rapl-powercap', name = 'intel-rapl:0' WHERE id = ?", (sensor,))
    if not baseline:
        db.execute("DELETE FROM run WHERE kind = 'baseline'")
    db.commit()
    db.close()
    return os.path.basename(target)
