"""firmware/ in simavr, with synthetic mains on its ADC, and nrg reading what it sends.

The truth is the simulator's own (firmware/sim/mains.c). Times and shares are simulated ones: they do
not depend on how busy this machine is. Where nrg reads the line in real time, the simulation may fall
behind the clock, so a counter is compared by its values and a power by its mean, never by wall time.
"""
import functools

from support import *

FIRMWARE = os.path.join(TOP, "firmware")
PERIOD_CYCLES = 2000
LAYOUT = "power1,power2,power3,Vrms,E1:uint32*0.1J,E2:uint32*0.1J,E3:uint32*0.1J"
URI = {
    "notes": "emonpi:{link}?node=5&layout=notes&covers=power1:machine&average=200ms",
    "emonpi": "emonpi:{link}?node=5&layout=emonpi&covers=power1:machine&average=200ms",
    "msg": "emonpi:{link}?layout=Vrms,P1,P2,P3&covers=P1:machine",
}


def missing():
    """What the tests need and is not here, '' when all is."""
    if not shutil.which("avr-gcc") or not os.path.exists("/usr/lib/avr/include/avr/io.h"):
        return "gcc-avr and avr-libc are not installed"
    if not os.path.exists("/usr/include/simavr/sim_avr.h"):
        return "libsimavr-dev is not installed"
    return "" if shutil.which("make") and shutil.which("cc") else "make or cc is not installed"


@functools.cache
def build_all():
    """A folder with all sketches and the simulator."""
    folder = tempfile.mkdtemp(prefix="nrg-firmware-")
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    done = subprocess.run(["make", "-C", FIRMWARE, "-j2", f"BUILD={folder}", "all", "sim"],
                          capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return folder


@unittest.skipIf(missing(), missing())
class Firmware(Case):
    @classmethod
    def setUpClass(cls):
        cls.build = build_all()

    def sketch(self, name):
        return os.path.join(self.build, name + ".elf")

    def simulate(self, name, *options):
        """Everything that the simulator prints: (lines, results)."""
        done = subprocess.run([os.path.join(self.build, "emon-sim"), *options, self.sketch(name)],
                              check=True, capture_output=True, text=True, timeout=LIMIT_S)
        *lines, results = done.stdout.splitlines()
        return lines, json.loads(results)


class Sketch(Firmware):
    def test_it_fits(self):
        """32 KB of flash with a boot loader, 2 KB of RAM with the stack."""
        size = subprocess.run(["avr-size", self.sketch("emon-joules")], check=True, capture_output=True, text=True)
        text, data, bss = map(int, size.stdout.splitlines()[1].split()[:3])
        _, results = self.simulate("emon-joules", "--seconds", "1")
        self.assertLess(text + data, 32 * 1024 - 512)
        self.assertLess(data + bss + results["stack_bytes"], 1536)

    def test_close_to_the_truth(self):
        # Per clamp, about five times what the noise of the inputs leaves of the power within 7 s.
        steady = (.002, .005, .006)
        bars = {"steady": steady, "swing": steady, "sixty": steady, "step": (.003, .006, .02),
                "burst": (.005, .008, .015), "drift": (.004, .015, .02)}
        for scenario, bar in bars.items():
            with self.subTest(scenario):
                _, results = self.simulate("emon-joules", "--seconds", "7", "--scenario", scenario)
                self.assertEqual(results["lost"], 0)
                self.assertGreater(results["lines"], 30)
                self.assertLess(abs(results["vrms_error"]), .001)
                for c, error in enumerate(results["energy_error_between_lines"]):
                    self.assertLess(abs(error), bar[c], results)

    def test_sampling_is_on_a_grid_and_leaves_the_processor_free(self):
        _, results = self.simulate("emon-joules", "--seconds", "3")
        self.assertLess(abs(results["longest_gap"] - PERIOD_CYCLES), 8)
        self.assertLess(abs(results["shortest_gap"] - PERIOD_CYCLES), 8)
        self.assertLess(results["busy_share"], .4)
        self.assertLess(results["longest_pass_ms"], 8)
        self.assertLess(results["interrupt_longest"], PERIOD_CYCLES)

    def test_calcvi_blocks(self):
        """The comparison of docs/firmware.md: 20 half waves for a clamp, and a wait for the first."""
        _, results = self.simulate("calcvi", "--seconds", "3")
        self.assertGreater(results["longest_pass_ms"], 190)
        for error in results["energy_error_between_lines"]:
            self.assertLess(abs(error), .05, "a fair comparison")

    def power_1(self, name):
        """Mean power of clamp 1 from the third line to the last, by the counter."""
        lines, results = self.simulate(name, "--seconds", "10", "--lines")
        points = []
        for line in lines:
            at_s, kind, _, *numbers = line.split()
            if kind == "OK":
                points.append((float(at_s), int.from_bytes(bytes(map(int, numbers[8:12])), "little") / 10))
        (begin_s, begin_j), (end_s, end_j) = points[2], points[-1]
        return (end_j - begin_j) / (end_s - begin_s), results

    def test_a_busy_main_loop_loses_nothing(self):
        """0.9 s of other work after each line: the sums wait."""
        busy_w, results = self.power_1("busy")
        free_w, _ = self.power_1("emon-joules")
        self.assertGreater(results["longest_pass_ms"], 900)
        self.assertEqual(results["lost"], 0)
        self.assertLess(abs(results["longest_gap"] - PERIOD_CYCLES), 8)
        self.assertAlmostEqual(busy_w, free_w, delta=.01 * free_w)

    def test_lost_conversions_are_counted(self):
        """Interrupts are off for 1 ms after each line: 8 conversions, give or take the edges."""
        power_w, results = self.power_1("deaf")
        free_w, whole = self.power_1("emon-joules")
        really = whole["conversions"] - results["conversions"]
        self.assertGreater(results["lost"], 7 * (results["lines"] - 1))
        self.assertLessEqual(abs(really - results["lost"]), 16)  # of the last lines
        self.assertAlmostEqual(power_w, free_w, delta=.01 * free_w)


class Read(Firmware):
    """The serial line as a terminal, and nrg's emonpi driver on it."""

    def measure(self, name, scenario, uri):
        """A run beside the simulated board, as long as 15 lines take: (results, recording, the lines' log)."""
        link, log, out = (self.path(f"{name}.{what}") for what in ("tty", "log", "nrg"))
        self.started.append(subprocess.Popen(
            [os.path.join(self.build, "emon-sim"), "--seconds", "600", "--scenario", scenario, "--pty", link,
             "--log", log, self.sketch(name)], stdout=subprocess.DEVNULL, preexec_fn=before_others))
        eventually(lambda: os.path.exists(link), "the simulator's terminal")
        results, _ = self.run_json("-o", out, "--meter", uri.format(link=link), "--", "sh", "-c",
                                   f"until [ $(wc -l < {log}) -ge 15 ]; do sleep 0.1; done")
        return results, out, log

    def lines(self, log):
        """(time in the simulation, joules told, joules in truth) of each line."""
        with open(log, encoding="ascii") as file:
            rows = [[float(x) for x in line.split()] for line in file if line.endswith("\n")]
        return [(row[0], row[1:4], row[4:7]) for row in rows]

    def readings(self, recording, quantity):
        """{channel: [values]} of a quantity, as recorded."""
        done = subprocess.run([NRG, "export", "--format", "csv", recording], check=True, capture_output=True,
                              text=True, env=self.env())
        found = {}
        for line in done.stdout.splitlines()[1:]:
            _, _, channel, what, _, value, _ = line.split(",")
            if what == quantity:
                found.setdefault(channel, []).append(float(value))
        return found

    def test_joules(self):
        """Each counter reading is one that was sent, and their differences are the truth."""
        results, out, log = self.measure("emon-joules", "burst",
                                         f"emonpi:{{link}}?node=5&layout={LAYOUT}&covers=power1:machine")
        wall = domains(results)["wall"]
        self.assertEqual(wall["provenance"], "measured")
        self.assertEqual(wall["method"], "counter difference")
        counters = self.readings(out, "energy")
        got = list(zip(counters["wall"], counters["power2"], counters["power3"]))
        sent = self.lines(log)
        self.assertGreater(len(got), 3)
        first = next((k for k in range(len(sent) - len(got) + 1) if all(
            abs(sent[k + n][1][c] - sent[k][1][c] - row[c]) < .05 for n, row in enumerate(got) for c in range(3))),
            None)
        self.assertIsNotNone(first, (got, sent))
        for c in range(3):
            true_j = sent[first + len(got) - 1][2][c] - sent[first][2][c]
            self.assertAlmostEqual(got[-1][c], true_j, delta=.01 * true_j + .2)
        # The run's edges lie within the first and the last step of the counter.
        self.assertLess(wall["energy_j"], got[-1][0] + .2)
        self.assertGreater(wall["energy_j"], got[-1][0] / 2)

    def test_powers(self):
        """The payload of the notes, the emonPi's and key:value lines, of a steady load."""
        for form, uri in URI.items():
            with self.subTest(form):
                results, out, log = self.measure(f"emon-{form}", "steady", uri)
                (begin_s, _, begin_j), *_, (end_s, _, end_j) = self.lines(log)
                power_w = [(end - begin) / (end_s - begin_s) for begin, end in zip(begin_j, end_j)]
                found = self.readings(out, "power")
                wanted = {"wall": power_w[0], "P2" if form == "msg" else "power2": power_w[1]}
                if form == "emonpi":
                    wanted["power1_plus_2"] = sum(power_w[:2])
                for name, watts in wanted.items():
                    self.assertGreater(len(found[name]), 3)
                    mean_w = sum(found[name]) / len(found[name])
                    self.assertAlmostEqual(mean_w, watts, delta=.01 * watts)
                wall = domains(results)["wall"]
                covered_s = results["duration_s"] * wall["covered"]
                self.assertAlmostEqual(wall["energy_j"] / covered_s, power_w[0], delta=.01 * power_w[0])
                volts = self.readings(out, "voltage")["Vrms"]
                self.assertAlmostEqual(sum(volts) / len(volts), 230.15, delta=.3)


if __name__ == "__main__":
    unittest.main()
