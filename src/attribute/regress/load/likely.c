/*
 * Powers that classes can have. What a step does between its layers lasts as long in every step, so
 * that its time counts steps, and energies of calls of the layers (calls.c) look like those of that
 * time as well: at a kilowatt, on a machine that never draws more than some tens of watts. So
 * powers are expected to be within some times of what the machine draws while it works. Readings
 * that know a power overrule that; those that can't tell it from something else do not.
 */
#include <math.h>

#include "attribute/regress/internal.h"

#define TIMES  5.0 /* what it draws: one deviation */
#define ROUNDS 3

double nrg_regress_working_w(const struct nrg_regress *r)
{
    double idle_w = isnan(r->options.idle_w) ? 0 : r->options.idle_w, sum = 0, weighed = 0;
    struct nrg_observer observer;
    struct nrg_observation seen;
    nrg_observer_init(&observer, &r->options);
    while (nrg_observe(&observer, &seen)) {
        double length_s = (double)(seen.to_ns - seen.from_ns) / 1e9;
        double w = r->options.timeline->is_gauge ? seen.y : seen.y / length_s;
        if (!seen.usable || !(length_s > 0) || !(w > idle_w))
            continue;
        sum += (w - idle_w) * length_s;
        weighed += (w - idle_w) * (w - idle_w) * length_s;
    }
    return sum > 0 ? weighed / sum : 0;
}

/* One deviation of what is expected of a column; 0: nothing is. Watts are those of CPU time, of
 * which a class that waits has little. */
static double likely_w(const struct nrg_regress *r, size_t column)
{
    const struct nrg_regress_options *o = &r->options;
    size_t class_ = r->class_of[column];
    bool own = !r->is_calls[column] && class_ != o->others_class && class_ != o->workers_class;
    double rate = own ? r->mean_rate[column] : 0;
    return rate > 0 ? TIMES * r->working_w / fmin(rate, 1) : 0;
}

static bool any_is_unlikely(const struct nrg_regress *r, const double *beta, size_t n)
{
    bool any = false;
    for (size_t i = NRG_COLUMN_CLASSES; i < n; i++) {
        double off_w = likely_w(r, i);
        any |= off_w > 0 && beta[i] > off_w;
    }
    return any;
}

/* Adds that, for rows of this variance, in place of what was added for another. */
static void expect(const struct nrg_regress *r, struct nrg_gram *sum, double now, double was)
{
    for (size_t i = NRG_COLUMN_CLASSES; i < sum->n; i++) {
        double off_w = likely_w(r, i), *a = &sum->a[nrg_packed(i, i)];
        *a += off_w > 0 && *a > 0 ? (now - was) / (off_w * off_w) : 0;
    }
}

int nrg_regress_expect_powers(const struct nrg_regress *r, struct nrg_gram *sum, double *beta,
                              double *rest)
{
    double was = 0;
    int rc = 0;
    if (nrg_regress_sees_window(r) ||
        !any_is_unlikely(r, beta, sum->n)) /* idle power is held there */
        return 0;
    for (int round = 0; !rc && round < ROUNDS; round++) {
        double variance = *rest / (double)sum->rows;
        expect(r, sum, variance, was);
        was = variance;
        rc = nrg_regress_powers(r, sum, r->is_calls, beta);
        *rest = rc ? 0 : fmax(nrg_gram_residual(sum, beta), 0);
    }
    expect(r, sum, 0, was);
    return rc;
}
