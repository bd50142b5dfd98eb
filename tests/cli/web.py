"""What tests of the page and of exports for other profilers share: recordings of known power and spans, and node's packages."""
import fcntl
import functools
import os
import shutil
import subprocess

from spans_file import Spans, power_log
from support import TOP, Case, sanitizer_library

WEB = os.path.join(TOP, "web")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
# Not `npm ci`: it refuses a lock file that lacks packages of other platforms, which not every registry has.
INSTALL = ["npm", "install", "--no-save", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=60000"]


@functools.cache
def node_problem():
    """Why the web part can't be tested here; '' when it can. Installs what web/package-lock.json names."""
    if sanitizer_library():
        return "the plain build's run has it"
    if not shutil.which("node") or not shutil.which("npm"):
        return "node and npm are not here"
    with open(os.path.join(WEB, "package.json"), encoding="utf-8") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        return install()


def install():
    lock, there = os.path.join(WEB, "package-lock.json"), os.path.join(WEB, "node_modules", ".package-lock.json")
    if not os.path.exists(there) or os.path.getmtime(there) < os.path.getmtime(lock):
        done = subprocess.run(INSTALL, cwd=WEB, capture_output=True, text=True)
        if done.returncode:
            return f"npm install failed: {done.stderr.strip().splitlines()[-1:]}"
        os.utime(there)
    return ""


class MadeCase(Case):
    def imported(self, powers, period_s=0.01, name="run.nrg"):
        path = self.path(name)
        log = self.write("power.log", power_log(powers, period_s))
        done = self.nrg("import", "-q", "-f", "-o", path, log)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def steps(self, path, names=("a", "b"), n=5, length=0.4):
        spans = Spans()
        for i in range(n):
            at, part = length * i, length / len(names)
            spans.span(at, at + length, "step", "step", number=i, inside=[
                dict(begin_s=at + k * part, end_s=at + (k + 1) * part, text=text, kind="module", detail="Linear") for k, text in enumerate(names)])
        spans.write(path)
        return path
