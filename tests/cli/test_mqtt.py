"""The MQTT driver against a real broker, fed by a publisher that knows the true energy."""
import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

from meter_source import Load, Publisher
from retries import steadily
from support import Case, NRG, PYTHON, domains, eventually, query, run_edges

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "meter_source.py")
BROKER = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
BAR = 0.01


def has_library():
    probe = subprocess.run([NRG, "meter", "watch", "mqtt://127.0.0.1:1/x", "--count", "1"], capture_output=True)
    return b"libmosquitto1" not in probe.stderr


@unittest.skipUnless(BROKER, "mosquitto is not installed")
class Mqtt(Case):
    def setUp(self):
        super().setUp()
        if not has_library():
            self.skipTest("libmosquitto1 is not installed")
        with socket.socket() as s:  # a free port
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.broker = None

    def start_broker(self, extra="allow_anonymous true\n"):
        config = self.write("broker.conf", f"listener {self.port} 127.0.0.1\n{extra}"
                            + ("user root\n" if os.geteuid() == 0 else ""))
        with open(self.path("broker.log"), "ab") as log:
            self.broker = subprocess.Popen([BROKER, "-c", config], stdout=log, stderr=log)
        self.started.append(self.broker)

        def answers():
            if self.broker.poll() is not None:
                with open(self.path("broker.log"), errors="replace") as log:
                    raise AssertionError(log.read())
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", self.port)) == 0
        eventually(answers, "the broker", 20)

    def stop_broker(self):
        self.broker.send_signal(signal.SIGTERM)
        self.broker.wait()

    def publish(self, load, *options):
        process = subprocess.Popen([PYTHON, SOURCE, load, "--mqtt", str(self.port), *options])
        self.started.append(process)
        return process

    def uri(self, topic="meter/power", query_text="period=1s", scheme="mqtt", user=""):
        """With a period of its own nothing is a gap, however long a busy machine keeps the publisher waiting."""
        return f"{scheme}://{user}127.0.0.1:{self.port}/{topic}?{query_text}"

    def measure(self, uri, *command, name="m.nrg", options=()):
        out = self.path(name)
        r, done = self.run_json("--meter", uri, *options, "-f", "-o", out, "--", *(command or ("sleep", "2")))
        return r, out, done

    def compare(self, load, r, out, bar=BAR):
        d = domains(r)["wall"]
        true_j = Load(load).between(*run_edges(out))
        self.assertAlmostEqual(d["energy_j"] / true_j, 1, delta=bar)
        self.assertGreater(d["covered"], 0.99)
        self.assertEqual((d["driver"], d["provenance"]), ("mqtt", "measured"))

    def test_loads_of_known_energy(self):
        """Side by side, because they mostly wait. A step is somewhere in the run, wherever that begins."""
        self.start_broker()
        step = f"step:{time.monotonic_ns() + 2_500_000_000}:20:120"
        cases = (("constant:87.5", "a/power", "number", "period=1s", "trapezoid"),
                 (step, "b/power", "number", "period=1s&average=50ms", "trapezoid"),
                 ("burst:1:0.5:40:110", "c/energy_j", "joules", "period=1s", "counter difference"),
                 # Arrivals jitter on a busy machine, and a reading in the wrong place costs most at steps.
                 ("burst:1:0.5:40:110", "d/power", "number", "period=1s&average=50ms", "trapezoid"),
                 ("constant:45", "plug/status/switch:0", "shelly2", "period=1s", "trapezoid"),
                 # Whole Wh where Shelly's layout promises thousandths: seen in its readings.
                 ("constant:20000", "big/status/switch:0", "whole-wh", "period=1s", "trapezoid"))
        for load, topic, form, _, _ in cases:
            self.publish(load, "--topic", topic, "--form", form)
        with concurrent.futures.ThreadPoolExecutor(max_workers=3) as pool:
            jobs = [pool.submit(self.measure, self.uri(c[1], c[3]), "sleep", "5", name=f"{i}.nrg")
                    for i, c in enumerate(cases)]
        for i, (case, job) in enumerate(zip(cases, jobs)):
            with self.subTest(case[:3]):
                r = steadily(lambda result, load=case[0]: self.compare(load, *result[:2]),
                             lambda n, c=case, k=i: self.measure(self.uri(c[1], c[3]), "sleep", "5", name=f"{k}.nrg"),
                             4, job.result())[0]
                self.assertEqual(domains(r)["wall"]["method"], case[4])

    def test_coarse_counter_of_a_plug_leaves_the_energy_to_its_power(self):
        self.start_broker()
        self.publish("constant:60", "--form", "tasmota", "--topic", "tele/plug/SENSOR")
        r, out, _ = self.measure(self.uri("tele/plug/SENSOR"))
        self.compare("constant:60", r, out)
        names = {(n, q) for n, q in query(out, "SELECT name, quantity FROM channel WHERE quantity IN "
                                          "('voltage','current','power','energy') AND name NOT LIKE 'cpu%'")}
        self.assertEqual(names, {("wall", "power"), ("wall", "energy"), ("voltage", "voltage"), ("current", "current")})

    def test_topics_with_wildcards_are_found_by_listening(self):
        self.start_broker()
        self.publish("constant:10", "--topic", "emon/tx/power1")
        self.publish("constant:20", "--topic", "emon/tx/power2")
        self.publish("constant:230", "--topic", "emon/tx/Vrms")
        r, out, _ = self.measure(self.uri("emon/tx/+", "listen=2s&covers=machine&period=1s"))
        found = domains(r)
        self.assertEqual(set(found) & {"power1", "power2", "wall"}, {"power1", "power2", "wall"})
        t = r["duration_s"]
        self.assertAlmostEqual(found["power2"]["energy_j"] / (20 * t), 1, delta=BAR)
        self.assertAlmostEqual(found["wall"]["energy_j"] / (30 * t), 1, delta=BAR)

    def test_broker_that_restarts_leaves_a_gap_and_is_found_again(self):
        self.start_broker()
        self.publish("constant:50")
        out, result = self.path("g.nrg"), self.path("g.json")
        process = self.start("run", f"--json={result}", "--meter", self.uri(query_text="period=50ms"), "-o", out,
                             "--", "sh", "-c", "echo go; read end; sleep 1", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"go\n")
        time.sleep(1)  # some readings
        self.stop_broker()
        time.sleep(2)  # longer than a few periods
        self.start_broker()

        def back():
            return query(out, "SELECT count(*) FROM event WHERE kind='back'")[0][0]
        eventually(back, "readings after the restart", 60)
        process.stdin.write(b"\n")
        process.stdin.flush()
        self.finish(process)
        kinds = [k for k, in query(out, "SELECT kind FROM event ORDER BY t_ns")]
        self.assertIn("gone", kinds)
        self.assertIn("back", kinds)
        with open(result) as f:
            r = json.load(f)
        d = domains(r)["wall"]
        self.assertLess(d["covered"], 0.95)
        self.assertAlmostEqual(d["mean_w"], 50, delta=0.5)

    def test_flood_is_survived(self):
        self.start_broker()
        self.publish("constant:50", "--interval", "0.0003")
        r, out, _ = self.measure(self.uri(), "sleep", "2")
        self.compare("constant:50", r, out)

    def test_silence_is_said(self):
        self.start_broker()
        source = self.publish("constant:50")
        out = self.path("s.nrg")
        process = self.start("run", "-q", "--meter", self.uri(query_text="period=100ms"), "-o", out, "--", "sh", "-c",
                             "echo go; read end", stdin=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"go\n")
        source.kill()
        eventually(lambda: query(out, "SELECT count(*) FROM event WHERE kind='silent'")[0][0], "silence is said", 60)
        process.stdin.write(b"\n")
        process.stdin.flush()
        self.finish(process)

    def test_retained_message_of_another_day_is_no_reading(self):
        self.start_broker()
        old = Publisher(self.port)
        old.publish("meter/power", "999", retain=True)
        old.close()
        self.publish("constant:40")
        r, out, _ = self.measure(self.uri())
        self.compare("constant:40", r, out)
        done = self.nrg("meter", "watch", self.uri(), "--json", "--count", "3")
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        stale = [o for o in lines if o["event"] == "refused"]
        self.assertEqual([(o["text"], o["harmless"]) for o in stale], [("meter/power 999", True)])
        self.assertIn("retained", stale[0]["why"])
        self.assertEqual(lines[-1]["event"], "end")

    def test_password_from_a_file(self):
        users = self.path("users")
        tool = shutil.which("mosquitto_passwd")
        if not tool:
            self.skipTest("mosquitto_passwd is not there")
        subprocess.run([tool, "-b", "-c", users, "desk", "secret-7"], check=True, capture_output=True)
        os.chmod(users, 0o644)
        self.start_broker(f"allow_anonymous false\npassword_file {users}\n")
        self.publish("constant:30", "--user", "desk", "--password", "secret-7")
        self.write("good", "secret-7\n", 0o600)
        self.write("bad", "other\n", 0o600)
        good = self.uri(query_text=f"period=1s&password-file={self.path('good')}", user="desk@")
        r, out, _ = self.measure(good, "sleep", "2")
        self.compare("constant:30", r, out)
        done = self.nrg("run", "--meter", self.uri(query_text=f"password-file={self.path('bad')}", user="desk@"),
                        "-o", self.path("x.nrg"), "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertRegex(self.one_line(done.stderr), "[Nn]ot authori[sz]ed|refused")
        with open(out, "rb") as f:
            self.assertNotIn(b"secret-7", f.read())

    def test_tls(self):
        openssl = shutil.which("openssl")
        if not openssl:
            self.skipTest("openssl is not there")
        cert, key = self.path("cert.pem"), self.path("key.pem")
        made = subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                               "-days", "2", "-subj", "/CN=localhost", "-addext",
                               "subjectAltName=DNS:localhost,IP:127.0.0.1"], capture_output=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        os.chmod(key, 0o644)
        self.start_broker(f"allow_anonymous true\ncertfile {cert}\nkeyfile {key}\n")
        self.publish("constant:70", "--cafile", cert)
        uri = f"mqtts://localhost:{self.port}/meter/power?cafile={cert}&period=1s"
        r, out, _ = self.measure(uri, "sleep", "2")
        d = domains(r)["wall"]
        self.assertAlmostEqual(d["energy_j"] / Load("constant:70").between(*run_edges(out)), 1, delta=BAR)
        done = self.nrg("run", "--meter", f"mqtts://localhost:{self.port}/meter/power", "-o", self.path("x.nrg"),
                        "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn("TLS", self.one_line(done.stderr))

    def test_no_answer(self):
        done = self.nrg("run", "--meter", self.uri(), "-o", self.path("x.nrg"), "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertIn(f"no broker answers at port {self.port}", self.one_line(done.stderr))
        self.assertFalse(os.path.exists(self.path("x.nrg")))

    def test_command_gets_none_of_the_connections(self):
        self.start_broker()
        self.publish("constant:5")
        done = self.nrg("run", "-q", "--meter", self.uri(), "-o", self.path("x.nrg"), "--", "ls", "-l", "/proc/self/fd")
        self.assertEqual(done.returncode, 0)
        self.assertNotIn(b"socket", done.stdout)
        self.assertNotIn(b"eventpoll", done.stdout)


class Wrong(Case):
    def test_uris_that_are_wrong_say_why(self):
        for uri, word in (("mqtt:host/topic", "mqtt://"), ("mqtt://host", "mqtt://"), ("mqtt:///topic", "mqtt://"),
                          ("mqtt://host:0/t", "port"), ("mqtt://host:99999/t", "port"),
                          ("mqtt://me:word@host/t", "password-file"), ("mqtt://host/t?colour=red", "colour"),
                          ("mqtt://host/a/+b", "whole level"), ("mqtt://host/t?qos=3", "qos"),
                          ("mqtt://host/t?password-file=/nonexistent", "/nonexistent"),
                          ("mqtt://host/t?value=Power", "pointer"), ("mqtt://host/t?scale=0", "scale"),
                          ("mqtts://host/t?check=maybe", "check")):
            done = self.nrg("meter", "watch", uri)
            self.assertEqual(done.returncode, 2, uri)
            self.assertIn(word, self.one_line(done.stderr), uri)

    def test_without_the_library_the_package_is_named(self):
        done = self.nrg("meter", "watch", "mqtt://host/t", env=self.env(NRG_MOSQUITTO_LIBRARY="libnot-there.so.1"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("apt install libmosquitto1", self.one_line(done.stderr))


if __name__ == "__main__":
    unittest.main()
