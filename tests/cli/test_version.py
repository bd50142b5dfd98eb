"""nrg --version, and the libraries that it works with: by their own word, and where they are."""
import ctypes
import os
import re
import unittest

from support import *


class Version(Case):
    def lines(self, *arguments, **more):
        done = self.nrg(*arguments, **more)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode().splitlines()

    def test_one_line(self):
        self.assertRegex(self.lines("--version")[0], r"^nrg \d+\.\d+\.\d+$")
        self.assertEqual(self.lines("--version"), self.lines("version"))
        self.assertEqual(len(self.lines("--version")), 1)

    def test_libraries_and_where_they_are(self):
        first, *rest = self.lines("--version", "-v")
        self.assertEqual([first, *rest], self.lines("--version", "--verbose"))
        self.assertEqual([first], self.lines("--version"))
        self.assertEqual([line.split()[0] for line in rest], ["sqlite", "zstd", "jansson", "zlib"])
        for line in rest:
            name, version, how, place = re.fullmatch(r"(\w+) +(\d+[\d.]+) +(bundled|dynamic),? ?(.*)", line).groups()
            if how == "dynamic":
                self.assertTrue(os.path.isfile(place), line)
                self.assertEqual(self.asked(name, place), version, "the library itself says another version")

    def asked(self, name, path):
        function = {"sqlite": "sqlite3_libversion", "zstd": "ZSTD_versionString", "jansson": "jansson_version_str",
                    "zlib": "zlibVersion"}[name]
        ask = getattr(ctypes.CDLL(path), function)
        ask.restype = ctypes.c_char_p
        return ask().decode()

    def test_another_word_is_refused(self):
        for words in (["--version", "x"], ["--version", "-v", "-v"], ["version", "--json"]):
            done = self.nrg(*words)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.one_line(done.stderr)


if __name__ == "__main__":
    unittest.main()
