"""nrg llm proxy against a server whose machine uses joules by a law of the tokens it really reads and makes: the server writes
them into the file that a simulated domain follows (joules-from), so that what each request used is known. 1, 8 and 32 clients."""
import concurrent.futures
import http.client
import random
import threading
import unittest

from llm_proxy import ProxyCase
from llm_server import LlmServer
from support import *

IDLE_W, PROMPT_J, OUTPUT_J = 25.0, 0.02, 0.15
SECONDS = 7


class Meter:
    """Joules so far, in a file; one write of always the same length."""

    def __init__(self, path):
        self.joules, self.lock = 0.0, threading.Lock()
        self.fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
        self.add(0)

    def add(self, joules):
        with self.lock:
            self.joules += joules
            os.pwrite(self.fd, b"%020.9f\n" % self.joules, 0)


class Live(ProxyCase):
    SCENARIO = f"domain package-0\n  power {IDLE_W}\n  joules-from joules\n"

    def drive(self, clients):
        """Requests with known joules, by their number of prompt tokens, which no other one has."""
        meter = Meter(self.path("joules"))
        server = LlmServer(on_prompt=lambda n: meter.add(PROMPT_J * n), on_token=lambda: meter.add(OUTPUT_J))
        self.addCleanup(server.close)
        prompts = iter(random.Random(clients).sample(range(20, 4000), 3000))
        truth, lock = {}, threading.Lock()

        def client(number):
            rng, connection = random.Random(number), http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
            while time.monotonic() < until:
                with lock:
                    prompt = next(prompts)
                tokens = rng.randint(5, 60)
                truth[prompt] = PROMPT_J * prompt + OUTPUT_J * tokens
                connection.request("POST", "/v1/chat/completions", json.dumps({"model": "m", "stream": rng.random() < 0.8, "test": {
                    "prompt": prompt, "tokens": tokens, "first": prompt * 2e-5, "pause": rng.choice((0.001, 0.004, 0.01))}}))
                connection.getresponse().read()
                time.sleep(rng.expovariate(1 / 0.2))
            connection.close()
        with self.proxy("--rate", "50Hz", "--baseline", "1s", upstream=server.url):
            until = time.monotonic() + SECONDS
            with concurrent.futures.ThreadPoolExecutor(clients) as pool:
                for done in [pool.submit(client, i) for i in range(clients)]:
                    done.result()
        return truth, meter.joules

    def test_requests_get_what_they_used(self):
        prices, hold = {}, []
        for clients in (1, 8, 32):
            with self.subTest(clients=clients):
                truth, used_j = self.drive(clients)
                r = self.result
                self.assert_adds_up()
                self.assertEqual({q["input_tokens"] for q in r["requests"]}, set(truth))
                self.assertAlmostEqual(sum(truth.values()), used_j, delta=1e-6 * used_j)
                self.assertAlmostEqual(r["total_j"] - r["idle_j"], used_j, delta=0.03 * used_j)
                for key, true in (("j_per_input_token", PROMPT_J), ("j_per_output_token", OUTPUT_J)):
                    price = r["law"][key]
                    prices[clients, key] = price["low"] <= true <= price["high"]
                # What stands out of so short a run's law is nobody's; with one client that is most.
                self.assertAlmostEqual(sum(q["energy_j"] for q in r["requests"]), used_j, delta=0.25 * used_j)
                held = [q["low_j"] <= truth[q["input_tokens"]] <= q["high_j"] for q in r["requests"]]
                self.assertGreater(sum(held) / len(held), 0.6, (clients, r["law"]))
                hold += held
        self.assertGreater(sum(hold) / len(hold), 0.85)
        self.assertGreaterEqual(sum(prices.values()), 5, prices)


if __name__ == "__main__":
    unittest.main()
