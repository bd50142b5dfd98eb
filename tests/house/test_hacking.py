"""HACKING.md's recipes, built and run from their own text in a copy of the project."""
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

import house


def apply(tree, document):
    """Writes the blocks that name a file into the tree: whole files, or lines before an anchor."""
    done = []
    for info, body in house.blocks(document):
        match = re.match(r'\w+ file=(\S+)(?: before="([^"]+)")?$', info)
        if not match:
            continue
        path = os.path.join(tree, match[1])
        if match[2]:
            with open(path, encoding="utf-8") as text:
                lines = text.readlines()
            at = next((i for i, line in enumerate(lines) if match[2] in line), None)
            assert at is not None, f"HACKING.md: {match[1]} has no line with {match[2]}"
            body = "".join(lines[:at]) + body + "".join(lines[at:])
        else:
            assert not os.path.exists(path), f"{match[1]} exists in the project"
        with open(path, "w", encoding="utf-8") as out:
            out.write(body)
        done.append(match[1])
    return done


class Recipes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tree = tempfile.mkdtemp(prefix="nrg-hacking-")
        for name in house.tracked_files("*"):
            target = os.path.join(cls.tree, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(house.path(name), target)
        cls.applied = apply(cls.tree, house.text("HACKING.md"))
        cls.build = os.path.join(cls.tree, "build")
        cls.setup = house.run(house.MESON, "setup", "--werror", "--buildtype=plain", cls.build, cls.tree)
        cls.made = house.run(house.NINJA, "-C", cls.build, "nrg", "layers.ok", "tests/test_outlet",
                             "docs/nrg-runs.1", timeout_s=500)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.tree, ignore_errors=True)

    def nrg(self, *arguments):
        done = house.run(os.path.join(self.build, "nrg"), *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_builds_without_a_warning(self):
        self.assertGreaterEqual(len(self.applied), 10)
        self.assertEqual(self.setup.returncode, 0, self.setup.stdout[-3000:])
        self.assertEqual(self.made.returncode, 0, self.made.stdout[-6000:])

    def test_new_files_are_formatted(self):
        if not shutil.which("clang-format"):
            self.skipTest("clang-format is not installed")
        files = [f for f in self.applied if f.endswith((".c", ".h"))]
        done = house.run("clang-format", "--dry-run", "-Werror", *files, cwd=self.tree)
        self.assertEqual(done.returncode, 0, done.stderr[:3000])

    def test_driver_is_probed(self):
        root = os.path.join(self.tree, "root")
        os.makedirs(root + "/sys/class/outlet/a")
        with open(root + "/sys/class/outlet/a/energy_uj", "w", encoding="utf-8") as out:
            out.write("42\n")
        sensors = json.loads(self.nrg("sensors", "--root", root, "--json"))
        wall = [c for c in sensors["channels"] if c["name"] == "wall"]
        self.assertEqual([(c["driver"], c["sensor"], c["used"]) for c in wall], [("outlet", "a", True)])

    def test_unit_test_passes(self):
        done = house.run(os.path.join(self.build, "tests", "test_outlet"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_command_works(self):
        recording = os.path.join(self.tree, "r.nrg")
        self.nrg("run", "-q", "-o", recording, "--", "true")
        self.assertRegex(self.nrg("runs", recording), r"^run 0\.\d{3} s\n$")
        self.assertIn("runs", self.nrg("help"))
        with open(os.path.join(self.build, "docs", "nrg-runs.1"), encoding="utf-8") as page:
            self.assertIn("also the baseline", page.read())

    def test_scenario_is_judged(self):
        if not importlib.util.find_spec("numpy"):
            self.skipTest("numpy is not installed")
        judge = os.path.join(self.tree, "tests/truth/third/judge")
        done = house.run(sys.executable, judge, "turbo", "freq", "--seeds", "1", "--set", "run_s=5", "--nrg", os.path.join(self.build, "nrg"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()], ["freq", "turbo"])

    def test_forbidden_include_fails_the_build(self):
        path = os.path.join(self.tree, "src/base/clock.c")
        with open(path, encoding="utf-8") as text:
            good = text.read()
        try:
            with open(path, "w", encoding="utf-8") as out:
                out.write(good.replace("#include", '#include "sensors/driver.h"\n#include', 1))
            done = house.run(house.NINJA, "-C", self.build, "layers.ok")
        finally:
            with open(path, "w", encoding="utf-8") as out:
                out.write(good)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"base/clock\.c:\d+: layering")


if __name__ == "__main__":
    unittest.main()
