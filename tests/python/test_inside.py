"""The recorder inside a program that closes descriptors which are not its own, as daemons do: the program's next
files have the same numbers, and get nothing but what the program writes."""
import os
import sqlite3
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from support import *

BUILD = os.path.abspath(os.environ.get("NRG_BUILD", os.path.join(TOP, "build")))
PACKAGE = os.path.join(BUILD, "python")

PROGRAM = r"""
import os, sys, time, resource
import nrg
def work(n=40):
    for i in range(n):
        with nrg.span("work %d" % i):
            time.sleep(0.005)
run = nrg.record("in.nrg").start()
work()
{close}
own = [os.open("own-%d.txt" % i, os.O_RDWR | os.O_CREAT) for i in range(40)]
for fd in own:
    os.write(fd, b"mine\n")
work(400)
before = [os.fstat(fd).st_ino for fd in own]
run.stop()
for fd, inode in zip(own, before):
    assert os.fstat(fd).st_ino == inode, "closed by somebody else"
    os.write(fd, b"still mine\n")
print("end", flush=True)
"""
WAYS = {"closerange": "os.closerange(3, 1024)",
        "all that are possible": "os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])",
        "those that are listed": "[os.close(int(f)) for f in os.listdir('/proc/self/fd') if int(f) > 2 and os.path.exists('/proc/self/fd/' + f)]"}


@unittest.skipUnless(os.path.exists(os.path.join(PACKAGE, "nrg", "_nrg.abi3.so")), "the extension is not built")
class Inside(Case):
    def run_program(self, text, **kw):
        script = self.write("program.py", text)
        return subprocess.run([PYTHON, script], cwd=self.dir, env=self.env(PYTHONPATH=PACKAGE), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=LIMIT_S, **kw)

    def check_recording(self, spans):
        db = sqlite3.connect(self.path("in.nrg"))
        self.assertEqual(db.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
        self.assertEqual(db.execute("SELECT value FROM meta WHERE key='spans'").fetchall(), [(spans,)])
        db.close()

    def test_a_program_that_closes_all_descriptors(self):
        for name, close in WAYS.items():
            with self.subTest(name):
                for old in os.listdir(self.dir):
                    if old != "config":
                        os.unlink(self.path(old))
                done = self.run_program(PROGRAM.replace("{close}", close))
                self.assertEqual((done.returncode, done.stdout), (0, b"end\n"), done.stderr)
                for i in range(40):
                    with open(self.path(f"own-{i}.txt"), "rb") as f:
                        self.assertEqual(f.read(), b"mine\nstill mine\n")
                self.check_recording(440)

    def test_descriptors_of_the_program_are_not_held(self):
        # Whoever reads a pipe of the program's sees its end when the program closes it.
        done = self.run_program("""
import os, nrg
r, w = os.pipe()
run = nrg.record("in.nrg").start()
os.close(w)
assert os.read(r, 1) == b""
run.stop()
print("end")
""")
        self.assertEqual((done.returncode, done.stdout), (0, b"end\n"), done.stderr)

    def test_a_child_and_a_second_recorder(self):
        done = self.run_program("""
import os, nrg
with nrg.record("in.nrg"):
    with nrg.span("x"): pass
    if os.fork() == 0:
        os._exit(0)
    os.wait()
if os.fork() == 0:
    with nrg.record("child.nrg"):
        with nrg.span("y"): pass
    os._exit(0)
assert os.wait()[1] == 0
with nrg.record("second.nrg"):
    with nrg.span("z"): pass
print("end")
""")
        self.assertEqual((done.returncode, done.stdout), (0, b"end\n"), done.stderr)
        for name in ("in", "child", "second"):
            self.assertEqual(query(self.path(name + ".nrg"), "SELECT value FROM meta WHERE key='spans'"), [(1,)])
            self.assertFalse(os.path.exists(self.path(name + ".nrg-wal")))

    def test_a_limit_on_files_does_not_end_the_program(self):
        done = self.run_program("""
import os, resource, signal, nrg, time
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (60000, -1))
run = nrg.record("in.nrg").start()
for i in range(3000):
    with nrg.span("some long name of a span %d " % i * 4): pass
time.sleep(0.3)
try:
    run.stop()
except nrg.Error as error:
    print(error)
print("end")
""")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.endswith(b"end\n"))

    def test_nor_when_not_even_the_beginning_fits(self):
        done = self.run_program("""
import resource, signal, nrg
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, (512, -1))
try:
    nrg.record("in.nrg").start()
except nrg.Error as error:
    print(error)
""")
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertIn(b"File too large", done.stdout)


if __name__ == "__main__":
    unittest.main()
