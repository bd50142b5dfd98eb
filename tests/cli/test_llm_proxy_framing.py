"""nrg llm proxy and where messages end: what it could read differently from the peer is refused or not passed on, from
clients and from servers. Both sides are bare sockets: what a server gets and a client gets is looked at byte by byte."""
import contextlib
import http.client
import queue
import socket
import threading
import unittest

from llm_proxy import ProxyCase, read_all
from support import *

ASK = b"POST /v1/x HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
# What no chunked body is, and the same for trailers behind a last chunk.
NO_CHUNKS = [b"3 5\r\nabc\r\n", b"3\t5\r\nabc\r\n", b"3 x\r\nabc\r\n", b" 3\r\nabc\r\n", b"+3\r\nabc\r\n", b"-3\r\nabc\r\n", b"0x3\r\nabc\r\n",
             b"3,\r\nabc\r\n", b"3\nabc\r\n", b"3\rabc\r\n", b"3\r\nabc\n", b"3\r\nabcd\r\n", b"00000000000000003\r\nabc\r\n",
             b"1000000000000001\r\nabc\r\n", b"fffffffffffffffff\r\nabc\r\n", b"3;a\nb\r\nabc\r\n", b"3;a=\"\r\nabc\r\n", b"3;\"a\\\"\r\nabc\r\n",
             b"3;\x00\r\nabc\r\n", b"3;" + b"x" * 9000 + b"\r\nabc\r\n", b"\r\nabc\r\n", b";a\r\nabc\r\n"]
NO_TRAILERS = [b"X\r\n", b": y\r\n", b"X : y\r\n", b"X\t: y\r\n", b" X: y\r\n", b"X: y\r\n Z: w\r\n", b"X: y\r\n\tz\r\n", b"X: y\n", b"X: y\rZ: w\r\n",
               b"X: \x00\r\n", b"X: \x7f\r\n", b"X(: y\r\n", b"\xff: y\r\n", b"GET / HTTP/1.1\r\n", b"X: " + b"y" * 9000 + b"\r\n"]
# Fields of which only a head may speak.
HEAD_ONLY = [b"Transfer-Encoding: chunked", b"Content-Length: 5", b"HOST: evil.example", b"trailer: x", b"Connection: close", b"Upgrade: h2c",
             b"Content-Encoding: gzip", b"Content-Type: text/html", b"Authorization: Bearer x", b"Set-Cookie: a=b", b"TE: trailers",
             b"X-Nrg-Joules: 0", b"Expect: 100-continue"]


class Peer:
    """A server that keeps what each connection sends, and answers each request with `answers`, or what that gives."""

    def __init__(self, answers, closes):
        self.answers, self.closes, self.got, self.connections = answers, closes, queue.Queue(), 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection = self.listener.accept()[0]
                self.connections += 1
                threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection, contextlib.suppress(OSError):
            data = b""
            while block := connection.recv(1 << 16):
                data += block
                if self.is_whole(data):
                    self.got.put(data)
                    data = b""
                    connection.sendall(self.answers() if callable(self.answers) else self.answers)
                    if self.closes:
                        return

    @staticmethod
    def is_whole(data):
        head, mark, body = data.partition(b"\r\n\r\n")
        if b"transfer-encoding" in head.lower():
            return body.endswith(b"\r\n\r\n") and b"0\r\n" in body
        length = re.search(rb"content-length: (\d+)", head.lower())
        return mark and len(body) >= (int(length[1]) if length else 0)

    def close(self):
        self.listener.close()


class Framing(ProxyCase):
    def serve(self, answers, closes=False):
        peer = Peer(answers, closes)
        self.addCleanup(peer.close)
        return peer

    def test_requests_that_end_in_doubt_are_refused(self):
        peer = self.serve(OK + b"Content-Length: 2\r\n\r\nok")
        bad = [ASK + CHUNKED + chunk for chunk in NO_CHUNKS] + [ASK + CHUNKED + b"3\r\nabc\r\n0\r\n" + t + b"\r\n" for t in NO_TRAILERS]
        with self.proxy(upstream=peer.url):
            for data in bad:
                answer = self.ask(data + END)
                self.assertEqual((answer[:13], answer.count(b"HTTP/1.1 ")), (b"HTTP/1.1 400 ", 1), data[-60:])
            self.assertTrue(self.ask(ASK + b"Connection: close\r\n" + CHUNKED + END).endswith(b"ok"))
        self.assertEqual(peer.got.qsize(), 1)

    def test_answers_that_end_in_doubt_are_cut(self):
        bad = NO_CHUNKS + [b"3\r\nabc\r\n0\r\n" + t + b"\r\n" for t in NO_TRAILERS]
        left = iter(bad)
        peer = self.serve(lambda: OK + CHUNKED + next(left) + END)
        with self.proxy(upstream=peer.url):
            for data in bad:
                client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
                client.request("GET", "/x")
                answer = client.getresponse()
                with self.assertRaises((http.client.IncompleteRead, ConnectionError), msg=data[-60:]):
                    answer.read()
                client.close()

    def test_chunks_pass_without_what_is_one_connections(self):
        sent = b'3;a="x;\\"\r\n'.replace(b"\r\n", b"") + b'"\r\nabc\r\n2 \t;b\r\nde\r\n01 \r\nf\r\n000\r\n'
        passed = b"3\r\nabc\r\n2\r\nde\r\n01\r\nf\r\n000\r\n"
        trailers = b"".join(field + b"\r\n" for field in HEAD_ONLY)
        long = b"N" * 40 + b": kept\r\n"
        edge = b"".join(b"E" * n + b": x\r\n" for n in (31, 32, 33))
        sent += trailers + b"X-Sum:1\r\n" + trailers + long + edge + b"Etag:  \"a\" \r\n" + trailers + b"\r\n"
        passed += b"X-Sum:1\r\n" + long + edge + b"Etag:  \"a\" \r\n\r\n"
        peer = self.serve(OK + CHUNKED + sent)
        with self.proxy(upstream=peer.url):
            for step in (1, 7, len(sent)):
                with self.connect() as client:
                    client.sendall(ASK + b"Connection: close\r\n" + CHUNKED)
                    for i in range(0, len(sent), step):
                        client.sendall(sent[i:i + step])
                    answer = read_all(client)
                self.assertEqual(answer.split(b"\r\n\r\n", 1)[1], passed)
                self.assertEqual(peer.got.get(timeout=LIMIT_S).split(b"\r\n\r\n", 1)[1], passed)

    def test_bodies_that_must_not_be(self):
        """Answers to HEAD, 204 and 304 with bodies, and a 1xx with a length: what follows is no answer, and no client
        waits for it."""
        smuggled = OK + b"Content-Length: 8\r\n\r\nSMUGGLED"
        length = b"Content-Length: %d\r\n\r\n" % len(smuggled)
        chunked = CHUNKED + b"%x\r\n" % len(smuggled) + smuggled + b"\r\n" + END
        cases = [("HEAD", OK + length + smuggled, 200), ("HEAD", OK + chunked, 200), ("GET", b"HTTP/1.1 204 No\r\n" + length + smuggled, 204),
                 ("GET", b"HTTP/1.1 204 No\r\n" + chunked, 204), ("GET", b"HTTP/1.1 304 No\r\n" + length + smuggled, 304),
                 ("GET", b"HTTP/1.1 304 No\r\n" + chunked, 304)]
        for method, answer, status in cases:
            peer = self.serve(answer)
            with self.proxy(upstream=peer.url):
                client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
                for _ in range(3):
                    client.request(method, "/x")
                    got = client.getresponse()
                    self.assertEqual((got.status, got.read()), (status, b""), answer)
                    self.assertIsNone(got.headers["Transfer-Encoding"])
                    self.assertTrue(status != 204 or got.headers["Content-Length"] is None)
                client.close()
            self.assertEqual(peer.connections, 3, answer)  # none is used again
        peer = self.serve(b"HTTP/1.1 103 Early\r\nContent-Length: 5\r\nLink: <x>\r\n\r\n" + b"HTTP/1.1 100 Go\r\nTransfer-Encoding: chunked\r\n\r\n" +
                          OK + b"Content-Length: 2\r\n\r\nok")
        with self.proxy(upstream=peer.url):
            answer = self.ask(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.assertEqual(answer, b"HTTP/1.1 103 Early\r\nLink: <x>\r\n\r\nHTTP/1.1 100 Go\r\n\r\n" + OK +
                             b"Content-Length: 2\r\nConnection: close\r\n\r\nok")
            answer = self.ask(b"GET / HTTP/1.0\r\n\r\n")  # knows no 1xx
            self.assertTrue(answer.startswith(OK), answer)

    def test_heads_of_answers_in_doubt_are_refused(self):
        bad = [b"Content-Length: 2\r\nContent-Length: 2\r\n", b"Content-Length: 2, 2\r\n", b"Content-Length: +2\r\n", b"Content-Length: -2\r\n",
               b"Content-Length: 0x2\r\n", b"Content-Length: \r\n", b"Content-Length: 2 2\r\n", b"Content-Length: 9999999999999999999\r\n",
               b"Content-Length : 2\r\n", b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding: chunked, chunked\r\n",
               b"Transfer-Encoding: gzip, chunked\r\n", b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
               b"Transfer-Encoding:\x0bchunked\r\n", b"X: y\r\n Content-Length: 2\r\n", b"Content-Length: 2\n", b"Content-Length: 2\rX: y\r\n",
               b"Content-Length: 2\r\nX\r\n", b" Content-Length: 2\r\n", b"X: \x00\r\n"]
        left = iter(bad)
        peer = self.serve(lambda: OK + next(left) + b"\r\nok")
        with self.proxy(upstream=peer.url):
            for fields in bad:
                answer = self.ask(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                self.assertEqual((answer[:13], answer.count(b"HTTP/1.1 ")), (b"HTTP/1.1 502 ", 1), fields)

    def test_an_early_answer_leaves_no_body_behind(self):
        """A server that answers before it has read a body reads on: what it gets then must be the rest of it, or an end, not the
        next request. Looks for a length of which the proxy still has the rest: shorter ones are with the server's
        kernel as a whole, of longer ones the client has some, and its connection ends."""
        parts = []

        def serve(connection):
            with connection, contextlib.suppress(OSError):
                parts.append(data := bytearray(connection.recv(1 << 10)))
                if b"/first" in data:
                    sent.wait(0.1)
                    time.sleep(0.02)
                connection.sendall(OK + b"Content-Length: 2\r\n\r\nok")
                time.sleep(0.02)
                while block := connection.recv(1 << 20):
                    data += block
                    if b"/second" in block:
                        connection.sendall(OK + b"Content-Length: 2\r\n\r\nok")

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        threading.Thread(target=accept, daemon=True).start()
        passes, ends = 0, 1 << 25
        with self.proxy(upstream=f"http://127.0.0.1:{listener.getsockname()[1]}"):
            while ends - passes > 2048:
                size = (passes + ends) // 2
                sent = threading.Event()
                parts.clear()
                head = ASK.replace(b"/v1/x", b"/first") + b"Content-Length: %d\r\n\r\n" % size
                second = ASK.replace(b"/v1/x", b"/second") + b"Content-Length: 0\r\nConnection: close\r\n\r\n"
                with self.connect() as client:  # does not wait for the first answer
                    sender = threading.Thread(target=self.send, args=(client, head + bytes(size) + second, sent))
                    sender.start()
                    answers = read_all(client)
                    sender.join()
                self.assertTrue(answers.startswith(OK), answers)
                if answers.count(OK) == 1:
                    self.assertIn(b"Connection: close", answers)
                    ends = size
                    continue
                first = bytes(parts[0].split(b"\r\n\r\n", 1)[1])
                self.assertEqual(first[:size].find(b"/second"), -1, f"the next request is a part of the {size} bytes")
                passes, ends = (size, ends) if len(first) >= size else (passes, size)

    @staticmethod
    def send(client, data, done):
        with contextlib.suppress(OSError):
            client.sendall(data)
            done.set()

    def test_an_answer_that_is_cut_never_looks_whole(self):
        """Where the client knows the end by that of the connection alone, it is reset."""
        for body in (b"5\r\nhello\r\n", b"5\r\nhello\r\nx\r\n", b"5\r\nhel", b"5\r\nhello\r\n0\r\n"):
            peer = self.serve(OK + CHUNKED + body, closes=True)
            with self.proxy(upstream=peer.url):
                with self.assertRaises(ConnectionError, msg=body), self.connect() as client:
                    client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                    self.fail(read_all(client))
        peer = self.serve(OK + CHUNKED + b"5\r\nhello\r\n" + END, closes=True)
        with self.proxy(upstream=peer.url):
            self.assertTrue(self.ask(b"GET / HTTP/1.0\r\n\r\n").endswith(b"\r\n\r\nhello"))


if __name__ == "__main__":
    unittest.main()
