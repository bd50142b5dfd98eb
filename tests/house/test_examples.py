"""Each example runs under nrg with short parameters, and the demo shows what it promises."""
import json
import os
import re
import unittest

import house

PLAIN = os.environ.get("NRG_PLAIN_BUILD") or house.BUILD
TORCH = house.run(house.PYTHON, "-c", "import torch").returncode == 0


class Examples(house.Case):
    def measure(self, *command):
        recording = self.file("run.nrg")
        done = self.run_ok(house.NRG, "run", "-o", recording, "--", *command, cwd=house.SOURCE)
        self.assertIn("total", done.stderr)
        return done.stdout, json.loads(self.run_ok(house.NRG, "report", "--json", recording).stdout)

    def test_burn(self):
        program = self.file("burn")
        self.run_ok("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program,
                    house.path("examples/burn.c"))
        out, report = self.measure(program, "1", "2")
        self.assertRegex(out, r"burn: 2 threads, 1 s")
        self.assertGreater(report["total"]["energy_j"], 0)
        self.assertGreater(report["cpu_time_s"], 0.02)  # a busy machine gives it little
        self.assertEqual(house.run(program, "0").returncode, 2)

    def compile(self, source, program):
        """With the header and the library of the build, as pkg-config would tell once it is installed."""
        library = os.path.join(PLAIN, "src")
        self.run_ok("cc", "-O2", "-Wall", "-Wextra", "-Werror", "-I" + house.path("include"), "-o", program, source,
                    "-L" + library, "-lnrg", "-Wl,-rpath," + library)

    def test_spans(self):
        """The marks of the C example come back with their counts, per path, and add up."""
        program, recording = self.file("spans"), self.file("spans.nrg")
        self.compile(house.path("examples/spans.c"), program)
        self.run_ok(house.NRG, "run", "-q", "-o", recording, "--", program, "6")
        found = json.loads(self.run_ok(house.NRG, "attribute", "--json", recording).stdout)
        calls = {row["name"]: row["calls"] for row in found["rows"]}
        self.assertEqual(calls, {"prefill": 1, "decode": 6, "sample": 6})
        self.assertEqual([(u["name"], u["amount"]) for u in found["per"]], [("decode", 6), ("tokens", 24)])
        parts = sum(row["energy_self_j"] for row in found["rows"]) + found["unattributed_j"]
        parts += found.get("idle_j", 0) + found.get("other_processes_j", 0)
        self.assertAlmostEqual(parts, found["total_j"], delta=1e-6 * found["total_j"])

    def test_the_programs_of_the_document_compile(self):
        blocks = house.blocks(house.text("docs/spans.md"), "c")
        self.assertEqual(len(blocks), 2)
        for _, text in blocks:
            source = self.file("block.c", text if "main" in text else text + "int main(void) { decode(1); return 0; }\n")
            self.compile(source, self.file("block"))

    def test_pipeline(self):
        out, report = self.measure("examples/pipeline.sh", "2")
        self.assertRegex(out, r"2 MiB of text became [01]\.\d MiB")
        seen = " ".join(p["command"] for p in report["processes"])
        self.assertIn("pipeline.sh", seen)
        self.assertEqual(report["exit_code"], 0)

    @unittest.skipUnless(TORCH, "PyTorch is not installed")
    def test_train(self):
        out, report = self.measure(house.PYTHON, "examples/train.py", "--epochs", "3", "--samples", "800")
        losses = [float(x) for x in re.findall(r"loss ([\d.]+)", out)]
        self.assertEqual(len(losses), 3)
        self.assertLess(losses[-1], losses[0])
        self.assertGreater(report["total"]["energy_j"], 0)
        self.assertLessEqual(report["total"]["low_j"], report["total"]["energy_j"])
        self.assertGreaterEqual(report["total"]["high_j"], report["total"]["energy_j"])

    def demo(self, arguments, **env):
        env = {**os.environ, "PYTHON": house.PYTHON, "NRG_BIN": house.NRG, "NRG_DEMO_ARGS": arguments,
               "NRG_DEMO_RECORDING": self.file("demo.nrg"), **env}
        return self.run_ok(house.path("examples/demo.sh"), cwd=self.folder, env=env)

    @unittest.skipUnless(TORCH, "PyTorch is not installed")
    def test_demo(self):
        done = self.demo("--epochs 1 --samples 256")
        self.assertIn("epoch  1", done.stdout)
        self.assertIn("nrg report", done.stdout)
        self.assertIn("What next", done.stdout)
        self.assertRegex(done.stdout, r"Conv2d")
        self.assertRegex(done.stdout, r"(?m)^  unattributed .* %$")
        # The table comes twice: at the end of the run, and from the file.
        self.assertEqual((done.stdout + done.stderr).count("\nDOMAIN "), 2)
        if "estimated" in done.stderr:
            self.assertRegex(done.stderr, r"machine +[\d.]+ \w+ +[\d.]+ \w+ \.\. [\d.]+ \w+ .*estimated")

    def test_demo_without_pytorch(self):
        done = self.demo("1 1", PYTHON="/bin/false")
        self.assertIn("PyTorch is not here", done.stdout)
        self.assertIn("burn: 1 threads", done.stdout)
        self.assertEqual((done.stdout + done.stderr).count("\nDOMAIN "), 2)


if __name__ == "__main__":
    unittest.main()
