"""nrg llm proxy against a server whose machine uses joules by a law of the tokens it really reads and makes: the server, a process of its own, writes
them into the file that a simulated domain follows (joules-from), so that what each request used is known. 1, 8 and 32 clients."""
import concurrent.futures
import http.client
import random
import sys
import threading
import unittest

from llm_proxy import ProxyCase
from support import *

IDLE_W, PROMPT_J, OUTPUT_J = 25.0, 0.005, 0.3  # about as many joules for prompts as for output
SECONDS = 10
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "llm_server.py")


class Clients:
    """Requests one after the other from each, with known joules by their number of prompt tokens, which no other one has."""

    def __init__(self, port, count, seed):
        self.port, self.count, self.seed = port, count, seed
        self.prompts = iter(random.Random(f"{seed} {count}").sample(range(20, 4000), 3900))
        self.truth, self.lock = {}, threading.Lock()

    def ask(self, connection, rng):
        with self.lock:
            prompt = next(self.prompts)
        tokens = rng.randint(5, 60)
        self.truth[prompt] = PROMPT_J * prompt + OUTPUT_J * tokens
        connection.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "stream": rng.random() < 0.8, "test": {
            "prompt": prompt, "tokens": tokens, "first": prompt * 2e-5, "pause": rng.choice((0.001, 0.004, 0.01))}}))
        connection.getresponse().read()

    def run_one(self, number, until):
        rng, connection = random.Random(f"{self.seed} {number}"), http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
        while time.monotonic() < until:
            self.ask(connection, rng)
            time.sleep(rng.expovariate(1 / 0.2))
        connection.close()

    def run(self, seconds):
        until = time.monotonic() + seconds
        with concurrent.futures.ThreadPoolExecutor(self.count) as pool:
            for done in [pool.submit(self.run_one, i, until) for i in range(self.count)]:
                done.result()


class MixedClients(Clients):
    """All APIs, and requests of which nobody understands what they do: known by the order in which each client sent them."""

    APIS = (("/v1/chat/completions", True), ("/v1/chat/completions", False), ("/v1/completions", True), ("/v1/responses", False), ("/v1/messages", True),
            ("/v1/messages", False), ("/api/chat", True), ("/generate", True), ("/v1/embeddings", False), ("/v1/rerank", False))

    def __init__(self, port, count, seed):
        super().__init__(port, count, seed)
        self.unknown = []  # when it was sent, and its joules

    def ask(self, connection, rng):
        if rng.random() < 0.15:
            length, joules = rng.uniform(0.1, 0.6), rng.uniform(0, 20)
            self.unknown.append((time.monotonic(), joules))
            connection.request("POST", "/v1/audio/transcriptions", json.dumps({"test": {"first": length, "joules": joules}}))
            connection.getresponse().read()
            return
        with self.lock:
            prompt = next(self.prompts)
        path, stream = rng.choice(self.APIS)
        tokens = 0 if path in ("/v1/embeddings", "/v1/rerank") else rng.randint(5, 60)
        self.truth[prompt] = PROMPT_J * prompt + OUTPUT_J * tokens
        connection.request("POST", path, json.dumps({"model": "m", "stream": stream, "test": {
            "prompt": prompt, "tokens": tokens, "first": prompt * 2e-5, "pause": rng.choice((0.001, 0.004, 0.01))}}))
        connection.getresponse().read()


class Live(ProxyCase):
    SCENARIO = f"domain package-0\n  power {IDLE_W}\n  joules-from joules\n"

    def start_server(self):
        server = subprocess.Popen([sys.executable, SERVER, "--joules", self.path("joules"), "--prompt-j", str(PROMPT_J), "--output-j", str(OUTPUT_J)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.started.append(server)
        return server, server.stdout.readline().strip()

    def drive(self, count, seed=1, kind=Clients):
        """(joules of each request by its prompt's tokens, of all); the proxy's result is in self."""
        server, url = self.start_server()
        with self.proxy("--rate", "50Hz", "--baseline", "1s", upstream=url):
            self.clients = clients = kind(self.port, count, seed)
            clients.run(SECONDS)
        server.communicate(timeout=LIMIT_S)
        with open(self.path("joules"), encoding="ascii") as f:
            return clients.truth, float(f.read())

    def judge(self, truth, used_j):
        """How far off prices and requests are, and what of the intervals holds."""
        r, out = self.result, {}
        for key, true in (("j_per_input_token", PROMPT_J), ("j_per_output_token", OUTPUT_J)):
            price = r["law"][key]
            out[key] = price["value"] / true - 1
            out[key + " holds"] = price["low"] <= true <= price["high"]
        out["idle"] = (r["total_j"] - r["idle_j"]) / used_j - 1
        out["sum"] = sum(q["energy_j"] for q in r["requests"]) / used_j - 1
        out["held"] = [q["low_j"] <= truth[q["input_tokens"]] <= q["high_j"] for q in r["requests"]]
        return out

    def check(self, count, truth, used_j):
        requests = self.result["requests"]
        self.assert_adds_up()
        self.assertEqual({q["input_tokens"] for q in requests}, set(truth))
        self.assertAlmostEqual(sum(truth.values()), used_j, delta=1e-6 * used_j)
        row = self.judge(truth, used_j)
        # A request alone takes four slots, and what the sensor shows of it before and after is not quite its own.
        idle, total, held = (0.06, 0.2, 0.6) if count == 1 else (0.03, 0.02, 0.8)
        self.assertLess(abs(row["idle"]), idle, row)
        self.assertLess(abs(row["sum"]), total, row)
        self.assertGreater(sum(row["held"]) / len(row["held"]), held, row)
        return row

    def test_requests_get_what_they_used(self):
        rows = []
        for count in (1, 8, 32):
            with self.subTest(clients=count):
                rows.append(self.check(count, *self.drive(count)))
        held = [h for row in rows for h in row["held"]]
        self.assertGreater(sum(held) / len(held), 0.9)
        prices = [row[key] for row in rows for key in row if key.endswith("holds")]
        self.assertGreaterEqual(sum(prices), 5, rows)

    def test_mixed_apis_and_requests_that_are_not_understood(self):
        """Those that were understood got the joules of the others, too."""
        truth, used_j = self.drive(8, seed=3, kind=MixedClients)
        self.assert_adds_up()
        known = [q for q in self.result["requests"] if q["understood"]]
        unknown = [q for q in self.result["requests"] if not q["understood"]]
        self.assertEqual({q["input_tokens"] for q in known}, set(truth))
        self.assertEqual(len(unknown), len(self.clients.unknown))
        joules = [j for _, j in sorted(self.clients.unknown)]  # two that were sent at once may be the other way round
        held = [q["low_j"] <= truth[q["input_tokens"]] <= q["high_j"] for q in known]
        others = [q["low_j"] <= j <= q["high_j"] for q, j in zip(unknown, joules)]
        self.assertGreater(sum(held) / len(held), 0.85, self.result["law"])
        self.assertGreater(sum(others) / len(others), 0.8, [(q["energy_j"], q["low_j"], q["high_j"], j) for q, j in zip(unknown, joules)])
        self.assertLess(abs(sum(q["energy_j"] for q in known) / sum(truth.values()) - 1), 0.1)


if __name__ == "__main__":
    unittest.main()
