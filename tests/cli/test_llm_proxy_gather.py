"""nrg llm proxy --gather: texts of many quick streams wait for each other and come whole; first texts, ends by a close, clients
that leave, servers that die and slow readers are dealt with as without."""
import concurrent.futures
import contextlib
import socket
import statistics
import unittest

from llm_proxy import ServedCase, post, read_all
from support import *

STREAMS = 16  # twice as many as make texts wait
WAIT = "50ms"  # the longest; texts of these servers come every 10 ms


def stream(model="m", **test):
    return post("/v1/chat/completions", {"model": model, "stream": True, "test": {"pause": 0.01, "stamp": True, **test}},
                ["Connection: close"])


class Answer:
    """What came on a connection, part by part, and how old each event was then."""

    def __init__(self, connection):
        self.parts, self.first_s, self.last_s, self.later_s = [], None, None, []
        self.first_sent_s = self.last_sent_s = None
        with contextlib.suppress(ConnectionError):
            while part := connection.recv(1 << 16):
                self.note(part, time.monotonic_ns())
        self.body = b"".join(self.parts)
        self.texts = self.body.count(b"secret-answer")
        self.whole = b"[DONE]" in self.body

    def note(self, part, now_ns):
        self.parts.append(part)
        for line in part.split(b"\n"):
            sent = re.search(rb'"sent_ns": (\d+)}', line)
            sent_s = 1e-9 * int(sent[1]) if sent else 0
            age_s = 1e-9 * now_ns - sent_s
            if b"secret-answer0 " in line:
                self.first_s, self.first_sent_s = age_s, sent_s
            elif b"secret-answer" in line:
                self.later_s.append(age_s)
            elif b"finish_reason" in line:
                self.last_s, self.last_sent_s = age_s, sent_s


class Gather(ServedCase):
    def one(self, ask):
        with self.connect() as connection:
            connection.sendall(ask)
            return Answer(connection)

    def crowd(self, asks):
        """Answers to requests that are sent at the same time."""
        with concurrent.futures.ThreadPoolExecutor(len(asks)) as pool:
            return list(pool.map(self.one, asks))

    def test_texts_that_wait_come_whole(self):
        reads = {}
        for gather in ("0", WAIT):
            with self.proxy("--gather", gather) as process, concurrent.futures.ThreadPoolExecutor() as pool:
                crowd = pool.submit(self.crowd, 2 * STREAMS * [stream(tokens=30)])
                eventually(lambda: len(self.server.requests) == 2 * STREAMS, "all arrive")
                process.send_signal(signal.SIGTERM)  # those that run are passed on to their end
                answers = crowd.result()
            self.server.requests.clear()
            self.assertEqual({(a.texts, a.body.endswith(b"[DONE]\n\n\r\n0\r\n\r\n")) for a in answers}, {(30, True)})
            self.assertEqual([(r["outcome"], r["output_tokens"]) for r in self.result["requests"]], 2 * STREAMS * [("answered", 30)])
            reads[gather] = sum(len(a.parts) for a in answers)
        self.assertLess(reads[WAIT], 0.6 * reads["0"])

    def test_only_quick_texts_wait(self):
        with self.proxy("--gather", WAIT), concurrent.futures.ThreadPoolExecutor() as pool:
            quick = pool.submit(self.crowd, STREAMS * [stream("quick", tokens=220)])
            eventually(lambda: len(self.server.requests) == STREAMS, "the quick ones run")
            closing = [a for _ in range(4) for a in self.crowd(8 * [stream(tokens=20, by_close=True)])]
            slow = self.crowd(8 * [stream(tokens=16, pause=0.06)])
            quick = quick.result()
        for answers, texts in ((quick, 220), (closing, 20), (slow, 16)):
            self.assertEqual({(a.texts, a.whole) for a in answers}, {(texts, True)})
        waits_s = statistics.median(s for a in quick for s in a.later_s)
        self.assertLess(statistics.median(a.first_s for a in closing), waits_s / 2)
        self.assertLess(statistics.median(a.last_s for a in closing), waits_s / 2)  # the server's close says so
        self.assertLess(statistics.median(s for a in slow for s in a.later_s), waits_s / 2)
        # What waited is recorded as it came: the kernel dates it.
        sent_s = statistics.median(a.last_sent_s - a.first_sent_s for a in quick)
        came_s = statistics.median(r["duration_s"] - r["first_text_s"] for r in self.result["requests"] if r["model"] == "quick")
        self.assertLess(abs(came_s - sent_s), waits_s / 2)

    def leave(self):
        """A client that goes away in the middle of its answer."""
        connection = self.connect()
        connection.sendall(stream(tokens=100000))
        got = b""
        while got.count(b"secret-answer") < 30:
            got += connection.recv(1 << 16)
        connection.close()

    def connect_slow(self):
        slow = socket.socket()
        self.addCleanup(slow.close)
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        slow.connect(("127.0.0.1", self.port))
        return slow

    def test_trouble_of_some_is_not_that_of_others(self):
        long, dying, many = STREAMS * [stream(tokens=150)], 4 * [stream(tokens=40, die_after=33)], 60000
        with self.proxy("--gather", WAIT) as process, concurrent.futures.ThreadPoolExecutor() as pool:
            slow = self.connect_slow()
            slow.sendall(stream(tokens=many, pause=0))
            answers = pool.submit(self.crowd, long + dying)
            self.leave()
            eventually(lambda: any(isinstance(e, ConnectionResetError) or e.errno for e in self.server.broken),
                       "the server sees that nobody reads")
            self.assertEqual([(a.texts, a.whole) for a in answers.result()], STREAMS * [(150, True)] + 4 * [(33, False)])
            before_kb = resident_kb(process.pid)
            self.assertEqual(read_all(slow).count(b"secret-answer"), many)
            self.assertLess(resident_kb(process.pid) - before_kb, 4 << 10)
        counts = sorted((r["outcome"], r["output_tokens"]) for r in self.result["requests"] if r["outcome"] != "cancelled")
        self.assertEqual(counts, STREAMS * [("answered", 150)] + [("answered", many)] + 4 * [("broken", 33)])
        self.assertEqual(len(self.result["requests"]), len(counts) + 1)

    def test_gather_is_bounded(self):
        for value in ("51ms", "-1ms", "x"):
            done = self.nrg("llm", "proxy", "--upstream", "http://127.0.0.1:1", f"--gather={value}")
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (2, 1), done.stderr)


if __name__ == "__main__":
    unittest.main()
