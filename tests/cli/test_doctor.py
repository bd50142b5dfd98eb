"""nrg doctor: what it says of a dozen systems, made here as small trees, and whether what it advises works: every remedy
that says `tried` is run here as root, by --fix, in a root folder of its own, and the user can read the sensor afterwards."""
import tarfile
import unittest

from nrgd_client import *

INTEL = "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Intel(R) Xeon(R) Gold 6130\nflags\t\t: fpu{}\n"
AMD = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC 7763\nflags\t\t: fpu\n"
ARM = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"
PARANOID = "proc/sys/kernel/perf_event_paranoid"
CLOCKS = "sys/devices/system/clocksource/clocksource0/"
POLICY = "sys/devices/system/cpu/cpufreq/policy{}/scaling_governor"
ZONE = "sys/class/powercap/intel-rapl:0/"
PMU = {"sys/bus/event_source/devices/power/" + name: text for name, text in {
    "type": "33\n", "cpumask": "0\n", "events/energy-pkg": "event=0x02\n", "events/energy-pkg.scale": "2.3283064365386962890625e-10\n",
    "events/energy-pkg.unit": "Joules\n", "format/event": "config:0-7\n"}.items()}
SYSTEMD = {"run/systemd/system/x": ""}
DEBIAN = {"etc/debian_version": "12.11\n", "etc/os-release": 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'}


# The remedies that class Tried runs (usermod, which wants nrgd to run, and a chip's file stand in no tree of SYSTEMS).
PROVEN = ['chgrp "$(id -gn)" /sys/class/powercap', "mount -t sysfs", "mount -t proc", "tee /sys/devices/system/clocksource", "tee /sys/devices/system/cpu/cpufreq"]


def rapl(mode=0o400):
    return {ZONE + "name": "package-0\n", ZONE + "energy_uj": ("1234567\n", mode), ZONE + "max_energy_range_uj": "262143328850\n"}


def jetson():
    chip = "sys/class/hwmon/hwmon1/"
    return {chip + "name": "ina3221\n", chip + "in1_label": "VDD_IN\n", chip + "in1_input": "5000\n", chip + "curr1_input": "1000\n",
            "proc/device-tree/compatible": "nvidia,p3450-0000\0nvidia,tegra210\0"}


# name: (files, exit code, what has a problem, text of the first fix)
SYSTEMS = {
    "intel with open counters": ({"proc/cpuinfo": INTEL.format(""), **rapl(0o444)}, 0, None, None),
    "debian": ({"proc/cpuinfo": INTEL.format(""), PARANOID: "3\n", **rapl(), **SYSTEMD, **DEBIAN}, 1, "package-0", "sudo apt install nrgd && sudo usermod -aG nrg"),
    "ubuntu": ({"proc/cpuinfo": INTEL.format(""), PARANOID: "4\n", **rapl(), **SYSTEMD, "etc/debian_version": "bookworm/sid\n",
                "etc/os-release": 'PRETTY_NAME="Ubuntu 24.04 LTS"\n'}, 1, "package-0", "sudo apt install nrgd"),
    "fedora": ({"proc/cpuinfo": INTEL.format(""), PARANOID: "2\n", **rapl(), **SYSTEMD}, 1, "package-0", "install nrgd (docs/nrgd.md)"),
    "nrgd is installed": ({"proc/cpuinfo": INTEL.format(""), **rapl(), **SYSTEMD, **DEBIAN, "usr/lib/systemd/system/nrgd.socket": ""}, 1, "package-0",
                          "sudo systemctl enable --now nrgd.socket"),
    "without systemd": ({"proc/cpuinfo": INTEL.format(""), **rapl()}, 1, "package-0", 'sudo chgrp "$(id -gn)" /sys/class/powercap/'),
    "container": ({"proc/cpuinfo": INTEL.format(""), ".dockerenv": "", "sys/class/x/y": ""}, 1, "RAPL through powercap", "-v /sys/devices/virtual/powercap"),
    "virtual machine": ({"proc/cpuinfo": INTEL.format(" hypervisor"), "sys/class/x/y": ""}, 1, "RAPL through powercap", "only the host can measure"),
    "jetson": ({"proc/cpuinfo": ARM, **jetson()}, 0, None, None),
    "amd without the module": ({"proc/cpuinfo": AMD, "sys/class/x/y": ""}, 1, "RAPL through powercap", "sudo modprobe intel_rapl_msr"),
    "arm server": ({"proc/cpuinfo": ARM, "sys/class/x/y": ""}, 1, "RAPL through powercap", "this processor has no RAPL"),
    "no /sys": ({"proc/cpuinfo": INTEL.format("")}, 1, "/sys", "sudo mount -t sysfs sysfs /sys"),
    "no /proc": ({**rapl(0o444)}, 1, "/proc", "sudo mount -t proc proc /proc"),
    "slow clock": ({"proc/cpuinfo": INTEL.format(""), **rapl(0o444), CLOCKS + "current_clocksource": "hpet\n", CLOCKS + "available_clocksource": "tsc hpet acpi_pm\n"},
                   1, "clock source", "echo tsc | sudo tee /sys/devices/system/clocksource"),
    "slow clock without another": ({"proc/cpuinfo": INTEL.format(""), **rapl(0o444), CLOCKS + "current_clocksource": "acpi_pm\n",
                                    CLOCKS + "available_clocksource": "acpi_pm\n"}, 1, "clock source", "found no better clock"),
    "two governors": ({"proc/cpuinfo": INTEL.format(""), **rapl(0o444), POLICY.format(0): "performance\n", POLICY.format(1): "powersave\n"},
                      1, "governor", "echo performance | sudo tee"),
}


class Trees(Case):
    def make(self, files, place="root"):
        root = self.path(place)
        files = dict(files)
        if any(name.startswith("proc/") for name in files):
            files.setdefault("proc/stat", "cpu  1 0 1 1 0 0 0 0 0 0\n")
        for name, content in files.items():
            content, mode = content if isinstance(content, tuple) else (content, 0o644)
            self.write(os.path.join(place, name), content, mode)
        return root

    def doctor(self, root, *options, code=None, **kw):
        done = self.nrg("doctor", "--root", root, *options, user=NOBODY, **kw)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stdout.decode() + done.stderr.decode())
        return done.stdout.decode()


@needs_root
class Systems(Trees):
    def test_what_is_said_of_each(self):
        for number, (name, (files, code, what, fix)) in enumerate(SYSTEMS.items()):
            with self.subTest(name):
                root = self.make(files, f"root{number}")
                found = json.loads(self.doctor(root, "--json", code=code))
                problems = {p["what"]: p for p in found["problems"]}
                self.assertEqual(bool(problems), bool(code))
                for problem in problems.values():
                    self.assertEqual(sorted(set(problem) & {"what", "why", "fix", "tried"}), ["fix", "tried", "what", "why"])
                if code:
                    named = [p for key, p in problems.items() if what in key or what in p["why"]]
                    self.assertTrue(named, problems)
                    self.assertIn(fix, named[0]["fix"])
                if number < 2:  # and for people
                    text_ = self.doctor(root, code=code)
                    self.assertIn("no problem" if not code else "fix:", text_)

    def test_tried_is_what_is_tried_below(self):
        commands = {}
        for number, (files, _, _, _) in enumerate(SYSTEMS.values()):
            for problem in json.loads(self.doctor(self.make(files, f"t{number}"), "--json"))["problems"]:
                for remedy in [problem] + problem.get("others", []):
                    if remedy.get("command"):
                        commands[remedy["command"]] = remedy["tried"]
        tried = {command for command, was in commands.items() if was}
        self.assertEqual({next((word for word in PROVEN if word in command), command) for command in tried}, set(PROVEN))
        self.assertTrue(any("modprobe" in command for command in set(commands) - tried))

    def test_least_harm_first(self):
        root = self.make(SYSTEMS["debian"][0])
        problem = json.loads(self.doctor(root, "--json", code=1))["problems"][0]
        fixes = [problem["fix"]] + [other["fix"] for other in problem["others"]]
        kinds = [next(kind for kind in ("apt install nrgd", "for your group", "for members of a group nrg, for good", "perf") if kind in fix) for fix in fixes]
        self.assertEqual(kinds[:3], ["apt install nrgd", "for your group", "for members of a group nrg, for good"])
        self.assertNotIn("chmod a+r", json.dumps(fixes))

    def test_paranoid_and_profilers_are_noted(self):
        files = {**SYSTEMS["ubuntu"][0], "proc/4711/comm": "turbostat\n", "proc/4712/comm": "bash\n"}
        notes = {n["what"]: n["why"] for n in json.loads(self.doctor(self.make(files), "--json", code=1))["notes"]}
        self.assertIn("CAP_PERFMON alone does nothing", notes["kernel.perf_event_paranoid"])
        self.assertIn("turbostat runs (process 4711)", notes["another profiler"])
        self.assertNotIn("bash", json.dumps(notes))

    def test_usage(self):
        root = self.make(SYSTEMS["debian"][0])
        self.assertIn("want root", self.one_line(self.nrg("doctor", "--fix", user=NOBODY).stderr))
        done = self.nrg("doctor", "--fix", "--user", "nobody", "--root", root)
        self.assertEqual(done.returncode, 2)
        self.assertIn("not for a captured one", self.one_line(done.stderr))
        done = self.nrg("doctor", "--fix", env=self.env(SUDO_USER="no-such-user"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("no-such-user", self.one_line(done.stderr))

    def test_the_bundle_names_nobody(self):
        host = os.uname().nodename
        files = {**SYSTEMS["debian"][0], "proc/version": f"Linux version 6.1 (builder@{host}) nobody /nonexistent/x\n",
                 "proc/self/cgroup": "0::/docker/" + "0123456789abcdef" * 4 + "\n", "etc/secret": "password\n"}
        self.doctor(self.make(files), "--bundle", self.path("b.tar"), code=1)
        with tarfile.open(self.path("b.tar")) as tar:
            members = {m.name: tar.extractfile(m).read().decode() for m in tar.getmembers()}
        self.assertEqual(json.loads(members["nrg-doctor/doctor.json"])["schema"], "nrg.doctor/1")
        self.assertIn("energy_uj", members["nrg-doctor/folders.txt"])
        self.assertIn("(builder@<host>) <user> <home>/x", members["nrg-doctor/proc/version"])
        self.assertIn("/docker/<id>", members["nrg-doctor/proc/self/cgroup"])
        everything = "".join(members.values())
        self.assertNotIn("password", everything)
        self.assertNotIn("1234567", everything, "no counter")
        for name in (host, "nobody", "0123456789abcdef"):
            self.assertNotIn(name, everything)


HOMES = "/ho" "me"
# A made-up host, by everything that names it or its people. Each stands alone, in a path and in a sentence.
IDENTIFIERS = """
    6f1a2b3c-4d5e-6f70-8192-a3b4c5d6e7f8 6F1A2B3C-4D5E-6F70-8192-A3B4C5D6E7F9 GPU-5a1b2c3d-1e2f-3a4b-5c6d-7e8f9a0b1c2d pod6f1a2b3c_4d5e_6f70_8192_a3b4c5d6e7fa
    52:54:00:12:34:56 3c-7c-3f-aa-bb-cc 00:02:c9:03:00:a1:b2:c3 0002:c903:00a1:b2c4 0011.22aa.4455 enx3c7c3faabbcc
    192.168.17.42 203.0.113.254 fe80::3e7c:3fff:feaa:bbcc 2001:db8:17:42::5 2001:db8:0:1:2:3:4:5
    4c4c4544004d3510804ab4c04f4e3132 f3a2b1c4d5e6 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    S3Z1NB0K123456A WD-WCC7K0123456 CZC1234ABC PF1A2B3C 0x5000c500a1b2c3d4 naa.5000c500a1b2c3d5 eui.0025385171905021 iqn.2001-04.com.hartmann:disk1
    nvme-SAMSUNG_MZVLB512HAJQ_S4EWNX0M123456 SHA256:mVvPq7LfWcXyZ0aBcD3eFgHiJkLm
    alice.hartmann@physics.hartmann-lab.example root@gpu17.hartmann-lab.example bob@gpu17
    gpu17.hartmann-lab.example gpu17 login2.hartmann-lab.example hartmann-lab.example alice ~/carol Hartmann""".replace("~", HOMES).split()
NAMED = {"Serial\t\t: 10000000abcd9f": "10000000abcd9f", "Serial Number: 7XJ2PK3": "7XJ2PK3", "ID_SERIAL=A502": "A502", "ssid=Hartmanns Netz": "Hartmanns Netz",
         '"gpu_serial": "1322621035123"': "1322621035123", "product_uuid: x-y-z": "x-y-z", "/dev/disk/by-label/ALICE-BACKUP": "ALICE-BACKUP", HOMES + "/dora/models": "dora"}
USEFUL = ["6.1.0-18-amd64", "Debian 12.2.0-14", "525.105.17", "0000:3b:00.0", "10de:1eb1", "12:34:56.789", "2026-11-18 20:15:00", "1763496900123456789 ns", "1234567890 uJ",
          "CapEff:\t000001ffffffffff", "SigCgt:\t0000000100004a02", "user@1000.service", "0::/system.slice/", "x86_64", "Intel(R) Xeon(R) Gold 6130", "2300.000 MHz",
          "0x2007006", "GenuineIntel", "avx512_vnni", "intel-rapl:0:1", "hwmon3/temp1_input", "GV100GL", "3.14 W", "VDD_CPU_GPU_CV", "/usr/local/lib", "127.0.0.1", "INTC1056"]


@needs_root
class Bundle(Trees):
    """Nothing of a made-up host survives, and what a bug report needs does."""

    def bundle(self, *options, code=None):
        lines = [f"a {i} b ({i}), \"{i}\" /x/{i}/y key={i};" for i in IDENTIFIERS] + list(NAMED) + [f"{u}" for u in USEFUL]
        lines = [line for line in lines if not line.startswith(("Cap", "Sig"))]
        files = {**SYSTEMS["debian"][0], "proc/version": "\n".join(lines), "proc/self/status": "\n".join(u for u in USEFUL if u.startswith(("Cap", "Sig"))) + "\n",
                 "etc/hostname": "gpu17\n", "etc/hosts": "127.0.0.1 localhost\n127.0.1.1 gpu17.hartmann-lab.example gpu17\n203.0.113.9 login2.hartmann-lab.example\n",
                 "etc/resolv.conf": "nameserver 203.0.113.1\nsearch hartmann-lab.example\n",
                 "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000:Hartmann,,,:~/alice:/bin/sh\ncarol:x:1001:1001::~/carol:/bin/sh\n".replace("~", HOMES),
                 "proc/self/cgroup": "0::/system.slice/docker-" + IDENTIFIERS[17] + ".scope\n",
                 "sys/class/power_supply/hid-3c:7c:3f:aa:bb:cc-battery/type": "Battery\n", "sys/class/powercap/intel-rapl:0:1/name": "core\n",
                 "sys/class/hwmon/hwmon3/temp1_input": "41000\n"}
        tree = self.make(files)
        done = self.nrg("doctor", "--root", tree, "--bundle", *options)
        if code is not None:
            self.assertEqual(done.returncode, code, done.stderr)
        return done

    def test_no_identifier_survives_and_useful_text_does(self):
        self.bundle(self.path("b.tar"), code=0)
        with tarfile.open(self.path("b.tar")) as tar:
            members = {m.name: tar.extractfile(m).read().decode() for m in tar.getmembers()}
        everything = "".join(members.values())
        for secret in IDENTIFIERS + list(NAMED.values()):
            with self.subTest(secret):
                self.assertNotRegex(everything.lower(), r"(?<![a-z])" + re.escape(secret.lower()) + r"(?![a-z])")
        for useful in USEFUL:
            with self.subTest(useful):
                self.assertIn(useful, everything)
        json.loads(members["nrg-doctor/doctor.json"])
        self.assertIn("/sys/class/power_supply/hid-<address>-battery", members["nrg-doctor/folders.txt"])
        self.assertIn("0::/system.slice/docker-<id>.scope", members["nrg-doctor/proc/self/cgroup"])

    def test_nobody_else_may_read_it_and_nothing_is_overwritten(self):
        old = os.umask(0)
        self.addCleanup(os.umask, old)
        self.bundle(self.path("b.tar"), code=0)
        self.assertEqual(oct(os.stat(self.path("b.tar")).st_mode & 0o777), "0o600")
        os.symlink(self.path("elsewhere"), self.path("link.tar"))
        self.write("there.tar", "mine")
        for name in ("link.tar", "there.tar"):
            done = self.bundle(self.path(name), code=1)
            self.assertIn("give another name", self.one_line(done.stderr))
        self.assertFalse(os.path.exists(self.path("elsewhere")))
        with open(self.path("there.tar")) as f:
            self.assertEqual(f.read(), "mine")


@needs_root
class Tried(Trees):
    """In a root folder of its own (bind mounts, chroot), where `live` is the made tree. Users and groups are a copy."""

    def setUp(self):
        super().setUp()
        if not can_unshare("--mount"):
            self.skipTest("namespaces can't be made here")

    def inside(self, script, tree):
        """Runs a shell script as root in the chroot; $NRG is the program. The tree brings /sys, and more."""
        nrgd = os.path.join(os.path.dirname(nrg_of_everybody()), "nrgd")
        if not os.path.exists(nrgd):  # one that runs can't be written to
            shutil.copy(NRGD, nrgd)
        os.makedirs(os.path.join(tree, "etc"), exist_ok=True)
        for name in ("passwd", "group", "shadow", "gshadow", "login.defs", "nsswitch.conf", "ld.so.cache"):
            if os.path.exists("/etc/" + name):
                shutil.copy("/etc/" + name, os.path.join(tree, "etc"))
        for name in ("tmp", "opt", "proc", "run"):
            os.makedirs(os.path.join(tree, name), exist_ok=True)
        os.chmod(os.path.join(tree, "tmp"), 0o1777)
        os.chmod(tree, 0o755)
        for folder, names, _ in os.walk(tree):
            for name in names:
                if not os.path.islink(os.path.join(folder, name)) and name != "tmp":
                    os.chmod(os.path.join(folder, name), 0o755)
        outer = f"""set -e; cd {tree}
            for name in usr bin sbin lib lib64 dev; do
                if [ -L /$name ]; then cp -P /$name $name; elif [ -d /$name ]; then mkdir -p $name; mount --rbind /$name $name; fi
            done
            [ -n "$NO_PROC" ] || mount --bind /proc proc
            mount --bind {os.path.dirname(nrg_of_everybody())} opt
            exec chroot . sh -c 'cd /tmp; NRG=/opt/nrg; {script}'"""
        done = subprocess.run(["unshare", "--mount", "sh", "-c", outer], capture_output=True, text=True, timeout=LIMIT_S,
                              env=self.env(PATH=os.environ["PATH"] + ":/usr/sbin:/sbin"))
        self.assert_sane(done.stderr.encode())
        return done

    def fixed(self, script, tree, what):
        """--fix of what `what` names: shown, done, gone; the remedy that did it says `tried`. Returns the output."""
        before = json.loads(self.inside("$NRG doctor --json --user nobody", tree).stdout)
        problem = [p for p in before["problems"] if what in p["what"] or what in p["why"]][0]
        shown = [problem] + problem.get("others", [])
        done = self.inside(f"$NRG doctor --fix --user nobody > log; {script}; $NRG doctor --json --user nobody > after; cat log; echo ====; cat after", tree)
        log, after = done.stdout.split("====\n")
        self.assertEqual([p for p in json.loads(after)["problems"] if what in p["what"] or what in p["why"]], [], done.stdout + done.stderr)
        ran = [r for r in shown if r.get("command") and r["command"] in log]
        self.assertTrue(ran, log)
        self.assertTrue(ran[-1]["tried"], ran[-1])
        return done.stdout

    def test_counters_for_the_user_s_group(self):
        tree = self.make({**rapl(), "sys/class/powercap/intel-rapl:0:0/name": "core\n", "sys/class/powercap/intel-rapl:0:0/energy_uj": ("5\n", 0o400)})
        before = self.inside("setpriv --reuid nobody --regid nogroup --clear-groups $NRG sensors --json", tree)
        self.assertNotIn('"rapl-powercap",\n   "sensor"', before.stdout)
        self.fixed("setpriv --reuid nobody --regid nogroup --clear-groups $NRG sensors --json > seen", tree, "energy_uj")
        with open(os.path.join(tree, "tmp", "seen")) as f:
            names = {c["name"]: c["driver"] for c in json.load(f)["channels"]}
        self.assertEqual(names.get("package-0"), "rapl-powercap")
        self.assertEqual(oct(os.stat(os.path.join(tree, ZONE, "energy_uj")).st_mode & 0o777), "0o440", "nobody else may")

    def test_a_closed_file_of_a_chip(self):
        chip = "sys/class/hwmon/hwmon0/"
        tree = self.make({chip + "name": "power_meter\n", chip + "power1_average": ("150000000\n", 0o400)})
        self.fixed("true", tree, "power1_average")

    def test_membership_gives_the_full_view(self):
        tree = self.make(rapl())
        script = ("grep -q ^nrg: /etc/group || echo nrg:x:64999: >> /etc/group; mkdir -p /run/nrg; /opt/nrgd --idle 0 --socket /run/nrg/nrgd.sock " +
                  " ".join(self.sanitizer_options()) + " 2>/dev/null & daemon=$!; until [ -S /run/nrg/nrgd.sock ]; do sleep 0.05; done; ")
        view = "$NRG doctor --json --user nobody"
        done = self.inside(script + f"{view} > before; $NRG doctor --fix --user nobody > log; {view} > after; "
                           "setpriv --reuid nobody --regid nogroup --init-groups $NRG sensors --json > seen; kill $daemon; "
                           "cat before; echo ====; cat log; echo ====; cat after; echo ====; cat seen", tree)
        before, log, after, seen = done.stdout.split("====\n")
        coarse = [p for p in json.loads(before)["problems"] if p["what"] == "nrgd at full rate"]
        self.assertTrue(coarse and coarse[0]["tried"], before + done.stderr)
        self.assertIn('sudo usermod -aG nrg "$USER"', log)
        self.assertEqual([p for p in json.loads(after)["problems"] if "nrgd" in p["what"]], [])
        package = [c for c in json.loads(seen)["channels"] if c["name"] == "package-0" and c["used"]][0]
        self.assertEqual((package["driver"], package["update_period_s"]), ("nrgd", 0.001))

    def stand_ins(self, tree, **scripts):
        """Programs of the system that write down how they were called, then do what is given here. In front of PATH, and root's."""
        folder = os.path.join(tree, "stand-in")
        for name in ("apt", "systemctl", "sysctl", "setcap", "chgrp", "modprobe", "udevadm", "groupadd", "usermod"):
            self.write(os.path.join(folder, name), f"#!/bin/sh\necho {name} $* >> /tmp/called\n{scripts.get(name, 'exit 1')}\n", 0o755)
        self.write(os.path.join(folder, "nrg"), "#!/bin/sh\nexit 0\n", 0o755)  # not the one that runs
        return folder

    def repaired(self, tree, before="true", script="true", **scripts):
        """--fix: what was called, in order, what was said, and the exit code."""
        self.stand_ins(tree, **scripts)
        self.write(os.path.join(tree, "tmp/called"), "")
        shim = os.path.join(os.path.dirname(NRG), "tests", "libfake-perf.so")
        preload = "" if sanitizer_library() else "LD_PRELOAD=/opt/libfake-perf.so "
        shutil.copy(shim, os.path.dirname(nrg_of_everybody()))
        done = self.inside(f"{before}; PATH=/stand-in:$PATH; {preload}$NRG doctor --fix --user nobody; echo code $?; {script}; echo ====; cat /tmp/called", tree)
        said, called = done.stdout.split("====\n")
        return called.splitlines(), said + done.stderr

    def both_ways(self):
        files = {**rapl(), **PMU, **SYSTEMD, **DEBIAN, "proc/cpuinfo": INTEL.format("")}
        return self.make(files)

    def real(self, name):
        return f'exec {shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")} "$@"'

    def test_two_problems_that_begin_alike_are_two(self):
        tree = self.both_ways()
        self.stand_ins(tree)
        problems = json.loads(self.inside("$NRG doctor --json --user nobody", tree).stdout)["problems"]
        what = [p["what"] for p in problems]
        self.assertEqual(len(what), len(set(what)), what)
        self.assertIn("RAPL through perf", what)
        self.assertTrue(any("energy_uj" in p["why"] for p in problems), what)

    def test_the_least_harmful_of_all_problems_comes_first_and_one_is_enough(self):
        called, said = self.repaired(self.both_ways(), chgrp=self.real("chgrp"))
        self.assertEqual([c.split()[0] for c in called], ["apt", "chgrp"], said)
        self.assertIn("no problem\ncode 0", said)

    def test_nrgd_is_enough(self):
        serve = ("grep -q ^nrg: /etc/group || echo nrg:x:64999: >> /etc/group; mkdir -p /run/nrg; /opt/nrgd --idle 0 --socket /run/nrg/nrgd.sock " +
                 " ".join(self.sanitizer_options()) + " >/dev/null 2>&1 & echo $! > /tmp/daemon; until [ -S /run/nrg/nrgd.sock ]; do sleep 0.05; done")
        called, said = self.repaired(self.both_ways(), apt=serve, usermod=self.real("usermod"), script="kill $(cat /tmp/daemon)")
        self.assertEqual([c.split()[0] for c in called], ["apt", "usermod"], said)
        self.assertIn("no problem\ncode 0", said)

    @unittest.skipIf(sanitizer_library(), "a shim and a sanitizer do not go together")
    def test_capabilities_come_last_go_to_the_program_that_runs_and_count(self):
        """The next look sees with them, as the user's next start will."""
        tree = self.make({"sys/class/x/y": "", **PMU, **SYSTEMD, **DEBIAN, "proc/cpuinfo": INTEL.format("")})
        level = "echo 2 > /tmp/level; touch /proc/sys/kernel/perf_event_paranoid 2>/dev/null; mount --bind /tmp/level /proc/sys/kernel/perf_event_paranoid"
        called, said = self.repaired(tree, level, script="PATH=$PATH:/usr/sbin setcap -r /opt/nrg 2>/dev/null; umount /proc/sys/kernel/perf_event_paranoid", setcap=self.real("setcap"))
        self.assertEqual(called[:2], ["apt install nrgd", "setcap cap_perfmon,cap_net_admin=ep /opt/nrg"], said)
        self.assertIn("rapl-perf", said)
        self.assertIn("no problem\ncode 0", said)

    def test_no_capabilities_where_others_can_write(self):
        for mode, who in (("chmod 777 /opt/.", "chmod 755 /opt/."), ("chown nobody /opt/.", "chown root /opt/."), ("chmod g+w /opt/nrg", "chmod g-w /opt/nrg")):
            with self.subTest(mode):
                tree = self.make({"sys/class/x/y": "", **PMU, **SYSTEMD, **DEBIAN, "proc/cpuinfo": INTEL.format("")}, mode.replace(" ", "-").replace("/", "_"))
                called, said = self.repaired(tree, mode, script=who)
                self.assertFalse([c for c in called if "setcap" in c], called)
                self.assertIn("code 1", said)
                self.assertIn("install it where root alone can write", said)

    def test_folders_of_others_in_path_are_passed_over(self):
        """The second as /tmp is: others replace nothing there, but add."""
        tree = self.both_ways()
        self.write(os.path.join(tree, "theirs/chgrp"), "#!/bin/sh\necho theirs >> /tmp/called\nexit 1\n", 0o755)
        for theirs in ("chown nobody /theirs", "chmod 1777 /theirs"):
            with self.subTest(theirs):
                called, said = self.repaired(tree, f"rm /stand-in/chgrp; {theirs}; PATH=/theirs:.:$PATH", "PATH=/usr/bin:/bin; chown root /theirs; "
                                             "chgrp root /sys/class/powercap/*/energy_uj; chmod 400 /sys/class/powercap/*/energy_uj")
                self.assertNotIn("theirs", called)
                self.assertIn("no problem", said)

    def sanitizer_options(self):
        return ["--no-filter"] if sanitizer_library() else []

    def test_settings(self):
        self.fixed("true", self.make({**SYSTEMS["slow clock"][0]}, "clock"), "clock source")
        self.fixed("true", self.make({**SYSTEMS["two governors"][0]}, "governor"), "governor")

    def test_missing_file_systems(self):
        if sanitizer_library():
            self.skipTest("the sanitizer wants /proc")
        tree = self.make({"opt/x": ""}, "empty")
        done = self.inside("umount -l /proc 2>/dev/null; mkdir -p /sys; $NRG doctor --fix --user nobody > log; ls /sys/class > classes; ls /proc/stat; cat log", tree)
        self.assertIn("/proc/stat", done.stdout, done.stderr)
        self.assertIn("mount -t sysfs sysfs /sys", done.stdout)
        self.assertIn("mount -t proc proc /proc", done.stdout)
        with open(os.path.join(tree, "tmp", "classes")) as f:
            self.assertTrue(f.read())


if __name__ == "__main__":
    unittest.main()
