"""Options that choose among what a file holds: names as written and as nrg calls them work, and a name that matches nothing is an error, never an answer about everything."""
import json

from llm_rows import made_rows
from support import Case

DEVICES = """device,model,kind,level,energy_j,macs,batch
A,m1,Linear,operator,1.0,1e9,1
B,m1,Linear,operator,2.0,1e9,1
A,m2,Linear,operator,1.5,2e9,1
"""


class Filters(Case):
    def write(self, name, content):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as out:
            out.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def json(self, *args):
        done = self.nrg(*args, "--json")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout)

    def refused(self, *args):
        done = self.nrg(*args)
        self.assertNotEqual(done.returncode, 0, done.stdout.decode())
        self.assertEqual(done.stdout, b"")
        return self.one_line(done.stderr)

    def test_excludes_by_both_names(self):
        rows = self.write("rows.json", made_rows())
        without = self.write("without.json", [r for r in made_rows() if "Llama-3.1-8B" not in r["model"]])
        truth = self.json("evaluate", without)["levels"]
        for name in ("Llama-3-8B", "d/Llama-3.1-8B-Instruct", "llama-3-8b"):
            with self.subTest(name):
                self.assertEqual(self.json("evaluate", rows, "--exclude", name)["levels"], truth)
                profile = self.path("profile.json")
                self.assertEqual(self.nrg("train", "-q", rows, "--exclude", name, "-o", profile).returncode, 0)
                with open(profile, encoding="utf-8") as text:
                    self.assertNotIn("Llama-3-8B", json.load(text)["trained_on"]["models"])
        self.assertNotEqual(self.json("evaluate", rows)["levels"], truth)

    def test_a_variant_stands_for_its_model(self):
        """Other variants of the same weights would tell what the excluded one uses."""
        rows = made_rows() + [dict(r, model="d/Llama-3.1-8B") for r in made_rows() if "Llama-3.1-8B" in r["model"]]
        done = self.nrg("evaluate", self.write("rows.json", rows), "--exclude", "d/Llama-3.1-8B-Instruct")
        self.assertIn(b"'d/Llama-3.1-8B-Instruct' is a variant of Llama-3-8B: all rows of that are left out", done.stderr)
        self.assertNotIn(b"Llama-3-8B", done.stdout)

    def test_dataset_excludes_too(self):
        path = self.path("out.csv")
        done = self.nrg("dataset", "-q", self.write("two.csv", DEVICES), "--exclude", "m1", "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        with open(path, encoding="utf-8") as text:
            content = text.read()
        self.assertIn("m2", content)
        self.assertNotIn("m1", content)

    def test_device_chooses_or_names(self):
        two = self.write("two.csv", DEVICES)
        self.assertEqual(self.json("dataset", two, "--device", "A")["rows"], 2)
        self.assertEqual(self.json("dataset", two, "--device", "b")["rows"], 1)
        one = self.nrg("evaluate", self.write("rows.json", made_rows("A")), "--device", "B")
        self.assertIn(b"the device is called 'B' here, the data call it 'A'", one.stderr)

    def test_nothing_matched_is_an_error(self):
        rows, two = self.write("rows.json", made_rows()), self.write("two.csv", DEVICES)
        config = self.write("config.json", {"model_type": "llama"})
        run = self.path("run.nrg")
        machine = self.write("machine.txt", "domain package-0\n  power 0s:20\n")
        self.assertEqual(self.nrg("run", "-q", "--sensor", "simulate:" + machine, "-o", run, "--", "true").returncode, 0)
        profile = self.path("profile.json")
        cases = {
            "exclude": (("evaluate", rows, "--exclude", "Qwen3-8C"), "did you mean 'Qwen3-8B'"),
            "train exclude": (("train", rows, "--exclude", "x", "-o", profile), "nothing in the data is called 'x': there are Qwen3-8B"),
            "dataset exclude": (("dataset", two, "--exclude", "m3"), "there are m1, m2"),
            "exclude all": (("dataset", two, "--exclude", "m1", "--exclude", "m2"), "leaves nothing"),
            "device": (("dataset", two, "--device", "C"), "there are A, B"),
            "task": (("evaluate", rows, "--task", "gpqa,chat"), "no row that can be used is of the task 'chat'"),
            "all tasks": (("evaluate", rows, "--task", "chat"), "'chat'"),
            "empty task": (("evaluate", rows, "--task", ""), "''"),
            "task after a comma": (("evaluate", rows, "--task", "gpqa,"), "''"),
            "task of operators": (("dataset", two, "--task", "gpqa"), "'gpqa'"),
            "config": (("evaluate", rows, "--config", "Qwen9=" + config), "'Qwen9'"),
            "family": (("evaluate", rows, "--protocol", "leave-one-family-out", "--family", "x=Qwen3-8B,nosuch"), "'nosuch'"),
            "empty family": (("evaluate", rows, "--protocol", "leave-one-family-out", "--family", "x="), "''"),
            "families of no protocol": (("evaluate", rows, "--family", "x=Qwen3-8B"), "--family goes with --protocol leave-one-family-out"),
            "size of no protocol": (("evaluate", rows, "--size", "9"), "--size goes with --protocol size-extrapolation"),
            "variant of a tree": (("evaluate", rows, "--variant", "sum"), "--variant goes with --model tree"),
            "protocol and profile": (("evaluate", rows, "--protocol", "leave-one-family-out", "--profile", profile), "--protocol or --profile"),
            "domain": (("attribute", run, "--domain", "nosuch"), "'nosuch'"),
            "run": (("attribute", run, "--run", "9"), "no run 9"),
            "range": (("attribute", run, "--from", "500"), "500 s"),
            "graph without recordings": (("dataset", two, "--graph", "nosuch.onnx"), "--graph: goes with recordings"),
            "GPUs without recordings": (("dataset", two, "--gpus", "4"), "--gpus: goes with recordings"),
            "domain of layers": (("attribute", run, "--layer-domain", "gpu-9"), "--layer-domain goes with --power-log"),
            "times of layers": (("attribute", run, "--times", "nosuch.json"), "--times goes with --power-log"),
            "offset of layers": (("attribute", run, "--offset", "5"), "--offset goes with --power-log"),
            "place of layers": (("attribute", run, "--align"), "--align goes with --power-log"),
            "windows of layers": (("attribute", run, "--layout", "packed"), "--layout goes with --power-log"),
            "zone of layers": (("attribute", run, "--timezone-offset", "+02:00"), "--timezone-offset goes with --power-log"),
            "note": (("compare", "--by", "nosuch", run, run), "nosuch"),
        }
        for name, (args, says) in cases.items():
            with self.subTest(name):
                self.assertIn(says, self.refused(*args))


if __name__ == "__main__":
    import unittest
    unittest.main()
