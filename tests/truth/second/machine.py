"""An independent simulator of machines: draws a program, what it does to a machine's power (power.py), what sensors and the kernel show
of that (meters.py, kernel.py), and writes a recording from docs/recording-format.md only. words.py says what a scenario may ask for."""

import numpy as np

import program
from kernel import PID, START_TICKS, Kernel
from meters import Meters
from power import Power
from words import Words
from writer import Recording

SPANS_A_CHUNK = 500000


def write_about(recording, words):
    """What the recording says of itself and of the machine; when the run and its baselines were."""
    ns = recording.ns
    of_format = {"nrg_version": "0.2.0"} if words.rev == 1 else {"nrg_version": "0.2.0", "revision": words.rev}
    recording.meta(**of_format, command_line="python3 attack.py", host="h", kernel="6.1", architecture="x86_64", cpu="Sim", cpus=words.cpus)
    recording.meta(boot_id="x", process_method="connector", begin_ns=ns(0.01), end_ns=ns(words.after_s - 0.05), ticks=1000, late_ticks=0)
    runs = [("baseline", ends, None) for ends in words.before()]
    runs += [("run", (words.begin_s, words.end_s), 0)]
    runs += [("baseline", ends, None) for ends in words.behind()]
    for i, (kind, (begin, end), code) in enumerate(runs, 1):
        recording.row("run", id=i, kind=kind, begin_ns=ns(begin), end_ns=ns(end), exit_code=code)
    for t in ns(np.arange(0, words.after_s, 1.0)):
        recording.row("clock", mono_ns=t, real_ns=t + 17 * 10**17, tsc=None)


def write_names(recording, words, spans, tracks):
    for (kind, name), i in spans.names.items():
        recording.row("span_name", id=i, kind="kernel" if words.gpu and kind == "module" else kind, name=name, detail="")
    for i in range(len(tracks)):
        where = {"kind": "thread", "tid": PID + i, "domain": "", "name": "thread"}
        if words.gpu:
            where = {"kind": "gpu", "tid": 0, "domain": "gpu-0", "name": "gpu-0 stream 7"}
        recording.row("span_track", id=i + 1, pid=PID, start_ticks=START_TICKS, **where)


def write_spans(recording, tracks):
    """Events of all tracks in the order of their times; only steps have a value."""
    events = [(i, *event) for i, track in enumerate(tracks, 1) for event in track.events]
    track, t, what, name, value = (np.array(column) for column in zip(*events))
    t, has_value = recording.ns(t), np.not_equal(value, None)
    order = np.argsort(t, kind="stable")
    t, has_value = t[order], has_value[order]
    columns = [track[order], what[order], name[order], np.where(has_value, value[order], 0).astype(np.int64)]
    series = recording.series("spans", 0, 5, "track,event,name,value,parent")
    for begin in range(0, len(t), SPANS_A_CHUNK):
        part = slice(begin, begin + SPANS_A_CHUNK)
        all_of_it, nothing = np.ones(len(t[part]), bool), np.zeros(len(t[part]), bool)
        present = [all_of_it, all_of_it, all_of_it, has_value[part], nothing]
        recording.chunk(series, t[part], [*[column[part] for column in columns], nothing], present=present)
    recording.meta(spans=int((what == program.BEGIN).sum()))


def inclusive(own):
    """Joules of each path with all below it."""
    total = {}
    for path, joules in own.items():
        for depth in range(1, len(path) + 1):
            total[path[:depth]] = total.get(path[:depth], 0) + joules
    return total


def build(path, scenario, seed):
    """Write the recording of a scenario to path; returns the truth. Random numbers are drawn in this order, so that a seed stays what it is."""
    rng = np.random.default_rng([seed, 77])
    words, spans = Words(**scenario), program.Spans()
    tracks = program.tracks(rng, words, spans)
    power = Power(rng, words, tracks, len(spans.paths))
    recording = Recording(path, int(rng.integers(10**12, 10**13)))
    write_about(recording, words)
    Meters(rng, words, power, recording).write()
    kernel = Kernel(rng, words, power, recording)
    kernel.write_busy()
    kernel.write_processes()
    write_names(recording, words, spans, tracks)
    kernel.write_threads(tracks)
    write_spans(recording, tracks)
    recording.close()
    own = {names: power.truth_j[i] for names, i in spans.paths.items()}
    return {"self": own, "inc": inclusive(own), "total": power.total_j(), "steps": min(t.steps for t in tracks), "idle": power.idle_w}
