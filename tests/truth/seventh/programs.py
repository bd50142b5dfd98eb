"""Programs as people run them: layers in steps, PyTorch inference and training, GPUs, long phases, several processes."""
import numpy as np

from threads import Program


def layer_set(rng, n, low, high, power, mean_w=12.0, kind="layer"):
    """Classes: name, duration, watts, joules per call, share of waiting."""
    seconds = np.exp(rng.uniform(np.log(low), np.log(high), n))
    if power == "similar":
        watts = mean_w * rng.uniform(0.92, 1.08, n)
    elif power == "equal":
        watts = np.full(n, mean_w)
    elif power == "tiny":
        watts = mean_w * rng.uniform(0.6, 1.6, n)
        watts[rng.permutation(n)[:n // 3]] = mean_w * 0.02
    elif power == "dominant":
        watts = mean_w * rng.uniform(0.5, 1.5, n)
        seconds[rng.integers(n)] *= 25
    else:
        watts = mean_w * np.exp(rng.uniform(-0.9, 0.9, n))
    types = ["Linear", "Conv2d", "LayerNorm", "ReLU", "Softmax", "Embedding"]
    return [dict(name="%s_%d" % (types[i % 6].lower(), i), detail=types[i % 6], s=seconds[i], w=watts[i], kind=kind, call_j=0.0)
            for i in range(n)]


def pieces(rng, contrast):
    """Shares of a call's time and relative powers of what it does one after the other; their mean is 1."""
    parts = rng.dirichlet([3.0] * int(rng.integers(2, 4)))
    watts = np.exp(rng.uniform(-contrast, contrast, len(parts)))
    return list(zip(parts, watts / np.sum(parts * watts)))


def length(rng, mean, vary, step_factor):
    """Duration of one call."""
    if vary == "fixed":
        return mean * (1 + abs(rng.normal(0, 2e-3)))
    if vary == "lengths":
        return mean * step_factor * rng.lognormal(0, 0.03)
    return mean * rng.lognormal(0, {"little": 0.03, "much": 0.35}[vary])


def call(thread, rng, layer, seconds, o, domain):
    """One call of a layer: work, an energy of its own, waits or stalls in it."""
    extra = layer["call_j"] / seconds
    dram = {o["dram"]: layer.get("dram_w", 0.0)} if o.get("dram") else {}
    stall = o.get("stall")
    if o.get("shape"):  # a call is several loops: always the same pieces, each with its own power
        for part, relative in layer["pieces"]:
            thread.run(seconds * part, **{domain: layer["w"] * relative}, **dram)
        return
    if not stall:
        thread.run(seconds, **{domain: layer["w"] + extra}, **dram)
        return
    share = rng.uniform(0, layer.get("stall", 0.5))
    pieces = 1 if seconds < 2e-3 else rng.integers(1, 4)
    for _ in range(pieces):
        thread.run(seconds * (1 - share) / pieces, **{domain: layer["w"] + extra / (1 - share)}, **dram)
        if stall == "sleep":
            thread.wait(seconds * share / pieces)
        else:
            thread.run(seconds * share / pieces, **{domain: layer["w"] * 0.3})


def fork(main, helpers, rng, seconds, watts, domain, imbalance=0.08):
    """An OpenMP region: main and helpers compute, the early ones sleep till the last is there."""
    start, path = main.t, tuple(main.stack)
    for h in helpers:
        h.t, h.step = start + 8e-6, main.step
        h.run(seconds * rng.uniform(1 - imbalance, 1), where=path, **{domain: watts})
    main.run(seconds, **{domain: watts})


def spin(program, main, helper, blocktime, watts):
    """Helpers that spin after a region for up to `blocktime`, as OpenMP's do: energy of whatever the main thread has open."""
    work = sorted(helper.work)
    until = [b[0] for b in work[1:]] + [main.t]
    rests = [(a[1], min(a[1] + blocktime, u)) for a, u in zip(work, until) if u > a[1]]
    stack, step, at, edges, keys = [], None, 0.0, [], []
    for t, event, (kind, name, _), number, _ in main.events:
        edges.append((at, t))
        keys.append((tuple(stack), step))
        at = t
        if event == 0:
            stack.append((kind, name))
            step = (main.name, number) if kind == "step" else step
        else:
            stack.pop()
            step = None if kind == "step" else step
    edges.append((at, main.t))
    keys.append(((), None))
    starts = np.array([e[0] for e in edges])
    for a, b in rests:
        helper.work.append((a, b, 1, {"pkg0": watts}))
        i = max(int(np.searchsorted(starts, a, "right")) - 1, 0)
        while i < len(edges) and edges[i][0] < b:
            seconds = min(b, edges[i][1]) - max(a, edges[i][0])
            if seconds > 0:
                program.truth(keys[i][0], keys[i][1], {"pkg0": watts * seconds})
                program.cpu_s[keys[i][0]] = program.cpu_s.get(keys[i][0], 0) + seconds
            i += 1
    helper.work.sort(key=lambda w: w[0])


def layers(rng, o, begin, end):
    """Threads that do steps of layers; o: see scenarios.py."""
    program = Program(start=begin)
    n_threads = o.get("threads", 1)
    sets = layer_set(rng, o.get("n", int(rng.integers(8, 13))), o["low"], o["high"], o.get("power", "wide"), o.get("mean_w", 12.0))
    for layer in sets:
        layer["stall"] = rng.uniform(0.1, 0.8)
        if o.get("shape"):
            layer["pieces"] = pieces(rng, o["shape"])
        layer["dram_w"] = rng.uniform(0.2, 4.0)
        if o.get("call_j"):
            layer["call_j"] = layer["w"] * layer["s"] * rng.uniform(0, 2 * o["call_j"])
        if o.get("call_only"):
            layer["call_j"], layer["w"] = layer["w"] * layer["s"], 0.3
    for k in range(n_threads):
        thread = program.thread(cpu=k, name="thread-%d" % k, at=begin + 0.05 + 0.01 * k)
        domain = "pkg%d" % (k % o.get("packages", 1))
        thread.run(o.get("import_s", 0.3), **{domain: 9.0})
        number = 0
        mine = sets if not o.get("own_layers") else [dict(s, name=s["name"] + "_t%d" % k, w=s["w"] * rng.uniform(0.6, 1.5)) for s in sets]
        full = False
        while thread.t < end - 0.1 and not full:
            factor = rng.uniform(0.4, 1.9)
            if n_threads == 1 or o.get("thread_steps"):
                thread.begin("step", "step", number if n_threads == 1 else None)
            order = rng.permutation(len(mine)) if o.get("shuffle") else range(len(mine))
            for i in order:
                if full or (o.get("branch") and rng.random() < o["branch"]):
                    continue
                repeat = int(rng.integers(1, 4)) if o.get("repeat") else 1
                for _ in range(repeat):
                    layer = mine[i]
                    seconds = length(rng, layer["s"], o.get("vary", "little"), factor)
                    if thread.t + seconds > end - 0.06:
                        full = not o.get("empty_tail")  # else steps with nothing in them till the end
                        break
                    thread.begin(layer["kind"], layer["name"], None, layer["detail"])
                    call(thread, rng, layer, seconds, o, domain)
                    thread.end()
                    thread.run(o.get("gap", 8e-6), **{domain: 7.0})
            if thread.stack:
                thread.end()
            if o.get("rest"):
                thread.wait(rng.exponential(o["rest"]))
            else:
                thread.run(2e-5, **{domain: 7.0})
            number += 1
        thread.wait(0.02)
    return [program]


def transformer(rng, blocks, unit, spread=0.9):
    """Sub-modules of one block with relative seconds and watts per core."""
    parts = [("ln_1", "LayerNorm", 0.06, 0.8), ("attn.qkv", "Linear", 0.5, 1.25), ("attn.core", "Attention", 0.35, 1.0),
             ("attn.proj", "Linear", 0.2, 1.2), ("ln_2", "LayerNorm", 0.06, 0.8), ("mlp.fc1", "Linear", 0.6, 1.3),
             ("mlp.act", "GELU", 0.12, 0.9), ("mlp.fc2", "Linear", 0.6, 1.3)]
    return [(name, cls, s * unit * rng.uniform(0.8, 1.25), w * rng.uniform(spread, 2 - spread)) for name, cls, s, w in parts]


def torch_cpu(rng, o, begin, end):
    """PyTorch on processors: steps with a data wait, nested modules, backward, optimizer; OpenMP helpers."""
    program = Program(start=begin)
    main = program.thread(cpu=0, name="main", at=begin + 0.05)
    helpers = [program.helper(cpu=k + 1) for k in range(o.get("omp", 3))]
    blocks, unit, w0 = o.get("blocks", 4), o.get("unit", 3e-3), o.get("mean_w", 8.0)
    parts = transformer(rng, blocks, unit)
    main.run(o.get("import_s", 0.8), pkg0=9.0)
    number = 0

    def module(name, cls, seconds, watts, factor, kind="module"):
        main.begin(kind, name, None, cls)
        main.run(o.get("prelude", 1.5e-5), pkg0=7.0)
        fork(main, helpers, rng, length(rng, seconds, o.get("vary", "little"), factor), watts * w0, "pkg0", o.get("imbalance", 0.08))
        main.end()
        main.run(6e-6, pkg0=7.0)

    def forward(factor):
        main.begin("module", "model", None, "GPT")
        module("embed", "Embedding", unit * 0.15, 0.9, factor)
        for b in range(blocks):
            main.begin("module", "blocks.%d" % b, None, "Block")
            main.run(8e-6, pkg0=7.0)
            for name, cls, s, w in parts:
                module("blocks.%d.%s" % (b, name), cls, s, w, factor)
            main.end()
        module("head", "Linear", unit * 0.9, 1.35, factor)
        main.end()

    step_s = 2.0 * unit * blocks * 2.6 * 4
    while main.t < end - 0.15 - step_s:
        factor = rng.uniform(0.4, 1.9)
        main.begin("step", "step", number)
        if o.get("data_wait"):
            main.begin("phase", "data", None, "")
            main.run(3e-4, pkg0=7.0)
            main.wait(rng.exponential(o["data_wait"]))
            main.end()
        forward(factor)
        if o.get("train"):
            for b in reversed(range(blocks)):
                for name, cls, s, w in reversed(parts):
                    module("blocks.%d.%s" % (b, name), cls, s * 2, w * 1.05, factor, "backward")
            main.begin("phase", "optimizer", None, "")
            fork(main, helpers, rng, unit * blocks * 0.5, w0 * 0.9, "pkg0")
            main.end()
        main.end()
        if o.get("rest"):
            main.wait(rng.exponential(o["rest"]))
        number += 1
    main.wait(0.02)
    if o.get("blocktime"):
        for h in helpers:
            spin(program, main, h, o["blocktime"], o.get("spin_w", 4.0))
    programs = [program]
    for k in range(o.get("loaders", 0)):
        loader = Program(name="pt_data_worker", pid=4100 + k, start=begin + 0.4)
        helper = loader.helper(cpu=len(helpers) + 1 + k)
        helper.t = begin + 0.5
        while helper.t < end - 0.1:
            helper.run(rng.uniform(0.01, 0.05), where=(), pkg0=o.get("loader_w", 5.0))
            helper.wait(rng.exponential(0.08))
        programs.append(loader)
    return programs


def torch_gpu(rng, o, begin, end):
    """PyTorch on a GPU: kernels on a GPU's track, launched ahead by a thread that then spins or sleeps."""
    program = Program(start=begin)
    main = program.thread(cpu=0, name="main", at=begin + 0.05)
    gpu = program.thread(cpu=None, kind="gpu", domain="gpu-0", name="stream 7", at=begin)
    n = o.get("n", int(rng.integers(8, 13)))
    sets = layer_set(rng, n, o["low"], o["high"], o.get("power", "wide"), o.get("gpu_w", 120.0), "module")
    for layer in sets:
        layer["w"] += o.get("gpu_static", 0.0)
        layer["pieces"] = pieces(rng, o["shape"]) if o.get("shape") else [(1.0, 1.0)]
    main.run(o.get("import_s", 0.8), pkg0=9.0)
    number, launch = 0, o.get("launch", 1.5e-5)
    cpu_spans = o.get("cpu_spans", True)
    while main.t < end - 0.3:
        factor = rng.uniform(0.4, 1.9)
        main.step = None
        if cpu_spans:
            main.begin("step", "step", number)
        step_key = main.step
        if o.get("data_wait"):
            wait = rng.exponential(o["data_wait"])
            main.run(min(3e-4, wait), pkg0=7.0)
            main.wait(wait)
        gpu.t = max(gpu.t, main.t + 3e-5)
        if o.get("gpu_steps"):
            gpu.begin("step", "step", number)
            step_key = gpu.step
        gpu.step = step_key
        for layer in sets:
            if o.get("branch") and rng.random() < o["branch"]:
                continue
            if cpu_spans:
                main.begin("module", layer["name"], None, layer["detail"])
                main.run(launch, pkg0=8.0)
                path = tuple(main.stack)
                main.end()
            gpu.t = max(gpu.t + o.get("kernel_gap", 2e-6), main.t - 5e-6)
            kernel = ("kernel", layer["name"] + "_k") if cpu_spans else ("layer", layer["name"])
            seconds = length(rng, layer["s"], o.get("vary", "little"), factor)
            if cpu_spans:
                gpu.begin(kernel[0], kernel[1], None, "", parent=path)
                for part, relative in layer["pieces"]:
                    gpu.run(seconds * part, on_cpu=0, where=path + (kernel,), gpu0=layer["w"] * relative)
            else:
                gpu.begin(kernel[0], kernel[1], None, layer["detail"])
                for part, relative in layer["pieces"]:
                    gpu.run(seconds * part, on_cpu=0, gpu0=layer["w"] * relative)
            gpu.end()
        if o.get("gpu_steps"):
            gpu.end()
        if o.get("sync", "spin") == "spin":
            main.run(gpu.t - main.t, pkg0=6.0)
        else:
            main.run(2e-5, pkg0=6.0)
            main.wait(gpu.t - main.t)
        if cpu_spans:
            main.run(3e-5, pkg0=7.0)
            main.end()
        main.tick()
        number += 1
        if o.get("rest"):
            pause = rng.exponential(o["rest"])
            main.wait(pause)
    gpu.stack = []
    return [program]


def phases(rng, o, begin, end):
    """Long spans, one after the other, on one thread; classes come again now and then."""
    program = Program(start=begin)
    main = program.thread(cpu=0, name="main", at=begin + 0.05)
    sets = layer_set(rng, o.get("n", 8), o["low"], o["high"], o.get("power", "wide"), o.get("mean_w", 12.0), "phase")
    main.run(0.2, pkg0=9.0)
    while main.t < end - 0.3:
        layer = sets[rng.integers(len(sets))]
        seconds = min(rng.uniform(o["low"], o["high"]), end - 0.1 - main.t)
        main.begin(layer["kind"], layer["name"], None, "")
        if o.get("inner"):  # a loop inside: works and waits by turns
            stop = main.t + seconds
            while main.t < stop:
                main.run(min(rng.exponential(0.03), stop - main.t), pkg0=layer["w"])
                main.wait(min(rng.exponential(0.01), max(stop - main.t, 0)))
        else:
            main.run(seconds, pkg0=layer["w"])
        main.end()
        if o.get("rest"):
            main.wait(rng.exponential(o["rest"]))
    main.wait(0.02)
    return [program]


def pair(rng, o, begin, end):
    """Two processes, each with spans of its own, of different watts per CPU second."""
    out = []
    for k, watts in enumerate(o.get("watts", (20.0, 40.0))):
        program = Program(name="worker%d" % k, pid=4000 + 50 * k, start=begin)
        main = program.thread(cpu=k, name="main%d" % k, at=begin + 0.05 + 0.02 * k)
        sets = layer_set(rng, 5, o["low"], o["high"], o.get("power", "similar"), watts)
        main.run(0.2, pkg0=watts)
        while main.t < end - 0.3:
            for layer in sets:
                if not o.get("no_spans"):
                    main.begin("layer", "%s_p%d" % (layer["name"], k), None, layer["detail"])
                main.run(length(rng, layer["s"], o.get("vary", "little"), 1.0), pkg0=layer["w"])
                if not o.get("no_spans"):
                    main.end()
                main.run(1e-5, pkg0=watts)
            if o.get("rest"):
                main.wait(rng.exponential(o["rest"] * (1 + k)))
        main.wait(0.02)
        out.append(program)
    return out


def steady(rng, o, begin, end):
    """One CPU at a constant load, with steps."""
    program = Program(start=begin)
    main = program.thread(cpu=0, name="main", at=begin)
    number, watts = 0, o.get("mean_w", 12.0)
    while main.t < end - 0.3:
        main.begin("step", "step", number)
        main.begin("layer", "all", None, "")
        main.run(length(rng, 0.05, "little", 1), pkg0=watts)
        main.end()
        main.end()
        number += 1
    return [program]


def generate(rng, o, begin, end):
    """Text generation on processors: a prefill, then many tokens, each a step of the same modules."""
    program = Program(start=begin)
    main = program.thread(cpu=0, name="main", at=begin + 0.05)
    helpers = [program.helper(cpu=k + 1) for k in range(o.get("omp", 3))]
    blocks, unit = o.get("blocks", 4), o.get("unit", 1e-3)
    parts = transformer(rng, blocks, unit)
    main.run(0.8, pkg0=9.0)
    while main.t < end - 0.5 - 8 * unit * blocks:
        main.begin("phase", "generate", None, "")
        for token in range(int(rng.integers(20, 80))):
            if main.t > end - 0.3 - 8 * unit * blocks:
                break
            first = token == 0
            main.begin("phase", "prefill" if first else "decode", None, "")
            for b in range(blocks):
                main.begin("module", "blocks.%d" % b, None, "Block")
                for name, cls, s, w in parts:
                    grow = 1 + 0.01 * token if name == "attn.core" else 1.0
                    main.begin("module", "blocks.%d.%s" % (b, name), None, cls)
                    fork(main, helpers, rng, s * (6 if first else grow) * rng.lognormal(0, 0.03), (w if first else 0.75 * w) * 8.0, "pkg0", o.get("imbalance", 0.04))
                    main.end()
                    main.run(1e-5, pkg0=7.0)
                main.end()
            main.end()
            main.run(2e-4, pkg0=7.0)  # sampling
        main.end()
        main.wait(rng.exponential(o.get("rest", 0.1)))
    main.wait(0.02)
    if o.get("blocktime"):
        for h in helpers:
            spin(program, main, h, o["blocktime"], o.get("spin_w", 4.0))
    return [program]


KINDS = dict(generate=generate, layers=layers, torch_cpu=torch_cpu, torch_gpu=torch_gpu, phases=phases, pair=pair, steady=steady)
