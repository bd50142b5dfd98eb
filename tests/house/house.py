"""What the tests of this folder share: where things are, and running a program."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

SOURCE = os.environ.get("NRG_SOURCE") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("NRG_BUILD") or os.path.join(SOURCE, "build")
NRG = os.environ.get("NRG_BIN") or os.path.join(BUILD, "nrg")


def tool(variable, name):
    """By its full path, so that a test may start it with another PATH."""
    given = os.environ.get(variable) or "/usr/bin/" + name
    return shutil.which(given) or shutil.which(name) or given


PYTHON = tool("PYTHON", "python3")
MESON = tool("MESON", "meson")
NINJA = tool("NINJA", "ninja")


def path(*parts):
    return os.path.join(SOURCE, *parts)


def text(*parts):
    with open(path(*parts), encoding="utf-8") as file:
        return file.read()


def run(*command, timeout_s=300, **more):
    """Runs and returns the finished process; stdout and stderr are text."""
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s,
                          stdin=subprocess.DEVNULL, **more)


def blocks(document, language=None):
    """Fenced code blocks of a Markdown text: (info string, body)."""
    found = re.findall(r"^```([^\n]*)\n(.*?)^```\s*$", document, re.M | re.S)
    return [(info.strip(), body) for info, body in found
            if language is None or info.split()[:1] == [language]]


def tracked_files(*patterns):
    """Files of the project by pattern: from git where that works, else from the folder."""
    git = run("git", "-C", SOURCE, "ls-files", "--cached", "--others", "--exclude-standard", *patterns)
    if git.returncode == 0 and git.stdout.strip():
        return [name for name in git.stdout.split("\n") if name and os.path.exists(path(name))]
    import fnmatch
    names = []
    for folder, folders, files in os.walk(SOURCE):
        folders[:] = [f for f in folders if not f.startswith((".", "build"))]
        names += [os.path.relpath(os.path.join(folder, f), SOURCE) for f in files]
    return sorted(n for n in names if any(fnmatch.fnmatch(os.path.basename(n), p) for p in patterns))


class Case(unittest.TestCase):
    """With a folder of its own for each test, removed afterwards."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="nrg-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def file(self, name, content=None):
        full = os.path.join(self.folder, name)
        if content is not None:
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as out:
                out.write(content)
        return full

    def run_ok(self, *command, **more):
        done = run(*command, **more)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}\n{done.stderr}")
        return done

    def need(self, program):
        found = shutil.which(program)
        if not found:
            self.skipTest(f"{program} is not installed")
        return found
