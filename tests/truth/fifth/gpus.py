"""Scenarios of a GPU: the host launches kernels, which say below which module they belong, and spins until they are done."""

from models import Make, gpt
from program import PYTHON_W, Calls
from scene import scenario
from tracks import OUTSIDE, Thread

WATTS = {"Linear": 190.0, "LayerNorm": 90.0, "GELU": 100.0, "Softmax": 120.0, "Embedding": 70.0, "Dropout": 80.0}


class Launcher:
    """The host's thread and the GPU's: calls of modules on the one, kernels of leaves on the other, as soon as it is free."""

    def __init__(self, thread, gpu, calls):
        self.thread, self.gpu, self.calls = thread, gpu, calls

    def call(self, module, factor, kind):
        thread, calls = self.thread, self.calls
        thread.begin(kind, module.name, module.type)
        path = thread.stack[-1][0]
        thread.work(*calls(20e-6, PYTHON_W))
        for child in module.children if kind == "module" else module.children[::-1]:
            self.call(child, factor, kind)
        if not module.children:
            thread.work(*calls(10e-6, PYTHON_W))
            self.kernel(module, factor, kind, path)
        thread.end()

    def kernel(self, module, factor, kind, path):
        gpu, name = self.gpu, module.type.lower() + ("_fwd" if kind == "module" else "_bwd")
        gpu.step = self.thread.step
        gpu.until(self.thread.t + 5e-6)
        gpu.begin("kernel", name, parent=path)
        gpu.work(*self.calls(module.length_s * (factor * (1.0 if kind == "module" else 2.0)), module.watts))
        gpu.end()
        gpu.step = OUTSIDE
        gpu.wait(2e-6)

    def step(self, net, number, factor, with_backward):
        thread = self.thread
        thread.begin("step", "step", "", number)
        self.call(net, factor, "module")
        if with_backward:
            self.call(net, factor, "backward")
        thread.span("phase", "synchronize", (max(self.gpu.t - thread.t, 1e-6), 9.0))  # spins
        thread.end()


def run(scene, step=0.06, with_backward=True, **words):
    thread, rng = scene.start(**words), scene.rng
    calls, gpu = Calls(scene, overhead_s=0), Thread(scene.names, "gpu-0")
    net = gpt(Make(rng, spread=0.0), int(scene.word("blocks", 4))).scaled_to(scene.word("step", step) * (0.35 if with_backward else 1.0))
    for leaf in net.leaves():
        leaf.watts = WATTS[leaf.type] * rng.normal(1, 0.12)
    gpu.wait(thread.t)
    launcher, number, end_s = Launcher(thread, gpu, calls), 0, thread.t + scene.word("seconds", 60.0)
    while thread.t < end_s:
        if "loader" not in scene.off:
            fetched = calls(0.002, 8.0)
            thread.span("phase", "dataloader.next", fetched, wait=calls.length(0.003))
        factor = rng.lognormal(0, 0.3) if "scale" not in scene.off else 1.0
        launcher.step(net, number, factor * 10 if number == 0 else factor, with_backward)
        number += 1
        if number % 200 == 0 and "eval" not in scene.off:
            thread.span("phase", "checkpoint", (0.05, 9.0), wait=0.2)
    scene.write([thread, gpu])


@scenario
def gpu_counter(scene):
    """GPU training, kernels below modules, NVML counter every 100 ms, clock off by 100 ppm, RAPL for the host; 60 s"""
    run(scene, gpu="counter")


@scenario
def gpu_counter20(scene):
    """the same with a counter that publishes every 20 ms, read each 10 ms"""
    run(scene, gpu="counter", gpu_update=0.02, gpu_read=0.01)


@scenario
def gpu_counter_jit(scene):
    """counter every 100 ms with publication jitter of 1 ms"""
    run(scene, gpu="counter", pub_jitter=0.001)


@scenario
def gpu_gauge(scene):
    """power gauge: mean of 100 ms, updated each 100 ms, read each 20 ms"""
    run(scene, gpu="gauge")


@scenario
def gpu_part(scene):
    """A100: power gauge is the mean of 25 of 100 ms, window known"""
    run(scene, gpu="gauge", gpu_window=0.25)


@scenario
def gpu_avg1s(scene):
    """NVML power gauge of Ampere and later: running mean of the past second, renewed each 100 ms (the format can't say so)"""
    run(scene, gpu="gauge", gpu_window=10.0, window_known=0)


@scenario
def gpu_infer_small(scene):
    """GPU inference of 8 ms steps (kernels 20-300 µs), counter every 100 ms"""
    run(scene, step=0.008, with_backward=False, gpu="counter")
