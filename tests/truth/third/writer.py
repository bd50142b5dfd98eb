"""Writes a recording of nrg from docs/recording-format.md alone."""
import os
import sqlite3
import struct

import numpy as np

NS = 1e9


def code_column(values, present=None):
    """One column: mode 1 with raw planes, bitmap where something is missing."""
    v = np.asarray(values, dtype=np.int64)
    out = b""
    mode = 1
    if present is not None and not present.all():
        mode |= 0x80
        bits = np.packbits(present.astype(np.uint8), bitorder="little").tobytes()
        v = v[present]
        head = bytes([mode]) + bits
    else:
        head = bytes([mode])
    if not len(v):
        return head + struct.pack("<qqB", 0, 0, 0)
    with np.errstate(over="ignore"):
        d = np.diff(v, prepend=v[:1])
        z = ((d.astype(np.uint64) << np.uint64(1)) ^ (d >> np.int64(63)).astype(np.uint64))
    top = int(z.max())
    width = max((top.bit_length() + 7) // 8, 0)
    out = head + struct.pack("<qqB", int(v[0]), 0, width)
    raw = z.astype("<u8").view(np.uint8).reshape(-1, 8)
    for p in range(width):
        plane = np.ascontiguousarray(raw[:, p]).tobytes()
        out += struct.pack("<BI", 0, len(plane)) + plane
    return out


TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value);
CREATE TABLE sensor(id INTEGER PRIMARY KEY, driver TEXT, name TEXT, period_ns INTEGER);
CREATE TABLE channel(id INTEGER PRIMARY KEY, series INTEGER, col INTEGER, sensor INTEGER, name TEXT,
  quantity TEXT, kind TEXT, unit TEXT, scale REAL, wrap INTEGER, update_ns INTEGER, window_ns INTEGER,
  lag_ns INTEGER, resolution REAL, limit_w REAL, parent TEXT, wide INTEGER, covers_cpu INTEGER,
  provenance TEXT, error_low REAL, error_high REAL, source TEXT);
CREATE TABLE series(id INTEGER PRIMARY KEY, kind TEXT, sensor INTEGER, n_columns INTEGER, columns TEXT);
CREATE TABLE chunk(id INTEGER PRIMARY KEY, series INTEGER, first_ns INTEGER, last_ns INTEGER, n INTEGER,
  width_ns INTEGER, time_unit_ns INTEGER, stats BLOB, data BLOB);
CREATE TABLE clock(mono_ns INTEGER, real_ns INTEGER, tsc INTEGER);
CREATE TABLE run(id INTEGER PRIMARY KEY, kind TEXT, begin_ns INTEGER, end_ns INTEGER, exit_code INTEGER);
CREATE TABLE event(id INTEGER PRIMARY KEY, t_ns INTEGER, kind TEXT, source TEXT, detail TEXT);
CREATE TABLE process(id INTEGER PRIMARY KEY, pid INTEGER, parent_pid INTEGER, start_ticks INTEGER,
  first_ns INTEGER, last_ns INTEGER, cpu_ns INTEGER, cpu_before_ns INTEGER, peak_rss_bytes INTEGER,
  uid INTEGER, ended INTEGER, name TEXT, command TEXT, container TEXT, unit TEXT);
CREATE TABLE graph(id INTEGER PRIMARY KEY, name TEXT, format TEXT, data BLOB);
CREATE TABLE span_name(id INTEGER PRIMARY KEY, kind TEXT, name TEXT, detail TEXT);
CREATE TABLE span_track(id INTEGER PRIMARY KEY, kind TEXT, pid INTEGER, tid INTEGER, start_ticks INTEGER,
  domain TEXT, name TEXT);
CREATE TABLE span_path(id INTEGER PRIMARY KEY, parent INTEGER, name INTEGER);
"""


class Recording:
    def __init__(self, path, meta):
        if os.path.exists(path):
            os.remove(path)
        self.db = sqlite3.connect(path)
        self.db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + TABLES)
        self.db.execute("PRAGMA application_id=%d" % 0x4e524721)
        self.db.execute("PRAGMA user_version=1")
        for k, v in meta.items():
            self.db.execute("INSERT INTO meta VALUES(?,?)", (k, v))
        self.n = dict(sensor=0, channel=0, series=0)

    def add(self, table, **row):
        cols = ",".join(row)
        cur = self.db.execute("INSERT INTO %s(%s) VALUES(%s)" % (table, cols, ",".join("?" * len(row))),
                              [v.item() if hasattr(v, "item") else v for v in row.values()])
        return cur.lastrowid

    def sensor(self, driver, name, period_s):
        return self.add("sensor", driver=driver, name=name, period_ns=int(period_s * NS))

    def series(self, kind, sensor, columns):
        return self.add("series", kind=kind, sensor=sensor, n_columns=len(columns),
                        columns="" if kind == "samples" else ",".join(columns))

    def channel(self, series, col, sensor, name, quantity, kind, unit, scale, **more):
        row = dict(series=series, col=col, sensor=sensor, name=name, quantity=quantity, kind=kind, unit=unit,
                   scale=scale, wrap=0, update_ns=0, window_ns=0, lag_ns=0, resolution=0.0, limit_w=0.0,
                   parent="", wide=0, covers_cpu=0, provenance="measured", error_low=0.0, error_high=0.0,
                   source="")
        row.update(more)
        return self.add("channel", **row)

    def rows(self, series, t_ns, columns, presents=None, width_ns=4000, split=8192):
        """Rows in order; columns is a list of arrays."""
        t = np.asarray(t_ns, dtype=np.int64)
        widths = np.broadcast_to(np.asarray(width_ns), t.shape)
        for a in range(0, len(t), split):
            b = min(a + split, len(t))
            data = code_column(t[a:b] - t[a:b].min())
            for i, c in enumerate(columns):
                data += code_column(np.asarray(c)[a:b], presents[i][a:b] if presents and presents[i] is not None else None)
            self.add("chunk", series=series, first_ns=int(t[a:b].min()), last_ns=int(t[a:b].max()), n=b - a,
                     width_ns=int(widths[a:b].max()), time_unit_ns=1, stats=None, data=data)

    def close(self):
        self.db.commit()
        self.db.close()
