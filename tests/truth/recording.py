"""Writes recordings from docs/recording-format.md alone: no code of src/, so that a mistake there can't hide here.

Columns are coded in mode 1 with raw planes, which every reader must know. Times are ns on the machine's clock. A recording that is there
already is replaced.
"""
import os
import sqlite3
import struct

import numpy as np

APPLICATION_ID = 0x4E524721
CHUNK_ROWS = 1 << 18
NO_VALUE = np.iinfo(np.int64).min  # in a column of optional values: no value in this row

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE sensor(id INTEGER PRIMARY KEY, driver TEXT, name TEXT, period_ns INTEGER);
CREATE TABLE channel(id INTEGER PRIMARY KEY, series INTEGER, col INTEGER, sensor INTEGER, name TEXT, quantity TEXT,
 kind TEXT, unit TEXT, scale REAL, wrap INTEGER, update_ns INTEGER, lag_ns INTEGER, resolution REAL, limit_w REAL,
 parent TEXT, wide INTEGER, covers_cpu INTEGER, provenance TEXT, error_low REAL, error_high REAL, source TEXT,
 window_ns INTEGER);
CREATE TABLE series(id INTEGER PRIMARY KEY, kind TEXT, sensor INTEGER, n_columns INTEGER, columns TEXT);
CREATE TABLE chunk(id INTEGER PRIMARY KEY, series INTEGER, first_ns INTEGER, last_ns INTEGER, n INTEGER,
 width_ns INTEGER, time_unit_ns INTEGER, stats BLOB, data BLOB);
CREATE TABLE clock(mono_ns INTEGER PRIMARY KEY, real_ns INTEGER, tsc INTEGER);
CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER, parent_pid INTEGER, start_ticks INTEGER, first_ns INTEGER,
 last_ns INTEGER, cpu_ns INTEGER, cpu_before_ns INTEGER, peak_rss_bytes INTEGER, uid INTEGER, ended INTEGER,
 name TEXT, command TEXT, container TEXT, unit TEXT);
CREATE TABLE run(id INTEGER PRIMARY KEY, kind TEXT, begin_ns INTEGER, end_ns INTEGER, exit_code INTEGER);
CREATE TABLE event(id INTEGER PRIMARY KEY, t_ns INTEGER, kind TEXT, source TEXT, detail TEXT);
CREATE TABLE span_name(id INTEGER PRIMARY KEY, kind TEXT, name TEXT, detail TEXT);
CREATE TABLE span_track(id INTEGER PRIMARY KEY, kind TEXT, pid INTEGER, tid INTEGER, start_ticks INTEGER,
 domain TEXT, name TEXT);
CREATE TABLE span_path(id INTEGER PRIMARY KEY, parent INTEGER, name INTEGER);
"""

CHANNEL = {"quantity": "energy", "kind": "counter", "unit": "J", "scale": 1.0, "wrap": 0, "update_ns": 0,
           "lag_ns": 0, "resolution": 0.0, "limit_w": 0.0, "parent": "", "wide": 0, "covers_cpu": 0,
           "provenance": "measured", "error_low": 0.0, "error_high": 0.0, "source": "simulated",
           "window_ns": 0}


def coded(values):
    """One column: mode 1 with step 0, planes as they are; gaps by a bitmap."""
    values = np.asarray(values, dtype=np.int64)
    present = values != NO_VALUE
    head = b"\x01"
    if not present.all():
        head = b"\x81" + np.packbits(present, bitorder="little").tobytes()
        values = values[present]
    if not len(values):
        return head + struct.pack("<qqB", 0, 0, 0)
    steps = np.diff(values, prepend=values[0])
    zigzag = ((steps << 1) ^ (steps >> 63)).astype(np.uint64)
    width = max(1, (int(zigzag.max()).bit_length() + 7) // 8)
    planes = zigzag.astype("<u8").view(np.uint8).reshape(-1, 8)
    body = struct.pack("<qqB", int(values[0]), 0, width)
    for p in range(width):
        body += struct.pack("<BI", 0, len(values)) + planes[:, p].tobytes()
    return head + body


class Recording:
    def __init__(self, path):
        if os.path.exists(path):
            os.unlink(path)
        self.db = sqlite3.connect(path)
        self.db.executescript(f"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
                              f"PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version=1;" + SCHEMA)
        self.n_sensors = self.n_series = self.n_channels = 0

    def meta(self, **pairs):
        self.db.executemany("INSERT INTO meta VALUES(?,?)", pairs.items())

    def insert(self, table, *rows):
        for row in rows:
            self.db.execute(f"INSERT INTO {table} VALUES({','.join('?' * len(row))})", row)

    def sensor(self, driver, name, period_s):
        self.n_sensors += 1
        self.insert("sensor", (self.n_sensors, driver, name, round(period_s * 1e9)))
        return self.n_sensors

    def series(self, kind, sensor, names, t_ns, columns, order=None):
        """A series with its chunks. order: rows of a chunk are sorted by this column, then by time."""
        self.n_series += 1
        self.insert("series", (self.n_series, kind, sensor, len(columns), "" if kind == "samples" else ",".join(names)))
        t_ns, columns = np.asarray(t_ns, dtype=np.int64), [np.asarray(c, dtype=np.int64) for c in columns]
        for at in range(0, len(t_ns), CHUNK_ROWS):
            t, cut = t_ns[at:at + CHUNK_ROWS], [c[at:at + CHUNK_ROWS] for c in columns]
            if order is not None:
                by = np.lexsort((t, cut[order]))
                t, cut = t[by], [c[by] for c in cut]
            first = int(t.min())
            data = coded(t - first) + b"".join(coded(c) for c in cut)
            self.db.execute("INSERT INTO chunk(series, first_ns, last_ns, n, width_ns, time_unit_ns, data)"
                            " VALUES(?,?,?,?,?,1,?)", (self.n_series, first, int(t.max()), len(t), 2000, data))
        return self.n_series

    def samples(self, driver, name, period_s, t_ns, channels):
        """A sensor and its samples. channels: pairs of (its description, raw values)."""
        sensor = self.sensor(driver, name, period_s)
        series = self.series("samples", sensor, (), t_ns, [values for _, values in channels])
        for col, (described, _) in enumerate(channels):
            self.n_channels += 1
            row = {**CHANNEL, **described, "id": self.n_channels, "series": series, "col": col, "sensor": sensor}
            self.db.execute(f"INSERT INTO channel({','.join(row)}) VALUES({','.join('?' * len(row))})",
                            list(row.values()))

    def close(self):
        self.db.commit()
        self.db.close()
