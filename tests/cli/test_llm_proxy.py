"""nrg llm proxy: requests pass as they are, whatever clients and servers do, and are counted right.

The server is one of Python's standard library (llm_server.py) that answers as vLLM, OpenAI and Ollama do; clients are
curl, http.client and bare sockets. What the server itself counted and sent is the truth.
"""
import concurrent.futures
import contextlib
import http.client
import socket
import threading
import unittest

from llm_proxy import ServedCase, post, read_all
from llm_server import LlmServer
from support import *

KEY = "sk-topsecret-0123456789"
PROMPT = "a prompt that nobody may keep"


class Base(ServedCase):
    def curl(self, *args, body=None):
        if not shutil.which("curl"):
            self.skipTest("curl is not installed")
        return subprocess.run(["curl", "-sS", "--max-time", str(LIMIT_S), *args], input=body, capture_output=True,
                              check=True).stdout

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"


class Passing(Base):
    def test_bodies_are_those_of_the_server(self):
        asks = [("/v1/chat/completions", {"model": "a", "stream": True}),
                ("/v1/chat/completions", {"model": "b"}),
                ("/v1/chat/completions", {"model": "b", "test": {"status": 429}}),
                ("/v1/completions", {"model": "c", "test": {"status": 503}}),
                ("/api/chat", {"model": "d"}), ("/api/generate", {"model": "e", "stream": False})]
        with self.proxy():
            for path, ask in asks:
                for chunked in (False, True):
                    data = post(path, ask, ["Connection: close"], chunked)
                    direct, through = self.ask(data, self.server.port), self.ask(data)
                    self.assertEqual(direct.split(b"\r\n\r\n", 1)[1], through.split(b"\r\n\r\n", 1)[1])
                    self.assertEqual(direct.split(b"\r\n")[0], through.split(b"\r\n")[0])
            self.assertIn(b'"tiny"', self.curl(self.url("/v1/models")))
            head = self.curl("-I", self.url("/v1/models"))
            self.assertIn(b"Content-Length: 40", head)
            self.assertIn(b"404 Not Found", self.curl("-i", self.url("/nothing")))
        # Those that only asked have a row where the machine is so busy that they took long.
        self.assertEqual(sum(q["api"] != "other" for q in self.result["requests"]), 2 * len(asks))
        bodies = [(method, path, body) for method, path, _, body in self.server.requests if method == "POST"]
        self.assertEqual(bodies[::2], bodies[1::2])
        self.assert_adds_up()

    def test_one_connection_for_many_requests(self):
        with self.proxy():
            client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
            for i in range(20):
                stream = i % 2 == 0
                client.request("POST", "/v1/chat/completions",
                               json.dumps({"model": "a", "stream": stream, "test": {"prompt": i, "tokens": i + 1}}))
                answer = client.getresponse()
                self.assertEqual(answer.status, 200)
                self.assertIn(b"secret-answer", answer.read())
            client.close()
            pipelined = b"".join(post("/v1/chat/completions", {"model": "p", "test": {"tokens": 100 + i}})
                                 for i in range(3))
            connection = self.connect()
            connection.sendall(pipelined + post("/v1/chat/completions", {"model": "p"}, ["Connection: close"]))
            self.assertEqual(read_all(connection).count(b"HTTP/1.1 200 OK"), 4)
        counts = [(r["input_tokens"], r["output_tokens"]) for r in self.result["requests"]]
        self.assertEqual(counts, [(i, i + 1) for i in range(20)] + [(7, 100 + i) for i in range(3)] + [(7, 5)])

    def test_old_clients_get_no_chunks(self):
        with self.proxy():
            data = post("/v1/chat/completions", {"model": "a", "stream": True}).replace(b"HTTP/1.1", b"HTTP/1.0")
            answer = self.ask(data)
        head, body = answer.split(b"\r\n\r\n", 1)
        self.assertNotIn(b"chunked", head)
        self.assertTrue(body.startswith(b"data: {") and body.endswith(b"data: [DONE]\n\n"), body)

    def test_body_after_100_continue(self):
        with self.proxy():
            out = self.curl("-H", "Expect: 100-continue", "--expect100-timeout", "60", "-d", "@-",
                            self.url("/v1/chat/completions"),
                            body=json.dumps({"padding": "x" * 300000, "model": "a"}).encode())
        self.assertIn(b"secret-answer", out)
        self.assertEqual(self.result["requests"][0]["model"], "a")

    def test_usage_apart_and_estimated(self):
        with self.proxy():
            for test in ({"prompt": 100, "tokens": 9, "cached": 64, "reasoning": 4}, {"tokens": 12, "usage": False}):
                self.curl("-d", json.dumps({"model": "m", "stream": True, "test": test}),
                          self.url("/v1/chat/completions?key=" + KEY))
            self.curl("-d", json.dumps({"model": "ll", "test": {"prompt": 31, "tokens": 8}}), self.url("/api/generate"))
        said, guessed, ollama = self.result["requests"]
        self.assertEqual((said["input_tokens"], said["cached_tokens"], said["output_tokens"],
                          said["reasoning_tokens"]), (100, 64, 9, 4))
        self.assertEqual((guessed["output_tokens"], guessed["output_estimated"]), (12, True))
        self.assertNotIn("input_tokens", guessed)
        self.assertEqual((ollama["model"], ollama["input_tokens"], ollama["output_tokens"]), ("ll", 31, 8))
        self.assertEqual({m["model"]: m["requests"] for m in self.result["models"]}, {"m": 2, "ll": 1})

    def test_an_estimate_knows_its_idle_power(self):
        with self.proxy("--sensor", "estimate", "--cpu-watts", "10:40"):
            self.ask(post("/v1/chat/completions", {"model": "m", "test": {"first": 0.5}}, ["Connection: close"]))
        self.assertEqual(self.result["idle_method"], "estimate")
        self.assertAlmostEqual(self.result["idle_w"], 10, delta=0.1)
        self.assertLess(self.result["requests"][0]["energy_j"], self.result["total_j"] - self.result["idle_j"] + 1e-9)
        self.assertGreater(self.result["idle_j"], 9.9 * 0.5)
        self.assert_adds_up()

    def test_nothing_secret_is_kept(self):
        with self.proxy("--header"):
            for stream in (True, False):
                self.curl("-H", f"Authorization: Bearer {KEY}", "-H", f"api-key: {KEY}", "-H", f"Cookie: s={KEY}", "-d",
                          json.dumps({"model": "m", "stream": stream, "messages": [{"content": PROMPT}]}),
                          self.url(f"/v1/chat/completions?key={KEY}"))
        headers = self.server.requests[0][2]
        self.assertEqual(headers["Authorization"], f"Bearer {KEY}")  # it is passed on
        with open(self.recording, "rb") as f:
            kept = f.read() + self.said.encode() + json.dumps(self.result).encode()
        for secret in (KEY, PROMPT, "secret-answer", "Bearer"):
            self.assertNotIn(secret.encode(), kept)
        rows = query(self.recording, "SELECT text FROM (SELECT name AS text FROM span_name UNION SELECT value FROM meta)")
        self.assertNotIn(KEY, str(rows))

    def test_joules_in_header_and_trailer(self):
        ask = {"model": "m", "test": {"first": 0.6}}
        with self.proxy():
            data = post("/v1/chat/completions", ask, ["Connection: close"])
            self.assertNotIn(b"x-nrg-joules", self.ask(data).lower())
            asked = data.replace(b"Host: localhost", b"Host: localhost\r\nx-nrg-joules: 1")
            whole = self.ask(asked)
            stream = self.ask(post("/v1/chat/completions", {**ask, "stream": True},
                                   ["Connection: close", "X-Nrg-Joules: 1"]))
        joules = float(re.search(rb"x-nrg-joules: ([0-9.e-]+)\r\n", whole.split(b"\r\n\r\n")[0])[1])
        self.assertGreater(joules, 0)
        self.assertLess(joules, 1000)
        self.assertIn(b"Trailer: x-nrg-joules\r\n", stream)
        self.assertRegex(stream, rb"\r\n0\r\nx-nrg-joules: [0-9.e+-]+\r\n\r\n$")
        self.assertNotIn("X-Nrg-Joules", str(self.server.requests))


class Trouble(Base):
    def test_what_could_smuggle_is_refused(self):
        body = b"0\r\n\r\nGET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n"
        bad = [b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
               b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
               b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", b"Content-Length: 5\r\nContent-Length: 5\r\n\r\n",
               b"Content-Length: +5\r\n\r\n", b"Content-Length: 5, 5\r\n\r\n", b"Content-Length: 0x5\r\n\r\n",
               b"Transfer-Encoding: xchunked\r\n\r\n", b"Transfer-Encoding: chunked, identity\r\n\r\n",
               b"Transfer-Encoding : chunked\r\n\r\n", b"Transfer-Encoding: chunked\n\r\n\r\n",
               b"X: y\r\n Transfer-Encoding: chunked\r\n\r\n", b"Content-Length: 5\rX: y\r\n\r\n",
               b"X: \0\r\n\r\n", b"Host: y\r\n\r\n"]
        with self.proxy():
            for fields in bad:
                answer = self.ask(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n" + fields + body)
                self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), (fields, answer))
                self.assertEqual(answer.count(b"HTTP/1.1 "), 1, (fields, answer))
            for head in (b"GET / HTTP/1.1\nHost: localhost\n\n", b"\n", b"GET / HTTP/1.1\r\nHost: localhost\n"):
                self.assertTrue(self.ask(head).startswith(b"HTTP/1.1 400 "), head)
            for chunk in (b"-1\r\n", b"g\r\n", b"ffffffffffffffffff\r\n", b"\r\n", b"5\nhello", b"3\r\nhello"):
                answer = self.ask(b"POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk)
                self.assertEqual(answer.count(b"HTTP/1.1 400 "), 1, (chunk, answer))
            for first in (b"GET http://other/ HTTP/1.1", b"GET / HTTP/2.0", b"GET /", b"GET /a\tb HTTP/1.1", b"G@T / HTTP/1.1", b"\x16\x03\x01"):
                answer = self.ask(first + b"\r\nHost: localhost\r\n\r\n")
                self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), (first, answer))
                self.assertIn(b"nrg llm proxy", answer, first)
            long = self.ask(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 40000 + b"\r\n\r\n")
            self.assertTrue(long.startswith(b"HTTP/1.1 431 "), long[:100])
            upgrade = self.ask(b"GET /v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            self.assertTrue(upgrade.startswith(b"HTTP/1.1 501 "), upgrade)
            self.assertIn(b"tiny", self.curl(self.url("/v1/models")))
        self.assertNotIn("/hidden", str(self.server.requests))

    def test_server_that_is_not_there_or_lies(self):
        with self.proxy():
            for raw in ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "garbage\r\n\r\n",
                        "HTTP/1.1 101 Switching\r\n\r\n", "HTTP/1.1 200 OK\r\nX: " + "y" * 30000, ""):
                answer = self.ask(post("/v1/chat/completions", {"model": "m", "test": {"raw": raw}}))
                self.assertTrue(answer.startswith(b"HTTP/1.1 502 "), (raw[:80], answer))
            lies = ('{"model":"l","usage":{"prompt_tokens":-5,"completion_tokens":1e99,'
                    '"prompt_tokens_details":{"cached_tokens":"many"}}}')
            answer = self.ask(post("/v1/chat/completions", {"model": "m", "test": {"raw":
                f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(lies)}\r\n\r\n{lies}"}},
                ["Connection: close"]))
            self.assertTrue(answer.endswith(lies.encode()))
        last = self.result["requests"][-1]
        self.assertEqual(last["model"], "l")
        self.assertEqual({"input_tokens", "output_tokens", "cached_tokens"} & set(last), set())
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            with self.proxy(upstream=f"http://127.0.0.1:{nobody.getsockname()[1]}"):
                answer = self.ask(post("/v1/chat/completions", {"model": "m"}))
        self.assertTrue(answer.startswith(b"HTTP/1.1 502 "), answer)
        self.assertIn(b"Connection refused", answer)

    def test_server_dies_in_the_middle(self):
        with self.proxy():
            client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
            client.request("POST", "/v1/chat/completions", json.dumps(
                {"model": "m", "stream": True, "test": {"tokens": 10, "die_after": 4, "pause": 0.01}}))
            with self.assertRaises((http.client.IncompleteRead, ConnectionError)):
                client.getresponse().read()
            client.close()
            self.assertIn(b"secret-answer", self.curl("-d", '{"model":"n"}', self.url("/v1/chat/completions")))
        dead, alive = self.result["requests"]
        self.assertEqual((dead["outcome"], dead["output_tokens"], dead["output_estimated"]), ("broken", 4, True))
        self.assertEqual(alive["outcome"], "answered")

    def test_client_that_goes_away_stops_the_server(self):
        with self.proxy():
            connection = self.connect()
            connection.sendall(post("/v1/chat/completions",
                                    {"model": "m", "stream": True, "test": {"tokens": 100000, "pause": 0.005}}))
            got = b""
            while got.count(b"secret-answer") < 3:
                got += connection.recv(65536)
            connection.close()
            eventually(lambda: self.server.broken, "the server sees that nobody reads")
        self.assertEqual([r["outcome"] for r in self.result["requests"]], ["cancelled"])

    def test_slow_reader_holds_the_server_back(self):
        size = 48 << 20
        with self.proxy() as process:
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            connection.connect(("127.0.0.1", self.port))
            self.addCleanup(connection.close)
            connection.sendall(post("/v1/chat/completions", {"model": "m", "test": {"huge": size}}, ["Connection: close"]))
            before = -1
            while before != self.server.sent:  # until nothing moves any more
                before = self.server.sent
                time.sleep(0.3)
            self.assertGreater(before, 0)
            self.assertLess(before, size // 2)
            before_kb = resident_kb(process.pid)
            answer = read_all(connection)
            after_kb = resident_kb(process.pid)
        self.assertGreater(len(answer), size)
        self.assertLess(after_kb - before_kb, 16 << 10)
        self.assertEqual(self.result["requests"][0]["output_tokens"], 4)

    def test_a_request_that_is_cut_is_answered(self):
        whole = post("/v1/chat/completions", {"model": "m"})
        with self.proxy():
            for cut, chunked in ((whole[:-3], False), (whole[:20], False), (post("/v1/chat/completions", {}, chunked=True)[:-9], True)):
                connection = self.connect()
                connection.sendall(cut)
                connection.shutdown(socket.SHUT_WR)
                answer = read_all(connection)
                self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), (cut, chunked, answer))
                self.assertEqual(answer.count(b"HTTP/1.1 "), 1)
            connection = self.connect()
            connection.shutdown(socket.SHUT_WR)
            self.assertEqual(read_all(connection), b"")  # it asked for nothing
        self.assertEqual([r["outcome"] for r in self.result["requests"]], ["cancelled", "cancelled"])

    def test_idle_clients_make_room(self):
        with self.proxy("--connections", "2"):
            clients = [http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S) for _ in range(2)]
            for client in clients:
                self.addCleanup(client.close)
                client.request("POST", "/v1/chat/completions", '{"model": "m"}')
                self.assertIn(b"secret-answer", client.getresponse().read())
            self.assertIn(b"200 OK", self.ask(post("/v1/chat/completions", {"model": "m"}, ["Connection: close"])))
            self.assertEqual(clients[0].sock.recv(1), b"")  # closed for the third

    def test_ends_when_running_requests_have(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            with self.proxy() as process:
                future = pool.submit(self.curl, "-d", json.dumps(
                    {"model": "m", "stream": True, "test": {"tokens": 10, "pause": 0.1}}), self.url("/v1/chat/completions"))
                eventually(lambda: self.server.requests, "the request arrives")
                process.send_signal(signal.SIGTERM)
                self.assertIn(b"[DONE]", future.result())
                process.wait(LIMIT_S)
        self.assertEqual(self.result["requests"][0]["outcome"], "answered")

    def test_bad_usage_is_one_line(self):
        for args in (["proxy"], ["proxy", "--upstream", "ftp://x"], ["proxy", "--upstream", "http://user:pw@h/"],
                     ["proxy", "--upstream", "http://h/?k=v"], ["proxy", "--upstream", "http://127.0.0.1:1", "--listen", "x"],
                     ["proxy", "--upstream", "http://127.0.0.1:99999"], ["report"], ["report", "/nowhere.nrg"], []):
            done = subprocess.run([NRG, "llm", *args], capture_output=True, text=True, cwd=self.path(""))
            self.assertIn(done.returncode, (1, 2), args)
            self.assertEqual(len(done.stderr.strip().splitlines()), 1, (args, done.stderr))
            self.assertNotIn("user:pw", done.stderr)

    def test_a_proxy_that_never_began_leaves_no_file(self):
        recording = self.path("none.nrg")
        process = subprocess.Popen([NRG, "llm", "proxy", "--upstream", self.server.url, "--listen", "127.0.0.1:0", "-o",
                                    recording, "--baseline", "60s", "--sensor", "machine"], stderr=subprocess.PIPE)
        self.started.append(process)
        eventually(lambda: begun(recording), "the baseline begins")
        process.send_signal(signal.SIGTERM)
        process.wait(LIMIT_S)
        self.assertFalse(os.path.exists(recording))


class Together(Base):
    def test_32_at_a_time(self):
        def one(i):
            ask = {"model": f"m{i % 3}", "stream": i % 2 == 0, "test": {"prompt": i, "tokens": 1 + i % 7, "first": 0.01}}
            path = "/api/chat" if i % 5 == 0 else "/v1/chat/completions"
            return self.curl("-d", json.dumps(ask), self.url(path))
        with self.proxy():
            with concurrent.futures.ThreadPoolExecutor(32) as pool:
                answers = list(pool.map(one, range(96)))
        self.assertTrue(all(b"secret-answer" in a for a in answers))
        self.assertEqual(sorted((r["input_tokens"], r["output_tokens"]) for r in self.result["requests"]),
                         sorted((i, 1 + i % 7) for i in range(96)))
        self.assertTrue(all(r["outcome"] == "answered" for r in self.result["requests"]))
        self.assert_adds_up()
        again = json.loads(subprocess.run([NRG, "llm", "report", "--json", self.recording], capture_output=True,
                                          check=True).stdout)
        self.assertEqual(again, self.result)
        tracks = query(self.recording, "SELECT count(*) FROM span_track")[0][0]
        self.assertLessEqual(tracks, 32)


class Tls(Base):
    def make(self, *args):
        subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=self.path(""))

    def test_certificates_are_verified(self):
        if not shutil.which("openssl"):
            self.skipTest("openssl is not installed")
        for name in ("good", "other"):
            self.make("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.crt",
                      "-days", "2", "-subj", f"/CN={name} authority")
        for name, alt in (("leaf", "IP:127.0.0.1"), ("wrong", "DNS:elsewhere.example")):
            with open(self.path(f"{name}.ext"), "w", encoding="ascii") as f:
                f.write(f"subjectAltName={alt}\n")
            self.make("req", "-newkey", "rsa:2048", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj",
                      f"/CN={name}")
            self.make("x509", "-req", "-in", f"{name}.csr", "-CA", "good.crt", "-CAkey", "good.key", "-CAcreateserial",
                      "-out", f"{name}.crt", "-days", "2", "-extfile", f"{name}.ext")
        leaf, wrong = (LlmServer((self.path(f"{name}.crt"), self.path(f"{name}.key"))) for name in ("leaf", "wrong"))
        self.addCleanup(leaf.close)
        self.addCleanup(wrong.close)
        data = post("/v1/chat/completions", {"model": "m", "stream": True}, ["Connection: close"])
        big = post("/v1/chat/completions", {"model": "m", "test": {"huge": 300000}}, ["Connection: close"])
        with self.proxy(upstream=leaf.url, env={"SSL_CERT_FILE": self.path("good.crt")}):
            self.assertTrue(self.ask(data).endswith(b"0\r\n\r\n"))
            self.assertGreater(len(self.ask(big)), 300000)
            crowd = post("/v1/chat/completions", {"model": "m", "stream": True, "test": {"tokens": 40, "pause": 0.005}},
                         ["Connection: close"])  # so many streams are read together
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                self.assertEqual([a.count(b"secret-answer") for a in pool.map(self.ask, 16 * [crowd])], 16 * [40])
        self.assertEqual(self.result["requests"][0]["output_tokens"], 5)
        for upstream, authority, why in ((leaf.url, "other.crt", b"self-signed|unable to get"),
                                         (wrong.url, "good.crt", b"mismatch")):
            with self.proxy(upstream=upstream, env={"SSL_CERT_FILE": self.path(authority)}):
                answer = self.ask(data)
            self.assertTrue(answer.startswith(b"HTTP/1.1 502 "), answer)
            self.assertRegex(answer, why)


class OddServers(Base):
    """Servers of bare sockets, which say the same to every request."""

    def always(self, answer):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve(connection):
            with connection, contextlib.suppress(OSError):
                while b"\r\n\r\n" in connection.recv(1 << 16):
                    connection.sendall(answer)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    def test_what_follows_an_answer_is_no_answer(self):
        first = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nABC"
        with self.proxy(upstream=self.always(first + b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nSMUGGLED")):
            client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
            for _ in range(3):
                client.request("GET", "/x")
                self.assertEqual(client.getresponse().read(), b"ABC")
            client.close()

    def test_extensions_of_many_chunks(self):
        chunk = b"5;chunk-signature=" + b"a" * 60 + b"\r\nabcde\r\n"
        with self.proxy(upstream=self.always(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + 400 * chunk +
                                             b"0\r\n\r\n")):
            client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
            client.request("GET", "/x")
            self.assertEqual(client.getresponse().read(), 400 * b"abcde")
            client.close()


if __name__ == "__main__":
    unittest.main()
