#!/usr/bin/env python3
"""A serial meter of known truth, on a pseudo-terminal, as a process of its own.

    meter_emulator.py --link PATH [options] SHAPE
    meter_emulator.py --truth SHAPE ZERO_NS FROM_NS TO_NS

PATH becomes a link to the terminal, as /dev/serial/by-id has them. One line of JSON on stdout says
when it is ready: zero_ns is the CLOCK_MONOTONIC time of the shape's time 0, from which --truth
gives the energy between any two times. A reading is the true mean power since the one before, as
meters that sample all the time send it.

SHAPE is constant:W, step:T=W,T=W,... or burst:PERIOD,DUTY,LOW,HIGH (seconds, watts).

What can go wrong on a line is asked for by options; all of it comes from a seeded generator, so
that a test sees the same bytes each time. Noise has no digits in it: without a checksum a digit in
the place of another makes a line like any other, on a real line too.
"""
import argparse
import json
import os
import pty
import random
import sys
import time
import tty


def parse_shape(text):
    """A function from seconds to the joules used until then."""
    kind, _, rest = text.partition(":")
    if kind == "constant":
        return lambda t: float(rest) * max(t, 0)
    if kind == "step":
        steps = [tuple(map(float, part.split("="))) for part in rest.split(",")]

        def energy(t):
            ends = [at for at, _ in steps[1:]] + [float("inf")]
            return sum(watts * max(0, min(t, end) - at) for (at, watts), end in zip(steps, ends))
        return energy
    period, duty, low, high = map(float, rest.split(","))

    def burst(t):
        t = max(t, 0)
        whole, part = divmod(t, period)
        on = whole * period * duty + min(part, period * duty)
        return on * high + (t - on) * low
    return burst


def emonpi_line(watts, options):
    raw = [max(-32768, min(32767, round(v))) & 0xFFFF for v in (watts, watts / 2, 7, 23950)]
    payload = [byte for value in raw for byte in (value & 255, value >> 8)]
    if options.form == "okx":
        return "OKX " + "".join(f"{b:02X}" for b in [options.node, *payload]) + " (-61)"
    return f"OK {options.node} " + " ".join(map(str, payload)) + " (-61)"


def msg_line(watts, options):
    options.wh = getattr(options, "wh", 41_000_000) + 1
    return f"MSG:{options.wh},Vrms:239.5,P1:{watts:.2f},P2:-3,E1:{options.wh},pulse:0"


def rpict_line(watts, options):
    return f"{options.node} {watts:.2f} {watts / 2:.2f} 0.25 21.5"


FORMS = {"ok": emonpi_line, "okx": emonpi_line, "msg": msg_line, "rpict": rpict_line}


class Line:
    """The terminal that nrg reads, replaced by a new one when it is plugged in again."""

    def __init__(self, link):
        self.link = link
        self.master = None
        self.plug()

    def plug(self):
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self.name = os.ttyname(slave)
        self.slave = slave  # kept, so that bytes wait for a reader as in a chip's buffer
        os.set_blocking(self.master, False)
        os.symlink(self.name, self.link + ".new")
        os.rename(self.link + ".new", self.link)

    def unplug(self):
        os.unlink(self.link)
        os.close(self.slave)
        os.close(self.master)
        self.master = None

    def write(self, data):
        """A meter does not wait: what the line does not take is lost, as in an overrun."""
        if self.master is None:
            return
        try:
            os.write(self.master, data)
        except BlockingIOError:
            pass


def spoil(data, share, rng):
    noise = [b for b in range(256) if b not in b"0123456789"]
    return bytes(rng.choice(noise) if rng.random() < share else b for b in data)


def sent(text, count, options, rng):
    end = {"lf": "\n", "crlf": "\r\n", "cr": "\r", "lfcr": "\n\r"}[options.ending]
    data = (text + end).encode()
    if options.garbage:  # what a wrong speed makes of it
        return bytes(rng.randrange(256) for _ in data)
    if count == 0 and options.partial:
        data = data[options.partial:]
    return spoil(data, options.noise, rng)


def run(options):
    energy = parse_shape(options.shape)
    rng = random.Random(options.seed)
    line = Line(options.link)
    zero = time.monotonic_ns()
    print(json.dumps({"zero_ns": zero, "path": options.link}), flush=True)
    parent = os.getppid()
    waiting = b""
    last = count = 0
    unplug, replug = options.unplug if options.unplug else (float("inf"), float("inf"))
    while os.getppid() == parent:
        count += 1
        due = zero + int(count * options.period * 1e9)
        if options.flood:
            due = zero
        pause = (due - time.monotonic_ns()) / 1e9
        if pause > 0:
            time.sleep(pause)
        elif options.flood:
            time.sleep(0.0005)
        now = (time.monotonic_ns() - zero) / 1e9
        if line.master is not None and unplug <= now < replug:
            line.unplug()
        if line.master is None and now >= replug:
            line.plug()
        if now <= last or now > options.silent_after:
            continue
        watts = (energy(now) - energy(last)) / (now - last)
        last = now
        waiting += sent(FORMS[options.form](watts, options), count - 1, options, rng)
        if options.banner and count % 5 == 0:
            waiting += b"\r\n[RF12demo.14] E i5 g210 @ 433 MHz\r\n ? 3 77 1 2 3\r\nOK 9 1 2 3\r\n"
        if options.chunk == 1:
            for i in range(len(waiting)):
                line.write(waiting[i:i + 1])
            waiting = b""
        elif len(waiting) >= options.chunk:
            line.write(waiting)
            waiting = b""


def main():
    if sys.argv[1:2] == ["--truth"]:
        energy = parse_shape(sys.argv[2])
        zero, begin, end = map(int, sys.argv[3:6])
        print(energy((end - zero) / 1e9) - energy((begin - zero) / 1e9))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("--link", required=True)
    parser.add_argument("--form", choices=sorted(FORMS), default="ok")
    parser.add_argument("--node", type=int, default=5)
    parser.add_argument("--period", type=float, default=0.1)
    parser.add_argument("--ending", choices=["lf", "crlf", "cr", "lfcr"], default="crlf")
    parser.add_argument("--chunk", type=int, default=0, help="1: byte by byte; N: held until N")
    parser.add_argument("--partial", type=int, default=0, help="bytes missing from the first line")
    parser.add_argument("--noise", type=float, default=0, help="share of bytes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--garbage", action="store_true")
    parser.add_argument("--banner", action="store_true")
    parser.add_argument("--flood", action="store_true")
    parser.add_argument("--silent-after", type=float, default=float("inf"))
    parser.add_argument("--unplug", type=lambda t: tuple(map(float, t.split(","))), help="FROM,TO")
    parser.add_argument("shape")
    run(parser.parse_args())


if __name__ == "__main__":
    main()
