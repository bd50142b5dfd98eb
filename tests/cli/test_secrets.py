"""Passwords and keys in URIs: refused wherever they stand and however long they are, and never shown, whatever else is wrong with the URI,
in which command, option or settings file it stands."""
import unittest

from support import *

SECRET = "S3cr3tHunter2"
LONG = SECRET + "x" * 300
HUGE = SECRET + "x" * 3000

# Passwords and keys in meters' URIs: refused, each with one line that does not name them.
URIS = ["redfish://me:{}@localhost:1/x", "mqtt://me:{}@localhost:1/t", "mqtts://me:{}@localhost:1/t?colour=red", "mqtt://me%3A{}@localhost/t",
        "mqtt://me%3A{}%40localhost/t", "mqtt://me%3A{}%40localhost/t?colour=red", "redfish://me%3Aa%40{}%40localhost:1?qos=9",
        "redfish://:{}@[::1]:1", "mqtt://me:a/{}@localhost/t", "redfish://me:a/{}@localhost", "redfish://me:a?{}@localhost", "redfish://me:a?b={}@localhost",
        "redfish://me:a?password={}@localhost", "mqtt://me:a@b:{}@localhost/t?qos=9", "mqtt://me:a b {}@localhost/t", "mqtt:me:{}@localhost/t",
        "mqtt://me:{}%zz@localhost/t", "mqtt://me:a#{}@localhost/t",
        "mqtt://localhost:1/t?password={}", "mqtt://localhost:1/t?Password={}", "mqtt://localhost:1/t?token={}&qos=1", "mqtt://localhost:1/t?x=1&api-key={}",
        "mqtt://localhost:1/t?secret={}&secret=2", "redfish://localhost:1?auth={}", "redfish://localhost:1?access_token={}", "redfish://localhost:1?period=1ns&password={}",
        "mqtt://localhost:1/t?password=a&{}", "mqtt://localhost:1/t?password=a b {}", "mqtt://localhost:1/t?password=a?b={}", "mqtt://localhost:1/t?qos=9&password={}",
        "mqtt://localhost:1/t?password=%zz{}", "emonpi:/dev/nothing?node=5&token={}", "file:/nonexistent?password={}", "lines:/dev/nothing?columns=-,power&pwd={}"]


class Secrets(Case):
    def setUp(self):
        super().setUp()
        self.root = self.path("root")
        os.makedirs(os.path.join(self.root, "sys/class"))

    def refused(self, *args, **kw):
        done = self.nrg(*args, **kw)
        shown = done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
        self.assertNotEqual(done.returncode, 0, shown)
        self.assertNotIn(SECRET[:6], shown)
        return self.one_line(done.stderr)

    def test_of_meters(self):
        for uri in URIS:
            for secret in (SECRET, LONG, HUGE) if "@" in uri else (SECRET, HUGE):
                with self.subTest(uri=uri, length=len(secret)):
                    self.refused("sensors", "--root", self.root, "--meter", uri.format(secret))

    def test_the_reason_is_said(self):
        for uri in ("redfish://me:{}@localhost:1/x", "mqtt://me:{}@localhost:1/t", "mqtt://localhost:1/t?password={}", "redfish://localhost:1?token={}"):
            for secret in (SECRET, LONG):
                with self.subTest(uri=uri, length=len(secret)):
                    self.assertIn("password-file", self.refused("sensors", "--root", self.root, "--sensor", uri.format(secret)))

    def test_in_every_command(self):
        uri = f"redfish://me:{LONG}@localhost:1/x?password={SECRET}"
        run = ("run", "-q", "-o", self.path("r.nrg"), "--root", self.root)
        for command in (run + ("--meter", uri, "--", "true"), run + ("--sensor", uri, "--", "true"), ("meter", "watch", uri), ("meter", "calibrate", uri),
                        ("calibrate", "--meter", uri), ("doctor", uri), ("sensors", uri), ("run", "--llm", f"http://me:{SECRET}@localhost/", "--", "true"),
                        ("meter", "watch", "mqtt://localhost/" + "t" * 1100 + "?password=" + SECRET), (uri,), ("report", uri)):
            with self.subTest(command=command[0]):
                self.refused(*command)

    def test_of_the_settings_file(self):
        os.makedirs(self.path("config/nrg"))
        env = self.env(XDG_CONFIG_HOME=self.path("config"))
        for uri in (f"redfish://me:{LONG}@localhost:1/x", f"mqtt://me%3A{SECRET}%40localhost/t", f"mqtt://localhost/t?password={SECRET}"):
            self.write("config/nrg/nrg.conf", f"meter = {uri}\n")
            with self.subTest(uri[:30]):
                self.refused("sensors", "--root", self.root, env=env)
                shown = self.nrg("meter", "list", env=env)
                self.assertNotIn(SECRET, shown.stdout.decode() + shown.stderr.decode())
        for line in (f"llm = http://me:{SECRET}@localhost/", f"llm.upstream = http://me:{SECRET}@localhost/", f"rate = //me:{SECRET}@h", f"meter.colour = ?token={SECRET}"):
            self.write("config/nrg/nrg.conf", line + "\n")
            command = ("llm", "proxy") if "upstream" in line else ("run", "--root", self.root, "--", "true")
            with self.subTest(line[:12]):
                self.refused(*command, env=env)

    def test_of_servers(self):
        for url in ("http://me:{}@localhost:1/", "http://me:{}@", "http://me:a/{}@localhost", "http://me:a?{}@localhost", "https://me:a#{}@h", "//me:{}@h",
                    "http://h:x?token={}", "http://h h?token={}", "http://me:a b{}@h", "http://h/" + "p" * 900 + "?token={}"):
            with self.subTest(url=url):
                for secret in (SECRET, LONG):
                    self.refused("run", "--root", self.root, "--llm", url.format(secret), "--", "true")
                    self.refused("llm", "proxy", "--upstream", url.format(secret))

    def test_a_cut_password_is_no_password(self):
        """What does not fit is refused: half of a password would be sent, and refused by the other side, or worse."""
        self.write("long", "p" * 300 + "\n")
        self.write("empty", "\nsecond\n")
        for uri in ("redfish://me@localhost:1", "mqtt://me@localhost:1/t"):
            line = self.refused("sensors", "--root", self.root, "--sensor", f"{uri}?password-file={self.path('long')}")
            self.assertIn("bytes", line)
            line = self.refused("sensors", "--root", self.root, "--sensor", f"{uri}?password-file={self.path('empty')}")
            self.assertIn("empty", line)

    def test_a_long_user_is_not_dropped(self):
        for uri in ("redfish://{}@localhost:1", "mqtt://{}@localhost:1/t"):
            self.assertIn("user", self.refused("sensors", "--root", self.root, "--sensor", uri.format("u" * 300)))

    def test_what_is_no_secret_is_shown(self):
        for uri, shown in (("mqtt://host:1883/t?qos=9", "mqtt://host:1883/t?qos=9"), ("emonpi:/dev/ttyX?nod=5", "emonpi:/dev/ttyX?nod=5"),
                           ("mqtt://me@host/t?password-file=/nonexistent", "/nonexistent"), ("mqtt://me@[::1]:1883/a?qos=9", "mqtt://me@[::1]:1883/a?qos=9"),
                           ("mqtt://host/t?keepalive=1", "keepalive=")):
            with self.subTest(uri):
                done = self.nrg("sensors", "--root", self.root, "--meter", uri)
                self.assertIn(shown, self.one_line(done.stderr))


if __name__ == "__main__":
    unittest.main()
