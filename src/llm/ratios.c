/*
 * All joules of the steady state over what the server counted in it. The interval has both: what
 * the energy may be, and what the counts may be at the two ends.
 *
 * Tokens are counted when a step ends, or a request does, and the page is asked now and then: what
 * is made in one such time may be counted at the wrong side of an end. Requests that run at the
 * begin have used joules before it, those at the end have not used all of theirs: each has come
 * anywhere on its way, so that the number that the joules belong to is uncertain by the sum of as
 * many uniform numbers as run at both ends.
 */
#include <math.h>

#include "llm/internal.h"
#include "llm/serving.h"

#define CONFIDENT 1.96
#define UNIFORM   12.0 /* variance of what is uniform between 0 and 1: one over this */

static struct nrg_serving_value divide(const struct nrg_serving_domain *all, double amount,
                                       double off)
{
    if (!(amount > 0) || !(all->energy_j > 0))
        return (struct nrg_serving_value){NAN, NAN, NAN};
    return (struct nrg_serving_value){all->energy_j / amount, all->low_j / (amount + off),
                                      amount > off ? all->high_j / (amount - off) : INFINITY};
}

void nrg_serving_set_ratios(struct nrg_serving *s)
{
    double length_s = s->end_s - s->begin_s;
    double late = length_s > 0 ? fmin((s->slot_s + s->lump_s) / length_s, 1) : 1;
    double sequences = isnan(s->running) ? 1 : s->running;
    s->per_output = divide(&s->total, s->output_tokens, late * s->output_tokens);
    s->per_request = divide(&s->total, s->requests, CONFIDENT * sqrt(2 * sequences / UNIFORM));
    const struct nrg_serving_value *v = &s->per_output;
    s->output_per_j = (struct nrg_serving_value){1 / v->value, 1 / v->high, 1 / v->low};
}
