#!/bin/sh
# A shell pipeline, measured as a whole and by its parts.
#
#   nrg run -- examples/pipeline.sh             compresses 64 MiB
#   nrg run -- examples/pipeline.sh 8           8 MiB
#
# The table lists every stage: which one takes the energy, the generator or the compressor?
set -eu
mib=${1:-64}
command -v awk >/dev/null && command -v gzip >/dev/null

# Numbers as text: compressible, but not trivially.
awk -v bytes="$((mib * 1024 * 1024))" 'BEGIN {
    for (n = 1; written < bytes; n = (n * 16807) % 2147483647) {
        print n
        written += length(n) + 1
    }
}' | gzip -6 | wc -c | awk -v mib="$mib" '{ printf "%s MiB of text became %.1f MiB\n", mib, $1 / 1048576 }'
