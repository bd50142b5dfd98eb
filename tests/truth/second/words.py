"""The words of a scenario: what each means, and what holds where a scenario leaves it out."""

from dataclasses import dataclass


@dataclass
class Words:
    # When: seconds of the run, and of the baselines before and after it.
    T: float = 60.0
    baseline: float = 3.0
    baseline2: float = 0.0

    # The program: its layers, between which lengths (s) their means lie, and how calls differ from their mean.
    layers: int = 12
    len: tuple = (0.3e-3, 6e-3)
    jit: float = 0.1
    irregular: bool = False  # layers in another order each step
    reps: bool = False  # some layers more than once a step
    partial: bool = False  # some layers not in each step
    nested: float = 0  # layers in blocks, whose own time is this part of a layer's
    warm: int = 0  # steps at the beginning that are slow
    gap: tuple = None  # before a step: how likely, how long (s), 'sleep' or in a 'span'
    self: float = 0.05  # own time of a step, as a part of a layer's
    between: float = 20e-6  # seconds between steps,
    outbusy: int = 1  # and whether the thread works there
    edgebusy: bool = False  # works from the beginning of the run to its end
    stall: str = None  # calls wait: at their 'start', 'end', anywhere ('uniform'), or seldom and long ('heavy')
    stall_frac: float = 0.3
    stall_uneven: bool = False
    threads: int = 1
    same: bool = True  # threads run the same layers
    pool: int = 0  # workers without spans that follow the first thread
    gpu: bool = False  # the spans are kernels on a GPU

    # What draws power.
    watts: tuple = (8, 30)
    idle: tuple = (5, 80)
    dram: bool = False
    uncore: bool = False
    noise: tuple = None  # of the active power: white, 1/f
    inoise: float = 0  # of the idle power
    turbo: tuple = None  # for so many seconds, so many times the power
    fsteps: bool = False  # levels of frequency, chosen at random
    drift: tuple = None  # of the idle power: 'lin', 'exp' or 'sin', and by which part
    others: tuple = ()  # other processes: 'steady', 'bursty', 'rare', 'full'
    bg: float = 0.01  # CPUs of others that draw nothing

    # What shows it: 'rapl', 'nvml-counter', '-mean', '-part', '-instant', 'ina' or 'wall', and readings a second.
    sensor: str = "rapl"
    rate: float = 100
    late: float = 1  # how late readings are
    drop: float = 0  # part of the readings that is missing,
    dropburst: bool = False  # and many in a row too
    unit: float = 61.03515625e-6  # of RAPL's counter (J)
    wrap: int = 2**32
    update: str = "free"  # RAPL's clock: any, 'p976' (1/1024 s), that and it 'wander's, 'ms'
    ujit: float = 0  # how much the sensor's updates jitter (s)
    rapl_same: bool = True  # all domains of RAPL update at once
    gupd: float = 0.1  # how often a GPU's sensor updates (s)
    winknown: bool = True  # the recording says what window a gauge averages over
    tau: float = 0.4  # the lag of 'ina' (s),
    lagknown: bool = False  # and whether the recording says it
    iupd: float = 2e-3

    # What the kernel shows.
    busy: str = "ns"  # how exact CPU time of all is: 'ns', 'stat' (10 ms), 'sampled' (whole ticks), 'none'
    tick: float = 0.004
    threadrows: bool = True  # CPU times of threads,
    edges: bool = False  # also at spans
    cpus: int = 8
    rev: int = 2  # of the recording format

    @property
    def begin_s(self):
        return 1.0 + self.baseline

    @property
    def end_s(self):
        return self.begin_s + self.T

    @property
    def after_s(self):
        """Where the recording ends."""
        return self.end_s + self.baseline2 + 0.2

    def before(self):
        """(begin, end) of the baseline before the run, in a list that is empty where there is none."""
        return [(self.begin_s - self.baseline, self.begin_s - 0.01)] if self.baseline else []

    def behind(self):
        """The same of the baseline after the run."""
        return [(self.end_s + 0.01, self.end_s + self.baseline2)] if self.baseline2 else []
