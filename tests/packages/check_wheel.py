"""`make test-wheel`: the wheel that is given away. Built twice in different folders, it has the same bytes; auditwheel agrees
with its name; it is small; a user of a fresh Debian without compiler installs and uses it; so does one with PyTorch 2.

Minutes. What can't be had here (PyPI, root, a PyTorch) is skipped with the reason.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(SOURCE, "tests", "packages")
MOST_BYTES = 5e6
TORCH = os.environ.get("NRG_TORCH_PYTHON") or os.path.join(SOURCE, ".venv-torch2", "bin", "python")
TRAIN = """
import nrg, torch
net = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
for _ in range(50):
    net(torch.randn(32, 64)).sum().backward()
"""


def run(*command, **more):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL, **more)


def tree(folder):
    """A copy of what git knows, as it is now."""
    os.makedirs(folder)
    names = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=SOURCE).stdout.split("\n")
    for name in names:
        if name and os.path.isfile(os.path.join(SOURCE, name)):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            shutil.copy2(os.path.join(SOURCE, name), os.path.join(folder, name))
    return folder


class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="nrg-wheels-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.venvs = os.path.join(SOURCE, ".venv-wheel")
        os.makedirs(cls.venvs, exist_ok=True)
        cls.wheels = [cls.build("a"), cls.build("another/much/deeper-folder")]

    @classmethod
    def build(cls, name):
        """The compiler is fetched once, for all of them."""
        source = tree(os.path.join(cls.folder, name))
        os.symlink(cls.venvs, os.path.join(source, ".venv-wheel"))
        out = os.path.join(source, "dist")
        done = run(sys.executable, os.path.join(source, "tools", "wheel"), out, cwd="/")
        found = glob.glob(os.path.join(out, "*.whl"))
        if done.returncode or not found:
            raise AssertionError(done.stdout[-3000:])
        return found[0]

    def ok(self, *command, **more):
        done = run(*command, **more)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_the_same_commit_gives_the_same_bytes(self):
        self.assertEqual(*[os.path.basename(wheel) for wheel in self.wheels])
        with open(self.wheels[0], "rb") as one, open(self.wheels[1], "rb") as two:
            self.assertTrue(one.read() == two.read(), "the wheels differ")

    def test_it_is_small(self):
        self.assertLess(os.path.getsize(self.wheels[0]), MOST_BYTES)

    def test_it_is_hardened(self):
        print("# " + self.ok(os.path.join(SOURCE, "tools", "hardening"), self.wheels[0]).strip().replace("\n", "\n# "))

    def test_the_bill_says_what_the_program_says(self):
        """With the patch level of the distribution that the archives came from."""
        with zipfile.ZipFile(self.wheels[0]) as wheel:
            folder = os.path.join(self.folder, "program")
            program = wheel.extract("nrg/bin/nrg", folder)
            name = next(name for name in wheel.namelist() if name.endswith(".dist-info/sboms/nrg.cdx.json"))
            parts = {part["name"]: part for part in json.loads(wheel.read(name))["components"]}
        os.chmod(program, 0o755)
        for line in self.ok(program, "--version", "-v").splitlines()[1:]:
            library, version, how, package = line.split(None, 3)
            self.assertEqual((how, parts[library]["version"]), ("bundled,", version))
            self.assertEqual({entry["name"]: entry["value"] for entry in parts[library]["properties"]},
                             {"nrg:linkage": "bundled", "nrg:package": package})

    def test_auditwheel_agrees(self):
        venv = os.path.join(self.venvs, "audit")
        if run(sys.executable, "-m", "venv", venv).returncode or run(
                os.path.join(venv, "bin", "pip"), "install", "--quiet", "--retries", "1", "auditwheel").returncode:
            self.skipTest("auditwheel can't be had from PyPI")
        said = " ".join(self.ok(os.path.join(venv, "bin", "auditwheel"), "show", self.wheels[0]).split())
        tag = os.path.basename(self.wheels[0])[:-len(".whl")].split("-")[-1]
        self.assertIn('is consistent with the following platform tag: "%s"' % tag, said)

    def test_a_fresh_system_without_compiler(self):
        done = run(os.path.join(HERE, "fresh.sh"), "python3,python3-venv", os.path.join(HERE, "inside_wheel.sh"),
                   os.path.dirname(self.wheels[0]))
        if done.returncode == 77:
            self.skipTest(done.stdout.strip().splitlines()[-1])
        self.assertEqual(done.returncode, 0, done.stdout)
        print("# " + done.stdout.strip().replace("\n", "\n# "))

    def test_with_pytorch_2(self):
        if not os.path.exists(TORCH):
            self.skipTest("no environment with PyTorch (make test-torch2 makes one)")
        site = self.ok(TORCH, "-c", "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))").strip()
        venv = os.path.join(self.folder, "venv")
        self.ok(TORCH, "-m", "venv", venv)
        python = os.path.join(venv, "bin", "python")
        own = self.ok(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
        with open(os.path.join(own, "torch.pth"), "w", encoding="utf-8") as out:
            out.write(site + "\n")
        self.ok(python, "-m", "pip", "install", "--quiet", "--no-index", self.wheels[0])
        with open(os.path.join(self.folder, "train.py"), "w", encoding="utf-8") as out:
            out.write(TRAIN)
        nrg = os.path.join(venv, "bin", "nrg")
        self.ok(nrg, "run", "--torch", "--force", "-o", "t.nrg", "--", python, "train.py", cwd=self.folder)
        self.assertIn("Linear", self.ok(nrg, "attribute", "--by", "module", "t.nrg", cwd=self.folder))
        out = self.ok(python, "-c", "import nrg, torch\nnet = torch.nn.Linear(8, 8)\nnrg.torch.watch(net)\n"
                      "with nrg.record('w.nrg', overwrite=True) as run:\n    net(torch.randn(4, 8))\n"
                      "print([row['name'] for row in run.table('path')])", cwd=self.folder)
        self.assertIn("Linear", out)


if __name__ == "__main__":
    unittest.main()
