/*
 * Joules of single steps: their median and how far they spread, with the first ones apart.
 *
 * The first steps of a program are not like the others: torch.compile compiles, caches fill,
 * memory is fetched. Which these are: from the first one on, all that last more than twice as long
 * as the median step, if they are fewer than half; or as many as the user says. Time decides,
 * because it is known exactly where joules of short steps are not.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/internal.h"
#include "base/mem.h"
#include "base/stats.h"

#define SLOW          2 /* times the median */
#define FEWEST_STEPS  5 /* that the rule is applied to */
#define MIDDLE_HALF_Q 4

static int by_rank(const void *a, const void *b)
{
    const struct nrg_single_step *x = a, *y = b;
    int names = strcmp(x->detail, y->detail);
    if (names || x->number != y->number)
        return names ? names : x->number < y->number ? -1 : 1;
    return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

static int by_number(const void *a, const void *b)
{
    const struct nrg_single_step *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->nth < y->nth ? -1 : x->nth > y->nth;
}

static int by_time(const void *a, const void *b)
{
    const struct nrg_single_step *x = a, *y = b;
    return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

/* Steps of the unit, each with how often its rank had that number before: epochs count anew. */
static size_t collect(const struct nrg_single_steps *steps, const struct nrg_unit_use *unit,
                      struct nrg_single_step *out)
{
    size_t n = 0;
    for (size_t i = 0; i < steps->n; i++)
        if (!strcmp(steps->items[i].name, unit->name) && !isnan(steps->items[i].energy_j))
            out[n++] = steps->items[i];
    qsort(out, n, sizeof *out, by_rank);
    for (size_t i = 1; i < n; i++)
        if (out[i].number == out[i - 1].number && !strcmp(out[i].detail, out[i - 1].detail))
            out[i].nth = out[i - 1].nth + 1;
    return n;
}

/* Steps of one number on several ranks are one step of the job. In order of time. */
static size_t join_ranks(struct nrg_single_step *singles, size_t n)
{
    size_t kept = 0;
    qsort(singles, n, sizeof *singles, by_number);
    for (size_t i = 0; i < n; i++) {
        struct nrg_single_step *last = kept ? &singles[kept - 1] : NULL, *step = &singles[i];
        if (!last || !nrg_detail_is_rank(last->detail) || !nrg_detail_is_rank(step->detail) ||
            last->number != step->number || last->nth != step->nth) {
            singles[kept++] = *step;
            continue;
        }
        last->energy_j += step->energy_j;
        last->time_s = fmax(last->time_s, step->time_s);
    }
    qsort(singles, kept, sizeof *singles, by_time);
    return kept;
}

static size_t count_first(const struct nrg_single_step *singles, size_t n, double *room)
{
    size_t first = 0;
    for (size_t i = 0; i < n; i++)
        room[i] = singles[i].time_s;
    double median_s = nrg_median(room, n);
    while (first < n && singles[first].time_s > SLOW * median_s)
        first++;
    return n >= FEWEST_STEPS && 2 * first < n ? first : 0;
}

/* Of sorted values: the one below which a part of `q` lies, between two by their distance. */
static double quantile(const double *sorted, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t below = (size_t)at;
    double above = below + 1 < n ? sorted[below + 1] : sorted[below];
    return sorted[below] + (at - (double)below) * (above - sorted[below]);
}

/* As rows of single steps (singles.c). */
static void settle(struct nrg_single_step *singles, size_t n)
{
    double less_j = 0, more_j = 0;
    for (size_t i = 0; i < n; i++)
        *(singles[i].energy_j < 0 ? &less_j : &more_j) += singles[i].energy_j;
    for (size_t i = 0; less_j < 0 && less_j + more_j > 0 && i < n; i++)
        singles[i].energy_j *= singles[i].energy_j < 0 ? 0 : 1 + less_j / more_j;
}

static struct nrg_unit_spread spread_of(const struct nrg_single_step *singles, size_t n,
                                        size_t first, double *room)
{
    struct nrg_unit_spread s = {.first = first, .median_j = NAN, .low_j = NAN, .high_j = NAN};
    for (size_t i = 0; i < first; i++) {
        s.first_j += singles[i].energy_j;
        s.first_s += singles[i].time_s;
    }
    for (size_t i = first; i < n; i++) {
        room[s.n++] = singles[i].energy_j;
        s.rest_j += singles[i].energy_j;
        s.rest_s += singles[i].time_s;
    }
    if (!s.n)
        return s;
    s.median_j = nrg_median(room, s.n);
    s.low_j = quantile(room, s.n, 1.0 / MIDDLE_HALF_Q);
    s.high_j = quantile(room, s.n, 1 - 1.0 / MIDDLE_HALF_Q);
    return s;
}

int nrg_unit_spread(const struct nrg_single_steps *steps, int skip, struct nrg_unit_use *unit)
{
    struct nrg_single_step *singles = nrg_calloc(steps->n + 1, sizeof *singles);
    double *room = nrg_calloc(steps->n + 1, sizeof *room);
    if (singles && room) {
        size_t n = join_ranks(singles, collect(steps, unit, singles));
        settle(singles, n);
        size_t given = skip < 0 ? 0 : (size_t)skip;
        size_t first = skip < 0 ? count_first(singles, n, room) : given < n ? given : n;
        unit->spread = spread_of(singles, n, first, room);
        unit->spread.given = skip >= 0;
    }
    int rc = singles && room ? 0 : -ENOMEM;
    free(singles);
    free(room);
    return rc;
}

/* Rows are in no order of time: numbers stand for it. */
int nrg_single_steps_of_rows(struct nrg_single_steps *steps, const struct nrg_view_rows *v)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < v->n; i++) {
        const struct nrg_attribution_row *row = &v->rows[i];
        if (strcmp(row->kind, NRG_KIND_STEP) || !row->calls || row->number == NRG_MISSING ||
            nrg_row_inside_own_kind(v, i))
            continue;
        double calls = (double)row->calls;
        struct nrg_single_step step = {.name = row->name,
                                       .detail = row->detail,
                                       .number = row->number,
                                       .begin_ns = row->number,
                                       .energy_j = row->energy_j / calls,
                                       .time_s = row->time_s / calls};
        rc = nrg_append(&steps->items, &steps->n, &steps->cap, &step, sizeof step);
    }
    return rc;
}

static int spread_units(struct nrg_attribution *a, const struct nrg_single_steps *steps, int skip)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < a->n_units; i++)
        if (!strcmp(a->units[i].kind, NRG_KIND_STEP) && !isnan(a->units[i].energy_j))
            rc = nrg_unit_spread(steps, skip, &a->units[i]);
    return rc;
}

static bool has_steps(const struct nrg_attribution *a)
{
    for (size_t i = 0; i < a->n_units; i++)
        if (!strcmp(a->units[i].kind, NRG_KIND_STEP) && a->units[i].amount > 1)
            return true;
    return false;
}

int nrg_attribution_spread(struct nrg_attribution *a, struct nrg_recording *recording,
                           const struct nrg_attribution_options *options, int skip,
                           struct nrg_error *err)
{
    const struct nrg_rows_memory *memory = a->memory;
    struct nrg_attribution_options how = *options;
    struct nrg_single_steps steps = {0};
    struct nrg_attribution apart;
    if (!has_steps(a))
        return 0;
    if (memory->steps.complete)
        return spread_units(a, &memory->steps, skip) ? nrg_fail(err, -ENOMEM, NULL, "out of memory")
                                                     : 0;
    how.by = NRG_BY_STEP;
    how.per = NULL;
    int rc = nrg_attribution_make(&apart, recording, &how, err);
    if (rc)
        return rc;
    rc = nrg_single_steps_of_rows(&steps,
                                  &(struct nrg_view_rows){.rows = apart.rows, .n = apart.n_rows});
    if (!rc)
        rc = spread_units(a, &steps, skip);
    free(steps.items);
    nrg_attribution_release(&apart);
    return rc ? nrg_fail(err, rc, NULL, "out of memory") : 0;
}
