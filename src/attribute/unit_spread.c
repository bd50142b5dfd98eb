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
#include "base/stats.h"

#define SLOW          2 /* times the median */
#define FEWEST_STEPS  5 /* that the rule is applied to */
#define MIDDLE_HALF_Q 4

struct single {
    int64_t number;
    bool rank;
    double energy_j, time_s;
};

static int by_number(const void *a, const void *b)
{
    const struct single *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static size_t collect(const struct nrg_view_rows *v, const struct nrg_unit_use *unit,
                      struct single *singles)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++) {
        const struct nrg_attribution_row *row = &v->rows[i];
        if (strcmp(row->kind, unit->kind) || strcmp(row->name, unit->name) || !row->calls ||
            row->number == NRG_MISSING || isnan(row->energy_j) || nrg_row_inside_own_kind(v, i))
            continue;
        double calls = (double)row->calls;
        singles[n++] = (struct single){row->number, nrg_row_is_rank(row), row->energy_j / calls,
                                       row->time_s / calls};
    }
    return n;
}

/* Steps of one number on several ranks are one step of the job. */
static size_t join_ranks(struct single *singles, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct single *last = kept ? &singles[kept - 1] : NULL;
        if (!last || !last->rank || !singles[i].rank || last->number != singles[i].number) {
            singles[kept++] = singles[i];
            continue;
        }
        last->energy_j += singles[i].energy_j;
        last->time_s = fmax(last->time_s, singles[i].time_s);
    }
    return kept;
}

static size_t count_first(const struct single *singles, size_t n, double *room)
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

static struct nrg_unit_spread spread_of(const struct single *singles, size_t n, size_t first,
                                        double *room)
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

int nrg_unit_spread(const struct nrg_view_rows *v, int skip, struct nrg_unit_use *unit)
{
    struct single *singles = calloc(v->n + 1, sizeof *singles);
    double *room = calloc(v->n + 1, sizeof *room);
    if (singles && room) {
        size_t n = collect(v, unit, singles);
        qsort(singles, n, sizeof *singles, by_number);
        n = join_ranks(singles, n);
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

int nrg_attribution_spread(struct nrg_attribution *a, struct nrg_recording *recording,
                           const struct nrg_attribution_options *options, int skip,
                           struct nrg_error *err)
{
    struct nrg_attribution_options how = *options;
    struct nrg_attribution steps;
    struct nrg_unit_use *unit = NULL;
    for (size_t i = 0; i < a->n_units; i++)
        if (!strcmp(a->units[i].kind, NRG_KIND_STEP) && a->units[i].amount > 1)
            unit = unit ? unit : &a->units[i];
    if (!unit)
        return 0;
    how.by = NRG_BY_STEP;
    int rc = nrg_attribution_make(&steps, recording, &how, err);
    if (rc)
        return rc;
    for (; !rc && unit < a->units + a->n_units; unit++)
        if (!strcmp(unit->kind, NRG_KIND_STEP))
            rc = nrg_unit_spread(&(struct nrg_view_rows){.rows = steps.rows, .n = steps.n_rows},
                                 skip, unit);
    nrg_attribution_release(&steps);
    return rc ? nrg_fail(err, rc, NULL, "out of memory") : 0;
}
