"""tools/sbom.py: what a package of this build's program would say that it works with. The wheel's bill is test_pip.py's."""
import json
import os
import shutil
import unittest

import bill
import house

TOOL = house.path("tools", "sbom.py")
APT_CACHE = """#!/bin/sh
echo "$2:"
echo "  Installed: 1.0-1"
[ "$2" = libzstd-dev ] && echo "  Candidate: 1.0-1+deb12u1" || echo "  Candidate: 1.0-1"
"""


class Bills(house.Case):
    def setUp(self):
        super().setUp()
        self.need("readelf")

    def deb(self, program, **more):
        folder = os.path.join(self.folder, "package", "usr", "bin")
        os.makedirs(folder, exist_ok=True)
        shutil.copy2(program, folder)
        env = {k: v for k, v in os.environ.items() if k != "SOURCE_DATE_EPOCH"}
        return self.run_ok(house.PYTHON, TOOL, "--deb", "nrg", os.path.join(self.folder, "package"), env=dict(env, **more)).stdout

    def test_what_the_program_works_with(self):
        self.need("dpkg-query")
        parts = bill.check(self, json.loads(self.deb(house.NRG)))
        self.assertEqual({name: bill.linkage(part) for name, part in parts.items()},
                         {"sqlite": "dynamic", "zstd": "dynamic", "jansson": "dynamic", "zlib": "dynamic, loaded when needed",
                          "glibc": "dynamic"})
        told = dict(line.split()[:2] for line in self.run_ok(house.NRG, "--version", "-v").stdout.splitlines()[1:])
        self.assertEqual({name: parts[name]["version"] for name in told}, told, "the libraries say otherwise")
        zlib = self.run_ok("dpkg-query", "-W", "-f", "${Version}", "zlib1g").stdout
        self.assertIn({"name": "nrg:package", "value": "zlib1g " + zlib}, parts["zlib"]["properties"], "with Debian's patches")

    def test_a_program_that_needs_libc_alone(self):
        self.need("dpkg-query")
        parts = bill.check(self, json.loads(self.deb(os.path.join(house.BUILD, "daemon", "nrgd"))))
        self.assertEqual(list(parts), ["glibc"])

    def test_the_same_bytes_whenever_it_is_made(self):
        one, two = self.deb(house.NRG, SOURCE_DATE_EPOCH="1700000000"), self.deb(house.NRG, SOURCE_DATE_EPOCH="1700000000")
        self.assertEqual(one, two)
        self.assertEqual(json.loads(one)["metadata"]["timestamp"], "2023-11-14T22:13:20Z")
        self.assertNotIn("timestamp", json.loads(self.deb(house.NRG))["metadata"])

    def test_packages_that_apt_has_newer(self):
        program = self.file("bin/apt-cache", APT_CACHE)
        os.chmod(program, 0o755)
        env = dict(os.environ, PATH=os.path.dirname(program) + ":" + os.environ["PATH"])
        done = house.run(house.PYTHON, TOOL, "--stale", env=env)
        self.assertEqual((done.returncode, done.stderr), (1, "libzstd-dev is 1.0-1 here, apt has 1.0-1+deb12u1: upgrade it and build again\n"))
        done = house.run(house.PYTHON, TOOL, "--stale", env=dict(os.environ, PATH="/nowhere"))
        self.assertEqual((done.returncode, done.stderr), (0, ""), "a system without apt")

    def test_a_system_without_dpkg(self):
        """Its own versions, and no package."""
        for name in ("readelf", "pkg-config"):
            os.makedirs(self.file("bin"), exist_ok=True)
            os.symlink(self.need(name), self.file("bin/" + name))
        parts = bill.check(self, json.loads(self.deb(house.NRG, PATH=self.file("bin"))))
        self.assertEqual(parts["sqlite"]["purl"], "pkg:generic/sqlite@" + parts["sqlite"]["version"])


if __name__ == "__main__":
    unittest.main()
