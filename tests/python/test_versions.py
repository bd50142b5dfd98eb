"""One extension file for every CPython from 3.8 on: tried with those that are installed."""
import glob
import os
import shutil
import unittest

from support import Case, LOG_LIBRARY, balanced

PROGRAM = """
import asyncio, sys, nrg, nrg.keras
assert nrg._nrg.library(), nrg._nrg.reason()
with nrg.span("outer", kind="phase"):
    for i in range(3):
        with nrg.span("step", kind="step", number=i):
            nrg.count("samples", 4)
@nrg.span("f")
def f(x, *, y):
    return x + y
@nrg.span("g")
async def g():
    await asyncio.sleep(0)
    return f(1, y=2)
print(asyncio.run(g()))
with nrg.record("run.nrg"):
    nrg.mark("inside")
"""


def interpreters():
    """{version: path} of what PATH and pyenv have, from 3.8 on."""
    found = {}
    for minor in range(8, 20):
        names = glob.glob(os.path.expanduser("~/.pyenv/versions/3.%d.*/bin/python3" % minor))
        path = shutil.which("python3.%d" % minor)
        for candidate in names + ([path] if path and "shims" not in path else []):
            found["3.%d" % minor] = candidate
    return found


class Versions(Case):
    def test_every_interpreter(self):
        tried = interpreters()
        self.assertTrue(tried)
        for version, python in sorted(tried.items()):
            with self.subTest(version):
                done = self.python(PROGRAM, python=python, NRG_LIBRARY=LOG_LIBRARY, NRG_SPAN_LOG=self.log,
                                   NRG_SPAN_LOG_ACTIVE="1", PYTHONWARNINGS="ignore")
                self.assertEqual(done.stdout, "3\n")
                calls = self.calls()
                self.assertTrue(balanced(calls))
                self.assertEqual([c[5] for c in calls if c[1] == "begin" and c[2] == "step"], ["0", "1", "2"])

    def test_the_sources_are_of_3_8(self):
        oldest = interpreters().get("3.8")
        if not oldest:
            self.skipTest("there is no Python 3.8")
        done = self.python("""
            import glob, os, nrg
            for path in glob.glob(os.path.join(os.path.dirname(nrg.__file__), "**", "*.py"), recursive=True):
                with open(path, encoding="utf-8") as text:
                    compile(text.read(), path, "exec")
        """, python=oldest)
        self.assertEqual(done.stderr, "")


if __name__ == "__main__":
    unittest.main()
