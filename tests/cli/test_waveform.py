"""Sampled mains and OmegaWatt boxes, against an emulator of known truth.

The emulator is a process of its own (tests/emulator/wave_emulator.py) on a pipe or a
pseudo-terminal. The run's edges come from the recording and the true energy between them from the
emulator. A machine that is busy with other things hands samples over late, by more than the bar
allows at times: such a measurement is repeated, at most twice.
"""
import unittest

from retries import steadily
from support import *

SOURCE = os.path.join(TOP, "tests", "emulator", "wave_emulator.py")
BAR = 0.01
SHAPES = {
    "constant": "constant:450",
    "step": "step:0=120,2.2=800,3.4=300",
    "bursty": "burst:0.3,0.4,80,950",
}
WAV = "waveform:{to}?vcal=0.02&ical=0.001"
RAW = "waveform:{to}?format=s16le&channels=2&rate=4000&vcal=0.02&ical=0.001"
BOX = "omegawatt:{to}?nb=2&covers=power1:machine"


class Source(Case):
    def emulate_source(self, command, shape, *options, to=None):
        """Starts a source of samples or frames; (where it is, zero_ns)."""
        to = to or self.path(f"source-{time.monotonic_ns()}")
        process = subprocess.Popen([PYTHON, SOURCE, command, "--to", to, *options, shape],
                                   stderr=subprocess.PIPE)
        self.started.append(process)
        return to, json.loads(process.stderr.readline())["zero_ns"]

    def true_j(self, shape, zero_ns, edges):
        return float(subprocess.run([PYTHON, SOURCE, "truth", shape, str(zero_ns), *map(str, edges)],
                                    check=True, stdout=subprocess.PIPE).stdout)

    def measure(self, command, shape, options, uri, more=()):
        """One run beside a source; (results, relative error of wall, recording)."""
        to, zero_ns = self.emulate_source(command, shape, *options)
        out = self.path(f"run-{time.monotonic_ns()}.nrg")
        results, _ = self.run_json("-o", out, "--meter", uri.format(to=to), *more, "--", "sleep",
                                   "3")
        self.started[-1].kill()
        wall = domains(results).get("wall")
        self.assertIsNotNone(wall, results["missing"])
        return results, wall["energy_j"] / self.true_j(shape, zero_ns, run_edges(out)) - 1, out

    def close_to_truth(self, command, shape, options, uri):
        def check(result):
            self.assertLessEqual(abs(result[1]), BAR, f"{command} {shape} {options}")

        results, _, out = steadily(check, lambda n: self.measure(command, shape, options, uri), 3)
        return results, out

    def mean(self, out, name, quantity):
        """Mean of a channel's readings, as anybody exports them."""
        done = self.nrg("export", out)
        rows = [line.split(",") for line in done.stdout.decode().splitlines()]
        cells = [float(row[5]) for row in rows if row[2:4] == [name, quantity] and row[5]]
        return sum(cells) / len(cells)


class Waveform(Source):
    def test_loads(self):
        for name, shape in SHAPES.items():
            with self.subTest(name):
                results, _ = self.close_to_truth("wave", shape, [], WAV)
                self.assertEqual(results["total"]["domains"], ["wall"])
                self.assertEqual(domains(results)["wall"]["provenance"], "measured")

    def test_blocks_of_odd_sizes(self):
        self.close_to_truth("wave", SHAPES["step"], ["--jitter", "--form", "raw"], RAW)

    def test_csv_60_hz_and_phase(self):
        _, out = self.close_to_truth(
            "wave", SHAPES["constant"],
            ["--form", "csv", "--mains", "60", "--late", "0.0004", "--rate", "3000"],
            "waveform:{to}?format=csv&rate=3000&vcal=0.02&ical=0.001&shift=-1.2&cycles=3")
        self.assertAlmostEqual(self.mean(out, "voltage", "voltage"), 230.1, delta=0.5)
        self.assertAlmostEqual(self.mean(out, "frequency", "clock"), 60, delta=0.1)
        self.assertAlmostEqual(self.mean(out, "current", "current"), 450 / 230 * 1.25**0.5,
                               delta=0.02)
        self.assertAlmostEqual(self.mean(out, "apparent", "apparent"), 450 * 1.25**0.5, delta=5)
        self.assertAlmostEqual(self.mean(out, "power_factor", "utilisation"), 1 / 1.25**0.5, delta=0.01)

    def test_program(self):
        command = f"{PYTHON} {SOURCE} wave --to - constant:450"
        results, _ = self.run_json("--meter", f"waveform-exec:{command}?vcal=0.02&ical=0.001", "--",
                                   "sleep", "2")
        self.assertAlmostEqual(domains(results)["wall"]["mean_w"], 450, delta=450 * 2 * BAR)

    def test_industrial_io(self):
        """A root with the kernel's description of an ADC, whose device is a pipe here."""
        device = "root/sys/bus/iio/devices/iio:device0/"
        for name, index in (("voltage0", 0), ("voltage1", 1)):
            self.write(f"{device}scan_elements/in_{name}_en", "1\n")
            self.write(f"{device}scan_elements/in_{name}_index", f"{index}\n")
            self.write(f"{device}scan_elements/in_{name}_type", "le:s16/16>>0\n")
        self.write(f"{device}sampling_frequency", "4000\n")
        self.write(f"{device}buffer/enable", "0\n")
        self.write("root/dev/null", "")
        uri = "waveform:/dev/iio:device0?v=voltage0&i=voltage1&vcal=0.02&ical=0.001"
        done = self.nrg("run", "--root", self.path("root"), "--meter", uri, "--", "true")
        self.assertIn("buffer/enable", self.one_line(done.stderr))
        self.write(f"{device}buffer/enable", "1\n")
        self.emulate_source("wave", "constant:450", "--form", "raw",
                            to=self.path("root/dev/iio:device0"))
        results, _ = self.run_json("--root", self.path("root"), "--meter", uri, "--", "sleep", "2")
        self.assertAlmostEqual(domains(results)["wall"]["mean_w"], 450, delta=450 * 2 * BAR)

    def test_mistakes(self):
        self.write("x.wav", b"no sound at all")
        for uri, word in (("waveform:x.raw", "not there"), ("waveform:x.wav?format=mp3", "s16le"),
                          ("waveform:x.wav?format=s16le", "rate="), ("waveform:x.wav?volt=1", "vcal"),
                          ("waveform:/dev/iio:device77", "scan_elements")):
            with self.subTest(uri):
                uri = uri.replace(":x", ":" + self.path("x"))
                done = self.nrg("run", "--meter", uri, "--", "touch", "began")
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(word, self.one_line(done.stderr))
                self.assertFalse(os.path.exists(self.path("began")))

    def test_a_finished_file(self):
        """Its energy, all of it; times go by its samples."""
        path = self.write("x.wav", b"")
        with open(path, "wb") as out:
            subprocess.run([PYTHON, SOURCE, "wave", "--to", "-", "--samples", "12345", "constant:450"],
                           check=True, stdout=out, stderr=subprocess.DEVNULL)
        done = self.nrg("meter", "watch", "--json", "--for", "4s",
                        f"waveform:{path}?vcal=0.02&ical=0.001")
        end = json.loads(done.stdout.splitlines()[-1])
        values = {(v["name"], v["quantity"]): v for v in end["values"]}
        true_j = 450 * 12345 / 4000
        self.assertAlmostEqual(values["wall", "energy"]["most"], true_j, delta=true_j * 0.002)
        self.assertAlmostEqual(values["wall", "power"]["mean"], 450, delta=1)
        self.assertEqual(end["refused"], 0)

    def test_no_wav_is_said(self):
        path = self.write("x.wav", b"this is no sound at all, only text\n" * 20)
        results, _ = self.run_json("--meter", f"waveform:{path}", "--", "sleep", "1")
        self.assertIn("garbage", self.missing(results, "waveform"))


class OmegaWatt(Source):
    def test_loads(self):
        for name, shape in SHAPES.items():
            with self.subTest(name):
                results, _ = self.close_to_truth("omegawatt", shape, [], BOX)
                self.assertEqual(results["total"]["domains"], ["wall"])
                self.assertAlmostEqual(domains(results)["power2"]["mean_w"], 1.5, delta=0.01)

    def test_garbage_and_splits(self):
        self.close_to_truth("omegawatt", SHAPES["step"], ["--garbage", "--split"], BOX)

    def test_lost_frames(self):
        self.close_to_truth("omegawatt", SHAPES["step"], ["--lose", "4"], BOX)

    def test_csv_of_its_own_program(self):
        rows = ["#timestamp,#frame_is_ok,#U1,#U2,#U3,#current1,#current2,#activepow1,#activepow2"]
        rows += [f"{1640270000 + k / 100:.9f},true,230.1,230.2,230.3,1.5,0.2,{345 + k},46.0"
                 if k % 3 else f"{1640270000 + k / 100:.9f},false,,,,,,," for k in range(10)]
        path = self.write("omegawatt.csv", "\n".join(rows) + "\n")
        done = self.nrg("meter", "watch", "--json", "--count", "6",
                        f"file:{path}?from=start&columns=time,-,voltage1,voltage2,voltage3,"
                        "current1,current2,power1,power2&covers=power1:machine")
        values = {v["name"]: v for v in json.loads(done.stdout.splitlines()[-1])["values"]}
        self.assertEqual((values["wall"]["least"], values["wall"]["most"]), (346, 353))
        self.assertAlmostEqual(values["voltage3"]["mean"], 230.3, places=3)

    def test_noise(self):
        """Half of the frames are hit: refused and counted, the others give the energy."""
        results, _ = self.close_to_truth("omegawatt", SHAPES["constant"], ["--noise", "0.01"], BOX)
        self.assertNotIn("power7", domains(results))


if __name__ == "__main__":
    unittest.main()
