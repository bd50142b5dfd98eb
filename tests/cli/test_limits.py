"""Where there is no room: a full or closed stdout, RLIMIT_FSIZE, full and read-only disks, removed folders.
Every command says so with one line and a code, and the exit code of a measured command comes through."""
import resource
import unittest

from spans_file import Spans, power_log
from support import *

DATA = "device,model,kind,level,macs,read_bytes,written_bytes,energy_j,time_s\n" + "".join(
    f"d,m{i % 3},{('Linear', 'ReLU')[i % 2]},operator,{i % 2 * i * 1000},{i * 400},{i * 100},{i + 1},{i * 1e-3}\n" for i in range(1, 25))


class NoRoom(Case):
    def setUp(self):
        super().setUp()
        self.recording = self.path("a.nrg")
        machine = self.write("machine.txt", "domain package-0\n power 20\n")
        done = self.nrg("run", "-q", "-o", self.recording, "-s", f"simulate:{machine}", "--", "true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.model = self.write("model.txt", "graph(%x : Float(1, 4)):\n  %y : Float(1, 4) = aten::relu(%x)\n  return (%y)\n")

    def commands(self):
        """Every way to stdout, by what it prints."""
        r, s, d, p = self.recording, self.path("spans.nrg"), self.write("data.csv", DATA), self.path("profile.json")
        self.assertEqual(self.nrg("import", "-q", "-o", s, self.write("power.log", power_log([10] * 100 + [20] * 101))).returncode, 0)
        spans = Spans()
        spans.span(0.1, 0.4, "a", "module")
        spans.write(s)
        self.assertEqual(self.nrg("train", "-q", d, "-o", p).returncode, 0)
        return (("help",), ("help", "run"), ("run", "--help"), ("--version",), ("sensors",), ("sensors", "--json"), ("report", r),
                ("report", "--json", r), ("report", "--print", "energy", r), ("export", r), ("export", "--format", "json", r), ("graph", self.model), ("graph", "--json", self.model), ("meter", "list"),
                ("report", r, "--html", "-"), ("compare", "--force", r, "--", r), ("compare", "--force", "--json", r, "--", r), ("compare", "--force", "--markdown", r, "--", r), ("view", r),
                ("attribute", s), ("attribute", "--json", s), ("attribute", "--csv", s), ("attribute", "--folded", s), ("attribute", "--trace", s),
                ("attribute", "--from=0.1", "--to=0.3", s), ("dataset", d), ("dataset", "--json", d), ("evaluate", d), ("profile", "show", p),
                ("predict", self.model, "--profile", p), ("predict", "--json", self.model, "--profile", p), ("train", d, "-o", "-"),
                ("run", "-q", "--json", "--system", "--for", "100ms", "-o", self.path("s.nrg"), "-f"))

    def each(self, preexec_fn, why, **kw):
        for command in self.commands():
            with self.subTest(command):
                done = subprocess.run([NRG, *command], stderr=subprocess.PIPE, env=self.env(), cwd=self.dir, timeout=LIMIT_S,
                                      stdin=subprocess.DEVNULL, preexec_fn=preexec_fn, **kw)
                self.assert_sane(done.stderr)
                self.assertRegex(done.stderr.decode(), f"nrg: .*cannot (write: ({why}|an earlier write failed)|be exported: .*)\n$")
                self.assertEqual(done.stderr.count(b": cannot "), 1)
                self.assertEqual(done.returncode, 1)

    def test_a_full_stdout(self):
        with open("/dev/full", "wb") as full:
            self.each(None, "No space left on device", stdout=full)

    def test_a_closed_stdout(self):
        self.each(lambda: os.close(1), "Bad file descriptor")

    def test_a_closed_stdin_is_no_empty_file(self):
        done = self.nrg("graph", "-", preexec_fn=lambda: os.close(0))
        self.assertEqual(done.returncode, 1)
        self.assertIn("stdin: cannot read: Bad file descriptor", self.one_line(done.stderr))

    def test_the_exit_code_of_a_command_stays_its_own(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([NRG, "run", "-q", "--json", "-f", "-o", self.path("b.nrg"), "--", "sh", "-c", "exit 3"], stdout=full,
                                  stderr=subprocess.PIPE, env=self.env(), cwd=self.dir, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 3)
        self.assertIn("stdout: cannot write", self.one_line(done.stderr))

    def limited(self, size, *command):
        """nrg run with a limit on the size of files, which the command has as well."""
        return self.nrg("run", "-f", "-o", self.path("c.nrg"), "--rate", "1kHz", "--", *command,
                        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, -1)))

    def test_a_limit_on_files_ends_neither_nrg_nor_the_exit_code(self):
        codes = set()
        for size in (16 << 10, 24 << 10, 28 << 10, 32 << 10, 36 << 10, 40 << 10, 100 << 10):
            done = self.limited(size, "sh", "-c", "exit 23")
            codes.add(done.returncode)
            self.assertTrue(done.stderr)
        self.assertEqual(codes, {23, 125})  # 125 where not even the beginning had room

    def test_a_limit_below_the_first_page_is_one_line(self):
        done = self.limited(512, "sh", "-c", "exit 23")
        self.assertEqual(done.returncode, 125, done.stderr)
        self.one_line(done.stderr)

    def test_the_limit_and_its_signal_are_the_command_s(self):
        script = f"ulimit -f; dd if=/dev/zero of={self.path('big')} bs=100k count=1 2>/dev/null"
        done = self.limited(40960, "bash", "-c", script)
        self.assertEqual((done.stdout, done.returncode), (b"40\n", 128 + signal.SIGXFSZ), done.stderr)

    def test_other_commands_survive_it(self):
        for command in (("export", "-o", self.path("x.csv"), self.recording), ("report", f"--json={self.path('x.json')}", self.recording)):
            done = self.nrg(*command, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, -1)))
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("File too large", self.one_line(done.stderr))

    def test_a_removed_folder(self):
        gone = self.path("gone")
        os.mkdir(gone)
        done = subprocess.run(["sh", "-c", f"cd {gone} && rmdir {gone} && exec {NRG} run -q -- sh -c 'exit 9'"], stderr=subprocess.PIPE,
                              env=self.env(TMPDIR=self.dir), timeout=LIMIT_S)
        self.assertIn(done.returncode, (9, 125), done.stderr)
        self.assertTrue(done.stderr)
        self.assert_sane(done.stderr)
        done = subprocess.run(["sh", "-c", f"mkdir {gone}; cd {gone}; {NRG} run -q -o r.nrg -- sh -c 'rm -r {gone}; exit 9'"],
                              stderr=subprocess.PIPE, env=self.env(), cwd=self.dir, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 9, done.stderr)
        self.assert_sane(done.stderr)

    @unittest.skipUnless(is_root() and can_unshare("-m"), "needs root and mount namespaces")
    def test_a_read_only_disk(self):
        place = self.path("disk")
        os.mkdir(place)
        script = f"""mount -t tmpfs none {place} && cp {self.recording} {place}/a.nrg && mount -o remount,ro {place} && cd {place} || exit 90
            {NRG} report a.nrg > /dev/null || exit 91
            {NRG} run -q -o b.nrg -- true 2>> {self.path('said')}; test $? = 125 || exit 92
            {NRG} export -o b.csv a.nrg 2>> {self.path('said')}; test $? = 1 || exit 93
            {NRG} run -q -- sh -c 'exit 7' 2>> {self.path('said')}; test $? = 7 || exit 94"""
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], stderr=subprocess.PIPE, env=self.env(), timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("said")) as said:
            lines = said.read().strip().split("\n")
        self.assertEqual(len(lines), 3, lines)
        self.assertEqual([("Read-only file system" in line) for line in lines[:2]], [True, True], lines)
        self.assertIn("can't be written: the recording goes to", lines[2])


if __name__ == "__main__":
    unittest.main()
