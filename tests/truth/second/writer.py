"""Writes recordings, from docs/recording-format.md only."""

import os
import sqlite3
import struct

import numpy as np

NS = 10**9

TABLES = {
    "meta": "key TEXT PRIMARY KEY, value",
    "sensor": "id INTEGER PRIMARY KEY, driver TEXT, name TEXT, period_ns INTEGER",
    "channel": "id INTEGER PRIMARY KEY, series INTEGER, col INTEGER, sensor INTEGER, name TEXT, quantity TEXT, kind TEXT, unit TEXT, scale REAL, "
    "wrap INTEGER, update_ns INTEGER, window_ns INTEGER, lag_ns INTEGER, resolution REAL, limit_w REAL, parent TEXT, wide INTEGER, "
    "covers_cpu INTEGER, provenance TEXT, error_low REAL, error_high REAL, source TEXT",
    "series": "id INTEGER PRIMARY KEY, kind TEXT, sensor INTEGER, n_columns INTEGER, columns TEXT",
    "chunk": "id INTEGER PRIMARY KEY, series INTEGER, first_ns INTEGER, last_ns INTEGER, n INTEGER, width_ns INTEGER, time_unit_ns INTEGER, "
    "stats BLOB, data BLOB",
    "clock": "mono_ns INTEGER, real_ns INTEGER, tsc INTEGER",
    "run": "id INTEGER PRIMARY KEY, kind TEXT, begin_ns INTEGER, end_ns INTEGER, exit_code INTEGER",
    "event": "id INTEGER PRIMARY KEY, t_ns INTEGER, kind TEXT, source TEXT, detail TEXT",
    "process": "id INTEGER PRIMARY KEY, pid INTEGER, parent_pid INTEGER, start_ticks INTEGER, first_ns INTEGER, last_ns INTEGER, cpu_ns INTEGER, "
    "cpu_before_ns INTEGER, peak_rss_bytes INTEGER, uid INTEGER, ended INTEGER, name TEXT, command TEXT, container TEXT, unit TEXT",
    "graph": "id INTEGER PRIMARY KEY, name TEXT, format TEXT, data BLOB",
    "span_name": "id INTEGER PRIMARY KEY, kind TEXT, name TEXT, detail TEXT",
    "span_track": "id INTEGER PRIMARY KEY, kind TEXT, pid INTEGER, tid INTEGER, start_ticks INTEGER, domain TEXT, name TEXT",
    "span_path": "id INTEGER PRIMARY KEY, parent INTEGER, name INTEGER",
}

CHANNEL = {
    "wrap": 0,
    "update_ns": 0,
    "window_ns": None,
    "lag_ns": 0,
    "resolution": 0.0,
    "limit_w": 0.0,
    "parent": "",
    "wide": 0,
    "covers_cpu": 0,
    "provenance": "measured",
    "error_low": 0.0,
    "error_high": 0.0,
    "source": "",
}


def plane(byte):
    """One byte of every value: once, where all are the same."""
    if (byte == byte[0]).all():
        return struct.pack("<BI", 2, 1) + bytes([int(byte[0])])
    return struct.pack("<BI", 0, len(byte)) + byte.tobytes()


def coded(values, present=None):
    """A column as it stands in a chunk: a bit map where values are missing, then differences in planes of bytes."""
    values = np.asarray(values, dtype=np.int64)
    missing, bitmap = 0, b""
    if present is not None and not present.all():
        missing = 0x80
        bitmap = np.packbits(present.astype(np.uint8), bitorder="little").tobytes()
        values = values[present]
    if len(values) == 0:
        return bytes([missing]) + bitmap
    step = np.diff(values, prepend=values[0])
    zigzag = ((step << 1) ^ (step >> 63)).view(np.uint64)
    width = max(1, (int(zigzag.max()).bit_length() + 7) // 8)
    planes = [plane(((zigzag >> np.uint64(8 * p)) & np.uint64(255)).astype(np.uint8)) for p in range(width)]
    return bytes([missing | 1]) + bitmap + struct.pack("<qqB", int(values[0]), 0, width) + b"".join(planes)


class Recording:
    def __init__(self, path, start_ns):
        self.start_ns = start_ns
        if os.path.exists(path):
            os.unlink(path)
        self.db = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"application_id={0x4E524721}", "user_version=1"):
            self.db.execute("PRAGMA " + pragma)
        self.db.execute("BEGIN")
        for table, columns in TABLES.items():
            self.db.execute(f"CREATE TABLE {table} ({columns})")
        self.ids = dict.fromkeys(("sensor", "series", "channel"), 0)

    def ns(self, t_s):
        """Seconds of the simulation as times of the recording."""
        return np.round(np.asarray(t_s) * 1e9).astype(np.int64) + self.start_ns

    def row(self, table, **values):
        names, marks = ",".join(f'"{name}"' for name in values), ",".join("?" * len(values))
        plain = [x.item() if isinstance(x, (np.generic, np.ndarray)) else x for x in values.values()]
        self.db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", plain)

    def numbered(self, table, **values):
        """A row with the next id of its table."""
        self.ids[table] += 1
        self.row(table, id=self.ids[table], **values)
        return self.ids[table]

    def meta(self, **values):
        for key, value in values.items():
            self.row("meta", key=key, value=value)

    def sensor(self, driver, name, period_ns):
        return self.numbered("sensor", driver=driver, name=name, period_ns=int(period_ns))

    def series(self, kind, sensor, n_columns, columns=None):
        return self.numbered("series", kind=kind, sensor=sensor, n_columns=n_columns, columns=columns)

    def samples(self, sensor, t_s, channels, width_ns):
        """Readings of a sensor at t_s. channels: (what the channel table says of one, its values)."""
        series = self.series("samples", sensor, len(channels))
        for col, (said, _) in enumerate(channels):
            self.numbered("channel", **{**CHANNEL, "series": series, "col": col, "sensor": sensor, **said})
        self.chunk(series, self.ns(t_s), [values for _, values in channels], width_ns)

    def chunk(self, series, t_ns, columns, width_ns=0, present=None):
        first = int(t_ns.min())
        data = coded(t_ns - first)
        for i, column in enumerate(columns):
            data += coded(column, None if present is None else present[i])
        about = {"first_ns": first, "last_ns": int(t_ns.max()), "n": len(t_ns), "width_ns": width_ns, "time_unit_ns": 1}
        self.row("chunk", series=series, **about, stats=None, data=data)

    def close(self):
        self.db.execute("COMMIT")
        self.db.close()
