/*
 * See registry.h. Selection: name and quantity identify a channel. Drivers stand in order of
 * preference, so the first channel found of a name is used, and the later ones only when the user
 * asks for their driver (--sensor DRIVER). With --sensor nothing is hidden and the order is the
 * user's.
 */
#include "sensors/registry.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/covers.h"
#include "sensors/drivers.h"
#include "sensors/files.h"
#include "sensors/meter/config.h"

/* One line each, so that branches that add one do not conflict. */
/* clang-format off */
const struct nrg_driver *const nrg_drivers[] = {
    &nrg_driver_rapl_perf,
    &nrg_driver_rapl_powercap,
    &nrg_driver_rapl_msr,
    &nrg_driver_nvml,
    &nrg_driver_ina3221,
    &nrg_driver_hwmon,
    &nrg_driver_emonpi,
    &nrg_driver_rpict,
    &nrg_driver_omegawatt,
    &nrg_driver_waveform,
    &nrg_driver_waveform_exec,
    &nrg_driver_replay,
    &nrg_driver_simulate,
    &nrg_driver_exec,
    &nrg_driver_file,
    &nrg_driver_lines,
    &nrg_driver_mqtt,
    &nrg_driver_mqtts,
    &nrg_driver_machine,
    &nrg_driver_process,
    &nrg_driver_estimate, /* last: only where nothing before it covers the processors */
    NULL,
};
/* clang-format on */

static const struct nrg_driver *find_driver(const char *name)
{
    for (size_t i = 0; nrg_drivers[i]; i++)
        if (!strcmp(nrg_drivers[i]->name, name))
            return nrg_drivers[i];
    return NULL;
}

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

static int choose_channels(struct nrg_probe *probe)
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

static int probe_driver(struct nrg_probe *probe, struct nrg_error *err)
{
    size_t first = probe->n_found;
    int rc = probe->driver->probe(probe, err);
    return rc ? rc : nrg_covers_apply(probe, first, err);
}

static int probe_named(struct nrg_probe *probe, const char *option, const char *spec,
                       struct nrg_error *err)
{
    char name[32];
    const char *colon = strchr(spec, ':');
    snprintf(name, sizeof name, "%.*s", colon ? (int)(colon - spec) : (int)strlen(spec), spec);
    probe->driver = find_driver(name);
    probe->argument = colon ? colon + 1 : NULL;
    if (!probe->driver)
        return nrg_fail(err, -EINVAL, option, "no driver is called '%s': see nrg sensors", name);
    return probe_driver(probe, err);
}

/* Two meters may both be called `wall`. Unlike two paths to one chip, they are two sensors. */
static void make_names_unique(struct nrg_probe *probe, size_t first)
{
    size_t n = probe->n_found;
    for (size_t f = first; f < n; f++) {
        struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; c < found->n_channels; c++) {
            struct nrg_channel *channel = &found->channels[c];
            probe->n_found = f; /* only against those before */
            nrg_unique_name(probe, channel->quantity, channel->name, sizeof channel->name);
            probe->n_found = n;
        }
    }
}

static void forget_found(struct nrg_probe *probe, size_t first)
{
    while (probe->n_found > first) {
        free(probe->found[--probe->n_found].channels);
        free(probe->found[probe->n_found].wanted);
    }
}

/* A meter of the configuration may be absent today; its line must be valid all the same. */
static int probe_config_meter(struct nrg_probe *probe, const struct nrg_meter_entry *meter,
                              struct nrg_error *err)
{
    struct nrg_error why = {0};
    size_t first = probe->n_found;
    int rc = probe_named(probe, meter->where, meter->text, &why);
    if (!rc) {
        while (first < probe->n_found)
            probe->found[first++].required = false;
        return 0;
    }
    forget_found(probe, first);
    if (rc == -EINVAL)
        return nrg_fail(err, rc, meter->where, "%s", why.what);
    return nrg_probe_unavailable(probe, meter->text, NULL, "%s (meter of %s)", why.what,
                                 meter->where);
}

/* Meters come first, so that a meter that the user plugged in gets the name `wall`. */
static int probe_meters(struct nrg_probe *probe, struct nrg_error *err)
{
    const struct nrg_sensor_options *o = probe->options;
    int rc = 0;
    for (size_t i = 0; !rc && o->meters && o->meters[i]; i++) {
        size_t first = probe->n_found;
        rc = probe_named(probe, "--meter", o->meters[i], err);
        make_names_unique(probe, first);
    }
    for (size_t i = 0; !rc && o->config && i < o->config->n_meters; i++) {
        size_t first = probe->n_found;
        rc = probe_config_meter(probe, &o->config->meters[i], err);
        make_names_unique(probe, first);
    }
    return rc;
}

int nrg_probe_all(struct nrg_probe *probe, const struct nrg_context *ctx,
                  const struct nrg_sensor_options *options, struct nrg_error *err)
{
    static const struct nrg_sensor_options defaults;
    *probe = (struct nrg_probe){.ctx = ctx, .options = options ? options : &defaults};
    int rc = probe_meters(probe, err);
    probe->argument = NULL;
    if (options && options->only) {
        for (size_t i = 0; !rc && options->only[i]; i++)
            rc = probe_named(probe, "--sensor", options->only[i], err);
    } else {
        for (size_t i = 0; !rc && nrg_drivers[i]; i++) {
            probe->driver = nrg_drivers[i];
            if (!(probe->driver->flags & NRG_ON_REQUEST))
                rc = probe_driver(probe, err);
        }
    }
    if (!rc)
        rc = nrg_covers_check(probe, err);
    if (!rc && (rc = choose_channels(probe)))
        nrg_fail(err, rc, NULL, "out of memory");
    if (rc)
        nrg_probe_release(probe);
    return rc;
}

void nrg_probe_release(struct nrg_probe *probe)
{
    forget_found(probe, 0);
    free(probe->found);
    free(probe->unavailable);
    *probe = (struct nrg_probe){0};
}
