"""A machine and programs whose joules per row are known in closed form: power is piecewise constant."""
import numpy as np


class Cum:
    """A function that grows along straight lines between its points."""
    def __init__(self, t, c):
        self.t, self.c = np.asarray(t, float), np.asarray(c, float)

    def __call__(self, x):
        return np.interp(x, self.t, self.c) if len(self.t) else np.zeros_like(np.asarray(x, float))


def cum_of(t0, t1, w):
    n = len(t0)
    t, c = np.empty(2 * n), np.empty(2 * n)
    e = np.cumsum(w * (t1 - t0))
    t[0::2], t[1::2] = t0, t1
    c[1::2], c[0::2] = e, e - w * (t1 - t0)
    return Cum(t, c)


class Paths:
    """Places in the tree of spans: tuples of (kind, name)."""
    def __init__(self):
        self.ids, self.list = {}, []

    def __call__(self, path):
        if path not in self.ids:
            self.ids[path] = len(self.list)
            self.list.append(path)
        return self.ids[path]


class Law:
    """What a call of a place does: duration, watts, waits, workers."""
    def __init__(self, med, sig, watts, dram=0.0, alpha=0.0, beta=0.0, percall=0.0, wait=0.0, place=None,
                 workers=0.0, ramp=0.0, passive=False):
        self.__dict__.update(locals())


def tokens_of(node, parent, paths, laws, out):
    """node = (kind, name, law, [children], repeat); a container's own law comes before each child."""
    kind, name, law, children, repeat = node
    path = parent + ((kind, name),)
    p = paths(path)
    laws[p] = law
    for _ in range(repeat):
        out.append(("b", p))
        for child in children:
            if law is not None:
                out.append(("w", p))
            tokens_of(child, path, paths, laws, out)
        if law is not None:
            out.append(("w", p))
        out.append(("e", p))
    return out


class Thread:
    """Events and segments of one thread."""
    def __init__(self):
        self.ev_t, self.ev_kind, self.ev_path, self.ev_num = [], [], [], []
        self.s0, self.s1, self.cls, self.w, self.d, self.cpu, self.work = [], [], [], [], [], [], []

    def event(self, t, kind, path, num):
        self.ev_t.append(np.atleast_1d(t)); k = len(self.ev_t[-1])
        self.ev_kind.append(np.broadcast_to(kind, k)); self.ev_path.append(np.broadcast_to(path, k))
        self.ev_num.append(np.broadcast_to(num, k))

    def segment(self, s0, s1, cls, w, d, cpu, work):
        s0 = np.atleast_1d(s0); k = len(s0)
        for lst, v in ((self.s0, s0), (self.s1, s1), (self.cls, cls), (self.w, w), (self.d, d),
                       (self.cpu, cpu), (self.work, work)):
            lst.append(np.broadcast_to(v, k).astype(float))

    def finish(self, order):
        cat = np.concatenate
        t, k, p, n = cat(self.ev_t), cat(self.ev_kind), cat(self.ev_path), cat(self.ev_num)
        o = np.argsort(cat(order), kind="stable")
        self.ev_t, self.ev_kind, self.ev_path, self.ev_num = t[o], k[o], p[o], n[o]
        a = [cat(x) for x in (self.s0, self.s1, self.cls, self.w, self.d, self.cpu, self.work)]
        keep = a[1] > a[0]
        a = [x[keep] for x in a]
        o = np.argsort(a[0], kind="stable")
        self.s0, self.s1, self.cls, self.w, self.d, self.cpu, self.work = [x[o] for x in a]
        self.cls = self.cls.astype(int)

    def cut(self, times):
        """Segments cut at given times (a change of frequency)."""
        for t in times:
            i = np.searchsorted(self.s0, t, side="right") - 1
            if i >= 0 and self.s0[i] < t < self.s1[i]:
                for name in ("s0", "s1", "cls", "w", "d", "cpu", "work"):
                    a = getattr(self, name)
                    setattr(self, name, np.insert(a, i + 1, a[i]))
                self.s1[i] = t
                self.s0[i + 1] = t


def run_program(rng, templates, laws, schedule, t_begin, t_end, gap, outside, size_sig=0.0, slow=None):
    """schedule(i) -> (template number, numbered path or None, factor). Steps until t_end."""
    th = Thread()
    picks, factors = [], []
    est = {}
    for k, tok in enumerate(templates):
        est[k] = sum(laws[p].med * np.exp(laws[p].sig ** 2 / 2) * (1 + laws[p].wait) for x, p in tok if x == "w")
    t, i = 0.0, 0
    while t < t_end - t_begin:
        k, f = schedule(i)
        picks.append(k); factors.append(f)
        t += est[k] * f + gap["mean"]
        i += 1
    picks, factors = np.array(picks), np.array(factors)
    n = len(picks)
    size = np.exp(rng.normal(0, size_sig, n)) if size_sig else np.ones(n)
    parts, length = {}, np.zeros(n)
    for k, tok in enumerate(templates):
        idx = np.where(picks == k)[0]
        wp = np.array([p for x, p in tok if x == "w"])
        med = np.array([laws[p].med for p in wp]); sig = np.array([laws[p].sig for p in wp])
        al = np.array([laws[p].alpha for p in wp]); be = np.array([laws[p].beta for p in wp])
        pc = np.array([laws[p].percall for p in wp])
        wt = np.array([laws[p].wait for p in wp])
        z = rng.normal(size=(len(idx), len(wp)))
        work = med * np.exp(sig * z) * size[idx, None] ** al * factors[idx, None]
        waits = wt * med * rng.exponential(1, work.shape) * (rng.random(work.shape) < 0.7) / 0.7
        mean = med * np.exp(sig ** 2 / 2)
        watts = np.array([laws[p].watts for p in wp]) * size[idx, None] ** be
        watts = watts * ((1 - pc) + pc * mean / work)
        parts[k] = (idx, wp, work, waits, watts)
        length[idx] = (work + waits).sum(1)
    gaps = gap["mean"] * (rng.exponential(1, n) if gap.get("random") else np.ones(n)) if gap["mean"] else np.zeros(n)
    ends = t_begin + np.cumsum(length + gaps)
    starts = ends - length - gaps
    n_ok = int(np.searchsorted(ends, t_end))
    order = []
    for k, tok in enumerate(templates):
        idx, wp, work, waits, watts = parts[k]
        ok = idx < n_ok
        idx, work, waits, watts = idx[ok], work[ok], waits[ok], watts[ok]
        if not len(idx):
            continue
        dur = work + waits
        after = starts[idx, None] + np.cumsum(dur, 1)
        before = after - dur
        before[:, 1:] = after[:, :-1]
        j = 0
        now = starts[idx]
        numbered = 0
        for m, (x, p) in enumerate(tok):
            if x == "w":
                L = laws[p]
                place = rng.random(len(idx)) if L.place is None else np.full(len(idx), L.place)
                a, b = before[:, j], after[:, j]
                w1 = a + work[:, j] * place
                w2 = w1 + waits[:, j]
                w2 = np.where(waits[:, j] > 0, w2, w1)
                nw = L.workers
                work_now = nw if nw == int(nw) else np.floor(nw) + (rng.random(len(idx)) < nw % 1)
                on = np.where(np.asarray(work_now) > 0, 0, 1) if L.passive else 1
                th.segment(a, w1, p, watts[:, j] * (1 + work_now), L.dram, on, work_now)
                th.segment(w1, w2, p, 0.0, 0.0, 0, 0)
                th.segment(w2, b, p, watts[:, j] * (1 + work_now), L.dram, on, work_now)
                now = b
                j += 1
            else:
                num = idx if m == 0 else -1
                th.event(now, 0 if x == "b" else 1, p, num)
                order.append(idx * 1e6 + m)
    g0, g1 = ends[:n_ok] - gaps[:n_ok], ends[:n_ok]
    if gap["mean"]:
        if gap.get("busy"):
            th.segment(g0, g0 + (g1 - g0) * gap["busy"], outside, gap["watts"], 0.0, 1, 0)
    th.order, th.n_steps, th.t_first, th.t_last = order, n_ok, t_begin, ends[n_ok - 1]
    th.step_starts, th.step_ends = starts[:n_ok], (ends - gaps)[:n_ok]
    return th


class Busy:
    """CPU time of a thread, exact and as the kernel shows it."""
    def __init__(self, s0, s1, n, tick, phase):
        self.s0, self.s1, self.n, self.tick, self.phase = s0, s1, n, tick, phase
        self.cum = cum_of(s0, s1, n)

    def exact(self, t):
        return self.cum(t)

    def shown(self, t):
        """Up to the last tick or switch."""
        t = np.asarray(t, float)
        last = np.floor((t - self.phase) / self.tick) * self.tick + self.phase
        v = self.cum(last)
        if len(self.s0):
            i = np.clip(np.searchsorted(self.s0, t, side="right") - 1, 0, None)
            on = (t >= self.s0[i]) & (t < self.s1[i])
            # stretches that touch are one: find their begin
            v = np.maximum(v, np.where(on, self.cum(np.minimum(self.runs[i], t)), self.cum(t)))
        return v

    def join(self):
        touch = np.r_[False, np.abs(self.s0[1:] - self.s1[:-1]) < 1e-9] if len(self.s0) else np.zeros(0, bool)
        begin = np.where(touch, -np.inf, self.s0)
        self.runs = np.maximum.accumulate(begin) if len(begin) else begin
        return self

    def sampled(self, t):
        """Ticks at which it ran, times the tick."""
        t = np.asarray(t, float)
        lo, hi = t.min() - 1, t.max() + 1
        k = np.arange(np.floor((lo - self.phase) / self.tick), np.ceil((hi - self.phase) / self.tick))
        times = k * self.tick + self.phase
        if not len(self.s0):
            return np.zeros_like(t)
        i = np.clip(np.searchsorted(self.s0, times, side="right") - 1, 0, None)
        on = ((times >= self.s0[i]) & (times < self.s1[i])) * self.n[i]
        c = np.r_[0, np.cumsum(on * self.tick)]
        return c[np.searchsorted(times, t, side="right")]


def filtered(cums, tau, t_read, t0, y0):
    """First-order filter of the sum of the functions' slopes, at times t_read."""
    bp = np.unique(np.concatenate([c.t for c in cums] + [np.array([t0])]))
    bp = bp[bp >= t0]
    e = sum(c(bp) for c in cums)
    P = np.diff(e) / np.maximum(np.diff(bp), 1e-15)
    dec = np.exp(-np.diff(bp) / tau)
    y = np.empty(len(bp)); y[0] = y0
    v = y0
    for i, (p, d) in enumerate(zip(P.tolist(), dec.tolist())):
        v = p + (v - p) * d
        y[i + 1] = v
    i = np.clip(np.searchsorted(bp, t_read, side="right") - 1, 0, len(P) - 1)
    return P[i] + (y[i] - P[i]) * np.exp(-(t_read - bp[i]) / tau)
