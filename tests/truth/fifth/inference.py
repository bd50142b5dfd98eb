"""Scenarios without training: inference, servers, scripts of seconds; and small ones that have a single mechanism each."""

from models import Make, Module, experts_block, gpt, mlp, resnet
from program import PYTHON_W, Calls, infer
from scene import interrupters, scenario
from tracks import BEGIN, Load, Thread


# Inference.

@scenario
def plain(scene):
    """10 linear layers in steps of 60 ms, 20 s: nothing else happens"""
    thread = scene.start(without=["recorder"], uncore=0, jitter_us=0, late=0)
    net = mlp(Make(scene.rng)).scaled_to(scene.word("step", 0.06))
    infer(thread, Calls(scene), net, scene.word("seconds", 20.0), warm=0)
    scene.write([thread], others=False)


@scenario
def gpt_infer(scene):
    """GPT of 12 blocks, 110 rows, 4 deep; steps of 80 ms, 30 s; light others"""
    thread = scene.start()
    net = gpt(Make(scene.rng), int(scene.word("blocks", 12))).scaled_to(scene.word("step", 0.08))
    infer(thread, Calls(scene), net, scene.word("seconds", 30.0), warm=scene.unless("warm", 10))
    scene.write([thread])


@scenario
def short5(scene):
    """ResNet inference of 5 s without a baseline, as `nrg run --torch` by default"""
    thread = scene.start(baseline=0)
    net = resnet(Make(scene.rng)).scaled_to(0.035)
    infer(thread, Calls(scene), net, scene.word("seconds", 5.0), warm=scene.unless("warm", 10))
    scene.write([thread])


@scenario
def varlen_attn(scene):
    """variable length; softmax goes with the square of the length, watts per class change with it"""
    thread, rng = scene.start(), scene.rng
    calls, net = Calls(scene), gpt(Make(rng), 8).scaled_to(0.05)

    def scale():
        calls.longer["Softmax"] = rng.lognormal(-0.1, 0.5)
        return calls.longer["Softmax"]

    def before_step():
        calls.hot = 1.0 if "hot" in scene.off else rng.normal(1, 0.04)
    infer(thread, calls, net, scene.word("seconds", 40.0), scale=scale, before_step=before_step)
    scene.write([thread])


@scenario
def moe(scene):
    """mixture of experts: 2 of 8 experts per block, early exit after 3 to 6 blocks; infer 40 s"""
    thread, rng = scene.start(), scene.rng
    maker = Make(rng)
    body = Module("blocks", "ModuleList", [experts_block(maker, rng, f"blocks.{i}") for i in range(6)])
    if "exit" not in scene.off:
        body.pick = lambda: body.children[:rng.integers(3, 7)]
    net = Module("MoENet", "", [maker("embed", "Embedding"), body, maker("head", "Linear")]).scaled_to(scene.word("step", 0.25))
    infer(thread, Calls(scene), net, scene.word("seconds", 40.0))
    scene.write([thread])


@scenario
def jetson(scene):
    """INA3221 with a known lag of 0.35 s: ResNet inference, 4 CPUs, 60 s"""
    thread = scene.start(sensor="ina", idle=4.0, rate=50.0, uncore=0.4, cpus=6)
    net = resnet(Make(scene.rng)).scaled_to(scene.word("step", 0.12))
    for leaf in net.leaves():
        leaf.watts *= 0.25
    infer(thread, Calls(scene), net, scene.word("seconds", 60.0), gap=scene.unless("gap", 0.01))
    scene.write([thread])


# Servers.

@scenario
def llm(scene):
    """text generation: prefill, then 20-120 tokens; attention grows with the cache; waits for requests"""
    thread, rng = scene.start(), scene.rng
    calls, net = Calls(scene), gpt(Make(rng), 8).scaled_to(0.018)
    end_s = thread.t + scene.word("seconds", 45.0)
    while thread.t < end_s:
        thread.begin("span", "generate")
        n_prompt = rng.integers(50, 400)
        calls.longer["Softmax"], calls.hot = n_prompt / 200, scene.unless("hot", 1.15, 1.0)
        thread.begin("phase", "prefill")
        calls.forward(thread, net, n_prompt / 60)
        thread.end()
        calls.hot = 1.0
        thread.begin("phase", "decode")
        for n_tokens in range(rng.integers(20, 120)):
            calls.longer["Softmax"] = 0.3 + (n_prompt + n_tokens) / 300
            calls.forward(thread, net, 1.0)
            calls.overhead(thread, 8)
        thread.end()
        thread.end()
        if "wait" not in scene.off:
            thread.wait(rng.exponential(0.3))
    scene.write([thread])


class Interpreter:
    """Threads of Python that share one lock: each leaf begins with Python, for which it needs the lock, and goes on without."""

    def __init__(self, scene, calls, net):
        self.rng, self.calls, self.net, self.locks = scene.rng, calls, net, "gil" not in scene.off
        self.python = {leaf.name: scene.rng.uniform(0.1, 0.5) for leaf in net.leaves()}
        self.free_s = 0.0

    def serve(self, thread):
        """A generator, so that threads can go on in the order of time."""
        number = 0
        while True:
            thread.wait(self.rng.exponential(0.02))
            yield
            thread.begin("step", "step", "", thread.number * 100000 + number)
            yield from self.call(thread, self.net)
            thread.end()
            number += 1

    def call(self, thread, module):
        thread.begin("module", module.name, module.type)
        for child in module.children:
            yield from self.call(thread, child)
        if not module.children:
            self.leaf(thread, module)
            yield
        thread.end()

    def leaf(self, thread, module):
        part, calls = self.python[module.name], self.calls
        python_s = calls.length(module.length_s * part)
        if self.locks:
            thread.until(self.free_s)
            self.free_s = thread.t + python_s
        thread.work(python_s, calls.watts(PYTHON_W))
        thread.work(*calls(module.length_s * (1 - part), module.watts))


@scenario
def gil(scene):
    """server with 3 Python threads and the GIL: kernels release it, Python waits for it"""
    main = scene.start(turbo=0.05)
    threads = [main] + [Thread(scene.names, number=k) for k in range(1, int(scene.word("threads", 3)))]
    for thread in threads[1:]:
        thread.wait(main.t)
    interpreter = Interpreter(scene, Calls(scene, overhead_s=0), resnet(Make(scene.rng)).scaled_to(0.06))
    served, end_s = [interpreter.serve(thread) for thread in threads], main.t + scene.word("seconds", 40.0)
    while min(thread.t for thread in threads) <= end_s:
        next(served[min(range(len(threads)), key=lambda k: threads[k].t)])
    for thread in threads:
        while len(thread.stack) > 1:
            thread.end()
    scene.write(threads)


@scenario
def hold(scene):
    """inference server on one thread, waits of 2-20 ms between steps; the package stays awake (5 W) for the first ms of a wait in `wait` spans"""
    thread, rng = scene.start(), scene.rng
    calls, net = Calls(scene), resnet(Make(rng)).scaled_to(0.03)
    number, end_s = 0, thread.t + scene.word("seconds", 40.0)
    while thread.t < end_s:
        thread.begin("step", "step", "", number)
        calls.forward(thread, net, rng.lognormal(0, 0.3))
        thread.end()
        number += 1
        thread.begin("phase", "wait")
        wait_s, awake_s = rng.uniform(0.002, 0.02), scene.unless("hold", 0.001)
        thread.work(awake_s, 5.0, 0.0, 0)
        thread.wait(wait_s - awake_s)
        thread.end()
    scene.write([thread])


@scenario
def rpc(scene):
    """steps that ask a local server (another process, not measured): main sleeps 5-25 ms while the server runs at 15 W"""
    thread, rng, queries = scene.start(), scene.rng, []
    calls, net = Calls(scene), resnet(Make(rng), (1, 1)).scaled_to(scene.word("step", 0.04))
    number, end_s = 0, thread.t + scene.word("seconds", 40.0)
    while thread.t < end_s:
        thread.begin("step", "step", "", number)
        number += 1
        thread.begin("span", "query")
        thread.work(*calls(0.0004, 9.0))
        wait_s = rng.uniform(scene.word("qlo", 0.005), scene.word("qhi", 0.025))
        queries.append((scene.begin_s() + thread.t, wait_s - 0.0002, 1, 15.0))
        thread.wait(wait_s)
        thread.work(*calls(0.0006, 9.0))
        thread.end()
        calls.forward(thread, net, 1.0)
        thread.end()
    owner = "worker" if scene.word("server", "") == "worker" else "other"
    scene.write([thread], scene.unless("server", [Load(owner, queries)], []))


# Scripts with spans of seconds.

def script(thread, calls, *, n_reads, prepare_s, n_epochs, n_batches, evaluation_s, logs):
    thread.begin("span", "load")
    for _ in range(n_reads):
        thread.work(*calls(0.02, 8.0))
        thread.wait(calls.length(0.05))
    thread.end()
    thread.begin("span", "preprocess")
    thread.work(prepare_s, 50.0, 4.0)
    thread.end()
    thread.begin("span", "fit")
    for epoch in range(n_epochs):
        thread.begin("epoch", "epoch", "", epoch)
        for _ in range(n_batches):
            thread.work(*calls(0.018, 18.0))
            thread.work(*calls(0.002, 9.0))
        thread.end()
        thread.begin("phase", "evaluation", "", epoch)
        thread.work(*calls(evaluation_s, 15.0))
        thread.end()
        if logs:
            thread.span("phase", "log", calls(0.001, 9.0), wait=0.03)
    thread.end()


@scenario
def coarse(scene):
    """a script with spans of seconds: load (disk), preprocess (4 CPUs), 12 epochs of 2 s, evaluation 0.4 s"""
    thread = scene.start(turbo=0.05)
    script(thread, Calls(scene), n_reads=40, prepare_s=2.5, n_epochs=12, n_batches=100, evaluation_s=0.4, logs=True)
    scene.write([thread])


@scenario
def wall(scene):
    """the same script of seconds with a 1 Hz meter at the plug, mean of the past second"""
    thread = scene.start(sensor="wall", baseline=15.0)
    script(thread, Calls(scene), n_reads=120, prepare_s=7.5, n_epochs=10, n_batches=300, evaluation_s=2.4, logs=False)
    scene.write([thread])


# Single mechanisms.

def small_gpt(scene, blocks, seconds):
    """Inference on a machine on which nothing else happens."""
    thread = scene.start(without=["recorder", "uncore"])
    net = gpt(Make(scene.rng), int(scene.word("blocks", blocks))).scaled_to(scene.word("step", 0.08))
    infer(thread, Calls(scene), net, scene.word("seconds", seconds), warm=0)
    return thread


@scenario
def preempt(scene):
    """GPT inference, nothing else but another task of 11 W that takes the CPU for 2 ms every 150 ms"""
    thread = small_gpt(scene, 4, 30.0)
    scene.interrupt(thread, scene.word("every", 0.15), scene.word("length", 0.002))
    scene.write([thread], [interrupters(thread, scene.word("w", 11.0))], others=False)


@scenario
def workers(scene):
    """GPT inference and one worker process (13 W) that runs for 30 ms after each batch is taken; nothing else"""
    thread, rng = small_gpt(scene, 2, 40.0), scene.rng
    scene.place(thread)
    after_s = (0, 0.08) if scene.word("phase", 0) else (0.0002, 0.0008)
    bursts = [(t + rng.uniform(*after_s), scene.word("length", 0.03) * rng.lognormal(0, 0.2), 1, 13.0)
              for t in thread.times_of(BEGIN, "step", "step")]
    owner = "other" if scene.word("kind", "") == "other" else "worker"
    scene.write([thread], [Load(owner, bursts)], others=False)
