"""The machine's power by Redfish: a real HTTPS server with a certificate of its own that answers as DMTF's schemas say, with its own clock,
wants a password, refuses, lies, hangs and dies. No real BMC has confirmed this."""
import base64
import datetime
import http.server
import ssl
import threading
import unittest

from support import *

ROOT = {"@odata.id": "/redfish/v1", "Chassis": {"@odata.id": "/redfish/v1/Chassis"}}
CHASSIS = {"Members": [{"@odata.id": "/redfish/v1/Chassis/GPU1"}, {"@odata.id": "/redfish/v1/Chassis/1"}]}
GPU = {"Id": "GPU1", "ChassisType": "Module", "EnvironmentMetrics": {"@odata.id": "/redfish/v1/Chassis/GPU1/EnvironmentMetrics"}}
BOX = {"Id": "1", "ChassisType": "RackMount", "Power": {"@odata.id": "/redfish/v1/Chassis/1/Power"}}
POWER = "/redfish/v1/Chassis/1/Power"
OFF_S = 86400.0  # the BMC's clock is a day ahead


class Bmc(http.server.ThreadingHTTPServer):
    """Answers a path with a document, with what a function gives, or as `bare` does: bytes as they are."""
    daemon_threads = True

    def __init__(self, folder, name="localhost"):
        super().__init__(("127.0.0.1", 0), Handler)
        self.routes = {"/redfish/v1": ROOT, "/redfish/v1/Chassis": CHASSIS, "/redfish/v1/Chassis/GPU1": GPU, "/redfish/v1/Chassis/1": BOX,
                       POWER: {"PowerControl": [{"Name": "Server", "PowerConsumedWatts": 263}]}}
        self.password, self.asked, self.over = None, [], threading.Event()
        self.ca = os.path.join(folder, f"{name}.pem")
        key = os.path.join(folder, f"{name}.key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext",
                        f"subjectAltName=DNS:{name}", "-keyout", key, "-out", self.ca], check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.ca, key)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.over.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        pass  # clients that don't trust us, or leave

    def sensor(self, watts, every_s=0.5):
        """A Sensor that is renewed every so often, with the BMC's time of that."""
        begun = time.time()

        def now():
            at = begun + (time.time() - begun) // every_s * every_s + OFF_S
            stamp = datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat()
            return {"Id": "power", "Reading": watts, "ReadingUnits": "W", "ReadingTime": stamp}
        self.routes["/redfish/v1/Chassis/1"] = {**BOX, "EnvironmentMetrics": {"@odata.id": "/redfish/v1/Chassis/1/EnvironmentMetrics"}}
        self.routes["/redfish/v1/Chassis/1/EnvironmentMetrics"] = {
            "PowerWatts": {"Reading": watts, "DataSourceUri": "/redfish/v1/Chassis/1/Sensors/power"}}
        self.routes["/redfish/v1/Chassis/1/Sensors/power"] = now


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 20

    def log_message(self, *args):
        pass

    def answer(self, status, kind, body, **headers):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.asked.append((self.path, self.headers.get("Authorization")))
        wanted = self.server.password
        if wanted and self.headers.get("Authorization") != "Basic " + base64.b64encode(f"me:{wanted}".encode()).decode():
            return self.answer(401, "application/json", b"{}")
        found = self.server.routes.get(self.path)
        if callable(found):
            found = found()
        if found is None:
            return self.answer(404, "application/json", b"{}")
        if isinstance(found, bytes):
            return self.answer(200, "text/html", found)
        if isinstance(found, int):
            return self.answer(found, "text/html", b"moved", Location="https://localhost:1/")
        if found == "endless":
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b'{"a": "')
            while not self.server.over.wait(0.05):
                self.wfile.write(b"x")
            return None
        return self.answer(200, "application/json", json.dumps(found).encode())


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
@unittest.skipUnless(ctypes.util.find_library("curl") or ctypes.util.find_library("curl-gnutls"), "libcurl is not installed")
class Redfish(Case):
    def setUp(self):
        super().setUp()
        self.root = self.path("root")
        os.makedirs(os.path.join(self.root, "sys/class"))
        self.bmc = Bmc(self.dir)
        self.addCleanup(self.bmc.stop)

    def uri(self, path="", user="", **keys):
        keys = {"cafile": self.bmc.ca, "period": "100ms", **keys}
        query = "&".join(f"{key.replace('_', '-')}={value}" for key, value in keys.items() if value)
        return f"redfish://{user}localhost:{self.bmc.server_address[1]}{path}?{query}"

    def sensors(self, *args, **keys):
        return self.nrg("sensors", "--json", "--root", self.root, "--sensor", self.uri(*args, **keys))

    def measure(self, script, *args, **keys):
        out = self.path("run.nrg")
        r, done = self.run_json("-f", "-o", out, "--root", self.root, "--sensor", self.uri(*args, **keys), "--", "sh", "-c", script)
        shown = self.nrg("export", "--format", "csv", out)
        rows = [line.split(",") for line in shown.stdout.decode().splitlines()]
        return r, [(float(row[1]), float(row[5])) for row in rows if row[2] == "machine"], done

    def test_an_older_bmc(self):
        found = json.loads(self.sensors().stdout)["channels"]
        self.assertEqual([(c["name"], c["unit"], c["provenance"]) for c in found], [("machine", "W", "measured")])
        r, readings, _ = self.measure("sleep 1.5")
        machine = domains(r)["machine"]
        self.assertEqual((machine["driver"], {w for _, w in readings}), ("redfish", {263}))
        self.assertAlmostEqual(machine["energy_j"] / (263 * r["duration_s"]), 1, delta=0.05)
        # After the walk only the one resource is asked for.
        self.assertEqual({path for path, _ in self.bmc.asked[-5:]}, {POWER})

    def test_the_bmcs_own_times(self):
        self.bmc.sensor(411.5)
        r, readings, _ = self.measure("sleep 3.2")
        self.assertEqual({w for _, w in readings}, {411.5})
        # One row per measurement, not per question; how they are placed: tests/unit/test_stamps.c.
        now, times = time.time(), [t for t, _ in readings]
        self.assertTrue(2 <= len(times) <= (times[-1] - times[0]) / 0.5 + 2, readings)
        self.assertEqual(times, sorted(set(times)))
        self.assertTrue(all(now - 30 < t <= now for t, _ in readings))

    def test_a_stamp_that_stands_still(self):
        self.bmc.sensor(100)
        number = iter(range(100, 10000))
        self.bmc.routes["/redfish/v1/Chassis/1/Sensors/power"] = lambda: {
            "Reading": next(number), "ReadingUnits": "W", "ReadingTime": "2020-01-01T00:00:00Z"}
        _, readings, _ = self.measure("sleep 1.2")
        self.assertGreater(len(readings), 3)

    def test_a_password(self):
        self.bmc.password = "hunter2-secret"
        done = self.sensors()
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("401", self.one_line(done.stderr))
        wrong = self.write("wrong", "nonsense\n")
        line = self.one_line(self.sensors(user="me@", password_file=wrong).stderr)
        self.assertIn("refuses user me", line)
        right = self.write("right", "hunter2-secret\nsecond line\n")
        r, readings, done = self.measure("sleep 0.5", user="me@", password_file=right)
        self.assertEqual({w for _, w in readings}, {263})
        with open(self.path("run.nrg"), "rb") as f:
            kept = f.read()
        said = done.stdout + done.stderr + json.dumps(r).encode()
        for secret in (b"hunter2", base64.b64encode(b"me:hunter2-secret")):
            self.assertNotIn(secret, kept)
            self.assertNotIn(secret, said)
        line = self.one_line(self.nrg("sensors", "--sensor", "redfish://me:hunter2@localhost").stderr)
        self.assertIn("password-file", line)
        self.assertNotIn("hunter2", line)

    def test_a_certificate_that_is_not_trusted(self):
        line = self.one_line(self.sensors(cafile=None).stderr)
        self.assertIn("TLS", line)
        other = Bmc(self.dir, name="elsewhere.example")  # trusted, but of another host
        self.addCleanup(other.stop)
        self.bmc.asked.clear()
        done = self.nrg("sensors", "--sensor", f"redfish://localhost:{other.server_address[1]}?cafile={other.ca}")
        self.assertIn("TLS", self.one_line(done.stderr))
        self.assertEqual(other.asked, [])

    def test_lies_are_a_line(self):
        cases = (
            (b"<html><body>Login</body></html>", "no document of Redfish"), (b"[1, 2]", "no document of Redfish"), (b"", "no document"),
            (302, "elsewhere"), (503, "503"), ({"PowerControl": []}, ""), ({"PowerControl": [{"PowerConsumedWatts": None}]}, "does not measure"),
            ({"PowerControl": [{"PowerConsumedWatts": "263"}]}, "does not measure"), ({"PowerControl": [{"PowerConsumedWatts": 0}]}, "0 W"),
            ({"PowerControl": [{"PowerConsumedWatts": -5}]}, "impossible"), ({"PowerControl": [{"PowerConsumedWatts": 1e300}]}, "impossible"),
            ({"PowerControl": {"PowerConsumedWatts": 5}}, ""), ({"pad": "x" * 400000}, "more than"),
        )
        for document, why in cases:
            self.bmc.routes[POWER] = document
            done = self.sensors(POWER)
            self.assertIn(done.returncode, (1, 2), document)
            self.assertIn(why, self.one_line(done.stderr))

    def test_links_to_elsewhere_are_not_followed(self):
        for link in ("https://localhost:1/evil", "//evil", "../../evil", "/red fish", 5, "x" * 300):
            self.bmc.routes["/redfish/v1"] = {"Chassis": {"@odata.id": link}}
            self.bmc.asked.clear()
            self.assertIn(self.sensors().returncode, (1, 2), link)
            self.assertLessEqual(len(self.bmc.asked), 2, link)
            self.one_line(self.sensors().stderr)

    def test_an_endless_answer(self):
        self.bmc.routes[POWER] = "endless"
        self.assertIn("in time", self.one_line(self.sensors(POWER).stderr))

    def test_a_bmc_that_dies_in_the_run(self):
        """The program runs on, and what was not measured is missing."""
        answers = iter(range(12))
        alive = self.bmc.routes[POWER]
        self.bmc.routes[POWER] = lambda: alive if next(answers, None) is not None else 503
        r, readings, _ = self.measure(f"sleep 2.5; echo lived > {self.path('lived')}")
        self.assertTrue(os.path.exists(self.path("lived")))
        self.assertEqual({w for _, w in readings}, {263})
        self.assertTrue(self.missing(r, "machine"))
        self.assertIn("503", str(query(self.path("run.nrg"), "SELECT * FROM event")))

    def test_a_bmc_of_the_configuration_that_is_absent(self):
        """It is said, and the run begins."""
        port = self.bmc.server_address[1]
        self.bmc.stop()
        config = os.path.join(self.dir, "config")
        os.makedirs(os.path.join(config, "nrg"))
        self.write("config/nrg/nrg.conf", f"meter = redfish://localhost:{port}\n")
        env = {**os.environ, "XDG_CONFIG_HOME": config}
        r, _ = self.run_json("-f", "-o", self.path("run.nrg"), "--root", self.root, "--", "true", env=env)
        self.assertTrue(any("redfish" in m["what"] for m in r["missing"]), r["missing"])


if __name__ == "__main__":
    unittest.main()
