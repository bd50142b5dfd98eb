"""Scenarios of the third simulator, by name: what users have, said with the words of words.py. A new one is a line in the group where
it belongs. Random numbers come from the name: a scenario stays what it is when others are added, and not when it is renamed."""

from functools import partial

net = partial(dict, shape="net", layers=12)
net8 = partial(net, layers=8)
seconds = partial(dict, layers=5, call_s=(0.5, 3.0), spread=(0.05, 0.3), overhead=False, gap=0.05)
middle = partial(dict, layers=6, call_s=(0.05, 0.4), spread=(0.05, 0.3), gap=0.01)
wall = partial(dict, sensor="wall", layers=4, call_s=(3.0, 15.0), spread=(0.05, 0.3), overhead=False, gap=0.1, run_s=300)
gpu = partial(dict, gpu=True, layers=10, update=0.1, gap=0.001)
gpu_power = partial(gpu, gpu_sensor="power")

INA = dict(sensor="ina", lag=0.4, gauge_noise=0.02, idle=4.0, watts=(1, 9))
INABOX = dict(sensor="inabox", gauge_noise=0.01, idle=4.0, watts=(1, 9), ppm=400)
PHASES = dict(eval_every=50, checkpoint_every=97, load_wait=0.004)
WARM = dict(PHASES, warm_steps=5)
BURSTS = (0.3, 1.0, 30.0)  # of another process: seconds at work, and not; watts
SOFT_BURSTS = (0.3, 1.0, 25.0)

# A small network as nrg records it by default; counters whose updates jitter, wander or keep step with the readings; other rates.
COUNTERS = {
    "default-flat": {},
    "default-net": net(),
    "default-net-clean": net(rapl_jitter=0.0),
    "jit40": net(rapl_jitter=40e-6),
    "wander": net(rapl_jitter=5e-6, rapl_wander=2e-6),
    "wander-slow": net(rapl_jitter=5e-6, rapl_wander=0.2e-6),
    "instep": net(rapl_update=1e-3, rapl_jitter=5e-6),
    "10hz": net(rate=10),
    "10hz-flat": dict(rate=10),
    "1khz": net(rate=1000, run_s=30),
    "1khz-jit40": net(rate=1000, run_s=30, rapl_jitter=40e-6),
    "20hz-noedge": net(rate=20, edge=False),
}

# CPU times that are coarse, sampled, not read at edges of spans, of an old recorder, or not there.
CPU_TIMES = {
    "stat": net(busy="stat"),
    "stat-sampled": net(busy="stat", sampled=True),
    "stat-sampled-own": net(busy="stat", sampled=True, own=True),
    "stat-own": net(busy="stat", own=True),
    "stat-sampled-rev1": net(busy="stat", sampled=True, rev=1, edge=False),
    "stat-rev1-10hz": net(busy="stat", rev=1, edge=False, rate=10),
    "cgticks": net(busy="cgticks", sampled=True),
    "cgticks-own": net(busy="cgticks", sampled=True, own=True),
    "cgroup": net(busy="cgroup"),
    "noedge": net(edge=False),
    "nothreads": net(threads_known=False),
    "nothreads-busygap": net(threads_known=False, gap=0.003, gap_busy=1.0),
    "nocpu": net(busy_known=False),
}

# Programs that do more than the same step again and again: they warm up, load data, evaluate, write checkpoints.
PROGRAMS_WITH_PHASES = {
    "phases": net(**WARM, run_s=60),
    "phases-10hz": net(**WARM, rate=10),
    "phases-noedge": net(**WARM, edge=False),
    "phases-flat": dict(eval_every=40, warm_steps=5, checkpoint_every=61, load_wait=0.004),
    "phases-stat-rev1": net(**WARM, rev=1, edge=False, busy="stat", sampled=True),
    "load-long": net(load_wait=0.02),
    "short10-phases": net(run_s=10, base_s=5, eval_every=20, warm_steps=5, checkpoint_every=50, load_wait=0.004),
}

# Calls: many short ones of one operator, steps of different size, energy that does not follow the length, scatter, many or tiny layers.
CALLS = {
    "skew50": net(tiny_calls=50),
    "skew50-10hz": net(tiny_calls=50, rate=10),
    "size": net(size_spread=0.4, size_time=1.0),
    "size-power": net(size_spread=0.4, size_time=1.0, size_watts=0.5),
    "size-power-10hz": net(size_spread=0.4, size_time=1.0, size_watts=0.5, rate=10),
    "percall": net(percall=1.0),
    "percall-10hz": net(percall=1.0, rate=10),
    "percall-some": net(percall=1.0, percall_some=True),
    "percall-some-10hz": net(percall=1.0, percall_some=True, rate=10),
    "lognormal-wide": net(spread=(0.5, 1.0)),
    "steady-steps": net(spread=(0.002, 0.01), gap=0.0),
    "steady-steps-10hz": net(spread=(0.002, 0.01), gap=0.0, rate=10),
    "many-layers": net(layers=96, call_s=(0.05e-3, 3e-3)),
    "many-layers-10hz": net(layers=96, call_s=(0.05e-3, 3e-3), rate=10),
    "tiny-layers": net(call_s=(0.02e-3, 0.3e-3)),
}

# Between steps the program sleeps, works, or there is nothing; no baseline; runs that are short, long, or take long to begin.
GAPS_AND_BASELINES = {
    "busygap": net(gap=0.003, gap_busy=1.0),
    "halfbusygap": net(gap=0.003, gap_busy=0.5),
    "nogap": net(gap=0.0),
    "nogap-nobase": net(gap=0.0, base_s=0),
    "nobase": net(base_s=0),
    "nobase-10hz": net(base_s=0, rate=10),
    "nobase-gap20": net(base_s=0, gap=0.02),
    "startup5": net(startup=5.0),
    "short10": net(run_s=10, base_s=5),
    "short20-10hz": net(run_s=20, base_s=5, rate=10),
    "long300": net(run_s=300),
    "long300-10hz": net(run_s=300, rate=10),
}

# Power that changes by itself: with the frequency, and idle power that drifts, with one baseline or two.
FREQUENCY_AND_HEAT = {
    "freq": net(freq=(4, 0.9)),
    "freq-10hz": net(freq=(4, 0.9), rate=10),
    "freq-many": net(freq=(30, 0.9)),
    "freq-phases": net(freq=(4, 0.9), **WARM),
    "drift-line": net(drift=("line", 0.15)),
    "drift-warm": net(drift=("warm", 0.15)),
    "drift-jump": net(drift=("jump", 0.15)),
    "drift-warm-2base": net(drift=("warm", 0.15), base_after=True),
    "drift-warm-nogap": net(drift=("warm", 0.15), gap=0.0),
    "drift-warm-nogap-2base": net(drift=("warm", 0.15), gap=0.0, base_after=True),
    "drift-hump-nogap-2base": net(drift=("hump", 0.10), gap=0.0, base_after=True),
    "2base": net(base_after=True),
}

# Calls that wait: anywhere or each layer at its place, all about as long or not, and threads that read their CPU time or don't.
WAITS = {
    "wait": net(wait=0.3),
    "wait-10hz": net(wait=0.3, rate=10),
    "wait-noedge": net(wait=0.3, edge=False),
    "wait-noedge-10hz": net(wait=0.3, edge=False, rate=10),
    "wait-uneven": net(wait=0.3, wait_uneven=True),
    "wait-uneven-noedge": net(wait=0.3, wait_uneven=True, edge=False),
    "wait-own": net(wait=0.4, wait_uneven=True, wait_place="own"),
    "wait-own-noedge": net(wait=0.4, wait_uneven=True, wait_place="own", edge=False),
    "wait-threads2": net8(wait=0.3, threads=2),
}

# Calls whose power changes: they begin with dispatch, draw less at first, or their workers end one after the other.
WITHIN = {
    "within-dispatch20": net(dispatch=20e-6),
    "within-dispatch100": net(dispatch=100e-6),
    "within-ramp": net(ramp=0.1),
    "within-ramp-10hz": net(ramp=0.1, rate=10),
    "within-ragged": net(workers=3, ragged=0.1),
}

# Threads with spans, of their own or the same; pools of workers without spans, beside a thread that works or sleeps meanwhile.
THREADS_AND_POOLS = {
    "threads2": net8(threads=2),
    "threads4": net8(threads=4),
    "threads4-10hz": net8(threads=4, rate=10),
    "threads2-same": net(threads=2, named_threads=False),
    "threads4-noedge-stat": net8(threads=4, edge=False, busy="stat", sampled=True),
    "threads2-later": net8(threads=2, thread_start=15.0),
    "threads2-phases": net8(threads=2, **PHASES),
    "turbo2": net8(threads=2, turbo=0.12, gap=0.005),
    "turbo4": net8(threads=4, turbo=0.12, gap=0.02),
    "turbo2-same": net(threads=2, named_threads=False, turbo=0.12, gap=0.005),
    "uncore2": net8(threads=2, uncore=6.0, gap=0.005),
    "uncore4": net8(threads=4, uncore=6.0, gap=0.02),
    "smt2": net8(threads=2, smt=0.65, gap=0.005),
    "turbo4-uncore": net8(threads=4, turbo=0.06, uncore=5.0, gap=0.02),
    "pool": net(workers=3),
    "pool-10hz": net(workers=3, rate=10),
    "pool-mix": net(workers=3, workers_vary=True),
    "pool-mix-phases": net(workers=3, workers_vary=True, **PHASES),
    "pool-threads2": net8(workers=2, threads=2),
    "pool-nothreads": net(workers=3, threads_known=False),
    "pool-passive": net(workers=3, passive=True),
    "pool-passive-10hz": net(workers=3, passive=True, rate=10),
    "pool-passive-mix": net(workers=3, passive=True, workers_vary=True),
    "pool-others": net(workers=3, others=BURSTS),
    "pool-wait": net(workers=3, wait=0.3),
}

# Another process beside: in bursts, for seconds, for milliseconds, seldom, and in the baseline, too.
OTHERS = {
    "others": net(others=BURSTS),
    "others-10hz": net(others=BURSTS, rate=10),
    "others-long": net(others=(3.0, 6.0, 12.0)),
    "others-short": net(others=(0.01, 0.05, 25.0)),
    "others-base": net(others=SOFT_BURSTS, others_base=True),
    "others-stat": net(others=BURSTS, busy="stat", sampled=True),
    "others-phases": net(others=BURSTS, **WARM),
    "others-nobase": net(others=BURSTS, base_s=0),
    "others-threads2": net8(threads=2, others=BURSTS),
    "others-seldom": net(others=(0.5, 20.0, 25.0)),
}

# A recorder that is late because the machine is loaded.
RECORDERS = {
    "late": net(late="loaded"),
    "late-10hz": net(late="loaded", rate=10),
    "late-1khz": net(late="loaded", rate=1000, run_s=30),
    "late-threads4": net8(late="loaded", threads=4),
}

# Memory beside the package, and two packages between which threads may move.
DOMAINS = {
    "pkg-dram": net(domains=("package-0", "dram-0")),
    "pkg-dram-10hz": net(domains=("package-0", "dram-0"), rate=10),
    "two-pkg": net(domains=("package-0", "package-1")),
    "two-pkg-migrate": net(domains=("package-0", "package-1"), migrate=3.0),
    "two-pkg-migrate-dram": net(domains=("package-0", "package-1", "dram-0"), migrate=3.0),
}

# Calls of half a second to three seconds, which readings can be added up in, and of 50 to 400 ms, which are between.
LONG_CALLS = {
    "sec-10hz": seconds(rate=10),
    "sec-1hz": seconds(rate=1),
    "sec-auto": seconds(),
    "sec-300": seconds(run_s=300),
    "sec-300-10hz": seconds(run_s=300, rate=10),
    "sec-300-1hz": seconds(run_s=300, rate=1),
    "sec-300-1hz-others": seconds(run_s=300, rate=1, others=(2.0, 6.0, 25.0)),
    "sec-nobase": seconds(rate=10, base_s=0),
    "sec-drift": seconds(rate=10, drift=("warm", 0.15)),
    "sec-drift-2base": seconds(rate=10, drift=("warm", 0.15), base_after=True),
    "sec-others": seconds(rate=10, others=BURSTS),
    "sec-others-base": seconds(rate=10, others=SOFT_BURSTS, others_base=True),
    "sec-threads2": seconds(rate=10, threads=2),
    "sec-pool": seconds(rate=10, workers=3),
    "sec-wait": seconds(rate=10, wait=0.3),
    "sec-freq": seconds(rate=10, freq=(4, 0.9)),
    "mid-10hz": middle(rate=10),
    "mid-auto": middle(),
    "mid-1hz": middle(rate=1, run_s=120),
    "mid-freq": middle(freq=(4, 0.9)),
    "mid-phases": middle(eval_every=10, checkpoint_every=17, warm_steps=2),
    "mid-others": middle(others=BURSTS),
    "mid-threads2": middle(threads=2),
    "mid-wait": middle(wait=0.3),
}

# A board with an INA3221, whose filter nobody names, or that shows means of its cycles; and a plug that sends once a second.
BOARDS_AND_PLUGS = {
    "ina": net(**INA, run_s=60),
    "ina-100ms": net(**INA, read_s=0.1),
    "ina-30s": net(**{**INA, "lag": 0.25}, run_s=30),
    "ina-known": net(**INA, lag_known=True),
    "ina-phases": net(**INA, **PHASES),
    "ina-sec": seconds(**INA),
    "inabox": net(**INABOX, update=0.05),
    "inabox-slow": net(**INABOX, update=0.2),
    "inabox-sec": seconds(**INABOX, update=0.2),
    "wall": wall(),
    "wall-120": wall(run_s=120),
    "wall-nobase": wall(base_s=0),
    "wall-others": wall(others=(5.0, 20.0, 25.0)),
    "wall-short": wall(call_s=(0.3, 2.0)),
    "wall-layers": net(sensor="wall", run_s=300),
}

# A GPU with a counter of energy, or with a gauge: the mean of a whole period, of a quarter of it, or an instant; said or not.
GPUS = {
    "gpu-counter": gpu(),
    "gpu-counter-jit": gpu(update_jitter=0.2e-3),
    "gpu-counter-20ms": gpu(update=0.02, read_s=0.01),
    "gpu-counter-dram": gpu(domains=("package-0", "dram-0")),
    "gpu-counter-freq": gpu(freq=(4, 0.9)),
    "gpu-counter-nobase": gpu(base_s=0),
    "gpu-counter-short": gpu(run_s=15, base_s=5),
    "gpu-gauge": gpu_power(window=0.1),
    "gpu-gauge-unsaid": gpu_power(window=0.1, window_known=False),
    "gpu-gauge-unknown": gpu_power(window=0.1, window_known=False, update_known=False),
    "gpu-25": gpu_power(window=0.025),
    "gpu-25-unsaid": gpu_power(window=0.025, window_known=False),
    "gpu-25-phase": gpu_power(window=0.025, step_period=0.1, call_s=(0.5e-3, 6e-3), ppm=5),
    "gpu-instant-unsaid": gpu_power(window=0.0, window_known=False),
    "gpu-gauge-clock": gpu_power(window=0.1, ppm=10000),
    "gpu-counter-awake": gpu(awake=(30.0, 1e-3)),
    "gpu-counter-awake-2s": gpu(awake=(30.0, 2.0)),
    "gpu-gauge-awake": gpu_power(window=0.1, awake=(30.0, 1e-3)),
    "gpu-25-awake": gpu_power(window=0.025, awake=(30.0, 0.2e-3)),
    "gpu-counter-unread": gpu(unread=(5, 1.0)),
    "gpu-gauge-unread": gpu_power(window=0.1, unread=(5, 1.0)),
    "gpu-gauge-streams": gpu_power(window=0.1, streams=2),
    "gpu-gauge-streams-share": gpu_power(window=0.1, streams=2, beside=0.5),
    "gpu-gauge-streams-less": gpu_power(window=0.1, streams=2, beside=0.8),
    "gpu-counter-streams": gpu(streams=2),
}

# The default without one of its difficulties each, to find which of them does harm.
WITHOUT = {
    "t-tick": net(tick=1e-5),
    "t-nostartup": net(startup=0.0),
    "t-norec": net(recorder_cpu=1e-9),
    "t-noover": net(overhead=False),
    "t-rate100": net(rate=100),
    "t-flat-nogap": dict(gap=0.0),
    "t-quiet": net(late="quiet"),
}

SCENARIOS = {**COUNTERS, **CPU_TIMES, **PROGRAMS_WITH_PHASES, **CALLS, **GAPS_AND_BASELINES, **FREQUENCY_AND_HEAT, **WAITS, **WITHIN,
             **THREADS_AND_POOLS, **OTHERS, **RECORDERS, **DOMAINS, **LONG_CALLS, **BOARDS_AND_PLUGS, **GPUS, **WITHOUT}
