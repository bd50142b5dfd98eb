/* See compare.h. */
#include "compare/compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LEAST_RUNS 2 /* of a side that have a row */

const char *const nrg_compare_names[NRG_COMPARE_QUANTITIES] = {
    [NRG_COMPARE_ENERGY] = "energy",
    [NRG_COMPARE_PROGRAM] = "program_energy",
    [NRG_COMPARE_DURATION] = "duration",
    [NRG_COMPARE_POWER] = "mean_power",
    [NRG_COMPARE_ENERGY_DELAY] = "energy_delay",
    [NRG_COMPARE_MEMORY] = "peak_memory",
};

/* ---- quantities of whole runs ---- */

static struct nrg_compare_value observe(const struct nrg_compare_run *run,
                                        enum nrg_compare_quantity what)
{
    struct nrg_compare_value o = {.low = 1, .high = 1, .t_ns = run->begin_ns};
    switch (what) {
    case NRG_COMPARE_PROGRAM:
        o.value = run->program_j;
        o.own = run->own;
        o.low = run->program_low;
        o.high = run->program_high;
        return o;
    case NRG_COMPARE_DURATION:
        o.value = run->duration_s;
        return o;
    case NRG_COMPARE_MEMORY:
        o.value = run->peak_memory_bytes;
        return o;
    case NRG_COMPARE_POWER:
        o.value = run->energy_j / run->duration_s;
        break;
    case NRG_COMPARE_ENERGY_DELAY:
        o.value = run->energy_j * run->duration_s;
        break;
    default:
        o.value = run->energy_j;
    }
    o.own = run->own;
    o.low = run->low;
    o.high = run->high;
    return o;
}

static int compare_quantity(struct nrg_comparison *c, enum nrg_compare_quantity what,
                            double confidence)
{
    struct nrg_sample samples[2];
    struct nrg_arena memory = {0};
    for (int s = 0; s < 2; s++) {
        const struct nrg_compare_side *side = &c->sides[s];
        struct nrg_compare_value *items = nrg_arena_array(&memory, side->n_runs + 1, sizeof *items);
        for (size_t i = 0; items && i < side->n_runs; i++)
            items[i] = observe(&side->runs[i], what);
        samples[s] = (struct nrg_sample){items, side->n_runs};
    }
    int rc = memory.failed
                 ? -ENOMEM
                 : nrg_effect_find(&c->quantities[what], samples[0], samples[1], confidence);
    nrg_arena_release(&memory);
    return rc;
}

/* ---- rows ---- */

static size_t runs_with(const struct nrg_compare_part *part)
{
    size_t n = 0;
    for (size_t i = 0; i < part->n; i++)
        n += part->items[i].value > 0;
    return n;
}

/* The part's values with their runs' times. */
static struct nrg_sample sample_of(struct nrg_arena *memory, const struct nrg_compare_part *part,
                                   const struct nrg_compare_side *side)
{
    struct nrg_compare_value *items = nrg_arena_array(memory, part->n + 1, sizeof *items);
    for (size_t i = 0; items && i < part->n; i++) {
        items[i] = part->items[i];
        items[i].t_ns = side->runs[i].begin_ns;
    }
    return (struct nrg_sample){items, items ? part->n : 0};
}

static int compare_row(struct nrg_comparison *c, const struct nrg_compare_part *a,
                       const struct nrg_compare_part *b, double confidence)
{
    struct nrg_arena memory = {0};
    struct nrg_compare_row *row = &c->rows[c->n_rows];
    struct nrg_sample of_a = sample_of(&memory, a, &c->sides[0]);
    struct nrg_sample of_b = sample_of(&memory, b, &c->sides[1]);
    int rc = memory.failed ? -ENOMEM : nrg_effect_find(&row->effect, of_a, of_b, confidence);
    row->kind = a->kind;
    row->name = a->name;
    row->p_adjusted = NAN;
    c->n_rows += !rc;
    nrg_arena_release(&memory);
    return rc;
}

static int compare_rows(struct nrg_comparison *c, double confidence)
{
    const struct nrg_compare_side *a = &c->sides[0], *b = &c->sides[1];
    int rc = 0;
    c->rows = nrg_calloc(a->n_parts + 1, sizeof *c->rows);
    if (!c->rows)
        return -ENOMEM;
    for (size_t i = 0; !rc && i < a->n_parts; i++) {
        const struct nrg_compare_part *other = nrg_compare_side_find(b, &a->parts[i]);
        if (other && runs_with(&a->parts[i]) >= LEAST_RUNS && runs_with(other) >= LEAST_RUNS)
            rc = compare_row(c, &a->parts[i], other, confidence);
    }
    return rc;
}

static double part_mean_j(const struct nrg_compare_part *part)
{
    double sum = 0;
    for (size_t i = 0; i < part->n; i++)
        sum += part->items[i].value;
    return sum / (double)runs_with(part);
}

static int find_only(struct nrg_comparison *c)
{
    c->only = calloc(c->sides[0].n_parts + c->sides[1].n_parts + 1, sizeof *c->only);
    if (!c->only)
        return -ENOMEM;
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < c->sides[s].n_parts; i++) {
            const struct nrg_compare_part *part = &c->sides[s].parts[i];
            if (!nrg_compare_side_find(&c->sides[!s], part))
                c->only[c->n_only++] =
                    (struct nrg_compare_only){part->kind, part->name, s, part_mean_j(part)};
        }
    return 0;
}

static int by_p(const void *a, const void *b)
{
    const struct nrg_compare_row *const *x = a, *const *y = b;
    double p = (*x)->effect.p_value, q = (*y)->effect.p_value;
    return p < q ? -1 : p > q;
}

/* Holm: the smallest of m p-values counts m times, the next m - 1 times, and none less than the one
 * before. */
static int adjust(struct nrg_comparison *c)
{
    struct nrg_compare_row **order = nrg_calloc(c->n_rows + 1, sizeof(struct nrg_compare_row *));
    size_t m = 0;
    double largest = 0;
    if (!order)
        return -ENOMEM;
    for (size_t i = 0; i < c->n_rows; i++)
        if (!isnan(c->rows[i].effect.p_value))
            order[m++] = &c->rows[i];
    qsort(order, m, sizeof *order, by_p);
    for (size_t i = 0; i < m; i++) {
        largest = fmax(largest, fmin(1, order[i]->effect.p_value * (double)(m - i)));
        order[i]->p_adjusted = largest;
    }
    free(order);
    return 0;
}

/* ---- all of it ---- */

int nrg_comparison_make(struct nrg_comparison *c, struct nrg_compare_side sides[2],
                        const struct nrg_compare_options *options, struct nrg_error *err)
{
    double confidence = options->confidence > 0 ? options->confidence : 0.95;
    int rc = 0;
    *c = (struct nrg_comparison){.sides = {sides[0], sides[1]},
                                 .confidence = confidence,
                                 .detect = options->detect > 0 ? options->detect : 0.01};
    sides[0] = sides[1] = (struct nrg_compare_side){0};
    for (int what = 0; !rc && what < NRG_COMPARE_QUANTITIES; what++)
        rc = compare_quantity(c, (enum nrg_compare_quantity)what, confidence);
    if (!rc)
        rc = compare_rows(c, confidence);
    if (!rc)
        rc = find_only(c);
    if (!rc)
        rc = adjust(c);
    if (!rc)
        rc = nrg_compare_check(c);
    c->needed = nrg_runs_needed(&c->quantities[NRG_COMPARE_ENERGY], c->detect, confidence);
    return rc ? nrg_fail(err, rc, NULL, "out of memory") : 0;
}

void nrg_comparison_release(struct nrg_comparison *c)
{
    nrg_compare_side_release(&c->sides[0]);
    nrg_compare_side_release(&c->sides[1]);
    free(c->rows);
    free(c->only);
    free(c->warnings.items);
    free(c->refusals.items);
    *c = (struct nrg_comparison){0};
}
