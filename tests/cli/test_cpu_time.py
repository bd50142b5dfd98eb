"""CPU time is conserved: what all rows of processes show is what the kernel's wait reports of the
tree, whoever waited for whom, and whether processes are found by events or by polling."""
import json
import resource
import unittest

from retries import steadily
from support import *

# Before each shape. What is printed adds up to the truth: wait(2)'s report of this process and of all
# that it waited for, and the own CPU time of those that it can't wait for.
BEGIN = """
import os, resource, signal, subprocess, sys, time, ctypes
def burn(s):
    end = time.process_time() + s
    while time.process_time() < end: pass
def child(do, *args):
    pid = os.fork()
    if pid: return pid
    do(*args)
    os._exit(0)
def alone(s):  # says itself what it used
    burn(s)
    os.write(out, b'%.6f\\n' % time.process_time())
def tell():
    os.write(1, b'%.6f\\n' % sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage,
             (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))))
    os._exit(0)
out, WAITED = 1, 0
BURN = [sys.executable, '-c', 'import time\\nwhile time.process_time() < %s: pass']
def python(s): return "%s -c '%s'" % (BURN[0], BURN[2] % s)
"""
SHAPES = {
    "nested shells": "subprocess.call(['sh', '-c', 'sh -c \"$1; true\"; true', 'sh', python(.5)])\n"
                     "subprocess.call(['sh', '-c', 'sh -c \"sh -c \\\\\"$0; true\\\\\"; true\"; true',"
                     " python(.3)])\n",
    "a chain that ends at once": """
def chain(depth):
    if depth: os.waitpid(child(chain, depth - 1), 0)
    else: burn(.4)
for i in range(2): os.waitpid(child(chain, 6), 0)
""",
    "make": """
open(sys.argv[1], 'w').write(
    'all: a b c d\\na b c:\\n\\t@sh -c "$(BURN); true"; true\\nd:\\n\\t@$(MAKE) -f $(firstword '
    '$(MAKEFILE_LIST)) -s a b\\n')
subprocess.call(['make', '-s', '-j', '3', '-f', sys.argv[1], 'BURN=' + python(.15)])
""",
    "many short ones": """
for i in range(400): os.waitpid(child(burn, .001), 0)
""",
    "short ones of short ones": """
def pair(s):
    os.waitpid(child(burn, s), 0)
    burn(s)
for i in range(60): os.waitpid(child(pair, .004), 0)
""",
    "double forks": """
read, out = os.pipe()
for i in range(4): os.waitpid(child(child, alone, .12), 0)
told = [float(os.read(read, 9).split()[0]) for i in range(4)]
os.write(1, b'%.6f\\n' % sum(told))
""",
    "a subreaper": """
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
def parent(s):  # dies before its child, which is handed to the subreaper
    child(burn, s)
    burn(.05)
for i in range(3): child(parent, .15)
for i in range(6): os.wait()
""",
    "a group that is killed": """
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
def family():
    os.setpgid(0, 0)
    child(burn, 60)
    burn(60)
pid = child(family)
time.sleep(1)
os.killpg(pid, signal.SIGKILL)
for i in range(2): os.wait()
""",
    "orphans that outlive it": """
read, out = os.pipe()
def stay():  # also when nrg has ended, so without its pipes
    os.close(1); os.close(2)
    for i in range(WAITED): os.waitpid(child(burn, .01), 0)
    burn(.3)
    os.write(out, b'%.6f\\n' % sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage,
             (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))))
    time.sleep(4)
child(stay)
os.waitpid(child(child, stay), 0)
told = [float(os.read(read, 9).split()[0]) for i in range(2)]
os.write(1, b'%.6f\\n' % sum(told))
""",
    "nobody waits for long": """
for i in range(3): child(burn, .15)
time.sleep(1)
for i in range(3): os.wait()
""",
}
# Children of a parent that ignores SIGCHLD are reported to nobody; those after them are.
IGNORED = """
def server():
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for i in range(3):
        child(burn, .25)
        time.sleep(.4)
    try: os.wait()
    except ChildProcessError: pass
os.waitpid(child(server), 0)
for i in range(400): os.waitpid(child(burn, .001), 0)
"""
in_namespace = ["unshare", "-p", "-f", "--mount-proc"]
needs_namespace = unittest.skipUnless(is_root() and can_unshare(*in_namespace[1:]), "needs a pid namespace")


class CpuTime(Case):
    def measure(self, script, *prefix):
        """The result, and the CPU time that the kernel reported, in s."""
        result = self.path("r.json")
        done = subprocess.run(
            [*prefix, NRG, "run", "-q", "-f", f"--json={result}", "-o", self.path("p.nrg"), "--", PYTHON, "-c",
             BEGIN + script + "\ntell()", self.path("makefile")], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=self.env(), timeout=LIMIT_S)
        self.assert_sane(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(result) as f:
            return json.load(f), sum(map(float, done.stdout.split()))

    def check(self, script, *prefix, rounding_s=0):
        def add_up(found):
            r, true = found
            total = sum(p["cpu_time_s"] for p in r["processes"])
            # What a process uses after it told, and the kernel's rounding of short ones.
            self.assertAlmostEqual(total, true, delta=max(0.01 * true, 0.012) + rounding_s)
        # A busy machine tells of an end after the process is gone: once 0.1 of 0.64 s were missing.
        steadily(add_up, lambda n: self.measure(script, *prefix), 3)

    def test_the_sum_is_what_wait_reports(self):
        for name, script in SHAPES.items():
            with self.subTest(name):
                self.check(script)

    def test_what_living_ones_waited_for_is_known_to_ticks(self):
        """The kernel shows that in two sums of whole ticks; the exact sum only once the process has ended."""
        script = "WAITED = 30\n" + SHAPES["orphans that outlive it"]
        self.check(script, rounding_s=2 * 2 / os.sysconf("SC_CLK_TCK"))

    @needs_namespace
    def test_the_sum_is_what_wait_reports_in_a_container(self):
        for name, script in SHAPES.items():
            with self.subTest(name):
                self.check(script, *in_namespace)

    @unittest.skipUnless(is_root() and can_unshare("-p", "-f"), "needs a pid namespace")
    def test_a_proc_of_others_is_not_looked_at(self):
        for name in ("nested shells", "many short ones", "a subreaper"):
            with self.subTest(name):
                r, true = self.measure(SHAPES[name], "unshare", "-p", "-f")
                self.assertAlmostEqual(r["cpu_time_s"], true, delta=max(0.01 * true, 0.012))
                self.assertLessEqual(len(r["processes"]), 2)
                self.assertIn("another pid namespace", self.missing(r, "process"))

    def test_the_recorder_says_what_it_used_itself(self):
        """Not more than wait reports of it, and of the child that it waited for."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        r, _ = self.run_json("-o", self.path("own.nrg"), "--rate", "100Hz", "--", "sleep", "0.5")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        all_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.assertGreater(r["recorder_cpu_s"], 1e-4)
        self.assertLess(r["recorder_cpu_s"], all_s)
        shown = self.nrg("report", self.path("own.nrg")).stdout.decode()
        self.assertRegex(shown, r"nrg itself [0-9.e-]+ % of a CPU")

    @needs_namespace
    def test_ends_that_nobody_reports_hide_no_others(self):
        r, _ = self.measure(IGNORED, *in_namespace)
        short = [p for p in r["processes"] if p["name"] == "(short-lived)"]
        self.assertEqual(len(short), 1)
        self.assertGreater(short[0]["cpu_time_s"], 0.3)


if __name__ == "__main__":
    unittest.main()
