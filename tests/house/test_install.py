"""make install: the files, the pkg-config file, the symbol map, man pages and completion."""
import os
import re
import shutil
import tempfile
import unittest

import house

PLAIN = os.environ.get("NRG_PLAIN_BUILD") or house.BUILD


class Install(house.Case):
    @classmethod
    def setUpClass(cls):
        cls.tree = tempfile.mkdtemp(prefix="nrg-install-")
        cls.done = house.run(house.MESON, "install", "-C", PLAIN, "--no-rebuild",
                             env=dict(os.environ, DESTDIR=cls.tree))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.tree, ignore_errors=True)

    def find(self, name):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)
        for folder, _, files in os.walk(self.tree):
            if name in files:
                return os.path.join(folder, name)
        return self.fail(f"{name} is not installed")

    def commands(self):
        listed = re.findall(r"^  (\w+) ", self.run_ok(os.path.join(PLAIN, "nrg"), "help").stdout, re.M)
        self.assertIn("run", listed)
        return listed

    def test_a_c_program_finds_header_and_library_through_pkg_config(self):
        self.need("pkg-config")
        library = os.path.dirname(self.find("libnrg.so"))
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(library, "pkgconfig"),
                   PKG_CONFIG_SYSROOT_DIR=self.tree)
        flags = self.run_ok("pkg-config", "--cflags", "--libs", "nrg", env=env).stdout.split()
        self.assertNotIn("-lsqlite3", flags, "libraries of libnrg are private")
        source = self.file("user.c", '#include <nrg/nrg.h>\n#include <stdio.h>\n'
                           'int main(void) { return puts(nrg_version()) < 0; }\n')
        program = self.file("user")
        self.run_ok("cc", "-Wall", "-Werror", source, "-o", program, *flags)
        done = self.run_ok(program, env=dict(os.environ, LD_LIBRARY_PATH=library))
        version = self.run_ok("pkg-config", "--modversion", "nrg", env=env).stdout
        self.assertEqual(done.stdout, version)

    def test_the_header_is_c_plus_plus_too(self):
        self.need("g++")
        include = os.path.dirname(os.path.dirname(self.find("nrg.h")))
        source = self.file("user.cc", '#include <nrg/nrg.h>\nconst char *f() { return nrg_version(); }\n')
        self.run_ok("g++", "-Wall", "-Werror", "-I" + include, "-c", source, "-o", self.file("user.o"))

    def test_only_nrg_symbols_are_exported(self):
        self.need("objdump")
        table = self.run_ok("objdump", "-T", os.path.realpath(self.find("libnrg.so"))).stdout
        exported = re.findall(r"^[0-9a-f]+ [gw].{6} \S+\s+[0-9a-f]+\s+\(?(\S*?)\)?\s+(\S+)$", table, re.M)
        names = [(version, name) for version, name in exported if not name.startswith("NRG_")]
        self.assertGreater(len(names), 20)
        for version, name in names:
            self.assertTrue(name.startswith("nrg_"), name)
            self.assertIn(version, ("NRG_0", "NRG_PRIVATE"), name)
        self.assertIn(("NRG_0", "nrg_version"), names)

    def test_every_function_of_the_header_is_public_in_the_map(self):
        header = re.sub(r"/\*.*?\*/", "", house.text("include/nrg/nrg.h"), flags=re.S)
        stable = house.text("src/libnrg.map").split("NRG_PRIVATE {")[0]
        for name in re.findall(r"\b(nrg_\w+)\s*\(", header):
            self.assertRegex(stable, rf"\b{name};")

    def test_the_python_package_finds_its_library_and_program(self):
        if not os.path.exists(os.path.join(PLAIN, "python", "nrg", "_nrg.abi3.so")):
            self.skipTest("the extension is not built (Debian: python3-dev)")
        package = os.path.dirname(self.find("_nrg.abi3.so"))
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NRG_", "PYTHON"))}
        env.update(PYTHONPATH=os.path.dirname(package), PYTHONDONTWRITEBYTECODE="1", PATH="/nowhere")
        done = self.run_ok(house.PYTHON, "-c", "import nrg; print(nrg.__file__, nrg._nrg.library(), nrg._program.find(), sep='\\n')",
                           env=env, cwd=self.folder)
        init, library, program = (os.path.realpath(line) for line in done.stdout.splitlines())
        self.assertEqual(init, os.path.join(package, "__init__.py"))
        self.assertEqual(library, os.path.realpath(self.find("libnrg.so")))
        self.assertTrue(program.startswith(self.tree) and program.endswith("/bin/nrg"), program)

    def test_the_program_finds_what_it_injects_into_python(self):
        program = None
        for folder, _, files in os.walk(self.tree):
            if folder.endswith("/bin") and "nrg" in files:
                program = os.path.join(folder, "nrg")
        env = {k: v for k, v in os.environ.items() if not k.startswith(("NRG_", "PYTHON"))}
        env["LD_LIBRARY_PATH"] = os.path.dirname(self.find("libnrg.so"))
        done = self.run_ok(program, "run", "--quiet", "--torch", "-o", self.file("t.nrg"), "--", "sh", "-c",
                           "echo $PYTHONPATH", env=env)
        self.assertEqual(os.path.join(done.stdout.strip(), "sitecustomize.py"), self.find("sitecustomize.py"))
        self.assertEqual(done.stderr, "")
        package = os.path.dirname(done.stdout.strip())
        self.assertTrue(os.path.exists(os.path.join(package, "torch", "_calls.py")), package)

    def test_every_command_has_a_man_page(self):
        for name in self.commands():
            with open(self.find(f"nrg-{name}.1"), encoding="utf-8") as page:
                self.assertIn(".SH OPTIONS", page.read())
        with open(self.find("nrg.1"), encoding="utf-8") as page:
            text = page.read()
        for name in self.commands():
            self.assertIn(f"nrg\\-{name}", text)

    def test_man_pages_are_clean_roff(self):
        lint = next(((p, a) for p, a in (("mandoc", ["-T", "lint", "-W", "error"]),
                                         ("groff", ["-man", "-Tutf8", "-ww", "-z"]))
                     if shutil.which(p)), None)
        if not lint:
            self.skipTest("neither mandoc nor groff is installed")
        for name in ["nrg"] + ["nrg-" + c for c in self.commands()]:
            done = self.run_ok(lint[0], *lint[1], self.find(name + ".1"))
            self.assertEqual(done.stdout + done.stderr, "", name)

    def test_completion_completes(self):
        self.need("bash")
        for folder, _, files in os.walk(self.tree):
            if folder.endswith("bash-completion/completions"):
                script = os.path.join(folder, files[0])
        done = self.run_ok("bash", "-c", f'source "{script}"; COMP_WORDS=(nrg ru) COMP_CWORD=1; _nrg; '
                           'echo "${COMPREPLY[@]}"; COMP_WORDS=(nrg run --rep) COMP_CWORD=2; _nrg; echo "${COMPREPLY[@]}"')
        self.assertEqual(done.stdout.split(), ["run", "--repeat"])


if __name__ == "__main__":
    unittest.main()
