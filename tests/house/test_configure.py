"""tools/configure: a build folder is usable after whatever happened to it, and kept where it can be.

In a project of few lines with an optional library, whose pkg-config file the tests make and take
away. What it builds is a copy of a file, which needs no compiler and is configured faster.
"""
import json
import os
import shutil

import house

MESON_BUILD = """project('small')
optional = dependency('nrg-optional', required: false)
custom_target('all of it', input: 'small.c', output: optional.found() ? 'with' : 'without',
  command: ['cp', '@INPUT@', '@OUTPUT@'], build_by_default: true)
"""
C_BUILD = """project('small', 'c')
executable('program', 'small.c')
"""


class Configure(house.Case):
    def setUp(self):
        super().setUp()
        self.file("source/meson.build", MESON_BUILD)
        self.file("source/small.c", "int main(void) { return 0; }\n")
        os.makedirs(self.file("source/tools"))
        shutil.copy2(house.path("tools/configure"), self.file("source/tools"))
        self.env = {k: v for k, v in os.environ.items() if k not in ("CC", "CFLAGS", "DESTDIR")}
        self.env.update(PKG_CONFIG_PATH=self.file("packages"), MESON=house.MESON, NINJA=house.NINJA)

    def configure(self, *arguments, folder="source", code=0, **more):
        """Configures and builds; what configure printed."""
        done = house.run(house.PYTHON, "tools/configure", "build", *arguments, cwd=self.file(folder),
                         env=dict(self.env, **more))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        if code == 0:
            self.run_ok(house.NINJA, "-C", self.file(folder + "/build"))
        return done.stdout + done.stderr

    def built(self, name, folder="source"):
        return os.path.exists(self.file(f"{folder}/build/{name}"))

    def option(self, name):
        with open(self.file("source/build/meson-info/intro-buildoptions.json"), encoding="utf-8") as text:
            return next(option["value"] for option in json.load(text) if option["name"] == name)

    def kept(self):
        """Leaves something in the folder that is gone when it is made again."""
        self.file("source/build/kept", "")

    def install_library(self):
        self.file("packages/nrg-optional.pc", "Name: x\nDescription: x\nVersion: 1\n")

    def test_the_second_time_nothing_is_said_or_done(self):
        self.configure()
        self.assertEqual(self.configure(), "")

    def test_a_library_that_came_later_and_went(self):
        self.configure()
        self.assertFalse(self.built("with"))
        self.kept()
        self.install_library()
        self.assertIn("configured again: nrg-optional is there now", self.configure())
        self.assertTrue(self.built("with"))
        self.assertTrue(self.built("kept"))
        os.unlink(self.file("packages/nrg-optional.pc"))
        self.assertIn("nrg-optional is gone", self.configure())
        self.assertNotIn("with", self.run_ok(house.NINJA, "-C", self.file("source/build"), "-t", "targets").stdout.split(":"))

    def test_a_folder_of_before_this_tool(self):
        self.run_ok(house.MESON, "setup", "build", cwd=self.file("source"), env=self.env)
        self.kept()
        self.install_library()
        self.configure()
        self.assertTrue(self.built("with"))
        self.assertTrue(self.built("kept"))

    def test_what_an_interrupted_configuration_leaves(self):
        self.configure("-Dwerror=true")
        for damage, left in (("build.ninja", None), ("build.ninja", ""), ("meson-private/coredata.dat", ""),
                             ("meson-info/meson-info.json", None)):
            with self.subTest(damage, left=left):
                os.unlink(self.file("source/build/" + damage))
                if left is not None:
                    self.file("source/build/" + damage, left)
                self.assertIn("build is made again", self.configure())
                self.assertTrue(self.built("without"))
        self.assertIs(self.option("werror"), True)

    def test_an_empty_folder(self):
        os.mkdir(self.file("source/build"))
        self.configure()
        self.assertTrue(self.built("without"))

    def test_an_object_that_an_interrupted_build_left(self):
        self.file("source/meson.build", C_BUILD)
        self.configure()
        for name in ("program", "program.p/small.c.o", ".ninja_log", ".ninja_deps"):
            self.file("source/build/" + name, "half")
        self.configure()
        self.run_ok(self.file("source/build/program"))

    def test_the_source_changed(self):
        self.configure()
        self.kept()
        self.file("source/meson_options.txt", "option('new', type: 'string', value: 'more')\n")
        self.file("source/meson.build", MESON_BUILD.replace("'without'", "get_option('new')"))
        self.configure()
        self.assertTrue(self.built("more"))
        self.assertTrue(self.built("kept"))

    def test_a_test_that_came(self):
        self.configure()
        self.file("source/tests/cli/test_new.py", "")
        self.assertIn("configured again: tests came or went", self.configure())
        self.assertEqual(self.configure(), "")

    def test_a_fault_in_the_source_costs_nothing(self):
        self.configure()
        self.kept()
        self.file("source/meson.build", MESON_BUILD + "custom_target('x'\n")
        self.assertIn("ERROR", self.configure(code=1))
        self.file("source/meson.build", MESON_BUILD)
        self.configure()
        self.assertTrue(self.built("kept"))

    def test_the_source_was_moved(self):
        self.configure()
        shutil.move(self.file("source"), self.file("moved"))
        self.assertIn("made again: it was configured for", self.configure(folder="moved"))
        self.assertTrue(self.built("without", "moved"))

    def test_arguments_and_compiler_hold_until_others_are_given(self):
        self.file("bin/other-cc", '#!/bin/sh\nexec cc "$@"\n')
        os.chmod(self.file("bin/other-cc"), 0o755)
        self.file("source/meson.build", C_BUILD)
        self.configure("--prefix=/first", CC=self.file("bin/other-cc"))
        self.assertEqual(self.configure(), "")
        self.assertIn("made again: other arguments", self.configure("--prefix=/second"))
        self.assertEqual(self.option("prefix"), "/second")
        with open(self.file("source/build/compile_commands.json"), encoding="utf-8") as text:
            self.assertIn("bin/other-cc", text.read())

    def test_another_compiler(self):
        self.configure()
        self.file("bin/cc", '#!/bin/sh\n[ "$1" != --version ] || { shift; echo other 1.0; }\nexec /usr/bin/cc "$@"\n')
        os.chmod(self.file("bin/cc"), 0o755)
        self.assertIn("made again: the compiler is another one",
                      self.configure(PATH=self.file("bin") + ":" + os.environ["PATH"]))

    def test_what_is_no_build_folder_is_left_alone(self):
        self.file("source/build/thesis.txt", "years of work")
        self.assertIn("is no build folder", self.configure(code=1))
        self.assertTrue(self.built("thesis.txt"))


if __name__ == "__main__":
    house.unittest.main()
