"""Recordings with spans, made without the program's own writer.

A power log in Jetson's format becomes a recording through `nrg import`; the spans are then added as
docs/recording-format.md describes the tables and the coding of columns. Times are seconds from the
beginning of the log.
"""
import datetime
import sqlite3

BEGIN = datetime.datetime(2025, 1, 28, 13, 38, 25, tzinfo=datetime.timezone.utc)
BEGIN_NS = int(BEGIN.timestamp()) * 10**9
EVENTS = {"begin": 0, "end": 1, "mark": 2, "count": 3}
MISSING = None


def power_log(powers, period_s=0.01):
    """A Jetson log of 5 V with these watts, one reading each period."""
    lines = []
    for i, watts in enumerate(powers):
        at = BEGIN + datetime.timedelta(seconds=i * period_s)
        lines.append(f"{at:%Y%m%d-%H:%M:%S.%f},5000.0,{watts / 5 * 1000:.6f}\n")
    return "".join(lines)


def column(values):
    """A column in mode 0: differences as zigzag varints, with a bitmap where values are missing."""
    gaps = any(v is MISSING for v in values)
    out = bytearray([0x80 if gaps else 0])
    if gaps:
        bitmap = bytearray((len(values) + 7) // 8)
        for i, v in enumerate(values):
            if v is not MISSING:
                bitmap[i // 8] |= 1 << i % 8
        out += bitmap
    last = 0
    for v in values:
        if v is MISSING:
            continue
        step = (v - last + 2**63) % 2**64 - 2**63
        code = (step << 1 ^ step >> 63) % 2**64
        last = v
        while code >= 0x80:
            out.append(code & 0x7F | 0x80)
            code >>= 7
        out.append(code)
    return bytes(out)


class Spans:
    """Collects events; write() adds them to a recording."""

    def __init__(self):
        self.names, self.tracks, self.rows = {}, {}, []

    def name(self, text, kind="span", detail=""):
        return self.names.setdefault((kind, text, detail), len(self.names) + 1)

    def track(self, name="main", kind="thread", pid=0, tid=0, domain=""):
        return self.tracks.setdefault((kind, pid, tid, 0, domain, name), len(self.tracks) + 1)

    def event(self, time_s, event, name=MISSING, value=MISSING, track=None):
        self.rows.append((BEGIN_NS + round(time_s * 1e9), track or self.track(), EVENTS[event], name, value,
                          MISSING))

    def span(self, begin_s, end_s, text, kind="span", detail="", number=MISSING, inside=(), track=None, counts=()):
        """A span with those inside it: each a tuple of arguments or a dict of them."""
        name = self.name(text, kind, detail)
        self.event(begin_s, "begin", name, number, track)
        for counter, amount in counts:
            self.event(begin_s, "count", self.name(counter, "counter"), amount, track)
        for inner in inside:
            if isinstance(inner, dict):
                self.span(**{"track": track, **inner})
            else:
                self.span(*inner, track=track)
        if end_s is not None:
            self.event(end_s, "end", name, MISSING, track)

    def write(self, path):
        db = sqlite3.connect(path)
        db.executescript("""
            CREATE TABLE IF NOT EXISTS span_name(id INTEGER PRIMARY KEY, kind TEXT, name TEXT, detail TEXT);
            CREATE TABLE IF NOT EXISTS span_track(id INTEGER PRIMARY KEY, kind TEXT, pid INTEGER, tid INTEGER,
                start_ticks INTEGER, domain TEXT, name TEXT);
            CREATE TABLE IF NOT EXISTS span_path(id INTEGER PRIMARY KEY, parent INTEGER, name INTEGER);""")
        db.executemany("INSERT INTO span_name(id, kind, name, detail) VALUES(?, ?, ?, ?)",
                       [(i, kind, text, detail) for (kind, text, detail), i in self.names.items()])
        db.executemany("INSERT INTO span_track(id, kind, pid, tid, start_ticks, domain, name) VALUES(?,?,?,?,?,?,?)",
                       [(i, *track) for track, i in self.tracks.items()])
        series = db.execute("SELECT max(id) FROM series").fetchone()[0] + 1
        db.execute("INSERT INTO series(id, kind, sensor, n_columns, columns) VALUES(?, 'spans', 0, 5,"
                   " 'track,event,name,value,parent')", (series,))
        rows = sorted(self.rows, key=lambda row: row[1])  # by track, each track's as they came
        times = [row[0] for row in rows]
        first, last = min(times), max(times)
        data = column([t - first for t in times])
        for c in range(1, 6):
            data += column([row[c] for row in rows])
        known = {row[1] for row in db.execute("PRAGMA table_info(chunk)")}
        values = {"series": series, "first_ns": first, "last_ns": last, "time_unit_ns": 1, "n": len(rows),
                  "data": data}
        for extra in known - set(values) - {"id"}:
            values[extra] = 0 if extra == "width_ns" else None
        db.execute(f"INSERT INTO chunk({', '.join(values)}) VALUES({', '.join('?' * len(values))})",
                   list(values.values()))
        db.commit()
        db.close()
