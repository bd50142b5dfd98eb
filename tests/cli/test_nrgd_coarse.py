"""nrgd's coarse view: what a restart, an old nrgd, an old nrg, the edges of a run and a silent nrgd do to what is reported."""
import unittest

from nrgd_stand_in import *

WHOLE = "sys/class/powercap"


@needs_root
class Coarse(DaemonCase):
    def run_with(self, path, seconds):
        """(results, name of the recording, what the counter's domain is, if there is one) of a sleep."""
        name = f"{len(os.listdir(self.dir))}.nrg"
        done = self.nrg("run", "-q", "--json=" + name + ".json", "-o", name, "--", "sleep", str(seconds), user=STRANGER,
                        env=self.env(NRG_DAEMON=path))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path(name + ".json")) as f:
            results = json.load(f)
        return results, self.path(name), domains(results).get("package-9")

    def stand_in(self, **kw):
        path = self.path(f"d{len(os.listdir(self.dir))}")
        daemon = StandIn(path, **kw)
        self.addCleanup(daemon.close)
        return daemon, path

    def truth_j(self, recording):
        begin_ns, end_ns = run_edges(recording)
        return (end_ns - begin_ns) / 1e9 * WATTS

    def test_a_counter_that_begins_anew_is_a_gap(self):
        for version, cut, turns in ((2, False, False), (2, True, False), (2, True, True), (1, True, False)):
            with self.subTest(version=version, cut=cut, turns=turns):
                daemon, path = self.stand_in(version=version, anew_s=0.5, cut=cut, turns=turns)
                results, recording, domain = self.run_with(path, 1.6)
                truth_j = self.truth_j(recording)
                self.assertLess(domain["energy_j"], truth_j + 5, "the counter's beginning is no energy")
                self.assertLess(domain["covered"], 1)
                self.assertLessEqual(domain["low_j"], truth_j)
                self.assertGreaterEqual(domain["high_j"], truth_j)
                self.assertIn("began anew", self.missing(results, "stand-in"))
                self.assertIn("no readings for", self.missing(results, "package-9"))
                self.assertEqual(set(daemon.hellos), {2} if version == 2 else {2, 1})

    def test_the_edges_are_filled(self):
        _, path = self.stand_in(version=1, update_ns=UPDATE_NS)
        results, recording, domain = self.run_with(path, 1.1)  # 0.3 s after an update
        truth_j = self.truth_j(recording)
        self.assertGreater(domain["covered"], 0.99)
        self.assertAlmostEqual(domain["energy_j"], truth_j, delta=0.05 * truth_j)
        self.assertLessEqual(domain["low_j"], truth_j - 0.2 * WATTS)  # what was not read may have been less
        self.assertGreaterEqual(domain["high_j"], truth_j)

    def test_without_a_reading_it_is_estimated(self):
        for reason in ("silent", "refuse"):
            with self.subTest(reason):
                _, path = self.stand_in(version=1, **{reason: True})
                results, recording, domain = self.run_with(path, 0.3)
                self.assertIsNone(domain)
                self.assertEqual(results["total"]["provenance"], "estimated")
                self.assertGreater(results["total"]["energy_j"], 0)
                self.assertIn("they are estimated", self.missing(results, "processors"))
                self.assertTrue(self.missing(results, "package-9") or self.missing(results, "stand-in"))

    def test_with_readings_nothing_is_estimated(self):
        _, path = self.stand_in(version=1)
        results, _, domain = self.run_with(path, 0.3)
        self.assertEqual(list(domains(results)), ["package-9"])
        self.assertEqual(results["total"]["provenance"], "measured")
        self.assertEqual(results["total"]["energy_j"], domain["energy_j"])

    def test_a_restart_of_nrgd(self):
        root = self.path("root")
        os.mkdir(root)
        scenario = self.scenario("domain package-0\n  power 0s:50\n  wrap 262143.328850J\n  start 1000J\n")
        zero_ns = self.emulate(scenario, root)
        os.chmod(os.path.join(root, WHOLE, "intel-rapl:0", "energy_uj"), 0o400)
        daemon, path = self.daemon(root=root)
        process = subprocess.Popen([nrg_of_everybody(), "run", "-q", "--json=r.json", "-o", "r.nrg", "--", "sleep", "4"], cwd=self.dir,
                                   preexec_fn=as_user(STRANGER), env=self.env(NRG_DAEMON=path), stderr=subprocess.PIPE)
        self.started.append(process)
        time.sleep(1.5)
        self.stop(daemon)
        os.unlink(path) if os.path.exists(path) else None
        again = subprocess.Popen([NRGD, "--socket", path, "--root", root, "--group", GROUP, "--idle", "0", *self.sanitized()], stderr=subprocess.PIPE)
        self.started.append(again)
        eventually(lambda: os.path.exists(path), "nrgd listens")
        self.assertEqual(process.wait(timeout=LIMIT_S), 0)
        with open(self.path("r.json")) as f:
            results = json.load(f)
        domain = domains(results)["package-0"]
        truth = self.truth(scenario, zero_ns, run_edges(self.path("r.nrg")))["package-0"]
        self.assertLess(domain["covered"], 0.95)
        self.assertLess(domain["energy_j"], truth)
        self.assertTrue(domain["low_j"] <= truth <= domain["high_j"], (domain, truth))
        self.assertIn("began anew", self.missing(results, "intel-rapl:0"))
        self.stop(again)

    def test_all_coarse_clients_have_one_count(self):
        daemon, path = self.daemon(root=self.tree())

        def watch():
            rows = []
            clients = [Client(path, version=version) for version in (1, 2, 2)]
            for client in clients:
                client.greet()
                client.open(0, 1)
            for client in clients:
                rows.append(client.row())
                client.socket.close()
            with Client(path) as client:  # after all have left
                client.greet()
                client.open(0, 1)
                rows.append(client.row())
            return rows
        old, new, other, later = self.in_process(as_user(STRANGER), watch)
        self.assertEqual(new, other)
        self.assertEqual({**old, "epoch": new["epoch"]}, new)
        self.assertEqual((new["raw"][0], new["epoch"]), (0, new["t_ns"]))
        self.assertGreater(later["epoch"], new["epoch"])
        self.assertEqual((later["raw"][0], later["epoch"]), (0, later["t_ns"]))
        self.stop(daemon)

    def test_old_and_new_clients(self):
        root = self.tree()
        daemon, path = self.daemon(root=root)
        for version in (1, 2):
            with self.subTest(version), Client(path, version=version) as client:  # root: descriptors
                self.assertEqual(client.greet()[:2], (FULL, 1))
                self.assertEqual(client.sensor(0)["channels"][0]["name"], "package-0")
                how, fds = client.open(0, 1)
                self.assertEqual((how, len(fds)), (NUMBER, 1))
                os.close(fds[0])
            with Client(path, version=version) as client:
                client.greet()
                self.assertEqual(client.ask(request(SENSOR, 0, 0, 3 - version))[0], REFUSED)  # no other version than HELLO's
        with Client(path, version=2) as client:
            kind, body, _ = client.ask(hello(3))
            self.assertEqual((kind, struct.unpack_from("=i", body)[0]), (REFUSED, -93))
        self.stop(daemon)


if __name__ == "__main__":
    unittest.main()
