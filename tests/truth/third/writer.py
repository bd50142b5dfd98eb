"""Writes recordings, from docs/recording-format.md alone: it shares no code with src/ or with the other simulators, and so no mistakes."""

import os
import sqlite3
import struct

import numpy as np

NS = 1e9
IN_CHUNK = 8192  # rows, of samples and spans

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

CHANNEL = dict(wrap=0, update_ns=0, window_ns=0, lag_ns=0, resolution=0.0, limit_w=0.0, parent="", wide=0, covers_cpu=0,
               provenance="measured", error_low=0.0, error_high=0.0, source="")


def whole_ns(t_s):
    return int(t_s * NS)


def coded(values, present=None):
    """One column as it stands in a chunk: mode 1 with raw planes, and a bitmap where values are missing."""
    values = np.asarray(values, dtype=np.int64)
    head = b"\x01"
    if present is not None and not present.all():
        head = b"\x81" + np.packbits(present.astype(np.uint8), bitorder="little").tobytes()
        values = values[present]
    if not len(values):
        return head + struct.pack("<qqB", 0, 0, 0)
    step = np.diff(values, prepend=values[:1])
    zigzag = (step.astype(np.uint64) << np.uint64(1)) ^ (step >> np.int64(63)).astype(np.uint64)
    width = (int(zigzag.max()).bit_length() + 7) // 8
    planes = zigzag.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
    body = b"".join(struct.pack("<BI", 0, len(planes)) + plane.tobytes() for plane in planes.T)
    return head + struct.pack("<qqB", int(values[0]), 0, width) + body


def described(name, quantity, kind, unit, scale, resolution, **more):
    """What the table of channels says of one."""
    return dict(CHANNEL, name=name, quantity=quantity, kind=kind, unit=unit, scale=scale, resolution=resolution, **more)


def energy_counter(name, scale_j, resolution_j, **more):
    return described(name, "energy", "counter", "J", scale_j, resolution_j, **more)


def power_gauge(name, step_w, **more):
    return described(name, "power", "gauge", "W", step_w, step_w, **more)


class Recording:
    def __init__(self, path):
        if os.path.exists(path):
            os.remove(path)
        self.db = sqlite3.connect(path)
        self.db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;" + TABLES)
        self.db.execute(f"PRAGMA application_id={0x4E524721}")
        self.db.execute("PRAGMA user_version=1")

    def meta(self, **values):
        self.db.executemany("INSERT INTO meta VALUES(?,?)", values.items())

    def row(self, table, **values):
        """Adds a row; returns its id."""
        plain = [value.item() if hasattr(value, "item") else value for value in values.values()]
        names, marks = ",".join(values), ",".join("?" * len(values))
        return self.db.execute(f"INSERT INTO {table}({names}) VALUES({marks})", plain).lastrowid

    def sensor(self, driver, name, period_s):
        return self.row("sensor", driver=driver, name=name, period_ns=whole_ns(period_s))

    def samples(self, sensor, t_s, channels, width_ns):
        """Readings of a sensor at t_s. channels: (what is said of one, its values)."""
        series = self.row("series", kind="samples", sensor=sensor, n_columns=len(channels), columns="")
        for col, (said, _) in enumerate(channels):
            self.row("channel", series=series, col=col, sensor=sensor, **said)
        self.chunks(series, t_s, [values for _, values in channels], None, width_ns, IN_CHUNK)

    def spans(self, t_s, columns, present):
        """Events of spans: track, event, name, value, parent."""
        self.series("spans", ["track", "event", "name", "value", "parent"], t_s, columns, present, width_ns=100, in_chunk=IN_CHUNK)

    def series(self, kind, columns, t_s, values, present=None, *, width_ns, in_chunk=10**6):
        """A series of another kind. present: for each column None or which rows have a value."""
        series = self.row("series", kind=kind, sensor=0, n_columns=len(columns), columns=",".join(columns))
        self.chunks(series, t_s, values, present, width_ns, in_chunk)

    def chunks(self, series, t_s, columns, present, width_ns, in_chunk):
        t_ns = np.round(t_s * NS).astype(np.int64)
        width_ns = np.broadcast_to(width_ns, t_ns.shape)
        for begin in range(0, len(t_ns), in_chunk):
            part = slice(begin, begin + in_chunk)
            t, first = t_ns[part], t_ns[part].min()
            data = coded(t - first)
            for i, column in enumerate(columns):
                data += coded(column[part], present[i][part] if present and present[i] is not None else None)
            self.row("chunk", series=series, first_ns=first, last_ns=t.max(), n=len(t), width_ns=width_ns[part].max(),
                     time_unit_ns=1, stats=None, data=data)

    def close(self):
        self.db.commit()
        self.db.close()
