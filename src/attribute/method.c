/*
 * Which method a domain is attributed by, and why.
 *
 * Spans that come often enough are regressed: over all intervals of the sensor, what they used is
 * known better than from what their edges cut off. The regression itself gives way where
 * integration is more certain (regress/use.c). Spans that come seldom are integrated; if they are
 * short as well, the intervals say how little is known.
 */
#include <math.h>
#include <stdio.h>

#include "attribute/internal.h"

#define MANY_UPDATES  10
#define MIN_INTERVALS 30   /* of the sensor, and three for each kind of span */
#define MIN_CALLS     8    /* of a kind of span, in the mean */
#define MIN_LONG      4    /* the same of long spans */
#define MIN_TOGETHER  2    /* the same where tracks have spans open together */
#define TOGETHER      0.02 /* of the time of spans */

/* Self stretches below this make up half of the time of all. */
static double median_ns(const double ns_by_log2[64])
{
    double all = 0, sum = 0;
    for (int i = 0; i < 64; i++)
        all += ns_by_log2[i];
    for (int i = 0; i < 64 && all > 0; i++) {
        double here = ns_by_log2[i];
        if (sum + here >= all / 2) /* within the octave, in proportion */
            return ldexp(1 + (here > 0 ? (all / 2 - sum) / here : 0), i);
        sum += here;
    }
    return 0;
}

struct amount {
    double classes, stretches;
};

static struct amount amount_of(const struct nrg_engine *e, size_t pool)
{
    struct amount amount = {0};
    for (size_t i = 1; i < e->walk.paths.n; i++) {
        uint64_t stretches = nrg_survey_at(&e->survey, i, pool)->stretches;
        amount.classes += stretches > 0;
        amount.stretches += (double)stretches;
    }
    return amount;
}

bool nrg_method_together(const struct nrg_engine *e, size_t pool)
{
    const struct nrg_cells *c = &e->cells;
    double all_s = 0, beyond_s = 0;
    for (size_t k = 0; k < c->n; k++) {
        double open_s = 0;
        for (size_t i = 0; i < c->n_tracks; i++)
            open_s += c->track_pool[i] == pool ? (double)c->open_s[k * c->n_tracks + i] : 0;
        all_s += open_s;
        beyond_s += fmax(0, open_s - nrg_cells_length_s(c, k));
    }
    return beyond_s > TOGETHER * all_s;
}

static void choose_method(struct nrg_engine *e, struct nrg_part *part)
{
    struct amount amount = amount_of(e, part->pool);
    double width_ns = fmax((double)part->width_ns, part->lag_s * 1e9);
    double updates = median_ns(e->survey.ns_by_log2[part->pool]) / width_ns;
    double intervals = e->out->duration_s * 1e9 / (double)part->width_ns;
    char *why = part->out->why;
    size_t size = sizeof part->out->why;
    double calls = updates >= MANY_UPDATES ? MIN_LONG : MIN_CALLS;
    if (updates >= MANY_UPDATES && nrg_method_together(e, part->pool))
        calls = MIN_TOGETHER;
    part->method = NRG_METHOD_INTEGRATE;
    if (amount.stretches <= 0)
        snprintf(why, size, "there are no spans");
    else if (updates >= MANY_UPDATES && (amount.stretches < calls * amount.classes ||
                                         intervals < fmax(MIN_INTERVALS, 3 * amount.classes)))
        snprintf(why, size, "spans hold %.3g updates of the sensor (median by time)", updates);
    else if (intervals < fmax(MIN_INTERVALS, 3 * amount.classes))
        snprintf(why, size,
                 "spans hold %.2g updates of the sensor, and %.0f intervals are too few "
                 "to tell %.0f kinds of spans apart",
                 updates, intervals, amount.classes);
    else if (amount.stretches < calls * amount.classes)
        snprintf(why, size, "spans hold %.2g updates of the sensor, and come only %.1f times each",
                 updates, amount.stretches / amount.classes);
    else {
        part->method = NRG_METHOD_REGRESS;
        snprintf(why, size,
                 "spans hold %.2g updates of the sensor (median by time), and come %.0f "
                 "times each",
                 updates, amount.stretches / amount.classes);
    }
}

double nrg_method_edge_error(const struct nrg_engine *e, const struct nrg_part *part)
{
    double width_ns = fmax((double)part->width_ns, part->lag_s * 1e9),
           length_ns = median_ns(e->survey.ns_by_log2[part->pool]);
    return length_ns >= MANY_UPDATES * width_ns ? width_ns / length_ns / 3 : INFINITY;
}

void nrg_method_choose(struct nrg_engine *e)
{
    for (size_t p = 0; p < e->n_parts; p++)
        if (e->parts[p].method == NRG_METHOD_AUTO)
            choose_method(e, &e->parts[p]);
}
