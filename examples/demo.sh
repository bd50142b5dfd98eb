#!/bin/sh
# The demo: a small network is trained under nrg. `make demo` runs it.
#
# Needs no sensor: where none can be read, the table shows an estimate with its band and says so.
# Without PyTorch a C program is measured instead.
set -eu
cd "$(dirname "$0")/.."
nrg=${NRG_BIN:-build/nrg}
python=${PYTHON:-/usr/bin/python3}
command -v "$python" >/dev/null || python=$(command -v python3 || true)
recording=${NRG_DEMO_RECORDING:-build/demo.nrg}

say() {
    printf '\n\033[1m%s\033[0m\n' "$*"
}
[ -t 1 ] || say() {
    printf '\n== %s\n' "$*"
}

torch=
if [ -n "$python" ] && "$python" -c 'import torch' 2>/dev/null; then
    torch=--torch
    set -- "$python" examples/train.py ${NRG_DEMO_ARGS:-}
else
    echo "PyTorch is not here (Debian: python3-torch), so a C program is measured instead."
    ${CC:-cc} -O2 -pthread -o build/burn examples/burn.c
    set -- build/burn ${NRG_DEMO_ARGS:-8 2}
fi

say "nrg run ${torch:+$torch }-- $*"
"$nrg" run $torch --force --output "$recording" -- "$@"

say "nrg report $recording     the same again, from the file alone"
"$nrg" report "$recording" | head -n 9

if [ -n "$torch" ]; then
    say "nrg attribute --by module $recording     which part of the network it went to"
    "$nrg" attribute --by module "$recording"
fi

page=${recording%.nrg}.html
say "nrg report $recording --html $page     a page to look at and to send on"
"$nrg" report "$recording" --html "$page"
echo "Open it in a browser: file://$(cd "$(dirname "$page")" && pwd)/$(basename "$page")"

say "What next"
next() { printf '  %-40s %s\n' "$1" "$2"; }
next "$nrg sensors" "what can be measured here, and how to get the rest"
next "$nrg run -- COMMAND" "your own program"
next "$nrg run --torch -- python3 X.py" "the same, with a row for each PyTorch module"
next "$nrg view $recording" "the page again, in the browser"
next "$nrg report --json $recording" "all numbers for other programs"
next "$nrg calibrate --quick" "joules per multiplication and per byte of this machine"
next "$nrg meter list" "meters at the plug, and how to name them"
next "$nrg run --help" "rates, repeats, baseline, carbon"
