"""A measured program that works against nrg: what it does to the memory, files and descriptors that it shares
with nrg must not hang nrg, end it, or lose its own exit code."""
import json
import stat
import unittest

from support import *

# Moves whoever sleeps on the shared futex to another word, again and again, from a process that outlives the command.
REQUEUE = r"""
import ctypes, mmap, os, platform, sys, time
fd = int(os.environ["NRG_SPANS"].split(",")[1])
size = os.fstat(fd).st_size
shared = mmap.mmap(fd, size)
at = ctypes.addressof(ctypes.c_char.from_buffer(shared))
call = {"x86_64": 202, "aarch64": 98}[platform.machine()]
FUTEX_REQUEUE = 3
moved = lambda word: ctypes.CDLL(None, use_errno=True).syscall(
    call, ctypes.c_void_p(at + word), FUTEX_REQUEUE, 0, ctypes.c_long(2**31 - 1), ctypes.c_void_p(at + 2048), 0)
n = 0
for _ in range(200):
    n += sum(max(moved(word), 0) for word in range(0, 1024, 4))
    time.sleep(0.001)
if os.fork() == 0:
    os.close(1), os.close(2)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        for word in range(0, 1024, 4): moved(word)
    os._exit(0)
print("moved" if n else "nobody slept", flush=True)
os._exit(19)
"""


class Shared(Case):
    def test_a_sleeper_that_was_moved_away_still_ends(self):
        if os.uname().machine not in ("x86_64", "aarch64"):
            self.skipTest("the number of futex(2) is not known here")
        done = self.nrg("run", "-q", "-o", self.path("f.nrg"), "--", PYTHON, "-c", REQUEUE)
        self.assertEqual((done.stdout, done.returncode), (b"moved\n", 19), done.stderr)


    def test_a_recording_that_is_cut_while_it_is_written(self):
        """The command may do what it likes to the files; nrg lives on, and its exit code is the command's."""
        for target in ("", "-wal", "-shm"):
            for how in (": >", "head -c 70000 /dev/urandom >"):
                path = self.path("cut.nrg")
                script = f"sleep 0.3; {how} {path}{target}; sleep 0.4; exit 21"
                done = self.nrg("run", "-q", "-f", "-o", path, "--rate", "100Hz", "--", "sh", "-c", script)
                self.assertEqual(done.returncode, 21, (target, how, done.stderr))
                self.assertIn(self.nrg("report", path).returncode, (0, 1))


class Inputs(Case):
    """FIFOs and devices where a file is expected: one line, and no waiting for a writer who never comes."""

    def setUp(self):
        super().setUp()
        self.fifo = self.path("fifo")
        os.mkfifo(self.fifo)
        self.model = self.write("model.txt", "graph(%x : Float(1, 4)):\n  %y : Float(1, 4) = aten::relu(%x)\n  return (%y)\n")

    def commands(self, path):
        m = self.model
        return (("graph", path), ("graph", m, "--params", path), ("report", path), ("attribute", path), ("export", path), ("import", path),
                ("dataset", path), ("train", path, "-o", self.path("p")), ("evaluate", path), ("profile", "show", path),
                ("predict", m, "--profile", path), ("predict", "--profile", path, "--against", path), ("attribute", "--layers", path, "--power-log", path),
                ("attribute", "--layers", path, "--power-log", path, "--idle-power", path),
                ("run", "-q", "--graph", path, "--", "true"), ("run", "-q", "--graph", m, "--graph-params", path, "--", "true"),
                ("run", "-q", "--sensor", f"simulate:{path}", "--", "true"), ("run", "-q", "--sensor", f"replay:{path}", "--", "true"),
                ("run", "-q", "--sensor-profile", path, "--", "true"), ("sensors", "--root", path), ("run", "-q", "-f", "-o", path, "--", "true"),
                ("compare", path, "--", path), ("report", path, "--html", self.path("p.html")), ("view", path),
                ("import", m, "--into", path), ("run", "-q", "--meter", f"mqtt://localhost/a?password-file={path}", "--", "true"))

    def refused(self, path, user=None):
        for command in self.commands(path):
            with self.subTest(command):
                done = self.nrg(*command, user=user)
                self.assertIn(done.returncode, (1, 2, 125), done.stderr)
                self.assertTrue(done.stderr.startswith(b"nrg"), done.stderr)
                self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)

    def test_a_fifo(self):
        self.refused(self.fifo)

    @needs_root
    def test_a_fifo_of_another_user(self):
        os.chmod(self.fifo, 0o644)  # who may not write must wait for a writer
        self.refused(self.fifo, user=NOBODY)

    def test_devices(self):
        for device in ("/dev/zero", "/dev/null", "/dev/tty"):
            if os.path.exists(device):
                self.refused(device)

    def test_pipes_that_are_open_still_work(self):
        for command in (f"{NRG} graph --json <(cat {self.model})", f"cat {self.model} | {NRG} graph --json /dev/stdin",
                        f"cat {self.model} | {NRG} graph --json -", f"{NRG} graph --json /dev/stdin < {self.model}"):
            done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env(), timeout=LIMIT_S)
            self.assertEqual((done.returncode, done.stderr), (0, b""), command)
            self.assertIn("schema", json.loads(done.stdout))

    def test_outputs(self):
        recording = self.path("a.nrg")
        done = self.nrg("run", "-q", f"--json={self.fifo}", "-o", recording, "--", "sh", "-c", "exit 8")
        self.assertEqual(done.returncode, 8)
        self.assertIn("FIFO that nobody reads", self.one_line(done.stderr))
        done = self.nrg("report", f"--json={self.fifo}", recording)
        self.assertEqual(done.returncode, 1)
        # One that is read is written as ever.
        reader = subprocess.Popen(["cat", self.fifo], stdout=subprocess.PIPE)
        self.started.append(reader)
        eventually(lambda: self.nrg("report", "-q", f"--json={self.fifo}", recording).returncode == 0, "a reader")
        self.assertIn("schema", json.loads(reader.communicate(timeout=LIMIT_S)[0]))

    def test_no_output_takes_the_place_of_a_recording(self):
        recording = self.path("a.nrg")
        machine = self.write("machine.txt", "domain package-0\n power 20\n")
        self.assertEqual(self.nrg("run", "-q", "-s", f"simulate:{machine}", "-o", recording, "--", "true").returncode, 0)
        with open(recording, "rb") as f:
            before = f.read()
        os.symlink(recording, self.path("link"))
        os.link(recording, self.path("name"))
        r = recording
        for to in (recording, self.path("link"), self.path("name")):
            for command in (("report", r, "--html", to), ("report", f"--json={to}", r), ("export", "-f", "-o", to, r), ("compare", f"--json={to}", r, "--", r),
                            ("compare", f"--markdown={to}", r, "--", r), ("graph", f"--csv={to}", self.model), ("graph", f"--dot={to}", self.model),
                            ("graph", f"--svg={to}", self.model), ("sensors", f"--json={to}"), ("run", "-q", f"--json={to}", "-o", self.path("b.nrg"), "--", "true")):
                with self.subTest(command):
                    done = self.nrg(*command)
                    self.assertIn(done.returncode, (1, 125), done.stderr)
                    self.assertIn("is a recording, which is not overwritten", done.stderr.decode())
                    with open(recording, "rb") as f:
                        self.assertEqual(f.read(), before)

    def test_a_page_that_cannot_be_made_leaves_what_was_there(self):
        recording, old = self.path("a.nrg"), self.write("old.html", "precious")
        self.assertEqual(self.nrg("run", "-q", "-o", recording, "--", "true").returncode, 0)
        for inputs in ((self.path("none.nrg"),), (recording, self.path("none.nrg")), (recording, self.model)):
            self.assertEqual(self.nrg("report", *inputs, "--html", old).returncode, 1)
            with open(old, encoding="utf-8") as f:
                self.assertEqual(f.read(), "precious")

    @needs_root
    def test_devices_stay(self):
        device = self.path("null")
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        recording = self.path("a.nrg")
        self.assertEqual(self.nrg("run", "-q", "-o", recording, "--", "true").returncode, 0)
        for inputs, code in (((self.path("none.nrg"),), 1), ((recording,), 0)):
            self.assertEqual(self.nrg("report", *inputs, "--html", device).returncode, code)
            self.assertTrue(stat.S_ISCHR(os.lstat(device).st_mode))

    def test_a_fifo_to_export_to(self):
        recording = self.path("a.nrg")
        self.assertEqual(self.nrg("run", "-q", "-o", recording, "--", "true").returncode, 0)
        for command in (("export", "-f", "-o", self.fifo, recording), ("report", recording, "--html", self.fifo),
                        ("compare", f"--markdown={self.fifo}", recording, "--", recording)):
            done = self.nrg(*command)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("FIFO that nobody reads", done.stderr.decode())

    def test_the_models_folder(self):
        if sanitizer_library():
            self.skipTest("what nrg injects is not sanitized")
        script = ("import os; d = os.environ['NRG_TORCH_MODELS']; os.mkfifo(d + '/0001-fifo.txt'); os.mkdir(d + '/0002-folder.txt');"
                  f"os.symlink({self.model!r}, d + '/0003-link.txt'); open(d + '/0004-file.txt', 'w').write(open({self.model!r}).read());"
                  "os._exit(21)")
        done = self.nrg("run", "-q", "--torch", "-o", self.path("m.nrg"), "--", PYTHON, "-c", script)
        self.assertEqual(done.returncode, 21, done.stderr)
        for name in (b"fifo", b"folder", b"link"):
            self.assertNotIn(name, done.stderr)
        self.assertEqual(query(self.path("m.nrg"), "SELECT name FROM graph"), [("file",)])

    def test_a_file_that_is_cut_while_it_is_read(self):
        # Preloaded, mmap(2) itself cuts the file down to its first page right after.
        big = self.write("big.txt", "graph(%x : Float(1, 4)):\n" + "".join(
            f"  %y{i} : Float(1, 4) = aten::relu(%{'x' if not i else 'y%d' % (i - 1)})\n" for i in range(2000)) + "  return (%y1999)\n")
        self.assertEqual(self.nrg("graph", "--json", big).returncode, 0)
        env = self.env(LD_PRELOAD=preload(os.path.join(TOOLS, "libcut-mapped.so")), CUT_MAPPED=big)
        done = self.nrg("graph", "--json", big, env=env)
        self.assertEqual((done.returncode, done.stdout), (1, b""), done.stderr)
        self.assertIn("big.txt: was cut while it was read", self.one_line(done.stderr))
        self.assertEqual(os.path.getsize(big), 4096)


if __name__ == "__main__":
    unittest.main()
