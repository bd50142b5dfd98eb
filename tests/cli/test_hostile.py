"""A measured program that works against nrg: what it does to the memory, files and descriptors that it shares
with nrg must not hang nrg, end it, or lose its own exit code."""
import unittest

from support import *

# Moves whoever sleeps on the shared futex to another word, again and again, from a process that outlives the command.
REQUEUE = r"""
import ctypes, mmap, os, platform, sys, time
fd = int(os.environ["NRG_SPANS"].split(",")[1])
size = os.fstat(fd).st_size
shared = mmap.mmap(fd, size)
at = ctypes.addressof(ctypes.c_char.from_buffer(shared))
call = {"x86_64": 202, "aarch64": 98}[platform.machine()]
FUTEX_REQUEUE = 3
moved = lambda word: ctypes.CDLL(None, use_errno=True).syscall(
    call, ctypes.c_void_p(at + word), FUTEX_REQUEUE, 0, ctypes.c_long(2**31 - 1), ctypes.c_void_p(at + 2048), 0)
n = 0
for _ in range(200):
    n += sum(max(moved(word), 0) for word in range(0, 1024, 4))
    time.sleep(0.001)
if os.fork() == 0:
    os.close(1), os.close(2)
    end = time.monotonic() + 2
    while time.monotonic() < end:
        for word in range(0, 1024, 4): moved(word)
    os._exit(0)
print("moved" if n else "nobody slept", flush=True)
os._exit(19)
"""


class Shared(Case):
    def test_a_sleeper_that_was_moved_away_still_ends(self):
        if os.uname().machine not in ("x86_64", "aarch64"):
            self.skipTest("the number of futex(2) is not known here")
        done = self.nrg("run", "-q", "-o", self.path("f.nrg"), "--", PYTHON, "-c", REQUEUE)
        self.assertEqual((done.stdout, done.returncode), (b"moved\n", 19), done.stderr)


if __name__ == "__main__":
    unittest.main()
