#!/usr/bin/env python3
"""Mains that is sampled, and an OmegaWatt box, of known truth, as a process of its own.

    wave_emulator.py wave --to PATH [options] SHAPE
    wave_emulator.py omegawatt --to PATH [options] SHAPE
    wave_emulator.py truth SHAPE ZERO_NS FROM_NS TO_NS

`wave` writes samples of voltage and current into a pipe that it makes at PATH (or to stdout, "-"),
as they would be taken: 230 V with harmonics, offsets, and a current that is late. `omegawatt`
writes frames to a pseudo-terminal that PATH becomes a link to. One line of JSON on stderr says
when it is ready: zero_ns is the CLOCK_MONOTONIC time of the shape's time 0, from which `truth`
gives the energy between any two times.

SHAPE is constant:W, step:T=W,T=W,... or burst:PERIOD,DUTY,LOW,HIGH (seconds, watts).
"""
import argparse
import json
import math
import os
import pty
import random
import struct
import sys
import time
import tty

V_COUNT, I_COUNT = 0.02, 0.001  # volts and amperes per count
V_OFFSET, I_OFFSET = 412, -93   # counts
BLOCK_S = 0.02


def parse_shape(text):
    """Two functions of seconds: watts, and joules used until then."""
    kind, _, rest = text.partition(":")
    if kind == "constant":
        return lambda t: float(rest), lambda t: float(rest) * max(t, 0)
    if kind == "step":
        steps = [tuple(map(float, part.split("="))) for part in rest.split(",")]
        ends = [at for at, _ in steps[1:]] + [math.inf]

        def watts(t):
            return next(w for (_, w), end in zip(steps, ends) if t < end)

        def joules(t):
            return sum(w * max(0, min(t, end) - at) for (at, w), end in zip(steps, ends))
        return watts, joules
    period, duty, low, high = map(float, rest.split(","))

    def burst(t):
        return high if t % period < period * duty else low

    def used(t):
        whole, part = divmod(max(t, 0), period)
        on = whole * period * duty + min(part, period * duty)
        return on * high + (max(t, 0) - on) * low
    return burst, used


def ready(zero):
    print(json.dumps({"zero_ns": zero}), file=sys.stderr, flush=True)


def wait_until(t_ns):
    pause = (t_ns - time.monotonic_ns()) / 1e9
    if pause > 0:
        time.sleep(pause)


def wav_header(rate, channels):
    return (b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0" +
            struct.pack("<HHIIHH", 1, channels, rate, rate * channels * 2, channels * 2, 16) +
            b"data\xff\xff\xff\xff")


def samples(first, n, rate, watts, options):
    """Rows of (v, i) in counts. Only the fundamental of the current carries power."""
    rows = []
    for k in range(first, first + n):
        t = k / rate
        angle = 2 * math.pi * options.mains * t
        late = 2 * math.pi * options.mains * options.late
        v = math.sqrt(2) * 230 * (math.sin(angle) + 0.03 * math.sin(5 * angle))
        amps = watts(t) / 230
        i = math.sqrt(2) * amps * (math.sin(angle + late) + 0.5 * math.sin(3 * (angle + late)))
        rows.append((round(v / V_COUNT) + V_OFFSET, round(i / I_COUNT) + I_OFFSET))
    return rows


def coded(rows, options):
    if options.form == "csv":
        return "".join(f"{v},{i}\n" for v, i in rows).encode()
    return b"".join(struct.pack("<hh", v, i) for v, i in rows)


def run_wave(options):
    watts, _ = parse_shape(options.shape)
    rng = random.Random(1)
    if options.to == "-":
        out = sys.stdout.fileno()
    else:
        os.mkfifo(options.to + ".new")
        out = os.open(options.to + ".new", os.O_RDWR)  # does not wait for the reader
        os.rename(options.to + ".new", options.to)
    zero = time.monotonic_ns()
    ready(zero)
    parent = os.getppid()
    done = 0
    waiting = wav_header(options.rate, 2) if options.form == "wav" else b""
    if options.samples:
        data = waiting + coded(samples(0, options.samples, options.rate, watts, options), options)
        while data:
            data = data[os.write(out, data):]
        return
    while os.getppid() == parent:
        block = round(BLOCK_S * options.rate * (rng.uniform(0.2, 4) if options.jitter else 1))
        wait_until(zero + (done + block) * 1_000_000_000 // options.rate)
        waiting += coded(samples(done, block, options.rate, watts, options), options)
        done += block
        cut = rng.randrange(len(waiting)) if options.jitter else len(waiting)
        while cut:
            written = os.write(out, waiting[:cut])
            waiting, cut = waiting[written:], cut - written


def frame(watts, seconds, count, modules=1):
    n = 500
    body = struct.pack("<HII", count & 0xFFFF, int(seconds * 2**32) & 0xFFFFFFFF, n)
    body += struct.pack("<3f", *[230.0**2 * n] * 3)
    for _ in range(modules):
        body += struct.pack("<6f", *[(watts / 230)**2 * n, 0, 0, 0, 0, 0])
        body += struct.pack("<6f", *[watts * n, 1.5 * n, 0, 0, 0, 0])
    check = 0
    for byte in body:
        check ^= byte
    return b"\xfe\xfd\xfc\xfb" + struct.pack("<H", len(body)) + body + bytes([check])


def spoilt(data, count, options, rng):
    """What happens to frames on their way."""
    if options.lose and count % options.lose == 0:
        return b""
    if options.noise:
        data = bytes(b ^ rng.randrange(1, 256) if rng.random() < options.noise else b for b in data)
    if options.garbage and count % 3 == 0:
        data = bytes(rng.randrange(256) for _ in range(rng.randrange(50))) + b"\xfe\xfd\xfc\xfb" + data
    return data


def run_omegawatt(options):
    _, joules = parse_shape(options.shape)
    rng = random.Random(2)
    master, slave = pty.openpty()
    tty.setraw(slave)
    os.set_blocking(master, False)
    os.symlink(os.ttyname(slave), options.to)
    zero = time.monotonic_ns()
    ready(zero)
    parent = os.getppid()
    waiting = b"rest of a frame"
    last = count = 0
    while os.getppid() == parent:
        count += 1
        wait_until(zero + count * 10_000_000)
        now = (time.monotonic_ns() - zero) / 1e9
        watts = (joules(now) - joules(last)) / (now - last)
        waiting += spoilt(frame(watts, now - last, count), count, options, rng)
        last = now
        cut = rng.randrange(len(waiting) + 1) if options.split else len(waiting)
        try:
            os.write(master, waiting[:cut])
        except BlockingIOError:
            pass  # an overrun: lost
        waiting = waiting[cut:]


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    wave = commands.add_parser("wave")
    wave.add_argument("--rate", type=int, default=4000)
    wave.add_argument("--form", choices=["wav", "raw", "csv"], default="wav")
    wave.add_argument("--mains", type=float, default=50)
    wave.add_argument("--late", type=float, default=0, help="seconds that currents are taken later")
    wave.add_argument("--samples", type=int, default=0, help="so many at once, then end")
    wave.add_argument("--jitter", action="store_true", help="blocks of odd sizes, cut anywhere")
    box = commands.add_parser("omegawatt")
    box.add_argument("--noise", type=float, default=0, help="share of bytes")
    box.add_argument("--lose", type=int, default=0, help="every so many frames")
    box.add_argument("--garbage", action="store_true")
    box.add_argument("--split", action="store_true")
    for command in (wave, box):
        command.add_argument("--to", required=True)
        command.add_argument("shape")
    truth = commands.add_parser("truth")
    truth.add_argument("shape")
    truth.add_argument("times_ns", type=int, nargs=3)
    options = parser.parse_args()
    if options.command == "truth":
        zero, begin, end = options.times_ns
        _, joules = parse_shape(options.shape)
        print(joules((end - zero) / 1e9) - joules((begin - zero) / 1e9))
    elif options.command == "wave":
        run_wave(options)
    else:
        run_omegawatt(options)


if __name__ == "__main__":
    main()
