"""pip install .: offline, into an environment of its own, with library and program in the wheel."""
import os
import shutil
import tempfile
import unittest

import house


class Pip(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="nrg-pip-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.bin = os.path.join(cls.folder, "venv", "bin")
        if house.run(house.PYTHON, "-m", "venv", os.path.dirname(cls.bin)).returncode:
            raise unittest.SkipTest("no virtual environment (Debian: python3-venv)")
        if not os.path.exists(os.path.join(house.BUILD, "python", "nrg", "_nrg.abi3.so")):
            raise unittest.SkipTest("the extension can't be built (Debian: python3-dev)")
        cls.env = {k: v for k, v in os.environ.items() if not k.startswith(("NRG_", "PYTHON", "PIP_"))}
        cls.env.update(NRG_MESON_OPTIONS="-Doptimization=0", PYTHONDONTWRITEBYTECODE="1")
        cls.done = house.run(os.path.join(cls.bin, "pip"), "install", "--no-index", "--no-cache-dir",
                             house.SOURCE, env=cls.env, timeout_s=500)

    def run_ok(self, *command):
        self.assertEqual(self.done.returncode, 0, (self.done.stdout + self.done.stderr)[-3000:])
        done = house.run(*command, env=self.env, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_the_package_brings_its_own_library(self):
        out = self.run_ok(os.path.join(self.bin, "python"), "-c",
                          "import nrg; print(nrg._nrg.library(), nrg._program.find(), sep='\\n')").split()
        for path in out:
            self.assertTrue(path.startswith(self.folder), path)

    def test_the_recorder_is_found_beside_the_library(self):
        self.run_ok(os.path.join(self.bin, "python"), "-c",
                    "import nrg; nrg._nrg.start('pip.nrg', 10, 'machine', None, False); nrg._nrg.stop()")
        self.assertTrue(os.path.exists(os.path.join(self.folder, "pip.nrg")))

    def test_the_program_runs(self):
        version = self.run_ok(house.NRG, "--version")
        self.assertEqual(self.run_ok(os.path.join(self.bin, "nrg"), "--version"), version)
        self.assertEqual(self.run_ok(os.path.join(self.bin, "python"), "-m", "nrg", "--version"), version)

    def test_z_it_goes_without_a_trace(self):
        """The last one: by its name."""
        self.run_ok(os.path.join(self.bin, "pip"), "uninstall", "-y", "nrg")
        self.assertFalse(os.path.exists(os.path.join(self.bin, "nrg")))
        left = [f for f, _, files in os.walk(os.path.dirname(self.bin)) if os.path.basename(f) == "nrg" and files]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
