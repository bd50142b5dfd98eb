"""What a disk may show after a power cut, from a log of what was done to the files of a folder (tests/preload/disk_log.c).

Only what was synced is sure. Of what was not, each sector of 512 bytes may be there or not, in any order, and as any
of the versions that it had since; a file may have any of the sizes that it had since, with zeros or garbage where
no data came; a name may mean what it meant at any moment since the folder was synced. Syncing a file says nothing about
its name. That is harsher than the file systems of today, which keep some order. A sector itself is whole:
disks promise that, and SQLite relies on it.
"""
import random

SECTOR = 512


class File:
    """Content, and how it came about since the last sync."""

    def __init__(self, content=b""):
        self.now = bytearray(content)
        self.restart()

    def restart(self):
        """It was synced: all that came before is sure."""
        self.synced = bytes(self.now)
        self.sizes = [len(self.now)]
        self.versions = {}  # sector: its contents since the sync, the oldest first

    def resize(self, size):
        del self.now[size:]
        self.now.extend(bytes(size - len(self.now)))
        self.sizes.append(size)

    def sector(self, content, number):
        return bytes(content[number * SECTOR:(number + 1) * SECTOR]).ljust(SECTOR, b"\0")

    def write(self, at, data):
        touched = range(at // SECTOR, (at + len(data) - 1) // SECTOR + 1)
        for number in touched:
            self.versions.setdefault(number, [self.sector(self.synced, number)])
        if at + len(data) > len(self.now):
            self.resize(at + len(data))
        self.now[at:at + len(data)] = data
        for number in touched:
            self.versions[number].append(self.sector(self.now, number))

    def after_cut(self, rng, how):
        """One of the contents that it may have."""
        size = how.pick(rng, self.sizes)
        content = bytearray(self.synced[:size].ljust(size, b"\0"))
        for number, versions in self.versions.items():
            chosen = how.pick(rng, versions)
            if chosen is versions[0] and number * SECTOR >= len(self.synced) and how.garbage:
                chosen = rng.randbytes(SECTOR)
            if number * SECTOR < size:
                end = min((number + 1) * SECTOR, size)
                content[number * SECTOR:end] = chosen[:end - number * SECTOR]
        return bytes(content)


class How:
    """How much of what was not synced came to the disk: nothing, all, or by chance."""

    def __init__(self, rng):
        self.share = rng.choice((0, 0.5, 0.9, 0.99, 1))
        self.garbage = rng.random() < 0.3

    def pick(self, rng, versions):
        if rng.random() < self.share:
            return versions[-1]
        return versions[0] if rng.random() < 0.5 else rng.choice(versions)


def read_log(path):
    """(t_ns, operation, arguments, data) of each record."""
    with open(path, "rb") as f:
        log = f.read()
    at, found = 0, []
    while at < len(log):
        end = log.index(b"\n", at)
        t_ns, operation, *arguments = log[at:end].decode().split(" ")
        at, data = end + 1, b""
        if operation == "write":
            data = log[at:at + int(arguments[2])]
            at += len(data)
        found.append((int(t_ns), operation, arguments, data))
    return found


class Disk:
    """A folder: names, files, open descriptors. `before`: what was there at first, all of it synced."""

    def __init__(self, before=()):
        self.names = {name: [File(content)] for name, content in dict(before).items()}  # versions since the folder's sync
        self.fds = {}

    def means(self, name):
        return self.names.get(name, [None])[-1]

    def set(self, name, file):
        self.names.setdefault(name, [None]).append(file)

    def apply(self, operation, arguments, data):
        getattr(self, "do_" + operation)(arguments, data)

    def do_open(self, arguments, _):
        fd, truncated, name = arguments
        if name != "." and self.means(name) is None:
            self.set(name, File())
        self.fds[fd] = None if name == "." else self.means(name)
        if truncated == "1":
            self.fds[fd].resize(0)

    def do_anonymous(self, arguments, _):
        self.fds[arguments[0]] = File()

    def do_close(self, arguments, _):
        self.fds.pop(arguments[0], None)

    def do_write(self, arguments, data):
        self.fds[arguments[0]].write(int(arguments[1]), data)

    def do_truncate(self, arguments, _):
        self.fds[arguments[0]].resize(int(arguments[1]))

    def do_sync(self, arguments, _):
        file = self.fds[arguments[0]]
        if file is not None:
            file.restart()
        else:  # the folder
            self.names = {name: versions[-1:] for name, versions in self.names.items()}

    def do_name(self, arguments, _):
        self.set(arguments[1], self.fds[arguments[0]])

    def do_link(self, arguments, _):
        self.set(arguments[1], self.means(arguments[0]))

    def do_rename(self, arguments, _):
        self.set(arguments[1], self.means(arguments[0]))
        self.set(arguments[0], None)

    def do_unlink(self, arguments, _):
        self.set(arguments[0], None)

    def after_cut(self, seed):
        """{name: content} of one of the states that the disk may show now."""
        rng = random.Random(seed)
        how = How(rng)
        found = {}
        for name in sorted(self.names):
            file = how.pick(rng, self.names[name])
            if file is None:
                continue
            if name.endswith("-shm"):  # written through memory: anything
                found[name] = rng.choice((b"", bytes(32768), rng.randbytes(32768)))
            else:
                found[name] = file.after_cut(rng, how)
        return found


def cuts(records, n, seed):
    """n numbers of records before which the power fails: half of them near those that are no writes."""
    rng = random.Random(seed)
    edges = [i for i, r in enumerate(records) if r[1] not in ("write", "close")] or [0]
    near = [min(max(rng.choice(edges) + rng.randint(-1, 2), 0), len(records)) for _ in range(n // 2)]
    return sorted(near + [rng.randint(0, len(records)) for _ in range(n - n // 2)])
