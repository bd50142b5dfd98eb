"""A machine with a program in it: what both do, the truth of it, and the recording."""

from types import SimpleNamespace

import numpy as np

from kernel import CPUS, FIRST_PID, START_TICKS, write_cpu_times
from meters import ESTIMATE, write_meter
from power import Power
from program import Program
from recorder import BEGIN_S, Timeline
from thread import Names
from words import WORDS
from writer import Recording, ns

GPU_FIRST_NAME, GPU_FIRST_TRACK, GPU_SEED = 1001, 101, 5000  # of a GPU beside a CPU


class Machine:
    def __init__(self, words, seed, names=None):
        self.words, self.rng, self.names = SimpleNamespace(**{**WORDS, **words}), np.random.default_rng(seed * 7919 + 13), names or Names()
        self.timeline = Timeline(self.words)
        self.program = Program(self.words, self.rng, self.names, self.timeline)
        self.threads = self.program.threads + self.program.workers
        self.power = Power(self.words, self.rng, self.timeline, self.threads, len(self.names.paths))
        self.readings = None  # what write_meter returns

    def truth(self):
        power, run = self.power, np.array([self.timeline.run_begin, self.timeline.run_end])
        idle_j, total_j = power.idle_until(run), power.until(run)
        estimated = self.words.sensor == "est"
        self_j = self.estimated_j() if estimated else power.self_j
        rows = [dict(path=path, kind=kind, calls=self.names.calls[number], self_j=float(self_j[number]), self_s=float(power.self_s[number]))
                for number, kind, path in self.names.spelled()]
        for row in rows:
            n = len(row["path"])
            row["energy_j"] = sum(other["self_j"] for other in rows if other["path"][:n] == row["path"])
        return dict(total_j=None if estimated else float(total_j[1] - total_j[0]), idle_j=float(idle_j[1] - idle_j[0]), other_j=power.other_j,
                    unattributed_j=float(power.self_j[0]), rows=rows)

    def estimated_j(self):
        """An estimate is judged by its own law: so many watts per busy CPU. Of the total it knows little, and says so."""
        cpu_s = np.zeros(len(self.names.paths))
        for thread in self.threads:
            cpu_s += np.bincount(thread.paths, thread.cpus * (thread.ends - thread.begins), len(cpu_s))
        return ESTIMATE["cpu_w"] * cpu_s

    def write_runs(self, recording):
        words, timeline = self.words, self.timeline
        recording.meta(nrg_version="0.2.0" if words.revision == 2 else "0.1.0", command_line="sim", host="sim", cpus=CPUS,
                       begin_ns=int(ns(BEGIN_S)), end_ns=int(ns(timeline.end)), process_method="polling")
        if words.revision == 2:
            recording.meta(revision=2)
        runs = [("baseline", timeline.before, None), ("run", (timeline.run_begin, timeline.run_end), 0), ("baseline", timeline.after, None)]
        for i, (kind, times, exit_code) in enumerate((run for run in runs if run[1]), 1):
            recording.insert("run", i, kind, int(ns(times[0])), int(ns(times[1])), exit_code)
        for t in np.arange(BEGIN_S, timeline.end, 1.0):
            recording.insert("clock", int(ns(t)), int(ns(t)) + 1700000000 * 10**9, None)

    def write_spans(self, recording, first_track=1, said_as="spans"):
        words, names = self.words, self.names
        for (kind, name), number in names.names.items():
            recording.insert("span_name", number, kind, name, "")
        rows = []
        for i, thread in enumerate(self.program.threads):
            process, track = i % words.procs, first_track + i
            knows_start = first_track > 1 or (words.process_rows and not words.gpu)
            recording.insert("span_track", track, "gpu" if words.gpu else "thread", FIRST_PID + process, FIRST_PID + 100 + i,
                             START_TICKS + process if knows_start else 0, "gpu-0" if words.gpu else "", f"thread {i}")
            rows += [(t, track, event, name, value or 0, value is not None) for t, event, name, value in thread.events]
        t, *columns, valued = zip(*rows)
        series = recording.series("spans", 0, 5, "track,event,name,value,parent")
        always, never = np.ones(len(t), bool), np.zeros(len(t), bool)
        recording.rows(series, ns(t), [*columns, np.zeros(len(t))], 100, [always, always, always, np.array(valued), never])
        recording.meta(**{said_as: len(t) // 2})

    def write(self, recording):
        self.write_runs(recording)
        self.readings = write_meter(self, recording)
        if self.words.process_rows and not self.words.gpu:
            write_cpu_times(self, recording)
        self.write_spans(recording)

    def write_gpu(self, recording):
        """Into the recording of another machine."""
        write_meter(self, recording)
        self.write_spans(recording, GPU_FIRST_TRACK, "note.spans_gpu")


def make(words, seed, path):
    """Writes a recording. (truth, machine)"""
    machine, recording = Machine(words, seed), Recording(path)
    machine.write(recording)
    truth = machine.truth()
    if machine.words.both:
        words = {**words, "others": None, "both": None, **machine.words.both, "run_s": machine.words.run_s}
        gpu = Machine(words, seed + GPU_SEED, Names(GPU_FIRST_NAME, "g_", {"step": "kernel"}))
        gpu.write_gpu(recording)
        truth = {key: value + gpu.truth()[key] for key, value in truth.items()}
    recording.close()
    return truth, machine
