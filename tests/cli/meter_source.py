"""A meter of known truth, as a program of its own: prints lines, appends to a file, or publishes to an MQTT broker.

Its power is a function of CLOCK_MONOTONIC, the clock of recordings, so the true energy between any two instants is
known without asking the program that is tested. What it sends at each tick is the mean power since the last one,
or the energy so far. Nothing of nrg is used; MQTT is spoken here by hand.
"""
import argparse
import json
import socket
import ssl
import struct
import sys
import time


class Load:
    """constant:W, step:T_NS:LOW:HIGH (high from T on), burst:PERIOD_S:DUTY:LOW:HIGH, steps:T_NS:S,W,S,W,..."""

    def __init__(self, text):
        self.kind, *rest = text.split(":")
        if self.kind == "steps":
            self.zero = int(rest[0]) / 1e9
            numbers = [float(x) for x in rest[1].split(",")]
            self.steps = list(zip(numbers[::2], numbers[1::2]))
        else:
            self.args = [float(x) for x in rest]

    def energy(self, t):
        """Joules from 0 to t seconds of the monotonic clock."""
        if self.kind == "constant":
            return self.args[0] * t
        if self.kind == "step":
            at, low, high = self.args[0] / 1e9, self.args[1], self.args[2]
            return low * t + (high - low) * max(0.0, t - at)
        if self.kind == "burst":
            period, duty, low, high = self.args
            whole, part = divmod(t, period)
            return low * t + (high - low) * (whole * duty * period + min(part, duty * period))
        energy, at, watts = 0.0, 0.0, self.steps[0][1]
        for begin, w in self.steps:  # each holds until the next
            begin += self.zero
            if begin > t:
                break
            energy += watts * (begin - at)
            at, watts = begin, w
        return energy + watts * (t - at)

    def between(self, a_ns, b_ns):
        return self.energy(b_ns / 1e9) - self.energy(a_ns / 1e9)


def text(s):
    s = s.encode()
    return struct.pack(">H", len(s)) + s


def packet(first, body):
    n, length = len(body), b""
    while True:
        n, digit = n >> 7, n & 127
        length += bytes([digit | (128 if n else 0)])
        if not n:
            return bytes([first]) + length + body


class Publisher:
    """MQTT 3.1.1, quality of service 0. Connects again when the broker went away."""

    def __init__(self, port, user=None, password=None, cafile=None):
        self.where, self.user, self.password, self.cafile = port, user, password, cafile
        self.socket = None

    def connect(self):
        s = socket.create_connection(("127.0.0.1", self.where), 10)
        if self.cafile:
            s = ssl.create_default_context(cafile=self.cafile).wrap_socket(s, server_hostname="localhost")
        flags = 2 | (0xc0 if self.user else 0)
        body = text("MQTT") + bytes([4, flags]) + struct.pack(">H", 0) + text("")
        if self.user:
            body += text(self.user) + text(self.password)
        s.sendall(packet(0x10, body))
        answer = b""
        while len(answer) < 4:
            more = s.recv(4 - len(answer))
            if not more:
                raise OSError("the broker hung up")
            answer += more
        if answer[3]:
            raise SystemExit(f"the broker refuses: {answer[3]}")
        self.socket = s

    def publish(self, topic, payload, retain=False):
        try:
            if not self.socket:
                self.connect()
            self.socket.sendall(packet(0x31 if retain else 0x30, text(topic) + payload.encode()))
        except OSError:
            if self.socket:
                self.socket.close()
            self.socket = None

    def close(self):
        if self.socket:
            self.socket.sendall(packet(0xe0, b""))
            self.socket.close()
            self.socket = None


FORMS = {
    "number": lambda p, e, t: f"{p:.3f}",
    "joules": lambda p, e, t: f"{e:.3f}",
    "pattern": lambda p, e, t: f"U=230.1 V P={p:.3f} W",
    "csv": lambda p, e, t: f"{t:.6f},{p * 1000:.1f},230.1",
    "tasmota": lambda p, e, t: json.dumps({"Time": "2001-01-01T00:00:00", "ENERGY": {
        "Total": round(e / 3.6e6, 3), "Power": round(p, 2), "Voltage": 230, "Current": round(p / 230, 3)}}),
    "whole-wh": lambda p, e, t: json.dumps({"apower": round(p, 2), "aenergy": {"total": int(e / 3600)}}),
    "shelly2": lambda p, e, t: json.dumps({"id": 0, "apower": round(p, 2), "voltage": 230.0,
                                           "aenergy": {"total": round(e / 3600, 3)}}),
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("load")
    parser.add_argument("--form", default="number", choices=FORMS)
    parser.add_argument("--interval", type=float, default=0.05)
    parser.add_argument("--mqtt", type=int, metavar="PORT")
    parser.add_argument("--topic", default="meter/power")
    parser.add_argument("--user")
    parser.add_argument("--password")
    parser.add_argument("--cafile")
    parser.add_argument("--file")
    parser.add_argument("--names", help="a first line")
    parser.add_argument("--noise", type=int, default=0, help="every Nth line is followed by nonsense")
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--offset", type=float, default=0)
    parser.add_argument("--delay", type=float, default=0)
    args = parser.parse_args()
    load = Load(args.load)
    publisher = Publisher(args.mqtt, args.user, args.password, args.cafile) if args.mqtt else None
    out = open(args.file, "a", buffering=1) if args.file else sys.stdout
    if args.names:
        print(args.names, file=out, flush=True)
    start_ns = last_ns = time.monotonic_ns()
    n = 0
    while True:
        n += 1
        due = start_ns / 1e9 + n * args.interval
        time.sleep(max(0.0, due - time.monotonic()))
        now_ns = time.monotonic_ns()
        late = int(args.delay * 1e9)
        mean = load.between(last_ns - late, now_ns - late) * 1e9 / (now_ns - last_ns)
        message = FORMS[args.form](args.scale * mean + args.offset, load.between(start_ns, now_ns), time.time())
        last_ns = now_ns
        if publisher:
            publisher.publish(args.topic, message)
            continue
        try:
            print(message, file=out, flush=True)
            if args.noise and n % args.noise == 0:
                print("\x1b[31mresync?? %&#", file=out, flush=True)
        except BrokenPipeError:
            return


if __name__ == "__main__":
    main()
