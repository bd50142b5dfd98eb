"""nrgd for tests: starts it on a tree, and speaks its protocol from docs/nrgd.md, without nrg's code."""
import array
import grp
import resource
import socket
import struct
import traceback

from support import *

NRGD = os.path.join(os.path.dirname(NRG), "daemon", "nrgd")
MAGIC, VERSION = 0x6467726E, 2
HELLO, WELCOME, SENSOR, OPEN, OPENED, READ, ROW, REFUSED = range(1, 9)
FULL, COARSE = 1, 2
ASK, NUMBER, COUNT = range(3)
MISSING = -2**63
GROUP = "games"  # stands for nrg: any group that every Debian has
MEMBER, STRANGER = 65533, 65532


def head(kind, version=VERSION, magic=MAGIC):
    return struct.pack("=IHH", magic, version, kind)


def hello(version=VERSION, program=b"test"):
    return head(HELLO, version) + struct.pack("24s", program)


def request(kind, sensor=0, wanted=0, version=VERSION):
    return head(kind, version) + struct.pack("=II", sensor, wanted)


def text(raw):
    return raw.split(b"\0")[0].decode()


def as_member(uid=MEMBER, group=GROUP):
    """For preexec_fn: a user whose supplementary groups are this one, without any capability."""
    def become():
        gid = grp.getgrnam(group).gr_gid
        os.setgroups([gid])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    return become


def connected(path, timeout=LIMIT_S):
    """A socket that is connected as nrg does it: who waits in the kernel gets his turn."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(timeout), 0))
    sock.connect(path)
    sock.settimeout(timeout)
    return sock


class Client:
    """One connection; answers as (kind, body, descriptors)."""

    def __init__(self, path, timeout=LIMIT_S, version=VERSION):
        self.version = version
        self.socket = connected(path, timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def receive(self):
        data, ancillary, _, _ = self.socket.recvmsg(20000, socket.CMSG_SPACE(4 * 64))
        fds = array.array("i")
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(content[:len(content) - len(content) % fds.itemsize])
        if not data:
            return None, b"", list(fds)
        magic, version, kind = struct.unpack("=IHH", data[:8])
        assert magic == MAGIC and (version == self.version or kind == REFUSED), (magic, version)
        return kind, data[8:], list(fds)

    def ask(self, packet):
        self.socket.send(packet)
        return self.receive()

    def greet(self):
        """(view, number of sensors, period in ns)."""
        kind, body, _ = self.ask(hello(self.version))
        assert kind == WELCOME, (kind, body)
        _, view, n, period = struct.unpack("=24sIIq", body)
        return view, n, period

    def sensor(self, i):
        """{name, driver, how, channels: [{name, source, scale, ...}]}."""
        kind, body, _ = self.ask(request(SENSOR, i, 0, self.version))
        assert kind == SENSOR, (kind, body)
        name, driver, how, n = struct.unpack_from("=64s24sII", body)
        channels = []
        for c in range(n):
            fields = struct.unpack_from("=48s48s128s5B3xQqqq5d", body, 96 + 304 * c)
            channels.append({"name": text(fields[0]), "source": text(fields[2]), "quantity": fields[3], "wrap": fields[8],
                             "update_ns": fields[9], "scale": fields[12], "resolution": fields[13]})
        return {"name": text(name), "driver": text(driver), "how": how, "channels": channels}

    def open(self, i, wanted):
        kind, body, fds = self.ask(request(OPEN, i, wanted, self.version))
        assert kind == OPENED, (kind, body)
        how, n = struct.unpack("=II", body)
        assert n == len(fds)
        return how, fds

    def row(self):
        """{t_ns, width_ns, errors, raw, epoch}; version 1 knows no epoch."""
        kind, body, _ = self.ask(request(READ, version=self.version))
        assert kind == ROW and len(body) == (400 if self.version == 1 else 408), (kind, len(body))
        t_ns, width_ns = struct.unpack_from("=qq", body)
        return {"t_ns": t_ns, "width_ns": width_ns, "errors": struct.unpack_from("=32i", body, 16), "raw": struct.unpack_from("=32q", body, 144),
                "epoch": struct.unpack_from("=q", body, 400)[0] if self.version > 1 else None}

    def read(self):
        row = self.row()
        return row["t_ns"], row["width_ns"], row["errors"], row["raw"]


def reading(path, channel=0):
    """One channel of the first sensor, as nrg gets it: (how, value), by a descriptor or by asking."""
    with Client(path) as client:
        client.greet()
        how, fds = client.open(0, 1 << channel)
        if how == ASK:
            return how, client.read()[3][channel]
        with os.fdopen(fds[0]) as f:
            return how, int(f.read())


class DaemonCase(Case):
    """A test with a powercap tree of its own whose counters only root can read, and daemons on it."""

    def tree(self, zones=(("intel-rapl:0", "package-0", 5_000_000), ("intel-rapl:0:0", "core", 1_000_000)), root=None):
        root = root or self.path("root")
        for zone, name, energy_uj in zones:
            folder = os.path.join(root, "sys/class/powercap", zone)
            os.makedirs(folder)
            for file, value, mode in (("name", name, 0o444), ("energy_uj", energy_uj, 0o400),
                                      ("max_energy_range_uj", 262143328850, 0o444)):
                path = os.path.join(folder, file)
                with open(path, "w") as f:
                    f.write(f"{value}\n")
                os.chmod(path, mode)
        os.makedirs(os.path.join(root, "proc"))
        with open(os.path.join(root, "proc/cpuinfo"), "w") as f:
            f.write("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nflags\t\t: fpu\n")
        return root

    def held(self, become, work):
        """What work(kept) returns; the process keeps what is in the list until it is killed, at the test's end if not before. (pid, result)"""
        out, into = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                os.close(out)
                become()
                kept = []
                os.write(into, json.dumps(work(kept)).encode())
                os.close(into)
                while True:
                    time.sleep(1000)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        os.close(into)
        self.addCleanup(self.end_held, pid)
        with open(out) as f:
            return pid, json.load(f)

    def end_held(self, pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            pass

    def set_energy(self, root, zone, energy_uj):
        with open(os.path.join(root, "sys/class/powercap", zone, "energy_uj"), "r+") as f:
            f.write(f"{energy_uj:<16}\n")

    def sanitized(self):
        return ["--no-filter"] if sanitizer_library() else []

    def daemon(self, *options, root=None, command=None, limit=None, **kw):
        """Starts nrgd, with at most `limit` descriptors; returns (process, path of its socket)."""
        path = self.path(f"s{len(self.started)}")
        options = ["--socket", path, "--group", GROUP, "--idle", "0", *self.sanitized(), *options]
        if limit:
            kw["preexec_fn"] = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        process = subprocess.Popen([*(command or []), NRGD, *(["--root", root] if root else []), *options],
                                   stderr=subprocess.PIPE, env=self.env(), **kw)
        self.started.append(process)
        eventually(lambda: os.path.exists(path) or process.poll() is not None, "nrgd listens")
        self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
        return process, path

    def in_process(self, become, work):
        """What work() prints, run as another user in a process of its own."""
        out, into = os.pipe()
        pid = os.fork()
        if not pid:
            try:
                become()
                os.write(into, json.dumps(work()).encode())
            finally:
                os._exit(0)
        os.close(into)
        with open(out) as f:
            content = f.read()
        os.waitpid(pid, 0)
        return json.loads(content)

    def listener(self):
        """A socket as systemd keeps it: it outlives the daemons that are given it. (socket, path)"""
        path = self.path("kept")
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server.bind(path)
        os.chmod(path, 0o666)
        server.listen(128)
        self.addCleanup(server.close)
        return server, path

    def daemon_on(self, server, root, limit=1024):
        """Starts nrgd on that socket."""
        def hand_over():
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
            os.dup2(server.fileno(), 3)
            os.set_inheritable(3, True)
        script = 'export LISTEN_PID=$$ LISTEN_FDS=1; exec "$@"'
        process = subprocess.Popen(["sh", "-c", script, "-", NRGD, "--root", root, "--group", GROUP, "--idle", "0", *self.sanitized()],
                                   close_fds=False, preexec_fn=hand_over, stderr=subprocess.PIPE, env=self.env(), bufsize=0)
        self.started.append(process)
        self.assertIn(b"the full view is for", process.stderr.readline())
        return process

    def stop(self, process):
        """Ends it; it must end well, and a sanitizer must have nothing to say."""
        process.terminate()
        _, err = process.communicate(timeout=LIMIT_S)
        self.assert_sane(err)
        self.assertEqual(process.returncode, 0, err)
        return err.decode()


__all__ = [name for name in dir() if not name.startswith("_")]
