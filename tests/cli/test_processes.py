"""Who belongs to the workload, and how much CPU time each used: short-lived processes, daemons,
several recorders at once, containers, and processes of others."""
import json
import unittest

from support import *

# Burns a known amount of CPU time in many short processes; prints the truth of wait(2).
FORKS = """
import os, resource, sys, time
def burn(s):
    end = time.process_time() + s
    while time.process_time() < end: pass
for i in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0:
        burn(float(sys.argv[2])); os._exit(0)
    os.waitpid(pid, 0)
print(sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage,
          (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))))
"""
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        end = time.process_time() + 0.6
        while time.process_time() < end: pass
        open(sys.argv[1], 'w').write(str(os.getpid()))
        time.sleep(0.2)
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]): time.sleep(0.02)
time.sleep(0.1)
"""
# Says what it really used: a slow interpreter's start is not ours to foretell.
BURN = ("import time\nend = time.process_time() + %g\n"
        "while time.process_time() < end: pass\nprint(time.process_time(), flush=True)\n")


# Children that have ended and are not waited for during many polls; prints the truth of wait(2).
UNWAITED = FORKS.split("for i")[0] + """
for i in range(3):
    if os.fork() == 0:
        burn(0.3); os._exit(0)
until = time.monotonic() + float(sys.argv[1])
while time.monotonic() < until:  # others come and go, so that it is worth to look for new ones
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
    time.sleep(0.05)
for i in range(3): os.wait()
print(sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage,
          (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))), flush=True)
"""


def in_pid_namespace(*command):
    return ["unshare", "-p", "-f", "--mount-proc", *command]


needs_namespace = unittest.skipUnless(is_root() and can_unshare("-p", "-f", "--mount-proc"),
                                      "needs a pid namespace")


class Everybody(Case):
    def through(self, prefix, *command):
        """nrg run behind another command (unshare...); returns (results, stdout)."""
        result = self.path(f"r-{time.monotonic_ns()}.json")
        done = subprocess.run([*prefix, NRG, "run", "-q", "-f", f"--json={result}", "-o",
                               self.path("p.nrg"), "--", *command], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=self.env(), cwd=self.dir, timeout=LIMIT_S)
        self.assert_sane(done.stderr)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(result) as f:
            return json.load(f), done.stdout

    def check_total(self, results, true_s):
        """To 1 %, and what a process uses after it told."""
        total = sum(p["cpu_time_s"] for p in results["processes"])
        self.assertAlmostEqual(total, true_s, delta=max(0.01 * true_s, 0.012))
        self.assertAlmostEqual(results["cpu_time_s"], total, places=6)
        pids = [p["pid"] for p in results["processes"] if "pid" in p]
        self.assertEqual(len(pids), len(set(pids)), "no process twice")

    def test_five_thousand_short_processes(self):
        r, out = self.through([], PYTHON, "-c", FORKS, "5000", "0.0002")
        self.check_total(r, float(out))

    @needs_namespace
    def test_five_thousand_short_processes_by_polling(self):
        r, out = self.through(in_pid_namespace(), PYTHON, "-c", FORKS, "5000", "0.0002")
        self.check_total(r, float(out))
        self.assertIn("polling", self.missing(r, "process"))
        self.assertTrue([p for p in r["processes"] if p.get("name") == "(short-lived)"])

    @needs_namespace
    def test_a_short_run_by_polling(self):
        r, out = self.through(in_pid_namespace(), PYTHON, "-c", FORKS, "12", "0.02")
        self.check_total(r, float(out))

    @needs_namespace
    def test_children_that_nobody_waits_for_count_once(self):
        r, out = self.through(in_pid_namespace(), PYTHON, "-c", UNWAITED, "2.5")
        self.check_total(r, float(out))
        self.assertEqual(len([p for p in r["processes"] if p["cpu_time_s"] > 0.25]), 3)

    def daemon_s(self, results, pid):
        return sum(p["cpu_time_s"] for p in results["processes"] if p.get("pid") == pid)

    def test_daemons_are_followed(self):
        r, _ = self.through([], PYTHON, "-c", DAEMON, self.path("pid"))
        with open(self.path("pid")) as f:
            self.assertAlmostEqual(self.daemon_s(r, int(f.read())), 0.6, delta=0.06)

    @needs_namespace
    def test_daemons_are_followed_by_polling(self):
        r, _ = self.through(in_pid_namespace(), PYTHON, "-c", DAEMON, self.path("pid"))
        with open(self.path("pid")) as f:
            self.assertAlmostEqual(self.daemon_s(r, int(f.read())), 0.6, delta=0.12)

    def test_threads_count(self):
        script = ("import threading, hashlib\n"
                  "def f():\n"
                  "    for i in range(60): hashlib.sha256(b'x' * 2000000).digest()\n"
                  "t = [threading.Thread(target=f) for i in range(3)]\n"
                  "[x.start() for x in t]; [x.join() for x in t]\n"
                  "import time; print(time.process_time())\n")
        r, out = self.through([], PYTHON, "-c", script)
        self.check_total(r, float(out))

    def test_names_of_all_kinds(self):
        name = "we \"quote\" 'it'\n\ttwice \\ $(ls) ünï😀"
        for arg in (name, "x" * 60000, "", "\x1b[31m", b"\xff\xfe\x80"):
            r, _ = self.through([], PYTHON, "-c", "import time; time.sleep(0.15)", arg)
            command = r["processes"][0]["command"]
            self.assertIn("time.sleep", command)
            for code in range(0x20):
                self.assertNotIn(chr(code), command + r["command"])
        text = self.nrg("report", self.path("p.nrg"))
        self.assertEqual(text.returncode, 0)
        text.stdout.decode("utf-8")

    def test_two_at_once_keep_apart(self):
        jobs = []
        for i, burn_s in enumerate((0.4, 0.9)):
            result = self.path(f"{i}.json")
            jobs.append((burn_s, result, self.start(
                "run", "-q", f"--json={result}", "-o", self.path(f"{i}.nrg"), "--", PYTHON, "-c",
                BURN % burn_s)))
        for burn_s, result, p in jobs:
            used_s = float(self.finish(p)[0])
            with open(result) as f:
                r = json.load(f)
            self.assertEqual(len(r["processes"]), 1, r["processes"])
            self.assertGreater(used_s, burn_s)
            self.assertAlmostEqual(r["cpu_time_s"], used_s, delta=0.1)

    @needs_namespace
    def test_children_that_nrg_had_before_are_not_the_workload_s(self):
        # The shell becomes nrg and brings its child along, which ends while nrg waits.
        script = f"{PYTHON} -c '{BURN % 0.5}' > used & sleep 0.05; exec \"$@\""
        r, _ = self.through(in_pid_namespace("sh", "-c", script, "sh"), "sleep", "1.2")
        self.assertEqual([p["command"] for p in r["processes"]], ["sleep 1.2"])
        self.assertLess(r["cpu_time_s"], 0.1)

    def test_nrg_inside_nrg(self):
        inner = self.path("inner.json")
        r, out = self.through([], NRG, "run", "-q", f"--json={inner}", "-o", self.path("i.nrg"), "--",
                              PYTHON, "-c", BURN % 0.5)
        with open(inner) as f:
            i = json.load(f)
        self.assertAlmostEqual(i["cpu_time_s"], float(out), delta=0.1)
        self.assertGreaterEqual(r["cpu_time_s"], i["cpu_time_s"] - 0.01)
        self.assertTrue([p for p in r["processes"] if "inner.json" in p["command"]])

    @needs_namespace
    def test_inside_a_container_s_view(self):
        r, _ = self.through(in_pid_namespace(), "sh", "-c", "sleep 0.3; echo $$")
        self.assertIn("namespace", self.missing(r, "process"))
        self.assertTrue(r["processes"])

    @unittest.skipUnless(can_unshare("-U", "-r"), "needs user namespaces")
    def test_inside_a_user_namespace(self):
        r, out = self.through(["unshare", "-U", "-r"], PYTHON, "-c", BURN % 0.3)
        self.assertAlmostEqual(r["cpu_time_s"], float(out), delta=0.1)


class Given(Case):
    """--pid and --system."""

    def test_pid_follows_until_it_ends(self):
        script = BURN % 0.4 + "input()\n" + BURN % 0.3
        p = subprocess.Popen([PYTHON, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.started.append(p)
        before_s = float(p.stdout.readline())
        nrg = self.start("run", "-q", "--json", "-o", self.path("p.nrg"), "--pid", str(p.pid))
        eventually(lambda: begun(self.path("p.nrg")), "the beginning of the run")
        p.stdin.write(b"\n")
        p.stdin.flush()
        used_s = float(p.stdout.readline()) - before_s
        p.wait(LIMIT_S)
        out, _ = self.finish(nrg)
        r = json.loads(out)
        self.assertEqual(nrg.returncode, 0)
        self.assertAlmostEqual(r["cpu_time_s"], used_s, delta=0.15)
        self.assertNotIn("exit_code", r)

    def test_what_was_before_does_not_count(self):
        # The grandchild has used a second before we come, and is waited for afterwards.
        script = ("import os, time\n"
                  "pid = os.fork()\n"
                  "if pid == 0:\n"
                  "    " + (BURN % 1).replace("\n", "\n    ") + "\n"
                  "    open('burnt', 'w'); time.sleep(0.8); os._exit(0)\n"
                  "os.wait(); time.sleep(0.8)\n")
        p = subprocess.Popen([PYTHON, "-c", script], cwd=self.dir)
        self.started.append(p)
        eventually(lambda: os.path.exists(self.path("burnt")), "the burning")
        done = self.nrg("run", "-q", "--json", "-o", self.path("b.nrg"), "--for", "1.3s", "--pid",
                        str(p.pid))
        self.assertLess(json.loads(done.stdout)["cpu_time_s"], 0.2)

    def test_several_pids_and_a_time(self):
        sleepers = [subprocess.Popen(["sleep", "30"]) for _ in range(3)]
        self.started += sleepers
        pids = [p.pid for p in sleepers]
        done = self.nrg("run", "-q", "--json", "-o", self.path("s.nrg"), "--for", "0.3s", "--pid",
                        f"{pids[0]},{pids[1]}", "--pid", str(pids[2]))
        self.assertEqual(done.returncode, 0, done.stderr)
        r = json.loads(done.stdout)
        self.assertEqual({p["pid"] for p in r["processes"]}, set(pids))
        self.assertTrue(all(p["still_running"] for p in r["processes"]))

    def test_a_pid_that_is_not_there(self):
        done = self.nrg("run", "-o", self.path("n.nrg"), "--pid", "4194300")
        self.assertEqual(done.returncode, 125)
        self.one_line(done.stderr)
        self.assertFalse(os.path.exists(self.path("n.nrg")))

    @needs_root
    def test_a_process_of_another_user(self):
        p = subprocess.Popen([PYTHON, "-c", BURN % 300])
        self.started.append(p)
        before_s = cpu_s(p.pid)
        done = self.nrg("run", "-q", "--json", "-o", self.path("o.nrg"), "--for", "0.8s", "--pid",
                        str(p.pid), user=NOBODY)
        self.assertEqual(done.returncode, 0, done.stderr)
        r = json.loads(done.stdout)
        self.assertGreater(r["cpu_time_s"], 0)
        self.assertLess(r["cpu_time_s"], cpu_s(p.pid) - before_s + 0.02)
        self.assertNotIn("peak_pss_bytes", r["processes"][0])  # not permitted: absent, not 0

    @unittest.skipUnless(is_root() and can_unshare("-m", "-p", "-f"), "needs namespaces")
    def test_a_process_that_is_hidden(self):
        script = (f"mount -t proc -o hidepid=2 proc /proc || exit 99; sleep 60 & "
                  f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {nrg_of_everybody()} run -o "
                  f"{self.path('h.nrg')} --for 0.3s --pid $!; echo $?; "
                  f"setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups {nrg_of_everybody()} run -q -o "
                  f"{self.path('i.nrg')} -- sh -c 'exit 8'; echo $?; kill $!")
        done = subprocess.run(["unshare", "-m", "-p", "-f", "sh", "-c", script], env=self.env(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S)
        self.assert_sane(done.stderr)
        self.assertEqual(done.stdout.split(), [b"125", b"8"], done.stderr)

    def test_the_whole_machine(self):
        p = subprocess.Popen([PYTHON, "-c", BURN % 300])
        self.started.append(p)
        before_s = cpu_s(p.pid)
        done = self.nrg("run", "-q", "--json", "-o", self.path("a.nrg"), "--system", "--for", "2.2s")
        self.assertEqual(done.returncode, 0, done.stderr)
        r = json.loads(done.stdout)
        mine = [q for q in r["processes"] if q.get("pid") == p.pid]
        self.assertEqual(len(mine), 1)
        self.assertGreater(mine[0]["cpu_time_s"], 0)
        self.assertLess(mine[0]["cpu_time_s"], cpu_s(p.pid) - before_s + 0.02)

    def ended_children(self, pid):
        """The three of UNWAITED when all have ended, else nothing. Others come and go meanwhile."""
        ended = []
        for child in children_of(pid):
            try:
                if not alive(child) and cpu_s(child) > 0.25:
                    ended.append(child)
            except OSError:
                pass
        return ended if len(ended) == 3 else []

    def test_children_that_nobody_waits_for_are_one_process_each(self):
        p = subprocess.Popen([PYTHON, "-c", UNWAITED, "300"], stdout=subprocess.DEVNULL)
        self.started.append(p)
        ended = eventually(lambda: self.ended_children(p.pid), "their end")
        done = self.nrg("run", "-q", "--json", "-o", self.path("z.nrg"), "--system", "--for", "1.5s")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = [q["pid"] for q in json.loads(done.stdout)["processes"] if q.get("pid") in ended]
        self.assertEqual(len(found), len(set(found)))

    def test_ctrl_c_ends_the_whole_machine(self):
        p = self.start("run", "-o", self.path("c.nrg"), "--system")
        self.assertIn(b"Ctrl-C", p.stderr.readline())
        eventually(lambda: begun(self.path("c.nrg")), "the beginning of the run")
        p.send_signal(signal.SIGINT)
        self.finish(p)
        self.assertEqual(p.returncode, 0)
        self.assertEqual(self.nrg("report", self.path("c.nrg")).returncode, 0)


if __name__ == "__main__":
    unittest.main()
