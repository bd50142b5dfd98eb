"""Writes recordings, from docs/recording-format.md alone: it shares no code with src/ or with the other simulators, and so no mistakes.

A series is one chunk, however long; planes of bytes are raw, tables have no primary keys: the format allows it, and a reader must cope."""

import os
import sqlite3
import struct

import numpy as np

APPLICATION_ID = 0x4E524721
EMPTY, DIFFERENCES, MISSING = 0, 1, 0x80  # a column's mode; MISSING: a bitmap says which rows have a value
RAW = 0  # how a plane is stored

TABLES = """
CREATE TABLE meta(key TEXT, value);
CREATE TABLE sensor(id INTEGER, driver TEXT, name TEXT, period_ns INTEGER);
CREATE TABLE channel(id INTEGER, series INTEGER, col INTEGER, sensor INTEGER, name TEXT, quantity TEXT, kind TEXT, unit TEXT,
 scale REAL, wrap INTEGER, update_ns INTEGER, window_ns INTEGER, lag_ns INTEGER, resolution REAL, limit_w REAL, parent TEXT,
 wide INTEGER, covers_cpu INTEGER, provenance TEXT, error_low REAL, error_high REAL, source TEXT);
CREATE TABLE series(id INTEGER, kind TEXT, sensor INTEGER, n_columns INTEGER, columns TEXT);
CREATE TABLE chunk(id INTEGER PRIMARY KEY, series INTEGER, first_ns INTEGER, last_ns INTEGER, n INTEGER, width_ns INTEGER, time_unit_ns INTEGER, stats BLOB, data BLOB);
CREATE TABLE run(id INTEGER, kind TEXT, begin_ns INTEGER, end_ns INTEGER, exit_code INTEGER);
CREATE TABLE clock(mono_ns INTEGER, real_ns INTEGER, tsc INTEGER);
CREATE TABLE event(id INTEGER, t_ns INTEGER, kind TEXT, source TEXT, detail TEXT);
CREATE TABLE process(id INTEGER, pid INTEGER, parent_pid INTEGER, start_ticks INTEGER, first_ns INTEGER, last_ns INTEGER, cpu_ns INTEGER,
 cpu_before_ns INTEGER, peak_rss_bytes INTEGER, uid INTEGER, ended INTEGER, name TEXT, command TEXT, container TEXT, unit TEXT);
CREATE TABLE span_name(id INTEGER, kind TEXT, name TEXT, detail TEXT);
CREATE TABLE span_track(id INTEGER, kind TEXT, pid INTEGER, tid INTEGER, start_ticks INTEGER, domain TEXT, name TEXT);
CREATE TABLE span_path(id INTEGER, parent INTEGER, name INTEGER);
CREATE INDEX chunk_i ON chunk(series, first_ns);
"""

CHANNEL = dict(name="", quantity="energy", kind="counter", unit="J", scale=1.0, wrap=0, update_ns=0, window_ns=0, lag_ns=0, resolution=0.0,
               limit_w=0.0, parent="", wide=0, covers_cpu=0, provenance="measured", error_low=0.0, error_high=0.0, source="")


def ns(seconds):
    return np.rint(np.asarray(seconds, float) * 1e9).astype(np.int64)


def coded(values, present=None):
    """One column as it stands in a chunk: differences, zigzag, in planes of bytes."""
    values, mode, bitmap = np.asarray(values, dtype=np.int64), DIFFERENCES, b""
    if present is not None and not np.all(present):
        mode |= MISSING
        bitmap = np.packbits(present, bitorder="little").tobytes()
        values = values[present]
    if not len(values):
        return bytes([EMPTY | mode & MISSING]) + bitmap
    steps = np.diff(values, prepend=values[:1])
    zigzag = ((steps << 1) ^ (steps >> 63)).view(np.uint64)
    width = max(1, (int(zigzag.max()).bit_length() + 7) // 8)
    planes = zigzag.view(np.uint8).reshape(len(values), 8)
    body = struct.pack("<qqB", int(values[0]), 0, width)
    for plane in range(width):
        body += struct.pack("<BI", RAW, len(values)) + planes[:, plane].tobytes()
    return bytes([mode]) + bitmap + body


class Recording:
    def __init__(self, path):
        if os.path.exists(path):
            os.unlink(path)
        self.db = sqlite3.connect(path)
        self.db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + TABLES)
        self.db.execute(f"PRAGMA application_id={APPLICATION_ID}")
        self.db.execute("PRAGMA user_version=1")
        self.n_sensors = self.n_series = self.n_channels = 0

    def insert(self, table, *values):
        self.db.execute(f"INSERT INTO {table} VALUES({','.join('?' * len(values))})", values)

    def meta(self, **entries):
        for key, value in entries.items():
            self.insert("meta", key, value)

    def sensor(self, driver, name, period_s):
        self.n_sensors += 1
        self.insert("sensor", self.n_sensors, driver, name, int(period_s * 1e9))
        return self.n_sensors

    def series(self, kind, sensor, n_columns, columns=""):
        self.n_series += 1
        self.insert("series", self.n_series, kind, sensor, n_columns, columns)
        return self.n_series

    def channel(self, series, column, sensor, **given):
        self.n_channels += 1
        fields = {**CHANNEL, **given}
        names, marks = ",".join(fields), ",?" * len(fields)
        self.db.execute(f"INSERT INTO channel(id,series,col,sensor,{names}) VALUES(?,?,?,?{marks})",
                        [self.n_channels, series, column, sensor, *fields.values()])

    def rows(self, series, t_ns, columns, width_ns, present=None):
        """In the order of storage, which need not be that of time. present: of each column, which rows have a value."""
        first, last = int(t_ns.min()), int(t_ns.max())
        data = coded(t_ns - first)
        for i, column in enumerate(columns):
            data += coded(column, None if present is None else present[i])
        self.db.execute("INSERT INTO chunk(series,first_ns,last_ns,n,width_ns,time_unit_ns,stats,data) VALUES(?,?,?,?,?,1,NULL,?)",
                        (series, first, last, len(t_ns), int(width_ns), data))

    def close(self):
        self.db.commit()
        self.db.close()
