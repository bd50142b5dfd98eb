"""Scenarios of training: models, data loaders, hosts that do other things too, clocks, sensors and recorders."""

from models import Make, gpt, mlp, resnet
from program import Calls, Training
from scene import interrupters, scenario
from tracks import END, Load


def train(scene, *, model=gpt, step=0.05, seconds=45.0, blocks=6, pool=1, loader=0.004, gc=None, checkpoint=None, wait=0.0, scale=None,
          before_step=None, interrupt=None, loads=None, **words):
    """interrupt, loads: called with the thread when its program, and when its times are known."""
    thread = scene.start(**words)
    calls = Calls(scene, gc_every=scene.unless("gc", gc))
    maker = Make(scene.rng, scene.unless("pool", pool, 1))
    net = gpt(maker, int(scene.word("blocks", blocks))) if model is gpt else model(maker)
    net.scaled_to(scene.word("step", step))
    Training(thread, calls, net, scale=scene.unless("scale", scale), warm=scene.unless("warm", 10), checkpoint=scene.unless("ckpt", checkpoint),
             wait=scene.unless("wait", wait), epoch_steps=int(scene.word("epoch_steps", 60)), eval_steps=scene.unless("eval", 12),
             before_step=before_step, loader=loader).run(scene.word("seconds", seconds))
    if interrupt:
        interrupt(thread)
    scene.place(thread)
    scene.write([thread], loads(thread) if loads else [])


# Models and programs.

@scenario
def gpt_train(scene):
    """GPT of 6 blocks: forward 50 ms, backward 100 ms, optimizer, loader, epochs, evaluation, slow first step; 45 s"""
    train(scene)


@scenario
def gpt_train_60s_12(scene):
    """GPT of 12 blocks, train, forward 100 ms, 90 s: 340 rows"""
    train(scene, blocks=12, step=0.1, seconds=90.0)


@scenario
def tiny_train(scene):
    """small GPT of 4 blocks: forward 4 ms, step 13 ms, layers of 20-400 µs; 30 s"""
    train(scene, blocks=4, step=0.004, seconds=30.0, loader=0.0008)


@scenario
def varlen(scene):
    """variable-length input: times of all layers scale together per step (lognormal 0.5)"""
    train(scene, scale=lambda: scene.rng.lognormal(-0.1, 0.5))


@scenario
def cnn_pool(scene):
    """ResNet train, convolutions on a pool of 4 threads, the rest on one"""
    train(scene, model=resnet, pool=4, step=0.06, turbo=0.06)


@scenario
def spin_pool(scene):
    """OpenMP pool of 4 that spins between parallel regions: 4 CPUs busy always, spinning draws 4 W each"""
    thread = scene.start(turbo=0.04)
    calls = Calls(scene, overhead_s=0)
    net = resnet(Make(scene.rng, 4)).scaled_to(0.06)
    for leaf in net.leaves():
        if leaf.cpus == 1.0:
            leaf.watts += 3 * 4.0
        leaf.cpus = 4.0
    Training(thread, calls, net).run(scene.word("seconds", 45.0))
    scene.write([thread])


@scenario
def gc_ckpt(scene):
    """GPT train with collections of 30 ms every 900 leaf calls, checkpoints (disk waits) every 6 s"""
    train(scene, gc=900, checkpoint=6.0)


@scenario
def two_models(scene):
    """GAN-like: generator and discriminator by turns, different counts per step, train, ticks"""
    thread, rng = scene.start(busy="procstat"), scene.rng
    calls, maker = Calls(scene), Make(rng)
    generator = resnet(maker, (1, 1)).scaled_to(0.02)
    discriminator = discriminator_of(maker)
    generator.name = "Generator"
    number, end_s = 0, thread.t + scene.word("seconds", 40.0)
    while thread.t < end_s:
        thread.begin("step", "step", "", number)
        number += 1
        for _ in range(rng.integers(1, 4)):
            judge_fake(thread, calls, generator, discriminator)
        judge_fake(thread, calls, generator, discriminator)
        calls.backward(thread, generator, 1.0)
        thread.span("phase", "optimizer.step", calls(0.004, 10.0))
        thread.end()
        if number % 40 == 0:
            thread.span("phase", "save", calls(0.04, 9.0), wait=0.1)
    scene.write([thread])


def discriminator_of(maker):
    net = mlp(maker, 6).scaled_to(0.012)
    net.name = "Discriminator"
    for leaf in net.children:
        leaf.name = "Discriminator." + leaf.name
    return net


def judge_fake(thread, calls, generator, discriminator):
    calls.forward(thread, generator, 1.0)
    calls.forward(thread, discriminator, 1.0)
    calls.backward(thread, discriminator, 1.0)


@scenario
def ddp(scene):
    """two ranks, two processes, gradients exchanged at the end of each step (the faster waits, spinning)"""
    first, rng = scene.start(turbo=0.04), scene.rng
    calls, net = Calls(scene), resnet(Make(rng)).scaled_to(0.06)
    second = scene.loaded(0.8, process=1)
    number, end_s, ranks = 0, first.t + scene.word("seconds", 40.0), (first, second)
    while first.t < end_s:
        for rank, thread in enumerate(ranks):
            thread.begin("step", "step", f"rank {rank} of 2", number + rank * 100000)
            factor = rng.lognormal(0, scene.unless("skew", 0.1, 0.001))
            calls.forward(thread, net, factor)
            calls.backward(thread, net, factor)
        for thread in ranks:
            thread.span("phase", "allreduce", (max(first.t, second.t) - thread.t + 0.001, 7.0))
            thread.span("phase", "optimizer.step", calls(0.006, 10.0))
            thread.end()
        number += 1
    scene.write(ranks)


# Data loaders, and others on the machine.

@scenario
def loader(scene):
    """ResNet train with 2 data loader worker processes in bursts, main waits now and then"""
    def loads(thread):
        n_workers = scene.unless("workers", 2)
        return [scene.worker(thread, 0.08, 0.06) for _ in range(n_workers)]
    train(scene, model=resnet, step=0.06, wait=0.006, loads=loads)


@scenario
def loader_sync(scene):
    """the same, but workers decode right after each batch is fetched (in step with the program)"""
    def bursts(fetched):
        return [(t + scene.rng.uniform(0.0002, 0.0008), 0.05 * scene.rng.lognormal(0, 0.2), 1, 13.0) for t in fetched]

    def loads(thread):
        fetched = thread.times_of(END, "phase", "dataloader.next")
        return [Load("worker", bursts(fetched[k::2])) for k in range(2)] if "workers" not in scene.off else []
    train(scene, model=resnet, step=0.06, wait=0.006, loads=loads)


def preempted(scene):
    """Other tasks take the CPU for a few ms."""
    def interrupt(thread):
        if "preempt" not in scene.off:
            scene.interrupt(thread, 0.15, 0.002)
    return interrupt


def browser(scene, thread):
    return [Load("other", scene.bursts(thread.end_s + 5, 0.12, 0.02, 1, 6.0))] if "browser" not in scene.off else []


@scenario
def busyhost(scene):
    """GPT train on a desktop in use: a browser (6 W bursts), a compiler (19 W, 2 CPUs), preemption of 1-6 ms"""
    def loads(thread):
        found = browser(scene, thread)
        if "cc" not in scene.off:
            found.append(Load("other", scene.bursts(thread.end_s + 5, 3.0, 1.0, 2, 19.0)))
        return found + ([interrupters(thread, 11.0)] if thread.interruptions else [])
    train(scene, loads=loads, interrupt=preempted(scene))


@scenario
def ht(scene):
    """another program on the sibling hyperthread: progress at 0.62, power of ours at 0.7 meanwhile"""
    train(scene, interrupt=lambda thread: scene.interrupt(thread, 0.3, 0.15, longest=1.4, rate=0.62, power=0.7),
          loads=lambda thread: [interrupters(thread, 8.0)])


@scenario
def flush(scene):
    """ResNet train with checkpoints every 4 s; the kernel's writer threads run (10 W, 2 CPUs) for 0.4 s after each, beside the next steps"""
    def loads(thread):
        written = thread.times_of(END, "phase", "checkpoint")
        return [Load("other", [(t, 0.4 * scene.rng.lognormal(0, 0.3), 2, 20.0) for t in written])]
    train(scene, model=resnet, checkpoint=4.0, loads=loads)


@scenario
def everything(scene):
    """GPT train with ticks, pool, workers, busy host, preemption, drift, gc, checkpoints, variable length, turbo"""
    def loads(thread):
        found = []
        if "workers" not in scene.off:
            found.append(scene.worker(thread, 0.08, 0.04))
        found += browser(scene, thread)
        return found + ([interrupters(thread, 11.0)] if thread.interruptions else [])
    train(scene, pool=3, scale=lambda: scene.rng.lognormal(-0.05, 0.35), gc=900, checkpoint=8.0, wait=0.003, loads=loads,
          interrupt=preempted(scene), seconds=60.0, busy="procstat", turbo=0.05, drift=0.06)


# Clocks and heat.

@scenario
def long300(scene):
    """5 min of ResNet training, idle rises 8 % with the temperature, checkpoints each 30 s"""
    train(scene, model=resnet, step=0.09, seconds=300.0, checkpoint=30.0, drift=0.08)


@scenario
def pl2(scene):
    """turbo budget: after 20 s power falls to 0.72 and everything takes 1.25 times as long (PL2 to PL1)"""
    def before_step(_, thread, calls):
        if thread.t > 20.0:
            calls.hot, calls.slow = 0.72, 1.25
    train(scene, before_step=before_step)


@scenario
def governor(scene):
    """schedutil and thermal noise: clock wanders, power and speed together, minutes to ms (per step, correlated)"""
    clock = 1.0

    def before_step(_number, _thread, calls):
        nonlocal clock
        clock += 0.1 * (1 - clock) + scene.rng.normal(0, 0.02)
        calls.hot, calls.slow = clock**2.4, 1 / clock
    train(scene, before_step=before_step)


@scenario
def hybrid(scene):
    """P and E cores: for 1-3 s at a time on an E core: 0.35 of the power, 1.7 of the time"""
    next_s, efficient = 5.0, False

    def before_step(_, thread, calls):
        nonlocal next_s, efficient
        if thread.t > next_s:
            efficient = not efficient
            next_s = thread.t + (scene.rng.uniform(1, 3) if efficient else scene.rng.uniform(3, 8))
        calls.hot, calls.slow = (0.35, 1.7) if efficient else (1.0, 1.0)
    train(scene, before_step=before_step)


@scenario
def two_pkg(scene):
    """two packages: the program moves from one to the other every 2 to 9 s"""
    t, moves = 12.0, []
    while t < 70:
        moves.append(t)
        t += scene.rng.uniform(2, 9)
    train(scene, migrate=scene.unless("move", moves, [1e9]))


# Recorders and sensors.

@scenario
def nobase(scene):
    """GPT train of 45 s without a baseline: the default of nrg run --torch"""
    train(scene, baseline=0)


@scenario
def nobase_wait(scene):
    """ResNet train without a baseline, waiting for data 6 ms per step and checkpoints"""
    train(scene, model=resnet, baseline=0, wait=0.006, checkpoint=6.0)


@scenario
def ticks(scene):
    """GPT train, cpu.busy from /proc/stat, sampled at ticks of 4 ms"""
    train(scene, busy="procstat")


@scenario
def rate10(scene):
    """GPT train read at 10 Hz"""
    train(scene, rate=10.0)


@scenario
def rate1k(scene):
    """GPT train read at 1 kHz"""
    train(scene, rate=1000.0)


@scenario
def dram(scene):
    """GPT train with package and DRAM counters"""
    train(scene, dram=1)


@scenario
def stall(scene):
    """GPT train; the recorder gets no CPU or disk for 0.2-2 s, six times"""
    stalls = [] if "stall" in scene.off else [(t, t + scene.rng.uniform(0.2, 2.0)) for t in scene.rng.uniform(8, 45, 6)]
    train(scene, stall=stalls)


@scenario
def wall_train(scene):
    """ResNet training of 2 min with a 1 Hz meter at the plug"""
    train(scene, model=resnet, seconds=120.0, sensor="wall", baseline=15.0, idle=40.0)
