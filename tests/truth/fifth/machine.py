"""Puts a machine together: what power its threads and loads cost (power.py), what sensors (meters.py) and the kernel (kernel.py) show of that to a
recorder (recorder.py), the recording of it (writer.py), and the truth (truth.py). Written from docs/recording-format.md alone.

Random numbers are drawn in the order of the code, within arguments, too. The order must not change, or else the same seeds are other machines, and
figures of different days can't be compared."""

import json

import numpy as np

from kernel import START_TICKS, Kernel, pid_of
from meters import write_gpu_sensor, write_host_sensor
from power import GpuPower, Power
from recorder import Times, readings, recorder_load
from truth import truth
from words import MACHINE
from writer import Recording

EPOCH_NS = 1700000000 * 10**9  # the wall clock when the machine was started


def write_about(recording, words, times, threads, n_readings):
    """What the recording says of itself and of the machine; when the run and its baselines were."""
    ns = times.ns
    recording.meta(nrg_version="0.2.0", revision=2, command_line="python3 train.py", host="sim", cpus=words["cpus"], cpu="simulated",
                   architecture="x86_64", begin_ns=int(ns(0)), end_ns=int(ns(times.close_s)), process_method="polling", ticks=n_readings,
                   late_ticks=0, spans=sum(len(thread.events) // 2 for thread in threads))
    recording.meta(**{"option.rate": f"{words['rate']:g}Hz"})
    if words["baseline"]:
        recording.run("baseline", ns(0.01), ns(times.begin_s - 0.02))
    recording.run("run", ns(times.begin_s), ns(times.end_s), 0)
    if words["baseline"]:
        recording.run("baseline", ns(times.end_s + 0.02), ns(times.close_s - 0.02))
    for t in np.arange(0.5, times.close_s, 1.0):
        recording.row("clock", mono_ns=int(ns(t)), real_ns=int(ns(t)) + EPOCH_NS, tsc=None)


def write_track(recording, number, thread):
    if thread.domain:
        kind, tid, name = "gpu", 0, "cuda:0"
    else:
        kind, tid, name = "thread", pid_of(thread.process) + thread.number, f"Thread-{thread.number}" if thread.number else "MainThread"
    recording.row("span_track", id=number, kind=kind, pid=pid_of(thread.process), tid=tid, start_ticks=START_TICKS + 2 + thread.process,
                  domain=thread.domain, name=name)


def write_names(recording, names, with_paths):
    for (kind, name, detail), number in names.ids.items():
        recording.row("span_name", id=number, kind=kind, name=name, detail=detail)
    if with_paths:
        for place, (parent, name_id) in enumerate(names.places):
            recording.row("span_path", id=place + 1, parent=parent + 1, name=name_id)


def write_spans(recording, times, names, tracks):
    """Events of all tracks (number, thread, times of its events) in the order of time. Steps have a number, kernels the path that launched them."""
    events = [event for _, thread, _ in tracks for event in thread.events]
    track = np.concatenate([np.full(len(t), number) for number, _, t in tracks])
    place = np.concatenate([np.arange(len(t)) for _, _, t in tracks])
    t_ns = times.ns(np.concatenate([t for _, _, t in tracks]))
    order = np.lexsort((place, t_ns))
    events = [events[i] for i in order]
    has_number = np.array([event.number is not None for event in events])
    has_parent = np.array([event.parent is not None for event in events])
    columns = [track[order], [event.what for event in events], [event.name for event in events], [event.number or 0 for event in events],
               [0 if event.parent is None else event.parent + 1 for event in events]]
    series = recording.series("spans", 0, 5, "track,event,name,value,parent")
    recording.rows(series, t_ns[order], columns, present=[None, None, None, has_number, has_parent], by_first=True)
    write_names(recording, names, has_parent.any())
    for number, thread, _ in tracks:
        write_track(recording, number, thread)


def build(path, names, threads, loads, given, rng, seed):
    """Write the recording of threads that are placed in time and of loads to path, and the truth to path.truth.json."""
    words = {**MACHINE, **given}
    times = Times(rng, words, threads)
    read_s = times.unstalled(readings(rng, words, times, words["rate"]))
    parts = [thread for thread in threads if not thread.domain] + list(loads)
    if words["recorder"]:
        parts.append(recorder_load(rng, read_s))
    power = Power(words, times, parts)
    gpus = [GpuPower(words, times, thread) for thread in threads if thread.domain]
    with open(path + ".truth.json", "w", encoding="utf-8") as out:
        json.dump(truth(names, threads, power, gpus), out)
    recording = Recording(path)
    write_about(recording, words, times, threads, len(read_s))
    write_host_sensor(recording, rng, words, times, power, read_s, seed)
    for gpu in gpus:
        write_gpu_sensor(recording, rng, words, times, gpu)
    kernel = Kernel(rng, words, times, power)
    kernel.write(recording)
    tracks = [(number, thread, thread.times[np.array([event.at for event in thread.events])]) for number, thread in enumerate(threads, 1)]
    write_spans(recording, times, names, tracks)
    if words["threads_rows"]:
        kernel.write_threads(recording, [track for track in tracks if not track[1].domain])
    recording.close()
