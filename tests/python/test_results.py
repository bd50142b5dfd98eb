"""Reading recordings back: a real one of known energy, and what is asked of the program nrg."""
import json
import os
import stat
import unittest

from support import Case, NRG, PACKAGE, PYTHON

# 40 W and 10 W, constant: joules are watts times seconds.
SCENARIO = """\
domain package-0
  power 40
domain dram-0
  power 10
"""

# Prints its arguments as a document; fails as nrg does when a file's name has "bad" in it.
STAND_IN = """\
    #!/bin/sh
    case "$*" in
    --version) echo "nrg ${NRG_STAND_IN_VERSION:-VERSION}"; exit 0 ;;
    *bad*) echo "nrg: bad.nrg: not a recording" >&2; exit 1 ;;
    *garbage*) echo "no json"; exit 0 ;;
    *silent*) exit 3 ;;
    esac
    printf '{"rows": [{"name": "a", "energy_j": 1.5}, {"name": "b"}], "total_j": 4.0, "unattributed_j": 2.5, "per": [{"name": "tokens", "of": "a"}], "scale": {"low": 0.5}, "arguments": "%s"}' "$*"
"""


class Results(Case):
    def record(self):
        scenario = self.write("scenario.txt", SCENARIO)
        done = self.run_process(NRG, "run", "--quiet", "--sensor", "simulate:" + scenario, "--rate", "100Hz", "--note", "a=b",
                                "-o", "run.nrg", "--", "sleep", "0.5")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_energy_of_a_simulated_machine(self):
        self.record()
        done = self.python("""
            import json, nrg
            run = nrg.open("run.nrg")
            whole, part = run.energy(), run.energy("dram-0")
            print(json.dumps([whole, part, run.duration_s, float(whole), run.model, run.report()["metadata"]["note.a"]]))
            try:
                run.energy("gpu-7")
            except nrg.Error as error:
                print(error)
        """)
        line, error = done.stdout.splitlines()
        whole, part, duration_s, value, model, note = json.loads(line)
        self.assertAlmostEqual(whole[0], 50 * duration_s, delta=0.01 * whole[0])
        self.assertAlmostEqual(part[0], 10 * duration_s, delta=0.01 * part[0])
        self.assertLessEqual(whole[1], whole[0])
        self.assertGreaterEqual(whole[2], whole[0])
        self.assertEqual(sorted(whole[4]), ["dram-0", "package-0"])
        self.assertEqual((value, model, note, part[4]), (whole[0], {}, "b", ["dram-0"]))
        self.assertRegex(error, r"^run.nrg: no domain 'gpu-7'; there are: .*dram-0")

    def test_the_program_s_part(self):
        self.record()
        done = self.python("""
            import json, nrg
            run = nrg.open("run.nrg")
            print(json.dumps([run.program_energy(), run.energy(), run.report()["program"]]))
        """)
        mine, whole, said = json.loads(done.stdout)
        self.assertEqual(mine[:3], [said["energy_j"], said["low_j"], said["high_j"]])
        self.assertEqual(mine[3:], whole[3:])
        self.assertLess(mine[0], whole[0])

    def test_what_is_no_recording(self):
        self.write("text.nrg", "no recording\n")
        done = self.python("""
            import nrg
            for path in ("absent.nrg", "text.nrg"):
                try:
                    nrg.open(path)
                except nrg.Error as error:
                    print(error)
        """)
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn("absent.nrg", lines[0])
        self.assertIn("text.nrg", lines[1])


class Program(Case):
    def setUp(self):
        super().setUp()
        version = self.run_process(NRG, "--version").stdout.split()[-1]
        self.program = self.write("bin/nrg", STAND_IN.replace("VERSION}", version + "}"))
        os.chmod(self.program, os.stat(self.program).st_mode | stat.S_IXUSR)

    def test_options_of_a_table(self):
        done = self.python("""
            import nrg
            run = nrg._results.Run("-run.nrg")
            table = run.table("module", method="regress", lag="none", top_n=5, domain=["a", "b"], forward=True, other=False, more=None)
            print(table.document["arguments"])
            print(table == [{"name": "a", "energy_j": 1.5}, {"name": "b"}], table.total_j, table.unattributed_j, table.scale, table.per)
        """, NRG_BIN=self.program)
        self.assertEqual(done.stdout, "attribute --json --by module --method regress --lag=none --top-n=5 --domain=a --domain=b --forward ./-run.nrg\n"
                                      "True 4.0 2.5 {'low': 0.5} [{'name': 'tokens', 'of': 'a'}]\n")

    def test_the_program_speaks_for_itself(self):
        done = self.python("""
            import nrg
            for path in ("bad.nrg", "garbage.nrg", "silent.nrg"):
                try:
                    nrg.open(path)
                except nrg.Error as error:
                    print(error)
        """, NRG_BIN=self.program)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[0], "nrg: bad.nrg: not a recording")
        self.assertIn("no JSON came back", lines[1])
        self.assertEqual(lines[2], "nrg report ended with code 3")

    def test_a_program_of_another_version_is_refused(self):
        done = self.python("import nrg\ntry:\n    nrg.open('x.nrg')\nexcept nrg.Error as error:\n    print(error)",
                           NRG_BIN=self.program, NRG_STAND_IN_VERSION="0.0.1")
        self.assertRegex(done.stdout, r"/bin/nrg is nrg 0\.0\.1, this package is of nrg [\d.]+: install both from one wheel or package")

    def test_where_it_is_looked_for(self):
        package = self.path("site", "nrg")
        os.makedirs(package)
        for name in os.listdir(os.path.join(PACKAGE, "nrg")):
            if name.endswith((".py", ".so")):
                os.symlink(os.path.join(PACKAGE, "nrg", name), os.path.join(package, name))
        find = "import nrg\ntry:\n    print(nrg._program.find())\nexcept nrg.Error as error:\n    print(error)"
        site = self.path("site")
        # abspath, so that the links' own folder counts.
        done = self.python(find, NRG_BIN=None, PYTHONPATH=site, PATH="/nowhere")
        self.assertIn("NRG_BIN", done.stdout)
        done = self.python(find, NRG_BIN=None, PYTHONPATH=site, PATH=self.path("bin"))
        self.assertEqual(done.stdout, self.program + "\n")
        os.makedirs(os.path.join(package, "bin"))
        os.symlink(self.program, os.path.join(package, "bin", "nrg"))
        done = self.python(find, NRG_BIN=None, PYTHONPATH=site, PATH=self.path("bin"))
        self.assertEqual(done.stdout, os.path.join(package, "bin", "nrg") + "\n")
        done = self.python(find, NRG_BIN="/given/nrg", PYTHONPATH=site, PATH=self.path("bin"))
        self.assertEqual(done.stdout, "/given/nrg\n")

    def test_an_absent_program_is_an_error(self):
        done = self.python("import nrg\ntry:\n    nrg.open('x.nrg')\nexcept nrg.Error as error:\n    print(error)",
                           NRG_BIN="/given/nrg")
        self.assertEqual(done.stdout, "/given/nrg: No such file or directory\n")

    def test_pandas(self):
        """With one of our own: the real one takes seconds to import, and may be absent."""
        self.write("pandas.py", "class DataFrame(list):\n    pass\n")
        done = self.python("import nrg; f = nrg._results.Run('x').pandas('step'); print(type(f).__name__, len(f))",
                           NRG_BIN=self.program, PYTHONPATH=os.pathsep.join([self.folder, self.env()["PYTHONPATH"]]))
        self.assertEqual(done.stdout, "DataFrame 2\n")

    def test_python_m_nrg_becomes_the_program(self):
        for options, code in ((["report", "x.nrg"], 0), (["silent"], 3)):
            done = self.run_process(PYTHON, "-m", "nrg", *options, env=self.env(NRG_BIN=self.program))
            self.assertEqual(done.returncode, code, done.stderr)
        done = self.run_process(PYTHON, "-m", "nrg", env=self.env(NRG_BIN="/given/nrg"))
        self.assertEqual((done.returncode, done.stderr), (1, "nrg: /given/nrg: No such file or directory\n"))

    def test_intervals_of_a_cell_show_both_ends_where_they_differ(self):
        done = self.python("""
            from nrg._magic import _band
            for ends in ((100, 96, 103), (1089, 461, 3532), (1, 0, 2.5), (1, 0, 0.9e3)):
                print(_band(*ends))
        """)
        self.assertEqual(done.stdout.splitlines(), ["± 4 J", "461 J .. 3.532 kJ", "0 mJ .. 2.5 J", "0 mJ .. 900 J"], done.stderr)


if __name__ == "__main__":
    unittest.main()
