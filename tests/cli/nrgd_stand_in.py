"""A stand-in for nrgd, of either version of its protocol, with one coarse counter of known power (docs/nrgd.md)."""
import threading

from nrgd_client import *

WATTS = 100
SKIP_J = 500  # by how much more than before a counter begins anew: it does not fall
UPDATE_NS = 400_000_000


class StandIn:
    """Counts WATTS from the first opening on. `anew_s`: so long after it the counter begins anew, SKIP_J further on.

    cut: the connection ends then, as when nrgd is restarted; turns: it has descriptors to spare from then on, or so it says;
    silent: there is never a reading; refuse: nothing is opened.
    """

    def __init__(self, path, version=VERSION, anew_s=None, cut=False, turns=False, silent=False, refuse=False, update_ns=20_000_000):
        self.turns = turns
        self.version, self.anew_s, self.cut, self.silent, self.refuse, self.update_ns = version, anew_s, cut, silent, refuse, update_ns
        self.begin_ns = None
        self.hellos = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        os.chmod(path, 0o666)
        self.listener.listen(32)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def is_anew(self, t_ns):
        return self.begin_ns is not None and self.anew_s is not None and t_ns - self.begin_ns >= self.anew_s * 1e9

    def counted(self):
        """(time, epoch, joules) of the last update."""
        now_ns = time.monotonic_ns()
        t_ns = self.begin_ns + (now_ns - self.begin_ns) // self.update_ns * self.update_ns
        anew = self.is_anew(t_ns)
        return t_ns, self.begin_ns + (1 if anew else 0), int((t_ns - self.begin_ns) / 1e9 * WATTS) + (SKIP_J if anew else 0)

    def row(self):
        t_ns, epoch, raw = (0, 0, MISSING) if self.silent else self.counted()
        body = struct.pack("=qq32i32q", t_ns, 0, *[0] * 32, raw, *[MISSING] * 31)
        return head(ROW, self.version) + body + (struct.pack("=q", epoch) if self.version > 1 else b"")

    def sensor(self):
        channel = struct.pack("=48s48s128s5B3xQqqq5d", b"package-9", b"", b"a stand-in", 0, 0, 0, 0, 1, 0, self.update_ns, 0, 0, 1, 1, 0, 0, 0)
        how = NUMBER if self.turns and self.is_anew(time.monotonic_ns()) else ASK
        return head(SENSOR, self.version) + struct.pack("=64s24sII", b"stand-in", b"test", how, 1) + channel + bytes(304 * 31)

    def refusal(self, error, why):
        return head(REFUSED, self.version) + struct.pack("=i24s132s", error, b"0.2.0", why)

    def answer(self, kind, version):
        if kind == HELLO:
            self.hellos.append(version)
        if version != self.version:
            return self.refusal(-93, b"this nrgd speaks another version of the protocol")
        if kind == OPEN and self.refuse:
            return self.refusal(-11, b"you have too many connections")
        if kind == OPEN and self.begin_ns is None:
            self.begin_ns = time.monotonic_ns()
        return {HELLO: lambda: head(WELCOME, self.version) + struct.pack("=24sIIq", b"0.2.0", COARSE, 1, self.update_ns), SENSOR: self.sensor,
                OPEN: lambda: head(OPENED, self.version) + struct.pack("=II", ASK, 0), READ: self.row}[kind]()

    def serve(self, peer):
        epoch = None
        with peer:
            while True:
                try:
                    packet = peer.recv(20000)
                except OSError:
                    return
                if not packet:
                    return
                _, version, kind = struct.unpack("=IHH", packet[:8])
                if kind == READ and self.cut:
                    now = self.counted()[1]
                    if epoch is not None and now != epoch:
                        return  # as nrgd does when it ends
                    epoch = now
                answer = self.answer(kind, version)
                peer.send(answer)
                if struct.unpack("=H", answer[6:8])[0] == REFUSED:
                    return


__all__ = [name for name in dir() if not name.startswith("_")]
