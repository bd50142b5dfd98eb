"""Kinds of APIs through nrg llm proxy with PyPI's own clients, openai and anthropic: a table of counted against true.

Run by `make test-torch2`, which sets the Python. The server is a stand-in that answers as the documents of OpenAI, Anthropic, Ollama, SGLang and vLLM say
(tests/cli/llm_server.py): what it was asked to count is the truth, and what clients get without the proxy is what they must get with it.
"""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "cli"))
from llm_proxy import ServedCase  # noqa: E402
from support import *  # noqa: E402,F403
from test_graph_truth import PYTHON, can_import  # noqa: E402

# API of the ask, whether it streams, more of it; API, input and output tokens as nrg has them (None: not understood)
TEST = {"prompt": 60, "cached": 16, "created": 4, "tokens": 12}
TABLE = [("chat", True, {}, "chat", 60, 12), ("chat", False, {}, "chat", 60, 12), ("completions", True, {}, "completions", 60, 12),
         ("completions", False, {}, "completions", 60, 12), ("messages", True, {}, "messages", 60, 12), ("messages", False, {}, "messages", 60, 12),
         ("messages", True, {"test": {**TEST, "kinds": ["thinking", "text", "json"]}}, "messages", 60, 12),
         ("messages", False, {"count": True}, "other", None, None), ("embeddings", False, {}, "embeddings", 60, None),
         ("raw", True, {"path": "/api/chat"}, "chat", 60, 12), ("raw", False, {"path": "/api/generate"}, "generate", 60, 12),
         ("raw", True, {"path": "/generate"}, "generate", 60, 12), ("raw", False, {"path": "/v1/rerank"}, "rerank", 60, None),
         ("raw", False, {"path": "/score"}, "score", 60, None), ("raw", False, {"path": "/v1/audio/transcriptions"}, "other", None, None)]


@unittest.skipUnless(can_import("openai") and can_import("anthropic"), "needs PyPI's openai and anthropic")
class Table(ServedCase):
    def client(self, asks, url):
        done = subprocess.run([PYTHON, os.path.join(HERE, "api_client.py"), url], input=json.dumps(asks), capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_counted_against_true(self):
        asks = [{"api": api, "stream": stream, "test": TEST, **more} for api, stream, more, *_ in TABLE]
        direct = self.client(asks, self.server.url)
        with self.proxy():
            through = self.client(asks, f"http://127.0.0.1:{self.port}")
        self.assertEqual(through, direct)
        for (api, stream, more, name, read, made), q in zip(TABLE, self.result["requests"], strict=True):
            with self.subTest(api=api, stream=stream, **more):
                self.assertEqual((q["api"], q.get("input_tokens"), q.get("output_tokens")), (name, read, made))
                self.assertEqual((q["understood"], q["status"]), (read is not None, 200))
        self.assert_adds_up()
        with open(self.recording, "rb") as f:
            kept = f.read() + json.dumps(self.result).encode() + self.said.encode()
        for secret in ("sk-nobody", "secret-answer"):
            self.assertNotIn(secret.encode(), kept)

    def test_usage_that_clients_did_not_ask_for(self):
        asks = [{"api": api, "stream": True, "test": {**TEST, "usage": "asked"}} for api in ("chat", "completions")]
        direct = self.client(asks, self.server.url)
        self.assertEqual([a["output"] for a in direct], [None, None])
        with self.proxy("--ask-usage"):
            through = self.client(asks, f"http://127.0.0.1:{self.port}")
        self.assertEqual(through, direct)
        self.assertEqual([(q["input_tokens"], q["output_tokens"], q.get("output_estimated", False)) for q in self.result["requests"]],
                         2 * [(60, 12, False)])


if __name__ == "__main__":
    unittest.main()
