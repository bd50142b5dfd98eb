"""nrg llm proxy keeps out whom it should: pages of other names, more clients than descriptors, a server whose first
address never answers."""
import resource
import socket
import unittest

from llm_proxy import ProxyCase, ServedCase, post
from llm_server import LlmServer
from support import *


class Guard(ServedCase):
    def status(self, *fields):
        """Of a GET with these fields; Host is localhost unless given."""
        host = [] if any(f.startswith("Host:") for f in fields) else ["Host: localhost"]
        lines = ["GET /v1/models HTTP/1.1", *host, *fields, "Connection: close"]
        return int(self.ask("\r\n".join(lines).encode() + b"\r\n\r\n").split(b" ", 2)[1])

    def test_names_of_others_are_refused(self):
        with self.proxy("--allow-host", "llm.example.org", "--allow-host", "app://chat"):
            port = self.port
            for host in (f"127.0.0.1:{port}", "localhost", f"LOCALHOST:{port}", "localhost.", "[::1]:80", "10.1.2.3",
                         "llm.example.org", "LLM.example.org:8081"):
                self.assertEqual(self.status(f"Host: {host}"), 200, host)
            for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil.example", "",
                         "a:b:c", "[::1", "llm.example.org.evil.example", "2130706433"):
                self.assertEqual(self.status(f"Host: {host}"), 421, host)
            for origin in ("http://localhost:3000", "https://127.0.0.1", "http://[::1]:5", "http://llm.example.org", "app://chat"):
                self.assertEqual(self.status(f"Origin: {origin}"), 200, origin)
            self.assertEqual(self.status("Host: 10.1.2.3:80", "Origin: http://10.1.2.3:80"), 200)
            for origin in ("http://evil.example", "https://localhost.evil.example", "null", "http://10.1.2.3", "app://other", "",
                           "http://localhost@evil.example"):
                self.assertEqual(self.status(f"Origin: {origin}"), 403, origin)
            self.assertEqual(self.status("Origin: http://localhost", "Origin: http://localhost"), 400)
        self.assertEqual(self.said.count("refused a request with Host: evil.example"), 1)
        self.assertEqual(self.said.count("refused a request with"), 2)
        asked = {headers["Host"] for _, _, headers, _ in self.server.requests}
        self.assertEqual(asked, {f"127.0.0.1:{self.server.port}"})

    def test_any_name_where_all_are_allowed(self):
        with self.proxy("--allow-host", "*"):
            self.assertEqual(self.status("Host: evil.example", "Origin: null"), 200)

    def test_a_limit_of_files_makes_clients_wait(self):
        def few():
            resource.setrlimit(resource.RLIMIT_NOFILE, (140, 148))
        with self.proxy(before=few) as process:
            limit = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
            held = [self.connect() for _ in range(30)]
            self.assertEqual(limit, (148, 148))
            time.sleep(0.6)
            before = cpu_seconds(process.pid)
            time.sleep(1)
            self.assertLess(cpu_seconds(process.pid) - before, 0.3)
            waiting = self.connect()
            waiting.sendall(post("/v1/chat/completions", {"model": "m"}, ["Connection: close"]))
            for connection in held:
                connection.close()
            self.assertTrue(waiting.recv(1 << 16).startswith(b"HTTP/1.1 200"))
        self.assertIn("10 clients at a time instead of 1024", self.said)
        self.assertEqual([r["outcome"] for r in self.result["requests"]], ["answered"])


class Addresses(ProxyCase):
    """A name with two addresses, the first of which never answers: a socket whose queue is full."""

    def test_the_second_address_is_tried(self):
        server = LlmServer()
        self.addCleanup(server.close)
        silent = socket.socket()
        self.addCleanup(silent.close)
        silent.bind(("127.0.0.77", server.port))
        silent.listen(0)
        crowd = [socket.socket() for _ in range(3)]
        for one in crowd:
            self.addCleanup(one.close)
            one.setblocking(False)
            one.connect_ex(("127.0.0.77", server.port))
        env = {"LD_PRELOAD": os.path.join(TOOLS, "libtwo-addresses.so"),
               "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        with self.proxy(upstream=f"http://two.example:{server.port}", env=env):
            data = post("/v1/chat/completions", {"model": "m"}, ["Connection: close"])
            began = time.monotonic()
            self.assertTrue(self.ask(data).startswith(b"HTTP/1.1 200"))
            first_s = time.monotonic() - began
            began = time.monotonic()
            self.assertTrue(self.ask(data).startswith(b"HTTP/1.1 200"))
            second_s = time.monotonic() - began
        self.assertGreater(first_s, 0.2)  # else the first address was not tried, and nothing is tested
        self.assertLess(first_s, 3)
        self.assertLess(second_s, first_s / 2)  # which address answers is remembered


class Memory(ServedCase):
    """Prompts and keys are in the proxy's memory: no core dump has them, and no other process of the user reads them."""

    def has_dumped(self, pid):
        """Whether it left a core dump when it died."""
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT).si_code == os.CLD_DUMPED

    def large(self):
        os.chdir(self.path(""))
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    def test_a_crash_leaves_no_core_dump(self):
        other = subprocess.Popen(["sleep", "60"], preexec_fn=self.large)
        os.kill(other.pid, signal.SIGABRT)
        dumps = self.has_dumped(other.pid)
        other.wait()
        with self.proxy(before=self.large, expect=-signal.SIGABRT) as process:
            self.ask(post("/v1/chat/completions", {"model": "m", "messages": ["a prompt"]}, ["Connection: close"]))
            with open(f"/proc/{process.pid}/limits", encoding="ascii") as f:
                self.assertRegex(f.read(), r"Max core file size +0 ")
            process.send_signal(signal.SIGABRT)
            self.assertFalse(self.has_dumped(process.pid))
        if not dumps:
            self.skipTest("nothing dumps core here")

    def test_the_user_cannot_read_it(self):
        def as_user():
            if not os.geteuid():
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
        os.chmod(self.path(""), 0o777)
        with self.proxy(before=as_user, program=nrg_of_everybody()) as process:
            owner = os.stat(f"/proc/{process.pid}/mem").st_uid
            self.assertEqual(owner, 0)  # else the user's own
            self.assertIn(b"200 OK", self.ask(post("/v1/chat/completions", {"model": "m"}, ["Connection: close"])))

    def test_programs_that_it_starts_keep_their_limit(self):
        said = self.path("limit")
        script = self.write("meter.sh", f"(ulimit -S -c; stat -c %u /proc/$$/mem) > {said}\nwhile echo 5; do sleep 0.05; done\n")

        def some():
            resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        env = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":disable_coredump=0"}  # else the sanitizer's limit is 0
        with self.proxy("--sensor", f"exec:sh {script}?columns=power", before=some, env=env):
            pass
        with open(said, encoding="ascii") as f:
            limit, owner = f.read().split()
        self.assertEqual(int(owner), os.geteuid())
        expected = subprocess.run(["sh", "-c", "ulimit -S -c"], capture_output=True, text=True, preexec_fn=some, check=True).stdout.strip()
        self.assertEqual(limit, expected)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/schedstat", encoding="ascii") as f:
        return 1e-9 * int(f.read().split()[0])


if __name__ == "__main__":
    unittest.main()
