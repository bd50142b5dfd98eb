"""What the tests of the Python package share: running Python with the package, and what it called.

The package is taken from NRG_BUILD/python (default build/python). With `log`, libnrg is one that
writes down its calls (span_log.c); without, it is the real one of the build. Every program runs in
a process of its own, because libnrg's state is the process's.
"""
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("NRG_BUILD") or os.path.join(TOP, "build"))
NRG = os.path.abspath(os.environ.get("NRG_BIN") or os.path.join(BUILD, "nrg"))
PACKAGE = os.path.join(BUILD, "python")
LOG_LIBRARY = os.path.join(BUILD, "tests", "libspan-log.so")
EMULATOR = os.path.join(BUILD, "tests", "rapl-emulator")
PYTHON = os.environ.get("NRG_TEST_PYTHON") or sys.executable
LIMIT_S = 120  # ends a hang; never a measure of speed


def built():
    return os.path.exists(os.path.join(PACKAGE, "nrg", "_nrg.abi3.so"))


class Case(unittest.TestCase):
    """A test with a folder of its own, where programs run."""

    def setUp(self):
        if not built():
            self.skipTest("the extension is not built (Debian: python3-dev)")
        self.folder = tempfile.mkdtemp(prefix="nrg-python-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.log = self.path("calls.log")

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, content):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(textwrap.dedent(content))
        return self.path(name)

    def env(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NRG_", "PYTHON"))}
        env.update(PYTHONPATH=PACKAGE, PYTHONDONTWRITEBYTECODE="1", NRG_BIN=NRG)
        env.update(more)
        return {k: v for k, v in env.items() if v is not None}

    def run_process(self, *command, **kw):
        kw.setdefault("env", self.env())
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL, cwd=self.folder, timeout=LIMIT_S, **kw)

    def python(self, program, code=0, python=PYTHON, **env):
        """Runs a program text with the real library; returns the finished process."""
        script = self.write("program.py", program)
        done = self.run_process(python, script, env=self.env(**env))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertNotIn("Sanitizer", done.stderr)
        return done

    def logged(self, program, active=True, **env):
        """Runs a program text with the library that logs; returns its calls and the process."""
        if active:
            env["NRG_SPAN_LOG_ACTIVE"] = "1"
        done = self.python(program, NRG_LIBRARY=LOG_LIBRARY, NRG_SPAN_LOG=self.log, **env)
        return self.calls(), done

    def calls(self):
        """[(depth, call, argument, ...)] in order."""
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines]
        os.unlink(self.log)
        return [(int(row[0]), *row[1:]) for row in rows]


def tree(calls):
    """Begins and marks as 'depth name' texts, which show the nesting."""
    return ["%s%s" % ("  " * c[0], c[2]) for c in calls if c[1] in ("begin", "mark", "count")]


def balanced(calls):
    """True when every begin has its end."""
    return sum({"begin": 1, "end": -1}.get(c[1], 0) for c in calls) == 0
