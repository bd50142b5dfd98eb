"""nrg llm proxy between PyPI's openai and a real server, `transformers serve`, with a tiny random model.

Run by `make test-torch2`, which sets the Python. What the server answers and counts when it is asked directly is the truth,
and the tokenizer has one token per character, so that all counts are known beforehand, too.
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from llm_proxy import ProxyCase, post  # noqa: E402
from support import *  # noqa: E402,F403
from test_graph_truth import PYTHON, can_import  # noqa: E402

APIS = ("chat", "completions", "responses")


@unittest.skipUnless(all(map(can_import, ("transformers", "fastapi", "uvicorn", "openai"))),
                     "needs PyPI's transformers, fastapi, uvicorn and openai")
class Serve(ProxyCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="nrg-serve-"))
        cls.model = os.path.join(cls.folder, "tiny")
        subprocess.run([PYTHON, os.path.join(HERE, "make_tiny_llm.py"), cls.model], check=True, capture_output=True)
        log = os.path.join(cls.folder, "log")
        with open(log, "w", encoding="utf-8") as f:
            cls.server = subprocess.Popen(
                [PYTHON, "-m", "transformers.cli.transformers", "serve", cls.model, "--host", "127.0.0.1", "--port", "0", "--device", "cpu"],
                stdout=f, stderr=f, env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": cls.folder, "OMP_NUM_THREADS": "1"})
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.kill)

        def listening():
            with open(log, encoding="utf-8") as f:
                said = f.read()
            if cls.server.poll() is not None:
                raise RuntimeError(said[-3000:])
            return re.search(r"running on (http://127.0.0.1:(\d+))", said)
        eventually(listening, "the server listens")
        cls.url, port = listening().groups()
        cls.server_port = int(port)

    def proxy(self, *options):
        return super().proxy(*options, upstream=self.url)

    def client(self, asks, at_a_time, url):
        done = subprocess.run([PYTHON, os.path.join(HERE, "openai_client.py"), url, str(at_a_time)], input=json.dumps(asks),
                              capture_output=True, text=True, timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def through(self, asks, at_a_time):
        return self.client(asks, at_a_time, f"http://127.0.0.1:{self.port}")

    def asks(self, count):
        """No two with the same counts; whole and streamed answers of each API."""
        return [{"api": APIS[i // 2 % 3], "stream": i % 2 == 0, "text": f"forget me {i}: " + "ab c" * i, "tokens": 4 + i % 11,
                 "model": self.model} for i in range(count)]

    def counts(self, ask):
        """The template puts one token before the prompt; completions have no template."""
        return len(ask["text"]) + (ask["api"] != "completions"), ask["tokens"]

    def test_answers_and_counts(self):
        asks = self.asks(32)
        direct = self.client(asks, 1, self.url)
        self.assertGreater(len({a["text"] for a in direct}), 16, "answers differ")
        self.assertEqual([(a["input"], a["output"]) for a in direct], [self.counts(a) for a in asks])
        for at_a_time, count in ((1, 6), (8, 16), (32, 32)):
            with self.subTest(at_a_time=at_a_time):
                with self.proxy():
                    answers = self.through(asks[:count], at_a_time)
                self.assertEqual(answers, direct[:count])
                requests = self.result["requests"]
                self.assertEqual(sorted((r["input_tokens"], r["output_tokens"]) for r in requests),
                                 sorted(self.counts(a) for a in asks[:count]))
                self.assertEqual({(r["outcome"], r.get("output_estimated", False)) for r in requests}, {("answered", False)})
                self.assert_adds_up()
                self.assertGreater(sum(r["energy_j"] for r in requests), 0)
                with open(self.recording, "rb") as f:
                    kept = f.read() + json.dumps(self.result).encode() + self.said.encode()
                for secret in ("forget me", "sk-nobody", *(a["text"] for a in answers if len(a["text"]) > 7)):
                    self.assertNotIn(secret.encode(), kept)

    def test_cancelled_and_refused(self):
        asks = self.asks(6)
        long = {**asks[0], "tokens": 3000, "cancel_after": 3}
        with self.proxy():
            gone = self.through([long], 1)[0]
            refused = self.ask(post("/v1/chat/completions", {"model": self.model, "messages": [], "nonsense": 1},
                                    ["Connection: close"]))
            direct_refused = self.ask(post("/v1/chat/completions", {"model": self.model, "messages": [], "nonsense": 1},
                                           ["Connection: close"]), self.server_port)
            after = self.through(asks, 2)
        self.assertEqual(len(gone["text"]), 3)
        self.assertTrue(refused.startswith(b"HTTP/1.1 4"), refused)
        self.assertEqual(refused.split(b"\r\n\r\n", 1)[1], direct_refused.split(b"\r\n\r\n", 1)[1])
        self.assertEqual(after, self.client(asks, 1, self.url))
        first, second, *others = self.result["requests"]
        self.assertEqual(first["outcome"], "cancelled")
        self.assertTrue(first["output_estimated"])
        self.assertTrue(3 <= first["output_tokens"] < 3000, first)
        self.assertNotEqual(second["outcome"], "answered")
        self.assertEqual({r["outcome"] for r in others}, {"answered"})
        self.assert_adds_up()

    def test_joules_in_header_and_trailer(self):
        asks = self.asks(6)
        with self.proxy("--header"):
            answers = self.through(asks, 2)
            stream = self.ask(post("/v1/chat/completions", {"model": self.model, "messages": [{"role": "user", "content": "x"}],
                                                            "max_tokens": 4, "stream": True}, ["Connection: close"]))
        for ask, answer in zip(asks, answers):
            if ask["stream"]:
                self.assertIsNone(answer["joules"])
            else:
                self.assertGreaterEqual(float(answer["joules"]), 0)
        self.assertRegex(stream, rb"\r\n0\r\nx-nrg-joules: [0-9.e+-]+\r\n\r\n$")


if __name__ == "__main__":
    unittest.main()
