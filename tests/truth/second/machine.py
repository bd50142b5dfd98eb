"""Independent machine simulator; recordings from docs/recording-format.md only."""

import sqlite3, struct, os, math
import numpy as np

NS = 10**9


# ---------- format ----------
def enc_col(v, present=None):
    v = np.asarray(v, dtype=np.int64)
    n = len(v)
    out = b''
    bit = 0
    if present is not None and not present.all():
        bit = 0x80
        bm = np.packbits(present.astype(np.uint8), bitorder='little').tobytes()
        v = v[present]
    m = len(v)
    if m == 0:
        return bytes([bit | 0]) + (bm if bit else b'')
    d = np.zeros(m, dtype=np.int64)
    d[1:] = v[1:] - v[:-1]
    z = ((d << 1) ^ (d >> 63)).view(np.uint64)
    mx = int(z.max())
    width = max(1, (mx.bit_length() + 7) // 8)
    planes = b''
    for p in range(width):
        b = ((z >> np.uint64(8 * p)) & np.uint64(255)).astype(np.uint8)
        if (b == b[0]).all():
            planes += struct.pack('<BI', 2, 1) + bytes([int(b[0])])
        else:
            planes += struct.pack('<BI', 0, m) + b.tobytes()
    return bytes([bit | 1]) + (bm if bit else b'') + struct.pack('<qqB', int(v[0]), 0, width) + planes


class Rec:
    def __init__(s, path, meta):
        if os.path.exists(path):
            os.unlink(path)
        s.db = sqlite3.connect(path, isolation_level=None)
        e = s.db.execute
        e('PRAGMA journal_mode=OFF')
        e('PRAGMA synchronous=OFF')
        e('PRAGMA application_id=%d' % 0x4E524721)
        e('PRAGMA user_version=1')
        e('BEGIN')
        for t, c in dict(
            meta='key TEXT PRIMARY KEY, value',
            sensor='id INTEGER PRIMARY KEY, driver TEXT, name TEXT, period_ns INTEGER',
            channel='id INTEGER PRIMARY KEY, series INTEGER, col INTEGER, sensor INTEGER, name TEXT, quantity TEXT, kind TEXT, unit TEXT, scale REAL, wrap INTEGER, update_ns INTEGER, window_ns INTEGER, lag_ns INTEGER, resolution REAL, limit_w REAL, parent TEXT, wide INTEGER, covers_cpu INTEGER, provenance TEXT, error_low REAL, error_high REAL, source TEXT',
            series='id INTEGER PRIMARY KEY, kind TEXT, sensor INTEGER, n_columns INTEGER, columns TEXT',
            chunk='id INTEGER PRIMARY KEY, series INTEGER, first_ns INTEGER, last_ns INTEGER, n INTEGER, width_ns INTEGER, time_unit_ns INTEGER, stats BLOB, data BLOB',
            clock='mono_ns INTEGER, real_ns INTEGER, tsc INTEGER',
            run='id INTEGER PRIMARY KEY, kind TEXT, begin_ns INTEGER, end_ns INTEGER, exit_code INTEGER',
            event='id INTEGER PRIMARY KEY, t_ns INTEGER, kind TEXT, source TEXT, detail TEXT',
            process='id INTEGER PRIMARY KEY, pid INTEGER, parent_pid INTEGER, start_ticks INTEGER, first_ns INTEGER, last_ns INTEGER, cpu_ns INTEGER, cpu_before_ns INTEGER, peak_rss_bytes INTEGER, uid INTEGER, ended INTEGER, name TEXT, command TEXT, container TEXT, unit TEXT',
            graph='id INTEGER PRIMARY KEY, name TEXT, format TEXT, data BLOB',
            span_name='id INTEGER PRIMARY KEY, kind TEXT, name TEXT, detail TEXT',
            span_track='id INTEGER PRIMARY KEY, kind TEXT, pid INTEGER, tid INTEGER, start_ticks INTEGER, domain TEXT, name TEXT',
            span_path='id INTEGER PRIMARY KEY, parent INTEGER, name INTEGER',
        ).items():
            e('CREATE TABLE %s (%s)' % (t, c))
        for k, v in meta.items():
            e('INSERT INTO meta VALUES (?,?)', (k, v))
        s.ns = s.nc = s.nse = 0

    def row(s, table, **kw):
        s.db.execute(
            'INSERT INTO %s (%s) VALUES (%s)' % (table, ','.join('"%s"' % k for k in kw), ','.join('?' * len(kw))),
            [x.item() if isinstance(x, np.generic) else x for x in kw.values()],
        )

    def sensor(s, driver, name, period_ns):
        s.nse += 1
        s.row('sensor', id=s.nse, driver=driver, name=name, period_ns=int(period_ns))
        return s.nse

    def series(s, kind, sensor, ncol, columns=None):
        s.ns += 1
        s.row('series', id=s.ns, kind=kind, sensor=sensor, n_columns=ncol, columns=columns)
        return s.ns

    def channel(s, **kw):
        s.nc += 1
        d = dict(
            id=s.nc,
            wrap=0,
            update_ns=0,
            window_ns=None,
            lag_ns=0,
            resolution=0.0,
            limit_w=0.0,
            parent='',
            wide=0,
            covers_cpu=0,
            provenance='measured',
            error_low=0.0,
            error_high=0.0,
            source='',
        )
        d.update(kw)
        s.row('channel', **d)

    def chunk(s, series, t, cols, width_ns=0, present=None):
        t = np.asarray(t, dtype=np.int64)
        first = int(t.min())
        data = enc_col(t - first)
        for i, c in enumerate(cols):
            data += enc_col(c, None if present is None else present[i])
        s.row('chunk', series=series, first_ns=first, last_ns=int(t.max()), n=len(t), width_ns=int(width_ns), time_unit_ns=1, stats=None, data=data)

    def close(s):
        s.db.execute('COMMIT')
        s.db.close()


# ---------- program ----------
class Track:
    """One thread or GPU stream: segments (self path, busy, watts) and span events."""

    def __init__(s):
        s.t = []
        s.path = []
        s.busy = []
        s.cls = []
        s.ev = []

    def seg(s, t, path, busy, cls):
        s.t.append(t)
        s.path.append(path)
        s.busy.append(busy)
        s.cls.append(cls)


def make_program(r, sc, t0, t_end, names, paths, prefix=''):
    """Build one track from t0 to t_end (s). names: dict (kind,name)->id. paths: dict tuple->id."""
    tr = Track()
    L = sc['layers']
    lo, hi = sc['len']

    def nid(kind, name):
        return names.setdefault((kind, name), len(names) + 1)

    def pid(p):
        return paths.setdefault(p, len(paths))

    mean = np.exp(r.uniform(math.log(lo), math.log(hi), L))
    nest = sc.get('nested', 0)
    # module tree: groups of leaves
    layers = [prefix + 'l%02d' % i for i in range(L)]
    jit = sc.get('jit', 0.1)
    pcall = np.ones(L)
    if sc.get('partial'):
        pcall = r.choice([1, 1, 0.7, 0.4, 0.15], L)
    reps = r.integers(1, 4, L) if sc.get('reps') else np.ones(L, int)
    groups = [list(range(L))]
    if nest:
        k = max(2, L // 4)
        cut = np.sort(r.choice(np.arange(1, L), k - 1, replace=False))
        groups = [list(g) for g in np.split(np.arange(L), cut)]
    step_name = prefix + 'step'
    sid = nid('step', step_name)
    stall = sc.get('stall')
    sfrac = sc.get('stall_frac', 0.3)
    per = r.uniform(0, 2, L) if sc.get('stall_uneven') else np.ones(L)
    t = t0 + r.uniform(0.01, 0.05)
    ev = tr.ev
    k = 0
    tr.seg(t0 - (0.0499 if sc.get('edgebusy') else 0), -1, 1 if sc.get('edgebusy') else 0, -2 if sc.get('edgebusy') else -1)
    ic = {}

    def cls(p):  # class index = path id
        return pid(p)

    def outside(d, busy):
        nonlocal t
        tr.seg(t, -1, busy, -2 if busy else -1)
        t += d

    def self_time(p, d):
        nonlocal t
        tr.seg(t, pid(p), 1, cls(p))
        t += d

    P1 = (step_name,)
    selfm = float(mean.mean()) * sc.get('self', 0.05)
    npids = [nid('module', n) for n in layers]
    gp = None
    wl = sc.get('warm', 0)
    gap_every = sc.get('gap', 0)
    exp = r.exponential
    while True:
        if gap_every and r.random() < gap_every[0]:
            d = r.lognormal(math.log(gap_every[1]), 0.5)
            if gap_every[2] == 'span':
                ev.append((t, 0, nid('span', prefix + 'load'), None))
                tr.seg(t, pid((prefix + 'load',)), 0, -1)
                t += d * 0.7
                tr.seg(t, pid((prefix + 'load',)), 1, cls((prefix + 'load',)))
                t += d * 0.3
                ev.append((t, 1, nid('span', prefix + 'load'), None))
                outside(2e-6, 1)
            else:
                outside(d, 0)
        slow = 4.0 if k < wl else 1.0
        est = (mean * pcall * reps).sum() * slow * (1 + (sfrac if stall else 0)) * 1.15
        if t + est > t_end - 0.01:
            break
        ev.append((t, 0, sid, k))
        self_time(P1, selfm * r.uniform(0.5, 1.5))
        for gi, g in enumerate(groups):
            P = P1
            if nest:
                gn = prefix + 'block%d' % gi
                P = P1 + (gn,)
                ev.append((t, 0, nid('module', gn), None))
                self_time(P, mean[g].mean() * nest * r.uniform(0.5, 1.5))
            order = np.array(g)
            if sc.get('irregular'):
                order = r.permutation(np.repeat(order, reps[order]))
            else:
                order = np.repeat(order, reps[order])
            for i in order:
                if pcall[i] < 1 and r.random() > pcall[i]:
                    continue
                p = P + (layers[i],)
                pi = pid(p)
                ev.append((t, 0, npids[i], None))
                d = mean[i] * r.lognormal(0, jit) * slow
                if stall:
                    w = mean[i] * sfrac * per[i]
                    w = w * (exp() if stall != 'heavy' else min(r.pareto(1.5), 200))
                    if stall == 'heavy' and r.random() > 0.5:
                        w = 0
                    f = dict(uniform=r.uniform(), heavy=r.uniform(), start=0.0, end=1.0)[stall]
                    if f > 0:
                        tr.seg(t, pi, 1, pi)
                        t += d * f
                    if w > 0:
                        tr.seg(t, pi, 0, -1)
                        t += w
                    if f < 1:
                        tr.seg(t, pi, 1, pi)
                        t += d * (1 - f)
                else:
                    tr.seg(t, pi, 1, pi)
                    t += d
                ev.append((t, 1, npids[i], None))
                tr.seg(t, pid(P), 1, pid(P))
                t += selfm * 0.3 * r.uniform(0.5, 1.5) + 3e-7
            if nest:
                self_time(P, mean[g].mean() * nest * 0.5 * r.uniform(0.5, 1.5))
                ev.append((t, 1, nid('module', gn), None))
            self_time(P1, 1e-6)
        self_time(P1, selfm * 0.5)
        ev.append((t, 1, sid, None))
        outside(sc.get('between', 20e-6) * r.uniform(0.3, 2), sc.get('outbusy', 1))
        k += 1
        if t > t_end - 0.01:
            break
    if sc.get('edgebusy'):
        tr.seg(t, -1, 1, -2)
        t = max(t, t_end + 0.0499)
    tr.seg(t, -1, 0, -1)
    tr.end = t
    tr.steps = k
    return tr


def onef(r, n, dt, sd):
    x = np.zeros(n)
    tau = 4 * dt
    k = 0
    comps = []
    while tau < n * dt / 2:
        a = math.exp(-dt / tau)
        e = r.normal(0, math.sqrt(1 - a * a), n)
        e[0] = r.normal()
        from scipy.signal import lfilter

        comps.append(lfilter([1], [1, -a], e))
        tau *= 4
    return sd * np.sum(comps, 0) / math.sqrt(max(1, len(comps)))


class PW:
    """Piecewise-constant functions on common breakpoints b (s); cumulative integrals."""

    def __init__(s, b):
        s.b = b
        s.d = np.diff(b)
        s.mid = (b[1:] + b[:-1]) / 2

    def cum(s, y):
        return np.concatenate([[0], np.cumsum(y * s.d)])

    def at(s, c, t):
        return np.interp(t, s.b, c)


def build(path, sc, seed):
    r = np.random.default_rng([seed, 77])
    T = sc.get('T', 60.0)
    bl = sc.get('baseline', 3.0)
    bl2 = sc.get('baseline2', 0.0)
    R0 = 1.0 + bl
    R1 = R0 + T
    END = R1 + bl2 + 0.2  # run in [R0,R1] after start offset .0
    names = {}
    paths = {}
    tracks = []
    nthr = sc.get('threads', 1)
    gpu = sc.get('gpu')
    for i in range(nthr):
        pre = '' if sc.get('same', 1) or nthr == 1 else 'T%d.' % i
        tracks.append(make_program(r, sc, R0 + 0.05, R1 - 0.05, names, paths, pre))
    if sc.get('same', 1) and nthr > 1:
        pass
    n = len(paths)
    # class powers
    wlo, whi = sc.get('watts', (8, 30))
    W = np.exp(r.uniform(math.log(wlo), math.log(whi), n))
    WD = r.uniform(0, 3, n) if sc.get('dram') else np.zeros(n)
    wout = r.uniform(wlo, whi)
    if sc.get('extra_watts'):
        pass
    # other process
    others = []
    for kind in sc.get('others', []):
        u = [0.0]
        t = 0.0
        on = []
        w = r.uniform(*sc.get('owatts', (5, 30)))
        if kind == 'steady':
            m_on, m_off = 0.004, 0.006
        elif kind == 'bursty':
            m_on, m_off = 0.2, 0.8
        elif kind == 'rare':
            m_on, m_off = 2.0, 8.0
        elif kind == 'full':
            m_on, m_off = 5.0, 1e-4
        ts = []
        N = int(END / (m_on + m_off) * 1.5 + 50)
        a = r.exponential(m_on, N)
        c = r.exponential(m_off, N)
        x = np.empty(2 * N)
        x[0::2] = c
        x[1::2] = a
        x = np.cumsum(x)
        x = x[x < END]
        others.append((x, w))  # busy between odd index
    grid = sc.get('ngrid', 2e-3) if sc.get('noise') or sc.get('inoise') else 0.25
    if sc.get('drift') or sc.get('inoise'):
        grid = min(grid, 0.05) if not sc.get('noise') else grid
    bs = [np.arange(0, END + grid, grid), [R0, R1]]
    for tr in tracks:
        bs.append(np.array(tr.t))
    for x, w in others:
        bs.append(x)
    b = np.unique(np.concatenate(bs))
    b = b[(b >= 0) & (b <= END + grid)]
    pw = PW(b)
    gi = np.minimum((pw.mid / grid).astype(int), len(bs[0]) - 1)
    ng = len(bs[0])
    noise = np.ones(ng)
    if sc.get('noise'):
        wn, fn = sc['noise']
        if wn:
            noise += r.normal(0, wn, ng)
        if fn:
            noise += onef(r, ng, grid, fn)
    f = noise[gi]
    if sc.get('turbo'):
        f = f * np.where(pw.mid < R0 + sc['turbo'][0], sc['turbo'][1], 1.0)
    if sc.get('fsteps'):  # random frequency levels, dwell ~ 1 s
        lv = r.choice([0.8, 0.9, 1.0, 1.1], int(END / 0.5) + 2)
        lv = np.repeat(lv, r.integers(1, 5, len(lv)))
        f = f * lv[(pw.mid / 0.5).astype(int)]
    idle = sc.get('idle')
    idle = r.uniform(*idle) if idle else r.uniform(5, 80)
    idl = np.full(len(pw.mid), idle)
    if sc.get('drift'):
        kind, a = sc['drift']
        x = (pw.mid - R0) / T
        if kind == 'lin':
            idl = idl * (1 + a * np.clip(x, 0, 1.2))
        elif kind == 'exp':
            idl = idl * (1 + a * (1 - np.exp(-np.clip(pw.mid - R0, 0, None) / (T / 5))))
        elif kind == 'sin':
            idl = idl * (1 + a * np.sin(2 * math.pi * pw.mid / (T / 2.3)))
    if sc.get('inoise'):
        idl = idl * (1 + r.normal(0, sc['inoise'], ng)[gi])
    pk = idl.copy()
    dr = np.full(len(pw.mid), idle * 0.1)
    truth = np.zeros(n)
    busy = np.zeros(len(pw.mid))
    thr_cum = []
    thr_run = []
    gp = np.zeros(len(pw.mid))
    for tr in tracks:
        tt = np.array(tr.t)
        ix = np.searchsorted(tt, pw.mid, 'right') - 1
        ok = ix >= 0
        ix = np.maximum(ix, 0)
        cl = np.where(ok, np.array(tr.cls)[ix], -1)
        pa = np.where(ok, np.array(tr.path)[ix], -1)
        bu = np.where(ok, np.array(tr.busy)[ix], 0)
        p = np.where(cl >= 0, W[np.maximum(cl, 0)], np.where(cl == -2, wout, 0)) * f
        d = np.where(cl >= 0, WD[np.maximum(cl, 0)], 0) * f
        if sc.get('within'):  # power changes inside of a call: ramps down by 'within' over call; approx by alternating segments
            pass
        e = (p + d) * pw.d
        m = pa >= 0
        truth += np.bincount(pa[m], weights=e[m], minlength=n)
        pk = pk + p
        dr = dr + d
        if not gpu:
            busy = busy + bu
        thr_cum.append(pw.cum(bu))
        thr_run.append(bu)
    # pool workers without spans: follow first thread's busy
    npool = sc.get('pool', 0)
    pool = np.zeros(len(pw.mid))
    if npool:
        tr = tracks[0]
        ix = np.maximum(np.searchsorted(np.array(tr.t), pw.mid, 'right') - 1, 0)
        cl = np.array(tr.cls)[ix]
        pa = np.array(tr.path)[ix]
        frac = r.uniform(0.2, 1, n)
        pool = np.where(cl >= 0, frac[np.maximum(cl, 0)] * npool, 0)
        p = pool * np.where(cl >= 0, W[np.maximum(cl, 0)], 0) * f
        m = pa >= 0
        truth += np.bincount(pa[m], weights=(p * pw.d)[m], minlength=n)
        pk = pk + p
        busy = busy + pool
    ob = np.zeros(len(pw.mid))
    bg = sc.get('bg', 0.01)
    for x, w in others:
        on = np.searchsorted(x, pw.mid, 'right') % 2
        ob = ob + on
        pk = pk + on * w * f
    busy = busy + ob
    Ep = pw.cum(pk)
    Ed = pw.cum(dr)
    Eu = pw.cum(idl * 0.3)
    Cb = pw.cum(busy)
    Cpool = pw.cum(pool)
    run_e = lambda c: pw.at(c, R1) - pw.at(c, R0)

    # ----- recording -----
    B = int(r.integers(10**12, 10**13))
    ns = lambda t: (np.round(np.asarray(t) * 1e9)).astype(np.int64) + B
    rec = Rec(
        path,
        dict(
            nrg_version='0.2.0',
            revision=2,
            command_line='python3 attack.py',
            host='h',
            kernel='6.1',
            architecture='x86_64',
            cpu='Sim',
            cpus=sc.get('cpus', 8),
            boot_id='x',
            process_method='connector',
            begin_ns=int(ns(0.01)),
            end_ns=int(ns(END - 0.05)),
            ticks=1000,
            late_ticks=0,
        ),
    )
    if sc.get('rev') == 1:
        rec.db.execute("DELETE FROM meta WHERE key='revision'")
    i = 0
    if bl:
        i += 1
        rec.row('run', id=i, kind='baseline', begin_ns=ns(R0 - bl).item(), end_ns=ns(R0 - 0.01).item(), exit_code=None)
    i += 1
    rec.row('run', id=i, kind='run', begin_ns=ns(R0).item(), end_ns=ns(R1).item(), exit_code=0)
    if bl2:
        i += 1
        rec.row('run', id=i, kind='baseline', begin_ns=ns(R1 + 0.01).item(), end_ns=ns(R1 + bl2).item(), exit_code=None)
    for t in np.arange(0, END, 1.0):
        rec.row('clock', mono_ns=ns(t).item(), real_ns=ns(t).item() + 17 * 10**17, tsc=None)

    def read_times(rate):
        t = np.arange(0.02, END - 0.06, 1 / rate)
        late = sc.get('late', 1)
        if late:
            t = t + r.exponential(40e-6, len(t)) * late
            j = r.random(len(t)) < 0.01
            t[j] += r.exponential(3e-3, j.sum())
        t = np.concatenate([t, [R0 + 5e-6, R1 + 5e-6] + ([R0 - bl + 1e-6, R0 - 0.01 + 1e-6] if bl else []) + ([R1 + 0.01, R1 + bl2] if bl2 else [])])
        t = np.unique(t)
        if sc.get('drop'):
            keep = r.random(len(t)) > sc['drop']
            if sc.get('dropburst'):
                for c in r.uniform(R0, R1, int(T / 10) + 1):
                    keep &= ~((t > c) & (t < c + r.uniform(0.02, 0.3)))
            keep |= (np.abs(t - R0) < 1e-4) | (np.abs(t - R1) < 1e-4)
            t = t[keep]
        t = np.maximum.accumulate(t)
        return t[np.concatenate([[True], np.diff(t) > 2e-6])]

    def updates(period, jit, wander=0):
        n = int(END / period * 1.15) + 3
        x = np.full(n, period)
        if wander:
            x = x * (1 + onef(r, n, period, wander))
        u = np.cumsum(x) - period * (1 + r.random())
        if jit:
            u = np.maximum.accumulate(u + r.normal(0, jit, n))
        return u

    def counter(E, t, u, unit, wrap, off):
        k = np.maximum(np.searchsorted(u, t, 'right') - 1, 0)
        v = np.floor((pw.at(E, np.clip(u[k], 0, None)) + off) / unit).astype(np.int64)
        return v % wrap if wrap else v

    sensor = sc.get('sensor', 'rapl')
    rate = sc.get('rate', 100)
    doms = {}
    if sensor == 'rapl':
        s = rec.sensor('rapl-powercap', 'intel-rapl:0', NS / rate)
        nch = 1 + (1 if sc.get('dram') else 0) + (1 if sc.get('uncore') else 0)
        se = rec.series('samples', s, nch)
        unit = sc.get('unit', 61.03515625e-6)
        wrap = sc.get('wrap', 2**32)
        up = sc.get('update', 'free')
        per = dict(free=r.uniform(0.9e-3, 1.1e-3), p976=0.9765625e-3, wander=0.9765625e-3, ms=1.0e-3 * (1 + r.normal(0, 20e-6)))[up]
        u = updates(per, sc.get('ujit', 0), 2e-3 if up == 'wander' else 0)
        t = read_times(rate)
        cols = []
        for nm, E, un, par, cov in (
            [('package-0', Ep, unit, '', 1)]
            + ([('dram-0', Ed, 15.2587890625e-6, '', 0)] if sc.get('dram') else [])
            + ([('uncore-0', Eu, unit, 'package-0', 0)] if sc.get('uncore') else [])
        ):
            if nm != 'package-0' and sc.get('rapl_same', 1) == 0:
                u = updates(per, sc.get('ujit', 0))
            rec.channel(
                series=se,
                col=len(cols),
                sensor=s,
                name=nm,
                quantity='energy',
                kind='counter',
                unit='J',
                scale=un,
                wrap=wrap,
                update_ns=1000000,
                resolution=un,
                limit_w=sc.get('limit', 400.0),
                parent=par,
                covers_cpu=cov,
                source='/sys/class/powercap/x/energy_uj',
            )
            cols.append(counter(E, t, u, un, wrap, r.uniform(0, wrap * un * 0.99)))
        rec.chunk(se, ns(t), cols, width_ns=8000)
        tot = run_e(Ep) + (run_e(Ed) if sc.get('dram') else 0)
    elif sensor.startswith('nvml'):
        s = rec.sensor('nvml', 'gpu-0', NS / rate)
        se = rec.series('samples', s, 1)
        t = read_times(rate)
        upd = sc.get('gupd', 0.1)
        per = upd * (1 + sc.get('gppm', r.normal(0, 100)) * 1e-6)
        u = updates(per, sc.get('ujit', 0))
        k = np.maximum(np.searchsorted(u, t, 'right') - 1, 0)
        uk = np.clip(u[k], 0.2, None)
        if sensor == 'nvml-counter':
            rec.channel(
                series=se,
                col=0,
                sensor=s,
                name='gpu-0',
                quantity='energy',
                kind='counter',
                unit='J',
                scale=1e-3,
                update_ns=int(upd * 1e9),
                resolution=1e-3,
                limit_w=400.0,
                source='nvmlDeviceGetTotalEnergyConsumption',
            )
            v = counter(Ep, t, u, 1e-3, 0, 1234.5)
        else:
            if sensor == 'nvml-mean':
                win = upd
            elif sensor == 'nvml-part':
                win = upd / 4
            elif sensor == 'nvml-instant':
                win = 1e-4
            v = np.round((pw.at(Ep, uk) - pw.at(Ep, uk - win)) / win * 1e3).astype(np.int64)
            if sc.get('gnoise'):
                v = np.round(v * (1 + r.normal(0, sc['gnoise'], len(u))[k])).astype(np.int64)
            rec.channel(
                series=se,
                col=0,
                sensor=s,
                name='gpu-0',
                quantity='power',
                kind='gauge',
                unit='W',
                scale=1e-3,
                update_ns=int(upd * 1e9),
                window_ns=int(win * 1e9) if sc.get('winknown', 1) else None,
                resolution=1e-3,
                limit_w=400.0,
                source='nvmlDeviceGetPowerUsage',
            )
        rec.chunk(se, ns(t), [v], width_ns=50000)
        tot = run_e(Ep)
    elif sensor == 'ina':
        s = rec.sensor('ina3221', 'ina3221@40', NS / rate)
        se = rec.series('samples', s, 1)
        t = read_times(rate)
        tau = sc.get('tau', 0.4)
        # first-order lag of P, exact on a fine grid
        g = np.arange(0, END, 1e-3)
        pm = np.diff(pw.at(Ep, np.append(g, g[-1] + 1e-3))) / 1e-3
        from scipy.signal import lfilter

        a = math.exp(-1e-3 / tau)
        y = lfilter([1 - a], [1, -a], pm, zi=[a * pm[0]])[0]
        v = np.interp(t, g + 1e-3, y)
        v = v * (1 + r.normal(0, sc.get('gnoise', 0.003), len(v)))
        v = np.round(v * 1e3 / 8).astype(np.int64) * 8
        rec.channel(
            series=se,
            col=0,
            sensor=s,
            name='VDD_IN',
            quantity='power',
            kind='gauge',
            unit='W',
            scale=1e-3,
            update_ns=int(sc.get('iupd', 2e-3) * 1e9),
            lag_ns=int(tau * 1e9) if sc.get('lagknown') else 0,
            resolution=8e-3,
            covers_cpu=1,
            source='/sys/bus/i2c/in',
        )
        rec.chunk(se, ns(t), [v], width_ns=300000)
        tot = run_e(Ep)
    elif sensor == 'wall':
        s = rec.sensor('meter', 'plug', NS)
        se = rec.series('samples', s, 1)
        ph = r.random()
        t = np.arange(1 + ph, END - 0.1, 1.0) + r.normal(0, 0.005, len(np.arange(1 + ph, END - 0.1, 1.0)))
        v = np.round((pw.at(Ep, t) - pw.at(Ep, t - 1)) * 10).astype(np.int64)
        rec.channel(
            series=se,
            col=0,
            sensor=s,
            name='wall',
            quantity='power',
            kind='gauge',
            unit='W',
            scale=0.1,
            update_ns=NS,
            window_ns=NS if sc.get('winknown', 1) else None,
            resolution=0.1,
            wide=1,
            covers_cpu=1,
            source='meter',
        )
        rec.chunk(se, ns(t + sc.get('wdelay', 0.0)), [v], width_ns=1000000)
        tot = run_e(Ep)

    # cpu times: as of the last tick, for whoever runs; exact when asleep
    HZ = sc.get('tick', 0.004)

    def cpu_at(c, run, t):
        tick = np.floor(t / HZ) * HZ
        i = np.clip(np.searchsorted(pw.b, t, 'right') - 1, 0, len(run) - 1)
        # last switch-in before t: find last idx<=i with run==0
        idx = np.where(run == 0, np.arange(len(run)), -1)
        last0 = np.maximum.accumulate(idx)
        sw = np.where(last0[i] >= 0, pw.b[np.minimum(last0[i] + 1, len(pw.b) - 1)], 0)
        te = np.where(run[i] > 0, np.maximum(tick, np.minimum(sw, t)), t)
        return pw.at(c, te)

    pt = np.concatenate(
        [np.arange(0.05, END - 0.07, 0.1), [R0 + 1e-5, R1 - 1e-5]]
        + ([[R0 - bl + 1e-6, R0 - 0.01]] if bl else [])
        + ([[R1 + 0.011, R1 + bl2]] if bl2 else [])
    )
    pt.sort()
    if sc.get('late', 1):
        pt = np.sort(pt + np.where((pt > R0 + 0.01) & (pt < R1 - 0.1), r.exponential(60e-6, len(pt)), 0))
    bm = sc.get('busy', 'ns')
    s = rec.sensor('cpu', 'cpu', 10**8)
    runs = thr_run + [(np.searchsorted(x, pw.mid, 'right') % 2) for x, w in others]
    cums = thr_cum + [pw.cum(y) for y in runs[len(thr_run) :]]
    if gpu:
        runs, cums = runs[len(thr_run) :], cums[len(thr_cum) :]
    bgc = bg * pt * 1.0
    if bm != 'none':
        se = rec.series('samples', s, 1)
        if bm == 'ns':
            v = sum([cpu_at(c, y, pt + 3e-5) for c, y in zip(cums, runs)], np.zeros(len(pt))) + pw.at(Cpool, np.floor((pt) / HZ) * HZ) + bgc
            rec.channel(
                series=se,
                col=0,
                sensor=s,
                name='cpu.busy',
                quantity='seconds',
                kind='counter',
                unit='s',
                scale=1e-9,
                update_ns=int(HZ * 1e9),
                resolution=1e-9,
                source='/sys/fs/cgroup/cpuacct/cpuacct.usage',
            )
            v = np.round((v + 5000) * 1e9).astype(np.int64)
        else:
            if bm == 'stat':
                v = pw.at(Cb, pt) + bgc
            else:  # sampled ticks
                tk = np.arange(0, END, HZ) + 1e-4
                i = np.clip(np.searchsorted(pw.b, tk, 'right') - 1, 0, len(busy) - 1)
                cs = np.cumsum(np.round(busy[i])) * HZ
                v = cs[np.maximum(np.searchsorted(tk, pt, 'right') - 1, 0)] + bgc
            rec.channel(
                series=se,
                col=0,
                sensor=s,
                name='cpu.busy',
                quantity='seconds',
                kind='counter',
                unit='s',
                scale=0.01,
                update_ns=10**7,
                resolution=0.01,
                source='/proc/stat',
            )
            v = np.floor((v + 5000) * 100 + r.random()).astype(np.int64)
        rec.chunk(se, ns(pt + 3e-5), [np.maximum.accumulate(v)], width_ns=5000)
    # processes and threads
    st = 4242
    m = (pt >= R0) & (pt <= R1)
    q = pt[m]

    def lookup(c, y, t):
        return cpu_at(c, y, t)

    if gpu:
        hostc = pw.cum(np.where((pw.mid > R0 + 0.05) & (pw.mid < R1 - 0.05), 0.05, 0))
        pc = pw.at(hostc, q)
    else:
        pc = sum(lookup(c, y, q) for c, y in zip(thr_cum, thr_run)) + pw.at(Cpool, np.floor(q / HZ) * HZ)
    pcn = np.maximum.accumulate(np.round(pc * 1e9).astype(np.int64))
    rec.row(
        'process',
        id=1,
        pid=0,
        parent_pid=0,
        start_ticks=0,
        first_ns=ns(R0).item(),
        last_ns=ns(R1).item(),
        cpu_ns=0,
        cpu_before_ns=0,
        peak_rss_bytes=0,
        uid=-1,
        ended=0,
        name='(short-lived)',
        command='',
        container='',
        unit='',
    )
    rec.row(
        'process',
        id=2,
        pid=1000,
        parent_pid=1,
        start_ticks=st,
        first_ns=ns(R0).item(),
        last_ns=ns(R1).item(),
        cpu_ns=int(pcn[-1]),
        cpu_before_ns=0,
        peak_rss_bytes=10**8,
        uid=1000,
        ended=1,
        name='python3',
        command='python3 attack.py',
        container='',
        unit='',
    )
    se = rec.series('processes', 0, 4, 'process,cpu_ns,rss_bytes,threads')
    rec.chunk(se, ns(q), [np.full(len(q), 2), pcn, np.full(len(q), 10**8), np.full(len(q), nthr)], width_ns=5000)
    inv = {v: k for k, v in names.items()}
    for i in sorted(inv):
        rec.row('span_name', id=i, kind=inv[i][0] if not (gpu and inv[i][0] == 'module') else 'kernel', name=inv[i][1], detail='')
    for i, tr in enumerate(tracks):
        rec.row(
            'span_track',
            id=i + 1,
            kind='gpu' if gpu else 'thread',
            pid=1000,
            tid=0 if gpu else 1000 + i,
            start_ticks=st,
            domain='gpu-0' if gpu else '',
            name='gpu-0 stream 7' if gpu else 'thread',
        )
    if not gpu and sc.get('threadrows', 1):
        se = rec.series('threads', 0, 2, 'track,cpu_ns')
        TT = []
        TK = []
        TC = []
        for i, tr in enumerate(tracks):
            t = q + 1.5e-5
            c = lookup(thr_cum[i], thr_run[i], t)
            if sc.get('edges'):
                et = []
                last = -1
                for x, ev, nm, val in tr.ev:
                    if x - last >= 1e-3 or (ev == 0 and val is not None):
                        et.append((x - 2e-7) if ev == 0 else x + 2e-7)
                        last = x
                et = np.array(et)
                t = np.concatenate([t, et])
                c = np.concatenate([c, pw.at(thr_cum[i], et)])
                o = np.argsort(t, kind='stable')
                t = t[o]
                c = c[o]
                cm = np.maximum.accumulate(c)
                c = cm
            TT.append(ns(t))
            TK.append(np.full(len(t), i + 1))
            TC.append(np.round(np.maximum.accumulate(c) * 1e9).astype(np.int64))
        rec.chunk(se, np.concatenate(TT), [np.concatenate(TK), np.concatenate(TC)], width_ns=5000)
    # spans
    T_ = np.concatenate([ns([e[0] for e in tr.ev]) for tr in tracks])
    K_ = np.concatenate([np.full(len(tr.ev), i + 1) for i, tr in enumerate(tracks)])
    E_ = np.concatenate([[e[1] for e in tr.ev] for tr in tracks])
    N_ = np.concatenate([[e[2] for e in tr.ev] for tr in tracks])
    V_ = np.concatenate([[e[3] if e[3] is not None else 0 for e in tr.ev] for tr in tracks])
    VP = np.concatenate([[e[3] is not None for e in tr.ev] for tr in tracks])
    o = np.argsort(T_, kind='stable')
    T_, K_, E_, N_, V_, VP = T_[o], K_[o], E_[o], N_[o], V_[o], VP[o]
    se = rec.series('spans', 0, 5, 'track,event,name,value,parent')
    z = np.zeros(len(T_), bool)
    CH = 500000
    for a in range(0, len(T_), CH):
        x = slice(a, a + CH)
        yes = np.ones(len(T_[x]), bool)
        rec.chunk(se, T_[x], [K_[x], E_[x], N_[x], V_[x], z[x]], present=[yes, yes, yes, VP[x], z[x]])
    rec.db.execute("INSERT INTO meta VALUES ('spans', ?)", (int((E_ == 0).sum()),))
    rec.close()
    # truth: self by path, inclusive by path
    selfE = {p: truth[i] for p, i in paths.items()}
    inc = {}
    for p, e in selfE.items():
        for k in range(1, len(p) + 1):
            inc[p[:k]] = inc.get(p[:k], 0) + e
    calls = min(tr.steps for tr in tracks)
    return dict(self=selfE, inc=inc, total=tot, steps=calls, idle=idle)
