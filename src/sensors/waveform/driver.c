/*
 * waveform: and waveform-exec:, the drivers around waveform/meter.c. Before the common probe of
 * meters reads the URI, this adds to it what the machine knows: the layout of an industrial I/O
 * buffer, and that a regular file has its own time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/waveform/internal.h"

/* A finished recording is read faster than it was made. */
static bool is_recording(const struct nrg_root *root, struct nrg_uri *uri)
{
    struct stat st;
    const char *from = nrg_uri_text(uri, "from");
    bool live = nrg_uri_text(uri, "clock") || (from && !strcmp(from, "end"));
    return !live && !nrg_root_stat(root, uri->place, &st) && S_ISREG(st.st_mode);
}

static int probe_waveform(struct nrg_probe *probe, struct nrg_error *err)
{
    const struct nrg_root *root = &probe->ctx->root;
    const char *given = probe->argument;
    char keys[768] = "", argument[NRG_URI_TEXT];
    struct nrg_uri uri;
    int rc = nrg_uri_join(&uri, "waveform", given, err);
    rc = rc ? rc : nrg_wave_iio_keys(root, &uri, keys, sizeof keys, err);
    if (rc < 0)
        return rc;
    if (rc == 1 && is_recording(root, &uri))
        nrg_copy(keys, sizeof keys, "clock=samples");
    const char *more = *keys == '&' ? keys + 1 : keys, *mark = uri.n_query ? "&" : "?";
    if (snprintf(argument, sizeof argument, "%s%s%s", given, *more ? mark : "", more) >=
        (int)sizeof argument)
        return nrg_fail(err, -E2BIG, given, "longer than %d bytes with the channels of the device",
                        NRG_URI_TEXT);
    probe->argument = argument;
    rc = nrg_meter_probe(probe, err);
    probe->argument = given;
    return rc;
}

const struct nrg_driver nrg_driver_waveform = NRG_METER_DRIVER(
    "waveform", "power at the wall from raw samples of voltage and current", probe_waveform);

const struct nrg_driver nrg_driver_waveform_exec = NRG_METER_DRIVER(
    "waveform-exec", "the same from a program's output (arecord, an ADC's tool)", nrg_meter_probe);
