/*
 * waveform: and waveform-exec:, the drivers around wave_meter.c. Before the common probe of
 * meters looks at the URI, what this machine knows better than the user is added to it: the
 * layout of an industrial I/O buffer, and that a regular file has its own time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "sensors/drivers.h"
#include "sensors/waveform/internal.h"

/* A finished recording is read faster than it was made. */
static const char *file_keys(const struct nrg_root *root, const char *argument)
{
    char text[NRG_URI_TEXT];
    struct nrg_uri uri;
    struct stat st;
    if (snprintf(text, sizeof text, "waveform:%s", argument) >= (int)sizeof text ||
        nrg_uri_parse(&uri, text, NULL))
        return "";
    const char *from = nrg_uri_text(&uri, "from");
    bool live = nrg_uri_text(&uri, "clock") || (from && !strcmp(from, "end"));
    if (live || nrg_root_stat(root, uri.place, &st) || !S_ISREG(st.st_mode))
        return "";
    return "clock=samples";
}

static bool has_query(const char *argument)
{
    struct nrg_uri uri;
    char text[NRG_URI_TEXT];
    snprintf(text, sizeof text, "waveform:%s", argument);
    return !nrg_uri_parse(&uri, text, NULL) && uri.n_query;
}

static int probe_waveform(struct nrg_probe *probe, struct nrg_error *err)
{
    const char *given = probe->argument;
    char keys[768] = "", argument[NRG_URI_TEXT];
    if (!given)
        return nrg_meter_probe(probe, err);
    int rc = nrg_wave_iio_keys(&probe->ctx->root, given, keys, sizeof keys, err);
    if (rc < 0)
        return rc;
    if (rc == 1)
        snprintf(keys, sizeof keys, "%s", file_keys(&probe->ctx->root, given));
    const char *more = *keys == '&' ? keys + 1 : keys;
    if (snprintf(argument, sizeof argument, "%s%s%s", given,
                 !*more             ? ""
                 : has_query(given) ? "&"
                                    : "?",
                 more) >= (int)sizeof argument)
        return nrg_fail(err, -E2BIG, given, "longer than %d bytes with the channels of the device",
                        NRG_URI_TEXT);
    probe->argument = argument;
    rc = nrg_meter_probe(probe, err);
    probe->argument = given;
    return rc;
}

const struct nrg_driver nrg_driver_waveform = {
    .name = "waveform",
    .summary = "power at the wall from raw samples of voltage and current",
    .probe = probe_waveform,
    NRG_METER_FUNCTIONS,
};

const struct nrg_driver nrg_driver_waveform_exec = {
    .name = "waveform-exec",
    .summary = "the same from a program's output (arecord, an ADC's tool)",
    .probe = nrg_meter_probe,
    NRG_METER_FUNCTIONS,
};
