"""nrg llm proxy and who keeps it waiting: slow heads and bodies are ended, slow servers are not, and who asks properly is
served among a crowd of them. The limits are those of a relay of its own (tests/relay.c): nobody waits for 20 s here."""
import contextlib
import socket
import threading
import time
import unittest

from llm_proxy import read_all
from support import *

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE_S = 0.5
CONNECT_S = 0.5
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HEAD = b"POST /v1/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"


class Limits(Case):
    """Each with a server that does as `serve` says with a connection."""

    @contextlib.contextmanager
    def relay(self, serve, scheme="http", places=0):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def one(connection):
            with connection, contextlib.suppress(OSError):
                serve(connection)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        process = subprocess.Popen([os.path.join(TOOLS, "relay"), f"{scheme}://127.0.0.1:{listener.getsockname()[1]}",
                                    str(int(1000 * PATIENCE_S)), str(int(1000 * CONNECT_S)), *([str(places)] if places else [])], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.started.append(process)
        self.port = int(process.stdout.readline().rsplit(":", 1)[1])
        try:
            yield
        finally:
            self.ends = process.communicate()[0].splitlines()
            self.assertEqual(process.returncode, 0)

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=LIMIT_S)
        self.addCleanup(connection.close)
        return connection

    def drip(self, connection, data, step, pause_s):
        """Sends until all is gone or an answer is there; the answer."""
        def send():
            with contextlib.suppress(OSError):
                for i in range(0, len(data), step):
                    connection.sendall(data[i:i + step])
                    time.sleep(pause_s)
        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        answer = b""
        with contextlib.suppress(ConnectionError):
            answer = connection.recv(1 << 16)
        return answer

    @staticmethod
    def answers(connection):
        data = b""
        while b"END" not in data:
            data = data[-3:] + connection.recv(1 << 16)
        connection.sendall(OK)

    def test_a_head_has_its_time_however_it_drips(self):
        with self.relay(self.answers):
            answer = self.drip(self.connect(), HEAD + b"X: " + b"y" * 8000, 1, 0.02)
            self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
            client = self.connect()  # the second head of a connection as well
            client.sendall(HEAD.replace(b"Connection: close\r\n", b"") + b"Content-Length: 3\r\n\r\nEND")
            self.assertTrue(client.recv(1 << 16).endswith(b"ok"))
            answer = self.drip(client, HEAD + b"X: " + b"y" * 8000, 1, 0.02)
            self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
        self.assertEqual(self.ends, ["200 answered"])

    def test_a_body_has_a_least_rate(self):
        with self.relay(self.answers):
            for framing, body in ((b"Content-Length: 100000\r\n\r\n", b"x" * 1000), (b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 200)):
                client = self.connect()
                client.sendall(HEAD + framing)
                answer = self.drip(client, body, 1, 0.02)
                self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
        self.assertEqual(self.ends, ["408 cancelled"] * 2)

    def test_a_slow_link_is_fast_enough(self):
        """Five times the least rate, for four times the patience."""
        data = HEAD + b"Content-Length: 4500\r\n\r\n" + b"x" * 4497 + b"END"
        with self.relay(self.answers):
            answer = self.drip(self.connect(), data, 250, 0.1)
            self.assertTrue(answer.endswith(b"ok"), answer)

    def test_a_slow_server_is_waited_for(self):
        """One that is silent, one that does not read yet, one that is slow to say that it wants the body."""
        def silent(connection):
            connection.recv(1 << 16)
            time.sleep(2 * PATIENCE_S)
            connection.sendall(OK)

        def full(connection):
            time.sleep(2 * PATIENCE_S)
            self.answers(connection)

        def asks(connection):
            connection.recv(1 << 16)
            time.sleep(2 * PATIENCE_S)
            connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.answers(connection)
        with self.relay(silent):
            client = self.connect()
            client.sendall(HEAD + b"Content-Length: 0\r\n\r\n")
            self.assertTrue(read_all(client).endswith(b"ok"))
        with self.relay(full):
            client = self.connect()
            size = 16 << 20  # more than sockets and buffers take
            client.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % size + b"x" * (size - 3) + b"END")
            self.assertTrue(read_all(client).endswith(b"ok"))
        with self.relay(asks):
            client = self.connect()
            client.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
            self.assertEqual(client.recv(1 << 16), b"HTTP/1.1 100 Continue\r\n\r\n")
            client.sendall(b"END")
            self.assertTrue(read_all(client).endswith(b"ok"))

    def test_a_handshake_that_never_ends(self):
        """A client that goes on sending does not prolong it."""
        with self.relay(lambda connection: time.sleep(LIMIT_S), "https"):
            answer = self.drip(self.connect(), HEAD + b"Content-Length: 900000\r\n\r\n" + b"x" * 200000, 1000, 0.02)
            self.assertTrue(answer.startswith(b"HTTP/1.1 504 "), answer)
            self.assertIn(b"TLS handshake", answer)
        self.assertEqual(self.ends, ["504 broken"])


    def test_who_reads_nothing_makes_room(self):
        """Whole requests with answers that nobody fetches hold a place only until somebody needs it."""
        def endless(connection):
            connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n")
            while True:
                connection.sendall(bytes(1 << 16))

        def serve(connection):
            endless(connection) if b"/endless" in connection.recv(1 << 16, socket.MSG_PEEK) else self.answers(connection)
        with self.relay(serve, places=2):
            for _ in range(2):
                self.connect().sendall(HEAD.replace(b"/v1/x", b"/endless") + b"Content-Length: 0\r\n\r\n")
            client = self.connect()
            client.sendall(HEAD + b"Content-Length: 3\r\n\r\nEND")
            self.assertTrue(read_all(client).endswith(b"ok"))
        self.assertEqual(sorted(self.ends), ["200 answered", "200 cancelled", "200 cancelled"])

    def test_what_nobody_fetched_is_no_end(self):
        """The relay ends while the last bytes of an answer wait for their client. Looks for a length of which only the relay has
        the rest: shorter ones are in the kernel as a whole, of longer ones the server has some."""
        whole, cut = 0, 1 << 24
        while cut - whole > 4096:
            size = (whole + cut) // 2

            def serve(connection):
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(size))
                sent.set()
            sent = threading.Event()
            with self.relay(serve):
                client = self.connect()
                client.sendall(HEAD + b"Content-Length: 0\r\n\r\n")
                sent.wait(0.1)
                time.sleep(0.03)
            try:
                self.assertEqual(len(read_all(client).split(b"\r\n\r\n", 1)[1]), size, "bytes of an answer without a length")
                whole = size
            except ConnectionError:
                cut = size


class Crowds(Case):
    def test_everybody_is_served_among_slow_ones(self):
        """bench/llm_crowd, shortly: with a place for each of them, and with too few places."""
        for places, crowd in ((1024, 100), (60, 45)):
            out = self.path(f"{places}.json")
            done = subprocess.run([sys.executable, os.path.join(TOP, "bench", "llm_crowd"), "--build", os.path.dirname(NRG), "--heads", str(crowd),
                                   "--bodies", str(crowd), "--requests", "3", "--drip", "0.2", "--connections", str(places), "--json", out],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            with open(out, encoding="utf-8") as f:
                result = json.load(f)
            self.assertEqual([result[name]["answered"] for name in ("alone", "crowded")], [3, 3], result)
            if places < 2 * crowd:
                self.assertGreater(result["crowd"]["answers"].get("503", 0), 0)


if __name__ == "__main__":
    unittest.main()
