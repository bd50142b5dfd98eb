#!/usr/bin/env python3
"""Lets the nth allocation, open, read, write, sync and mmap of nrg fail, and judges the answer.

faults.py [--commands TEXT] [--kinds m,o,...] [--all] [--sample N] [--keep-going]

A command is run once without a fault, which gives the right answer and a list of its calls with their places
(libfail-nth.so, see fail_nth.c), and then once per call that is to fail. Right is: the same answer with exit code 0, or
another exit code with a line that says why. Never right: another answer with exit code 0, a signal, a hang, silence.
By default each place in the program fails once (its first call, and for memory also with everything after it); --all lets
every single call fail. `make faults` is that. For nrg run see tests/cli/test_fail_nth.py: its answer is a measurement.
"""
import argparse
import contextlib
import errno
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(TOP, "tests", "cli"))
CORPUS = os.path.join(TOP, "tests", "fuzz", "corpus")
DATA = os.path.join(TOP, "tests", "data", "graph")
HANG_S = 60
# What each letter of fail_nth.c fails with. Memory has its own error.
KINDS = {"m": [errno.ENOMEM], "o": [errno.EMFILE, errno.EIO], "r": [errno.EIO, errno.EINTR],
         "w": [errno.ENOSPC, errno.EINTR], "s": [errno.EIO], "p": [errno.ENOMEM], "c": [errno.EIO],
         "t": [errno.EAGAIN]}

SCRIPT = """graph(%self : __torch__.Net,
      %x : Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu)):
  %w : Float(16, 8, strides=[8, 1], requires_grad=1, device=cpu) = prim::GetAttr[name="weight"](%self), scope: __module.fc1
  %b : Float(16, strides=[1], requires_grad=1, device=cpu) = prim::GetAttr[name="bias"](%self), scope: __module.fc1
  %y : Float(4, 16, strides=[16, 1], requires_grad=1, device=cpu) = aten::linear(%x, %w, %b), scope: __module.fc1
  %z : Float(4, 16, strides=[16, 1], requires_grad=1, device=cpu) = aten::relu(%y), scope: __module.act
  return (%z)
"""


class Program:
    """An nrg and the library that makes its calls fail."""

    def __init__(self, build, folder):
        self.nrg = os.path.join(build, "nrg")
        self.library = os.path.join(build, "tests", "libfail-nth.so")
        self.folder = folder

    def env(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("NRG_")}
        env.update(XDG_CONFIG_HOME=os.path.join(self.folder, "config"), NO_COLOR="1", LC_ALL="C.UTF-8",
                   TZ="UTC", TMPDIR=self.folder)
        # Faults come before the sanitizer; a leak is an exit code of its own.
        env["ASAN_OPTIONS"] = "verify_asan_link_order=0:detect_leaks=1:abort_on_error=0:exitcode=99:allocator_may_return_null=1"
        return env

    def run(self, args, **fault):
        """(exit code, stdout, stderr) with NRG_FAULT_* from `fault`; code None: it hung."""
        env = self.env()
        if fault:
            env["LD_PRELOAD"] = self.library
            env.update({"NRG_FAULT_" + key.upper(): str(value) for key, value in fault.items() if value is not None})
        with subprocess.Popen([self.nrg, *args], env=env, cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                out, err = process.communicate(timeout=HANG_S)
            except subprocess.TimeoutExpired:
                process.kill()
                return None, *process.communicate()
        return process.returncode, out, err

    def calls(self, args, kinds):
        """The calls of a run without a fault: a list of (number, place)."""
        path = os.path.join(self.folder, "sites")
        self.run(args, kinds=kinds, n=0, sites=path)
        with open(path, encoding="ascii") as f:
            return [(int(line.split()[0]), line.split()[2]) for line in f]


class Command:
    """One command line. `outputs` are files that it writes, `makes` removes them before; `told` allows an answer
    that says in words what it lacks."""

    def __init__(self, name, *args, outputs=(), told=False):
        self.name, self.args, self.outputs, self.told = name, args, outputs, told

    def answer(self, program, **fault):
        for path in self.outputs:
            for suffix in ("", "-wal", "-shm", "-journal"):
                if os.path.exists(os.path.join(program.folder, path + suffix)):
                    os.unlink(os.path.join(program.folder, path + suffix))
        code, out, err = program.run(self.args, **fault)
        written = []
        for path in self.outputs:
            whole = os.path.join(program.folder, path)
            written.append(read_output(program, whole) if code == 0 and os.path.exists(whole) else None)
        return code, (out, *written), err


def read_output(program, path):
    """What a file says: of a recording the export, because its bytes hold times of its making."""
    if path.endswith(".nrg"):
        return program.run(["report", "--json", path])[1] + program.run(["export", "--format", "json", path])[1]
    with open(path, "rb") as f:
        return f.read()


def judge(command, right, got, what):
    """None, or what is wrong with an answer."""
    code, answer, err = got
    text = err.decode(errors="replace")
    if code is None:
        return f"{what}: hangs"
    if code < 0 or code == 99 or "Sanitizer" in text or "runtime error" in text:
        return f"{what}: code {code}\n{text[:3000]}"
    if code == 0 and answer == right[1]:
        return None
    if code == 0:
        words = text + answer[0].decode(errors="replace")
        if "is damaged" in text:  # which is what SQLite makes of a disk that can't be read
            return None
        if command.told and re.search("memory|rror|many open|space|No such|not ", words):
            return None
        return f"{what}: another answer with exit code 0; stderr: {text[:300]!r}"
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        return f"{what}: exit code {code} without a word"
    if len(lines) > 3 or "Success" in text:
        return f"{what}: unclear: {text[:600]!r}"
    return None


def place_of(program, command, fault):
    """Functions on the way to the call that failed, with files and lines."""
    err = program.run(command.args, show=1, **fault)[2].decode(errors="replace")
    addresses = re.findall(r"nrg\(\+(0x[0-9a-f]+)\)", err)
    lines = subprocess.run(["addr2line", "-s", "-f", "-e", program.nrg, *addresses], capture_output=True,
                           text=True).stdout.splitlines()
    return " < ".join(f"{name} {line}" for name, line in list(zip(lines[::2], lines[1::2]))[:6])


def chosen(calls, every, sample, rng):
    """Numbers of calls that are to fail: all, or the first of each place, or some of these."""
    if every:
        numbers = [n for n, _ in calls]
    else:
        first = {}
        for n, place in calls:
            first.setdefault(place, n)
        numbers = sorted(first.values())
    return sorted(rng.sample(numbers, sample)) if sample and sample < len(numbers) else numbers


def findings(program, command, kinds, every=False, sample=0, rng=None):
    """Runs a command with its faults; yields what is wrong. Returns how many runs there were."""
    rng = rng or random.Random(13)
    right = command.answer(program)
    if right[0] != 0:
        yield f"{command.name}: fails without a fault: {right[2].decode(errors='replace')}"
        return 0
    runs = 0
    for kind in kinds:
        numbers = chosen(program.calls(command.args, kind), every, sample, rng)
        for n in numbers:
            variants = [dict(error=error, all=every_later) for error in KINDS[kind]
                        for every_later in ((None, 1) if kind in "mw" and error != errno.EINTR else (None,))]
            for variant in variants if not sample else [rng.choice(variants)]:
                runs += 1
                fault = dict(kinds=kind, n=n, errno=variant["error"], all=variant["all"])
                what = f"{command.name}: {' '.join(command.args)}: " + " ".join(
                    f"{key}={value}" for key, value in fault.items() if value is not None)
                bad = judge(command, right, command.answer(program, **fault), what)
                if bad:
                    yield f"{bad}\n    {place_of(program, command, fault)}"
    for size in (1, 7):  # parts of what was asked for are no errors
        runs += 1
        got = command.answer(program, kinds="rw", short=size, n=1, all=1)
        if got[0] != 0 or got[1] != right[1]:
            yield f"{command.name}: parts of {size} bytes: code {got[0]}: {got[2].decode(errors='replace')[:300]}"
    return runs


def write(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)
    return path


def dataset_rows():
    """Measurements of three models of one device, for training."""
    rows = ["id,device,model,node,kind,level,parts,batch,macs,read_bytes,written_bytes,rest_bytes,time_s,energy_mj,"
            "multiplicity,counts,provenance"]
    for m, model in enumerate(("small", "middle", "large"), 1):
        for k in range(1, 9):
            size, number = m * k * 1000, len(rows)
            kind = ("Linear", "ReLU")[k % 2]
            macs = size * 40 if kind == "Linear" else 0
            rows.append(f"{number},d,{model},n{number},{kind},operator,,8,{macs},{size * 4},{size},,{size * 1e-7},"
                        f"{1 + size * 3e-4 + macs * 1e-6},1,nrg,measured")
    return "\n".join(rows) + "\n"


def prepare(program):
    """Makes the files that commands() reads."""
    from spans_file import Spans, power_log
    folder = program.folder
    write(folder, "net.txt", SCRIPT)
    write(folder, "data.csv", dataset_rows())
    log = write(folder, "power.log", power_log([10] * 100 + [20] * 101))

    def must(*args):
        code, _, err = program.run(args)
        if code:
            raise SystemExit(f"nrg {' '.join(args)}: {code}: {err.decode()}")
    must("import", "-q", "-f", "-o", "power.nrg", log)
    must("import", "-q", "-f", "-o", "spans.nrg", log)
    spans = Spans()
    for i in range(4):
        at = 0.1 + 0.4 * i
        spans.span(at, at + 0.35, "step", "step", number=i, counts=[("tokens", 128)], inside=[
            dict(begin_s=at + 0.01, end_s=at + 0.3, text="Net", kind="module", detail="Net", inside=[
                dict(begin_s=at + 0.02, end_s=at + 0.1, text="fc1", kind="module", detail="Linear",
                     inside=[(at + 0.03, at + 0.09, "aten::addmm", "operator")]),
                dict(begin_s=at + 0.12, end_s=at + 0.28, text="fc2", kind="module", detail="Linear")])])
    spans.write(os.path.join(folder, "spans.nrg"))
    write(folder, "machine.txt", "domain package-0\n  power 50\ndomain dram-0\n  power 5\n")
    maker = os.path.join(os.path.dirname(program.library), "span-maker")
    write(folder, "layers.json", '{"traceEvents": [{"name": "a", "ph": "X", "ts": 1, "dur": 5, "pid": 1, "tid": 1}]}')
    for name in ("run", "other"):
        must("run", "-q", "--sensor", "simulate:machine.txt", "--graph", "net.txt", "--rate", "100Hz", "--note", f"side={name}",
             "-f", "-o", name + ".nrg", "--", maker, "threads", "2", "20")
    shutil.copy(os.path.join(folder, "spans.nrg"), os.path.join(folder, "modules.nrg"))
    with contextlib.closing(sqlite3.connect(os.path.join(folder, "modules.nrg"))) as db:
        db.execute("ATTACH ? AS run", (os.path.join(folder, "run.nrg"),))
        db.execute("INSERT INTO graph SELECT * FROM run.graph")
        db.commit()
    must("train", "-q", "data.csv", "-o", "profile.json")
    tree = "root/sys/class/powercap/intel-rapl:0/"
    for name, content in (("name", "package-0\n"), ("energy_uj", "1000000\n"), ("max_energy_range_uj", "262143328850\n")):
        write(folder, tree + name, content)
    write(folder, "root/proc/stat", "cpu 1 2 3 4\n")


def commands():
    """The main commands on small inputs; all of them give the same answer each time."""
    corpus = lambda *names: os.path.join(CORPUS, *names)
    data = lambda name: os.path.join(DATA, name)
    return [
        Command("report", "report", "run.nrg"),
        Command("report json", "report", "--json", "run.nrg"),
        Command("report print", "report", "--print", "energy", "run.nrg"),
        Command("report file", "report", "--json=out.json", "run.nrg", outputs=["out.json"]),
        Command("report page", "report", "-q", "run.nrg", "spans.nrg", "--html", "out.html", outputs=["out.html"]),
        Command("compare", "compare", "--force", "run.nrg", "other.nrg", "--", "run.nrg", "other.nrg"),
        Command("compare json", "compare", "--json", "--force", "spans.nrg", "run.nrg", "--", "run.nrg", "spans.nrg"),
        Command("compare markdown", "compare", "--markdown", "--by", "side", "run.nrg", "other.nrg"),
        Command("attribute range", "attribute", "--from", "0.3", "--to", "1.2", "--json", "spans.nrg"),
        Command("attribute", "attribute", "spans.nrg"),
        Command("attribute run", "attribute", "run.nrg"),
        Command("attribute module", "attribute", "--by", "module", "--json", "spans.nrg"),
        Command("attribute csv", "attribute", "--csv", "spans.nrg"),
        Command("attribute folded", "attribute", "--folded", "spans.nrg"),
        Command("attribute trace", "attribute", "--trace", "spans.nrg"),
        Command("export csv", "export", "run.nrg"),
        Command("export wide", "export", "--wide", "100ms", "run.nrg"),
        Command("export firefox", "export", "--format", "firefox", "spans.nrg"),
        Command("export speedscope", "export", "--format", "speedscope", "spans.nrg"),
        Command("compare page", "compare", "-q", "--html=out.html", "run.nrg", "--", "other.nrg", outputs=["out.html"]),
        Command("export json", "export", "--format", "json", "spans.nrg"),
        Command("import", "import", "-q", "-f", "-o", "made.nrg", "power.log", outputs=["made.nrg"]),
        Command("import into", "import", "-q", "-f", "-o", "made.nrg", "layers.json", "--into", "power.nrg", "--offset", "0",
                outputs=["made.nrg"]),
        Command("import layers", "import", "-q", "-f", "-o", "made.nrg", corpus("import_ort", os.listdir(corpus("import_ort"))[0]), outputs=["made.nrg"]),
        Command("graph", "graph", "net.txt"),
        Command("graph json", "graph", "--json", "net.txt"),
        Command("graph csv", "graph", "--ops", "--csv", "net.txt"),
        Command("graph reduced", "graph", "--reduced", "net.txt"),
        Command("graph onnx", "graph", "--json", corpus("graph_onnx", "conv")),
        Command("graph pt", "graph", "--json", data("module.pt")),
        Command("graph pt2", "graph", "--json", data("net.pt2")),
        Command("graph safetensors", "graph", "--json", corpus("graph_safetensors", "small")),
        Command("dataset", "dataset", "data.csv"),
        Command("dataset recording", "dataset", "modules.nrg"),
        Command("dataset json", "dataset", "data.csv", "-o", "out.json", outputs=["out.json"]),
        Command("train", "train", "-q", "data.csv", "-o", "out.json", outputs=["out.json"]),
        Command("evaluate", "evaluate", "data.csv"),
        Command("evaluate json", "evaluate", "--json", "data.csv"),
        Command("predict", "predict", "net.txt", "--profile", "profile.json"),
        Command("predict json", "predict", "--json", "net.txt", "--profile", "profile.json"),
        Command("predict against", "predict", "net.txt", "--profile", "profile.json", "--against", "spans.nrg"),
        Command("profile", "profile", "show", "profile.json"),
        Command("sensors", "sensors", "--root", "root", told=True),
        Command("sensors json", "sensors", "--json", "--root", "root", told=True),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", default=os.environ.get("NRG_BUILD", os.path.join(TOP, "build")))
    parser.add_argument("--commands", default="", help="only those whose name has this text")
    parser.add_argument("--kinds", default="morwspct", help="letters of fail_nth.c")
    parser.add_argument("--all", action="store_true", help="every single call, not one of each place")
    parser.add_argument("--sample", type=int, default=0, help="at most so many of each kind")
    parser.add_argument("--seed", type=int, default=13)
    o = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory(prefix="nrg-faults-") as folder:
        program = Program(os.path.abspath(o.build), folder)
        prepare(program)
        for command in commands():
            if o.commands not in command.name:
                continue
            run, runs = findings(program, command, o.kinds, o.all, o.sample, random.Random(o.seed)), 0
            here = 0
            while True:
                try:
                    print(next(run), flush=True)
                    here += 1
                except StopIteration as end:
                    runs = end.value
                    break
            bad += here
            print(f"{command.name}: {runs} faults, {here} findings", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
