"""nrg llm proxy before servers with TLS: those that are not who they say, that stop in the middle, or that never begin. Each
gives the client a clear status, or an answer that can't be taken for whole. The servers are OpenSSL's, by Python's ssl."""
import contextlib
import http.client
import socket
import ssl
import struct
import threading
import time
import unittest
import warnings

from llm_proxy import ProxyCase, post, read_all
from support import *

OK = b"HTTP/1.1 200 OK\r\n"
LENGTH = OK + b"Content-Length: 10\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
BY_CLOSE = OK + b"Connection: close\r\n\r\n"
ASK = post("/v1/chat/completions", {}, ["Connection: close"])
ALL_CIPHERS = "ALL:@SECLEVEL=0"


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class Tls(ProxyCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        def run(*args):
            subprocess.run(["openssl", *args], check=True, capture_output=True, cwd=cls.folder)
        new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        run("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.crt", "-days", "2", "-subj", "/CN=authority")
        run("req", "-x509", *new_key, "-keyout", "self.key", "-out", "self.crt", "-days", "2", "-subj", "/CN=self", "-addext",
            "subjectAltName=IP:127.0.0.1")
        for name, alt, days in (("good", "IP:127.0.0.1", 2), ("wrong", "DNS:elsewhere.example,IP:127.0.0.2", 2), ("expired", "IP:127.0.0.1", -1)):
            with open(os.path.join(cls.folder, "ext"), "w", encoding="ascii") as f:
                f.write(f"subjectAltName={alt}\n")
            run("req", *new_key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
            run("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-out", f"{name}.crt", "-days",
                str(days), "-extfile", "ext")

    def context(self, name="good", most=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(self.folder, f"{name}.crt"), os.path.join(self.folder, f"{name}.key"))
        if most:
            context.set_ciphers(ALL_CIPHERS)
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, most
        return context

    def behave(self, serve, context=None):
        """From now on the server does as `serve` says with a connection, behind a handshake if there is a context."""
        self.behaviour = serve, context

    @contextlib.contextmanager
    def served(self):
        """The proxy before the server."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def one(connection, serve, context):
            with connection, contextlib.suppress(OSError):
                if context:
                    with context.wrap_socket(connection, server_side=True) as session:
                        serve(session)
                else:
                    serve(connection)

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=one, args=(listener.accept()[0], *self.behaviour), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        with self.trusting(f"https://127.0.0.1:{listener.getsockname()[1]}"):
            yield

    def outcomes(self):
        return [r["outcome"] for r in self.result["requests"]]

    def trusting(self, upstream):
        return self.proxy(upstream=upstream, env={"SSL_CERT_FILE": os.path.join(self.folder, "ca.crt")})

    @staticmethod
    def reset(connection):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    @staticmethod
    def says(answer, end):
        """Reads the request, answers, and ends as told."""
        def serve(session):
            data = b""
            while b"\r\n\r\n{}" not in data and b": 50000000" not in data:
                data += session.recv(1 << 16)
            if answer:
                session.sendall(answer)
            end(session)
        return serve

    def test_servers_that_are_not_who_they_say(self):
        cases = {"wrong": b"mismatch", "expired": b"expired", "self": b"self-signed"}
        self.behave(None)
        with self.served():
            for name, why in cases.items():
                self.behave(self.says(LENGTH + b"x" * 10, self.ends), self.context(name))
                answer = self.ask(ASK)
                self.assertTrue(answer.startswith(b"HTTP/1.1 502 "), (name, answer))
                self.assertIn(why, answer)
            self.behave(self.says(LENGTH + b"x" * 10, self.ends), self.context())
            self.assertTrue(self.ask(ASK).endswith(b"x" * 10))
        self.assertEqual(self.outcomes(), 3 * ["broken"] + ["answered"])

    @staticmethod
    def ends(session):
        with contextlib.suppress(OSError):
            session.unwrap()

    @staticmethod
    def drops(session):
        """The end of the connection without one of TLS."""
        socket.socket(fileno=session.detach()).close()

    def test_servers_that_do_not_begin(self):
        def alert(connection):
            connection.recv(1 << 16)
            connection.sendall(b"\x15\x03\x03\x00\x02\x02\x28")  # handshake failure
        cases = {"old": (lambda session: None, self.context(most=ssl.TLSVersion.TLSv1), b"version|protocol|unsupported"),
                 "plain": (lambda c: c.sendall(OK) or c.recv(1), None, b"wrong version"),
                 "closed": (lambda c: c.recv(1 << 16), None, b"TLS: "), "reset": (lambda c: c.recv(10) and Tls.reset(c), None, b"TLS: "),
                 "alert": (alert, None, b"alert handshake failure"), "cut": (lambda c: c.recv(1 << 16) and c.sendall(b"\x16\x03\x03\x20\x00abc"), None, b"TLS: ")}
        with self.served():
            for name, (serve, context, why) in cases.items():
                self.behave(serve, context)
                answer = self.ask(ASK)
                self.assertTrue(answer.startswith(b"HTTP/1.1 502 "), (name, answer))
                self.assertRegex(answer, why)
        self.assertEqual([(r["status"], r["outcome"]) for r in self.result["requests"]], len(cases) * [(502, "broken")])

    def test_an_end_in_the_middle_never_looks_whole(self):
        def garbage(session):
            raw = socket.socket(fileno=session.detach())
            raw.sendall(b"garbage that is no record of TLS")
            raw.close()
        def body():
            client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT_S)
            self.addCleanup(client.close)
            client.request("POST", "/v1/chat/completions", "{}")
            return client.getresponse().read()
        whole = {LENGTH + b"helloworld": self.drops, CHUNKED + b"5\r\nhello\r\n0\r\n\r\n": self.drops, BY_CLOSE + b"hello": self.ends}
        with self.served():
            for said in (LENGTH + b"hello", CHUNKED + b"5\r\nhello\r\n", BY_CLOSE + b"hello"):
                for end in (self.drops, garbage):
                    self.behave(self.says(said, end), self.context())
                    with self.assertRaises((ConnectionError, http.client.IncompleteRead), msg=(said, end)):
                        self.fail((said, end, body()))
            for said in (b"", b"HTTP/1.1 200", LENGTH[:-2]):
                for end in (self.drops, garbage, self.ends):
                    self.behave(self.says(said, end), self.context())
                    answer = self.ask(ASK)
                    self.assertTrue(answer.startswith(b"HTTP/1.1 502 "), (said, end, answer))
            for said, end in whole.items():
                self.behave(self.says(said, end), self.context())
                self.assertTrue(body().startswith(b"hello"), said)
        self.assertEqual(self.outcomes(), 15 * ["broken"] + 3 * ["answered"])

    def test_an_answer_before_the_whole_request(self):
        """The server refuses a body and goes: what it said is passed on where it can be read."""
        said = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nno!"
        self.behave(self.says(said, self.ends), self.context())
        with self.served():
            with self.connect() as client:
                client.sendall(b"POST /v1/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000000\r\n\r\n")
                time.sleep(0.05)
                with contextlib.suppress(ConnectionError):
                    client.sendall(b"x" * 100000)
                answer = read_all(client)
        self.assertTrue(answer.startswith(b"HTTP/1.1 413 ") and answer.endswith(b"no!"), answer)

    def test_keys_that_change(self):
        """OpenSSL's own server renegotiates (TLS 1.2) and updates its keys (1.3) in the middle of an answer."""
        for option, command in (("-tls1_2", b"R\n"), ("-tls1_3", b"k\n")):
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            server = subprocess.Popen(["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-cert", "good.crt", "-key", "good.key", option],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.folder)
            self.started.append(server)
            while b"ACCEPT" not in server.stdout.readline():
                pass
            with self.trusting(f"https://127.0.0.1:{port}"):
                with self.connect() as client:
                    client.sendall(ASK)
                    while b"Host:" not in server.stdout.readline():
                        pass
                    server.stdin.write(LENGTH + b"hello")
                    server.stdin.flush()
                    got = b""
                    while not got.endswith(b"hello"):
                        block = client.recv(1 << 16)
                        self.assertTrue(block, got)
                        got += block
                    server.stdin.write(command)
                    server.stdin.flush()
                    time.sleep(0.1)  # a line of its own
                    server.stdin.write(b"world")
                    server.stdin.flush()
                    self.assertEqual(client.recv(1 << 16), b"world", option)
            server.kill()
            server.communicate()


if __name__ == "__main__":
    unittest.main()
