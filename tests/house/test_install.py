"""make install: the files, the pkg-config file, exported symbols, needed libraries, man pages and completion."""
import contextlib
import os
import pty
import re
import select
import shutil
import sqlite3
import tempfile
import time
import unittest

import house

# Marks without a recorder, says the version of header and library, and records itself.
USER = r"""
#include <nrg/nrg.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    uint32_t decode = nrg_name_intern("decode", "step", NULL);
    nrg_span_begin_name(decode);
    nrg_span_end();
    printf("%s %s %d.%d.%d\n", nrg_version(), NRG_VERSION, NRG_VERSION_NUMBER / 1000000,
           NRG_VERSION_NUMBER / 1000 % 1000, NRG_VERSION_PATCH);
    if (nrg_recorder_start(argv[argc - 1]))
        return puts(nrg_recorder_reason()), 1;
    nrg_span_begin_name(decode);
    nrg_span_end();
    return nrg_recorder_stop() ? 1 : puts("marked") < 0;
}
"""
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
        self.assertEqual([f for f in flags if f.startswith("-l")], ["-lnrg"])
        source = self.file("user.c", USER)
        program = self.file("user")
        self.run_ok("cc", "-Wall", "-Werror", source, "-o", program, *flags)
        self.assertEqual(self.needed(program), {"libnrg.so.0", "libc.so.6"})
        recording = self.file("user.nrg")
        done = self.run_ok(program, recording, env=dict(os.environ, LD_LIBRARY_PATH=library), cwd=self.folder)
        version = self.run_ok("pkg-config", "--modversion", "nrg", env=env).stdout.strip()
        self.assertEqual(done.stdout.split(), [version, version, version, "marked"])
        with contextlib.closing(sqlite3.connect(recording)) as database:
            self.assertEqual(database.execute("SELECT kind, name FROM span_name").fetchall(), [("step", "decode")])

    def needed(self, path):
        self.need("readelf")
        return set(re.findall(r"\(NEEDED\).*\[(.*)\]", self.run_ok("readelf", "-d", path).stdout))

    def test_a_marked_program_needs_libc_alone(self):
        self.assertEqual(self.needed(os.path.realpath(self.find("libnrg.so"))), {"libc.so.6"})
        self.assertIn("libsqlite3.so.0", self.needed(self.find("libnrg-recorder.so")))

    def test_the_header_is_c_plus_plus_too(self):
        self.need("g++")
        include = os.path.dirname(os.path.dirname(self.find("nrg.h")))
        source = self.file("user.cc", '#include <nrg/nrg.h>\nconst char *f() { return nrg_version(); }\n')
        self.run_ok("g++", "-Wall", "-Werror", "-I" + include, "-c", source, "-o", self.file("user.o"))

    def test_the_library_exports_what_the_header_declares(self):
        self.need("nm")
        header = re.sub(r"/\*.*?\*/|^#.*?(?<!\\)$", "", house.text("include/nrg/nrg.h"), flags=re.S | re.M)
        declared = sorted(re.findall(r"\b(nrg_\w+)\s*\(", header))
        table = self.run_ok("nm", "-D", "--defined-only", os.path.realpath(self.find("libnrg.so"))).stdout
        exported = sorted(re.findall(r" [^A] (\S+)@@NRG_0$", table, re.M))
        self.assertGreater(len(declared), 20)
        self.assertEqual(exported, declared)
        self.assertEqual(len(table.splitlines()), len(declared) + 1, "besides the name of the version")

    def test_the_debian_package_lists_every_symbol(self):
        exported = re.findall(r"^\s+(nrg_\w+);", house.text("src/libnrg.map"), re.M)
        listed = re.findall(r"^ (nrg_\w+)@NRG_0 ", house.text("debian/libnrg0.symbols"), re.M)
        self.assertEqual(listed, sorted(exported))

    def test_the_debian_package_has_our_version(self):
        version = self.run_ok(os.path.join(PLAIN, "nrg"), "--version").stdout.split()[1]
        self.assertRegex(house.text("debian/changelog").splitlines()[0], r"^nrg \(%s(-\d+)?\) " % re.escape(version))

    def test_the_recorder_exports_its_table_alone(self):
        self.need("nm")
        table = self.run_ok("nm", "-D", "--defined-only", self.find("libnrg-recorder.so")).stdout
        self.assertEqual([line.split()[-1] for line in table.splitlines()], ["nrg_inprocess"])

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

    def test_bash_completes(self):
        self.need("bash")
        for folder, _, files in os.walk(self.tree):
            if folder.endswith("bash-completion/completions"):
                script = os.path.join(folder, files[0])
        done = self.run_ok("bash", "-c", f'source "{script}"; COMP_WORDS=(nrg ru) COMP_CWORD=1; _nrg; '
                           'echo "${COMPREPLY[@]}"; COMP_WORDS=(nrg run --rep) COMP_CWORD=2; _nrg; echo "${COMPREPLY[@]}"')
        self.assertEqual(done.stdout.split(), ["run", "--repeat"])

    def test_fish_completes(self):
        self.need("fish")
        script = self.find("nrg.fish")
        for typed, offered in (("nrg ru", ["run"]), ("nrg run --rep", ["--repeat"]), ("nrg meter wa", ["watch"]),
                               ("nrg help sens", ["sensors"]), ("nrg attribute --by ep", ["epoch"])):
            done = self.run_ok("fish", "--no-config", "-c", f'source "{script}"; complete -C "{typed}"',
                               env=dict(os.environ, HOME=self.folder))
            self.assertEqual([line.split("\t")[0] for line in done.stdout.splitlines()], offered, typed)

    def test_zsh_completes(self):
        self.need("zsh")
        folder = os.path.dirname(self.find("_nrg"))
        for typed, becomes in (("nrg ru", "nrg run "), ("nrg run --rep", "--repeat="), ("nrg meter wa", "watch "),
                               ("nrg attribute --by ep", "epoch"), ("nrg run -- ls --auth", "--author")):
            seen = self.typed_in_zsh(folder, typed, becomes)
            self.assertIn(becomes, seen, typed)
            self.assertNotIn("_nrg:", seen, "an error of the script")

    def typed_in_zsh(self, folder, typed, wanted):
        """What a terminal shows when a line is typed, and the tabulator key; until `wanted` is there or it takes too long."""
        child, terminal = pty.fork()
        if child == 0:
            os.execve(shutil.which("zsh"), ["zsh", "-f", "-i"], dict(os.environ, TERM="dumb", COLUMNS="200", HOME=self.folder))
        self.addCleanup(os.waitpid, child, 0)
        self.addCleanup(os.close, terminal)

        def read_until(mark):
            seen, end = "", time.monotonic() + 60
            while mark not in seen and time.monotonic() < end:
                try:
                    if select.select([terminal], [], [], 1)[0]:
                        seen += os.read(terminal, 4096).decode("utf-8", "replace")
                except OSError:  # it has ended
                    break
            return seen
        os.write(terminal, f"PS1=; fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -D; print REA\'\'DY\n".encode())
        read_until("READY")
        os.write(terminal, typed.encode() + b"\t")
        return read_until(wanted)


if __name__ == "__main__":
    unittest.main()
