"""What the tests of the command line share: running nrg, the emulator, and reading results.

Paths come from the environment: NRG_BIN (default build/nrg) and NRG_TOOLS (the folder of
rapl-emulator, libnvidia-ml-fake.so and libclock-step.so, default build/tests). Nothing here
asserts how long anything takes; waits are for events, with a limit that only ends a hang.
"""
import atexit
import ctypes.util
import functools
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NRG = os.path.abspath(os.environ.get("NRG_BIN", os.path.join(TOP, "build", "nrg")))
TOOLS = os.path.abspath(os.environ.get("NRG_TOOLS", os.path.join(TOP, "build", "tests")))
EMULATOR = os.path.join(TOOLS, "rapl-emulator")
FAKE_NVML = os.path.join(TOOLS, "libnvidia-ml-fake.so")
CLOCK_STEP = os.path.join(TOOLS, "libclock-step.so")
FAKE_BMC = os.path.join(TOOLS, "libfake-bmc.so")
SLOW_READS = os.path.join(TOOLS, "libslow-reads.so")
BAD_DISK = os.path.join(TOOLS, "libbad-disk.so")
DISK_LOG = os.path.join(TOOLS, "libdisk-log.so")
PYTHON = sys.executable
LIMIT_S = 120  # ends a hang; never a measure of speed
NOBODY = 65534

# The workload's own leaks are not ours: a sanitized nrg must not make its children sanitized.
os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0")
os.environ.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")

os.umask(0o022)  # what a test makes for another user is for everybody

# A shell that runs the tests in its background has SIGINT ignored, and nrg would leave it so.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)


def is_root():
    return os.geteuid() == 0


needs_root = unittest.skipUnless(is_root(), "needs root")


def can_unshare(*flags):
    """True when a namespace of that kind can be made here."""
    try:
        return subprocess.run(["unshare", *flags, "true"], capture_output=True).returncode == 0
    except OSError:
        return False


def sanitizer_library():
    """The ASan library that the binary is linked with, '' for a plain build."""
    lines = subprocess.run(["ldd", NRG], capture_output=True, text=True).stdout.splitlines()
    found = [line.split("=>")[1].split()[0] for line in lines if "libasan" in line and "=>" in line]
    return found[0] if found else ""


def preload(library):
    """LD_PRELOAD with a sanitizer's library first, where there is one."""
    return ":".join(part for part in (sanitizer_library(), library) if part)


@functools.lru_cache(maxsize=None)
def nrg_of_everybody():
    """
    A copy of the program, with what it loads from its build, where every user may go: the folder
    that the project lies in may be closed to others.
    """
    build = os.path.dirname(NRG)
    place = tempfile.mkdtemp(prefix="nrg-program-")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    os.chmod(place, 0o755)
    loaded = subprocess.run(["ldd", NRG], capture_output=True, text=True).stdout
    for path in [NRG] + re.findall(rf"=> ({re.escape(build)}/\S+)", loaded):
        copy = os.path.join(place, os.path.relpath(path, build))
        os.makedirs(os.path.dirname(copy), exist_ok=True)
        shutil.copy(path, copy)
    return os.path.join(place, os.path.basename(NRG))


def as_user(uid, before=None):
    """For preexec_fn: becomes an ordinary user, after `before`."""
    def become():
        if before:
            before()
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
    return become


def before_others():
    """For preexec_fn: what stands for hardware does not wait for the machine's load, where it may."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
    except OSError:
        pass


def eventually(check, what, limit_s=LIMIT_S):
    """Waits until check() is true and returns what it gave."""
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        result = check()
        if result:
            return result
        time.sleep(0.01)
    raise AssertionError(f"never happened: {what}")


def resident_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read())[1])


def query(path, sql):
    """Rows of a recording, opened as anybody would."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def begun(path):
    """True when a recording that is being made holds the beginning of its run."""
    try:
        return query(path, "SELECT count(*) FROM run")[0][0] > 0
    except sqlite3.OperationalError:  # not even made yet
        return False


def run_edges(path, kind="run"):
    """(begin_ns, end_ns) of the first run in a recording."""
    return query(path, f"SELECT begin_ns, end_ns FROM run WHERE kind='{kind}' ORDER BY id")[0]


class Case(unittest.TestCase):
    """A test with a folder of its own that anybody may enter and write."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="nrg-cli-")
        os.chmod(self.dir, 0o777)
        self.started = []

    def tearDown(self):
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream:
                    stream.close()
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def write(self, name, content, mode=0o644):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())
        os.chmod(path, mode)
        return path

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("NRG_")}
        env["XDG_CONFIG_HOME"] = self.path("config")  # not the meters of who runs the tests
        env.update(more)
        return env

    def nrg(self, *args, user=None, **kw):
        """Runs nrg to its end, as another user where one is given (a number); stdout and stderr as bytes."""
        program = NRG
        if user is not None:
            program, kw["preexec_fn"] = nrg_of_everybody(), as_user(user, kw.get("preexec_fn"))
        kw.setdefault("env", self.env())
        kw.setdefault("cwd", self.dir)
        kw.setdefault("stdin", subprocess.DEVNULL)
        done = subprocess.run([program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=LIMIT_S, **kw)
        self.assert_sane(done.stderr)
        return done

    def start(self, *args, **kw):
        """Starts nrg and leaves it running."""
        kw.setdefault("env", self.env())
        kw.setdefault("cwd", self.dir)
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([NRG, *args], **kw)
        self.started.append(process)
        return process

    def finish(self, process):
        out, err = process.communicate(timeout=LIMIT_S)
        self.assert_sane(err)
        return out, err

    def assert_sane(self, err):
        for word in (b"AddressSanitizer", b"runtime error:", b"LeakSanitizer"):
            self.assertNotIn(word, err, err.decode(errors="replace"))

    def run_json(self, *args, code=0, **kw):
        """nrg run with results as JSON; checks the exit code. Returns (results, done)."""
        result = self.path(f"result-{time.monotonic_ns()}.json")
        done = self.nrg("run", "--quiet", f"--json={result}", *args, **kw)
        self.assertEqual(done.returncode, code, done.stderr.decode(errors="replace"))
        with open(result, encoding="utf-8") as f:
            return json.load(f), done

    def scenario(self, text, name="scenario.txt"):
        return self.write(name, text)

    def emulate(self, scenario, root, *options):
        """Starts the emulator on a scenario file; returns its zero_ns when the tree is there."""
        self.started.append(subprocess.Popen([EMULATOR, *options, scenario, root],
                                             stdout=subprocess.DEVNULL, preexec_fn=before_others))
        truth = os.path.join(root, "truth.json")
        eventually(lambda: os.path.exists(truth), "the emulator's tree")
        with open(truth) as f:
            return json.load(f)["zero_ns"]

    def truth(self, scenario, zero_ns, edges):
        """True joules per domain between two monotonic times."""
        out = subprocess.run([EMULATOR, "--truth", scenario, "--zero", str(zero_ns), "--from",
                              str(edges[0]), "--to", str(edges[1])], check=True,
                             stdout=subprocess.PIPE).stdout
        return {d["name"]: d["energy_j"] for d in json.loads(out)["domains"]}

    def missing(self, results, what):
        """All reasons given for a thing that was not (wholly) measured."""
        return " | ".join(m["why"] for m in results["missing"] if what in m["what"])

    def one_line(self, err):
        """Asserts that stderr is exactly one line and returns it."""
        lines = err.decode(errors="replace").strip("\n").split("\n")
        self.assertEqual(len(lines), 1, lines)
        self.assertTrue(lines[0])
        return lines[0]


def domains(results):
    return {d["name"]: d for d in results["domains"]}


def children_of(pid):
    """Pids whose parent is pid, from /proc."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as f:
                    if int(f.read().rsplit(b")", 1)[1].split()[1]) == pid:
                        found.append(int(name))
            except (OSError, IndexError):
                pass
    return found


def name_of(pid):
    """What a process is called now, '' when it is gone."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


def cpu_s(pid):
    """CPU time of a process so far, in the kernel's ticks."""
    with open(f"/proc/{pid}/stat", "rb") as f:
        fields = f.read().rsplit(b")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            return f.read().rsplit(b")", 1)[1].split()[0] != b"Z"
    except OSError:
        return False


__all__ = [name for name in dir() if not name.startswith("_")]
