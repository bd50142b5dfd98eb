/*
 * See graph.h. The file is kept in the recording when its size is that of a graph; of a larger file
 * (an archive with its weights) only the counts are kept.
 */
#include "cli/run/graph.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"
#include "graph/analysis.h"

#define MAX_KEPT_BYTES (64 * 1024 * 1024)

static int keep_bytes(struct nrg_run_graph *g, struct nrg_error *err)
{
    char buf[65536];
    struct stat st;
    ssize_t n = 0;
    int rc = 0, fd = nrg_open_regular(g->path, &st, err);
    if (fd < 0)
        return fd;
    if (st.st_size <= MAX_KEPT_BYTES)
        while (!rc && g->bytes.len <= MAX_KEPT_BYTES && (n = read(fd, buf, sizeof buf)) > 0)
            rc = nrg_str_add(&g->bytes, buf, (size_t)n);
    if (!rc && n < 0)
        rc = -errno;
    close(fd);
    return rc ? nrg_fail(err, rc, g->path, "%s", strerror(-rc)) : 0;
}

int nrg_run_graph_read(struct nrg_run_graph *g, const char *path, const char *params,
                       struct nrg_error *err)
{
    struct nrg_model side = {0};
    const struct nrg_analysis_options how = {.params = params ? &side : NULL};
    struct nrg_analysis a;
    *g = (struct nrg_run_graph){.path = path};
    if (!strcmp(path, "-"))
        return nrg_fail(err, -EINVAL, "--graph", "stdin is the command's: give a file");
    int rc = params ? nrg_params_read(&side, params, err) : 0;
    if (!rc && !(rc = nrg_analyse(&a, path, &how, err))) {
        g->format = a.model.format;
        g->has_graph = a.has_graph;
        g->totals = a.totals;
        nrg_analysis_release(&a);
        rc = keep_bytes(g, err);
    }
    nrg_model_release(&side);
    return rc;
}

static int store_failed(const struct nrg_run_graph *g, int rc, struct nrg_error *err)
{
    return rc ? nrg_fail(err, rc, g->path, "cannot be kept in the recording: %s", strerror(-rc))
              : 0;
}

int nrg_run_graph_store(const struct nrg_run_graph *g, struct nrg_recorder *recorder,
                        struct nrg_error *err)
{
    const struct nrg_totals *t = &g->totals;
    int rc = 0;
    if (g->bytes.len)
        rc = nrg_recorder_graph(recorder, g->path, g->format, g->bytes.text, g->bytes.len);
    if (!rc && !t->unknown_params)
        rc = nrg_recorder_integer(recorder, "model_params", t->params);
    if (!rc && g->has_graph && !t->unknown_operators)
        rc = nrg_recorder_integer(recorder, "model_macs", t->cost.macs);
    return store_failed(g, rc, err);
}

int nrg_run_graph_store_late(const struct nrg_run_graph *g, struct nrg_recorder *recorder,
                             struct nrg_error *err)
{
    if (!g->bytes.len)
        return nrg_fail(err, -EFBIG, g->path, "is larger than 64 MiB");
    int rc = nrg_recorder_graph(recorder, g->path, g->format, g->bytes.text, g->bytes.len);
    return store_failed(g, rc, err);
}

void nrg_run_graph_release(struct nrg_run_graph *g)
{
    nrg_str_release(&g->bytes);
}
