"""A machine without memory, a dying disk: the nth call fails, and the answer is right or an error.

tests/faults/faults.py has the commands and the rules; here a sample of the places in each command fails, others every
time the code changes (the seed is the program's size). `make faults` lets every single call fail. With the sanitized build
the sample is small, and shows what leaks or is used after its end.
"""
import os
import random
import subprocess
import sys
import tempfile
import unittest

from support import *

sys.path.insert(0, os.path.join(TOP, "tests", "faults"))
import faults

PLAIN = os.path.abspath(os.environ.get("NRG_PLAIN_BUILD", os.path.dirname(NRG)))


class Answers(unittest.TestCase):
    def check(self, build, kinds, sample, names=("",)):
        with tempfile.TemporaryDirectory(prefix="nrg-faults-") as folder:
            program = faults.Program(build, folder)
            faults.prepare(program)
            rng = random.Random(os.path.getsize(program.nrg))
            bad = []
            for command in faults.commands():
                if any(name in command.name for name in names):
                    bad += faults.findings(program, command, kinds, sample=sample, rng=rng)
            self.assertEqual(bad, [])

    def test_memory(self):
        self.check(PLAIN, "m", 4)

    def test_files(self):
        self.check(PLAIN, "orwspc", 1)


class Run(Case):
    """nrg run: the command's output and exit code are its own, whatever fails in nrg."""

    SCRIPT = "echo out; echo err >&2; exit 7"

    def run_with(self, program, **fault):
        for suffix in ("", "-wal", "-shm", "-journal"):
            if os.path.exists(self.path("r.nrg") + suffix):
                os.unlink(self.path("r.nrg") + suffix)
        return program.run(["run", "-q", "--sensor", "simulate:" + self.path("scenario.txt"), "-o", self.path("r.nrg"), "--",
                            "sh", "-c", self.SCRIPT], **fault)

    def test_the_command_is_not_harmed(self):
        self.scenario("domain package-0\n power 50\n")
        program = faults.Program(PLAIN, self.dir)
        rng = random.Random(os.path.getsize(program.nrg))
        every, bad = bool(os.environ.get("NRG_TEST_FAULTS_ALL")), []
        for kind, sample in (("m", 20), ("o", 6), ("r", 6), ("w", 8), ("s", 3), ("p", 3), ("t", 3), ("c", 4)):
            path = self.path("sites")
            self.run_with(program, kinds=kind, n=0, sites=path)
            with open(path, encoding="ascii") as f:
                calls = [(int(line.split()[0]), line.split()[2]) for line in f]
            for n in faults.chosen(calls, False, 0 if every else sample, rng):
                for later in (None, 1):
                    code, out, err = self.run_with(program, kinds=kind, n=n, all=later, errno=faults.KINDS[kind][0])
                    bad += self.judge(code, out, err, f"{kind} n={n} all={later}")
        self.assertEqual(bad, [])

    def judge(self, code, out, err, what):
        if code == 7 and out == b"out\n" and b"err\n" in err:
            return []
        # Before the command was started nrg may give up, by its own code and with a reason.
        if code == 125 and out == b"" and b"err\n" not in err and err.startswith(b"nrg"):
            return []
        return [f"{what}: code {code}, {out!r}, {err[-600:]!r}"]


if __name__ == "__main__":
    unittest.main()
