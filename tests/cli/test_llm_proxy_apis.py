"""nrg llm proxy: every API is counted as its documents say, what is not understood has a row by its time, failures have their status, and
--ask-usage asks for clients that don't, who see nothing of it.

The server is llm_server.py; what it was asked to count is the truth.
"""
import http.client
import socket
import threading
import unittest

from llm_proxy import ServedCase, post, read_all
from support import *

CLOSE = ["Connection: close"]


def body_of(answer):
    """What an answer carries, without chunks."""
    head, body = answer.split(b"\r\n\r\n", 1)
    if b"chunked" not in head.lower():
        return body
    parts = []
    while True:
        size, body = body.split(b"\r\n", 1)
        if not int(size, 16):
            return b"".join(parts)
        parts.append(body[:int(size, 16)])
        body = body[int(size, 16) + 2:]


class Apis(ServedCase):
    def asked(self, *asks, options=()):
        with self.proxy(*options):
            self.answers = [self.ask(post(path, ask, CLOSE)) for path, ask in asks]
        self.assert_adds_up()
        return self.result["requests"]

    def test_every_api(self):
        test = {"prompt": 100, "cached": 40, "created": 10, "tokens": 9}
        counts = ("input_tokens", "cached_tokens", "output_tokens")
        kinds = [("/v1/messages", {}, "messages", (100, 40, 9)), ("/v1/messages", {"stream": True}, "messages", (100, 40, 9)),
                 ("/v1/messages?beta=true", {"stream": True}, "messages", (100, 40, 9)),
                 ("/generate", {}, "generate", (100, 40, 9)), ("/generate", {"stream": True}, "generate", (100, 40, 9)),
                 ("/v1/embeddings", {}, "embeddings", (100, None, None)), ("/v1/rerank", {}, "rerank", (100, None, None)),
                 ("/score", {}, "score", (100, None, None)), ("/classify", {}, "classify", (100, None, None))]
        requests = self.asked(*[(path, {"model": "m", "test": test, **ask}) for path, ask, _, _ in kinds])
        for (path, ask, api, count), q in zip(kinds, requests, strict=True):
            with self.subTest(path=path, **ask):
                self.assertEqual((q["api"], q["understood"], q["status"], q["outcome"]), (api, True, 200, "answered"))
                self.assertEqual(tuple(q.get(key) for key in counts), count)
                self.assertEqual("first_text_s" in q, bool(ask), "of streams alone")
                self.assertEqual(q["streamed"], bool(ask))

    def test_messages_that_are_cut_say_what_came(self):
        asks = [{"tokens": 9, "prompt": 50, "kinds": ("thinking", "text", "json")}, {"tokens": 20, "prompt": 30, "die_after": 7},
                {"tokens": 4, "error": True}]
        whole, cut, error = self.asked(*[("/v1/messages", {"model": "m", "stream": True, "test": t}) for t in asks])
        self.assertEqual((whole["output_tokens"], whole["outcome"]), (9, "answered"))
        self.assertIn("first_text_s", whole)
        self.assertIn("s_per_output_token", whole)
        self.assertEqual((cut["input_tokens"], cut["output_tokens"], cut["output_estimated"]), (30, 7, True))  # not message_start's 1
        self.assertEqual((cut["outcome"], cut["status"]), ("broken", 200))
        self.assertEqual((error["outcome"], error["status"], error["output_tokens"]), ("broken", 200, 4))

    def test_what_is_not_understood_has_a_row(self):
        secret = "sk0topsecret9"
        slow = {"test": {"first": 0.3}}
        requests = self.asked(("/v1/chat/completions", {"model": "m"}), (f"/v1/audio/transcriptions?key={secret}", slow),
                              ("/v1/messages/count_tokens", {"model": "m"}), (f"/v1/audio/{secret}/speech", slow),
                              (f"/v1/audio/{'x' * 40}/a/b/c/d/e", slow))
        by_path = {q["path"]: q for q in requests if "path" in q}
        self.assertEqual(list(by_path), ["POST /v1/audio/transcriptions", "POST /v1/messages/count_tokens", "POST /v1/audio/*/speech",
                                         "POST /v1/audio/*/a/b/..."])
        for q in by_path.values():
            self.assertEqual((q["api"], q["understood"], q["status"]), ("other", False, 200))
            self.assertNotIn("input_tokens", q)
        self.assertGreater(by_path["POST /v1/audio/transcriptions"]["duration_s"], 0.25)
        self.assertEqual({u["kind"] for u in self.result["not_understood"]}, set(by_path))
        self.assertAlmostEqual(self.result["not_understood_j"], sum(q["energy_j"] for q in by_path.values()))
        self.assertIn("NOT UNDERSTOOD", self.said)
        self.assertIn("POST /v1/audio/transcriptions", self.said)
        with open(self.recording, "rb") as f:
            self.assertNotIn(secret.encode(), f.read() + self.said.encode() + json.dumps(self.result).encode())
        names = str(query(self.recording, "SELECT name FROM span_name"))
        self.assertNotIn(secret, names)

    def test_chat_without_a_word_about_tokens_is_not_understood(self):
        said, unsaid = self.asked(("/v1/chat/completions", {"model": "m"}), ("/v1/chat/completions", {"model": "m", "test": {"usage": False}}))
        self.assertTrue(said["understood"])
        self.assertFalse(unsaid["understood"])
        self.assertEqual([u["kind"] for u in self.result["not_understood"]], ["chat"])

    def test_statuses_of_failures(self):
        chat = "/v1/chat/completions"
        requests = self.asked((chat, {"model": "m", "test": {"status": 429}}), (chat, {"model": "m", "test": {"status": 500}}),
                              (chat, {"model": "m", "stream": True, "test": {"tokens": 10, "die_after": 4}}), (chat, {"model": "m"}),
                              ("/v1/nothing-here", {"test": {"status": 404}}), (chat, {"model": "m", "test": {"raw": ""}}))
        self.assertEqual([(q["status"], q["outcome"]) for q in requests],
                         [(429, "broken"), (500, "broken"), (200, "broken"), (200, "answered"), (404, "broken"), (502, "broken")])
        self.assertEqual(requests[4]["path"], "POST (not found)")
        model = self.result["models"][0]
        self.assertEqual((model["requests"], model["failed_requests"], model["failed_output_tokens"]), (5, 4, 4))
        known = [q for q in requests if "output_tokens" in q]  # joules of requests without a count are in no token's price
        self.assertAlmostEqual(model["j_per_output_token"] * model["output_tokens"], sum(q["energy_j"] for q in known), delta=1e-9)
        self.assertAlmostEqual(model["j_per_output_token_high"] * model["output_tokens"],
                               min(sum(q["high_j"] for q in known), self.result["total_high_j"]), delta=1e-9)
        self.assert_adds_up()
        self.assertIn("failed of m", self.said)
        for shown in (" 429\n", " 500\n", " 200 broken\n", " 502\n"):
            self.assertIn(shown, self.said)

    def test_times_of_streams(self):
        """20 texts, 30 ms apart at least: TTFT, time per output token and between texts; a whole answer has none."""
        ask = {"model": "m", "test": {"tokens": 20, "pause": 0.03, "first": 0.2}}
        stream, whole = self.asked(("/v1/chat/completions", {**ask, "stream": True}), ("/v1/chat/completions", ask))
        self.assertGreater(stream["first_text_s"], 0.19)
        self.assertGreater(stream["s_per_output_token"], 0.0299)
        self.assertNotIn("first_text_s", whole)
        self.assertNotIn("s_per_output_token", whole)
        percentiles = self.result["models"][0]["percentiles"]
        self.assertEqual(percentiles["first_text_s"]["p99"], stream["first_text_s"])
        self.assertEqual(percentiles["s_per_output_token"]["p50"], stream["s_per_output_token"])
        gaps = percentiles["between_texts_s"]
        self.assertGreater(gaps["p50"], 0.02)
        self.assertGreaterEqual(gaps["p99"], gaps["p50"])
        self.assertEqual(percentiles, self.result["percentiles"])
        for line in ("stream: until first text", "stream: per output token", "stream: between two texts"):
            self.assertIn(line, self.said)

    def test_a_pause_in_a_stream_is_seen(self):
        """Two texts at once, and one half a second later: in one row they would be 0.25 s apart each."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        event = b'data: {"model":"m","choices":[{"delta":{"content":"x"}}]}\n\n'

        def serve():
            connection = listener.accept()[0]
            with connection:
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + event)
                time.sleep(0.01)
                connection.sendall(event)
                time.sleep(0.5)
                connection.sendall(event)
        threading.Thread(target=serve, daemon=True).start()
        with self.proxy(upstream=f"http://127.0.0.1:{listener.getsockname()[1]}"):
            self.ask(post("/v1/chat/completions", {"model": "m", "stream": True}, CLOSE))
        self.assertGreater(self.result["percentiles"]["between_texts_s"]["p99"], 0.4)

    def test_quick_questions_are_left_out(self):
        with self.proxy():
            self.ask(post("/v1/chat/completions", {"model": "m"}, CLOSE))
            for path in ("/v1/models", "/health"):
                self.ask(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        rows = [q for q in self.result["requests"] if q["api"] != "chat"]  # where the machine is busy, one may take long
        self.assertEqual(len(rows) + self.result["left_out_requests"], 2)
        self.assert_adds_up()


class AskUsage(ServedCase):
    CHAT = "/v1/chat/completions"

    def sent(self):
        return json.loads(self.server.requests[-1][3])

    def through(self, data):
        """What the client gets, with and without the proxy."""
        direct, through = self.ask(data, self.server.port), self.ask(data)
        self.assertEqual(body_of(direct), body_of(through))
        return through

    def test_the_client_sees_nothing_of_it(self):
        stream = {"model": "m", "stream": True, "test": {"usage": "asked", "prompt": 21, "tokens": 6}}
        asked = {"include_usage": True}
        cases = [({}, asked), ({"stream_options": None}, asked), ({"stream_options": {}}, asked), ({"stream_options": {"include_usage": False}}, asked),
                 ({"stream_options": {"include_obfuscation": False}}, {"include_obfuscation": False, **asked})]
        with self.proxy("--ask-usage"):
            for more, expected in cases:
                for chunked in (False, True):
                    for headers in (CLOSE, [*CLOSE, "x-nrg-joules: 1"]):
                        answer = self.through(post(self.CHAT, {**stream, **more}, headers, chunked))
                        self.assertNotIn(b'"usage"', answer)
                        self.assertTrue(answer.endswith(b"\r\n\r\n"), answer)
                        self.assertEqual(self.sent(), {**stream, **more, "stream_options": expected})
            old = self.ask(post(self.CHAT, stream).replace(b"HTTP/1.1", b"HTTP/1.0"))
            self.assertTrue(old.endswith(b"data: [DONE]\n\n") and b'"usage"' not in old, old)
            by_close = {**stream, "test": {**stream["test"], "by_close": True}}
            self.assertNotIn(b'"usage"', self.through(post(self.CHAT, by_close, CLOSE)))
            self.assertNotIn(b'"usage"', self.through(post("/v1/completions", stream, CLOSE)))
        counts = {(q["input_tokens"], q["output_tokens"], q.get("output_estimated", False)) for q in self.result["requests"]}
        self.assertEqual(counts, {(21, 6, False)})

    def test_what_is_left_alone(self):
        test = {"usage": "asked"}
        bodies = [json.dumps({"model": "m", "test": test}), json.dumps({"model": "m", "stream": False, "test": test}),
                  json.dumps({"model": "m", "stream": True, "stream_options": {"include_usage": True}, "test": test}),
                  json.dumps({"model": "m", "stream": True, "stream_options": {"continuous_usage_stats": True}, "test": test}),
                  json.dumps({"model": "m", "stream": True, "stream_options": "no", "test": {"status": 400}}),
                  '{"model":"m","stream":true,"stream":true,"test":{}}',
                  json.dumps({"model": "m", "stream": True, "test": test, "padding": "x" * (1 << 20)})]
        with self.proxy("--ask-usage"):
            for body in bodies:
                for chunked in (False, True):
                    data = body.encode()
                    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(data)}"
                    carried = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data) if chunked else data
                    head = f"POST {self.CHAT} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{framing}\r\n\r\n".encode()
                    self.through(head + carried)
                    self.assertEqual(self.server.requests[-1][3], data)
            for bad in (b"", b"{", b"[]", b"\xff\xfe", b'{"stream":true'):
                self.ask(b"POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" %
                         (self.CHAT.encode(), len(bad), bad))
                self.assertEqual(self.server.requests[-1][3], bad)
            self.through(post("/api/chat", {"model": "m"}, CLOSE))
            self.assertNotIn("stream_options", self.sent())
            cut = self.connect()
            cut.sendall(post(self.CHAT, {"model": "m", "stream": True})[:-3])
            cut.shutdown(socket.SHUT_WR)
            self.assertTrue(read_all(cut).startswith(b"HTTP/1.1 400 "))

    def test_without_the_option_nothing_is_asked(self):
        with self.proxy():
            self.through(post(self.CHAT, {"model": "m", "stream": True, "test": {"usage": "asked"}}, CLOSE))
        self.assertNotIn("stream_options", self.sent())
        self.assertTrue(self.result["requests"][0]["output_estimated"])

    def test_many_on_one_connection_and_many_at_a_time(self):
        ask = {"model": "m", "stream": True, "test": {"usage": "asked", "tokens": 40, "pause": 0.002}}

        def one(_):
            client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
            for i in range(3):
                client.request("POST", self.CHAT, json.dumps({**ask, "stream": i != 1}))
                body = client.getresponse().read()
                self.assertEqual(body.count(b"secret-answer"), 40 if i != 1 else 3)
                self.assertEqual(body.count(b'"usage"'), i == 1)
            client.close()
        with self.proxy("--ask-usage"):  # so many streams wait for each other (--gather)
            threads = [threading.Thread(target=one, args=(i,)) for i in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        self.assertEqual(len(self.result["requests"]), 36)
        self.assertEqual({(q["outcome"], q["output_tokens"], q.get("output_estimated", False)) for q in self.result["requests"]},
                         {("answered", 40, False)})


if __name__ == "__main__":
    unittest.main()
