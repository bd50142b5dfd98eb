"""What the tests of nrg compare share: recordings whose joules are power times time, made by nrg import from logs of constant power."""
import datetime
import json
import math
import random

from support import Case

T0 = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
SECONDS = 10


class Text(Case):
    """A test whose outputs are text."""

    def nrg(self, *args, **more):
        done = super().nrg(*args, **more)
        done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
        return done


class Sides(Text):
    """Makes recordings and compares them."""

    def recording(self, name, power_w, minute, channel="package-0", seconds=SECONDS):
        """A run of that many joules per second, begun at that minute."""
        log = self.path(name + ".csv")
        with open(log, "w", encoding="utf-8") as f:
            f.write(f"timestamp,{channel}:power_w\n")
            for i in range(seconds + 1):
                f.write((T0 + datetime.timedelta(minutes=minute, seconds=i)).isoformat() + f",{power_w:.9g}\n")
        path = self.path(name + ".nrg")
        done = self.nrg("import", "-q", "-f", "-o", path, log)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def sides(self, n, ratio, scatter=0.01, drift=0.0, seed=1):
        rng = random.Random(seed)
        a, b = [], []
        for i in range(2 * n):
            is_b = i % 2
            power = 50 * math.exp(rng.gauss(0, scatter) + drift * i / (2 * n)) * (ratio if is_b else 1)
            (b if is_b else a).append(self.recording(f"{'ab'[is_b]}{i // 2}", power, i))
        return a, b

    def compare(self, *arguments, code=0):
        done = self.nrg("compare", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def json(self, *arguments, code=0):
        return json.loads(self.compare("--json", *arguments, code=code).stdout)
