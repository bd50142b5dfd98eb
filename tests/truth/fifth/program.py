"""What a program does: calls of modules forward and backward, loops of training and of inference. `Calls` says how calls of the moment behave;
a mechanism that is off is not drawn."""

import math

PYTHON_W = 9.0
COLLECTION_S = 0.03


class Normal:
    """Standard normal numbers, drawn many at a time: one at a time takes far longer."""

    def __init__(self, rng):
        self.rng, self.drawn, self.used = rng, (), 0

    def next(self):
        if self.used >= len(self.drawn):
            self.drawn, self.used = self.rng.standard_normal(65536), 0
        self.used += 1
        return self.drawn[self.used - 1]


class Calls:
    """slow, hot: factors of all lengths and watts; longer: factors of lengths of a class; gc_every: leaf calls between two collections."""

    def __init__(self, scene, overhead_s=12e-6, gc_every=None):
        self.normal = Normal(scene.rng)
        self.overhead_s = scene.unless("py", overhead_s)
        self.length_spread, self.watts_spread = scene.unless("timejitter", 0.06), scene.unless("wattjitter", 0.03)
        self.slow, self.hot, self.longer = 1.0, 1.0, {}
        self.gc_every, self.since_gc = gc_every, 0

    def length(self, seconds):
        return seconds * self.slow * math.exp(self.length_spread * self.normal.next())

    def watts(self, watts):
        return watts * self.hot * math.exp(self.watts_spread * self.normal.next())

    def __call__(self, seconds, watts):
        """(length, watts) of this call."""
        return self.length(seconds), self.watts(watts)

    def overhead(self, thread, times=1.0):
        """Python's own work."""
        if self.overhead_s:
            thread.work(*self(self.overhead_s * times, PYTHON_W), dram_w=0.8)

    def leaf(self, thread, module, factor, watts_factor=1.0):
        thread.work(*self(module.length_s * factor, module.watts * watts_factor), module.cpus, dram_w=module.dram_w)
        if self.gc_every:
            self.since_gc += 1
            if self.since_gc >= self.gc_every:  # a full collection, inside of whoever allocates
                self.since_gc = 0
                thread.work(*self(COLLECTION_S, 8.0), dram_w=2.0)

    def forward(self, thread, module, factor):
        thread.begin("module", module.name, module.type)
        self.overhead(thread)
        if not module.children:
            self.leaf(thread, module, factor * self.longer.get(module.type, 1.0))
        for child in module.pick() if module.pick else module.children:
            self.forward(thread, child, factor)
            self.overhead(thread, 0.5)
        thread.end()

    def backward(self, thread, module, factor):
        thread.begin("backward", module.name, module.type)
        if not module.children:
            self.leaf(thread, module, factor * 2.0, 1.05)
        else:
            for child in reversed(module.children):
                self.backward(thread, child, factor)
            self.overhead(thread)
        thread.end()


class Training:
    """Epochs with a data loader, steps with forward, backward and optimizer; then evaluation. warm: factor of the first step; scale:
    draws the size of a batch; before_step: called with the number of the step; checkpoint: seconds between two; wait: for data (s)."""

    def __init__(self, thread, calls, model, *, epoch_steps=60, eval_steps=12, loader=0.004, scale=None, warm=10, checkpoint=None,
                 before_step=None, wait=0.0):
        self.thread, self.calls, self.model, self.forward_s = thread, calls, model, model.forward_s()
        self.epoch_steps, self.eval_steps, self.loader, self.wait_s = epoch_steps, eval_steps, loader, wait
        self.scale, self.warm, self.before_step, self.checkpoint_s = scale, warm, before_step, checkpoint
        self.n_steps, self.next_checkpoint = 0, thread.t + (checkpoint or 1e9)

    def run(self, seconds):
        end_s, epoch, thread = self.thread.t + seconds, 0, self.thread
        while thread.t < end_s:
            thread.begin("epoch", "epoch", "", epoch)
            for _ in range(self.epoch_steps):
                if thread.t >= end_s:
                    break
                self.batch()
            thread.end()
            if thread.t < end_s and self.eval_steps:
                self.evaluation(epoch)
            epoch += 1

    def batch(self):
        thread, calls = self.thread, self.calls
        thread.begin("phase", "dataloader.next")
        thread.work(*calls(self.loader, 8.0), dram_w=2.0)
        if self.wait_s:
            thread.wait(calls.length(self.wait_s))
        thread.end()
        factor = self.scale() if self.scale else 1.0
        if self.n_steps == 0 and self.warm:
            factor *= self.warm
        if self.before_step:
            self.before_step(self.n_steps, thread, calls)
        self.step(factor)
        calls.overhead(thread, 2)
        if thread.t > self.next_checkpoint:
            self.next_checkpoint = thread.t + self.checkpoint_s
            self.checkpoint()

    def step(self, factor):
        thread, calls = self.thread, self.calls
        thread.begin("step", "step", "", self.n_steps)
        calls.overhead(thread, 3)
        calls.forward(thread, self.model, factor)
        thread.work(*calls(self.forward_s * 0.02, 10.0))  # the loss
        calls.backward(thread, self.model, factor)
        thread.span("phase", "optimizer.step", (*calls(self.forward_s * 0.1, 10.5), 3.5), detail="AdamW")
        thread.end()
        self.n_steps += 1

    def checkpoint(self):
        thread, calls = self.thread, self.calls
        thread.begin("phase", "checkpoint")
        thread.work(*calls(0.05, 9.0), dram_w=2.0)
        thread.wait(calls.length(0.25))
        thread.work(*calls(0.01, 8.0))
        thread.end()

    def evaluation(self, epoch):
        thread, calls = self.thread, self.calls
        thread.begin("phase", "evaluation", "", epoch)
        for _ in range(self.eval_steps):
            thread.span("phase", "dataloader.next", calls(self.loader, 8.0))
            calls.forward(thread, self.model, self.scale() if self.scale else 1.0)
            calls.overhead(thread, 4)
        thread.end()


def infer(thread, calls, model, seconds, *, scale=None, warm=10, gap=0.0, before_step=None):
    """Steps of a little work before and a forward pass."""
    number, end_s = 0, thread.t + seconds
    while thread.t < end_s:
        if before_step:
            before_step()
        thread.begin("step", "step", "", number)
        thread.work(*calls(0.001, 8.5))
        calls.forward(thread, model, (scale() if scale else 1.0) * (warm if number == 0 and warm else 1.0))
        thread.end()
        number += 1
        if gap:
            thread.wait(calls.length(gap))
