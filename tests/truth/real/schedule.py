"""Who ran on which CPU when, from the kernel's context switches. Needs perf, and the right to trace all CPUs (root)."""
import re
import subprocess
import time

from support import np  # first: it says so where there is no numpy

SWITCH = re.compile(r"^\s*(-?\d+)/(-?\d+)\s+\[(\d+)\]\s+(\d+)\.(\d+): PERF_RECORD_SWITCH_CPU_WIDE (IN|OUT)", re.M)
SOON_NS = 20000  # from one's end to the next one's begin: a switch, which the kernel counts to who comes


class Tracer:
    """Traces from its begin to `stop`, which gives rows of (tid, pid, begin, end), ns of CLOCK_MONOTONIC."""

    def __init__(self, path):
        self.path = path
        self.perf = subprocess.Popen(["perf", "record", "-q", "-a", "-m", "2048", "-e", "dummy", "--switch-events", "-k", "mono", "-o", path, "--",
                                      "sleep", "3600"], stderr=subprocess.DEVNULL)
        time.sleep(0.7)

    def stop(self):
        time.sleep(0.2)
        self.perf.send_signal(2)
        self.perf.wait()
        text = subprocess.run(["perf", "script", "-i", self.path, "--show-switch-events", "-F", "tid,pid,cpu,time,event", "--ns"],
                              capture_output=True, text=True, check=True).stdout
        rows = [(int(m[3]), int(m[4]) * 10**9 + int(m[5]), int(m[1]), int(m[2]), m[6] == "IN") for m in SWITCH.finditer(text)]
        if not rows:
            raise RuntimeError("perf saw no context switch: it needs root, and a kernel with PERF_EVENTS")
        return runs_of(np.array(rows, np.int64))


def runs_of(rows):
    """From someone's begin on a CPU to the next event there: what idles has no begin on some kernels."""
    parts = []
    for cpu in np.unique(rows[:, 0]):
        r = rows[rows[:, 0] == cpu]
        r = r[np.argsort(r[:, 1], kind="stable")]
        into = np.flatnonzero(r[:-1, 4] == 1)
        before = np.maximum(into - 1, 0)
        soon = (r[before, 4] == 0) & (r[into, 1] - r[before, 1] < SOON_NS)
        begin = np.where(soon, r[before, 1], r[into, 1])
        parts.append(np.c_[r[into, 3], r[into, 2], begin, r[into + 1, 1]])
    runs = np.concatenate(parts)
    return runs[runs[:, 0] != 0]


def cut(runs, at, of):
    """Pieces (begin, end, class) of a thread's runs, cut at the times `at`, from which on it is in `of`; 0 before the first."""
    if not len(runs):
        return np.zeros((3, 0), np.int64)
    runs = runs[np.argsort(runs[:, 2])]
    edges = np.unique(np.concatenate([runs[:, 2], runs[:, 3], at]))
    i = np.searchsorted(runs[:, 2], edges[:-1], side="right") - 1
    there = (i >= 0) & (edges[:-1] < runs[np.maximum(i, 0), 3])
    begin, end = edges[:-1][there], edges[1:][there]
    j = np.searchsorted(at, begin, side="right") - 1
    return np.array([begin, end, np.where(j >= 0, of[np.maximum(j, 0)], 0)])
