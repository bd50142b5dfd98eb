/*
 * The units of an attribution: joules per step, token and the like (views/unit_use.c,
 * views/counter_use.c), of all spans, whatever the rows are by. They need rows by path for steps
 * and by name for classes of spans.
 *
 * Rows by step or epoch have nothing inside of them, so the spans in which something was counted
 * are not known there: then counters come from a second attribution, by path.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/internal.h"
#include "base/mem.h"

/* What divides what was counted outside of all spans: the program's part as the report has it;
 * where that is not known, or not of these domains or runs, the total. */
static struct nrg_unit_use whole_use(const struct nrg_engine *e)
{
    const struct nrg_attribution *a = e->out;
    const struct nrg_program *p = &a->summary.program;
    bool program = !isnan(p->energy_j) && !e->options->domains && e->n_windows == 1;
    double low_j = program ? p->low_j : a->total_low_j,
           high_j = program ? p->high_j : a->total_high_j;
    struct nrg_unit_use whole = {.of = program ? "this program" : "the machine",
                                 .of_kind = program ? NRG_OF_PROGRAM : NRG_OF_MACHINE,
                                 .energy_j = program ? p->energy_j : a->total_j,
                                 .low_j = low_j,
                                 .high_j = high_j,
                                 .scaled_low_j = low_j,
                                 .scaled_high_j = high_j,
                                 .time_s = a->duration_s,
                                 .provenance = a->provenance};
    /* The scale of an estimate is in it, which makes no row unresolved. */
    if (isnan(a->scale.low) && high_j - low_j > whole.energy_j)
        whole.flags = NRG_ROW_UNRESOLVED;
    return whole;
}

/* A view whose rows are those of the result where it is the same view. */
static int view_of(struct nrg_view_rows *rows, const struct nrg_engine *e, enum nrg_rows_by by,
                   bool same, struct nrg_arena *arena)
{
    *rows = (struct nrg_view_rows){.rows = e->out->rows, .n = e->out->n_rows};
    return same ? 0 : nrg_view_rows(rows, e, by, arena);
}

/* Joules per step need the modules inside the steps, and counts their classes: some views take them
 * out. */
int nrg_units_make(struct nrg_engine *e)
{
    enum nrg_rows_by by = e->options->by;
    struct nrg_view_rows paths, classes = {0};
    struct nrg_arena arena = {0};
    struct nrg_row_count *outside = NULL;
    struct nrg_unit_sources sources = {.paths = &paths, .classes = &classes, .whole = whole_use(e)};
    bool keeps_steps = by != NRG_BY_MODULE && by != NRG_BY_NAME, later = nrg_units_need_paths(e);
    int rc = view_of(&paths, e, NRG_BY_PATH, keeps_steps, &arena);
    if (!rc && e->counts.n && !later)
        rc = view_of(&classes, e, NRG_BY_NAME, by == NRG_BY_NAME, &arena);
    if (!rc && !later)
        rc = nrg_rows_counted_outside(e, &arena, &outside, &sources.n_outside);
    sources.outside = outside;
    if (!rc)
        rc = nrg_units_find(e->out, &sources, later ? NULL : e->options->per, e->err);
    nrg_arena_release(&arena);
    return rc;
}

/* Takes the counters of another attribution of the same recording. */
static int take_counters(struct nrg_attribution *a, const struct nrg_attribution *from)
{
    struct nrg_rows_memory *memory = a->memory;
    int rc = 0;
    for (size_t i = 0; !rc && i < from->n_units; i++) {
        struct nrg_unit_use unit = from->units[i];
        if (strcmp(unit.kind, NRG_KIND_COUNTER))
            continue;
        unit.name = nrg_arena_copy(&memory->arena, unit.name, strlen(unit.name));
        unit.of = nrg_arena_copy(&memory->arena, unit.of, strlen(unit.of));
        unit.of_kind = nrg_arena_copy(&memory->arena, unit.of_kind, strlen(unit.of_kind));
        rc = memory->arena.failed
                 ? -ENOMEM
                 : nrg_append(&a->units, &a->n_units, &a->cap_units, &unit, sizeof unit);
    }
    return rc;
}

bool nrg_units_need_paths(const struct nrg_engine *e)
{
    const struct nrg_attribution_options *o = e->options;
    bool folds = o->by == NRG_BY_STEP || o->by == NRG_BY_EPOCH;
    return folds && !o->has_range && (e->counts.n || o->per);
}

int nrg_units_by_path(struct nrg_attribution *a, struct nrg_recording *recording,
                      const struct nrg_attribution_options *options, struct nrg_error *err)
{
    struct nrg_attribution_options how = *options;
    struct nrg_attribution paths;
    how.by = NRG_BY_PATH;
    how.buckets = 0;
    int rc = nrg_attribution_make(&paths, recording, &how, err);
    if (rc)
        return rc;
    rc = take_counters(a, &paths);
    nrg_attribution_release(&paths);
    return rc;
}
