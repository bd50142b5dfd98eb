/* See probe.h, and driver.h for what drivers call. */
#include "sensors/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/covers.h"

struct nrg_found *nrg_probe_found(struct nrg_probe *probe, const char *sensor)
{
    if (nrg_reserve(&probe->found, &probe->cap_found, probe->n_found + 1, sizeof *probe->found))
        return NULL;
    struct nrg_found *found = &probe->found[probe->n_found++];
    *found = (struct nrg_found){.driver = probe->driver};
    nrg_copy(found->sensor, sizeof found->sensor, sensor);
    return found;
}

struct nrg_channel *nrg_found_channel(struct nrg_found *found, const char *name,
                                      enum nrg_quantity quantity, enum nrg_kind kind)
{
    if (nrg_reserve(&found->channels, &found->cap_channels, found->n_channels + 1,
                    sizeof *found->channels))
        return NULL;
    struct nrg_channel *channel = &found->channels[found->n_channels++];
    *channel = (struct nrg_channel){
        .quantity = quantity, .kind = kind, .provenance = NRG_MEASURED, .scale = 1};
    nrg_copy(channel->name, sizeof channel->name, name);
    return channel;
}

int nrg_probe_unavailable(struct nrg_probe *probe, const char *what, const char *fix,
                          const char *why, ...)
{
    if (nrg_reserve(&probe->unavailable, &probe->cap_unavailable, probe->n_unavailable + 1,
                    sizeof *probe->unavailable))
        return -ENOMEM;
    struct nrg_unavailable *u = &probe->unavailable[probe->n_unavailable++];
    *u = (struct nrg_unavailable){.driver = probe->driver};
    nrg_copy(u->what, sizeof u->what, what);
    nrg_copy(u->fix, sizeof u->fix, fix ? fix : "");
    va_list ap;
    va_start(ap, why);
    vsnprintf(u->why, sizeof u->why, why, ap);
    va_end(ap);
    return 0;
}

void nrg_sink_poll(struct nrg_sink *sink, unsigned group, size_t first, size_t n,
                   int (*read)(void *state, size_t channel, int64_t *raw), void *state)
{
    int64_t raw[NRG_POLL_MAX], before = nrg_now_ns();
    int faults[NRG_POLL_MAX];
    for (size_t i = 0; i < n; i++) {
        raw[i] = NRG_MISSING;
        faults[i] = read(state, first + i, &raw[i]);
    }
    int64_t after = nrg_now_ns();
    nrg_sink_row(sink, group, before + (after - before) / 2, after - before, raw);
    for (size_t i = 0; i < n; i++)
        nrg_sink_fault(sink, (unsigned)(first + i), faults[i]);
}

int nrg_probe_driver(struct nrg_probe *probe, struct nrg_error *err)
{
    size_t first = probe->n_found;
    int rc = probe->driver->probe(probe, err);
    return rc ? rc : nrg_covers_apply(probe, first, err);
}

static bool is_taken(const struct nrg_probe *probe, size_t before,
                     const struct nrg_channel *channel)
{
    for (size_t f = 0; f < before; f++) {
        const struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; c < found->n_channels; c++)
            if (found->wanted[c] && found->channels[c].quantity == channel->quantity &&
                !strcmp(found->channels[c].name, channel->name))
                return true;
    }
    return false;
}

int nrg_probe_choose(struct nrg_probe *probe)
{
    bool by_name = probe->options && probe->options->only;
    for (size_t f = 0; f < probe->n_found; f++) {
        struct nrg_found *found = &probe->found[f];
        found->wanted = calloc(found->n_channels + 1, sizeof *found->wanted);
        if (!found->wanted)
            return -ENOMEM;
        for (size_t c = 0; c < found->n_channels; c++)
            found->wanted[c] =
                (by_name || !found->hidden) && !is_taken(probe, f, &found->channels[c]);
    }
    return 0;
}

void nrg_probe_forget(struct nrg_probe *probe, size_t first)
{
    while (probe->n_found > first) {
        free(probe->found[--probe->n_found].channels);
        free(probe->found[probe->n_found].wanted);
    }
}

int nrg_probe_drivers(struct nrg_probe *probe, const struct nrg_context *ctx,
                      const struct nrg_driver *const *drivers, struct nrg_error *err)
{
    static const struct nrg_sensor_options defaults;
    int rc = 0;
    *probe = (struct nrg_probe){.ctx = ctx, .options = &defaults};
    for (size_t i = 0; !rc && drivers[i]; i++) {
        probe->driver = drivers[i];
        rc = nrg_probe_driver(probe, err);
    }
    if (!rc && (rc = nrg_probe_choose(probe)))
        nrg_fail(err, rc, NULL, "out of memory");
    if (rc)
        nrg_probe_release(probe);
    return rc;
}

void nrg_probe_release(struct nrg_probe *probe)
{
    nrg_probe_forget(probe, 0);
    free(probe->found);
    free(probe->unavailable);
    *probe = (struct nrg_probe){0};
}
