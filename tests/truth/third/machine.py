"""A simulator of machines, written from docs/recording-format.md alone: draws a program (program.py, thread.py, gpu.py), what power it
costs (power.py), what sensors and the kernel show of that to a recorder (recorder.py, meters.py, kernel.py), and writes a recording
(writer.py). words.py says what a scenario may ask for.

Random numbers come from the scenario's name and the seed. Their order must not change, or else the same seeds are other machines, and figures
of different days can't be compared.
"""

import zlib

import numpy as np

from gpu import Gpu
from kernel import N_CPUS, PID, START_TICKS, Kernel
from meters import Meters
from power import Frequency, Power, bend, draw_others
from program import BEGIN, Paths, Program
from recorder import Recorder, Times
from thread import host_thread
from words import Words
from writer import Recording, whole_ns


def draw_threads(rng, words, times, paths):
    """Threads that are named have a program each, others run the same one."""
    threads, program = [], None
    for i in range(words.threads):
        if program is None or words.named_threads:
            root = f"train {i}" if words.threads > 1 and words.named_threads else "train"
            program = Program(rng, words, paths, root)
        threads.append(host_thread(rng, program, times, i))
    return threads


def write_about(recording, words, times, recorder):
    """What the recording says of itself and of the machine; when the run and its baselines were."""
    recording.meta(nrg_version="0.2.0" if words.rev == 2 else "0.1.0", command_line="python3 train.py", host="sim",
                   kernel="6.1.0", architecture="x86_64", cpu="Simulated CPU", cpus=N_CPUS, boot_id="b", process_method="connector",
                   begin_ns=whole_ns(times.record_s), end_ns=whole_ns(times.close_s), ticks=len(recorder.reads),
                   late_ticks=recorder.n_late)
    if words.rev == 2:
        recording.meta(revision=2)
    if words.rate != "auto":
        recording.meta(**{"option.rate": str(words.rate)})
    for kind, begin, end in times.runs():
        recording.row("run", kind=kind, begin_ns=whole_ns(begin), end_ns=whole_ns(end), exit_code=0 if kind == "run" else None)
    for t in np.arange(times.record_s, times.close_s, 1.0):
        recording.row("clock", mono_ns=whole_ns(t), real_ns=whole_ns(t + 1.7e9), tsc=None)


def write_names(recording, paths):
    """Ids of spans' names, by (kind, name)."""
    unique = dict.fromkeys(path[-1] for path in paths)
    return {(kind, name): recording.row("span_name", kind=kind, name=name, detail="") for kind, name in unique}


def write_spans(recording, paths, names, threads):
    """Events of all threads in the order of their times; only begins of steps have a value, their number."""
    for i, _ in enumerate(threads):
        recording.row("span_track", id=i + 1, kind="thread", pid=PID, tid=PID + i, start_ticks=START_TICKS, domain="",
                      name=f"thread {i}")
    name_of = np.array([names[path[-1]] for path in paths])
    events = [(thread.event_t, np.full(len(thread.event_t), i), thread.event_what, name_of[thread.event_path], thread.event_number)
              for i, thread in enumerate(threads, 1)]
    columns = [np.concatenate(column) for column in zip(*events)]
    order = np.argsort(columns[0], kind="stable")
    t, track, what, name, number = (column[order] for column in columns)
    present = [None, None, None, (number >= 0) & (what == BEGIN), np.zeros(len(t), bool)]
    recording.spans(t, [track, what, name, number, 0 * track], present)
    recording.meta(spans=int((what == BEGIN).sum()))


def truth(paths, power):
    """Joules of each path without (`own`) and with all below it (`inc`), of the run, and which paths have nothing below them."""
    own = dict(zip(paths, sum(power.own_j.values())))
    inc = dict.fromkeys(paths, 0)
    for path, joules in own.items():
        for depth in range(1, len(path) + 1):
            inc[path[:depth]] += joules
    parents = {path[:depth] for path in paths for depth in range(1, len(path))}
    return {"own": own, "inc": inc, "total": power.total_j(), "leaves": set(paths) - parents}


def build(path, name, seed, scenario):
    """Write the recording of a scenario to path; returns the truth."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
    words, paths = Words(**scenario), Paths()
    times = Times(rng, words)
    phases_s = rng.uniform(0, words.tick, 64)
    gpu = Gpu(rng, words, times, paths) if words.gpu else None
    threads = [gpu.thread] if gpu else draw_threads(rng, words, times, paths)
    times.end(rng, max(thread.end_s for thread in threads))
    frequency = Frequency(rng, words, times)
    for thread in threads:
        frequency.apply(thread)
    bend(words, threads)
    others = draw_others(rng, words, times)
    recorder = Recorder(rng, words, times)
    power = Power(rng, words, times, threads, len(paths), recorder, others)
    if gpu:
        gpu.add_to(power, frequency)
    recording = Recording(path)
    write_about(recording, words, times, recorder)
    Meters(rng, words, times, power, recorder).write(recording)
    if gpu:
        gpu.write_sensor(recording, power)
    Kernel(rng, words, times, threads, recorder, others, phases_s).write(recording)
    names = write_names(recording, paths)
    write_spans(recording, paths, names, threads)
    if gpu:
        gpu.write_spans(recording, names)
    recording.close()
    return truth(paths, power)
