"""One simulated run: recording + truth. Everything random comes from (scenario, seed)."""
import zlib
import numpy as np
from writer import Recording, NS
from machine import *

DEFAULT = dict(
    run_s=60, rate="auto", base_s=10, base_after=False, rev=2, threads=1, startup=0.8, shape="flat", layers=10,
    med=(0.2e-3, 8e-3), sig=(0.03, 0.4), watts=(6, 40), gap=0.0005, gap_busy=0.0, size_sig=0.0, alpha=0.0, beta=0.0,
    percall=0.0, wait=0.0, place=None, uneven=False, workers=0, evals=0, warm=0, load_wait=0.0, rare=0, skew=0,
    idle=18.0, drift=None, others=None, freq=None, busy="cpuacct", sampled=False, tick=0.004, edge=True,
    threads_known=True, rapl_p=None, rapl_jit=15e-6, rapl_wander=0.0, late="normal", domains=("package-0",),
    sensor="rapl", migrate=0.0, named_threads=True, ncpu=8, epochs=0, dep=False, lag=0.0, lag_known=False,
    gauge_noise=0.0, read_s=None, window=None, update=None, upd_jit=0.0, ppm=100.0, gpu=False, busy_known=True,
    thread_start=0.0, period_step=False, kernel_tail=0.0, wall=False, tid_changes=False, overhead=True,
    recorder_cpu=60e-6, ramp=0.0, mode_mix=0.0, limit=True, gap_kind="sleep", heavy=False, procs=1, passive=False)


def delays(rng, n, how):
    d = 60e-6 * np.exp(rng.normal(0, 0.45, n))
    p, m = dict(normal=(0.01, 1.5e-3), loaded=(0.06, 6e-3), quiet=(0.001, 0.5e-3))[how]
    return d + (rng.random(n) < p) * rng.exponential(m, n)


def read_times(rng, begin, end, period, how):
    """Deadlines on a grid; a reading that comes after the next deadlines leaves these out."""
    k = np.arange(int((end - begin) / period) + 1)
    t = begin + k * period
    r = t + delays(rng, len(t), how)
    keep = np.r_[True, r[:-1] < t[1:]]
    r = np.maximum.accumulate(r)
    late = int((~keep).sum())
    return r[keep & (r < end)], late


def law_draw(rng, o, i, n):
    med = np.exp(rng.uniform(*np.log(o["med"])))
    sig = rng.uniform(*o["sig"])
    w = np.exp(rng.uniform(*np.log(o["watts"])))
    wait = o["wait"] * (rng.choice([0.1, 0.5, 2.0]) if o["uneven"] else rng.uniform(0.5, 1.5)) if o["wait"] else 0.0
    alpha = o["alpha"] * rng.uniform(0.3, 1.2) if o["alpha"] else 0.0
    beta = o["beta"] * rng.uniform(-0.3, 1.0) if o["beta"] else 0.0
    place = o["place"]
    if place == "own":
        place = rng.choice([0.0, 0.5, 1.0])
    workers = 0
    if o["workers"]:
        workers = rng.choice([0, 0, 1, o["workers"]])
        if o["mode_mix"]:
            workers = workers * rng.uniform(0.4, 1.0)
    return Law(med, sig, w, dram=rng.uniform(0.5, 6), alpha=alpha, beta=beta,
               percall=o["percall"] if not o["heavy"] else rng.choice([0.0, o["percall"]]), wait=wait, place=place, workers=workers, passive=o["passive"])


def templates_of(rng, o, root, paths, laws):
    """Lists of tokens: training step, and what else the program does."""
    small = lambda: Law(rng.uniform(8e-6, 60e-6), 0.3, rng.uniform(8, 25), dram=1.0) if o["overhead"] else None
    leaf = lambda name, kind="layer": (kind, name, law_draw(rng, o, 0, 0), [], 1)
    names = ["conv1", "bn1", "relu", "conv2", "attn", "mlp", "norm", "embed", "head", "pool", "drop", "act", "fc1", "fc2",
             "softmax", "proj"]
    L = o["layers"]
    extra = []
    if o["shape"] == "flat":
        children = [leaf(names[i % 16] + ("" if i < 16 else str(i))) for i in range(L)]
    else:
        blocks, backs = [], []
        nb = max(L // 4, 1)
        for b in range(nb):
            lv = [leaf("blocks.%d.%s" % (b, names[(b * 3 + i) % 16]), "module") for i in range(2)]
            bk = [leaf("blocks.%d.%s" % (b, names[(b * 3 + i) % 16]), "backward") for i in (1, 0)]
            blocks.append(("module", "blocks.%d" % b, small(), lv, 1))
            backs.append(("backward", "blocks.%d" % b, small(), bk, 1))
        fw = ("module", "Net", small(), blocks + [leaf("classifier", "module")], 1)
        bw = ("backward", "Net", small(), [leaf("classifier", "backward")] + backs[::-1], 1)
        children = [fw, leaf("loss", "operator"), bw, leaf("optimizer", "operator")]
    if o["load_wait"]:
        ld = ("span", "dataloader.next", Law(o["load_wait"] * 0.3, 0.4, 14.0, wait=o["load_wait"] / (o["load_wait"] * 0.3) * 0.7, place=0.2), [], 1)
        children = [ld] + children
    if o["skew"]:
        children.insert(len(children) // 2, ("operator", "aten::add", Law(rng.uniform(30e-6, 90e-6), 0.3, rng.uniform(8, 30), dram=2.0), [], o["skew"]))
    step = ("step", root, small(), children, 1)
    out = [tokens_of(step, (), paths, laws, [])]
    if o["evals"]:
        if o["shape"] == "flat":
            ev = [leaf("eval." + names[i]) for i in range(3)] + children[:2]
        else:
            ev = [children[0] if not o["load_wait"] else children[1], leaf("metrics", "operator")]
        out.append(tokens_of(("phase", "evaluation", small(), ev, 1), (), paths, laws, []))
    if o["rare"]:
        out.append(tokens_of(("phase", "checkpoint", small(), [leaf("state_dict"), leaf("write")], 1), (), paths, laws, []))
    return out


def schedule_of(o, templates):
    def pick(i):
        f = 4.0 if i < o["warm"] else 1.0
        if o["evals"] and i % o["evals"] >= o["evals"] * 4 // 5:
            return 1, 1.0
        if o["rare"] and i % o["rare"] == o["rare"] - 1:
            return len(templates) - 1, 1.0
        return 0, f
    return pick


def other_segments(rng, spec, t0, t1):
    if not spec:
        return np.zeros(0), np.zeros(0)
    n = int((t1 - t0) / (spec["on"] + spec["off"]) * 2) + 50
    on, off = rng.exponential(spec["on"], n), rng.exponential(spec["off"], n)
    a = t0 + np.cumsum(on + off) - on
    keep = a + on < t1
    return a[keep], (a + on)[keep]


class Run:
    """Builds everything; `truth` has joules per path and in all."""
    def __init__(self, name, seed, path, **options):
        o = self.o = dict(DEFAULT, **options)
        assert set(o) == set(DEFAULT), set(o) - set(DEFAULT)
        self.rng = rng = np.random.default_rng([zlib.crc32(name.encode()), seed])
        self.paths, self.laws = Paths(), {}
        self.t_rec = 1000.0 + rng.uniform(0, 1)
        self.base = (self.t_rec + 0.05, self.t_rec + 0.05 + o["base_s"])
        self.begin = self.base[1] + rng.uniform(0.01, 0.05)
        self.t_work = self.begin + rng.uniform(0.002, 0.02)
        self.t_first = self.t_work + o["startup"]
        self.t_stop = self.t_first + o["run_s"]
        self.tick_phase = rng.uniform(0, o["tick"], 64)
        self.threads = [self.thread(i) for i in range(o["threads"])]
        self.end = max(t.t_last for t in self.threads) + rng.uniform(0.01, 0.08)
        self.after = (self.end + 0.03, self.end + 0.03 + o["base_s"])
        self.t_close = (self.after[1] if o["base_after"] else self.end) + 0.05
        self.frequency()
        self.others()
        self.energies()
        self.write(path)

    def thread(self, i):
        o, rng = self.o, self.rng
        root = "train" if o["threads"] == 1 or not o["named_threads"] else "train %d" % i
        if i == 0 or o["named_threads"]:
            self.templates = templates_of(rng, o, root, self.paths, self.laws)
        gap = dict(mean=o["gap"], random=True, busy=o["gap_busy"], watts=15.0)
        first = self.t_first + i * 0.013 + i * o["thread_start"]
        th = run_program(rng, self.templates, self.laws, schedule_of(o, self.templates), first, self.t_stop, gap, -1, o["size_sig"])
        end = th.t_last + rng.uniform(0.002, 0.03)
        if i == 0 and o["startup"]:
            th.segment(self.t_work, first, -1, rng.uniform(10, 25), 2.0, 1, 0)
        th.segment(th.t_last, end, -1, 12.0, 1.0, 1, 0)
        th.t_last = end
        if o["epochs"]:
            self.add_epochs(th)
        th.finish(th.order)
        th.cpu_no = i
        return th

    def add_epochs(self, th):
        """Spans around groups of steps; time between steps is then theirs."""
        pass

    def frequency(self):
        o, rng = self.o, self.rng
        self.f_cuts, self.f = np.zeros(0), np.ones(1)
        if o["freq"]:
            n = o["freq"]["n"]
            self.f_cuts = np.sort(rng.uniform(self.t_first, self.t_stop, n))
            self.f = np.where(np.arange(n + 1) % 2, o["freq"]["x"], 1.0)
        for th in self.threads:
            th.cut(self.f_cuts)
            f = self.f[np.searchsorted(self.f_cuts, th.s0, side="right")]
            th.w = th.w * f

    def others(self):
        o, rng = self.o, self.rng
        spec = o["others"]
        t0 = self.t_rec if spec and spec.get("base") else self.begin
        self.oth = other_segments(rng, spec, t0, self.t_close)
        self.oth_w = spec["watts"] if spec else 0.0

    def reads(self, period=None, until=None):
        """Times at which an energy sensor is read: 10 a second until the first span, then `rate`."""
        o, rng = self.o, self.rng
        if period is None:
            period = 0.01 if o["rate"] == "auto" else 1.0 / o["rate"]
        slow = 0.1 if o["rate"] == "auto" else period
        a, l1 = read_times(rng, self.t_rec + 0.001, self.t_first, slow, o["late"])
        b, l2 = read_times(rng, self.t_first + 0.002, self.t_close, period, o["late"])
        edges = np.array([self.base[0] - 30e-6, self.base[1] + 30e-6, self.begin - 30e-6, self.end + 30e-6] +
                         ([self.after[0] - 30e-6, self.after[1] + 30e-6] if o["base_after"] else []))
        if o["base_s"] == 0:
            edges = edges[2:]
        self.late = l1 + l2
        t = np.sort(np.concatenate([a, b, edges]))
        return t[np.r_[True, np.diff(t) > 5e-6]]

    def energies(self):
        """Cumulative joules of each domain, and truth of paths."""
        o, rng = self.o, self.rng
        grid = np.arange(self.t_rec - 1, self.t_close + 1, 0.01)
        x = np.clip((grid - self.begin) / (self.end - self.begin), 0, 1)
        shape = dict(line=x, warm=1 - np.exp(-x * 4), jump=(x > 0.4).astype(float), hump=np.sin(np.pi * x)).get((o["drift"] or {}).get("how"), 0 * x)
        idle = o["idle"] * (1 + (o["drift"] or {}).get("by", 0.0) * shape)
        self.idle_cum = cum_of(grid[:-1], grid[1:], idle[:-1])
        reads = self.reads(None)
        self.rec_s = (reads, reads + o["recorder_cpu"])
        overlap = np.minimum(self.rec_s[1], np.r_[self.rec_s[0][1:], np.inf])
        self.rec_s = (self.rec_s[0], overlap)
        doms = self.doms = {}
        self.truth_self = {}
        n = len(self.paths.list)
        npk = sum(d.startswith("package") for d in o["domains"])
        home = [rng.integers(npk) if npk > 1 else 0 for _ in self.threads]
        for d in o["domains"]:
            if d.startswith("gpu"):
                continue
            cums, tr = [], np.zeros(n)
            for th, h in zip(self.threads, home):
                w = th.w if d.startswith("package") else th.d
                if npk > 1:
                    at = np.full(len(w), h)
                    if o["migrate"]:
                        at = (h + np.floor(th.s0 / o["migrate"] + 0.37).astype(int) * 7919 // 7 % 3 // 2) % npk
                    w = np.where(at == int(d[-1]), w, 0.0)
                cums.append(cum_of(th.s0, th.s1, w))
                m = th.cls >= 0
                tr += np.bincount(th.cls[m], (w * (th.s1 - th.s0))[m], n)
            k = 1.0 if d == "package-0" else 0.7 if d.startswith("package") else 0.15
            cums.append(Cum(self.idle_cum.t, self.idle_cum.c * k))
            if d == "package-0":
                cums.append(cum_of(*self.rec_s, np.full(len(self.rec_s[0]), 11.0)))
                if len(self.oth[0]):
                    cums.append(cum_of(*self.oth, np.full(len(self.oth[0]), self.oth_w)))
            doms[d], self.truth_self[d] = cums, tr
        self.reads_t = reads

    def E(self, d, t):
        return sum(c(t) for c in self.doms[d])

    # ---- what is recorded

    def write(self, path):
        o = self.o
        meta = dict(nrg_version="0.2.0", command_line="python3 train.py", host="sim", kernel="6.1.0", architecture="x86_64",
                    cpu="Simulated CPU", cpus=o["ncpu"], boot_id="b", process_method="connector", begin_ns=int(self.t_rec * NS),
                    end_ns=int(self.t_close * NS), ticks=len(self.reads_t), late_ticks=self.late)
        if o["rev"] == 2:
            meta["revision"] = 2
        else:
            meta["nrg_version"] = "0.1.0"
        if o["rate"] != "auto":
            meta["option.rate"] = str(o["rate"])
        r = self.r = Recording(path, meta)
        if o["base_s"]:
            r.add("run", kind="baseline", begin_ns=int(self.base[0] * NS), end_ns=int(self.base[1] * NS))
        r.add("run", kind="run", begin_ns=int(self.begin * NS), end_ns=int(self.end * NS), exit_code=0)
        if o["base_after"]:
            r.add("run", kind="baseline", begin_ns=int(self.after[0] * NS), end_ns=int(self.after[1] * NS))
        for t in np.arange(self.t_rec, self.t_close, 1.0):
            r.add("clock", mono_ns=int(t * NS), real_ns=int((t + 1.7e9) * NS), tsc=None)
        getattr(self, "sensor_" + o["sensor"].replace("-", "_"))()
        self.write_cpu()
        self.write_spans()
        r.close()

    def read_with_width(self, t):
        """When the value really was taken, and the longest that a reading took."""
        rng = self.rng
        width = 3e-6 * np.exp(rng.normal(0, 0.4, len(t)))
        width += (rng.random(len(t)) < 2e-4) * rng.exponential(1e-3, len(t))
        return t + width * (rng.random(len(t)) - 0.5), (width * NS).astype(int)

    def sensor_rapl(self):
        o, rng, r = self.o, self.rng, self.r
        period = 0.1 if o["rate"] == "auto" else 1.0 / o["rate"]
        q = 2.0 ** -14
        p = o["rapl_p"] or 1e-3 * (1 + rng.uniform(-0.03, 0.03))
        n = int((self.t_close - self.t_rec + 2) / p) + 10
        wander = np.cumsum(rng.normal(0, o["rapl_wander"], n)) if o["rapl_wander"] else 0.0
        u = self.t_rec - 1 + rng.uniform(0, p) + p * np.arange(n) + wander + rng.normal(0, o["rapl_jit"], n)
        u = np.maximum.accumulate(u)
        for d in o["domains"]:
            if d.startswith("gpu"):
                continue
            sensor = r.sensor("rapl-powercap", "intel-rapl:" + d[-1] + (":1" if d.startswith("dram") else ""), period)
            series = r.series("samples", sensor, [d])
            t = self.reads_t + (25e-6 if d.startswith("dram") else 12e-6 if d == "package-1" else 0)
            at, width = self.read_with_width(t)
            e = self.E(d, u[np.searchsorted(u, at, side="right") - 1])
            start = 2 ** 32 * q - rng.uniform(0, 2) * (e[-1] - e[0])
            raw = np.floor((start + e - e[0]) / q) % 2 ** 32
            r.channel(series, 0, sensor, d, "energy", "counter", "J", 1e-6, wrap=262144000000, update_ns=1000000,
                      resolution=q, limit_w=250.0 if o["limit"] else 0.0, covers_cpu=int(d.startswith("package")), source="/sys/class/powercap/intel-rapl:%s/energy_uj" % d[-1])
            r.rows(series, np.round(t * NS), [np.floor(raw * q * 1e6)], width_ns=width)

    def write_cpu(self):
        """Processes, threads and cpu.busy, every 100 ms and at edges of runs."""
        o, rng, r = self.o, self.rng, self.r
        if not o["busy_known"]:
            return
        t, _ = read_times(rng, self.t_rec + 0.001, self.t_close, 0.1, o["late"])
        edges = [self.begin - 20e-6, self.end + 20e-6]
        if o["base_s"]:
            edges += [self.base[0] - 20e-6, self.base[1] + 20e-6]
        if o["base_after"]:
            edges += [self.after[0] - 20e-6, self.after[1] + 20e-6]
        t = np.sort(np.r_[t, edges])
        t = t[np.r_[True, np.diff(t) > 1e-4]]
        thr, wrk = [], []
        for i, th in enumerate(self.threads):
            on = th.cpu > 0
            thr.append(Busy(th.s0[on], th.s1[on], np.ones(on.sum()), o["tick"], self.tick_phase[i]).join())
            on = th.work > 0
            wrk.append(Busy(th.s0[on], th.s1[on], th.work[on], o["tick"], self.tick_phase[20 + i]).join())
        rest = [Busy(*self.rec_s, np.ones(len(self.rec_s[0])), o["tick"], self.tick_phase[40]).join(),
                Busy(*self.oth, np.ones(len(self.oth[0])), o["tick"], self.tick_phase[41]).join()]
        gap = 30e-6 if o["rev"] == 2 else 100e-6
        jit = lambda: rng.uniform(0.5, 1.5, len(t))
        if o["rev"] == 2:
            tp = t; tt = t + gap * 0.4 * jit(); tb = t + gap * jit()
        else:
            tb = t; tp = t + gap * jit(); tt = np.sort(t + rng.uniform(0, 0.02, len(t)))
        allb = thr + wrk + rest
        how = dict(cpuacct=("shown", 1e-9, 1e-9, "/sys/fs/cgroup/cpuacct/cpuacct.usage"), cgroup=("shown", 1e-6, 1e-6, "/sys/fs/cgroup/user.slice/cpu.stat"),
                   cgticks=("sampled", 1e-6, o["tick"], "/sys/fs/cgroup/cpu.stat"), stat=("sampled" if o["sampled"] else "exact", 0.01, 0.01, "/proc/stat"))[o["busy"]]
        busy = sum(getattr(b, how[0])(tb) for b in allb) + 5000.0
        ticks = sum((b.sampled if o["sampled"] else b.exact)(tb) for b in allb) + 5000.0
        idle = o["ncpu"] * (tb - self.t_rec) - (ticks - 5000) + 90000
        sensor = r.sensor("cpu", "load", 0.1)
        series = r.series("samples", sensor, ["x"])
        col = 0
        cols = []
        if o["busy"] == "stat":
            r.channel(series, col, sensor, "cpu.busy", "seconds", "counter", "s", 0.01, update_ns=10000000, resolution=0.01, source="/proc/stat")
            cols.append(np.floor(busy / 0.01)); col += 1
        r.channel(series, col, sensor, "cpu.idle", "seconds", "counter", "s", 0.01, update_ns=10000000, resolution=0.01, source="/proc/stat")
        cols.append(np.floor(idle / 0.01)); col += 1
        r.channel(series, col, sensor, "cpu.steal", "seconds", "counter", "s", 0.01, update_ns=10000000, resolution=0.01, source="/proc/stat")
        cols.append(np.zeros(len(t)))
        r.db.execute("UPDATE series SET n_columns=? WHERE id=?", (len(cols), series))
        r.rows(series, np.round(tb * NS), cols, width_ns=20000)
        if o["busy"] != "stat":
            s2 = r.series("samples", sensor, ["cpu.busy"])
            r.channel(s2, 0, sensor, "cpu.busy", "seconds", "counter", "s", how[1], update_ns=int(o["tick"] * NS), resolution=how[2], source=how[3])
            r.rows(s2, np.round(tb * NS), [np.floor(busy / how[1])], width_ns=20000)
        # the program's process
        alive = (tp > self.t_work) & (tp < self.end)
        pt = np.r_[self.t_work + 0.0005, tp[alive], self.end - 0.0005]
        pt = np.unique(pt)
        cpu = sum(b.shown(pt) for b in thr + wrk)
        cpu = np.floor(np.maximum.accumulate(cpu) * NS)
        r.add("process", id=1, pid=0, parent_pid=0, start_ticks=0, first_ns=int(self.begin * NS), last_ns=int(self.end * NS), cpu_ns=0, cpu_before_ns=0,
              peak_rss_bytes=0, uid=-1, ended=0, name="(short-lived)", command="", container="", unit="")
        r.add("process", id=2, pid=4711, parent_pid=1, start_ticks=101234, first_ns=int(pt[0] * NS), last_ns=int(pt[-1] * NS), cpu_ns=int(cpu[-1]),
              cpu_before_ns=0, peak_rss_bytes=10 ** 9, uid=1000, ended=1, name="python3", command="python3 train.py", container="", unit="")
        ps = r.series("processes", 0, ["process", "cpu_ns", "rss_bytes", "threads"])
        one = np.ones(len(pt))
        r.rows(ps, np.round(pt * NS), [2 * one, cpu, 1e9 * one, len(thr) * one], width_ns=20000, split=10 ** 6)
        if not o["threads_known"]:
            return
        T, K, C = [], [], []
        for i, (th, b) in enumerate(zip(self.threads, thr)):
            # the recorder's readings, from the thread's first mark on
            ok = (tt > th.ev_t[0]) & (tt < th.t_last)
            v = b.shown(tt[ok])
            x = tt[ok]
            if o["edge"]:
                ex = self.edge_reads(th)
                x, v = np.r_[x, ex], np.r_[v, b.exact(ex)]
                s = np.argsort(x, kind="stable")
                x, v = x[s], v[s]
                v = np.maximum.accumulate(v)
            same = np.r_[False, np.diff(v) == 0] & np.r_[np.diff(v) == 0, False]
            x, v = x[~same], v[~same]
            T.append(x); K.append(np.full(len(x), i + 1)); C.append(v)
        s = r.series("threads", 0, ["track", "cpu_ns"])
        r.rows(s, np.round(np.concatenate(T) * NS), [np.concatenate(K), np.floor(np.concatenate(C) * NS)], width_ns=1000, split=10 ** 6)

    def edge_reads(self, th):
        """The thread itself: first edge after 1 to 4 ms, and begins of numbered spans."""
        out, nxt = [], -1.0
        every = self.rng.uniform(1e-3, 4e-3)
        for t, k, n in zip(th.ev_t.tolist(), th.ev_kind.tolist(), th.ev_num.tolist()):
            if t >= nxt or (k == 0 and n >= 0):
                out.append(t + (-3e-7 if k == 0 else 3e-7))
                nxt = t + every
        out.append(th.t_last - 1e-6)
        return np.array(out)

    def write_spans(self):
        o, r = self.o, self.r
        names = {}
        for p in self.paths.list:
            if p[-1] not in names:
                names[p[-1]] = r.add("span_name", kind=p[-1][0], name=p[-1][1], detail="")
        T, K, E, N, V, P = [], [], [], [], [], []
        for i, th in enumerate(self.threads):
            r.add("span_track", id=i + 1, kind="thread", pid=4711, tid=4711 + i, start_ticks=101234, domain="", name="thread %d" % i)
            name = np.array([names[p[-1]] for p in self.paths.list])[th.ev_path]
            T.append(th.ev_t); K.append(np.full(len(th.ev_t), i + 1)); E.append(th.ev_kind); N.append(name); V.append(th.ev_num)
        T, K, E, N, V = [np.concatenate(x) for x in (T, K, E, N, V)]
        s = np.argsort(T, kind="stable")
        T, K, E, N, V = T[s], K[s], E[s], N[s], V[s]
        series = r.series("spans", 0, ["track", "event", "name", "value", "parent"])
        has = V >= 0
        none = np.zeros(len(T), bool)
        r.rows(series, np.round(T * NS), [K, E, N, V, 0 * K], [None, None, None, has & (E == 0), none], width_ns=100)
        r.db.execute("INSERT INTO meta VALUES('spans',?)", (int((E == 0).sum()),))

    def truth(self):
        n = len(self.paths.list)
        own = sum(self.truth_self.values())
        inc = own.copy()
        for i, p in enumerate(self.paths.list):
            for j, q in enumerate(self.paths.list):
                if j != i and len(q) > len(p) and q[:len(p)] == p:
                    inc[i] += own[j]
        total = sum(float(self.E(d, self.end) - self.E(d, self.begin)) for d in self.doms)
        parent = {p[:k] for p in self.paths.list for k in range(1, len(p))}
        return dict(own=own, inc=inc, total=total, leaf=[p not in parent for p in self.paths.list])

    # ---- gauges

    def gauge_rows(self, name, driver, t, values, step, **more):
        o, r = self.o, self.r
        sensor = r.sensor(driver, name, more.pop("period"))
        series = r.series("samples", sensor, [name])
        r.channel(series, 0, sensor, name, "power", "gauge", "W", step, resolution=step, covers_cpu=1, **more)
        r.rows(series, np.round(t * NS), [np.round(values / step)], width_ns=30000)

    def sensor_ina(self):
        """INA3221 behind a filter: read every read_s, steps of 40 mW or so, lag not told."""
        o, rng = self.o, self.rng
        period = o["read_s"] or 0.01
        t, _ = read_times(rng, self.t_rec + 0.001, self.t_close, period, o["late"])
        y = filtered(self.doms["package-0"], o["lag"], t, self.t_rec - 0.5, o["idle"])
        y = y + rng.normal(0, o["gauge_noise"], len(t))
        self.gauge_rows("VDD_IN", "ina3221", t, y, 0.02, period=period, update_ns=o["update"] or 0,
                        lag_ns=int(o["lag"] * NS) if o["lag_known"] else 0, source="/sys/class/hwmon/hwmon0/power1_input")

    def sensor_inabox(self):
        """INA3221 as the chip does it: mean of its last conversion cycle, held until the next."""
        o, rng = self.o, self.rng
        period = o["read_s"] or 0.01
        t, _ = read_times(rng, self.t_rec + 0.001, self.t_close, period, o["late"])
        T = o["update"] * (1 + o["ppm"] * 1e-6)
        u = np.arange(self.t_rec - 1 + rng.uniform(0, T), self.t_close + 1, T)
        mean = np.diff(self.E("package-0", u)) / T
        i = np.searchsorted(u, t, side="right") - 1
        y = mean[i - 1] + rng.normal(0, o["gauge_noise"], len(t))
        self.gauge_rows("VDD_IN", "ina3221", t, y, 0.02, period=period, update_ns=0, source="/sys/class/hwmon/hwmon0/power1_input")

    def sensor_wall(self):
        """A plug that sends once a second the mean of the last second; rows are updates."""
        o, rng = self.o, self.rng
        T = 1.0 * (1 + rng.normal(0, 2e-4))
        u = np.arange(self.t_rec + rng.uniform(0, T), self.t_close, T)
        mean = (self.E("package-0", u) - self.E("package-0", u - T)) / T
        t = u + 0.02 + rng.exponential(0.01, len(u))
        self.gauge_rows("wall", "meter-lines", t, mean, 0.1, period=1.0, update_ns=int(1e9), wide=1, source="serial")


class GpuRun(Run):
    """A program whose layers launch kernels; the GPU has a stream and a domain of its own."""
    def thread(self, i):
        o, rng = self.o, self.rng
        th = Thread()
        root = ("step", "train")
        step = (root,)
        L = [(step + (("module", "layer%d" % k),)) for k in range(o["layers"])]
        kern = [p + (("kernel", "kern%d" % k),) for k, p in enumerate(L)]
        sync = step + (("span", "cudaStreamSynchronize"),)
        for p in [step] + L + kern + [sync]:
            self.paths(p)
        med = np.exp(rng.uniform(*np.log(o["med"]), o["layers"]))
        sig = rng.uniform(*o["sig"], o["layers"])
        gw = rng.uniform(60, 300, o["layers"])
        cw = rng.uniform(10, 25, o["layers"])
        calls = rng.choice([1, 1, 1, 2, 3], o["layers"])
        g0, g1, gc, gpw = [], [], [], []
        t, gpu_free, n = self.t_first, self.t_first, 0
        order = []
        E, S = [], []
        fixed = o["period_step"]
        while t < self.t_stop:
            t_step = t
            E.append((t, 0, self.paths(step), n))
            for k in range(o["layers"]):
                for _ in range(calls[k]):
                    a = t
                    t += rng.uniform(5e-6, 10e-6)
                    S.append((a, t, self.paths(step), 12.0, 1, 0))
                    E.append((t, 0, self.paths(L[k]), -1))
                    a = t
                    t += 20e-6 * np.exp(rng.normal(0, 0.3))
                    S.append((a, t, self.paths(L[k]), cw[k], 1, 0))
                    E.append((t, 1, self.paths(L[k]), -1))
                    b = max(gpu_free + 2e-6, t - 8e-6)
                    d = med[k] * np.exp(sig[k] * rng.normal()) if not fixed else med[k]
                    g0.append(b); g1.append(b + d); gc.append(k); gpw.append(gw[k])
                    gpu_free = b + d
            E.append((t, 0, self.paths(sync), -1))
            done = max(gpu_free, t) + 15e-6
            S.append((t, done, self.paths(sync), 9.0, 1, 0))
            t = done
            E.append((t, 1, self.paths(sync), -1))
            E.append((t, 1, self.paths(step), n))
            if fixed:
                t = max(t, t_step + o["period_step"])
            else:
                t += rng.exponential(o["gap"]) if o["gap"] else 0
            n += 1
        E = np.array(E)
        th.event(E[:, 0], E[:, 1], E[:, 2].astype(int), E[:, 3].astype(int))
        th.ev_kind = [E[:, 1].astype(int)]; th.ev_path = [E[:, 2].astype(int)]; th.ev_num = [E[:, 3].astype(int)]
        S = np.array(S)
        th.segment(S[:, 0], S[:, 1], S[:, 2], S[:, 3], 1.0, S[:, 4], S[:, 5])
        th.segment(self.t_work, self.t_first, -1, 15.0, 2.0, 1, 0)
        th.t_last = t + 0.01
        th.segment(t, th.t_last, -1, 12.0, 1.0, 1, 0)
        th.finish([np.arange(len(E))])
        self.gpu = (np.array(g0), np.array(g1), np.array([self.paths(kern[k]) for k in gc]), np.array(gpw))
        self.kern, self.hostpath = kern, L
        return th

    def energies(self):
        super().energies()
        g0, g1, gc, gw = self.gpu
        f = self.f[np.searchsorted(self.f_cuts, g0, side="right")]
        gw = gw * f
        idle = 42.0
        grid = np.array([self.t_rec - 2, self.t_close + 2])
        self.doms["gpu-0"] = [cum_of(g0, g1, gw), Cum(grid, idle * (grid - grid[0]))]
        self.truth_self["gpu-0"] = np.bincount(gc, gw * (g1 - g0), len(self.paths.list))

    def grid_updates(self):
        o, rng = self.o, self.rng
        T = o["update"] * (1 + rng.uniform(-1, 1) * o["ppm"] * 1e-6)
        n = int((self.t_close - self.t_rec + 3) / T)
        u = self.t_rec - 2 + rng.uniform(0, T) + T * np.arange(n) + rng.normal(0, o["upd_jit"], n)
        return T, u

    def sensor_rapl(self):
        super().sensor_rapl()
        o, rng, r = self.o, self.rng, self.r
        if "gpu-0" not in o["domains"]:
            o["domains"] = tuple(o["domains"]) + ("gpu-0",)
        T, u = self.grid_updates()
        period = o["read_s"] or 0.02
        t, _ = read_times(rng, self.t_rec + 0.003, self.t_close, period, o["late"])
        t = np.sort(np.r_[t, self.begin - 3e-5, self.end + 3e-5])
        i = np.searchsorted(u, t, side="right") - 1
        sensor = r.sensor("nvml", "GPU-0", period)
        if self.o["kernel_tail"] >= 0 and o["dep"] is False:
            s = r.series("samples", sensor, ["gpu-0"])
            r.channel(s, 0, sensor, "gpu-0", "energy", "counter", "J", 1e-3, update_ns=int(o["update"] * NS), resolution=1e-3,
                      limit_w=400.0, source="nvmlDeviceGetTotalEnergyConsumption")
            r.rows(s, np.round(t * NS), [np.floor(self.E("gpu-0", u[i]) * 1000 + 7e6)], width_ns=60000)
        else:
            w = o["window"]
            p = (self.E("gpu-0", u) - self.E("gpu-0", u - w)) / w if w > 0 else (self.E("gpu-0", u) - self.E("gpu-0", u - 1e-4)) / 1e-4
            s = r.series("samples", sensor, ["gpu-0"])
            r.channel(s, 0, sensor, "gpu-0", "power", "gauge", "W", 1e-3, update_ns=int(o["update"] * NS) if o["dep"] != "unknown" else 0, resolution=1e-3,
                      window_ns=int(w * NS) if o["dep"] == "said" else 0, limit_w=400.0, source="nvmlDeviceGetPowerUsage")
            r.rows(s, np.round(t * NS), [np.floor(p[i] * 1000)], width_ns=60000)
        gp = r.series("gpu_processes", 0, ["pid", "gpu", "device_pid", "sm_ppm", "memory_bytes", "size_ppm"])
        tt = np.arange(self.t_first, self.end, 0.1)
        one = np.ones(len(tt))
        r.rows(gp, np.round(tt * NS), [4711 * one, 0 * one, 4711 * one, 900000 * one, 1e9 * one, 0 * one],
               [None, None, None, None, None, np.zeros(len(tt), bool)], split=10 ** 6)

    def write_spans(self):
        super().write_spans()
        r = self.r
        g0, g1, gc, gw = self.gpu
        ids = {}
        for k, p in enumerate(self.kern):
            for d in range(1, len(p)):
                q = p[:d]
                if q not in ids:
                    name = r.db.execute("SELECT id FROM span_name WHERE kind=? AND name=?", q[-1]).fetchone()[0]
                    ids[q] = r.add("span_path", parent=ids[q[:-1]] if d > 1 else 0, name=name)
        r.add("span_track", id=50, kind="gpu", pid=4711, tid=0, start_ticks=101234, domain="gpu-0", name="GPU 0 stream 7")
        series = r.series("spans", 0, ["track", "event", "name", "value", "parent"])
        n = len(g0)
        t = np.empty(2 * n); t[0::2], t[1::2] = g0, g1
        e = np.tile([0, 1], n)
        nm = {p: r.db.execute("SELECT id FROM span_name WHERE kind=? AND name=?", self.paths.list[p][-1]).fetchone()[0] for p in set(gc.tolist())}
        pp = {p: ids[self.paths.list[p][:-1]] for p in nm}
        name = np.repeat([nm[p] for p in gc.tolist()], 2)
        par = np.repeat([pp[p] for p in gc.tolist()], 2)
        r.rows(series, np.round(t * NS), [np.full(2 * n, 50), e, name, 0 * e, par], [None, None, None, np.zeros(2 * n, bool), e == 0], width_ns=100)
