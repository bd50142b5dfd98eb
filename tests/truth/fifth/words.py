"""The words of a scenario: what each means, and what holds where a scenario leaves it out. `--set WORD=VALUE` sets one in all scenarios
(those of the program only where the scenario has such a thing), `--off NAME,NAME` takes mechanisms away, to see which one nrg stumbles over."""

from argparse import ArgumentTypeError

# The machine and its recorder.
MACHINE = dict(
    cpus=8,
    idle=12.0,  # watts
    drift=0.0,  # part by which idle power grows in the run,
    drift_tau=60.0,  # with this time constant (s)
    uncore=3.0,  # watts as soon as any CPU is busy, shared by those that are
    turbo=0.0,  # for each further busy CPU all draw so much less
    baseline=5.0,  # seconds before and after the run; 0: none
    startup=0.8,  # seconds that the program loads libraries, without a span
    tail=0.3,  # seconds from its last span to its end
    rate=100.0,  # readings per second
    late=1,  # they are late, a few of them by ms
    recorder=1,  # and cost CPU time
    sensor="rapl",  # or 'ina' (a gauge that lags), 'wall' (a meter at the plug)
    dram=0,  # a counter of memory, too
    width_us=15.0,  # how long a reading takes
    jitter_us=30.0,  # of RAPL's updates
    lag=0.35,  # seconds, of 'ina',
    lag_known=1,  # which the recording says
    wall_mean=1.0,  # seconds of which 'wall' shows the mean
    hz=250,  # the kernel's ticks
    busy="cpuacct",  # where cpu.busy comes from: exact; 'procstat', 'cpustat': what ticks saw
    own_rows=2e-3,  # threads read their own CPU time at begins and ends, not more often than this (s); 0: never
    threads_rows=1,  # there are CPU times of threads
    gpu=None,  # its sensor: 'counter' or 'gauge'
    gpu_idle=25.0,  # watts,
    gpu_static=15.0,  # and so many more while a program has it open
    gpu_read=0.02,  # seconds between readings,
    gpu_update=0.1,  # and between the sensor's updates,
    ppm=100.0,  # whose clock is off by this
    pub_jitter=0.0,  # seconds by which updates jitter
    gpu_width_us=300.0,  # how long a reading takes
    gpu_window=1.0,  # part of an update's period that a gauge is the mean of,
    window_known=1,  # which the recording says
    stall=(),  # times (from, to) in which the recorder gets no CPU
    migrate=(),  # times at which the program moves to the other package; where there are any, there are two
)

# The program; each scenario has values of its own for those that it knows.
PROGRAM = dict(
    seconds="how long it works",
    step="seconds of a step's forward pass",
    blocks="of a GPT",
    epoch_steps="steps of an epoch",
    threads="of gil",
    every="preempt: seconds between two interruptions",
    length="preempt: of an interruption; workers: of a worker's burst (s)",
    w="preempt: watts of what interrupts",
    kind="workers: 'other' makes it a process of somebody else",
    phase="workers: 1 makes bursts begin at any time of a step",
    server="rpc: 'worker' makes it a child of the program",
    qlo="rpc: shortest query (s)",
    qhi="rpc: longest query (s)",
)

# Mechanisms that --off takes away: those of the machine with the word that it sets to 0, then those of programs.
OFF_WORDS = dict(jitter="jitter_us", late="late", recorder="recorder", uncore="uncore", drift="drift", turbo="turbo", cpurows="own_rows")
OFF = {*OFF_WORDS, *("others ticks py timejitter wattjitter warm eval gc ckpt wait gap scale pool workers browser cc preempt gil hold stall "
                     "move server skew loader hot exit").split()}


def value(text):
    """NAME=VALUE of --set: a number where it is one."""
    name, given = text.split("=", 1)
    if name not in MACHINE and name not in PROGRAM:
        raise ArgumentTypeError(f"no word is called {name!r}")
    try:
        return name, float(given)
    except ValueError:
        return name, given


def mechanisms(text):
    """NAME,NAME of --off."""
    names = set(text.split(","))
    if names - OFF:
        raise ArgumentTypeError(f"no mechanism is called {' or '.join(sorted(names - OFF))}")
    return names
