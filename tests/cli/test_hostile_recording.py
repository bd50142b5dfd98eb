"""Recordings of people who mean harm, and neighbours who can write into the folder: logs and journals that somebody
put beside a file, schemas that compute, tables without end, outputs that are not files. nrg reads what is the owner's,
refuses the rest in one line, and changes nothing beside a file that it reads."""
import contextlib
import json
import shutil
import sqlite3
import stat
import struct
import unittest

from spans_file import column
from support import *

JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")


def super_journal(victim, page_size, pages):
    """A journal that a rollback would play back, and that names `victim` as the one to delete afterwards."""
    head = JOURNAL_MAGIC + struct.pack(">IIIII", 0, 0, pages, 512, page_size)
    name = victim.encode()
    return (head.ljust(512, b"\0") + struct.pack(">I", 0x40000000 // page_size + 1) + name
            + struct.pack(">II", len(name), sum(name)) + JOURNAL_MAGIC)


def page_journal(before, page_size):
    """A journal that holds all pages as they were: what a recorder without a log leaves when it is killed."""
    pages = [before[i:i + page_size] for i in range(0, len(before), page_size)]
    out = (JOURNAL_MAGIC + struct.pack(">IIIII", len(pages), 7, len(pages), 512, page_size)).ljust(512, b"\0")
    for number, page in enumerate(pages, 1):
        checksum = 7 + sum(page[i] for i in range(page_size - 200, 0, -200))
        out += struct.pack(">I", number) + page + struct.pack(">I", checksum & 0xffffffff)
    return out


class Hostile(Case):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="nrg-hostile-")
        cls.scenario = os.path.join(cls.folder, "s.txt")
        with open(cls.scenario, "w", encoding="utf-8") as f:
            f.write("domain package-0\n power 50\n")
        cls.good = os.path.join(cls.folder, "good.nrg")
        subprocess.run([NRG, "run", "-q", "-o", cls.good, "--sensor", f"simulate:{cls.scenario}", "--", "sleep", "0.3"],
                       check=True, stderr=subprocess.PIPE)
        with open(cls.good, "rb") as f:
            cls.bytes = f.read()
        cls.killed = os.path.join(cls.folder, "killed.nrg")
        cls.kill_one()

    @classmethod
    def kill_one(cls):
        """killed.nrg and its log, of a recorder that was killed."""
        # No pipe: the command lives on for a while, and would hold it open.
        run = subprocess.Popen([NRG, "run", "-q", "-o", cls.killed, "--sensor", f"simulate:{cls.scenario}", "--",
                                "sleep", "60"], stderr=subprocess.DEVNULL, start_new_session=True)
        eventually(lambda: begun(cls.killed), "the recording begins")
        eventually(lambda: query(cls.killed, "SELECT count(*) FROM chunk")[0][0] > 8, "it holds something")
        os.kill(run.pid, signal.SIGKILL)
        run.wait()
        for pid in subprocess.run(["pgrep", "-s", str(run.pid)], capture_output=True, text=True).stdout.split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def copy(self, name="run.nrg", of=None):
        """A recording in the test's own folder, with its log where it has one."""
        path = self.path(name)
        for side in ("", "-wal"):
            if os.path.exists((of or self.good) + side):
                shutil.copy((of or self.good) + side, path + side)
        return path

    def listing(self):
        """Names, kinds, owners, sizes and contents of the folder."""
        found = {}
        for name in sorted(os.listdir(self.dir)):
            path = self.path(name)
            st = os.lstat(path)
            content = b""
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    content = f.read()
            found[name] = (st.st_mode, st.st_uid, st.st_nlink, st.st_ino, content)
        return found

    def energy(self, path, **more):
        done = self.nrg("report", "--json", path, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["total"]["energy_j"]

    def refused(self, path, *words, **more):
        """Every command that reads the recording refuses it in one line, and leaves the folder as it was."""
        before = self.listing()
        layers = os.path.join(self.folder, "layers.json")
        with open(layers, "w", encoding="utf-8") as f:
            f.write('{"traceEvents": [{"name": "a", "ph": "X", "ts": 1, "dur": 5, "pid": 1, "tid": 1}]}')
        for command in (["report"], ["export"], ["attribute"], ["import", layers, "-o",
                                                                os.path.join(self.folder, "out.nrg"), "--into"],
                        ["run", "-o", os.path.join(self.folder, "replayed.nrg"), "--sensor"]):
            replay = command[0] == "run"
            done = self.nrg(*command, f"replay:{path}" if replay else path, *(["--", "true"] if replay else []), **more)
            self.assertNotEqual(done.returncode, 0, command)
            if not replay:
                line = self.one_line(done.stderr)
                for word in words:
                    self.assertIn(word, line)
            self.assertEqual(self.listing(), before, command)


class Neighbours(Hostile):
    def test_a_log_of_the_owner_is_read_and_nothing_changes(self):
        path = self.copy(of=self.killed)
        before = self.listing()
        self.assertGreater(self.energy(path), 0)
        self.assertEqual(self.listing(), before)
        os.unlink(path + "-wal")
        self.assertEqual(self.nrg("report", path).returncode, 1, "the log held the recording")

    @needs_root
    def test_a_log_is_read_by_others_in_a_folder_that_they_cannot_write(self):
        path = self.copy(of=self.killed)
        os.chmod(self.dir, 0o755)
        self.assertGreater(self.energy(path, user=NOBODY), 0)

    def test_while_it_is_written(self):
        path = self.path("live.nrg")
        with subprocess.Popen([NRG, "run", "-q", "-o", path, "--sensor", f"simulate:{self.scenario}", "--", "sh", "-c",
                               "while ! test -e done; do sleep 0.05; done"], cwd=self.dir,
                              stderr=subprocess.PIPE) as run:
            try:
                eventually(lambda: begun(path), "the recording begins")
                eventually(lambda: query(path, "SELECT count(*) FROM chunk")[0][0] > 8, "it holds something")
                first = self.energy(path)
                eventually(lambda: self.energy(path) > first, "more is read later")
            finally:
                self.write("done", b"")
            _, errors = run.communicate(timeout=LIMIT_S)
        self.assertEqual((run.returncode, errors), (0, b""))
        self.assertEqual(os.listdir(self.dir).count("live.nrg-wal"), 0)
        self.assertGreater(self.energy(path), first)

    def test_a_journal_deletes_nothing(self):
        path, victim = self.copy(), self.write("victim", b"precious")
        with open(path + "-journal", "wb") as f:
            f.write(super_journal(victim, 1024, len(self.bytes) // 1024))
        self.refused(path, path, "journal")

    def test_a_journal_of_the_owner_is_rolled_back_on_a_copy(self):
        path = self.copy()
        with open(path + "-journal", "wb") as f:
            f.write(page_journal(self.bytes, 1024))
        with open(path, "r+b") as f:
            f.seek(3 * 1024)
            f.write(bytes(4096))
        before = self.listing()
        self.assertEqual(self.energy(path), self.energy(self.good))
        self.assertEqual(self.listing(), before)

    def test_links_as_logs(self):
        for side in ("-wal", "-journal", "-shm"):
            with self.subTest(side):
                path = self.copy(of=self.killed)
                shutil.copy(self.killed + "-wal", self.path("other"))
                if os.path.exists(path + side):
                    os.unlink(path + side)
                os.symlink("other", path + side)
                self.refused(path, path + side, "is a link")
                os.unlink(path + side)
                os.link(self.path("other"), path + side)
                self.refused(path, path + side, "hard link")
                os.unlink(path + side)

    def test_a_fifo_as_log(self):
        path = self.copy()
        os.mkfifo(path + "-wal")
        self.refused(path, path + "-wal", "regular file")

    @needs_root
    def test_somebody_elses_log(self):
        os.chmod(self.dir, 0o1777)
        for side, content in (("-wal", open(self.killed + "-wal", "rb").read()),
                              ("-journal", super_journal(self.write("victim", b"x"), 1024, 20)),
                              ("-journal", page_journal(self.bytes, 1024))):
            with self.subTest(side):
                path = self.copy()
                with open(path + side, "wb") as f:
                    f.write(content)
                os.chown(path + side, NOBODY, NOBODY)
                self.refused(path, path + side, "somebody")
                os.unlink(path + side)
        self.write("run.nrg-wal", b"")  # says nothing
        os.chown(self.path("run.nrg-wal"), NOBODY, NOBODY)
        self.assertGreater(self.energy(self.copy()), 0)

    def test_a_journal_that_appears_during_a_run(self):
        path, victim = self.path("run.nrg"), self.write("victim", b"precious")
        journal = self.write("made", super_journal(victim, 1024, 20))
        done = self.nrg("run", "-o", path, "--sensor", f"simulate:{self.scenario}", "--", "cp", journal,
                        path + "-journal")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"package-0", done.stderr)
        self.assertTrue(os.path.exists(victim))


class Outputs(Hostile):
    def run_to(self, *options, **more):
        return self.nrg("run", "-q", "--sensor", f"simulate:{self.scenario}", *options, "--", "true", **more)

    def test_what_is_no_file_is_refused(self):
        os.mkfifo(self.path("fifo"))
        os.mkdir(self.path("folder"))
        os.symlink("nowhere", self.path("dangling"))
        os.symlink(self.copy("target.nrg"), self.path("link.nrg"))
        os.symlink("/proc/self/fd/1", self.path("stdout"))
        before = self.listing()
        for name, word in (("fifo", "not a regular file"), ("folder", "not a regular file"), ("dangling", "link"),
                           ("link.nrg", "link"), ("stdout", "link"), ("/dev/null", "not a regular file")):
            for force in ([], ["-f"]):
                with self.subTest(name, force=force):
                    done = self.run_to("-o", self.path(name), *force)
                    self.assertEqual(done.returncode, 125)
                    self.assertIn(word, self.one_line(done.stderr))
                    self.assertEqual(self.listing(), before)
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/null").st_mode))

    def test_two_runs_to_one_file(self):
        path = self.path("same.nrg")
        command = [NRG, "run", "-f", "-o", path, "--sensor", f"simulate:{self.scenario}", "--"]
        with subprocess.Popen(command + ["sh", "-c", ": the first; while ! test -e done; do sleep 0.05; done"],
                              cwd=self.dir, stderr=subprocess.PIPE) as first:
            eventually(lambda: begun(path), "the recording begins")
            done = subprocess.run(command + ["true"], capture_output=True, timeout=LIMIT_S)
            self.write("done", b"")
            _, errors = first.communicate(timeout=LIMIT_S)
        self.assertEqual(done.returncode, 125)
        self.assertIn("in use", self.one_line(done.stderr))
        self.assertIn(b": the first", errors)
        self.assertIn(b": the first", self.nrg("report", path).stdout)

    def test_a_file_that_is_replaced_during_the_run(self):
        path = self.path("run.nrg")
        done = self.nrg("run", "-o", path, "--sensor", f"simulate:{self.scenario}", "--", "sh", "-c",
                        f": the true one; cp {self.good} {path}.new; mv {path}.new {path}")
        self.assertEqual(done.returncode, 0)
        self.assertIn(b": the true one", done.stderr)
        self.assertIn(b"removed or replaced", done.stderr)
        self.assertNotIn(b"recording: ", done.stderr)

    @needs_root
    def test_somebody_elses_files_where_the_log_goes(self):
        os.chmod(self.dir, 0o1777)
        for side in ("-wal", "-shm", "-journal"):
            with self.subTest(side):
                other = self.write("run.nrg" + side, b"mine")
                os.chown(other, NOBODY, NOBODY)
                done = self.run_to("-o", self.path("run.nrg"))
                self.assertEqual(done.returncode, 125)
                self.assertIn(other, self.one_line(done.stderr))
                self.assertEqual(open(other, "rb").read(), b"mine")
                os.unlink(other)


class Schemas(Hostile):
    def changed(self, *sql, pages=()):
        """A recording after these statements; `pages`: (offset, bytes) written into it afterwards."""
        path = self.path("changed.nrg")
        with open(path, "wb") as f:
            f.write(self.bytes)
        db = sqlite3.connect(path)
        for statement in sql:
            db.execute(statement)
        db.commit()
        db.close()
        with open(path, "r+b") as f:
            for offset, content in pages:
                f.seek(offset)
                f.write(content)
        return path

    def limited(self):
        """For preexec_fn: no more memory than a file of some kB explains."""
        import resource
        if not sanitizer_library():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    def test_what_computes_is_refused(self):
        event = "id INTEGER PRIMARY KEY, t_ns INTEGER, kind TEXT, source TEXT, detail TEXT"
        for sql in (["CREATE VIRTUAL TABLE v USING fts5(a)"],
                    ["DROP TABLE event", "CREATE VIEW event AS SELECT 1 AS id, 2 AS t_ns, 3 AS kind, 4 AS source,"
                     " 5 AS detail"],
                    ["CREATE TRIGGER t AFTER INSERT ON span_name BEGIN DELETE FROM run; END"],
                    ["DROP TABLE event", f"CREATE TABLE event({event.replace('detail TEXT', '')}"
                     " detail TEXT AS (hex(zeroblob(400000000))))", "INSERT INTO event(id, t_ns) VALUES(1, 1)"],
                    ["CREATE INDEX i ON chunk(hex(data))"], ["CREATE INDEX i ON chunk(id) WHERE hex(data) > 1"]):
            with self.subTest(sql[-1]):
                self.refused(self.changed(*sql), "changed.nrg", "not written by nrg", preexec_fn=self.limited)

    def test_what_the_schema_says_about_itself_does_not_matter(self):
        path = self.changed("CREATE VIEW event2 AS SELECT * FROM event", "PRAGMA writable_schema=ON",
                            "UPDATE sqlite_master SET type='table' WHERE name='event2'")
        self.refused(path, "changed.nrg")
        path = self.changed("PRAGMA writable_schema=ON", "INSERT INTO sqlite_master VALUES('table', 'v', 'v', 0,"
                            " 'CREATE/**/VIRTUAL TABLE v USING dbstat')")
        self.refused(path, "changed.nrg", "not written by nrg")

    def test_checks_do_not_run_on_import(self):
        layers = self.write("layers.json", b'{"traceEvents": [{"name": "a", "ph": "X", "ts": 1, "dur": 5, "pid": 1,'
                                           b' "tid": 1}]}')
        path = self.changed("DROP TABLE span_name", "CREATE TABLE span_name(id INTEGER PRIMARY KEY, kind TEXT,"
                            " name TEXT, detail TEXT, CHECK(length(hex(zeroblob(900000000))) < 0))")
        done = self.nrg("import", layers, "--into", path, "-o", self.path("out.nrg"), "--offset", "0",
                        preexec_fn=self.limited)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_tree_whose_branches_meet(self):
        """Inner pages that all lead to one leaf: a few kB that have more rows than there are atoms."""
        size = 1024
        path = self.changed("DELETE FROM event", "INSERT INTO event(id, t_ns, kind) VALUES(1, 1, 'a')")
        db = sqlite3.connect(path)
        leaf = db.execute("SELECT rootpage FROM sqlite_master WHERE name='event'").fetchone()[0]
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute("PRAGMA auto_vacuum")
        db.close()
        with open(path, "rb") as f:
            content = bytearray(f.read())
        levels = 12
        root = content[(leaf - 1) * size:leaf * size]
        for level in range(levels):
            below = pages + 2 + level if level < levels - 1 else pages + levels + 1
            cells = 100
            page = bytearray(size)
            page[0:12] = struct.pack(">BHHHBI", 5, 0, cells, size - 5 * cells, 0, below)
            for i in range(cells):
                at = size - 5 * (i + 1)
                page[12 + 2 * i:14 + 2 * i] = struct.pack(">H", at)
                page[at:at + 5] = struct.pack(">IB", below, i)
            if level == 0:
                content[(leaf - 1) * size:leaf * size] = page
                content += bytes(size)
            else:
                content += page
        content += root
        content[28:32] = struct.pack(">I", len(content) // size)
        with open(path, "wb") as f:
            f.write(content)
        self.refused(path, "changed.nrg", "damaged", preexec_fn=self.limited)

    def test_a_newer_format_is_refused_by_name_and_an_older_read(self):
        self.refused(self.changed("PRAGMA user_version=2"), "changed.nrg", "newer nrg", "format 2")
        self.assertEqual(self.energy(self.changed(
            "ALTER TABLE channel DROP COLUMN window_ns", "DROP TABLE graph", "DROP TABLE span_name",
            "DROP TABLE span_track", "DROP TABLE span_path", "DELETE FROM meta WHERE key='revision'")),
            self.energy(self.good))
        self.assertEqual(self.energy(self.changed("UPDATE meta SET value=99 WHERE key='revision'",
                                                  "CREATE TABLE of_tomorrow(id INTEGER PRIMARY KEY, x)")),
                         self.energy(self.good), "a higher revision has more, and what there was is the same")

    def test_numbers_that_become_indexes(self):
        """Sanitizers see what these did; without them the answer must be one, or one line."""
        huge = 2**63 - 1
        narrow = [f"UPDATE series SET n_columns={n} WHERE kind='{kind}'"
                  for n in (1, 2) for kind in ("processes", "process_memory")]
        one_column = ["UPDATE series SET n_columns=1 WHERE kind='processes'",
                      "UPDATE chunk SET n=3, data=x'" + (column([0, 1, 2]) + column([1, 1, 1])).hex()
                      + "' WHERE series IN (SELECT id FROM series WHERE kind='processes')"]
        for sql in ([f"UPDATE process SET id=id+{2**31 - 2}"], [f"UPDATE process SET id={2**62}+id"],
                    [f"UPDATE process SET id=id-{2**62}"], [f"UPDATE process SET id=id+{2**32}"],
                    [f"UPDATE meta SET value={huge} WHERE key IN ('late_ticks', 'ticks', 'spans', 'cpus')",
                     f"INSERT OR REPLACE INTO meta VALUES('late_ticks', {huge}), ('ticks', {huge})"],
                    ["UPDATE channel SET scale=1e300", "UPDATE process SET peak_rss_bytes=9e18"],
                    *([one] for one in narrow), one_column):
            path = self.changed(*sql)
            for command in (["report", "--json"], ["report"], ["export"], ["export", "--wide", "100ms"],
                            ["export", "--format", "aipowermeter"], ["attribute"]):
                with self.subTest(sql[0], command=command):
                    done = self.nrg(*command, path)
                    self.assertIn(done.returncode, (0, 1))
                    if done.returncode:
                        self.one_line(done.stderr)


if __name__ == "__main__":
    unittest.main()
