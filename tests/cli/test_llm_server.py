"""nrg run --llm: a stand-in server for each family's page of metrics, and pages that lie. No real server has confirmed the names.
tests/truth/test_serving.py judges the joules, by recordings whose law is known."""
import ctypes.util
import gzip
import http.server
import itertools
import socket
import threading
import unittest

from support import *

sys.path.insert(0, os.path.join(TOP, "tests", "truth"))

PAGES = {
    "vLLM": """# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{{engine="0",model_name="m"}} {prompt}.0
vllm:prefix_cache_hits_total{{engine="0",model_name="m"}} {cached}.0
vllm:generation_tokens_total{{engine="0",model_name="m"}} {output}.0
vllm:request_success_total{{engine="0",finished_reason="stop"}} {done}.0
vllm:request_success_total{{engine="0",finished_reason="length"}} 0.0
vllm:num_requests_running{{engine="0"}} {running}.0
""",
    "SGLang": """sglang:prompt_tokens_total{{model_name="m"}} {prompt}
sglang:cached_tokens_total{{cache_source="device"}} {cached}
sglang:generation_tokens_total{{model_name="m"}} {output}
sglang:num_requests_total{{model_name="m"}} {done}
sglang:num_running_reqs{{model_name="m"}} {running}
""",
    "llama.cpp": """llamacpp:prompt_tokens_total {prompt}
llamacpp:tokens_predicted_total {output}
llamacpp:requests_processing {running}
""",
    "TGI": """tgi_request_input_length_sum {prompt}
tgi_request_generated_tokens_sum {output}
tgi_request_success{{method="batch"}} {done}
tgi_batch_current_size {running}
""",
    "TensorRT-LLM": """trtllm_prompt_tokens_total{{model_name="m"}} {prompt}
trtllm_generation_tokens_total{{model_name="m"}} {output}
trtllm_request_success_total{{model_name="m"}} {done}
trtllm_num_requests_running {running}
""",
}


class Server:
    """Answers GETs with `answer(path)`: (status, content type, bytes or an iterator of bytes, more headers)."""

    def __init__(self, answer, port=0, times=8, enough=None):
        asked = itertools.count(1)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                status, kind, body, *headers = answer(self.path)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                for name, value in headers:
                    self.send_header(name, value)
                whole = isinstance(body, bytes)
                self.send_header("Content-Length", str(len(body))) if whole else self.send_header("Connection", "close")
                self.end_headers()
                try:
                    for part in [body] if whole else body:
                        self.wfile.write(part)
                except OSError:
                    pass
                self.close_connection = not whole
                if enough and status != 404 and next(asked) == times:
                    open(enough, "w").close()

            def log_message(self, *args):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()


def page_of(family):
    began = time.monotonic()

    def answer(path):
        if path != ("/prometheus/metrics" if family == "TensorRT-LLM" else "/metrics"):
            return 404, "text/html", b"<html>no</html>"
        s = 100 + int((time.monotonic() - began) * 100)
        text = PAGES[family].format(prompt=10 * s, cached=2 * s, output=3 * s, done=s, running=2)
        return 200, "text/plain; version=0.0.4; charset=utf-8", text.encode()

    return answer


@unittest.skipUnless(ctypes.util.find_library("curl") or ctypes.util.find_library("curl-gnutls"), "libcurl is not installed")
class LlmCase(Case):
    def setUp(self):
        super().setUp()
        self.machine = self.write("machine.txt", "domain package-0\n  power 30\n")

    def serve(self, answer, **where):
        """`enough`, a file, is made when it was asked that many times; self.until_enough waits for it."""
        if os.path.exists(self.path("enough")):
            os.unlink(self.path("enough"))
        server = Server(answer, enough=self.path("enough"), **where)
        self.addCleanup(server.stop)
        return server

    def measure(self, url, script="while [ ! -e enough ]; do sleep 0.05; done; echo done", name="run.nrg", sensor=None):
        out = self.path(name)
        done = self.nrg("run", "-f", "-o", out, "--json=" + out + ".json", "--sensor", sensor or "simulate:" + self.machine, "--llm", url, "--",
                        "sh", "-c", script)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, b"done\n")
        with open(out + ".json", encoding="utf-8") as text:
            return json.load(text), done.stderr.decode()


class Families(LlmCase):
    def test_each_family_is_known_by_its_names(self):
        for family in PAGES:
            with self.subTest(family):
                server = self.serve(page_of(family))
                result, said = self.measure(server.url + ("" if family == "vLLM" else "/"))
                llm = result["llm"]
                self.assertEqual(llm["server"], family)
                self.assertEqual(llm["url"].rstrip("/"), server.url)
                self.assertEqual(llm["running"], 2)
                self.assertAlmostEqual(llm["prompt_tokens"] / llm["output_tokens"], 10 / 3, delta=1e-9)
                if "cached_tokens" in llm:
                    self.assertAlmostEqual(llm["cached_tokens"] / llm["output_tokens"], 2 / 3, delta=1e-9)
                if "requests" in llm:
                    self.assertAlmostEqual(llm["output_tokens"] / llm["requests"], 3, delta=1e-9)
                    self.assertAlmostEqual(llm["j_per_request"]["value"], 30 / 100, delta=0.06)  # 30 W, 100 a second
                    for key in ("all_j_per_output_token", "j_per_request", "tokens_per_joule"):
                        self.assertLess(llm[key]["low"], llm[key]["value"])
                        self.assertGreater(llm[key]["high"], llm[key]["value"])
                self.assertAlmostEqual(llm["tokens_per_joule"]["value"], 300 / 30, delta=2)
                self.assertIn("too short", llm["unfitted"])
                self.assertIn(f"tokens of {family} at {server.url}", said)
                self.assertNotIn("server at", said)

    def test_how_long_it_takes_is_said_at_the_start(self):
        """Rows of a slow sensor are longer, and so is the run that it takes."""
        server, least = self.serve(page_of("vLLM")), []
        for update in ("1ms", "1s"):
            machine = self.write("slow.txt", f"domain package-0\n  power 30\n  update {update}\n")
            found = re.search(r"all its time take about (\d+) s of requests for ±3 %; a token's own price at least (\d+) min", self.measure(
                server.url, sensor="simulate:" + machine)[1])
            self.assertTrue(found)
            least.append(int(found[1]))
        self.assertGreater(least[1], 3 * least[0])
        self.assertNotIn("of requests", self.nrg("run", "--sensor", "simulate:" + self.machine, "true").stderr.decode())

    def test_a_page_at_a_path_of_its_own(self):
        answer = page_of("vLLM")
        server = self.serve(lambda path: answer("/metrics") if path == "/own?x=1" else (404, "text/plain", b"no"))
        self.assertEqual(self.measure(server.url + "/own?x=1")[0]["llm"]["server"], "vLLM")

    def test_a_key_in_the_query_is_used_and_kept_nowhere(self):
        answer = page_of("vLLM")
        for page in ("/own?key=top-secret", "/bad?key=top-secret"):
            server = self.serve(lambda path: answer("/metrics") if path == "/own?key=top-secret" else (500, "text/plain", b"no"), times=3)
            result, said = self.measure(server.url + page)
            self.assertEqual(result["llm"].get("server"), "vLLM" if "own" in page else None)
            with open(self.path("run.nrg"), "rb") as recording:
                kept = recording.read() + said.encode() + json.dumps(result).encode()
            self.assertNotIn(b"top-secret", kept)
            self.assertIn((server.url + page[:4]).encode(), kept)

    def test_a_server_that_comes_late_and_goes_early(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        timer = threading.Timer(0.7, lambda: self.serve(page_of("vLLM"), port=port))
        timer.start()
        self.addCleanup(timer.join)
        result, said = self.measure(f"http://127.0.0.1:{port}")
        self.assertEqual(result["llm"]["server"], "vLLM")
        self.assertGreater(result["llm"]["output_tokens"], 0)
        self.assertEqual([line for line in said.splitlines() if line.startswith("nrg: llm")], [])

    def test_a_server_that_begins_anew_is_no_negative_count(self):
        asked = itertools.count(1)

        def answer(path):
            s = next(asked) * 10
            s = s + 5000 if s < 50 else s - 50
            return 200, "text/plain", PAGES["vLLM"].format(prompt=s, cached=0, output=s, done=s, running=1).encode()

        llm = self.measure(self.serve(answer, times=16).url)[0]["llm"]
        self.assertGreater(llm["output_tokens"], 0)
        self.assertLess(llm["output_tokens"], 400)


    def test_all_joules_of_a_server_that_counts_when_requests_end(self):
        """30 W all the time; the run is shorter than the ten requests that a slot may take."""
        asked = itertools.count(1)

        def answer(path):
            done = next(asked) // 5
            return 200, "text/plain", PAGES["TGI"].format(prompt=100 * done, output=50 * done, done=done, running=2).encode()

        result, said = self.measure(self.serve(answer, times=26).url)
        llm = result["llm"]
        truth_j = 30 * (llm["end_s"] - llm["begin_s"])
        self.assertAlmostEqual(llm["all_j_per_output_token"]["value"] * llm["output_tokens"] / truth_j, 1, delta=0.02)
        self.assertAlmostEqual(llm["energy_j"] / truth_j, 1, delta=0.02)
        self.assertNotIn("inf ", said)


class Lies(LlmCase):
    def test_what_is_no_page_gets_one_line_and_the_command_runs_on(self):
        ok = "text/plain; version=0.0.4"
        lies = {
            "HTML instead of metrics": lambda path: (200, "text/html", b"<html>hello</html>"),
            "a redirect (HTTP 302)": lambda path: (302, ok, b"", ("Location", "http://127.0.0.1:1/")),
            "HTTP 500": lambda path: (500, ok, b"no"),
            "a compressed answer": lambda path: (200, ok, gzip.compress(b"vllm:generation_tokens_total 3\n"), ("Content-Encoding", "gzip")),
            "the answer has more than": lambda path: (200, ok, (b"a_metric_total 1\n" * 65536 for _ in range(12))),
            "no metrics; looked for vllm:generation_tokens_total (vLLM)": lambda path: (200, ok, b"\x00\xff\x01garbage\n" * 100),
            "no count of tokens among its metrics": lambda path: (200, ok, b"python_gc_total 3\n"),
            "vllm:prompt_tokens_total is NaN, negative or huge":
                lambda path: (200, ok, b"vllm:prompt_tokens_total NaN\nvllm:generation_tokens_total 3\n"),
            "vllm:generation_tokens_total is NaN, negative or huge":
                lambda path: (200, ok, b"vllm:generation_tokens_total{a=\"0\"} -4\nvllm:generation_tokens_total{a=\"1\"} 1e300\n"),
        }
        for words, answer in lies.items():
            with self.subTest(words):
                result, said = self.measure(self.serve(answer, times=2).url + "/metrics")
                lines = [line for line in said.splitlines() if line.startswith("nrg: llm: ")]
                self.assertEqual(len(lines), 1, said)
                self.assertIn(words, lines[0])
                self.assertTrue("why" in result["llm"] or "unfitted" in result["llm"])

    def test_an_endless_answer_ends(self):
        stop = threading.Event()
        self.addCleanup(stop.set)

        def drip():
            while not stop.wait(0.1):
                yield b"# "

        result, said = self.measure(self.serve(lambda path: (200, "text/plain", drip())).url + "/metrics", "sleep 4; echo done")
        self.assertIn("no whole answer in time", said)
        self.assertIn("why", result["llm"])

    def test_nobody_there_is_said_at_the_end_alone(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            result, said = self.measure(f"http://127.0.0.1:{free.getsockname()[1]}", "sleep 1; echo done")
        self.assertIn("no page of metrics that is understood came from there", result["llm"]["why"])
        self.assertEqual(said.count("no page of metrics"), 1)
        self.assertNotIn("nrg: llm", said)

    def test_bad_urls_are_refused_before_the_command_runs(self):
        for url, words in (("127.0.0.1:8000", "wants http://HOST"), ("ftp://h/", "wants http://HOST"), ("http://", "wants http://HOST"),
                           ("http://user:secret@h/", "--llm: the URL must not hold a password"), ("http://h/a b", "a blank"), ("http://h:99999", "no such port"), ("http://h:80x/metrics", "no such port"),
                           ("http://[::1", "no such port"), ("", "wants the server's URL"),
                           ("http://h/" + "x" * 2000, "too long")):
            done = self.nrg("run", "-o", self.path("no.nrg"), "--sensor", "simulate:" + self.machine, "--llm", url, "--", "echo", "ran")
            self.assertEqual(done.returncode, 125, url)
            self.assertEqual(done.stdout, b"")
            self.assertIn(words, done.stderr.decode())
            self.assertEqual(len(done.stderr.decode().splitlines()), 1)
            self.assertNotIn("secret", done.stderr.decode())

    def test_without_libcurl_it_says_what_to_install(self):
        env = {**os.environ, "NRG_CURL_LIBRARY": self.path("none.so")}
        done = self.nrg("run", "-o", self.path("no.nrg"), "--sensor", "simulate:" + self.machine, "--llm", "http://h/", "--", "true", env=env)
        self.assertEqual(done.returncode, 125)
        self.assertIn("apt install libcurl4", done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
