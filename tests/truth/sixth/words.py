"""The words of a scenario: what each means, and what holds where a scenario leaves it out. `--set WORD=VALUE` sets one in all scenarios."""

from argparse import ArgumentTypeError
from ast import literal_eval

WORDS = dict(
    # The program.
    run_s=24.0,  # how long it runs
    threads=1,
    procs=1,  # processes that the threads are in, each with spans and watts of its own
    late=None,  # part of the run after which all threads but the first begin
    layers=(8, 12),  # how many there are, at least and at most
    layer_s=(0.2e-3, 8e-3),  # how long a call takes, from and to
    span_s=None,  # the same in a program of six long layers
    spread=0.08,  # of the lengths of a layer's calls, as a part
    watts=(5, 60),  # of a layer, from and to
    same_joules=0.0,  # part of the layers whose calls draw the same joules, however long they take
    stall=0.0,  # part of a call that six of ten layers wait, at 15 % of their watts
    shape=0.0,  # part by which watts differ at most between the halves of a call
    step_watts=0.0,  # spread of the watts of steps,
    call_watts=0.0,  # and of calls
    watts_by_length=0.0,  # exponent: longer calls draw more (or less) watts
    watts_grow=0.0,  # part by which watts grow in the run
    step_length=None,  # factors (from, to) of a step's calls
    gap="sleep",  # between steps: 'sleep', 'busy' (work without a span) or 'none'
    gap_ms=(0.5, 12),
    pad=None,  # steps begin at multiples of this (s)
    nest=2,  # 1: layers are in steps, 2: in modules, 3: in modules in modules
    validation=False,  # a phase of 1 s every 5 s
    rare=False,  # two layers run in 3 % of the steps
    dominate=False,  # one layer is most of a step
    warm=False,  # first steps take longer and draw more
    pause=False,  # the program sleeps twice, for 3.5 s
    recurse=False,  # a span that calls itself
    throttle=False,  # every other 3 s calls take 1.3 times as long at 0.7 times the watts
    workers=0,  # processes that help, without spans,
    workers_in_step=False,  # each time a step begins
    omp=False,  # calls run on one to four CPUs, of which one is the thread's
    pool=False,  # the first thread only waits in its layers, others work
    # The machine.
    idle=18.0,  # watts
    drift=None,  # of idle power in the run: 'lin', 'exp', 'thermal' (and back again), 'step', 'sin'
    drift_part=0.15,  # how much of it
    wander=0.0,  # part by which idle power fluctuates, with a time constant of 0.5 s
    uncore=0.0,  # watts as soon as any CPU is busy, shared by those that are
    turbo=0.0,  # for each further busy CPU all draw so much less
    sockets=1,  # 2: threads move between two packages
    others=None,  # who else runs: 'steady', 'burst', 'onoff', 'cron', 'always', 'run' (only then), 'base' (only before it)
    others_w=25.0,
    # The recorder.
    base=(5.0, 5.0),  # seconds of the baselines before and after the run; 0: none
    rate=100,  # readings per second,
    adaptive=True,  # ten per second before the run
    recorder=0.003,  # CPUs that it uses
    revision=2,  # of the recording; 1: as nrg 0.1.0 wrote them
    own_rows=True,  # threads read their own CPU time at begins and ends
    process_rows=True,  # there are CPU times at all
    busy="cpuacct",  # where cpu.busy comes from: exact; 'stat': what ticks saw
    tick_s=4e-3,  # the kernel's
    lost_readings=False,  # two seconds without readings of the sensor,
    lost_processes=False,  # three times 1.5 s without CPU times
    starve=False,  # every tenth reading is late, by up to 50 ms
    # The sensor.
    sensor="rapl",  # or 'nvml' (a counter), 'gauge' (NVML's), 'ina' (lags), 'wall' (at the plug), 'est' (an estimate)
    gpu=False,  # it is a GPU's, and so are the spans
    update_s=1e-3,  # between updates,
    said_update_s=None,  # as an INA3221's channel says it; None: as it is
    jitter_s=0.0,  # of updates,
    ppm=0.0,  # and by which their clock is off
    lag_s=0.0,  # time constant of 'ina'
    window_s=0.0,  # what a gauge is the mean of,
    said_window_s=0.0,  # and what its channel says of it; 0: nothing
    noise_w=0.0,
    wrap=False,  # the counter wraps in the run
    slow_s=0.0,  # how long a reading takes
    biased=None,  # there are a counter and a gauge, one of which is wrong: 'gauge' or 'counter'
    both=None,  # words of a GPU that the same recording has, too
)


def value(text):
    """WORD=VALUE of --set: a number or a tuple where it is one."""
    name, given = text.split("=", 1)
    if name not in WORDS:
        raise ArgumentTypeError(f"no word is called {name!r}")
    try:
        return name, literal_eval(given)
    except (ValueError, SyntaxError):
        return name, given
