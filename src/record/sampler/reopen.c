/* See reopen.h. */
#include "record/sampler/reopen.h"

#include <errno.h>
#include <string.h>

#include "sensors/registry.h"

bool nrg_can_reopen(const struct nrg_found *found)
{
    return !(found->driver->flags & NRG_ON_REQUEST);
}

/* Rows of the one must fit into the series of the other. Names and paths may have changed. */
static bool is_same_channel(const struct nrg_channel *a, const struct nrg_channel *b)
{
    return a->quantity == b->quantity && a->kind == b->kind && a->group == b->group &&
           memcmp(&a->scale, &b->scale, sizeof a->scale) == 0 && a->wrap == b->wrap;
}

/* By the driver's name: nrgd's two, for descriptors and for readings, open the same sensors, and
 * which of them nrgd has just now may change while it is gone. */
static bool is_same_sensor(const struct nrg_found *a, const struct nrg_found *b)
{
    bool same = !strcmp(a->driver->name, b->driver->name) && !strcmp(a->sensor, b->sensor) &&
                a->n_channels == b->n_channels;
    for (size_t c = 0; same && c < a->n_channels; c++)
        same = is_same_channel(&a->channels[c], &b->channels[c]);
    return same;
}

int nrg_reopen(const struct nrg_context *ctx, const struct nrg_found *lost, struct nrg_probe *probe,
               void **state)
{
    const char *const only[] = {lost->driver->name, NULL};
    const struct nrg_sensor_options options = {.only = only};
    struct nrg_error err;
    int rc = nrg_probe_all(probe, ctx, &options, &err);
    if (rc)
        return rc;
    rc = -ENODEV;
    for (size_t f = 0; rc && f < probe->n_found; f++) {
        struct nrg_found *found = &probe->found[f];
        if (!is_same_sensor(lost, found))
            continue;
        memcpy(found->wanted, lost->wanted, lost->n_channels * sizeof *lost->wanted);
        rc = lost->driver->open(ctx, found, state, &err);
    }
    probe->options = NULL; /* they end with this function */
    if (rc)
        nrg_probe_release(probe);
    return rc;
}
