"""Commands in the documents are commands of the program, and those of the README run as they stand there."""
import os
import re
import shlex
import sys
import unittest

import house

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "cli"))
import spans_file  # noqa: E402

TORCH = house.run(house.PYTHON, "-c", "import torch").returncode == 0


def command_lines(document):
    """Lines of code blocks, indented or fenced, that call nrg; a pipe's later programs and comments are cut off."""
    fenced = False
    for line in house.text(document).splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            text = re.sub(r"^\$ |^sudo ", "", line.strip())
            if re.match(r"nrg [a-z-]", text):
                yield re.split(r"\s+#\s", text)[0]


def documents():
    return ["README.md"] + [n for n in house.tracked_files("*.md") if n.startswith(("docs/", "contrib/", "examples/"))]


class Named(house.Case):
    def test_commands_and_options_exist(self):
        commands = re.findall(r"^  (\w+) ", self.run_ok(house.NRG, "help").stdout, re.M)
        helps = {c: self.run_ok(house.NRG, c, "--help").stdout for c in commands}
        wrong = []
        for document in documents():
            for line in command_lines(document):
                word, _, rest = line[4:].partition(" ")
                if word not in commands + ["help"] and not word.startswith("--"):
                    wrong.append(f"{document}: {line}: there is no nrg {word}")
                own = re.sub(r"\"[^\"]*\"|'[^']*'", "", re.split(r"\s--\s|\s[|>]", rest)[0])
                for option in re.findall(r"(?<=\s)(--[a-z][\w-]+)", " " + own):
                    if word in helps and option not in helps[word] + "--help --version":
                        wrong.append(f"{document}: {line}: nrg {word} has no {option}")
        self.assertEqual(wrong, [])


class Readme(house.Case):
    """Every command of the README, in a folder that has the files it speaks of."""
    # What a test can't have: a meter, another program's data, a minute of time, PyTorch where it is not installed.
    LEFT_OUT = {"emonpi:": "a meter", "irene/": "IrEne's data", "device_1.json": "IrEne's data", "here.json": "a profile",
                "h100.json": "see test_llm", "llm proxy": "see test_llm_proxy", "vllm serve": "see test_llm_server",
                "here.csv": "minutes", "idling_power.json": "see test_import_layers", "trace.json.gz": "see test_import_layers",
                "traced.txt": "see test_graph_ts"}
    CHANGED = {"4242": str(os.getpid()), "1min": "0.2s", "10s": "0.2s", "5s": "0.2s"}

    def prepare(self):
        self.file("train.py", "import time\ntime.sleep(0.2)\n")
        self.file("infer.py", "import time\ntime.sleep(0.2)\n")
        self.file("solver", "#!/bin/sh\nsleep 0.2\n")
        self.file("input", "")
        self.file("machine.txt", "domain package-0\n  power 0s:20 2s:60\n")
        os.chmod(self.file("solver"), 0o755)
        self.file("examples/train.py", "")
        for name in ("old.py", "new.py"):
            self.file(name, "")
        with open(self.file("model.onnx"), "wb") as model:
            model.write(onnx_add())
        spans = spans_file.Spans()
        spans.span(0.1, 0.9, "epoch", "epoch", number=0, inside=[
            dict(begin_s=0.1, end_s=0.8, text="step", kind="step", number=0, counts=[("samples", 32)], inside=[
                dict(begin_s=0.2, end_s=0.6, text="fc", kind="module", detail="Linear")])])
        self.run_ok(house.NRG, "import", "-q", "-f", "-o", self.file("marked.nrg"),
                    self.file("p.log", spans_file.power_log([20] * 500)))
        spans.write(self.file("marked.nrg"))

    def arguments(self, line):
        words = [self.CHANGED.get(word, word) for word in shlex.split(re.split(r"\s[|>]", line)[0])]
        # A recording that another line has made has no spans.
        if words[1] == "attribute":
            words = ["marked.nrg" if word == "run.nrg" else word for word in words]
        if words[1] == "run" and "-o" in words:
            words.insert(2, "--force")
        if words[1] == "compare": # ten runs of each say no more here
            words[words.index("--run") + 1] = "2"
        return [house.NRG] + words[1:]

    def test_commands_run(self):
        self.prepare()
        ran = 0
        environment = dict(os.environ, PATH=os.path.dirname(house.PYTHON) + ":" + os.environ["PATH"])
        for line in command_lines("README.md"):
            if any(part in line for part in self.LEFT_OUT) or ("--torch" in line and not TORCH):
                continue
            words = self.arguments(line)
            done = house.run(*words, cwd=self.folder, env=environment, timeout_s=60)
            fine = (0, 1) if words[1] == "doctor" else (0,)  # 1: it found a problem of this machine
            self.assertIn(done.returncode, fine, f"{line}\n{' '.join(words)}\n{done.stderr}")
            ran += 1
        self.assertGreater(ran, 15)


def onnx_add():
    """A model of one Add of two tensors of 2 x 3, as protobuf by hand."""
    def field(number, value):
        body = value if isinstance(value, bytes) else value.encode()
        return bytes([number << 3 | 2, len(body)]) + body

    def number(index, value):
        return bytes([index << 3, value])

    def tensor(name):
        dims = b"".join(field(1, number(1, n)) for n in (2, 3))
        return field(1, name) + field(2, field(1, number(1, 1) + field(2, dims)))

    node = field(1, "a") + field(1, "b") + field(2, "c") + field(3, "add") + field(4, "Add")
    graph = field(1, node) + field(2, "g") + field(11, tensor("a")) + field(11, tensor("b")) + field(12, tensor("c"))
    return number(1, 8) + field(7, graph) + field(8, number(2, 17))


if __name__ == "__main__":
    unittest.main()
