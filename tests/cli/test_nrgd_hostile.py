"""nrgd among hostile clients: they stall, flood, send half a message or nonsense, pass descriptors, die. It neither grows nor
loses a descriptor, and serves others meanwhile. NRG_TEST_CONNECTIONS sets how many (`make hostile`: 10,000)."""
import random
import unittest

from nrgd_client import *

CONNECTIONS = int(os.environ.get("NRG_TEST_CONNECTIONS", "1000"))


class Attacker:
    """Ways to misbehave on a new connection, each from a seed. Those that stay open are returned."""

    def __init__(self, path, seed):
        self.path, self.random = path, random.Random(seed)
        self.ways = [self.silent, self.garbage, self.half, self.long, self.out_of_order, self.flood, self.passes, self.dies,
                     self.versions, self.many_descriptions, self.reads_nothing, self.wrong_numbers, self.stays]

    def connect(self):
        client = Client(self.path, timeout=10)
        return client.socket

    def attack(self):
        way = self.random.choice(self.ways)
        sock = self.connect()
        try:
            keep = way(sock)
        except OSError:  # it closed: its right
            keep = False
        if keep:
            return sock
        sock.close()
        return None

    def silent(self, sock):
        return True

    def stays(self, sock):
        sock.send(hello())
        sock.recv(100)
        return True

    def garbage(self, sock):
        sock.send(self.random.randbytes(self.random.randrange(1, 300)))

    def half(self, sock):
        packet = self.random.choice([hello(), request(OPEN, 0, 1), head(HELLO)])
        sock.send(packet[:self.random.randrange(1, len(packet))])

    def long(self, sock):
        sock.send(hello() + bytes(self.random.randrange(1, 60000)))

    def out_of_order(self, sock):
        for _ in range(4):
            sock.send(self.random.choice([hello(), request(READ), request(OPEN, 0, 3), request(SENSOR, 0)]))

    def flood(self, sock):
        sock.setblocking(False)
        sock.send(hello())
        for _ in range(200):
            sock.send(request(SENSOR, 0))

    def many_descriptions(self, sock):
        sock.send(hello())
        for _ in range(140):
            sock.send(request(SENSOR, 0))
            if not sock.recv(20000):
                return

    def reads_nothing(self, sock):
        sock.send(hello())
        sock.send(request(OPEN, 0, 1))
        sock.setblocking(False)
        for _ in range(500):
            sock.send(request(READ))

    def passes(self, sock):
        r, w = os.pipe()
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [r, w, sock.fileno()] * self.random.randrange(1, 60)))]
        try:
            sock.sendmsg([self.random.choice([hello(), b"x"])], rights)
        finally:
            os.close(r)
            os.close(w)

    def dies(self, sock):
        sock.send(hello())
        if self.random.random() < 0.5:
            sock.recv(100)
            sock.send(request(OPEN, 0, 3))

    def versions(self, sock):
        sock.send(hello(version=self.random.randrange(65536)))
        sock.recv(1000)

    def wrong_numbers(self, sock):
        sock.send(hello())
        sock.recv(100)
        sock.send(request(self.random.choice([SENSOR, OPEN]), self.random.choice([1, 64, 2**31, 2**32 - 1]), self.random.choice([0, 2**32 - 1])))


@needs_root
class Hostile(DaemonCase):
    def served(self, path, root, i):
        """An honest client of the same and of another user is served, with the right number."""
        self.set_energy(root, "intel-rapl:0", 10_000_000 + i)
        with Client(path) as client:
            self.assertEqual(client.greet()[:2], (FULL, 1))
            for fd in client.open(0, 1)[1]:
                self.assertEqual(int(os.pread(fd, 100, 0)), 10_000_000 + i)
                os.close(fd)

    def attack(self, path, seed, n):
        """In a process of another user: its places are not ours. Holds at most 20 open connections, below the limit."""
        pid = os.fork()
        if not pid:
            code = 1
            try:
                as_user(STRANGER)()
                attacker, held = Attacker(path, seed), []
                for _ in range(n):
                    sock = attacker.attack()
                    if sock:
                        held.append(sock)
                    if len(held) > 20:
                        held.pop(0).close()
                code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_it_stays_as_it_is(self):
        root = self.tree()
        daemon, path = self.daemon(root=root)
        size = max(CONNECTIONS // 10, 20)

        def descriptors():
            return len(os.listdir(f"/proc/{daemon.pid}/fd"))
        before = descriptors()
        self.served(path, root, 0)
        warm_kb = 0
        for i in range(CONNECTIONS // size):
            self.attack(path, i, size)
            self.served(path, root, i + 1)
            if i == 1:
                warm_kb = resident_kb(daemon.pid)
        eventually(lambda: descriptors() <= before, "all descriptors are closed", 30)
        self.assertLess(resident_kb(daemon.pid) - warm_kb, 20_000 if sanitizer_library() else 500, "kB more than after the first fifth")
        self.stop(daemon)

    def test_places_are_by_user(self):
        root = self.tree()
        daemon, path = self.daemon(root=root)
        pid = os.fork()
        if not pid:
            code = 1
            try:
                as_user(STRANGER)()
                held = [Client(path) for _ in range(60)]
                refused = 0
                for client in held:
                    try:
                        kind, body, _ = client.ask(hello())
                    except OSError:  # closed, with the refusal behind the error
                        kind, body, _ = client.receive()
                    refused += kind == REFUSED and b"too many connections" in body
                code = 0 if refused == 60 - 32 else 2
            finally:
                os._exit(code)
        self.served(path, root, 1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "28 of 60 are turned away")
        self.served(path, root, 2)
        self.stop(daemon)

    def test_a_reader_that_is_killed_leaves_nothing(self):
        root = self.tree()
        daemon, path = self.daemon(root=root)
        before = len(os.listdir(f"/proc/{daemon.pid}/fd"))
        for _ in range(3):
            pid = os.fork()
            if not pid:
                as_user(STRANGER)()
                client = Client(path)
                client.greet()
                client.open(0, 1)
                client.read()
                os.kill(os.getpid(), signal.SIGKILL)
            os.waitpid(pid, 0)
        eventually(lambda: len(os.listdir(f"/proc/{daemon.pid}/fd")) <= before, "what it opened is closed")
        self.stop(daemon)


if __name__ == "__main__":
    unittest.main()
