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

    # As TRAP, with every signal counted: Python's own handlers take two in quick succession for one.
    COUNT = TRAP.replace("print('ready'", "import os; r, w = os.pipe(); os.set_blocking(w, False); signal.set_wakeup_fd(w); print('ready'").replace(
        "print(len(seen)", "print(len(os.read(r, 99))")

    def test_signals_to_the_group_arrive_once(self):
        for name in ("TERM", "INT", "HUP", "USR1"):
            out = self.path(f"group-{name}.nrg")
            p = self.start("run", "-q", "-o", out, "--", PYTHON, "-c", self.COUNT % name, start_new_session=True)
            self.assertEqual(p.stdout.readline(), b"ready\n")
            os.killpg(p.pid, getattr(signal, "SIG" + name))
            self.assertEqual(self.finish(p)[0], b"1\n")
            self.assertEqual(p.returncode, 17)

    def test_one_to_the_group_and_one_to_nrg_alone_are_two(self):
        # A print within the print of "ready" would be an error of Python's.
        script = ("import os, signal, sys, time\nseen = []\n"
                  "signal.signal(signal.SIGUSR1, lambda *a: (seen.append(1), os.write(1, b'%d\\n' % len(seen))))\n"
                  "print('ready', flush=True)\n"
                  "while len(seen) < 4: time.sleep(0.01)\n"
                  "sys.exit(17)\n")
        p = self.start("run", "-q", "-o", self.path("two.nrg"), "--", PYTHON, "-c", script, start_new_session=True)
        self.assertEqual(p.stdout.readline(), b"ready\n")
        for i, send in enumerate((os.killpg, os.kill, os.killpg, os.kill)):
            send(p.pid, signal.SIGUSR1)
            self.assertEqual(p.stdout.readline(), b"%d\n" % (i + 1))
            eventually(lambda: not self.pending(p.pid), "the signal in nrg")  # two that wait are one
        self.finish(p)
        self.assertEqual(p.returncode, 17)

    def pending(self, pid):
        with open(f"/proc/{pid}/status") as f:
            return int([line for line in f if line.startswith("ShdPnd:")][0].split()[1], 16)

    def test_a_child_that_signals_its_own_group(self):
        script = (self.COUNT % "TERM").replace("print('ready', flush=True)", "os.killpg(0, signal.SIGTERM)")
        done = self.nrg("run", "-q", "-o", self.path("own.nrg"), "--", PYTHON, "-c", script, start_new_session=True)
        self.assertEqual((done.stdout, done.returncode), (b"1\n", 17), done.stderr)

    def test_nothing_of_nrg_is_left_when_it_is_killed(self):
        p = self.start("run", "-q", "-o", self.path("k.nrg"), "--", "sleep", "30", start_new_session=True)
        eventually(lambda: "sleep" in map(name_of, children_of(p.pid)), "the child")
        others = [pid for pid in children_of(p.pid) if name_of(pid) != "sleep"]
        self.assertEqual(list(map(name_of, others)), ["(signals)"])
        with open(f"/proc/{others[0]}/cmdline", "rb") as f:
            self.assertEqual(f.read().strip(b"\0"), b"(signals)")  # pkill -f nrg means nrg alone
        p.kill()
        p.wait()
        eventually(lambda: not alive(others[0]), "the end of the witness")
        os.killpg(p.pid, signal.SIGKILL)

    def test_a_signal_after_the_end_of_the_command_ends_nrg(self):
        for name in ("TERM", "INT", "HUP"):
            # stdout is a pipe that nobody reads and that is full: nrg can't finish.
            r, w = os.pipe()
            os.set_blocking(w, False)
            try:
                while True:
                    os.write(w, b"x" * 4096)
            except BlockingIOError:
                os.set_blocking(w, True)
            p = self.start("run", "-q", "--json", "-o", self.path(f"late-{name}.nrg"), "--", "sleep", "0.1", stdout=w)
            eventually(lambda: not [c for c in children_of(p.pid) if name_of(c) == "sleep"] and begun(self.path(f"late-{name}.nrg")), "the end")
            os.close(w)
            time.sleep(0.3)
            os.kill(p.pid, getattr(signal, "SIG" + name))
            self.assertEqual(p.wait(LIMIT_S), -getattr(signal, "SIG" + name))
            os.close(r)

    def test_what_was_measured_is_written_before_nrg_dies_of_it(self):
        out = self.path("last.nrg")
        p = self.start("run", "-q", "--baseline", "300ms", "-o", out, "--", "sh", "-c", "exit 4")
        eventually(lambda: begun(out) and query(out, "SELECT count(*) FROM run WHERE kind='run' AND exit_code=4")[0][0], "the run's end")
        os.kill(p.pid, signal.SIGHUP)
        self.finish(p)
        self.assertEqual(p.returncode, -signal.SIGHUP)
        self.assertFalse(os.path.exists(out + "-wal"))
        self.assertEqual(query(out, "SELECT exit_code FROM run WHERE kind='run'"), [(4,)])

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

    # A shell with job control, as small as can be: says how its job stopped, continues it, says how it ended.
    SHELL = ("import os, signal, sys\n"
             "signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"
             "job = os.fork()\n"
             "if job == 0:\n"
             "    os.setpgid(0, 0)\n"
             "    os.tcsetpgrp(0, os.getpid())\n"
             "    signal.signal(signal.SIGTTOU, signal.SIG_DFL)\n"
             "    os.execv(sys.argv[2], sys.argv[2:])\n"
             "_, status = os.waitpid(job, os.WUNTRACED)\n"
             "print('stopped', os.WSTOPSIG(status) if os.WIFSTOPPED(status) else 'not', flush=True)\n"
             "os.tcsetpgrp(0, os.getpgrp())\n"
             "os.tcsetpgrp(0, job)\n"
             "exec(sys.argv[1])\n"
             "print('ended', os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]), flush=True)\n")

    def as_job(self, resume, *command):
        pid, master = pty.fork()
        if pid == 0:
            os.execve(PYTHON, [PYTHON, "-c", self.SHELL, resume, NRG, "run", "-q", "-f", "-o", self.path("j.nrg"), "--", *command], self.env())
        code, text = self.end(pid, master)
        return text.decode().replace("\r", "").split("\n")

    def test_a_child_that_stops_itself_gives_the_terminal_back(self):
        for number in (signal.SIGSTOP, signal.SIGTSTP):
            for resume in ("os.killpg(job, signal.SIGCONT)", "os.kill(job, signal.SIGCONT)"):
                said = self.as_job(resume, "sh", "-c", f"kill -{int(number)} $$; exit 5")
                self.assertEqual(said[:2], [f"stopped {int(number)}", "ended 5"])

    def test_a_child_that_somebody_else_continues(self):
        # Stopped, nrg can't see it: the witness does.
        said = self.as_job("pass", "sh", "-c", "(sleep 1; kill -CONT $$) & kill -STOP $$; exit 6")
        self.assertEqual(said[:2], [f"stopped {int(signal.SIGSTOP)}", "ended 6"])

    def test_without_a_shell_that_controls_jobs_nrg_goes_on(self):
        p = self.start("run", "-q", "-o", self.path("n.nrg"), "--", "sh", "-c", "(sleep 0.5; kill -CONT $$) & kill -STOP $$; exit 7")
        self.finish(p)
        self.assertEqual(p.returncode, 7)

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
