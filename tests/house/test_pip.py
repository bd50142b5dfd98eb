"""
What pip gets: a source archive, the wheel that comes out of it, and what an empty environment then has. One build
serves all tests; it is not optimized. tests/packages/check_wheel.py looks at the wheel that is given away.
"""
import base64
import glob
import hashlib
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile
import unittest
import zipfile

import bill
import house

sys.path.insert(0, house.path("python"))
sys.dont_write_bytecode = True
import build_backend  # noqa: E402

TORCH = house.run(house.PYTHON, "-c", "import torch").returncode == 0


def has_archive(library):
    """As the linker looks for it; it gives the name back when there is none."""
    return os.path.isabs(house.run("cc", f"-print-file-name={library}.a").stdout.strip())


STATIC = all(has_archive(name) for name in ("libsqlite3", "libzstd", "libjansson", "libz"))
PROGRAM = """
import nrg, sys
with nrg.record(sys.argv[1]) as run:
    with nrg.span("work", kind="step"):
        sum(i * i for i in range(300000))
print([row["name"] for row in run.table("path")], run.energy().provenance)
"""


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
        if house.run("git", "-C", house.SOURCE, "ls-files").returncode:
            raise unittest.SkipTest("a source archive is made from git's list of files")
        cls.env = {k: v for k, v in os.environ.items() if not k.startswith(("NRG_", "PYTHON", "PIP_"))}
        cls.env.update(NRG_MESON_OPTIONS="-Doptimization=0", PYTHONDONTWRITEBYTECODE="1", SOURCE_DATE_EPOCH="1700000000")
        cls.sdist = os.path.join(cls.folder, build_backend.build_sdist(cls.folder))
        cls.made = cls.pip("wheel", "--no-index", "--no-deps", "--no-cache-dir", "-w", cls.folder, cls.sdist)
        cls.wheel = (glob.glob(os.path.join(cls.folder, "*.whl")) + [""])[0]
        cls.done = cls.pip("install", "--no-index", "--no-cache-dir", cls.wheel) if cls.wheel else cls.made

    @classmethod
    def pip(cls, *arguments):
        return house.run(os.path.join(cls.bin, "pip"), *arguments, env=cls.env, timeout_s=550)

    def setUp(self):
        self.assertTrue(self.wheel, (self.made.stdout + self.made.stderr)[-3000:])
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)

    def run_ok(self, *command, **more):
        done = house.run(*command, **{"env": self.env, "cwd": self.folder, **more})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_the_package_brings_its_own_library(self):
        out = self.run_ok(os.path.join(self.bin, "python"), "-c",
                          "import nrg; print(nrg._nrg.library(), nrg._program.find(), sep='\\n')").split()
        for path in out:
            self.assertTrue(path.startswith(self.folder), path)

    def test_a_program_records_itself(self):
        out = self.run_ok(os.path.join(self.bin, "python"), "-c", PROGRAM, "pip.nrg")
        self.assertRegex(out, r"^\['work'\] (measured|estimated|derived)\n$")

    def test_the_program_runs(self):
        version = self.run_ok(house.NRG, "--version")
        self.assertEqual(self.run_ok(os.path.join(self.bin, "nrg"), "--version"), version)
        self.assertEqual(self.run_ok(os.path.join(self.bin, "python"), "-m", "nrg", "--version"), version)

    def test_the_demo_runs(self):
        env = dict(self.env, NRG_BIN=os.path.join(self.bin, "nrg"), NRG_DEMO_RECORDING=os.path.join(self.folder, "demo.nrg"),
                   NRG_DEMO_ARGS="--epochs 1 --samples 256" if TORCH else "1 1", PYTHON=house.PYTHON)
        out = self.run_ok("sh", house.path("examples/demo.sh"), env=env)
        self.assertIn("demo.html", out)
        if TORCH:  # Debian's interpreter, which does not have the package: what is injected comes from the environment
            self.assertRegex(out, r"Conv2d")

    def test_man_pages_and_completion_come_with_it(self):
        share = os.path.join(os.path.dirname(self.bin), "share")
        for name in ("man/man1/nrg.1", "man/man1/nrg-run.1", "bash-completion/completions/nrg", "zsh/site-functions/_nrg",
                     "fish/vendor_completions.d/nrg.fish"):
            self.assertTrue(os.path.exists(os.path.join(share, name)), name)

    def test_the_wheel_is_as_its_record_says(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            record = next(name for name in wheel.namelist() if name.endswith("/RECORD"))
            lines = [line.rsplit(",", 2) for line in wheel.read(record).decode().splitlines()]
            self.assertEqual([line[0] for line in lines], wheel.namelist())
            for name, digest, size in lines[:-1]:
                content = wheel.read(name)
                own = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                self.assertEqual((digest, int(size)), ("sha256=" + own, len(content)), name)
            self.assertEqual({entry.date_time for entry in wheel.infolist()}, {(2023, 11, 14, 22, 13, 20)})

    def test_nothing_says_where_it_was_built(self):
        """With what is above, the same commit gives the same bytes: check_wheel.py builds it twice."""
        with zipfile.ZipFile(self.wheel) as wheel:
            programs = [name for name in wheel.namelist() if wheel.read(name).startswith(b"\x7fELF")]
            self.assertEqual(len(programs), 5)
            for name in programs:
                for folder in (b"/nrg-wheel-", b"/pip-", b"/python3", house.SOURCE.encode()):
                    self.assertNotIn(folder, wheel.read(name), name)

    def test_what_it_links_is_inside(self):
        if not STATIC:
            self.skipTest("this system has no archives of the libraries")
        self.assertRegex(os.path.basename(self.wheel), r"^nrg-[\d.]+-cp38-abi3-manylinux_2_\d+_\w+\.whl$")
        site = os.path.dirname(os.path.dirname(self.run_ok(os.path.join(self.bin, "python"), "-c",
                                                            "import nrg; print(nrg.__file__)").strip()))
        glibc = int(re.search(r"manylinux_2_(\d+)", self.wheel)[1])
        for name in ("bin/nrg", "libnrg.so.0", "libnrg-recorder.so", "libnrg-inject.so", "_nrg.abi3.so"):
            listing = self.run_ok("readelf", "-d", "-V", "-W", os.path.join(site, "nrg", name))
            self.assertLessEqual(set(re.findall(r"\[(lib.*)\.so", listing)) - {"libnrg"},
                                 {"libc", "libm", "libdl", "libpthread"}, name)
            self.assertLessEqual(max(int(m) for m in re.findall(r"GLIBC_2\.(\d+)", listing)), glibc, name)
        with zipfile.ZipFile(self.wheel) as wheel:
            licences = {os.path.basename(n) for n in wheel.namelist() if "/licenses/" in n}
            metadata = wheel.read(f"nrg-{build_backend._version()}.dist-info/METADATA").decode()
        self.assertEqual(licences, {"LICENSE", "sqlite3.txt", "zstd.txt", "jansson.txt", "zlib.txt"})
        self.assertEqual(licences, set(re.findall(r"^License-File: (.*)", metadata, re.M)))

    def test_it_is_hardened(self):
        """All but what wants optimization; tests/packages/check_wheel.py has the wheel that is given away."""
        self.run_ok(house.PYTHON, house.path("tools", "hardening"), "--without", "fortify", self.wheel)

    def test_the_bill_of_materials(self):
        with zipfile.ZipFile(self.wheel) as wheel:
            made = json.loads(wheel.read(f"nrg-{build_backend._version()}.dist-info/sboms/nrg.cdx.json"))
        parts = bill.check(self, made)
        told = [line.split(None, 3) for line in self.run_ok(os.path.join(self.bin, "nrg"), "--version", "-v").splitlines()[1:]]
        self.assertEqual({name: parts[name]["version"] for name, *_ in told}, {name: version for name, version, *_ in told})
        for name, _, how, place in told:
            self.assertEqual(bill.linkage(parts[name]).split(",")[0], how.rstrip(","))
            if STATIC:
                self.assertEqual(how, "bundled,")
                self.assertIn({"name": "nrg:package", "value": place}, parts[name]["properties"], "with the distribution's patches")

    def test_a_source_archive_of_a_source_archive_is_the_same(self):
        with tarfile.open(self.sdist) as archive:
            members = archive.getmembers()
            archive.extractall(os.path.join(self.folder, "unpacked"))
        self.assertEqual({(m.uid, m.uname, m.mtime) for m in members}, {(0, "", members[0].mtime)})
        tree = os.path.join(self.folder, "unpacked", os.path.basename(self.sdist)[:-len(".tar.gz")])
        again = os.path.join(self.folder, "again")
        os.makedirs(again)
        env = {k: v for k, v in self.env.items() if k != "SOURCE_DATE_EPOCH"}
        name = self.run_ok(house.PYTHON, os.path.join(tree, "python", "build_backend.py"), again, "sdist", env=env).strip()
        with open(self.sdist, "rb") as one, open(os.path.join(again, name), "rb") as two:
            self.assertTrue(one.read() == two.read(), "the bytes differ")

    def test_z_it_goes_without_a_trace(self):
        """The last one: by its name."""
        self.run_ok(os.path.join(self.bin, "pip"), "uninstall", "-y", "nrg")
        self.assertFalse(os.path.exists(os.path.join(self.bin, "nrg")))
        left = [os.path.join(f, n) for f, _, files in os.walk(os.path.dirname(self.bin)) for n in files if "nrg" in n]
        self.assertEqual(left, [])


if __name__ == "__main__":
    unittest.main()
