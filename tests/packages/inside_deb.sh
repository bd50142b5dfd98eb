# Runs in a fresh Debian (fresh.sh): installs the packages of /given/old, uses them, upgrades to those of /given/new, uses
# these, and purges. What is left afterwards is compared with what was there before, file by file.
set -euo pipefail
fail() {
    echo "not ok - $1"
    exit 1
}
quiet() {
    "$@" >/tmp/quiet.log 2>&1 || { tail -n 30 /tmp/quiet.log; fail "$*"; }
}
# What apt, dpkg and caches keep for themselves is not the packages'.
files() {
    find / -xdev \( -path /var/lib/dpkg -o -path /var/lib/apt -o -path /var/cache -o -path /var/log -o -path /tmp -o -path /root \
        -o -path /proc -o -path /sys -o -path /dev -o -path /given -o -path /home -o -path /run \) -prune -o -print | grep -v '__pycache__' | sort
    getent passwd
    getent group
}
as_tester() {
    su - tester -c "$1"
}
version() {
    dpkg-query -W -f '${Version}\n' nrg libnrg0 libnrg-dev nrgd python3-nrg | sort -u
}

useradd --create-home tester
quiet apt-get update
# The shells, and what the packages ask for: only what is ours shall come and go.
quiet apt-get install -y --no-install-recommends man-db bash-completion zsh fish python3 systemd libsqlite3-0 libzstd1 libjansson4 zlib1g ${NRG_DEB_MORE:-}
files >/root/before

quiet apt-get install -y /given/old/*.deb
[ "$(version)" = "$(cat /given/old/version)" ] || fail "the older version is installed: $(version)"
echo "ok - installed"
as_tester 'nrg run --quiet -o old.nrg -- true' || fail "a run of the older version"

quiet apt-get install -y /given/new/*.deb
[ "$(version)" = "$(cat /given/new/version)" ] || fail "upgraded: $(version)"
[ -z "$(dpkg --audit)" ] || fail "dpkg --audit"
echo "ok - upgraded"
as_tester 'nrg report old.nrg' >/dev/null || fail "a recording of the older version is read"

as_tester 'nrg run -o x.nrg -- python3 -c "print(sum(i * i for i in range(3_000_000)))"' >/tmp/out 2>&1 || { cat /tmp/out; fail "nrg run"; }
grep -q '^8999995500000500000' /tmp/out && grep -q 'total ' /tmp/out || { cat /tmp/out; fail "what nrg run shows"; }
echo "ok - nrg run"
python3 - <<'END' || fail "the bill of materials"
import glob, json, subprocess
told = [line.split() for line in subprocess.check_output(["nrg", "--version", "-v"], text=True).splitlines()[1:]]
for package in ("nrg", "libnrg0", "python3-nrg", "nrgd"):
    path, = glob.glob(f"/usr/share/doc/{package}/{package}_*.cdx.json")
    parts = {part["name"]: part["version"] for part in json.load(open(path))["components"]}
    assert parts, path
    if package == "nrg":
        assert {name: parts[name] for name, *_ in told} == {name: version for name, version, *_ in told}, (parts, told)
END
echo "ok - bills of materials"
as_tester 'nrg run --quiet --torch -o t.nrg -- python3 -c "import os; print(os.environ[\"PYTHONPATH\"])"' >/tmp/out
[ "$(cat /tmp/out)" = /usr/lib/python3/dist-packages/nrg/inject ] || { cat /tmp/out; fail "what --torch injects"; }
as_tester 'python3 - <<END
import nrg
with nrg.record("r.nrg") as run:
    with nrg.span("work", kind="step"):
        sum(i * i for i in range(1_000_000))
print([row["name"] for row in run.table("path")], nrg._nrg.library())
END' >/tmp/out
grep -q "^\['work'\] /usr/lib/.*/libnrg.so.0" /tmp/out || { cat /tmp/out; fail "nrg.record of the system"; }
echo "ok - the Python package, its library and recorder"
if python3 -c 'import torch' 2>/dev/null; then
    as_tester 'NRG_BIN=/usr/bin/nrg NRG_DEMO_RECORDING=$HOME/demo.nrg NRG_DEMO_ARGS="--epochs 2 --samples 1000" sh /usr/share/doc/nrg/examples/demo.sh' >/tmp/out 2>&1 ||
        { cat /tmp/out; fail "the demo"; }
    grep -q Conv2d /tmp/out || { cat /tmp/out; fail "the demo's modules"; }
    echo "ok - the demo with PyTorch"
fi
getent passwd nrgd >/dev/null && getent group nrg >/dev/null || fail "nrgd's user and the group nrg"
nrgd --version >/dev/null || fail "nrgd starts"
[ -e /etc/systemd/system/sockets.target.wants/nrgd.socket ] || fail "nrgd's socket is enabled"
echo "ok - nrgd, its user and its socket"
for page in nrg nrg-run nrg-attribute nrgd; do
    MANPAGER=cat man "$page" 2>/tmp/warnings | grep -q "$page" && [ ! -s /tmp/warnings ] || { cat /tmp/warnings; fail "man $page"; }
done
echo "ok - man pages"
bash -c 'source /usr/share/bash-completion/bash_completion; _completion_loader nrg; COMP_WORDS=(nrg run --rep) COMP_CWORD=2; _nrg; echo "${COMPREPLY[@]}"' | grep -qx -- --repeat ||
    fail "bash completes"
[ "$(fish -c 'complete -C "nrg run --rep"' | cut -f1)" = --repeat ] || fail "fish completes"
zsh -f -c 'autoload -Uz compinit; compinit -u -D; [[ $_comps[nrg] = _nrg ]]' || fail "zsh knows the completion"
echo "ok - completion of bash, fish and zsh"

# A counter as the kernel makes it, given to nrgd's group by the rule's own commands: no udev runs here.
counter=/sys/class/powercap/intel-rapl:0/energy_uj
state() {
    stat -c '%U %G %a' "$counter"
}
mount -t tmpfs tmpfs /sys/class
mkdir -p "${counter%/*}"
echo 1 >"$counter"
chmod 400 "$counter"
grep -h powercap "$(dpkg -L nrgd | grep /70-nrgd.rules)" | grep -o 'RUN+="[^"]*' | sed "s,RUN+=\",,; s,/sys%p/energy_uj,$counter," | sh -e
[ "$(state)" = "root nrgd 440" ] || fail "what the rule does: $(state)"
quiet apt-get install -y --reinstall /given/new/nrgd_*.deb
[ "$(state)" = "root nrgd 440" ] || fail "the counter after nrgd was installed once more: $(state)"

quiet apt-get purge -y '?narrow(?installed, ?source-package(^nrg$))'
files >/root/after
diff /root/before /root/after || fail "left behind, or missing, after the purge"
[ -z "$(dpkg -l | grep -w nrg | grep -v '^un' || :)" ] || fail "dpkg still knows it"
[ "$(state)" = "root root 400" ] || fail "the counter after the purge: $(state)"
echo "ok - purged, nothing left, the counter is root's alone"
