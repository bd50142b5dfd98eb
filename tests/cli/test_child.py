"""The measured command must not notice nrg: streams, signals, terminal, limits, exit code. And
when the two get into each other's way, it is the command that goes on."""
import json
import pty
import resource
import select
import unittest

from support import *


class Untouched(Case):
    def child(self, script, *options, code=0, **kw):
        done = self.nrg("run", "-q", "-f", "-o", self.path("c.nrg"), *options, "--", PYTHON, "-c",
                        script, **kw)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_exit_codes(self):
        out = self.path("codes.nrg")
        for code in (0, 1, 2, 42, 125, 126, 127, 128, 200, 255):
            done = self.nrg("run", "-q", "-f", "-o", out, "--", "sh", "-c", f"exit {code}")
            self.assertEqual(done.returncode, code)
            self.assertEqual(query(out, "SELECT exit_code FROM run"), [(code,)])

    def test_death_by_signal(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE):
            done = self.nrg("run", "-q", "-f", "-o", self.path("k.nrg"), "--", "sh", "-c",
                            f"ulimit -c 0; kill -{int(number)} $$")
            self.assertEqual(done.returncode, 128 + number)

    def test_command_that_can_not_be_run(self):
        plain = self.write("plain.txt", "not a program\n")
        for command, code in ((self.path("nosuch"), 127), ("nosuch-command", 127), (plain, 126),
                              (self.dir, 126)):
            done = self.nrg("run", "-o", self.path("n.nrg"), "--", command)
            self.assertEqual(done.returncode, code)
            self.assertIn(os.path.basename(command), self.one_line(done.stderr))
            self.assertFalse(os.path.exists(self.path("n.nrg")))

    def test_streams_pass_through_untouched(self):
        data = os.urandom(3 << 20)
        done = subprocess.run([NRG, "run", "-q", "-o", self.path("s.nrg"), "--", "cat"], input=data,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.env(),
                              timeout=LIMIT_S)
        self.assertEqual(done.stdout, data)
        self.assertEqual(done.stderr, b"")

    def test_json_on_stdout_comes_after_the_child(self):
        done = self.nrg("run", "-q", "--json", "-o", self.path("j.nrg"), "--", "echo", "first")
        first, rest = done.stdout.split(b"\n", 1)
        self.assertEqual(first, b"first")
        self.assertEqual(json.loads(rest)["schema"], "nrg.report/1")

    def test_no_descriptor_leaks(self):
        script = ("import os; fds = os.listdir('/proc/self/fd'); fds.remove(os.environ['NRG_SPANS'].split(',')[1]);"
                  " print(sorted(fds))")
        # One more than the usual three, and the one for spans: the listing's own.
        self.assertEqual(self.child(script).stdout.strip(), b"['0', '1', '2', '3']")

    def test_closed_streams_stay_closed(self):
        # And nothing that nrg opens may take their place: its talk would go there.
        for closed in ((0,), (1,), (2,), (0, 1, 2)):
            seen, out = self.path("seen"), self.path("closed.nrg")
            script = f"ls /proc/$$/fd > {seen}; exit 11"
            code = subprocess.Popen(
                [NRG, "run", "-f", "-o", out, "--", "sh", "-c", script], env=self.env(),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.dir,
                preexec_fn=lambda: [os.close(fd) for fd in closed]).wait(LIMIT_S)
            self.assertEqual(code, 11)
            with open(seen) as f:
                fds = f.read().split()
            for fd in closed:
                if fd != 1:  # the shell's own redirection is there
                    self.assertNotIn(str(fd), fds)
            self.assertEqual(self.nrg("report", out).returncode, 0)

    def test_limits_mask_and_dispositions(self):
        script = ("import resource as r; print([r.getrlimit(k) for k in (r.RLIMIT_NOFILE, "
                  "r.RLIMIT_STACK, r.RLIMIT_CORE, r.RLIMIT_NPROC)]); "
                  "print([l for l in open('/proc/self/status') if l.startswith('Sig') and "
                  "l[3:6] in ('Blk', 'Ign', 'Cgt')]); print(open('/proc/self/timerslack_ns').read(),"
                  " __import__('os').nice(0), sorted(__import__('os').sched_getaffinity(0)))")

        def setup():
            resource.setrlimit(resource.RLIMIT_NOFILE, (300, 400))
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGRTMIN])
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        direct = subprocess.run([PYTHON, "-c", script], stdout=subprocess.PIPE, preexec_fn=setup)
        through = self.child(script, preexec_fn=setup)
        self.assertEqual(through.stdout, direct.stdout)

    def test_sigpipe_is_the_child_s_own(self):
        done = self.nrg("run", "-q", "-o", self.path("p.nrg"), "--", "bash", "-c",
                        "yes | head -1; echo ${PIPESTATUS[0]}",
                        preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
        self.assertEqual(done.stdout, b"y\n141\n")
        self.assertEqual(done.stderr, b"")

    def test_nohup_stays_nohup(self):
        p = self.start("run", "-q", "-o", self.path("h.nrg"), "--", "sleep", "0.7",
                       preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        eventually(lambda: children_of(p.pid), "the child")
        os.kill(p.pid, signal.SIGHUP)
        self.finish(p)
        self.assertEqual(p.returncode, 0)

    def test_the_environment_and_folder_are_the_same(self):
        # But for the one variable that says where spans go.
        script = "import os; os.environ.pop('NRG_SPANS', 0); print(sorted(os.environ.items()), os.getcwd())"
        env = self.env(SOME="thing")
        direct = subprocess.run([PYTHON, "-c", script], stdout=subprocess.PIPE, env=env,
                                cwd=self.dir)
        self.assertEqual(self.child(script, env=env).stdout, direct.stdout)


class Signals(Case):
    TRAP = ("import signal, sys, time\n"
            "seen = []\n"
            "signal.signal(signal.SIG%s, lambda *a: seen.append(1))\n"
            "print('ready', flush=True)\n"
            "end = time.monotonic() + 30\n"
            "while not seen and time.monotonic() < end: time.sleep(0.02)\n"
            "time.sleep(0.3)\n"
            "print(len(seen), flush=True)\n"
            "sys.exit(17)\n")

    def test_signals_to_nrg_alone_are_passed_on_once(self):
        for name in ("TERM", "INT", "HUP", "USR1"):
            out = self.path(f"{name}.nrg")
            p = self.start("run", "-q", "-o", out, "--", PYTHON, "-c", self.TRAP % name)
            self.assertEqual(p.stdout.readline(), b"ready\n")
            os.kill(p.pid, getattr(signal, "SIG" + name))
            self.assertEqual(self.finish(p)[0], b"1\n")
            self.assertEqual(p.returncode, 17)
            self.assertEqual(query(out, "SELECT exit_code FROM run"), [(17,)])

    def test_a_child_that_ignores_sigterm(self):
        out = self.path("i.nrg")
        p = self.start("run", "-q", "-o", out, "--", "sh", "-c",
                       "trap '' TERM; echo ready; sleep 0.8; echo done; exit 6")
        self.assertEqual(p.stdout.readline(), b"ready\n")
        for _ in range(3):
            os.kill(p.pid, signal.SIGTERM)
            time.sleep(0.05)
        self.assertEqual(self.finish(p)[0], b"done\n")
        self.assertEqual(p.returncode, 6)
        self.assertFalse(os.path.exists(out + "-wal"))

    def test_sigterm_ends_a_child_that_does_not_care(self):
        out = self.path("t.nrg")
        p = self.start("run", "-q", "-o", out, "--", "sleep", "30")
        eventually(lambda: "sleep" in map(name_of, children_of(p.pid)), "the child")
        os.kill(p.pid, signal.SIGTERM)
        self.finish(p)
        self.assertEqual(p.returncode, 143)
        self.assertEqual(query(out, "SELECT exit_code FROM run"), [(143,)])

    def test_repeat_ends_after_a_signal(self):
        out = self.path("r.nrg")
        p = self.start("run", "-q", "--repeat", "50", "-o", out, "--", "sh", "-c",
                       "trap 'exit 0' TERM; sleep 0.2 & wait")
        eventually(lambda: children_of(p.pid), "the child")
        time.sleep(0.1)
        told_ns = time.monotonic_ns()
        os.kill(p.pid, signal.SIGTERM)
        self.finish(p)
        self.assertLess(query(out, "SELECT count(*) FROM run")[0][0], 50)
        # One may have been begun while the signal was on its way.
        self.assertLessEqual(query(out, f"SELECT count(*) FROM run WHERE begin_ns > {told_ns}")[0][0], 1)

    def test_stop_and_continue(self):
        out = self.path("z.nrg")
        p = self.start("run", "-q", "-o", out, "--", "sh", "-c", "sleep 0.8; exit 3")
        eventually(lambda: children_of(p.pid), "the child")
        for _ in range(3):
            os.kill(p.pid, signal.SIGSTOP)
            time.sleep(0.15)
            os.kill(p.pid, signal.SIGCONT)
            time.sleep(0.1)
        self.finish(p)
        self.assertEqual(p.returncode, 3)


class Terminal(Case):
    """On a terminal of its own, as a person would sit there."""

    def on_terminal(self, *command):
        """Starts nrg run as the leader of a session; returns (pid, master)."""
        pid, master = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execve(NRG, [NRG, "run", "-o", self.path("t.nrg"), "--", *command], self.env())
        return pid, master

    def read_until(self, master, word):
        seen = b""
        while word not in seen:
            ready = select.select([master], [], [], 30)[0]
            self.assertTrue(ready, seen)
            try:
                seen += os.read(master, 4096)
            except OSError:
                break
        return seen

    def end(self, pid, master):
        """Drains the terminal until nrg has ended; returns (exit code, text)."""
        text = b""
        while True:
            try:
                more = os.read(master, 4096) if select.select([master], [], [], 30)[0] else b""
            except OSError:
                more = b""
            if not more:
                break
            text += more
        status = os.waitpid(pid, 0)[1]
        os.close(master)
        return os.waitstatus_to_exitcode(status), text

    def test_ctrl_c_reaches_the_child_once_and_the_recording_is_closed(self):
        pid, master = self.on_terminal(PYTHON, "-c", Signals.TRAP % "INT")
        self.read_until(master, b"ready")
        os.write(master, b"\x03")
        code, text = self.end(pid, master)
        self.assertIn(b"1\r\n", text)
        self.assertEqual(code, 17)
        self.assertIn(b"recording:", text)
        self.assertFalse(os.path.exists(self.path("t.nrg-wal")))
        self.assertEqual(query(self.path("t.nrg"), "SELECT exit_code FROM run"), [(17,)])

    def test_ctrl_c_on_a_child_that_dies_of_it(self):
        pid, master = self.on_terminal("sh", "-c", "echo ready; exec sleep 30")
        self.read_until(master, b"ready")
        time.sleep(0.1)
        os.write(master, b"\x03")
        code, text = self.end(pid, master)
        self.assertEqual(code, 130)
        self.assertIn(b"exit code 130", text)

    def test_the_child_has_the_terminal(self):
        script = ("import os, sys; t = os.open('/dev/tty', os.O_RDWR); "
                  "print('ok' if os.tcgetpgrp(t) == os.getpgrp() and os.isatty(0) else 'lost', "
                  "os.getsid(0) == os.getsid(os.getppid())); print('got', input())")
        pid, master = self.on_terminal(PYTHON, "-c", script)
        self.read_until(master, b"True")
        os.write(master, b"typed\n")
        code, text = self.end(pid, master)
        self.assertIn(b"got typed", text)
        self.assertEqual(code, 0)


if __name__ == "__main__":
    unittest.main()
