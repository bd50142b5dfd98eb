/*
 * Rows of the regression from slots: amounts, the instruments of each, and what is known of their
 * errors (fit.c says why).
 */
#include "llm/internal.h"

#include <math.h>

#define UNIFORM 12.0 /* variance of what is uniform between 0 and 1: one over this */
#define REACH   2    /* slots beside an edge that have a part in its instruments */

/* Mean of the amounts of slots from..to-1 with one more at either end, and with one less. */
static double instrument_weight(size_t i, size_t from, size_t to)
{
    return i > from && i + 1 < to ? 1 : 0.5;
}

static double around(const struct nrg_serving_slot *slots, size_t from, size_t to, size_t term)
{
    double sum = 0;
    for (size_t i = from - 1; i <= to; i++)
        sum += slots[i].amount[term] * instrument_weight(i, from, to);
    return sum;
}

/* Amount per second in the `reach` slots before slot i begins and as many after that. */
static double at_edge(const struct nrg_serving_slot *slots, size_t i, size_t reach, size_t term)
{
    double length_s = (double)(slots[i + reach - 1].end_ns - slots[i - reach].begin_ns) / 1e9;
    double amount = 0;
    for (size_t k = i - reach; k < i + reach; k++)
        amount += slots[k].amount[term];
    return term == NRG_SERVING_IDLE ? 1 : amount / length_s;
}

static struct nrg_serving_doubt slot_doubt(const struct nrg_serving_slot *s, double weight)
{
    return (struct nrg_serving_doubt){weight * s->sequence_s2, weight * s->busy_s2,
                                      weight * s->both_s2};
}

void nrg_serving_add_doubt(struct nrg_serving_doubt *sum, struct nrg_serving_doubt more, double by)
{
    sum->sequence += more.sequence * by;
    sum->busy += more.busy * by;
    sum->both += more.both * by;
}

/* True when slots from..to-1 touch each other, and those beside them. */
static bool is_whole(const struct nrg_serving_slot *slots, size_t n, size_t from, size_t to)
{
    if (from < REACH || to + REACH > n)
        return false;
    for (size_t i = from - REACH + 1; i < to + REACH; i++)
        if (slots[i].begin_ns != slots[i - 1].end_ns)
            return false;
    return true;
}

static void set_row(struct nrg_serving_row *r, const struct nrg_serving_slot *slots, size_t from,
                    size_t to)
{
    for (size_t i = from; i < to; i++) {
        for (size_t c = 0; c < NRG_SERVING_TERMS; c++)
            r->x[c] += slots[i].amount[c];
        r->y += slots[i].energy_j;
        r->steps += slots[i].steps;
        nrg_serving_add_doubt(&r->own, slot_doubt(&slots[i], instrument_weight(i, from, to)), 1);
    }
    r->first = slot_doubt(&slots[from], 0.5);
    r->last = slot_doubt(&slots[to - 1], 0.5);
    r->length_s = (double)(slots[to - 1].end_ns - slots[from].begin_ns) / 1e9;
    for (size_t c = 0; c < NRG_SERVING_TERMS; c++) {
        r->z[c] = around(slots, from, to, c);
        r->step[c] = at_edge(slots, from, 1, c) - at_edge(slots, to, 1, c);
        r->wide_step[c] = at_edge(slots, from, REACH, c) - at_edge(slots, to, REACH, c);
    }
    r->x[NRG_SERVING_IDLE] = r->z[NRG_SERVING_IDLE] = r->length_s;
    for (size_t i = from; i <= to; i += to - from) {
        r->output_edge2 += slots[i].output_step * slots[i].output_step / UNIFORM;
        r->prompt_edge2 += slots[i].prompt_step * slots[i].prompt_step / UNIFORM;
    }
    r->sd = sqrt(r->length_s);
    r->power_w = r->y / r->length_s;
}

void nrg_serving_set_rows(struct nrg_serving_work *w, const struct nrg_serving_slot *slots,
                          size_t n, size_t group)
{
    size_t last = 0;
    for (size_t from = REACH; from + group + REACH <= n;) {
        if (!is_whole(slots, n, from, from + group)) {
            from++;
            continue;
        }
        struct nrg_serving_row *r = &w->rows[w->n++];
        set_row(r, slots, from, from + group);
        r->follows = last == from;
        last = from += group;
    }
}

/* Energy that a delay of a second takes from the end of the row and brings to its begin. */
void nrg_serving_set_late(struct nrg_serving_work *w)
{
    for (size_t i = 0; i < w->n; i++) {
        struct nrg_serving_row *r = &w->rows[i];
        r->x[NRG_SERVING_LATE] = r->z[NRG_SERVING_LATE] = 0;
        for (size_t c = 0; c < NRG_SERVING_TERMS; c++) {
            r->x[NRG_SERVING_LATE] += w->beta[c] * r->step[c];
            r->z[NRG_SERVING_LATE] += w->beta[c] * r->wide_step[c];
        }
        r->x[NRG_SERVING_LATE_READ] = w->beta[NRG_SERVING_PROMPT] * r->step[NRG_SERVING_PROMPT];
        r->z[NRG_SERVING_LATE_READ] =
            w->beta[NRG_SERVING_PROMPT] * r->wide_step[NRG_SERVING_PROMPT];
    }
}
