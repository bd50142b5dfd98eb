/*
 * Energies of single steps by CPU time (cputime.h), for their median and spread: a slot's energy
 * goes to its steps by the time that each was open in it. Which of them waited more than another is
 * not known within a slot.
 */
#include "attribute/cputime/cputime.h"
#include "base/mem.h"

#define LOOK_BACK 8 /* threads whose steps alternate */

int nrg_cpu_steps_add(struct nrg_cpu_steps *seen, uint32_t step, double open_s)
{
    struct nrg_cpu_step new = {.step = step, .open_s = (float)open_s};
    if (!step || !(open_s > 0))
        return 0;
    for (size_t i = seen->n; i-- > 0 && i + LOOK_BACK >= seen->n;) {
        if (seen->items[i].step != step)
            continue;
        seen->items[i].open_s += (float)open_s;
        return 0;
    }
    return nrg_append(&seen->items, &seen->n, &seen->cap, &new, sizeof new);
}

int nrg_cpu_steps_end(struct nrg_cpu_steps *seen, struct nrg_cpu_time *times)
{
    struct nrg_cpu_steps *to = &times->steps;
    int rc = nrg_reserve(&to->items, &to->cap, to->n + seen->n, sizeof *to->items);
    for (size_t i = 0; !rc && i < seen->n; i++) {
        to->items[to->n] = seen->items[i];
        to->items[to->n++].slot = (uint32_t)(times->n_slots - 1);
    }
    seen->n = 0;
    return rc;
}

/* Of all modelled parts together. */
static double slot_energy_j(const struct nrg_engine *e, size_t i)
{
    const struct nrg_cpu_time *t = e->cpu_time;
    double price = 0;
    for (size_t p = 0; p < e->n_parts; p++)
        price += (double)t->price[i * e->n_parts + p];
    return nrg_cpu_slot_own_s(t, i) * price;
}

void nrg_cputime_steps(const struct nrg_engine *e, struct nrg_single_steps *steps)
{
    const struct nrg_cpu_time *t = e->cpu_time;
    uint32_t slot = UINT32_MAX;
    double per_s = 0;
    for (size_t k = 0; t && k < t->steps.n; k++) {
        const struct nrg_cpu_step *at = &t->steps.items[k];
        double open_s = (double)t->slots[at->slot].open_s;
        if (at->slot != slot)
            per_s = open_s > 0 ? slot_energy_j(e, at->slot) / open_s : 0;
        slot = at->slot;
        if (at->step <= steps->n)
            steps->items[at->step - 1].energy_j += per_s * (double)at->open_s;
    }
}
