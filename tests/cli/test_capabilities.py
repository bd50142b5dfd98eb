"""nrg as a program with file capabilities (setcap), run by an ordinary user: they open sensors, and are gone before
the command starts. The command has none, and finds the memory for its spans also after it closed descriptors."""
import unittest

from support import *

MAKER = os.path.join(TOOLS, "span-maker")


def capable_nrg():
    """A copy of nrg with a capability; None where the file system or the container refuses."""
    program = nrg_of_everybody()
    if subprocess.run(["setcap", "cap_net_admin,cap_perfmon=ep", program], capture_output=True).returncode:
        return None
    works = subprocess.run([program, "--version"], capture_output=True, preexec_fn=as_user(NOBODY))
    return program if works.returncode == 0 else None


@unittest.skipUnless(is_root() and shutil.which("setcap") and not sanitizer_library(), "needs root, setcap and a plain build")
class Capabilities(Case):
    @classmethod
    def setUpClass(cls):
        cls.program = capable_nrg()

    @classmethod
    def tearDownClass(cls):
        subprocess.run(["setcap", "-r", nrg_of_everybody()], capture_output=True)

    def setUp(self):
        super().setUp()
        if not self.program:
            self.skipTest("file capabilities have no effect here")

    def run_it(self, *args):
        done = subprocess.run([self.program, *args], cwd=self.dir, env=self.env(TMPDIR=self.dir), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, preexec_fn=as_user(NOBODY), timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.decode()

    def sets(self, lines):
        return {line.split(":")[0]: int(line.split(":")[1], 16) for line in lines.splitlines() if line.startswith("Cap")}

    def test_none_is_left_once_the_command_runs(self):
        text = self.run_it("run", "-q", "-o", "c.nrg", "--", "sh", "-c", "cat /proc/$PPID/task/*/status; echo; cat /proc/self/status")
        of_nrg, of_command = text.split("\n\n")
        for line in of_nrg.splitlines():  # of every thread
            if line.startswith(("CapPrm", "CapEff", "CapAmb")):
                self.assertEqual(int(line.split()[1], 16), 0, line)
        self.assertIn("CapPrm", of_nrg)
        command = self.sets(of_command)
        self.assertEqual((command["CapPrm"], command["CapEff"], command["CapInh"], command["CapAmb"]), (0, 0, 0, 0))

    def test_spans_of_a_command_that_closes_descriptors(self):
        shutil.copytree(os.path.dirname(os.path.realpath(MAKER)), self.path("t"), ignore=lambda d, n: [x for x in n if x != "span-maker"])
        library = [line.split("=>")[1].split()[0] for line in subprocess.run(["ldd", MAKER], capture_output=True, text=True).stdout.splitlines()
                   if "libnrg.so" in line][0]
        shutil.copy(library, self.path("t"))
        script = f"import os; os.closerange(3, 1024); os.environ['LD_LIBRARY_PATH'] = {self.path('t')!r}; os.execl({self.path('t', 'span-maker')!r}, 'm', 'threads', '1', '5')"
        self.assertIn("active", self.run_it("run", "-q", "-o", "s.nrg", "--", PYTHON, "-c", script))
        self.assertGreater(query(self.path("s.nrg"), "SELECT value FROM meta WHERE key='spans'")[0][0], 0)

    def test_sensors_stay_out_of_the_command_s_reach(self):
        # nrg itself is closed to other processes of the user; the witness has one descriptor and the end of a pipe.
        script = ("import os; p = os.getppid(); w = [int(x) for x in open(f'/proc/{p}/task/{p}/children').read().split() "
                  "if open(f'/proc/{x}/comm').read() == '(signals)\\n']\n"
                  "try: print(os.listdir(f'/proc/{p}/fd'))\nexcept OSError: print('closed')\n"
                  "print(len(os.listdir(f'/proc/{w[0]}/fd')))")
        self.assertEqual(self.run_it("run", "-q", "-o", "w.nrg", "--", PYTHON, "-c", script), "closed\n2\n")


if __name__ == "__main__":
    unittest.main()
