/* See fixture.h. */
#include "fake_nvml/fixture.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/cmocka.h"

void nap_ms(long ms)
{
    struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&ts, NULL);
}

void nvml_probe_with(struct nvml_fixture *f, const char *script)
{
    char path[300];
    tree_init(&f->tree);
    tree_write(&f->tree, "/script", "%s", script);
    snprintf(path, sizeof path, "%s/script", f->tree.path);
    setenv("NRG_FAKE_NVML", path, 1);
    setenv("NRG_NVML_LIBRARY", getenv("NRG_TEST_FAKE_NVML"), 1);
    tree_probe(&f->tree, &f->probe, "nvml");
    f->sensor = NULL;
    f->keep = NULL;
}

void nvml_open_gpu(struct nvml_fixture *f, size_t index)
{
    struct nrg_error err = {0};
    assert_true(index < f->probe.n_found);
    f->found = &f->probe.found[index];
    int rc = f->found->driver->open(&f->tree.ctx, f->found, &f->sensor, &err);
    if (rc)
        fail_msg("open: %s %s", err.where, err.what);
    f->keep = calloc(1, sizeof *f->keep);
    keep_sink_init(f->keep, f->found);
}

int nvml_read_gpu(struct nvml_fixture *f)
{
    return f->found->driver->read(f->sensor, &f->keep->sink);
}

void nvml_done(struct nvml_fixture *f)
{
    if (f->sensor)
        f->found->driver->close(f->sensor);
    free(f->keep);
    nrg_probe_release(&f->probe);
    tree_release(&f->tree);
}

size_t channel_index(const struct nrg_found *found, const char *name, enum nrg_quantity q)
{
    for (size_t c = 0; c < found->n_channels; c++)
        if (!strcmp(found->channels[c].name, name) && found->channels[c].quantity == q)
            return c;
    fail_msg("no channel %s", name);
    return 0;
}

size_t nvml_values(const struct nvml_fixture *f, const char *name, enum nrg_quantity q,
                   int64_t *raw, int64_t *t_ns, size_t max)
{
    size_t c = channel_index(f->found, name, q), column = 0, n = 0;
    unsigned group = f->found->channels[c].group;
    for (size_t i = 0; i < c; i++)
        column += f->found->channels[i].group == group;
    for (size_t r = 0; r < f->keep->n_rows && n < max; r++) {
        if (f->keep->rows[r].group != group)
            continue;
        raw[n] = f->keep->rows[r].raw[column];
        t_ns[n++] = f->keep->rows[r].t_ns;
    }
    return n;
}

int64_t nvml_last(const struct nvml_fixture *f, const char *name, enum nrg_quantity q)
{
    int64_t raw[KEEP_ROWS], t_ns[KEEP_ROWS];
    size_t n = nvml_values(f, name, q, raw, t_ns, KEEP_ROWS);
    assert_true(n > 0);
    return raw[n - 1];
}
