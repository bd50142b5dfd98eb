"""
Programs and libraries of this build are hardened (tools/hardening, by readelf), and the table says no where they are not.
The wheel's and the packages' are looked at where these are made: test_pip.py and tests/packages.
"""
import json
import os
import unittest

import house

TOOL = house.path("tools", "hardening")
PLAIN = os.environ.get("NRG_PLAIN_BUILD") or house.BUILD
MADE = ["nrg", "daemon/nrgd", "src/libnrg.so.0", "src/libnrg-recorder.so", "src/libnrg-inject.so", "python/nrg/_nrg.abi3.so"]
BARE = ["-U_FORTIFY_SOURCE", "-fno-stack-protector", "-fcf-protection=none", "-no-pie", "-Wl,-z,norelro", "-Wl,-z,lazy",
        "-Wl,-z,execstack", "-Wl,-rpath,/tmp/anybody"]
SOURCE = """
#include <stdio.h>
int main(int argc, char **argv)
{
    char text[16];
    snprintf(text, (size_t)argc, "%s", argv[0]);
    return puts(text) < 0;
}
""" + "".join(f"int f{i}(int x) {{ return x + {i}; }}\n" for i in range(100))


def option(name):
    with open(os.path.join(PLAIN, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as text:
        return next(o["value"] for o in json.load(text) if o["name"] == name)


class Hardening(house.Case):
    def setUp(self):
        super().setUp()
        self.need("readelf")

    def test_what_is_built_is_hardened(self):
        made = [os.path.realpath(os.path.join(PLAIN, name)) for name in MADE if os.path.exists(os.path.join(PLAIN, name))]
        self.assertGreaterEqual(len(made), 5)
        without = ["--without", "fortify"] if option("optimization") in ("0", "plain") else []
        done = self.run_ok(house.PYTHON, TOOL, *without, *made)
        print("# " + done.stdout.strip().replace("\n", "\n# "))
        self.assertEqual(len(done.stdout.splitlines()), len(made) + 1)

    def compiled(self, *arguments):
        self.need("cc")
        program = self.file("program")
        self.run_ok("cc", self.file("program.c", SOURCE), "-O2", "-o", program, *arguments)
        return house.run(house.PYTHON, TOOL, program)

    def test_a_bare_program_falls_short_in_every_column(self):
        if os.uname().machine != "x86_64":
            self.skipTest("the flags that take protection away are x86-64's")
        done = self.compiled(*BARE)
        self.assertEqual(done.returncode, 1, done.stdout)
        for fault in ("PIE no", "RELRO none", "NX no", "canary no", "fortify 0, ", "CET ", "RPATH /tmp/anybody"):
            self.assertIn(f"  program: {fault}", done.stderr)

    def test_places_of_libraries(self):
        for place, good in (("$ORIGIN/../lib", True), ("/usr/lib", True), ("", True), (self.folder, False), ("lib", False),
                            ("/nowhere/at/all", False)):
            done = self.compiled(*(["-Wl,-rpath," + place] if place else []))
            self.assertEqual("program: RPATH" not in done.stderr, good, (place, done.stdout, done.stderr))

    def test_what_is_no_program_is_said(self):
        done = house.run(house.PYTHON, TOOL, self.file("text", "no program"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("text: there is no program and no library in it", done.stderr)


if __name__ == "__main__":
    unittest.main()
