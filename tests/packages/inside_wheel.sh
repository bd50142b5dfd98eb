# Runs in a fresh Debian with Python (fresh.sh): what a user without root and without a compiler does with the wheel.
set -euo pipefail
! command -v cc gcc clang || { echo "not ok - there is a compiler"; exit 1; }
useradd --create-home tester
as_tester() {
    su - tester -c "$1"
}
as_tester 'cat >x.py' <<'END'
print(sum(i * i for i in range(3_000_000)))
END
as_tester 'cat >spans.py' <<'END'
import nrg
with nrg.record("r.nrg") as run:
    with nrg.span("work", kind="step"):
        sum(i * i for i in range(1_000_000))
print([row["name"] for row in run.table("path")], run.energy().provenance)
END
as_tester 'python3 -m venv v'
began=$(date +%s%N)
as_tester 'v/bin/pip install --quiet --no-index /given/nrg-*.whl && v/bin/nrg run -o x.nrg -- python3 x.py' >/tmp/out 2>&1 || {
    cat /tmp/out
    echo "not ok - install and first run"
    exit 1
}
took_ms=$((($(date +%s%N) - began) / 1000000))
grep -q '^8999995500000500000' /tmp/out && grep -q 'total ' /tmp/out || { cat /tmp/out; echo "not ok - what it shows"; exit 1; }
echo "ok - installed and first run in $took_ms ms, without compiler and root"
[ "$took_ms" -lt 60000 ] || echo "# more than a minute: is this machine busy?"
as_tester 'v/bin/python spans.py' | grep -q "^\['work'\] [a-z]" || { echo "not ok - nrg.record"; exit 1; }
echo "ok - nrg.record and its table"
as_tester 'v/bin/nrg report --html page.html x.nrg && test -s page.html' >/dev/null || { echo "not ok - the page"; exit 1; }
echo "ok - the page"
as_tester 'v/bin/pip uninstall --quiet -y nrg; find v -name "*nrg*"' >/tmp/left
[ ! -s /tmp/left ] || { cat /tmp/left; echo "not ok - left behind"; exit 1; }
echo "ok - uninstalled without a trace"
