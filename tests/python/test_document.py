"""docs/python.md: its examples run as they stand, and it names what exists."""
import os
import re
import unittest

from support import Case, TOP


def document():
    with open(os.path.join(TOP, "docs", "python.md"), encoding="utf-8") as text:
        return text.read()


class Document(Case):
    def test_the_examples_run(self):
        blocks = re.findall(r"^```python\n(.*?)^```", document(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 5)
        done = self.python("\n".join(blocks))
        self.assertRegex(done.stdout, r"(?m)^[\d.]+ J, [\d.]+ to [\d.]+ J, (measured|estimated|derived)$")
        self.assertIn("run.nrg", done.stdout)  # the error says which file is there already
        rows = {line.split()[0]: line.split() for line in done.stdout.splitlines() if line.startswith(("load", "epoch", "step"))}
        self.assertEqual([rows[name][1] for name in ("load", "epoch", "step")], ["1", "2", "16"])

    def test_arguments_of_record_are_described(self):
        done = self.python("import inspect, nrg; print(*inspect.signature(nrg.record).parameters)")
        for name in done.stdout.split():
            self.assertIn("`%s`" % name, document())

    def test_public_names_exist(self):
        names = sorted(set(re.findall(r"`?\bnrg\.([a-z]\w+)", document())) - {"nrg", "pytest_plugin"})  # which needs pytest
        self.assertIn("span", names)
        self.python("import nrg, nrg.keras, nrg.tensorrt\nfor name in %r:\n    getattr(nrg, name)" % names)


if __name__ == "__main__":
    unittest.main()
