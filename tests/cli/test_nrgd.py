"""nrgd: a member of the group reads RAPL through it with no capability anywhere, others get one reading a second in whole
joules, nobody gets anything else. On fake powercap trees, by --root and bind-mounted over this machine's /sys/class."""
import configparser
import threading
import unittest

from nrgd_client import *

UNIT = os.path.join(os.path.dirname(NRG), "daemon", "nrgd.service")
WHOLE = "sys/class/powercap"


def listening(path):
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    os.chmod(path, 0o666)
    server.listen(16)
    return server


@needs_root
class Views(DaemonCase):
    def sensors(self, path, become):
        done = subprocess.run([nrg_of_everybody(), "sensors", "--json"], capture_output=True, cwd=self.dir, preexec_fn=become,
                              env=self.env(NRG_DAEMON=path), timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        return {c["name"]: c for c in found["channels"] if c["driver"] == "nrgd"}, found["unavailable"]

    def test_a_member_measures_what_only_root_can_open(self):
        root = self.path("root")
        os.mkdir(root)
        scenario = self.scenario("domain package-0\n  power 0s:20 1s:60\n  wrap 262143.328850J\n  start 262130J\n")
        zero_ns = self.emulate(scenario, root)
        os.chmod(os.path.join(root, WHOLE, "intel-rapl:0", "energy_uj"), 0o400)
        daemon, path = self.daemon(root=root)
        out = self.path("run.nrg")
        done = subprocess.run([nrg_of_everybody(), "run", "-q", "--json=run.json", "-o", out, "--", "sh", "-c", "grep Cap /proc/self/status; sleep 1.5"],
                              capture_output=True, cwd=self.dir, preexec_fn=as_member(), env=self.env(NRG_DAEMON=path), timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        for line in done.stdout.decode().splitlines():
            if line.startswith(("CapPrm", "CapEff", "CapAmb", "CapInh")):
                self.assertEqual(int(line.split()[1], 16), 0, line)
        with open(self.path("run.json")) as f:
            package = domains(json.load(f))["package-0"]
        self.assertEqual((package["driver"], package["provenance"]), ("nrgd", "measured"))
        truth = self.truth(scenario, zero_ns, run_edges(out))["package-0"]
        self.assertLess(abs(package["energy_j"] - truth), 0.2 * truth)  # the emulator may be late on a busy machine
        self.stop(daemon)

    def test_views_by_group(self):
        daemon, path = self.daemon(root=self.tree())
        full, _ = self.sensors(path, as_member())
        self.assertEqual({"package-0", "core-0"}, set(full))
        self.assertEqual(full["package-0"]["update_period_s"], 0.001)
        self.assertAlmostEqual(full["package-0"]["wrap_range"], 262143.328850)
        coarse, unavailable = self.sensors(path, as_user(STRANGER))
        self.assertEqual({"package-0", "core-0"}, set(coarse))
        for channel in coarse.values():
            self.assertEqual((channel["update_period_s"], channel["resolution"], channel.get("wrap_range")), (1, 1, None))
        advice = [u for u in unavailable if u["what"] == "nrgd at full rate"]
        self.assertIn('usermod -aG nrg "$USER"', advice[0]["fix"])
        self.stop(daemon)
        daemon, path = self.daemon("--others", "none", root=self.path("root"))
        self.assertEqual(len(self.sensors(path, as_member())[0]), 2)
        found, unavailable = self.sensors(path, as_user(STRANGER))
        self.assertEqual(found, {})
        self.assertIn("only members of group nrg", [u["why"] for u in unavailable if u["what"] == "nrgd"][0])
        self.stop(daemon)

    def test_descriptors_can_only_read(self):
        daemon, path = self.daemon(root=self.tree())
        with Client(path) as client:  # root: the full view
            view, n, _ = client.greet()
            self.assertEqual((view, n), (FULL, 1))
            sensor = client.sensor(0)
            self.assertEqual((sensor["driver"], sensor["how"]), ("rapl-powercap", NUMBER))
            how, fds = client.open(0, 0b10)
            self.assertEqual((how, len(fds)), (NUMBER, 1))
            self.assertEqual(os.pread(fds[0], 100, 0), b"1000000\n")
            with self.assertRaises(OSError):
                os.write(fds[0], b"1")
            os.close(fds[0])
        # Each client has an open file of its own: where one stands does not move the other.
        pairs = []
        for _ in range(2):
            with Client(path) as client:
                client.greet()
                pairs += client.open(0, 1)[1]
        os.lseek(pairs[0], 3, os.SEEK_SET)
        self.assertEqual(os.lseek(pairs[1], 0, os.SEEK_CUR), 0)
        for fd in pairs:
            os.close(fd)
        self.stop(daemon)

    def test_the_coarse_view_is_of_seconds_and_joules(self):
        start_uj = 262143328850 - 1_000_000
        root = self.tree(zones=(("intel-rapl:0", "package-0", start_uj),))
        daemon, path = self.daemon(root=root)

        def watch():
            with Client(path) as client:
                view, _, period_ns = client.greet()
                how, fds = client.open(0, 1)
                rows, seen, until = [], [], time.monotonic() + 60
                while len(seen) < 3 and time.monotonic() < until:  # far more often than once per second
                    time.sleep(0.005)
                    t_ns, _, _, raw = client.read()
                    if t_ns and (not rows or rows[-1][0] != t_ns):
                        rows.append((t_ns, raw[0]))
                        if raw[0] not in seen:  # 2.6 J more for the next second, across the counter's end
                            seen.append(raw[0])
                            self.set_energy(root, "intel-rapl:0", (start_uj + len(seen) * 2_600_000) % 262143328850)
                return view, how, fds, period_ns, rows
        become = as_user(STRANGER)
        os.chown(os.path.join(root, WHOLE, "intel-rapl:0", "energy_uj"), STRANGER, 0)  # this client moves the counter itself
        os.chmod(os.path.join(root, WHOLE, "intel-rapl:0", "energy_uj"), 0o640)
        view, how, fds, period_ns, rows = self.in_process(become, watch)
        self.assertEqual((view, how, fds, period_ns), (COARSE, ASK, [], 10**9))
        self.assertEqual(sorted({raw for _, raw in rows}), [0, 2, 5])  # whole joules since the first reading: 2.6 and 5.2
        seconds = [t_ns // 10**9 for t_ns, _ in rows]
        self.assertEqual(len(set(seconds)), len(rows), "at most one reading in a second of the clock")
        self.stop(daemon)

    def test_nothing_about_anybody_s_processes(self):
        secret = f"password-{os.getpid()}-4711"
        # Silent: what it starts outlives it, and would hold the tests' own output open.
        other = subprocess.Popen(["sh", "-c", "sleep 100; true", secret], preexec_fn=as_user(NOBODY),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.started.append(other)
        daemon, path = self.daemon(root=self.tree())
        heard = b""
        with Client(path) as client:
            for packet in (hello(), request(SENSOR, 0), request(OPEN, 0, 3)):
                kind, body, fds = client.ask(packet)
                heard += body
                for fd in fds:
                    heard += os.pread(fd, 1000, 0)
                    os.close(fd)
        self.assertNotIn(secret.encode(), heard)
        done = subprocess.run([nrg_of_everybody(), "run", "-q", "-o", "x.nrg", "--", "sleep", "0.2"], cwd=self.dir, preexec_fn=as_member(),
                              env=self.env(NRG_DAEMON=path), capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("x.nrg"), "rb") as f:
            self.assertNotIn(secret.encode(), f.read())
        self.assertNotIn(str(other.pid), [row[0] for row in query(self.path("x.nrg"), "SELECT pid FROM process")])
        self.stop(daemon)

    def test_files_that_everybody_can_read_are_not_served(self):
        root = self.tree()
        for zone in os.listdir(os.path.join(root, WHOLE)):
            os.chmod(os.path.join(root, WHOLE, zone, "energy_uj"), 0o444)
        daemon, path = self.daemon(root=root)
        with Client(path) as client:
            self.assertEqual(client.greet()[1], 0)
        self.stop(daemon)


class Life(DaemonCase):
    def test_it_ends_when_nobody_is_there(self):
        path = self.path("s")
        started = time.monotonic()
        process = subprocess.Popen([NRGD, "--socket", path, "--root", self.tree(), "--idle", "2", *self.sanitized()], stderr=subprocess.PIPE)
        self.started.append(process)
        eventually(lambda: os.path.exists(path), "nrgd listens")
        with Client(path) as client:
            client.greet()
            while time.monotonic() < started + 2.5:
                client.sensor(0)
                time.sleep(0.1)
            self.assertIsNone(process.poll(), "not while somebody is connected")
        _, err = process.communicate(timeout=LIMIT_S)
        self.assert_sane(err)
        self.assertEqual(process.returncode, 0)

    def test_wrong_usage(self):
        for args in (["--others", "some"], ["--idle", "soon"], ["x"], ["--nonsense"]):
            done = subprocess.run([NRGD, *args], capture_output=True, timeout=LIMIT_S)
            self.assertEqual(done.returncode, 2, args)
        done = subprocess.run([NRGD], capture_output=True, timeout=LIMIT_S, env=self.env())
        self.assertEqual(done.returncode, 1)
        self.assertIn("no socket was handed over", self.one_line(done.stderr))
        done = subprocess.run(["sh", "-c", 'LISTEN_PID=$$ LISTEN_FDS=1 exec "$0" 3</dev/null', NRGD], capture_output=True, env=self.env())
        self.assertEqual(done.returncode, 1)
        self.assertIn("ListenSequentialPacket", self.one_line(done.stderr))
        done = subprocess.run([NRGD, "--socket", "/nowhere/s"], capture_output=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/nowhere/s", self.one_line(done.stderr))

    def test_versions_that_do_not_agree(self):
        daemon, path = self.daemon(root=self.tree())
        version = subprocess.run([NRGD, "--version"], capture_output=True, text=True).stdout.split()[1]
        self.assertEqual(version, self.nrg("--version").stdout.decode().split()[1])
        with Client(path) as client:
            kind, body, _ = client.ask(hello(version=9))
            error, program, _ = struct.unpack("=i24s132s", body)
            self.assertEqual((kind, error, text(program)), (REFUSED, -93, version))  # EPROTONOSUPPORT
            self.assertIsNone(client.receive()[0])
        self.stop(daemon)
        # A daemon of tomorrow.
        server = listening(self.path("later"))
        process = self.start("sensors", env=self.env(NRG_DAEMON=self.path("later")))
        peer, _ = server.accept()
        peer.recv(100)
        peer.send(head(WELCOME, 3) + struct.pack("=24sIIq", b"7.1.0", FULL, 1, 1000))
        out, _ = self.finish(process)
        peer.close()
        server.close()
        said = [line for line in out.decode().splitlines() if "7.1.0" in line]
        self.assertIn(f"nrgd 7.1.0 speaks version 3 of the protocol, and this nrg {version} version 2", said[0])
        self.assertIn("systemctl restart nrgd", said[0])

    def test_a_daemon_that_hangs_or_lies_costs_a_line(self):
        cases = {"silent": None, "garbage": b"x" * 48, "short": head(WELCOME), "wrong": head(ROW) + bytes(400),
                 "many": head(WELCOME) + struct.pack("=24sIIq", b"1", FULL, 65, 1000)}
        for name, answer in cases.items():
            with self.subTest(name):
                server = listening(self.path(name))
                process = self.start("sensors", "--json", env=self.env(NRG_DAEMON=self.path(name)))
                peer, _ = server.accept()
                peer.recv(100)
                if answer:
                    peer.send(answer)
                out, _ = self.finish(process)
                peer.close()
                server.close()
                self.assertEqual(process.returncode, 0)
                self.assertTrue([u for u in json.loads(out)["unavailable"] if u["what"] == "nrgd"])


class Slow(DaemonCase):
    """A daemon that answers everything right, but takes its time: what it costs is one deadline, not one for each answer."""
    SENSORS = 40

    def answer(self, packet):
        _, _, kind = struct.unpack("=IHH", packet[:8])
        if kind == HELLO:
            return head(WELCOME) + struct.pack("=24sIIq", b"1", FULL, self.SENSORS, 1000000)
        index, _ = struct.unpack("=II", packet[8:16])
        if kind == SENSOR:
            channel = struct.pack("=48s48s128s5B3xQqqq5d", b"package-%d" % index, b"", b"x", 0, 0, 0, 0, 1, 0, 1000000, 0, 0, 1e-6, 1e-6, 0, 0, 0)
            return head(SENSOR) + struct.pack("=64s24sII", b"s%d" % index, b"x", ASK, 1) + channel + bytes(31 * 304)
        if kind == OPEN:
            return head(OPENED) + struct.pack("=II", ASK, 0)
        return head(ROW) + struct.pack("=qq32i32qq", time.monotonic_ns(), 0, *[0] * 32, *[time.monotonic_ns() // 1000] * 32, 0)

    def serve(self, server, delay_s):
        """One conversation after the other, each in its thread. Counts seconds that answers were late, and keeps what was asked."""
        self.asked = []

        def talk(peer):
            with peer:
                try:
                    while packet := peer.recv(100):
                        kind = struct.unpack("=IHH", packet[:8])[2]
                        self.asked.append(kind)
                        time.sleep(delay_s.get(kind, 0))
                        peer.send(self.answer(packet))
                except OSError:
                    pass

        def accept():
            while True:
                try:
                    peer, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=talk, args=(peer,), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()

    def measured(self, name, delay_s, *args):
        server = listening(self.path(name))
        self.addCleanup(server.close)
        self.serve(server, delay_s)
        result = self.nrg("run", "-q", "--json=r.json", "-o", name + ".nrg", "--", *args, env=self.env(NRG_DAEMON=self.path(name)))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stdout, b"hello\n")
        with open(self.path("r.json")) as f:
            return json.load(f)

    def test_a_quick_one_is_used(self):
        found = self.measured("quick", {}, "sh", "-c", "echo hello; sleep 0.3")
        self.assertEqual(sum(d["driver"] == "nrgd" for d in found["domains"]), self.SENSORS)

    def test_each_description_is_late(self):
        """40 answers, each late by 0.5 s: 20 s if each were waited for."""
        self.measured("slow", {SENSOR: 0.5}, "echo", "hello")
        self.assertIn(SENSOR, self.asked)
        self.assertLess(self.asked.count(SENSOR), 8, "in three seconds no more can have come")
        self.assertNotIn(OPEN, self.asked)

    def test_each_opening_is_late(self):
        self.measured("late", {OPEN: 0.5}, "echo", "hello")
        self.assertIn(OPEN, self.asked)
        self.assertNotIn(READ, self.asked)

    def test_each_reading_is_late(self):
        """By more than is waited for: it is taken at the next call, at the time that it says it is of."""
        self.SENSORS = 1
        found = self.measured("reading", {READ: 1.2}, "sh", "-c", "echo hello; sleep 2")
        self.assertEqual([d["driver"] for d in found["domains"]], ["nrgd"])
        rows = query(self.path("reading.nrg"), "SELECT detail FROM event WHERE kind = 'fault' AND detail LIKE '%timed out%'")
        self.assertTrue(rows, "that it was late is said")
        self.assertEqual(query(self.path("reading.nrg"), "SELECT * FROM event WHERE kind = 'lost'"), [])


@needs_root
class Restricted(DaemonCase):
    """As its unit starts it, as far as that can be had without systemd: user, capability, namespaces, socket handed over."""

    def setUp(self):
        super().setUp()
        if not can_unshare("--mount", "--net", "--ipc"):
            self.skipTest("namespaces can't be made here")

    def unit(self):
        parser = configparser.ConfigParser(strict=False, interpolation=None)
        parser.optionxform = str
        parser.read(UNIT)
        return parser["Service"]

    def start_as_unit(self, tree, trace=None):
        """nrgd with the unit's capability, in namespaces in which `tree` lies over /sys/class. (process, socket's path)"""
        unit, path = self.unit(), self.path("unit.sock")
        self.assertEqual(unit["AmbientCapabilities"], unit["CapabilityBoundingSet"])
        capabilities = ",".join("+" + name[4:].lower() for name in unit["CapabilityBoundingSet"].split())
        server = listening(path)
        script = ('export LISTEN_PID=$$ LISTEN_FDS=1; exec unshare --mount --net --ipc --uts sh -c \''
                  'mount --bind "$1" /sys/class && shift && exec "$@"\' - "$@"')
        program = [os.path.join(os.path.dirname(nrg_of_everybody()), "nrgd"), "--group", GROUP, "--idle", "60", *self.sanitized()]
        shutil.copy(NRGD, program[0])
        drop = ["setpriv", "--reuid", str(MEMBER), "--regid", str(MEMBER), "--clear-groups", "--no-new-privs", "--bounding-set",
                "-all," + capabilities, "--inh-caps", "-all," + capabilities, "--ambient-caps", "-all," + capabilities]
        for folder, _, names in os.walk(tree):  # what the udev rule does
            for name in names:
                if name == "energy_uj":
                    os.chown(os.path.join(folder, name), 0, MEMBER)
                    os.chmod(os.path.join(folder, name), 0o440)

        def hand_over():
            os.dup2(server.fileno(), 3)
            os.set_inheritable(3, True)
        process = subprocess.Popen(["sh", "-c", script, "-", os.path.join(tree, "sys/class"), *(trace or []), *drop, *program], close_fds=False,
                                   preexec_fn=hand_over, stderr=subprocess.PIPE, env=self.env())
        self.started.append(process)
        server.close()
        return process, path

    def test_a_member_is_served(self):
        process, path = self.start_as_unit(self.tree())
        become = as_member(STRANGER)  # another user than the daemon's
        done = subprocess.run([nrg_of_everybody(), "run", "-q", "--json=r.json", "-o", "r.nrg", "--", "sleep", "0.2"], cwd=self.dir, preexec_fn=become,
                              env=self.env(NRG_DAEMON=path), capture_output=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("r.json")) as f:
            self.assertEqual(domains(json.load(f))["package-0"]["driver"], "nrgd")
        with open(f"/proc/{process.pid}/status") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        self.assertEqual(int(status["CapEff"], 16), 1 << 38, "CAP_PERFMON alone")
        self.assertEqual([int(status[name], 16) for name in ("CapInh", "CapAmb")], [0, 0])
        self.assertEqual((status["NoNewPrivs"], status["Uid"].split()[0]), ("1", str(MEMBER)))
        if not sanitizer_library():
            self.assertEqual(status["Seccomp"], "2", "filtered")
        self.stop(process)

    def test_the_unit_s_filter_allows_what_it_calls(self):
        if sanitizer_library() or not shutil.which("strace") or not shutil.which("systemd-analyze"):
            self.skipTest("needs strace, systemd-analyze and a plain build")
        if subprocess.run(["strace", "-D", "-o", "/dev/null", "true"], capture_output=True).returncode:
            self.skipTest("strace may not trace here")
        log = self.path("calls")
        process, path = self.start_as_unit(self.tree(), trace=["strace", "-D", "-f", "-o", log])
        for _ in range(2):
            with Client(path) as client:
                view, n, _ = client.greet()
                self.assertEqual((view, n), (FULL, 1))
                for fd in client.open(0, 3)[1]:
                    os.close(fd)
        process.terminate()
        process.communicate(timeout=LIMIT_S)

        def whole():  # strace is a process of its own, and may end later
            with open(log) as f:
                return "+++ exited" in (content := f.read()) and content
        trace = eventually(whole, "strace wrote its log")
        own = trace[trace.rindex("execve("):]  # nrgd itself, after setpriv
        called = set(re.findall(r"^\d+ +(\w+)\(", own, re.M)) - {"execve"}
        self.assertIn("sendmsg", called)
        self.assertEqual(called - self.allowed(), set())

    def allowed(self):
        """The system calls that the unit's filter leaves, by systemd's own groups."""
        groups, group = {}, None
        listing = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C")).stdout
        for line in re.sub(r"\x1b\[[0-9;]*m", "", listing).splitlines():
            if line.startswith("@"):
                group = groups.setdefault(line.strip(), set())
            elif group is not None and line.strip() and not line.strip().startswith("#"):
                group.add(line.strip())

        def expand(name):
            return set().union(*(expand(part) for part in groups[name])) if name in groups else {name}
        calls = set()
        with open(UNIT) as f:
            lines = re.findall(r"^SystemCallFilter=(~?)(.*)$", f.read(), re.M)
        for inverted, names in lines:
            for name in names.split():
                calls = calls - expand(name) if inverted else calls | expand(name)
        return calls

    def test_exposure(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("needs systemd-analyze")
        done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", UNIT], capture_output=True, text=True)
        if "Unknown option" in done.stderr or "unrecognized option" in done.stderr:
            self.skipTest("this systemd-analyze can't look at a file")
        self.assertEqual(done.returncode, 0, done.stdout[-400:] + done.stderr)


@needs_root
class Mounted(DaemonCase):
    def test_powercap_of_this_machine(self):
        """No --root anywhere: the tree lies over /sys/class, nrg may not read it, nrgd may."""
        if not can_unshare("--mount"):
            self.skipTest("namespaces can't be made here")
        tree = self.tree()
        script = f"""mount --bind {tree}/sys/class /sys/class && {NRGD} --socket {self.path('m')} --group {GROUP} --idle 0 {' '.join(self.sanitized())} 2>{self.path('err')} &
            daemon=$!; until [ -S {self.path('m')} ]; do sleep 0.05; done
            export NRG_DAEMON={self.path('m')}
            for groups in "--groups {grp.getgrnam(GROUP).gr_gid}" --clear-groups; do
                setpriv --reuid {STRANGER} --regid {STRANGER} $groups --inh-caps=-all {nrg_of_everybody()} sensors --json; echo ====
            done; kill $daemon; wait $daemon"""
        done = subprocess.run(["unshare", "--mount", "sh", "-c", script], capture_output=True, text=True, cwd=self.dir, env=self.env(), timeout=LIMIT_S)
        member, stranger = (json.loads(part) for part in done.stdout.split("====\n")[:2])
        for found, period_s in ((member, 0.001), (stranger, 1)):
            channels = {c["name"]: c for c in found["channels"]}
            self.assertEqual((channels["package-0"]["driver"], channels["package-0"]["update_period_s"]), ("nrgd", period_s))
            denied = [u for u in found["unavailable"] if "Permission denied" in u["why"] and "energy_uj" in u["why"]]
            self.assertTrue(denied, "the files themselves are closed")
        with open(self.path("err"), "rb") as f:
            self.assert_sane(f.read())


if __name__ == "__main__":
    unittest.main()
