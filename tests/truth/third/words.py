"""The words of a scenario: what each means, and what holds where a scenario leaves it out. `judge --set WORD=VALUE` sets one in all."""

from dataclasses import dataclass


@dataclass
class Words:
    # When: seconds of the run, of the baselines, and of what the program does before its first span (it loads libraries).
    run_s: float = 60
    base_s: float = 10  # 0: none
    base_after: bool = False  # another one after the run
    startup: float = 0.8

    # The program: steps of layers, whose median length (s), spread (of its logarithm) and watts lie between the two given.
    shape: str = "flat"  # all layers in the step; 'net': forward and backward, and blocks in both
    layers: int = 10
    call_s: tuple = (0.2e-3, 8e-3)
    spread: tuple = (0.03, 0.4)
    watts: tuple = (6, 40)
    overhead: bool = True  # steps, phases and blocks work a little themselves, before and after each part
    gap: float = 0.0005  # mean seconds between steps,
    gap_busy: float = 0.0  # and in which part of them the thread works
    tiny_calls: int = 0  # so many calls of one short operator in each step
    percall: float = 0.0  # part of a call's energy that does not grow with its length,
    percall_some: bool = False  # but only of every other layer
    size_spread: float = 0.0  # steps differ in size: by so much (of its logarithm),
    size_time: float = 0.0  # calls are longer by up to about this power of it,
    size_watts: float = 0.0  # and draw more by up to this power of it
    load_wait: float = 0.0  # a span at the begin of each step waits for data so long (s)
    eval_every: int = 0  # of so many steps the last fifth is evaluation
    checkpoint_every: int = 0  # each so-and-so-many-th step is a checkpoint instead
    warm_steps: int = 0  # so many at the beginning take four times as long
    wait: float = 0.0  # calls wait: about this part of the time that they work,
    wait_uneven: bool = False  # some layers twenty times as long as others,
    wait_place: str = None  # anywhere in the call; 'own': each layer at its begin, middle or end
    dispatch: float = 0.0  # calls begin with so many seconds of a framework's work, at 7 W,
    ramp: float = 0.0  # draw so much less in their first 0.3,
    ragged: float = 0.0  # and without their workers in up to this last part
    step_period: float = None  # of a GPU's program: a step each so many seconds, all alike

    # Its threads, and workers without spans that help some layers.
    threads: int = 1
    named_threads: bool = True  # each has steps and layers of its own
    thread_start: float = 0.0  # each begins so many seconds after the one before
    workers: int = 0  # at most
    workers_vary: bool = False  # not all of them in each call
    passive: bool = False  # the thread sleeps while they work

    # What draws power beside: watts when idle, and what moves them.
    idle: float = 18.0
    drift: tuple = None  # ('line', 'warm', 'jump' or 'hump'; the part by which idle power grows)
    freq: tuple = None  # (changes of frequency at random times; power of every other stretch)
    turbo: float = 0.0  # each CPU draws 1 / (1 + this * (how many more are busy)) of its watts
    uncore: float = 0.0  # watts that are drawn as soon as any CPU is busy
    smt: float = 1.0  # of its watts, that a thread draws while the other one of its core is busy
    others: tuple = None  # another process: (mean seconds at work, and not, watts),
    others_base: bool = False  # in the baseline, too
    recorder_cpu: float = 60e-6  # seconds that the recorder works at each reading
    domains: tuple = ("package-0",)  # that there are: package-0, package-1, dram-0
    migrate: float = 0.0  # threads may change the package every so many seconds

    # The sensor of the host: 'rapl', 'ina' (INA3221 behind a filter), 'inabox' (mean of its last cycle) or 'wall'.
    sensor: str = "rapl"
    rate: float = "auto"  # readings of RAPL a second; 'auto': 10, and 100 from the first span on
    late: str = "normal"  # how late the recorder is: 'quiet', 'normal', 'loaded'
    rapl_update: float = None  # seconds between updates of RAPL; none: within 3 % of a millisecond
    rapl_jitter: float = 15e-6  # of each update (s),
    rapl_wander: float = 0.0  # and that adds up from update to update (s)
    read_s: float = None  # seconds between readings of INA3221 (none: 0.01) and GPU (0.02)
    gauge_noise: float = 0.0  # watts
    lag: float = 0.0  # of 'ina' (s),
    lag_known: bool = False  # and whether the recording says it

    # Layers launch kernels on a GPU. Its sensor is a 'counter' of energy, or shows the mean 'power' of a window.
    gpu: bool = False
    gpu_sensor: str = "counter"
    update: float = None  # seconds between updates (GPU and 'inabox'),
    update_jitter: float = 0.0  # how much these jitter (GPU; s),
    update_known: bool = True  # and whether the recording says them (GPU's power)
    ppm: float = 100.0  # how wrong the sensor's clock may be
    window: float = 0.0  # seconds; 0: shows one instant,
    window_known: bool = True  # and whether the recording says it
    streams: int = 1  # kernels run on so many streams in turn, at the same time where they can,
    beside: float = 1.0  # and draw this part of their power beside one of the other stream (1: powers add up; 0.5: two share it)
    awake: tuple = None  # (watts that the GPU draws more from a kernel on, until it rested so many seconds)
    unread: tuple = None  # (so many times its readings stop, for so many seconds)

    # What the kernel shows.
    busy_known: bool = True  # CPU times at all,
    busy: str = "cpuacct"  # of the machine by 'cpuacct' (ns), 'cgroup' (us), 'cgticks' (us, moves by ticks) or 'stat' (10 ms),
    sampled: bool = False  # whose ticks count for whoever runs when one comes,
    tick: float = 0.004  # seconds,
    own: bool = False  # of the recorder,
    threads_known: bool = True  # of threads,
    edge: bool = True  # which also read their own at edges of spans
    rev: int = 2  # of the recording format; 1: the order of readings was another
