/*
 * Fuzz target: CSV for the replay driver. Anything that opens must give rows whose times never go
 * back and whose values are missing or in range, and the same rows again after a rewind.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sensors/virtual/replay_csv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t play(struct nrg_replay_source *source)
{
    struct nrg_replay_row row;
    int64_t last_ns = INT64_MIN;
    size_t rows = 0;
    int rc;
    while ((rc = source->next(source, &row)) != 0) {
        if (rc < 0 && source->failed)
            abort(); /* a file in memory can't fail */
        if (rc < 0)
            continue;
        if (row.t_ns < last_ns)
            abort();
        last_ns = row.t_ns;
        rows++;
    }
    return rows;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_replay_source *source;
    struct nrg_error err;
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        close(fd);
        return 0;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!nrg_replay_csv_open(&source, path, &err)) {
        size_t rows = play(source);
        if (!source->rewind(source) && play(source) != rows)
            abort();
        source->close(source);
    }
    close(fd);
    return 0;
}
