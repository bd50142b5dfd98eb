/* See layer_runs.h. Windows of one layer in one cycle are known by (track, name). */
#include "record/read/layer_runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/read/cursor.h"
#include "record/read/span_catalog.h"
#include "sensors/channel.h"

struct loader {
    struct nrg_span_catalog catalog;
    struct nrg_layer_run *runs;
    size_t n, cap;
    /* Per track of the catalog: the innermost open run, as its index + 1. */
    size_t *open_of;
    size_t *below; /* per run: the open run around it on its track, as its index + 1 */
    size_t cap_below;
};

static bool is_layer(const struct loader *l, const struct nrg_cursor_row *row)
{
    const struct nrg_span_name *name = nrg_span_catalog_name(&l->catalog, row->cells[NRG_S_NAME]);
    const struct nrg_span_track *track =
        nrg_span_catalog_track(&l->catalog, row->cells[NRG_S_TRACK]);
    return name && track && !strcmp(name->kind, NRG_KIND_LAYER) && !strcmp(track->kind, "log");
}

static size_t *stack_of(struct loader *l, int64_t track)
{
    const struct nrg_span_track *t = nrg_span_catalog_track(&l->catalog, track);
    return &l->open_of[t - l->catalog.tracks];
}

static int begin_layer(struct loader *l, const struct nrg_cursor_row *row)
{
    if (nrg_reserve(&l->runs, &l->cap, l->n + 1, sizeof *l->runs) ||
        nrg_reserve(&l->below, &l->cap_below, l->n + 1, sizeof *l->below))
        return -ENOMEM;
    size_t *top = stack_of(l, row->cells[NRG_S_TRACK]);
    int64_t cycle = row->cells[NRG_S_VALUE];
    l->runs[l->n] = (struct nrg_layer_run){.begin_ns = row->t_ns,
                                           .end_ns = NRG_MISSING,
                                           .cycle = cycle == NRG_MISSING ? 0 : cycle,
                                           .name = row->cells[NRG_S_NAME],
                                           .file = row->series};
    l->below[l->n] = *top;
    *top = ++l->n;
    return 0;
}

static void end_layer(struct loader *l, const struct nrg_cursor_row *row)
{
    size_t *top = stack_of(l, row->cells[NRG_S_TRACK]);
    if (!*top || l->runs[*top - 1].name != row->cells[NRG_S_NAME])
        return;
    struct nrg_layer_run *run = &l->runs[*top - 1];
    int64_t told = row->cells[NRG_S_VALUE];
    run->end_ns = row->t_ns;
    run->duration_ns = told != NRG_MISSING && told > 0 ? told : row->t_ns - run->begin_ns;
    *top = l->below[*top - 1];
}

static int by_file_order(const void *a, const void *b)
{
    const struct nrg_layer_run *x = a, *y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->cycle != y->cycle)
        return x->cycle < y->cycle ? -1 : 1;
    if (x->name != y->name)
        return x->name < y->name ? -1 : 1;
    return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

static int load_rows(struct loader *l, struct nrg_recording *recording)
{
    struct nrg_cursor *cursor = NULL;
    struct nrg_cursor_row row;
    l->open_of = calloc(l->catalog.n_tracks + 1, sizeof *l->open_of);
    int rc = l->open_of ? nrg_cursor_open(recording, 1u << NRG_SPANS, &cursor) : -ENOMEM, more = 0;
    while (!rc && (more = nrg_cursor_next(cursor, &row)) > 0) {
        if (row.n_columns < NRG_S_COLUMNS || !is_layer(l, &row))
            continue;
        if (row.cells[NRG_S_EVENT] == NRG_SPAN_BEGIN)
            rc = begin_layer(l, &row);
        else if (row.cells[NRG_S_EVENT] == NRG_SPAN_END)
            end_layer(l, &row);
    }
    nrg_cursor_free(cursor);
    return rc ? rc : more;
}

/* Layers that never ended have no window. */
static void drop_open(struct loader *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->n; i++)
        if (l->runs[i].end_ns != NRG_MISSING)
            l->runs[kept++] = l->runs[i];
    l->n = kept;
}

int nrg_layer_runs_load(struct nrg_recording *recording, struct nrg_layer_run **runs, size_t *n,
                        struct nrg_error *err)
{
    struct loader l = {0};
    *runs = NULL;
    *n = 0;
    int rc = nrg_span_catalog_load(&l.catalog, recording, err);
    if (rc)
        return rc;
    rc = load_rows(&l, recording);
    if (rc) {
        nrg_fail(err, rc, nrg_recording_path(recording), "cannot read spans: %s", strerror(-rc));
        free(l.runs);
    } else {
        drop_open(&l);
        if (l.n)
            qsort(l.runs, l.n, sizeof *l.runs, by_file_order);
        *runs = l.runs;
        *n = l.n;
    }
    nrg_span_catalog_release(&l.catalog);
    free(l.open_of);
    free(l.below);
    return rc;
}
