/*
 * Divides the CPU time of each slot among its places (cputime.h): in proportion to the time that
 * each was open times its rate (rates.c), none with more than there is room for. Where there are no
 * rates, a thread waits outside of its spans rather than inside, as far as that goes.
 */
#include <math.h>

#include "attribute/cputime/cputime.h"

#define ROUNDS       16   /* of filling up; what is left then is shared once more */
#define LEAST_WEIGHT 1e-6 /* of the time: less is the rounding of sums */

struct left {
    struct nrg_cpu_time *times;
    const struct nrg_cpu_slot *slot;
    size_t end;            /* of the entries */
    double cpu_s, weights; /* of those that are not full */
    double outside;        /* weight of the time outside of spans; 0: it is full */
};

static double weight_of(const struct nrg_cpu_time *t, const struct nrg_cpu_slot *slot,
                        const struct nrg_cpu_entry *entry)
{
    const struct nrg_cpu_rates *r = &t->rates[slot->kind];
    size_t column = r->column_of[entry->place];
    if (column == r->n_own)
        return r->rate[column] * (double)entry->open_s;
    double x[2 + NRG_CPU_KNOTS];
    nrg_cpu_shapes(r, column, entry, x);
    double used_s = r->rate[column] * x[0];
    for (size_t k = 0; k < r->n_shapes; k++)
        used_s += r->rate[nrg_cpu_shape(r, column, k)] * x[1 + k];
    return fmax(0, used_s);
}

static void take(struct left *l, double room_s, double weight)
{
    l->cpu_s = fmax(0, l->cpu_s - room_s);
    l->weights -= weight;
}

/* Those that would have more than their room get just that. False: none would. */
static bool fill_up(struct left *l)
{
    double per_weight = l->weights > 0 ? l->cpu_s / l->weights : 0;
    bool any = false;
    for (size_t j = l->slot->first; j < l->end; j++) {
        struct nrg_cpu_entry *entry = &l->times->entries[j];
        double weight = weight_of(l->times, l->slot, entry);
        double room_s = nrg_cpu_room(l->times, l->slot, (double)entry->open_s);
        if (entry->own_s >= 0 || weight * per_weight <= room_s)
            continue;
        entry->own_s = (float)room_s;
        take(l, room_s, weight);
        any = true;
    }
    double room_s = nrg_cpu_room(l->times, l->slot, nrg_cpu_outside_s(l->slot));
    if (l->outside * per_weight > room_s) {
        take(l, room_s, l->outside);
        l->outside = 0;
        any = true;
    }
    return any;
}

/*
 * What is left goes to those that are not full, by their weights. Rates may say that none of these
 * ever works: where the CPU time has no other place, they did, by the time that they were open.
 */
static void share_rest(struct left *l)
{
    double open_s = 0;
    for (size_t j = l->slot->first; j < l->end; j++)
        open_s += l->times->entries[j].own_s < 0 ? (double)l->times->entries[j].open_s : 0;
    bool weighed = l->weights > LEAST_WEIGHT * open_s && l->weights > 0;
    for (size_t j = l->slot->first; j < l->end; j++) {
        struct nrg_cpu_entry *entry = &l->times->entries[j];
        double part = weighed ? weight_of(l->times, l->slot, entry) / l->weights
                              : (double)entry->open_s / open_s;
        if (entry->own_s < 0)
            entry->own_s = open_s > 0 ? (float)(l->cpu_s * part) : 0;
    }
}

static void divide_by_rates(struct nrg_cpu_time *t, size_t i)
{
    const struct nrg_cpu_slot *slot = &t->slots[i];
    const struct nrg_cpu_rates *r = &t->rates[slot->kind];
    struct left l = {.times = t,
                     .slot = slot,
                     .end = nrg_cpu_slot_end(t, i),
                     .cpu_s = fmax(0, (double)slot->cpu_s),
                     .outside = r->rate[r->n - 1] * nrg_cpu_outside_s(slot)};
    l.weights = l.outside;
    for (size_t j = slot->first; j < l.end; j++) {
        l.weights += weight_of(t, slot, &t->entries[j]);
        t->entries[j].own_s = -1; /* not full */
    }
    for (int round = 0; round < ROUNDS && fill_up(&l); round++)
        ;
    share_rest(&l);
}

static void divide_by_time(struct nrg_cpu_time *t, size_t i)
{
    double all_s = (double)t->slots[i].open_s, in_s = nrg_cpu_in_spans(t, &t->slots[i]);
    for (size_t j = t->slots[i].first; j < nrg_cpu_slot_end(t, i); j++)
        t->entries[j].own_s = all_s > 0 ? (float)(in_s * (double)t->entries[j].open_s / all_s) : 0;
}

void nrg_cpu_divide(struct nrg_cpu_time *t)
{
    for (size_t i = 0; i < t->n_slots; i++) {
        if (t->rates[t->slots[i].kind].n)
            divide_by_rates(t, i);
        else
            divide_by_time(t, i);
    }
}
