"""The layering check passes on this tree and fails on bad ones, naming file and line."""
import os
import unittest

import house


class Layers(house.Case):
    def check(self, *arguments):
        return house.run(house.PYTHON, house.path("tools/check_layers"), self.folder, *arguments)

    def test_this_tree_is_clean(self):
        done = house.run(house.PYTHON, house.path("tools/check_layers"), house.SOURCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_upward_include_is_named(self):
        self.file("src/base/a.h", "/* fine */\n")
        self.file("src/report/r.h", "")
        self.file("src/record/bad.c", '#include "base/a.h"\n\n#  include "report/r.h"\n')
        done = self.check()
        self.assertEqual(done.returncode, 1)
        self.assertIn('record/bad.c:3: layering: record/ may not include "report/r.h"', done.stderr)
        self.assertEqual(done.stderr.count("layering:"), 1)

    def test_base_depends_on_nothing(self):
        self.file("src/sensors/s.h", "")
        self.file("src/base/bad.h", '#include "sensors/s.h"\n')
        self.assertIn("base/bad.h:1:", self.check().stderr)

    def test_a_detour_through_dots_is_seen(self):
        self.file("src/cli/c.h", "")
        self.file("src/sensors/bad.c", '#include "../cli/c.h"\n')
        self.assertEqual(self.check().returncode, 1)

    def test_nothing_includes_the_tests(self):
        self.file("tests/support/t.h", "")
        self.file("src/cli/bad.c", '#include "../../tests/support/t.h"\n')
        self.assertEqual(self.check().returncode, 1)

    def test_leftward_and_own_includes_are_fine(self):
        for name in ("base/b.h", "sensors/s.h", "record/r.h", "attribute/own.h"):
            self.file("src/" + name, "")
        self.file("src/attribute/x.c", '#include "own.h"\n#include "attribute/own.h"\n#include "base/b.h"\n'
                  '#include "sensors/s.h"\n#include "record/r.h"\n#include "nrg/nrg.h"\n')
        self.assertEqual(self.check().returncode, 0)

    def test_unknown_folder_is_a_decision(self):
        self.file("src/misc/m.c", "")
        self.assertIn("'misc' is not in the table", self.check().stderr)

    def test_graph_and_sensors_do_not_meet(self):
        self.file("src/sensors/s.h", "")
        self.file("src/graph/g.c", '#include "sensors/s.h"\n')
        self.assertEqual(self.check().returncode, 1)

    def test_private_headers_stay_in_their_folder(self):
        self.file("src/graph/onnx/internal.h", "")
        self.file("src/graph/onnx/good.c", '#include "graph/onnx/internal.h"\n')
        self.file("src/graph/onnx/shapes/good.c", '#include "graph/onnx/internal.h"\n')
        self.assertEqual(self.check().returncode, 0)
        self.file("src/graph/torch/bad.c", '#include "graph/onnx/internal.h"\n')
        done = self.check()
        self.assertIn('graph/torch/bad.c:1: layering: "graph/onnx/internal.h" is private to graph/onnx/', done.stderr)
        self.assertEqual(done.stderr.count("layering:"), 1)

    def test_sql_stays_with_those_who_write_recordings(self):
        self.file("src/record/store/database.h", "")
        self.file("src/record/good.c", '#include <sqlite3.h>\n#include "record/store/database.h"\n')
        self.assertEqual(self.check().returncode, 0)
        self.file("src/report/bad.c", '#include <stdio.h>\n#include <sqlite3.h>\n#include "record/store/database.h"\n')
        done = self.check()
        self.assertIn("report/bad.c:2: layering: report/ may not include sqlite3.h: only record and import may", done.stderr)
        self.assertIn("report/bad.c:3: layering:", done.stderr)
        self.assertEqual(done.stderr.count("layering:"), 2)

    def test_stamp_only_when_clean(self):
        self.file("src/sensors/s.h", "")
        bad = self.file("src/base/bad.c", '#include "sensors/s.h"\n')
        stamp, deps = self.file("stamp"), self.file("deps")
        self.assertEqual(self.check("--stamp", stamp, "--depfile", deps).returncode, 1)
        self.assertFalse(os.path.exists(stamp))
        with open(deps, encoding="utf-8") as text:
            self.assertIn("src/base/bad.c", text.read())
        os.unlink(bad)
        self.assertEqual(self.check("--stamp", stamp, "--depfile", deps).returncode, 0)
        self.assertTrue(os.path.exists(stamp))


if __name__ == "__main__":
    unittest.main()
