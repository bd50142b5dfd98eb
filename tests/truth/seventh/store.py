"""Writes a recording from docs/recording-format.md alone: tables, and columns coded as mode 1 with raw planes."""
import sqlite3
import struct

import numpy as np

TABLES = """
CREATE TABLE meta (key TEXT, value TEXT);
CREATE TABLE sensor (id INTEGER, driver TEXT, name TEXT, period_ns INTEGER);
CREATE TABLE channel (id INTEGER, series INTEGER, col INTEGER, sensor INTEGER, name TEXT, quantity TEXT, kind TEXT,
  unit TEXT, scale REAL, wrap INTEGER, update_ns INTEGER, window_ns INTEGER, lag_ns INTEGER, resolution REAL,
  limit_w REAL, parent TEXT, wide INTEGER, covers_cpu INTEGER, provenance TEXT, error_low REAL, error_high REAL,
  source TEXT);
CREATE TABLE series (id INTEGER, kind TEXT, sensor INTEGER, n_columns INTEGER, columns TEXT);
CREATE TABLE chunk (id INTEGER, series INTEGER, first_ns INTEGER, last_ns INTEGER, n INTEGER, width_ns INTEGER,
  time_unit_ns INTEGER, stats BLOB, data BLOB);
CREATE TABLE run (id INTEGER, kind TEXT, begin_ns INTEGER, end_ns INTEGER, exit_code INTEGER);
CREATE TABLE clock (mono_ns INTEGER, real_ns INTEGER, tsc INTEGER);
CREATE TABLE event (id INTEGER, t_ns INTEGER, kind TEXT, source TEXT, detail TEXT);
CREATE TABLE process (id INTEGER, pid INTEGER, parent_pid INTEGER, start_ticks INTEGER, first_ns INTEGER,
  last_ns INTEGER, cpu_ns INTEGER, cpu_before_ns INTEGER, peak_rss_bytes INTEGER, uid INTEGER, ended INTEGER,
  name TEXT, command TEXT, container TEXT, unit TEXT);
CREATE TABLE span_name (id INTEGER, kind TEXT, name TEXT, detail TEXT);
CREATE TABLE span_track (id INTEGER, kind TEXT, pid INTEGER, tid INTEGER, start_ticks INTEGER, domain TEXT, name TEXT);
CREATE TABLE span_path (id INTEGER, parent INTEGER, name INTEGER);
"""

ORIGIN_NS = 5_000_000_000_000  # the machine has been up for a while


def ns(seconds):
    """Seconds of the simulation as ns of the machine's clock."""
    return np.asarray(np.rint(np.asarray(seconds, float) * 1e9), np.int64) + ORIGIN_NS


def column(values, present=None):
    """One coded column."""
    values = np.asarray(values, np.int64)
    head = bytes([1])
    if present is not None and not np.all(present):
        head = bytes([0x81]) + np.packbits(np.asarray(present, np.uint8), bitorder="little").tobytes()
        values = values[np.asarray(present, bool)]
    if len(values) == 0:
        return bytes([head[0] & 0x80]) + head[1:]
    step = np.diff(values, prepend=values[0])
    zigzag = ((step << 1) ^ (step >> 63)).astype(np.uint64)
    width = (int(zigzag.max()).bit_length() + 7) // 8
    out = [head, struct.pack("<qqB", int(values[0]), 0, width)]
    for p in range(width):
        plane = ((zigzag >> np.uint64(8 * p)) & np.uint64(255)).astype(np.uint8).tobytes()
        out.append(struct.pack("<BI", 0, len(plane)) + plane)
    return b"".join(out)


class Store:
    """A recording that is being made; close() writes the file."""

    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.db.executescript("PRAGMA application_id=0x4e524721; PRAGMA user_version=1;" + TABLES)
        self.next = {}

    def id(self, table, first=1):
        self.next[table] = self.next.get(table, first - 1) + 1
        return self.next[table]

    def add(self, table, *row):
        self.db.execute("INSERT INTO %s VALUES (%s)" % (table, ",".join("?" * len(row))), row)

    def meta(self, **values):
        for key, value in values.items():
            self.add("meta", key, value)

    def sensor(self, driver, name, period_s):
        number = self.id("sensor")
        self.add("sensor", number, driver, name, int(period_s * 1e9))
        return number

    def series(self, kind, sensor, columns):
        number = self.id("series")
        self.add("series", number, kind, sensor, len(columns), ",".join(columns) if kind != "samples" else None)
        return number

    def channel(self, series, col, sensor, name, quantity, kind, unit, scale, wrap=0, update=0, window=0, lag=0,
                resolution=0.0, limit=0.0, parent="", wide=0, covers=0, provenance="measured", low=0.0, high=0.0, source=""):
        self.add("channel", self.id("channel"), series, col, sensor, name, quantity, kind, unit, scale, wrap,
                 int(round(update * 1e9)), int(round(window * 1e9)), int(round(lag * 1e9)), resolution, limit, parent,
                 wide, covers, provenance, low, high, source)

    def rows(self, series, times_ns, columns, width_ns=0, presents=None, keyed=False, per_chunk=200_000):
        """Rows in chunks that do not overlap in time; `keyed`: within a chunk in order of (first column, time)."""
        times_ns = np.asarray(times_ns, np.int64)
        order = np.argsort(times_ns, kind="stable")
        for at in range(0, len(order), per_chunk):
            part = order[at:at + per_chunk]
            if keyed:
                part = part[np.argsort(np.asarray(columns[0])[part], kind="stable")]
            t = times_ns[part]
            data = column(t - t.min())
            for i, c in enumerate(columns):
                data += column(np.asarray(c)[part], None if presents is None or presents[i] is None else presents[i][part])
            self.add("chunk", self.id("chunk"), series, int(t.min()), int(t.max()), len(part), int(width_ns), 1, None, data)

    def close(self):
        self.db.commit()
        self.db.close()
