"""nrgd's filter of system calls, attacked: tests/guard_attack.c installs it as nrgd does and makes calls that nrgd never makes. Each is
refused or the end of the process, and what nrgd does goes on."""
import unittest

from support import *

ATTACK = os.path.join(TOOLS, "guard-attack")
NEEDED = ["getpid", "openat-read", "ioctl-queue", "mmap-data", "perf-of-a-cpu", "fcntl-flags", "abort"]
REFUSED = ("1", f"sig{signal.SIGSYS.value}")  # EPERM, or killed


class Guard(Case):
    @unittest.skipIf(sanitizer_library(), "a sanitizer makes calls of its own")
    def test_what_is_not_needed_is_refused(self):
        done = subprocess.run([ATTACK], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [line.split() for line in done.stdout.splitlines()]
        if all(behind == "255" for _, _, behind in rows):
            self.skipTest("no filter for this kind of machine")
        free = {name: without for name, without, _ in rows}
        behind = {name: behind for name, _, behind in rows}
        for name in NEEDED:
            self.assertEqual(behind.pop(name), free[name], name)
        self.assertGreater(len(behind), 80)
        self.assertEqual({name: result for name, result in behind.items() if result not in REFUSED}, {})
        without_filter = [name for name in behind if free[name] not in REFUSED]
        self.assertGreater(len(without_filter), len(behind) / 2, "it is the filter that refuses")


if __name__ == "__main__":
    unittest.main()
