"""Recordings that are cut, flipped, of another kind or of the future: nrg report says so in one
line and a non-zero code, or reads what is whole; it never crashes, hangs or shows nonsense."""
import json
import random
import shutil
import sqlite3
import unittest

from support import *


class Damage(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="nrg-damage-")
        cls.good = os.path.join(cls.folder, "good.nrg")
        scenario = os.path.join(cls.folder, "s.txt")
        with open(scenario, "w") as f:
            f.write("domain package-0\n power 50\n limit 500\n wrap 100J\ndomain gpu-0\n kind gauge\n"
                    " power 20\n")
        subprocess.run([NRG, "run", "-q", "--rate", "200Hz", "-o", cls.good, "--sensor",
                        f"simulate:{scenario}", "--sensor", "machine", "--", "sh", "-c",
                        "for i in 1 2 3 4 5 6; do sleep 0.2; done"], check=True,
                       stderr=subprocess.PIPE)
        with open(cls.good, "rb") as f:
            cls.bytes = f.read()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def report(self, content, *options):
        path = self.write("bad.nrg", content)
        for side in ("-wal", "-shm", "-journal"):
            if os.path.exists(path + side):
                os.unlink(path + side)
        done = self.nrg("report", "--json", *options, path)
        if done.returncode:
            self.assertEqual(done.returncode, 1)
            return self.one_line(done.stderr)
        json.loads(done.stdout)
        return None

    def test_the_good_one_is_good(self):
        self.assertIsNone(self.report(self.bytes))

    def test_truncated(self):
        size = len(self.bytes)
        refused = 0
        for length in [1, 15, 16, 99, 100, 512, 4095, 4096, 4097, size // 3, size // 2, size - 4096,
                       size - 1]:
            refused += self.report(self.bytes[:length]) is not None
        self.assertGreater(refused, 6)

    def test_empty_and_wrong_files(self):
        self.assertIn("empty", self.report(b""))
        for content in (b"hello\n", b"\x7fELF" + b"\0" * 5000, os.urandom(20000),
                        b"SQLite format 3\0" + os.urandom(8000)):
            self.assertIsNotNone(self.report(content))
        other = self.path("other.db")
        db = sqlite3.connect(other)
        db.execute("CREATE TABLE t(x)")
        db.commit()
        db.close()
        with open(other, "rb") as f:
            self.assertIn("not a recording", self.report(f.read()))

    def test_not_there_and_a_folder(self):
        for path in (self.path("nosuch.nrg"), self.dir, "/dev/null"):
            done = self.nrg("report", path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(path, self.one_line(done.stderr))

    def changed(self, *sql):
        path = self.path("changed.nrg")
        with open(path, "wb") as f:
            f.write(self.bytes)
        db = sqlite3.connect(path)
        for statement in sql:
            db.execute(statement)
        db.commit()
        db.close()
        with open(path, "rb") as f:
            return f.read()

    def test_newer_version(self):
        self.assertIn("newer", self.report(self.changed("PRAGMA user_version=99")))

    def test_tables_with_nonsense(self):
        huge = 9223372036854775807
        for sql in (f"UPDATE run SET end_ns={huge}", f"UPDATE run SET begin_ns=-{huge}",
                    "DELETE FROM run", "UPDATE run SET kind='baseline'",
                    f"UPDATE chunk SET n={huge}", "UPDATE chunk SET n=1048576",
                    f"UPDATE chunk SET first_ns={huge}", f"UPDATE chunk SET first_ns=-{huge}",
                    "UPDATE chunk SET time_unit_ns=1000000000", "UPDATE chunk SET data=NULL",
                    "UPDATE chunk SET data='text'", "UPDATE chunk SET data=randomblob(500)",
                    "UPDATE series SET n_columns=4096", "UPDATE series SET kind='samples'",
                    "UPDATE series SET kind='processes'", "UPDATE series SET n_columns=-1",
                    "UPDATE channel SET scale='nan'", "UPDATE channel SET scale=-1e308",
                    f"UPDATE channel SET update_ns={huge}", f"UPDATE sensor SET period_ns={huge}",
                    f"UPDATE channel SET lag_ns={huge}", f"UPDATE channel SET window_ns={huge}", "UPDATE channel SET parent=name",
                    "UPDATE channel SET col=4095", f"UPDATE channel SET wrap=-1",
                    f"UPDATE process SET id=id+{1 << 40}", "UPDATE process SET id=-id",
                    f"UPDATE process SET first_ns={huge}, last_ns=-{huge}",
                    f"UPDATE process SET peak_rss_bytes={huge}", f"UPDATE event SET t_ns=-{huge}",
                    f"UPDATE clock SET real_ns={huge}", "DROP TABLE chunk", "DROP TABLE meta",
                    "DROP TABLE event", "UPDATE meta SET value=x'ff1b5b'",
                    "UPDATE channel SET name=x'00ff'", "UPDATE channel SET kind='gauge'",
                    "UPDATE channel SET kind='counter'", "UPDATE channel SET limit_w=1e-300",
                    "UPDATE channel SET error_high=1e308, error_low=-1e308",
                    "UPDATE channel SET wide=1", "UPDATE channel SET quantity='power'"):
            with self.subTest(sql):
                self.report(self.changed(sql))
                self.nrg("report", self.path("bad.nrg"))

    def lines(self, sql):
        """What attribute and report say of a file that was changed so: one line, or None if they read it."""
        path = self.write("lacks.nrg", self.changed(*sql))
        for command in ("attribute", "report"):
            done = self.nrg(command, path)
            yield self.one_line(done.stderr) if done.returncode else None

    def test_tables_that_are_missing(self):
        """Every recording has some tables; others are for what it may hold."""
        spans = ("CREATE TABLE IF NOT EXISTS span_name(id, kind, name, detail)",
                 "CREATE TABLE IF NOT EXISTS span_track(id, kind, pid, tid, start_ticks, domain, name)",
                 "INSERT INTO series(id, kind, sensor, n_columns, columns) VALUES(90, 'spans', 0, 5, 'track,event,name,value,parent')")
        for table in ("meta", "sensor", "channel", "series", "chunk", "run"):
            for line in self.lines([f"DROP TABLE {table}"]):
                self.assertIn(f"lacks.nrg: has no table '{table}'", line)
        for table in ("clock", "event", "process", "graph"):
            attributed, reported = self.lines([*spans, f"DROP TABLE IF EXISTS {table}"])
            self.assertIn("holds no spans", attributed)
            self.assertIsNone(reported)
        for table in ("span_name", "span_track"):
            line = next(self.lines([*spans, f"DROP TABLE {table}"]))
            self.assertIn(f"has spans, but no table '{table}'", line)

    def test_energy_without_a_scale(self):
        for line in self.lines(["UPDATE channel SET scale=-1"]):
            self.assertIn("`scale` of channel 'package-0' is not a positive number", line)
        done = self.nrg("report", self.write("half.nrg", self.changed("UPDATE channel SET scale=-1 WHERE name='gpu-0'")))
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"gpu-0: left out: its `scale`", done.stdout)

    def test_a_run_of_another_clock(self):
        line = next(self.lines(["UPDATE run SET begin_ns=begin_ns+3600000000000, end_ns=end_ns+3600000000000"]))
        self.assertIn("has no reading of the run", line)

    def test_a_view_that_never_ends(self):
        line = self.report(self.changed(
            "DROP TABLE event",
            "CREATE VIEW event AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) "
            "SELECT x AS id, x AS t_ns, 'a' AS kind, 'b' AS source, 'c' AS detail FROM c"))
        self.assertIn("not written by nrg", line)

    def test_escape_sequences_do_not_reach_the_terminal(self):
        self.report(self.changed("UPDATE meta SET value=x'1b5b33316d68'",
                                 "UPDATE process SET command=x'1b5b33316d68'",
                                 "UPDATE event SET detail=x'1b5b33316d68'"))
        done = self.nrg("report", self.path("bad.nrg"))
        self.assertNotIn(b"\x1b", done.stdout)

    def test_flipped_bits(self):
        dice = random.Random(11)
        many = 40 if sanitizer_library() else 100
        for _ in range(many):
            content = bytearray(self.bytes)
            for _ in range(dice.choice((1, 1, 3, 30))):
                content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
            self.report(bytes(content))

    def test_overwritten_pages(self):
        dice = random.Random(13)
        for page in range(0, len(self.bytes) // 4096):
            content = bytearray(self.bytes)
            content[page * 4096:(page + 1) * 4096] = dice.randbytes(4096)
            self.report(bytes(content))


if __name__ == "__main__":
    unittest.main()
