"""nrgd among hostile clients of many users: they stall, drip, flood, send half a message or nonsense, pass descriptors, fetch nothing,
die. It neither grows nor loses a descriptor, and serves a member and root meanwhile, also after it was started anew.
NRG_TEST_CONNECTIONS sets how many (`make hostile`: 10,000); readings per user and the slowest are printed."""
import random
import select
import statistics
import unittest

from nrgd_client import *

CONNECTIONS = int(os.environ.get("NRG_TEST_CONNECTIONS", "1000"))


class Attacker:
    """Ways to misbehave on a new connection, each from a seed. Those that stay open are returned."""

    def __init__(self, path, seed):
        self.path, self.random = path, random.Random(seed)
        self.ways = [self.silent, self.garbage, self.half, self.long, self.out_of_order, self.flood, self.passes, self.dies,
                     self.versions, self.many_descriptions, self.reads_nothing, self.wrong_numbers, self.stays, self.unfetched,
                     self.shut, self.drips, self.knocks]

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

    def unfetched(self, sock):
        sock.send(hello())
        sock.recv(100)
        sock.send(request(OPEN, 0, 15))
        sock.send(b"garbage")
        return True

    def shut(self, sock):
        self.unfetched(sock)
        sock.shutdown(socket.SHUT_RDWR)
        return True

    def drips(self, sock):
        sock.send(hello())
        for _ in range(3):
            sock.recv(20000)
            time.sleep(0.02)
            sock.send(request(SENSOR, 0))
        return True

    def knocks(self, sock):
        for _ in range(20):
            self.connect().close()

    def wrong_numbers(self, sock):
        sock.send(hello())
        sock.recv(100)
        sock.send(request(self.random.choice([SENSOR, OPEN]), self.random.choice([1, 64, 2**31, 2**32 - 1]), self.random.choice([0, 2**32 - 1])))


ZONES = (("intel-rapl:0", "package-0", 5_000_000), ("intel-rapl:0:0", "core", 1_000_000), ("intel-rapl:0:1", "uncore", 2_000_000),
         ("intel-rapl:0:2", "dram", 3_000_000))
MEMBERS, STRANGERS = range(64001, 64009), range(64101, 64110)


def fetch_nothing(path, n):
    """Opens with four descriptors each, which stay where they are. Half are so impatient as not to fetch the greeting either."""
    def work(kept):
        for i in range(n):
            sock = connected(path)
            try:
                sock.send(hello())
                if i % 2:
                    sock.recv(100)
                sock.send(request(OPEN, 0, 15))
                sock.send(b"garbage")
            except OSError:  # it is closed
                pass
            kept.append(sock)
        return True
    return work


def ask_and_stay(path, n):
    """(connections that were served, those that were told why not)"""
    def work(kept):
        served = told = 0
        for _ in range(n):
            client = Client(path, timeout=10)
            kept.append(client)
            kind, body, _ = client.ask(hello())
            served += kind == WELCOME
            told += kind == REFUSED and (b"too many" in body)
        return served, told
    return work


@needs_root
class Hostile(DaemonCase):
    def tree(self):
        return super().tree(zones=ZONES)

    def descriptors(self, daemon):
        return len(os.listdir(f"/proc/{daemon.pid}/fd"))

    def served(self, path, hows=(NUMBER,)):
        """An honest root and an honest member are served, with the right number."""
        for how, value in (reading(path), self.in_process(as_member(MEMBER), lambda: reading(path, 1))):
            self.assertIn(how, hows)
            self.assertIn(value, (5_000_000, 1_000_000))

    def test_descriptors_that_nobody_fetches(self):
        """The kernel counts what is on its way by the sender's user, also after the sender closed it."""
        daemon, path = self.daemon(root=self.tree(), limit=1024)
        before = self.descriptors(daemon)
        pid, _ = self.held(as_member(MEMBERS[0]), fetch_nothing(path, 400))
        for _ in range(3):
            self.served(path)
        self.end_held(pid)
        eventually(lambda: self.in_process(as_member(MEMBERS[0]), lambda: reading(path))[0] == NUMBER, "the account is settled")
        eventually(lambda: self.descriptors(daemon) <= before, "all descriptors are closed")
        self.stop(daemon)

    def test_who_fetches_never_notices(self):
        """Many programs of one user that begin at the same moment get descriptors, all of them."""
        daemon, path = self.daemon(root=self.tree())

        def work():
            hows = set()
            for _ in range(100):
                with Client(path) as client:
                    client.greet()
                    how, fds = client.open(0, 15)
                    hows.add(how)
                    for fd in fds:
                        os.close(fd)
            return list(hows)
        self.assertEqual(self.in_process(as_member(), work), [NUMBER])
        self.stop(daemon)

    def test_an_end_in_its_own_queue(self):
        """A client that sends nrgd its own end and dies is still there, with all that it did not fetch, until nrgd throws that away."""
        daemon, path = self.daemon(root=self.tree())
        before = self.descriptors(daemon)

        def work():
            for _ in range(5):
                with connected(path) as sock:
                    sock.send(hello())
                    sock.recv(100)
                    sock.send(request(OPEN, 0, 15))
                    for data in (b"", b"x"):
                        sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [sock.fileno()]))])
        self.in_process(as_member(), work)
        eventually(lambda: self.descriptors(daemon) <= before, "all descriptors are closed")
        self.stop(daemon)

    def test_descriptors_beyond_the_kernel_s_limit(self):
        """Daemons that were started anew know nothing of what others sent: where the kernel refuses, readings are sent."""
        root = self.tree()
        server, path = self.listener()
        for _ in range(4):
            daemon = self.daemon_on(server, root, limit=256)
            for uid in MEMBERS[:5]:
                self.held(as_member(uid), fetch_nothing(path, 40))
            self.served(path, (NUMBER, ASK))
            said = self.stop(daemon)
        self.assertEqual(said.count("Too many references"), 1, said)
        daemon = self.daemon_on(server, root, limit=256)
        self.assertEqual(reading(path), (ASK, 5_000_000))
        done = subprocess.run([nrg_of_everybody(), "run", "-q", "--json=r.json", "-o", "r.nrg", "--", "sleep", "0.2"], cwd=self.dir,
                              preexec_fn=as_member(), env=self.env(NRG_DAEMON=path), capture_output=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("r.json")) as f:
            self.assertEqual(domains(json.load(f))["package-0"]["driver"], "nrgd")
        self.stop(daemon)

    def test_answers_that_nobody_fetches(self):
        """They lie in memory on the daemon's account, of which its unit allows 64 MB."""
        daemon, path = self.daemon(root=self.tree())

        def work(kept):
            size = 0
            for _ in range(200):
                kept.append(sock := connected(path))
                sock.setblocking(False)
                try:
                    for packet in (hello(), *[request(SENSOR, 0)] * 40, b"garbage"):
                        sock.send(packet)
                        time.sleep(0.0001)
                except OSError:
                    pass
            time.sleep(0.1)
            for sock in kept:
                try:
                    while data := sock.recv(20000):
                        size += len(data)
                except OSError:
                    pass
            return size
        self.assertLess(self.held(as_user(STRANGER), work)[1], 64 * (9832 + 200), "bytes for one user")
        self.served(path)
        self.stop(daemon)

    def test_users_outside_of_the_group_take_no_place_of_others(self):
        daemon, path = self.daemon(root=self.tree())
        for uid in STRANGERS[:8]:
            served, told = self.held(as_user(uid), ask_and_stay(path, 60))[1]
            self.assertEqual(served + told, 60, "each gets a place or a sentence")
            self.assertGreater(served, 0)
        self.served(path)
        served, _ = self.held(as_user(STRANGERS[8]), ask_and_stay(path, 3))[1]
        self.assertEqual(served, 3, "of the one who has most, the idlest make room")
        self.stop(daemon)

    def test_members_take_no_place_of_root_nor_of_members(self):
        daemon, path = self.daemon(root=self.tree())
        for uid in MEMBERS:
            served, told = self.held(as_member(uid), ask_and_stay(path, 40))[1]
            self.assertEqual(served + told, 40)
        self.served(path)
        self.stop(daemon)

    def watch(self, become, path):
        """Reads again and again in a process of its own; a function that ends it and returns how long each reading took."""
        out, into = os.pipe()
        asked, ask = os.pipe()
        pid = os.fork()
        if not pid:
            seconds = []
            try:
                become()
                while not seconds or not select.select([asked], [], [], 0.005)[0]:
                    begin = time.monotonic()
                    assert reading(path)[1] == 5_000_000
                    seconds.append(time.monotonic() - begin)
                with open(into, "w") as f:
                    json.dump(seconds, f)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(into)
        os.close(asked)

        def end():
            os.write(ask, b"x")
            os.close(ask)
            with open(out) as f:
                content = f.read()
            os.waitpid(pid, 0)
            self.assertTrue(content, "each reading was served")
            return json.loads(content)
        return end

    def attack(self, path, seed, n):
        """In processes of several users at once. Each holds at most 20 open connections."""
        pids = []
        for become in [as_user(uid) for uid in STRANGERS[:5]] + [as_member(uid) for uid in MEMBERS[:3]]:
            seed += 1
            pids.append(os.fork())
            if pids[-1]:
                continue
            code = 1
            try:
                become()
                attacker, held = Attacker(path, seed), []
                for _ in range(n // 8):
                    sock = attacker.attack()
                    if sock:
                        held.append(sock)
                    if len(held) > 20:
                        held.pop(0).close()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        self.assertEqual([os.waitpid(pid, 0)[1] for pid in pids], [0] * len(pids))

    def test_it_stays_as_it_is(self):
        root = self.tree()
        server, path = self.listener()
        daemon = self.daemon_on(server, root)
        before, warm_kb, rounds, took = 0, 0, 8, {"root": [], "a member": []}
        for i in range(rounds):
            if i < rounds // 2:  # the second half shows what one of them keeps
                self.stop(daemon)
                daemon = self.daemon_on(server, root)
            ends = {"root": self.watch(lambda: None, path), "a member": self.watch(as_member(MEMBER), path)}
            self.attack(path, 100 * i, max(CONNECTIONS // rounds, 8))
            for who, end in ends.items():
                took[who] += end()
            if i == rounds // 2:
                warm_kb = resident_kb(daemon.pid)
                before = eventually(lambda: (n := self.descriptors(daemon)) < 16 and n, "all descriptors are closed")
        eventually(lambda: self.descriptors(daemon) <= before, "all descriptors are closed", 30)
        self.assertLess(resident_kb(daemon.pid) - warm_kb, 20_000 if sanitizer_library() else 500, "kB more than in the middle")
        self.stop(daemon)
        self.report(f"{CONNECTIONS} connections", took)

    def knock(self, path, uid, blocking, seconds):
        """A process that does nothing but connect, and either leaves or stays, for so long."""
        pid = os.fork()
        if pid:
            return pid
        try:
            as_user(uid)()
            kept, until = [], time.monotonic() + seconds
            while time.monotonic() < until:
                sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                sock.setblocking(blocking)
                try:
                    sock.connect(path)
                    kept.append(sock)
                except OSError:
                    pass
                if len(kept) > uid % 2 * 500:
                    kept.pop(0).close()
        finally:
            os._exit(0)

    def test_knocks(self):
        """Nobody waits longer because somebody connects as fast as he can."""
        daemon, path = self.daemon(root=self.tree())
        seconds = 0.3 if CONNECTIONS < 10000 else 5
        pids = [self.knock(path, uid, uid % 4 < 2, seconds) for uid in STRANGERS[:4]]
        ends = {"root": self.watch(lambda: None, path), "a member": self.watch(as_member(MEMBER), path)}
        for pid in pids:
            os.waitpid(pid, 0)
        self.report("four that knock", {who: end() for who, end in ends.items()})
        self.stop(daemon)

    def report(self, among, took):
        for who, seconds in took.items():
            print(f"# {among}: {who} was served {len(seconds)} times, median {statistics.median(seconds) * 1000:.1f} ms, "
                  f"slowest {max(seconds) * 1000:.0f} ms", file=sys.stderr)

    def test_a_reader_that_is_killed_leaves_nothing(self):
        daemon, path = self.daemon(root=self.tree())
        before = self.descriptors(daemon)
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
        eventually(lambda: self.descriptors(daemon) <= before, "what it opened is closed")
        self.stop(daemon)


if __name__ == "__main__":
    unittest.main()
