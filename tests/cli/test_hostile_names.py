"""Names that try to steer a terminal or a spreadsheet, through every command and form of output.

A terminal obeys escape sequences, C1 controls (also as UTF-8) and characters that turn the direction of a line. They come
from models, recordings, data sets, settings and names of files. None may reach stdout or stderr, on a terminal or not;
texts stay valid UTF-8, JSON stays JSON, and a message stays one line.
"""
import csv
import gzip
import io
import json
import os
import pty
import sqlite3
import struct
import subprocess
import unittest

from spans_file import Spans, power_log
from support import *

BAD = ["\x1b[31m", "\x1b]0;title\x07", "\x9b31m", "\u009b2J", "\u0085", "\u202e", "\u2066", "\u200f", "\u2028", "\x7f", "\r", "\b"]
NAME = "x" + "".join(BAD) + "y"
FORBIDDEN = set(chr(c) for c in [*range(0x20), *range(0x7f, 0xa0), 0x61c, 0x200e, 0x200f, *range(0x2028, 0x202f),
                                 *range(0x2066, 0x206a)]) - {"\n", "\t"}

SCRIPT = """graph(%self : __torch__.Net,
      %x : Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu)):
  %y : Float(4, 8, strides=[8, 1], requires_grad=1, device=cpu) = aten::relu(%x), scope: __module.NAME
  return (%y)
"""


class Hostile(Case):
    def setUp(self):
        super().setUp()
        self.name = self.path(NAME.replace("/", "") + ".nrg")
        log = self.write("power.log", power_log([10] * 100 + [20] * 101))
        self.assertEqual(self.nrg("import", "-q", "-o", self.name, log).returncode, 0)
        spans = Spans()
        for i in range(4):
            at = 0.1 + 0.4 * i
            spans.span(at, at + 0.3, NAME, "module", detail=NAME, inside=[(at + 0.1, at + 0.2, "=1+1|" + NAME, "operator")])
        spans.write(self.name)
        db = sqlite3.connect(self.name)
        db.execute("UPDATE channel SET source = ?, name = ?", (NAME, "p" + NAME))
        db.execute("UPDATE sensor SET name = ?", (NAME,))
        db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)",
                       [("hostname", NAME), ("command_line", NAME), ("note." + NAME, NAME), ("late_ticks", "9223372036854775807"),
                        ("ticks", "9223372036854775807")])
        db.execute("INSERT INTO event(t_ns, kind, source, detail) SELECT begin_ns, 'fault', ?, ? FROM run", (NAME, NAME))
        db.commit()
        db.close()
        self.write("net.txt", SCRIPT.replace("NAME", NAME.replace("\r", "")))
        head = json.dumps({NAME + ".weight": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
        self.write("w.safetensors", struct.pack("<Q", len(head)) + head + bytes(4))
        self.write("index.json", json.dumps({"weight_map": {NAME: NAME, "a": "../" + NAME}}))
        self.write("data.csv", "model,kind,level,macs,read_bytes,written_bytes,energy_j\n" +
                   "".join(f'"m{NAME}{i % 3}","K{NAME}",operator,{i},{i},{i},{i + 1}\n' for i in range(9)))
        self.write("broken.json", '{"a": ' + NAME)
        self.write("tree/sys/class/powercap/intel-rapl:0/name", NAME + "\n")
        self.write("tree/sys/class/powercap/intel-rapl:0/energy_uj", "1\n")

    def commands(self):
        r = self.name
        return [("report", r), ("report", "--json", r), ("report", "--print", "energy", r), ("attribute", r),
                ("attribute", "--json", r), ("attribute", "--csv", r), ("attribute", "--folded", r), ("attribute", "--trace", r),
                ("attribute", "--by", "module", r), ("attribute", "--from=0.1", "--to=0.9", r), ("compare", r, "--", r),
                ("compare", "--json", r, "--", r), ("compare", "--markdown", r, "--", r), ("compare", "--by", NAME, r, r),
                ("compare", r, "--", self.path("none" + NAME)), ("view", r), ("report", r, "--html", self.path("no", NAME)),
                ("export", r), ("export", "--wide", "1s", r), ("export", "--format", "json", r),
                ("export", "--format", "firefox", r), ("export", "--format", "speedscope", r), ("export", "--processes", r),
                ("import", "-f", "-o", self.path("i.nrg"), self.path("broken.json")), ("graph", "net.txt"),
                ("graph", "--json", "net.txt"), ("graph", "--ops", "net.txt"), ("graph", "--ops", "--csv", "net.txt"),
                ("graph", "--reduced", "net.txt"), ("graph", "--dot", "net.txt"), ("graph", "w.safetensors"),
                ("graph", "--json", "w.safetensors"), ("graph", "index.json"), ("graph", "--explain", NAME, "net.txt"),
                ("dataset", "data.csv"), ("dataset", "--json", "data.csv"), ("train", "data.csv", "-o", self.path("p.json")),
                ("evaluate", "data.csv"), ("predict", "net.txt", "--profile", "p.json"),
                ("predict", "--json", "net.txt", "--profile", "p.json"), ("profile", "show", "p.json"),
                ("sensors", "--root", "tree"), ("sensors", "--json", "--root", "tree"),
                ("report", self.path("none" + NAME)), ("graph", NAME), (NAME,), ("report", "--" + NAME), ("run", "--rate", NAME, "true"),
                ("run", "-q", "-o", self.path("none", NAME), "--", "true"), ("sensors", "--meter", NAME)]

    def clean(self, data, what):
        text = data.decode("utf-8")  # must not fail
        self.assertEqual(sorted(set(text) & FORBIDDEN), [], (what, text[:400]))
        return text

    def test_nothing_reaches_a_pipe(self):
        for args in self.commands():
            done = self.nrg(*args)
            self.assertGreaterEqual(done.returncode, 0, args)
            out = self.clean(done.stdout, args)
            self.clean(done.stderr, args)
            if done.returncode:
                self.one_line(done.stderr)
            elif "--json" in args or "json" in args or "--trace" in args:
                json.loads(out)

    def test_nothing_reaches_a_terminal(self):
        for args in (("report", self.name), ("attribute", self.name), ("graph", "net.txt"), ("export", self.name)):
            master, slave = pty.openpty()
            process = subprocess.Popen([NRG, *args], stdout=slave, stderr=slave, stdin=subprocess.DEVNULL, cwd=self.dir,
                                       env={k: v for k, v in self.env().items() if k != "NO_COLOR"})
            os.close(slave)
            out = b""
            try:
                while chunk := os.read(master, 65536):
                    out += chunk
            except OSError:
                pass
            process.wait(LIMIT_S)
            os.close(master)
            for own in (b"\x1b[1m", b"\x1b[2m", b"\x1b[33m", b"\x1b[0m", b"\r\n"):
                out = out.replace(own, b"\n" if own == b"\r\n" else b"")
            self.clean(out, args)

    def test_settings(self):
        self.write("config/nrg/nrg.conf", f"rate = {NAME.replace(chr(13), '')}\n")
        done = self.nrg("run", "-q", "--", "true")
        self.clean(done.stderr, "nrg.conf")
        self.one_line(done.stderr)

    def test_formulas_are_text_in_csv(self):
        rows = list(csv.DictReader(io.StringIO(self.nrg("attribute", "--csv", self.name).stdout.decode())))
        texts = [value for row in rows for value in row.values() if value]
        self.assertTrue([t for t in texts if t.startswith("'=1+1")])
        self.assertEqual([t for t in texts if t[0] in "=+@\t\r"], [])

    def shard(self, path, n):
        head = json.dumps({"a": {"dtype": "F32", "shape": [n], "data_offsets": [0, 4 * n]}}).encode()
        self.write(path, struct.pack("<Q", len(head)) + head + bytes(4 * n))

    def test_a_model_in_a_recording_opens_no_files(self):
        self.shard("mine/s.safetensors", 3)
        self.shard("other/s.safetensors", 5)
        index = self.write("mine/m.index.json", json.dumps({"weight_map": {"a": "s.safetensors"}}))
        done = self.nrg("run", "-q", "--sensor", "simulate:" + self.scenario("domain package-0\n power 50\n"), "--graph", index,
                        "-o", self.path("k.nrg"), "--", "sleep", "0.3")
        self.assertEqual(done.returncode, 0, done.stderr)
        db = sqlite3.connect(self.path("k.nrg"))
        db.execute("UPDATE graph SET name = ?", (self.path("other/m.index.json"),))
        self.assertEqual(db.execute("SELECT count(*) FROM graph").fetchone()[0], 1)
        db.execute("DELETE FROM meta WHERE key LIKE 'model%'")
        db.commit()
        db.close()
        done = self.nrg("report", "--json", self.path("k.nrg"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("params", json.loads(done.stdout).get("model", {}))

    def test_a_gzip_bomb_is_refused(self):
        bomb = self.path("bomb.csv.gz")
        with gzip.open(bomb, "wb", 9) as f:
            f.write(b"model,kind,level,energy_j\n")
            for _ in range(100):
                f.write(b"0" * (1 << 20))
        done = self.nrg("dataset", bomb)
        self.assertEqual(done.returncode, 1)
        self.assertIn("times its size", self.one_line(done.stderr))


if __name__ == "__main__":
    unittest.main()
