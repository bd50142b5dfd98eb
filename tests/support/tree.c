/* See tree.h. */
#include "support/tree.h"

#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void tree_init(struct tree *tree)
{
    *tree = (struct tree){0};
    snprintf(tree->path, sizeof tree->path, "/tmp/nrg-test-XXXXXX");
    char *made = mkdtemp(tree->path);
    assert(made);
    int rc = nrg_root_init(&tree->ctx.root, tree->path, NULL);
    assert(!rc);
    (void)made, (void)rc;
}

static void full_path(struct tree *tree, const char *path, char *buf, size_t size)
{
    snprintf(buf, size, "%s%s", tree->path, path);
    for (char *p = buf + strlen(tree->path) + 1; *p; p++) {
        if (*p == '/') {
            *p = '\0';
            int rc = mkdir(buf, 0755);
            assert(!rc || errno == EEXIST);
            (void)rc;
            *p = '/';
        }
    }
}

void tree_write_bytes(struct tree *tree, const char *path, const void *bytes, size_t len)
{
    char full[512];
    full_path(tree, path, full, sizeof full);
    FILE *file = fopen(full, "we");
    assert(file);
    size_t n = fwrite(bytes, 1, len, file);
    assert(n == len);
    (void)n;
    fclose(file);
}

void tree_write(struct tree *tree, const char *path, const char *fmt, ...)
{
    char *text;
    va_list ap;
    va_start(ap, fmt);
    int len = vasprintf(&text, fmt, ap);
    va_end(ap);
    assert(len >= 0);
    tree_write_bytes(tree, path, text, (size_t)len);
    free(text);
}

void tree_link(struct tree *tree, const char *target, const char *path)
{
    char full[512];
    full_path(tree, path, full, sizeof full);
    int rc = symlink(target, full);
    assert(!rc);
    (void)rc;
}

void tree_remove(struct tree *tree, const char *path)
{
    char full[512];
    full_path(tree, path, full, sizeof full);
    unlink(full);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void tree_release(struct tree *tree)
{
    nrg_root_release(&tree->ctx.root);
    nftw(tree->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int tree_try_probe(struct tree *tree, struct nrg_probe *probe, const char *driver,
                   struct nrg_error *err)
{
    const char *const only[] = {driver, NULL};
    const struct nrg_sensor_options options = {.only = only};
    int rc = nrg_probe_all(probe, &tree->ctx, &options, err);
    probe->options = NULL;
    return rc;
}

void tree_probe(struct tree *tree, struct nrg_probe *probe, const char *driver)
{
    int rc = tree_try_probe(tree, probe, driver, NULL);
    assert(!rc);
}

int tree_probe_file(struct tree *tree, struct nrg_probe *probe, const char *driver,
                    const char *file, struct nrg_error *err)
{
    char spec[400];
    snprintf(spec, sizeof spec, "%s:%s%s", driver, file ? tree->path : "", file ? file : "");
    return tree_try_probe(tree, probe, spec, err);
}

static void keep_row(struct nrg_sink *sink, unsigned group, int64_t t_ns, int64_t width_ns,
                     const int64_t *raw)
{
    struct keep_sink *keep = (struct keep_sink *)sink;
    assert(keep->n_rows < KEEP_ROWS);
    size_t n = 0;
    keep->rows[keep->n_rows].group = group;
    keep->rows[keep->n_rows].t_ns = t_ns;
    keep->rows[keep->n_rows].width_ns = width_ns;
    for (size_t c = 0; c < keep->found->n_channels; c++) {
        if (keep->found->channels[c].group == group) {
            assert(n < KEEP_CHANNELS);
            keep->rows[keep->n_rows].raw[n] = raw[n];
            n++;
        }
    }
    keep->n_rows++;
}

static void keep_fault(struct nrg_sink *sink, unsigned channel, int error)
{
    struct keep_sink *keep = (struct keep_sink *)sink;
    assert(keep->n_faults < KEEP_ROWS);
    keep->faults[keep->n_faults].channel = channel;
    keep->faults[keep->n_faults++].error = error;
}

static void keep_gpu(struct nrg_sink *sink, const struct nrg_gpu_process *sample)
{
    struct keep_sink *keep = (struct keep_sink *)sink;
    assert(keep->n_gpu < KEEP_ROWS);
    keep->gpu[keep->n_gpu++] = *sample;
}

void keep_sink_init(struct keep_sink *sink, const struct nrg_found *found)
{
    *sink = (struct keep_sink){
        .sink = {.row = keep_row, .fault = keep_fault, .gpu_process = keep_gpu}, .found = found};
}

void keep_open(struct keep_sink *keep, struct tree *tree, const struct nrg_found *found)
{
    void *sensor = NULL;
    assert(found);
    int rc = found->driver->open(&tree->ctx, found, &sensor, NULL);
    assert(!rc);
    keep_sink_init(keep, found);
    keep->sensor = sensor;
}

int keep_try_read(struct keep_sink *keep)
{
    return keep->found->driver->read(keep->sensor, &keep->sink);
}

void keep_read(struct keep_sink *keep)
{
    int rc = keep_try_read(keep);
    assert(!rc);
}

void keep_close(struct keep_sink *keep)
{
    keep->found->driver->close(keep->sensor);
}

struct nrg_found *probe_sensor(struct nrg_probe *probe, const char *driver, const char *sensor)
{
    for (size_t f = 0; f < probe->n_found; f++)
        if (!strcmp(probe->found[f].driver->name, driver) &&
            (!sensor || !strcmp(probe->found[f].sensor, sensor)))
            return &probe->found[f];
    return NULL;
}

const struct nrg_channel *probe_channel(const struct nrg_probe *probe, const char *name,
                                        const struct nrg_found **found)
{
    for (size_t f = 0; f < probe->n_found; f++) {
        for (size_t c = 0; c < probe->found[f].n_channels; c++) {
            if (!strcmp(probe->found[f].channels[c].name, name)) {
                if (found)
                    *found = &probe->found[f];
                return &probe->found[f].channels[c];
            }
        }
    }
    return NULL;
}

const struct nrg_unavailable *probe_why(const struct nrg_probe *probe, const char *what)
{
    for (size_t u = 0; u < probe->n_unavailable; u++)
        if (strstr(probe->unavailable[u].what, what))
            return &probe->unavailable[u];
    return NULL;
}
