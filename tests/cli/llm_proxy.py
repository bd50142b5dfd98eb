"""What tests of nrg llm proxy share: a proxy under test, its result, and requests as bytes."""
import contextlib
import socket

from llm_server import LlmServer
from support import *


def post(path, ask, headers=(), chunked=False):
    """A request as bytes."""
    body = json.dumps(ask).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    if chunked:
        half = len(body) // 2
        parts = b"".join(b"%x;note=1\r\n%s\r\n" % (len(p), p) for p in (body[:half], body[half:]))
        body = parts + b"0\r\nX-Trailer: 1\r\n\r\n"
        lines.append("Transfer-Encoding: chunked")
    else:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def read_all(connection):
    blocks = []
    while block := connection.recv(1 << 18):
        blocks.append(block)
    return b"".join(blocks)


class ProxyCase(Case):
    SCENARIO = "domain package-0\n  power 30\n"

    @contextlib.contextmanager
    def proxy(self, *options, upstream, env=None, expect=0, before=None, program=NRG):
        """A proxy in front of a server; what it prints and its JSON are in self at the end."""
        scenario = self.path("machine.txt")
        with open(scenario, "w", encoding="ascii") as f:
            f.write(self.SCENARIO)
        self.recording = self.path(f"proxy-{time.monotonic_ns()}.nrg")
        self.json_path = self.recording + ".json"
        command = [program, "llm", "proxy", "--upstream", upstream, "--listen", "127.0.0.1:0",
                   f"--json={self.json_path}", "-o", self.recording]
        if not {"--root", "--sensor"} & set(options):
            command += ["--sensor", f"simulate:{scenario}"]
        process = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, **(env or {})}, preexec_fn=before)
        self.started.append(process)
        said = ""
        while "relaying http://" not in said:
            line = process.stderr.readline()
            self.assertTrue(line, said)
            said += line
        self.port = int(re.search(r"relaying http://127.0.0.1:(\d+)", said)[1])
        self.process = process
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            self.said = said + process.stderr.read()
            code = process.wait(LIMIT_S)
        self.assertEqual(code, expect, self.said)
        if os.path.exists(self.json_path):
            with open(self.json_path, encoding="utf-8") as f:
                self.result = json.load(f)

    def connect(self, port=None):
        connection = socket.create_connection(("127.0.0.1", port or self.port), timeout=LIMIT_S)
        self.addCleanup(connection.close)
        return connection

    def ask(self, data, port=None):
        """The whole answer to a request that closes."""
        with self.connect(port) as connection:
            connection.sendall(data)
            return read_all(connection)

    def assert_adds_up(self):
        r = self.result
        total = sum(q["energy_j"] for q in r["requests"]) + r.get("idle_j", 0) + r["unattributed_j"]
        self.assertAlmostEqual(total, r["total_j"], delta=1e-9 * r["total_j"])
        for q in r["requests"]:
            self.assertLessEqual(q["low_j"], q["energy_j"] + 1e-12)
            self.assertLessEqual(q["energy_j"], q["high_j"] + 1e-12)
        for use in [*r["models"], *r["not_understood"]]:
            self.assertLessEqual(use["high_j"], max(r["total_high_j"], use["energy_j"]) + 1e-9)
            for key in ("j_per_request", "j_per_output_token"):
                self.assertEqual(key in use, f"{key}_low" in use)
                self.assertLessEqual(use.get(f"{key}_low", 0), use.get(key, 0) + 1e-12)
                self.assertLessEqual(use.get(key, 0), use.get(f"{key}_high", 0) + 1e-12)
            self.assertAlmostEqual(use["j_per_request_low"] * use["requests"], use["low_j"], delta=1e-9)


class ServedCase(ProxyCase):
    """With a server of its own behind the proxy."""

    def setUp(self):
        super().setUp()
        self.server = LlmServer()
        self.addCleanup(self.server.close)

    def proxy(self, *options, upstream=None, **kw):
        return super().proxy(*options, upstream=upstream or self.server.url, **kw)
