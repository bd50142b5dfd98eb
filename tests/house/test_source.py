"""Format, file heads and other rules of the house that a machine can check."""
import re
import unittest

import house


class Source(house.Case):
    def test_clang_format(self):
        self.need("clang-format")
        files = house.tracked_files("*.c", "*.h")
        self.assertGreater(len(files), 50)
        done = house.run("clang-format", "--dry-run", "-Werror", *files, cwd=house.SOURCE)
        self.assertEqual(done.returncode, 0, "run make format\n" + done.stderr[:3000])

    def test_every_c_file_opens_with_a_comment(self):
        for name in house.tracked_files("*.c", "*.h"):
            if name.startswith(("src/", "include/", "firmware/")):
                with self.subTest(name):
                    self.assertTrue(house.text(name).startswith("/*"), name)

    def test_the_environment_is_read_as_for_a_privileged_program(self):
        """Code that is put into other programs, sensors and nrgd: whoever starts them with more rights than his own chooses nothing there."""
        plain = re.compile(r"(?<!secure_)\bgetenv\(")
        names = [n for n in house.tracked_files("*.c", "*.h") if n.startswith(("src/", "python/", "daemon/")) and not n.startswith("src/cli/")]
        self.assertGreater(len(names), 50)
        for name in names:
            for number, line in enumerate(house.text(name).splitlines(), 1):
                self.assertIsNone(plain.search(line), f"{name}:{number}: secure_getenv, please: {line}")

    def test_no_registry_host_names_or_machine_paths(self):
        # In parts, so that this file does not hold what it forbids.
        bad = re.compile("|".join(["deb" + r"\.debian", "py" + r"pi\.org", "python" + "hosted",
                                   "/wo" + "rk/", "/ho" + "me/[a-z]"]))
        for name in house.tracked_files("*.c", "*.h", "*.py", "*.sh", "*.md", "Makefile", "*.build", "Dockerfile"):
            for number, line in enumerate(house.text(name).splitlines(), 1):
                self.assertIsNone(bad.search(line), f"{name}:{number}: {line}")

    def test_shell_scripts_parse(self):
        for name in house.tracked_files("*.sh") + [".ci/run"]:
            shell = "bash" if house.text(name).startswith("#!/bin/bash") else "sh"
            done = house.run(shell, "-n", house.path(name))
            self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
