/* See epochs.h. */
#include "record/sampler/epochs.h"

#include <errno.h>
#include <stdlib.h>

int nrg_epochs_init(struct nrg_epochs *e, const struct nrg_found *found)
{
    *e = (struct nrg_epochs){.found = found};
    e->counts = calloc(found->n_channels + 1, sizeof *e->counts);
    e->row = calloc(found->n_channels + 1, sizeof *e->row);
    return e->counts && e->row ? 0 : -ENOMEM;
}

void nrg_epochs_release(struct nrg_epochs *e)
{
    free(e->counts);
    free(e->row);
    *e = (struct nrg_epochs){0};
}

bool nrg_epochs_set(struct nrg_epochs *e, int64_t epoch)
{
    bool anew = e->known && epoch != e->epoch, any = false;
    e->known = true;
    e->epoch = epoch;
    for (size_t c = 0; anew && c < e->found->n_channels; c++) {
        e->counts[c].anew = e->counts[c].seen;
        any |= e->counts[c].seen;
    }
    return any;
}

/* Numbers that only a lying nrgd sends may leave no room for it: they are missing. */
static int64_t write_count(struct nrg_count *count, int64_t raw)
{
    int64_t moved_by = count->anew ? 0 : count->moved_by, below, now;
    if (raw == NRG_MISSING)
        return NRG_MISSING;
    if (count->anew && raw >= count->last_raw &&
        (__builtin_sub_overflow(count->last_raw, 1, &below) ||
         __builtin_sub_overflow(below, raw, &moved_by)))
        return NRG_MISSING;
    if (__builtin_add_overflow(raw, moved_by, &now) || now == NRG_MISSING)
        return NRG_MISSING;
    *count = (struct nrg_count){.seen = true, .last_raw = now, .moved_by = moved_by};
    return now;
}

const int64_t *nrg_epochs_row(struct nrg_epochs *e, unsigned group, const int64_t *raw)
{
    size_t column = 0;
    if (!e->known)
        return raw;
    for (size_t c = 0; c < e->found->n_channels; c++) {
        const struct nrg_channel *channel = &e->found->channels[c];
        if (channel->group != group)
            continue;
        bool counter = channel->kind == NRG_COUNTER;
        e->row[column] = counter ? write_count(&e->counts[c], raw[column]) : raw[column];
        column++;
    }
    return e->row;
}
