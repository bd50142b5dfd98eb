/*
 * How the CPU time of a call depends on its length (rates.c), where threads read their CPU times
 * themselves.
 *
 * A thread reads at the first edge of a span after a ms or so. Which calls are between two readings
 * therefore depends on how long they were: two short calls that are always seen together come apart
 * only where the one before was unusually short. What that one used then decides what the two are
 * taken to use, and it is not on a line with the others: a call that is short has not waited, a
 * long one has. So the CPU time of a call is a function of its length that bends at six knots
 * around the mean. Over the run each shape is 0, so that a place's rate is still that of its mean
 * call.
 */
#include <errno.h>
#include <math.h>

#include "attribute/cputime/cputime.h"

#define MAX_COLUMNS      256.0 /* of all places, since the cost goes with the square */
#define SLOTS_PER_COLUMN 20.0
#define ONE_CALL         1.001f /* in a slot, rounded */

/* One call, or a part of one: then its length is known. */
static bool is_one_call(const struct nrg_cpu_entry *entry)
{
    return entry->calls > 0 && entry->calls < ONE_CALL;
}

/* By how much a call is longer than a knot. Knots are where normal lengths have their 3, 10, 26,
 * 50, 74 and 90 % quantiles. */
static double beyond(const struct nrg_cpu_rates *r, size_t column, size_t knot, double call_s)
{
    static const double place[NRG_CPU_KNOTS] = {-2.4, -1.6, -0.8, 0, 0.8, 1.6};
    return fmax(0, call_s - r->call_s[column] - place[knot] * r->off_s[column]);
}

void nrg_cpu_shapes(const struct nrg_cpu_rates *r, size_t column, const struct nrg_cpu_entry *entry,
                    double x[2 + NRG_CPU_KNOTS])
{
    double calls = (double)entry->calls, open_s = (double)entry->open_s;
    x[0] = calls * r->call_s[column];
    x[1] = open_s - x[0];
    for (size_t k = 0; k + 1 < r->n_shapes; k++)
        x[2 + k] = is_one_call(entry) ? calls * (beyond(r, column, k, open_s / calls) -
                                                 r->beyond_s[column * NRG_CPU_KNOTS + k])
                                      : 0;
}

static void add_call(struct nrg_cpu_rates *r, size_t column, double part, double call_s, bool knots)
{
    if (!knots)
        r->off_s[column] += part * fabs(call_s - r->call_s[column]);
    for (size_t k = 0; knots && k < NRG_CPU_KNOTS; k++)
        r->beyond_s[column * NRG_CPU_KNOTS + k] += part * beyond(r, column, k, call_s);
}

/* Means over the calls whose length is known: off_s first, since knots are made of it. `calls`: per
 * place, filled again. */
static void set_means(const struct nrg_cpu_time *t, struct nrg_cpu_rates *r, size_t kind,
                      double *calls, bool knots)
{
    for (size_t c = 0; c < r->n_own; c++)
        calls[c] = 0;
    for (size_t i = 0; i < t->n_slots; i++)
        for (size_t j = t->slots[i].first; j < nrg_cpu_slot_end(t, i); j++) {
            const struct nrg_cpu_entry *entry = &t->entries[j];
            size_t column = r->column_of[entry->place];
            if (t->slots[i].kind != kind || column >= r->n_own || !is_one_call(entry))
                continue;
            double part = (double)entry->calls;
            add_call(r, column, part, (double)entry->open_s / part, knots);
            calls[column] += part;
        }
    size_t n = knots ? NRG_CPU_KNOTS : 1;
    double *mean = knots ? r->beyond_s : r->off_s;
    for (size_t k = 0; k < r->n_own * n; k++)
        mean[k] = calls[k / n] > 0 ? mean[k] / calls[k / n] : 0;
}

int nrg_cpu_shapes_choose(struct nrg_cpu_time *t, struct nrg_cpu_rates *r, size_t kind,
                          double n_slots)
{
    double *calls = nrg_arena_array(&t->memory, r->n_own + 1, sizeof *calls);
    r->off_s = nrg_arena_array(&t->memory, r->n_own + 1, sizeof *r->off_s);
    r->beyond_s = nrg_arena_array(&t->memory, (r->n_own + 1) * NRG_CPU_KNOTS, sizeof *r->beyond_s);
    if (t->memory.failed)
        return -ENOMEM;
    set_means(t, r, kind, calls, false);
    set_means(t, r, kind, calls, true);
    double columns = fmin(MAX_COLUMNS, n_slots / SLOTS_PER_COLUMN);
    r->n_shapes = 1 + NRG_CPU_KNOTS;
    r->shared = columns < (double)(r->n_own * (1 + r->n_shapes));
    return 0;
}
