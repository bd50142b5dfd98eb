"""Writes recordings, from docs/recording-format.md alone: it shares no code with src/ or with the other simulators, and so no mistakes.

Tables have no primary keys and planes of bytes are constant or raw, never compressed: the format allows both, and a reader must cope."""

import os
import sqlite3
import struct

import numpy as np

IN_CHUNK = 8192  # rows
RAW, CONSTANT = 0, 2  # how a plane is stored
MISSING = 0x80  # in a column's mode: a bitmap says which rows have a value

TABLES = """
CREATE TABLE meta(key TEXT, value);
CREATE TABLE sensor(id INTEGER, driver TEXT, name TEXT, period_ns INTEGER);
CREATE TABLE channel(id INTEGER, series INTEGER, col INTEGER, sensor INTEGER, name TEXT, quantity TEXT, kind TEXT, unit TEXT,
  scale REAL, wrap INTEGER, update_ns INTEGER, window_ns INTEGER, lag_ns INTEGER, resolution REAL, limit_w REAL, parent TEXT,
  wide INTEGER, covers_cpu INTEGER, provenance TEXT, error_low REAL, error_high REAL, source TEXT);
CREATE TABLE series(id INTEGER, kind TEXT, sensor INTEGER, n_columns INTEGER, columns TEXT);
CREATE TABLE chunk(id INTEGER, series INTEGER, first_ns INTEGER, last_ns INTEGER, n INTEGER, width_ns INTEGER,
  time_unit_ns INTEGER, stats BLOB, data BLOB);
CREATE TABLE run(id INTEGER, kind TEXT, begin_ns INTEGER, end_ns INTEGER, exit_code INTEGER);
CREATE TABLE clock(mono_ns INTEGER, real_ns INTEGER, tsc INTEGER);
CREATE TABLE event(id INTEGER, t_ns INTEGER, kind TEXT, source TEXT, detail TEXT);
CREATE TABLE process(id INTEGER, pid INTEGER, parent_pid INTEGER, start_ticks INTEGER, first_ns INTEGER, last_ns INTEGER,
  cpu_ns INTEGER, cpu_before_ns INTEGER, peak_rss_bytes INTEGER, uid INTEGER, ended INTEGER, name TEXT, command TEXT,
  container TEXT, unit TEXT);
CREATE TABLE span_name(id INTEGER, kind TEXT, name TEXT, detail TEXT);
CREATE TABLE span_track(id INTEGER, kind TEXT, pid INTEGER, tid INTEGER, start_ticks INTEGER, domain TEXT, name TEXT);
CREATE TABLE span_path(id INTEGER, parent INTEGER, name INTEGER);
"""

CHANNEL = dict(wrap=0, update_ns=0, window_ns=0, lag_ns=0, resolution=0.0, limit_w=0.0, parent="", wide=0, covers_cpu=0,
               provenance="measured", error_low=0.0, error_high=0.0, source="")


def coded(values, present=None):
    """One column as it stands in a chunk: differences, zigzag, in planes of bytes."""
    values, head, missing = np.asarray(values, np.int64), b"", 0
    if present is not None and not present.all():
        missing, head = MISSING, np.packbits(present.astype(np.uint8), bitorder="little").tobytes()
        values = values[present]
    if not len(values):
        return bytes([missing]) + head
    step = np.diff(values)
    zigzag = np.concatenate([[0], (step << 1) ^ (step >> 63)]).astype(np.uint64)
    width = max(1, (int(zigzag.max()).bit_length() + 7) // 8)
    planes = [((zigzag >> np.uint64(8 * place)) & np.uint64(255)).astype(np.uint8) for place in range(width)]
    return bytes([missing | 1]) + head + struct.pack("<qqB", int(values[0]), 0, width) + b"".join(map(coded_plane, planes))


def coded_plane(plane):
    if (plane == plane[0]).all():
        return struct.pack("<BI", CONSTANT, 1) + bytes([int(plane[0])])
    return struct.pack("<BI", RAW, len(plane)) + plane.tobytes()


class Recording:
    def __init__(self, path):
        for end in ("", "-wal", "-shm", "-journal"):
            if os.path.exists(path + end):
                os.unlink(path + end)
        self.db = sqlite3.connect(path)
        self.db.execute(f"PRAGMA application_id={0x4E524721}")
        self.db.execute("PRAGMA user_version=1")
        self.db.executescript(TABLES)
        self.last_id = dict.fromkeys(("sensor", "series", "channel", "chunk", "run"), 0)

    def row(self, table, **values):
        """Adds a row; numpy's numbers become Python's."""
        plain = [value.item() if hasattr(value, "item") else value for value in values.values()]
        self.db.execute(f"INSERT INTO {table}({','.join(values)}) VALUES({','.join('?' * len(values))})", plain)

    def numbered(self, table, **values):
        """Adds a row with the next id, and returns that."""
        self.last_id[table] += 1
        self.row(table, id=self.last_id[table], **values)
        return self.last_id[table]

    def meta(self, **values):
        for key, value in values.items():
            self.row("meta", key=key, value=value)

    def sensor(self, driver, name, period_ns):
        return self.numbered("sensor", driver=driver, name=name, period_ns=int(period_ns))

    def series(self, kind, sensor, n_columns, columns=""):
        return self.numbered("series", kind=kind, sensor=sensor, n_columns=n_columns, columns=columns)

    def channel(self, series, col, sensor, **said):
        self.numbered("channel", series=series, col=col, sensor=sensor, **{**CHANNEL, **said})

    def samples(self, sensor, t_ns, channels, width_ns):
        """A series of readings. channels: (what is said of one, its values)."""
        series = self.series("samples", sensor, len(channels))
        for col, (said, _) in enumerate(channels):
            self.channel(series, col, sensor, **said)
        self.rows(series, t_ns, [values for _, values in channels], width_ns=width_ns)

    def rows(self, series, t_ns, columns, width_ns=0, present=None, by_first=False):
        """Rows in the order of time; by_first: sorted by their first column within a chunk. present: per column None or which rows have one."""
        t_ns = np.asarray(t_ns, np.int64)
        assert (np.diff(t_ns) >= 0).all()
        columns, present = [np.asarray(column) for column in columns], present or [None] * len(columns)
        for begin in range(0, len(t_ns), IN_CHUNK):
            part = np.arange(begin, min(len(t_ns), begin + IN_CHUNK))
            if by_first:
                part = part[np.argsort(columns[0][part], kind="stable")]
            t, first = t_ns[part], int(t_ns[part].min())
            data = coded(t - first)
            for column, mask in zip(columns, present):
                data += coded(column[part], None if mask is None else mask[part])
            self.numbered("chunk", series=series, first_ns=first, last_ns=int(t.max()), n=len(part), width_ns=int(width_ns),
                          time_unit_ns=1, stats=None, data=data)

    def run(self, kind, begin_ns, end_ns, exit_code=None):
        self.numbered("run", kind=kind, begin_ns=int(begin_ns), end_ns=int(end_ns), exit_code=exit_code)

    def close(self):
        self.db.commit()
        self.db.close()
