"""A machine that runs programs, and a recorder that watches it: makes the recording and its truth."""
import numpy as np

import sensors
from kernel import Kernel, RunTime, own_rows, poll_times
from programs import KINDS
from store import Store, ns
from world import Domain

UJ = 1e-6


def others(rng, o, end):
    """Other processes: intervals on their CPUs, and watts per CPU second."""
    out = []
    kind = o.get("others")
    base = o.get("first_other_cpu", 6)
    if kind in ("bursts", "both"):
        a, t = [], 0.5
        while t < end:
            d = rng.uniform(0.02, 0.6)
            a.append((t, min(t + d, end)))
            t += d + rng.exponential(o.get("others_pause", 1.0))
        out.append((base, np.array(a).T, o.get("others_w", 15.0)))
    if kind in ("steady", "both"):
        a = np.arange(0.3, end, 0.0137)
        out.append((base + 1, np.array([a, a + 0.004]), o.get("others_w", 15.0) * 0.7))
    if kind == "run-only":  # a job that someone else starts in the middle
        out.append((base, np.array([[end * 0.45], [end * 0.8]]), o.get("others_w", 15.0)))
    a = np.sort(rng.uniform(0.1, end, int(end * 6)))  # the kernel's and daemons' small change
    a = a[np.concatenate([[True], np.diff(a) > 2e-3])]
    out.append((base + 1 if kind not in ("steady", "both") else base + 2, np.array([a, a + 3e-4]), 6.0))
    return out


def simulate(o, seed, path):
    """Writes the recording `path`; returns the truth."""
    rng = np.random.default_rng([seed, 7])
    idle = o.get("idle_w", 14.0)
    base = o.get("baseline_s", 10.0)
    two = o.get("baselines", 2)
    begin = (base + 1.0) if two else 0.6
    end = begin + o.get("run_s", 60.0)
    stop = end + (base + 1.0 if two == 2 else 0.5)
    programs = KINDS[o["program"]](rng, o, begin, end)
    last = max([t.t for p in programs for t in p.threads + p.helpers])
    if last > end - 0.01:
        end, stop = last + 0.02, stop + last + 0.02 - end
    edges = ([0.5, 0.5 + base] if two else []) + [begin, end] + ([end + 0.4, end + 0.4 + base] if two == 2 else [])

    # what the domains draw
    drift = o.get("drift", 0.0)
    packages = o.get("packages", 1)
    domains = {"pkg%d" % k: Domain(idle, drift * idle, begin, o.get("drift_tau", 20.0)) for k in range(packages)}
    if o.get("dram"):
        domains["dram0"] = Domain(3.0)
    gpu = o.get("gpu")
    if gpu:
        domains["gpu0"] = Domain(o.get("gpu_idle_w", 25.0), drift * 25.0 if o.get("gpu_drift") else 0, begin, 20.0)
        if o.get("gpu_static"):
            # power of a GPU that a program holds: while kernels run it is in theirs, and here between them
            work = np.sort(np.array([w[:2] for t in programs[0].threads if t.kind == "gpu" for w in t.work]), axis=0)
            gaps = np.array([np.concatenate([[begin + 0.5], work[:, 1]]), np.concatenate([work[:, 0], [end - 0.05]])])
            gaps = gaps[:, gaps[1] > gaps[0]]
            domains["gpu0"].add(gaps[0], gaps[1], o["gpu_static"])
            programs[0].truth((), None, {"gpu0": float(o["gpu_static"] * np.sum(gaps[1] - gaps[0]))})
    for p in programs:
        for t in p.threads + p.helpers:
            for d in domains:
                a = t.arrays(d)
                if a.size:
                    domains[d].add(a[0], a[1], a[2])
    strangers = others(rng, o, stop)
    recorder = sensors.read_times(0.2, stop, 0.01, [], rng)
    recorder = recorder[np.concatenate([[True], np.diff(recorder) > 4e-4])]
    strangers.append((o.get("recorder_cpu", 9), np.array([recorder, recorder + 4e-5]), 8.0))
    other_j = 0.0
    for cpu, iv, watts in strangers:
        domains["pkg0"].add(iv[0], iv[1], watts)
        other_j += watts * np.sum(np.clip(np.minimum(iv[1], end) - np.maximum(iv[0], begin), 0, None))
    for d in domains.values():
        d.build()
    if o.get("wall") is not None:
        wall = Domain(18.0)
        for d in domains.values():
            wall.parts = wall.parts + d.parts
            wall.idle_w += d.idle_w
        domains["wall"] = wall
        wall.build()

    store = Store(path)
    store.meta(nrg_version="0.2.0", command_line="python train.py", cpus=str(o.get("cpus", 12)), process_method="connector",
               begin_ns=str(ns(0.2)), end_ns=str(ns(stop)), cpu="Simulated CPU", kernel="6.1.0", architecture="x86_64")
    revision = o.get("revision", 2)
    if revision == 2:
        store.meta(revision=2)
    number = 1
    for kind, a, b in (([("baseline", 0.5, 0.5 + base)] if two else []) + [("run", begin, end)] +
                       ([("baseline", end + 0.4, end + 0.4 + base)] if two == 2 else [])):
        store.add("run", number, kind, int(ns(a)), int(ns(b)), 0 if kind == "run" else None)
        number += 1
    for t in np.arange(0.2, stop, 1.0):
        store.add("clock", int(ns(t)), int(ns(t)) + 1_700_000_000_000_000_000, None)

    write_sensors(store, o, rng, domains, edges, stop)
    if not o.get("imported"):
        write_kernel(store, o, rng, programs, strangers, recorder, edges, stop, begin, end)
    write_spans(store, o, programs)
    store.close()
    return truth(o, programs, domains, begin, end, other_j)


def write_sensors(store, o, rng, domains, edges, stop):
    rate = o.get("rate", 100.0)
    if o.get("rapl", True):
        t = sensors.read_times(0.2, stop, 1 / rate, edges, rng)
        powercap = o.get("powercap", True)
        unit = o.get("unit", 2.0**-14)
        names = [d for d in domains if d[:3] in ("pkg", "dra")]
        for k, d in enumerate(names):
            sensor = store.sensor("rapl-powercap" if powercap else "rapl-msr", "intel-rapl:%d" % k, 1 / rate)
            series = store.series("samples", sensor, ["a"])
            u = 2.0**-16 if d.startswith("dram") else unit
            raw = sensors.rapl(domains[d], t, rng, u, o.get("rapl_update", 1e-3), o.get("rapl_clock", rng.normal(0, 3e-3)),
                               o.get("rapl_jitter", 1.5e-5), start=o.get("rapl_start"))
            name = ("package-" if d[0] == "p" else "dram-") + d[-1]
            columns = [raw if not powercap else np.floor(raw * u / UJ).astype(np.int64)]
            wrap = 2**32 if not powercap else int(np.floor(2**32 * u / UJ))
            store.channel(series, 0, sensor, name, "energy", "counter", "J", UJ if powercap else u, wrap, update=1e-3,
                          resolution=u, limit=400.0, covers=1 if d[0] == "p" else 0, source="energy_uj" if powercap else "msr 0x611")
            if o.get("core") and d[0] == "p":
                core = Domain(domains[d].idle_w * 0.3)
                core.parts = [(a, b, w * 0.8) for a, b, w in domains[d].parts]
                core.build()
                raw = sensors.rapl(core, t, rng, unit, 1e-3, 0, 1e-5)
                columns.append(np.floor(raw * unit / UJ).astype(np.int64))
                store.channel(series, 1, sensor, "core-" + d[-1], "energy", "counter", "J", UJ, int(np.floor(2**32 * unit / UJ)),
                              update=1e-3, resolution=unit, limit=400.0, parent=name, covers=0, source="energy_uj")
                store.db.execute("UPDATE series SET n_columns=2 WHERE id=?", (series,))
            stamp = t + rng.normal(0, 1.5e-6, len(t))
            store.rows(series, ns(np.maximum.accumulate(stamp)), columns, width_ns=6000)
    if o.get("gpu"):
        write_gpu(store, o, rng, domains["gpu0"], edges, stop)
    if o.get("ina"):
        i = o["ina"]
        t = sensors.read_times(0.2, stop, 1 / i.get("rate", 10.0), edges if i.get("edges", True) else [], rng, loaded=0.02)
        sensor = store.sensor("ina3221", "ina3221x:0", 1 / i.get("rate", 10.0))
        series = store.series("samples", sensor, ["a"])
        mw = sensors.ina(domains["pkg0"], t, rng, i["tau"], i.get("update", 0.01), i.get("step_ma", 8), 5.0, i.get("noise", 0.0))
        store.channel(series, 0, sensor, i.get("name", "VDD_IN"), "power", "gauge", "W", 1e-3, update=i.get("update", 0.01) if i.get("known", True) else 0,
                      lag=i["tau"] if i.get("lag_known") else 0, resolution=i.get("step_ma", 8) * 5e-3, covers=1,
                      limit=0.0, source="in1_input*curr1_input")
        times = ns(t)
        if i.get("ms_stamps"):
            times = times // 1_000_000 * 1_000_000
        store.rows(series, times, [mw], width_ns=600_000 if not i.get("ms_stamps") else 1_000_000)
    if o.get("wall") is not None:
        w = o["wall"]
        t, tenths = sensors.wall(domains["wall"], 1.5, stop, rng, late=w.get("late", 0.1), late_jitter=w.get("jitter", 0.02))
        sensor = store.sensor(w.get("driver", "mqtt"), "plug", 1.0)
        series = store.series("samples", sensor, ["a"])
        store.channel(series, 0, sensor, "wall", "power", "gauge", "W", 0.1, update=1.0 if w.get("known", True) else 0,
                      window=1.0 if w.get("window_known") else 0, resolution=0.1, wide=1, covers=1, source="plug")
        store.rows(series, ns(t), [tenths], width_ns=1_000_000)
    if o.get("estimate"):
        pass  # written by write_kernel, as it is made of busy time


def write_gpu(store, o, rng, domain, edges, stop):
    g = o["gpu"]
    period = g.get("read", 0.02)
    t = sensors.read_times(0.2, stop, period, edges, rng, late=1.2e-4)
    ppm = g.get("ppm", rng.normal(0, 60))
    if g.get("counter"):
        sensor = store.sensor("nvml", "GPU-0", period)
        series = store.series("samples", sensor, ["a"])
        mj = sensors.nvml_counter(domain, t, rng, ppm, g.get("jitter", 0.0), g.get("update", 0.1))
        if g.get("counter_scale"):
            mj = (mj * g["counter_scale"]).astype(np.int64)
        store.channel(series, 0, sensor, "gpu-0", "energy", "counter", "J", 1e-3, update=g.get("update", 0.1), resolution=1e-3,
                      limit=700.0, source="nvmlDeviceGetTotalEnergyConsumption", low=g.get("error", 0.0), high=g.get("error", 0.0))
        store.rows(series, ns(t), [mj], width_ns=40_000)
    if g.get("gauge"):
        sensor = store.sensor("nvml", "GPU-0", period)
        series = store.series("samples", sensor, ["a"])
        window = {"mean": 0.1, "instant": 0.0, "part": 0.025, "running": 1.0}[g["gauge"]]
        tg = np.sort(t + 3e-5)
        mw = sensors.nvml_gauge(domain, tg, rng, g.get("update", 0.1), window, ppm, g.get("phase"))
        store.channel(series, 0, sensor, "gpu-0", "power", "gauge", "W", 1e-3, update=g.get("update", 0.1),
                      window=window if g.get("window_known", g["gauge"] in ("part", "running")) else 0, resolution=1e-3, limit=700.0,
                      source="nvmlDeviceGetPowerUsage")
        store.rows(series, ns(tg), [mw], width_ns=60_000)


def write_kernel(store, o, rng, programs, strangers, recorder, edges, stop, begin, end):
    hz = o.get("hz", 250)
    tasks, per_process = [], []
    for p in programs:
        mine = []
        for t in p.threads + p.helpers:
            if t.kind == "thread":
                t.run_time = RunTime(t.running())
                mine.append((t.cpu, t.run_time))
        tasks += mine
        per_process.append(mine)
    tasks += [(cpu, RunTime(iv)) for cpu, iv, _ in strangers]
    cpus = max([c for c, _ in tasks]) + 1
    kernel = Kernel(tasks, hz, rng, stop, cpus)
    t = poll_times(0.2, stop, edges, rng, 0.1)
    # processes
    series = store.series("processes", 0, ["process", "cpu_ns", "rss_bytes", "threads"])
    rows = []
    if o.get("short_lived"):
        pass
    for k, (p, mine) in enumerate(zip(programs, per_process)):
        number = k + 2
        at = np.unique(np.concatenate([[p.start], t[(t > p.start) & (t <= end + 1e-4)]]))
        used = sum(r.late(at, hz, kernel.phase[c]) for c, r in mine)
        used = np.maximum.accumulate(used)
        rows += [(x, number, int(u * 1e9), 500 << 20, len(mine)) for x, u in zip(at, used)]
        store.add("process", number, p.pid, 1 if k == 0 else programs[0].pid, 1000 + k, int(ns(p.start)), int(ns(end)), int(used[-1] * 1e9), 0,
                  500 << 20, 1000, 1, p.name, p.name, "", "")
    r = list(zip(*rows))
    store.rows(series, ns(r[0]), r[1:], width_ns=50_000, keyed=True)
    # threads with a track
    track = 0
    series = store.series("threads", 0, ["track", "cpu_ns"])
    rows = []
    for p in programs:
        for th in p.threads:
            track += 1
            if th.kind != "thread":
                continue
            at = t[(t > p.start + 0.02) & (t <= end + 1e-4)] + 3e-5
            value = th.run_time.late(at, hz, kernel.phase[th.cpu])
            keep = np.concatenate([[True], np.diff(value) > 0])
            keep |= np.concatenate([keep[1:] & ~keep[:-1], [False]])  # the end of a sleep
            at, value = at[keep], value[keep]
            at, value = np.concatenate([[p.start], at]), np.concatenate([[0], value])
            if o.get("revision", 2) == 2 and o.get("own_rows", True):
                t2, v2 = own_rows(th.events, th.run_time, rng)
                at, value = np.concatenate([at, t2]), np.concatenate([value, v2])
                order = np.argsort(at, kind="stable")
                at, value = at[order], value[order]
                good = value >= np.maximum.accumulate(value) - 1e-12
                at, value = at[good], value[good]
            rows += [(x, track, int(v * 1e9)) for x, v in zip(at, value)]
    if rows and o.get("thread_rows", True):
        r = list(zip(*rows))
        store.rows(series, ns(r[0]), r[1:], width_ns=20_000, keyed=True)
    # the machine's CPU time
    source = o.get("busy", "cpuacct")
    sensor = store.sensor("proc-stat", "cpu", 0.1)
    tb = t + 6e-5
    ticks = kernel.busy_ticks(tb)
    seconds = np.floor((ticks + 1234.5) / 0.01 + 1e-6).astype(np.int64)
    idle = np.floor((tb * o.get("cpus", 12) - ticks + 99999) / 0.01).astype(np.int64)
    own = np.searchsorted(recorder, tb) * 4e-5
    columns = [idle, np.zeros(len(tb), np.int64), np.rint(own * 1e9).astype(np.int64)]
    names = [("cpu.idle", 0.01, 0.01, 0.01, "/proc/stat"), ("cpu.steal", 0.01, 0.01, 0.01, "/proc/stat"), ("cpu.recorder", 1e-9, 1e-9, 0, "getrusage")]
    if o.get("revision", 2) == 1:
        columns, names = columns[:2], names[:2]
    if source == "stat":
        columns, names = [seconds] + columns, [("cpu.busy", 0.01, 0.01, 0.01, "/proc/stat")] + names
    series = store.series("samples", sensor, names)
    for col, (name, scale, resolution, update, text) in enumerate(names):
        store.channel(series, col, sensor, name, "seconds", "counter", "s", scale, update=update, resolution=resolution, source=text)
    store.rows(series, ns(tb), columns, width_ns=30_000)
    if source != "stat":
        series = store.series("samples", sensor, ["a"])
        if source == "cpuacct":
            scale, resolution, value, text = 1e-9, 1e-9, kernel.busy_late(tb) + 1234.5, "/sys/fs/cgroup/cpuacct/cpuacct.usage"
        elif source == "slices":  # user.slice, system.slice: all but kernel threads and interrupts
            scale, resolution, value, text = 1e-6, 1e-6, kernel.busy_late(tb) + 1234.5, "/sys/fs/cgroup/*/cpu.stat"
        else:
            scale, resolution, value, text = 1e-6, 1 / hz, ticks + 1234.5, "/sys/fs/cgroup/cpu.stat"
        value = np.maximum.accumulate(np.floor(value / scale + 1e-3).astype(np.int64))
        store.channel(series, 0, sensor, "cpu.busy", "seconds", "counter", "s", scale, update=1 / hz, resolution=resolution, source=text)
        store.rows(series, ns(tb), [value], width_ns=20_000)
    if o.get("estimate"):
        e = o["estimate"]
        sensor = store.sensor("estimate", "table", 0.1)
        series = store.series("samples", sensor, "abcd")
        busy = np.concatenate([[0], np.diff(ticks)])
        active = np.cumsum(busy) * e["w_per_cpu"]
        still = (tb - tb[0]) * e["idle_w"]
        value = [(still + active), (still + active) * 0.6, (still + active) * 1.5, still]
        for col, (name, parent) in enumerate([("machine", ""), ("machine.low", "machine"), ("machine.high", "machine"), ("machine.idle", "machine")]):
            store.channel(series, col, sensor, name, "energy", "counter", "J", 1e-6, update=0.1, resolution=1e-6, parent=parent, wide=1 if col == 0 else 0,
                          covers=1, provenance="estimated", low=0.4, high=0.5, source="table row")
        store.rows(series, ns(tb), [np.rint(v * 1e6).astype(np.int64) for v in value], width_ns=30_000)


def write_spans(store, o, programs):
    names, paths, rows, track = {}, {}, [], 0
    details = {}
    for p in programs:
        for th in p.threads:
            for _, event, (kind, name, detail), _, _ in th.events:
                if event == 0:
                    details[(kind, name)] = detail

    def name_id(key):
        if key not in names:
            names[key] = len(names) + 1
            store.add("span_name", names[key], key[0], key[1], details.get(key, ""))
        return names[key]

    def path_id(path):
        if not path:
            return 0
        if path not in paths:
            parent = path_id(path[:-1])
            paths[path] = len(paths) + 1
            store.add("span_path", paths[path], parent, name_id(path[-1]))
        return paths[path]

    count = 0
    for k, p in enumerate(programs):
        for th in p.threads:
            track += 1
            log = o.get("imported")
            store.add("span_track", track, o.get("log_kind", "log") if log else th.kind, 0 if th.kind == "gpu" or log else p.pid,
                      0 if th.kind == "gpu" or log else p.pid + th.cpu, 0 if th.kind == "gpu" or log else 1000 + k, th.domain, th.name)
            for t, event, (kind, name, _), value, parent in th.events:
                rows.append((t, track, event, name_id((kind, name)), -1 if value is None else value, 0 if parent is None else path_id(parent)))
                count += event == 0
    if not rows:
        return
    r = list(zip(*rows))
    present = [None, None, None, np.array(r[4]) >= 0, np.array(r[5]) > 0]
    series = store.series("spans", 0, ["track", "event", "name", "value", "parent"])
    store.rows(series, ns(r[0]), r[1:], presents=present, keyed=True)
    store.meta(spans=str(count))


def truth(o, programs, domains, begin, end, other_j):
    """Joules by path (own and inclusive), by step, and the parts of the total."""
    own, joules, steps = {}, {}, {}
    for p in programs:
        for path, by_domain in p.self_j.items():
            own[path] = own.get(path, 0) + sum(by_domain.values())
        for (thread, number), j in p.steps.items():
            steps[number] = steps.get(number, 0) + j
    for path, j in own.items():
        for depth in range(1, len(path) + 1):
            joules[path[:depth]] = joules.get(path[:depth], 0) + j
    measured = [domains["wall"]] if o.get("wall") is not None else list(domains.values())
    if o.get("estimate"):
        return dict(rows=estimate_rows(o, programs), steps={}, total_j=None)
    total = sum(float(np.diff(d.energy([begin, end]))[0]) for d in measured)
    idle = sum(float(np.diff(d.idle_energy([begin, end]))[0]) for d in measured)
    return dict(rows=[dict(path=[list(x) for x in path], energy_j=j, self_j=own.get(path, 0.0)) for path, j in joules.items()],
                steps={str(k): v for k, v in steps.items()}, total_j=total, idle_j=idle, others_j=float(other_j),
                unattributed_j=own.get((), 0.0), processes={p.name: sum(sum(d.values()) for d in p.self_j.values()) for p in programs})


def estimate_rows(o, programs):
    """Of an estimate: the law's watts per CPU times the CPU time on which a span was open."""
    joules, rate = {}, o["estimate"]["w_per_cpu"]
    for p in programs:
        for path, by_domain in p.cpu_s.items():
            for depth in range(1, len(path) + 1):
                joules[path[:depth]] = joules.get(path[:depth], 0) + by_domain * rate
    return [dict(path=[list(x) for x in path], energy_j=j, self_j=0.0) for path, j in joules.items()]
