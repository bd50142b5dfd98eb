"""
What nrgd's package does to files that the kernel made and its rule gave to a group: removed and purged, they are root's
alone again, and an upgrade leaves them. On a made-up tree, with stand-ins for the programs that know users and groups;
tests/packages/inside_deb.sh does it with the package itself.
"""
import os
import stat
import unittest

import house

GROUPS = {"nrgd": 61234, "nrg": 61235, "others": 61236}
COUNTERS = "sys/class/powercap/intel-rapl:%s/energy_uj"
# Every program that changes users says that it was called.
STAND_IN = """#!/bin/sh
echo "$0" "$@" >>"$CALLS"
[ "${0##*/}" != getent ] || awk -F: -v name="$2" '$1 == name {print; found = 1} END {exit !found}' "$GROUPS_FILE"
"""


class NrgdPackage(house.Case):
    def setUp(self):
        super().setUp()
        if os.geteuid():
            self.skipTest("only root gives files to groups that it is not in")
        self.tree = os.path.join(self.folder, "tree")
        for name in ("getent", "userdel", "groupdel", "udevadm"):
            os.chmod(self.made("bin/" + name, STAND_IN), 0o755)
        self.calls = self.file("calls", "")
        self.groups = self.file("group", "".join(f"{name}:x:{gid}:\n" for name, gid in GROUPS.items()))

    def made(self, name, text):
        self.file(name, text)
        return os.path.join(self.folder, name)

    def device(self, name, group, mode):
        path = self.made("tree/" + name, "1\n")
        os.chown(path, 0, GROUPS.get(group, 0))
        os.chmod(path, mode)
        return path

    def machine(self):
        """As 70-nrgd.rules, contrib/70-nrg.rules and an administrator leave it."""
        return {"package": self.device(COUNTERS % "0", "nrgd", 0o440), "core": self.device(COUNTERS % "0:0", "nrgd", 0o440),
                "registers": self.device("dev/cpu/0/msr", "nrgd", 0o640), "bmc": self.device("dev/ipmi0", "nrgd", 0o640),
                "members": self.device(COUNTERS % "1", "nrg", 0o440), "others": self.device(COUNTERS % "2", "others", 0o440)}

    def postrm(self, *words):
        env = dict(os.environ, PATH=os.path.join(self.folder, "bin") + ":" + os.environ["PATH"], DPKG_ROOT=self.tree,
                   CALLS=self.calls, GROUPS_FILE=self.groups)
        self.run_ok("sh", house.path("debian", "nrgd.postrm"), *words, env=env)
        return {name: (os.stat(path).st_gid, stat.S_IMODE(os.stat(path).st_mode)) for name, path in self.machine_files.items()}

    def test_removed_counters_are_roots_alone(self):
        self.machine_files = self.machine()
        seen = self.postrm("remove")
        self.assertEqual({name: seen[name] for name in ("package", "core", "registers", "bmc")},
                         {"package": (0, 0o400), "core": (0, 0o400), "registers": (0, 0o600), "bmc": (0, 0o600)})
        self.assertEqual(seen["members"], (GROUPS["nrg"], 0o440), "the group is still there")
        self.assertEqual(seen["others"], (GROUPS["others"], 0o440), "not ours")

    def test_purged_no_group_is_left_that_is_gone(self):
        self.machine_files = self.machine()
        seen = self.postrm("purge")
        self.assertEqual((seen["package"], seen["members"]), ((0, 0o400), (0, 0o400)))
        self.assertEqual(seen["others"], (GROUPS["others"], 0o440), "not ours")
        with open(self.calls, encoding="utf-8") as text:
            called = [line.split("/bin/")[1] for line in text.read().splitlines() if "del " in line]
        self.assertEqual(called, ["userdel nrgd", "groupdel nrgd", "groupdel nrg"])

    def test_the_rule_is_dropped_first(self):
        self.machine_files = self.machine()
        os.makedirs(os.path.join(self.tree, "run", "udev"))
        self.postrm("remove")
        with open(self.calls, encoding="utf-8") as text:
            self.assertTrue(text.read().splitlines()[0].endswith("/udevadm control --reload"))

    def test_an_upgrade_leaves_them(self):
        self.machine_files = self.machine()
        before = {name: (os.stat(path).st_gid, stat.S_IMODE(os.stat(path).st_mode)) for name, path in self.machine_files.items()}
        for words in (["upgrade", "0.3.0"], ["failed-upgrade", "0.1.0"], ["abort-install"], ["abort-upgrade", "0.3.0"]):
            self.assertEqual(self.postrm(*words), before, words)

    def test_a_machine_without_counters(self):
        os.makedirs(self.tree)
        self.machine_files = {}
        for word in ("remove", "purge"):
            self.postrm(word)
        self.file("group", "")  # a second purge: groups are gone already
        self.postrm("purge")


if __name__ == "__main__":
    unittest.main()
