#!/bin/sh
# cppcheck and clang-tidy over src/; those that are installed must be silent. `make check` runs it.
set -eu
cd "$(dirname "$0")/.."
code=0
ran=
if command -v cppcheck >/dev/null; then
    # unusedFunction and the like need the whole program with its tests: not asked for here.
    cppcheck --quiet --error-exitcode=1 --std=c11 --enable=warning,performance,portability \
        --inline-suppr --suppressions-list=tools/cppcheck.txt --library=posix -D_GNU_SOURCE \
        -I src -I include -j 2 src || code=1
    ran="cppcheck"
else
    echo "cppcheck is not installed: skipped"
fi
if command -v clang-tidy >/dev/null; then
    # Warnings that gcc was given and clang does not know are no finding.
    find src -name '*.c' -print0 | xargs -0 -P 2 -n 8 clang-tidy -p build --quiet \
        --extra-arg=-Wno-unknown-warning-option 2>&1 |
        grep -v -E '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -header-filter|^$' && code=1
    ran="${ran:+$ran and }clang-tidy"
else
    echo "clang-tidy is not installed: skipped"
fi
[ -n "$ran" ] || { echo "nothing was checked; Debian: apt-get install cppcheck clang-tidy" >&2; exit 1; }
[ "$code" = 0 ] && echo "$ran: clean"
exit "$code"
