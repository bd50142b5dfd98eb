/*
 * See registry.h. Which drivers are asked, and in which order: of two with a channel of one name
 * the first wins (probe.h). With --sensor the order is the user's.
 */
#include "sensors/registry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/secret.h"
#include "sensors/covers.h"
#include "sensors/drivers.h"
#include "sensors/files.h"
#include "sensors/meter/config.h"
#include "sensors/probe.h"

/* One line each, so that branches that add one do not conflict. */
/* clang-format off */
const struct nrg_driver *const nrg_drivers[] = {
    &nrg_driver_rapl_perf,
    &nrg_driver_rapl_powercap,
    &nrg_driver_rapl_msr,
    &nrg_driver_nrgd,
    &nrg_driver_nvml,
    &nrg_driver_amd_smi,
    &nrg_driver_ina3221,
    &nrg_driver_hwmon,
    &nrg_driver_cray, /* after all that see processors and GPUs: which of its parts are new */
    &nrg_driver_dcmi,
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
    &nrg_driver_redfish,
    &nrg_driver_llm,
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

static int probe_driver(struct nrg_probe *probe, const char *option, const char *name,
                        const char *argument, struct nrg_error *err)
{
    probe->driver = find_driver(name);
    probe->argument = argument;
    if (!probe->driver)
        return nrg_fail(err, -EINVAL, option, "no driver is called '%s': see nrg sensors", name);
    return nrg_probe_driver(probe, err);
}

static int probe_named(struct nrg_probe *probe, const char *option, const char *spec,
                       struct nrg_error *err)
{
    char name[32];
    const char *colon = strchr(spec, ':');
    snprintf(name, sizeof name, "%.*s", colon ? (int)(colon - spec) : (int)strlen(spec), spec);
    return probe_driver(probe, option, name, colon ? colon + 1 : NULL, err);
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
    nrg_probe_forget(probe, first);
    if (rc == -EINVAL)
        return nrg_fail(err, rc, meter->where, "%s", why.what);
    char shown[sizeof probe->unavailable->what];
    nrg_mask_uri(shown, sizeof shown, meter->text);
    return nrg_probe_unavailable(probe, shown, NULL, "%s (meter of %s)", why.what, meter->where);
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
    if (!rc && options && options->llm)
        rc = probe_driver(probe, "--llm", nrg_driver_llm.name, options->llm, err);
    probe->argument = NULL;
    if (options && options->only) {
        for (size_t i = 0; !rc && options->only[i]; i++)
            rc = probe_named(probe, "--sensor", options->only[i], err);
    } else {
        for (size_t i = 0; !rc && nrg_drivers[i]; i++) {
            probe->driver = nrg_drivers[i];
            if (!(probe->driver->flags & NRG_ON_REQUEST))
                rc = nrg_probe_driver(probe, err);
        }
    }
    if (!rc)
        rc = nrg_covers_check(probe, err);
    if (!rc && (rc = nrg_probe_choose(probe)))
        nrg_fail(err, rc, NULL, "out of memory");
    if (rc)
        nrg_probe_release(probe);
    return rc;
}
