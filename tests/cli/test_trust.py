"""Whom nrg obeys: configuration and the parts that it puts into programs come from where nobody else
can write. A captured tree, a neighbour's folder and a copied program's neighbours run nothing."""
import unittest

from support import *


class Configuration(Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.ran = self.path("ran")
        self.meter = f"meter = exec:touch {self.ran}; echo 5?columns=power\n"

    def sensors(self, *args, **kw):
        done = self.nrg("run", "-q", "-f", "-o", self.path("a.nrg"), *args, "--", "true", **kw)
        return done, os.path.exists(self.ran)

    def test_a_captured_tree_runs_nothing(self):
        self.write("tree/etc/nrg.conf", self.meter)
        for folder in ("proc", "sys"):
            os.mkdir(self.path("tree", folder))
        for more in ({}, {"NRG_ROOT": self.path("tree")}):
            args = () if more else ("--root", self.path("tree"))
            done, ran = self.sensors(*args, env=self.env(**more))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertFalse(ran)
            self.assertNotIn(b"exec:", self.nrg("meter", "list", *args, env=self.env(**more)).stdout.split(b"Kinds")[0])

    def test_an_own_file_runs_its_meter(self):
        self.write("config/nrg/nrg.conf", self.meter)
        done, ran = self.sensors()
        self.assertEqual((done.returncode, ran), (0, True), done.stderr)

    def refused(self, settings, reason, **kw):
        self.write("config/nrg/nrg.conf", settings, kw.pop("mode", 0o644))
        kw.pop("change", lambda: None)()
        done, ran = self.sensors(**kw)
        line = self.one_line(done.stderr)
        self.assertEqual((done.returncode, ran), (125, False), line)
        self.assertIn("nrg.conf:1: runs a program", line)
        self.assertIn(reason, line)

    def test_a_file_that_others_can_write_runs_nothing(self):
        self.refused(self.meter, "nrg.conf can be written by everybody", mode=0o646)

    def test_neither_through_options(self):
        for key in ("sensor", "run.meter", "run.sensor"):
            self.refused(self.meter.replace("meter", key, 1), "by everybody", mode=0o646)

    def test_nor_the_other_program_that_there_is(self):
        self.refused(f"meter = waveform-exec:touch {self.ran}\n", "by everybody", mode=0o646)

    def test_a_folder_that_others_can_write(self):
        self.refused(self.meter, "config can be written by everybody",
                     change=lambda: os.chmod(self.path("config"), 0o777))

    def test_a_sticky_folder_protects_what_is_not_theirs(self):
        self.write("config/nrg/nrg.conf", self.meter)
        os.chmod(self.path("config"), 0o1777)
        self.assertTrue(self.sensors()[1])

    @needs_root
    def test_another_user_s_file(self):
        self.refused(self.meter, "nrg.conf belongs to another user",
                     change=lambda: os.chown(self.path("config/nrg/nrg.conf"), NOBODY, NOBODY))

    @needs_root
    def test_another_group_s_file(self):
        self.refused(self.meter, "nrg.conf can be written by its group", mode=0o664,
                     change=lambda: os.chown(self.path("config/nrg/nrg.conf"), 0, NOBODY))

    def test_a_link_through_a_folder_of_everybody(self):
        # Only the link in the middle is where others can write.
        self.write("safe/nrg.conf", self.meter)
        os.mkdir(self.path("open"))
        os.symlink(self.path("safe/nrg.conf"), self.path("open/link"))
        os.chmod(self.path("open"), 0o777)
        os.makedirs(self.path("config/nrg"))
        os.symlink(self.path("open/link"), self.path("config/nrg/nrg.conf"))
        done, ran = self.sensors()
        self.assertFalse(ran)
        self.assertIn("open can be written by everybody", self.one_line(done.stderr))

    def test_other_settings_of_such_a_file_are_defaults_as_before(self):
        self.write("config/nrg/nrg.conf", "rate = 50Hz\n", 0o666)
        done, _ = self.sensors()
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_command_line_may(self):
        done, ran = self.sensors("--meter", self.meter.split(" = ")[1].strip())
        self.assertTrue(ran, done.stderr)

    @needs_root
    def test_a_home_that_the_user_cannot_enter_holds_nothing_of_his(self):
        """HOME of who called sudo or setpriv: no reason to measure nothing. A file of his that he can't read is."""
        self.write("config/nrg/nrg.conf", "rate = 50Hz\n", 0o600)
        os.chmod(self.dir, 0o777)
        for mode, code in ((0o700, 0), (0o755, 125)):
            os.chmod(self.path("config"), mode)
            done, _ = self.sensors(user=NOBODY)
            self.assertEqual(done.returncode, code, done.stderr)

    def test_a_fifo_in_its_place_is_refused(self):
        os.makedirs(self.path("config/nrg"))
        os.mkfifo(self.path("config/nrg/nrg.conf"))
        done, _ = self.sensors()
        self.assertEqual(done.returncode, 125)
        self.assertIn("nrg.conf: ", self.one_line(done.stderr))


class WorkingFolder(Case):
    def test_a_package_in_the_working_folder_is_not_nrg_s(self):
        ran = self.path("ran")
        self.write("nrg/__init__.py", f"open({ran!r}, 'w')\n")
        self.write("nrg/gpu_load.py", "")
        gpus = self.write("gpus", "gpu Tesla V100\n arch 5\n power 100\n")
        env = self.env(NRG_NVML_LIBRARY=FAKE_NVML, NRG_FAKE_NVML=gpus)
        done = self.nrg("calibrate", "--gpu", "-o", self.path("s.json"), env=env)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"the load did not run", done.stderr)
        self.assertFalse(os.path.exists(ran))


class Injected(Case):
    """Which sitecustomize.py a copied program puts into Python."""

    def copy(self, *folders):
        program = self.path(*folders, "nrg")
        os.makedirs(os.path.dirname(program))
        shutil.copy(NRG, program)
        return program

    def pythonpath(self, program):
        done = subprocess.run([program, "run", "-q", "--torch", "-o", self.path("t.nrg"), "-f", "--", "sh", "-c", "echo $PYTHONPATH"],
                              env=self.env(PYTHONPATH=""), cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S)
        return done.stdout.decode().strip(), done.stderr.decode()

    def setUp(self):
        super().setUp()
        if sanitizer_library():
            self.skipTest("a sanitized program needs what is beside it")
        os.chmod(self.dir, 0o755)

    def test_neighbours_of_a_copy_are_not_its_parts(self):
        program = self.copy("copy", "bin")
        for place in ("copy/inject", "copy/bin/python/nrg/inject"):
            self.write(f"{place}/sitecustomize.py", "raise SystemExit('taken over')\n")
            self.assertNotIn(self.dir, self.pythonpath(program)[0])

    def test_a_wheel_has_its_own(self):
        program = self.copy("site", "nrg", "bin")
        self.write("site/nrg/inject/sitecustomize.py", "")
        self.assertEqual(self.pythonpath(program)[0], self.path("site/nrg/inject"))
        os.chmod(self.path("site/nrg"), 0o777)
        path, err = self.pythonpath(program)
        self.assertNotIn(self.dir, path)
        self.assertIn("inject is not used: " + self.path("site/nrg") + " can be written by everybody", err)

    def test_the_build_folder_has_its_own(self):
        self.assertEqual(self.pythonpath(NRG)[0], os.path.join(os.path.dirname(os.path.realpath(NRG)), "python/nrg/inject"))


if __name__ == "__main__":
    unittest.main()
