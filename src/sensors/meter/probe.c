/*
 * From a meter's URI to a sensor: the kinds of byte meters, the keys that all of them have, and
 * probe. Keys that nobody understands are refused, and so are two readers of one serial line or
 * pipe. Nothing is opened here, because opening resets some boards.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/meter/config.h"
#include "sensors/meter/decoders.h"
#include "sensors/meter/internal.h"

static const struct nrg_meter_kind kinds[] = {
    {&nrg_driver_emonpi, &nrg_decoder_emonpi, NRG_PORT_SERIAL, 38400, true},
    {&nrg_driver_exec, &nrg_decoder_text, NRG_PORT_PROGRAM, 0, true},
    {&nrg_driver_file, &nrg_decoder_text, NRG_PORT_FILE, 0, false},
    {&nrg_driver_lines, &nrg_decoder_text, NRG_PORT_SERIAL, 9600, true},
    {&nrg_driver_rpict, &nrg_decoder_rpict, NRG_PORT_SERIAL, 38400, true},
    {&nrg_driver_omegawatt, &nrg_decoder_omegawatt, NRG_PORT_SERIAL, 921600, true},
    {&nrg_driver_waveform, &nrg_decoder_waveform, NRG_PORT_FILE, 0, true},
    {&nrg_driver_waveform_exec, &nrg_decoder_waveform, NRG_PORT_PROGRAM, 0, true},
};

static const struct nrg_meter_kind *find_kind(const char *scheme)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(kinds[i].driver->name, scheme))
            return &kinds[i];
    return NULL;
}

bool nrg_meter_runs_program(const char *text)
{
    char scheme[32];
    snprintf(scheme, sizeof scheme, "%.*s", (int)strcspn(text, ":"), text);
    const struct nrg_meter_kind *kind = find_kind(scheme);
    return kind && kind->port == NRG_PORT_PROGRAM;
}

static const struct nrg_uri_key serial_keys[] = {
    NRG_URI_COUNT("baud", struct nrg_meter_settings, port.baud, 1, 4e6), {0}};
static const struct nrg_uri_key common_keys[] = {
    NRG_URI_DURATION("period", struct nrg_meter_settings, period_ns),
    NRG_URI_DURATION("average", struct nrg_meter_settings, average_ns),
    {0},
};
static const struct nrg_uri_key file_keys[] = {
    NRG_URI_WORD("from", struct nrg_meter_settings, port.from_start, "end", "start"), {0}};

static int read_settings(struct nrg_meter_settings *s, struct nrg_uri *uri, struct nrg_error *err)
{
    *s = (struct nrg_meter_settings){.kind = find_kind(uri->scheme)};
    if (!s->kind)
        return nrg_fail(err, -EINVAL, uri->text, "no meter is called '%s'", uri->scheme);
    bool serial = s->kind->port == NRG_PORT_SERIAL;
    s->port = (struct nrg_port_options){.kind = s->kind->port,
                                        .place = uri->place,
                                        .baud = s->kind->baud,
                                        .from_start = s->kind->from_start};
    int rc = serial ? nrg_uri_read(uri, serial_keys, s, err) : 0;
    if (!rc && serial && !nrg_serial_baud_known(s->port.baud))
        rc =
            nrg_fail(err, -EINVAL, uri->text,
                     "baud=%u: serial lines have no such speed; usual ones are 9600, 38400, 57600, "
                     "115200 and 921600",
                     s->port.baud);
    rc = rc ? rc : nrg_uri_read(uri, common_keys, s, err);
    rc = rc ? rc : nrg_meter_adjust_read(&s->adjust, uri, err);
    return rc || s->kind->port == NRG_PORT_PROGRAM ? rc : nrg_uri_read(uri, file_keys, s, err);
}

int nrg_meter_read_uri(struct nrg_uri *uri, struct nrg_meter_settings *s,
                       struct nrg_meter_field *fields, size_t *n_fields, void **decoder,
                       struct nrg_error *err)
{
    int rc = read_settings(s, uri, err);
    return rc ? rc : nrg_meter_decoder_new(s->kind->decoder, uri, fields, n_fields, decoder, err);
}

/* Two readers of one line would each get half of its bytes. */
static int check_shared(const struct nrg_probe *probe, size_t before,
                        const struct nrg_meter_settings *s, struct nrg_error *err)
{
    struct stat mine, other;
    struct nrg_uri uri;
    if (s->kind->port == NRG_PORT_PROGRAM ||
        nrg_root_stat(&probe->ctx->root, s->port.place, &mine) || S_ISREG(mine.st_mode))
        return 0;
    for (size_t f = 0; f < before; f++) {
        const struct nrg_meter_kind *kind = find_kind(probe->found[f].driver->name);
        if (!kind || kind->port == NRG_PORT_PROGRAM ||
            nrg_uri_parse(&uri, probe->found[f].locator, NULL) ||
            nrg_root_stat(&probe->ctx->root, uri.place, &other))
            continue;
        if (other.st_dev == mine.st_dev && other.st_ino == mine.st_ino)
            return nrg_fail(err, -EBUSY, s->port.place,
                            "is read by another --meter already: give one --meter with all of "
                            "its nodes (node=5,8)");
    }
    return 0;
}

static void name_sensor(char *sensor, size_t size, const struct nrg_uri *uri)
{
    size_t scheme = strlen(uri->scheme), len = strlen(uri->place);
    size_t room = size - scheme - 6;
    nrg_copy(sensor, size, uri->scheme);
    snprintf(sensor + scheme, size - scheme, ":%s%s", len > room ? "..." : "",
             uri->place + (len > room ? len - room : 0));
}

static int add_found(struct nrg_probe *probe, struct nrg_uri *uri,
                     const struct nrg_meter_settings *s, const struct nrg_meter_field *fields,
                     size_t n_fields, struct nrg_error *err)
{
    char sensor[sizeof probe->found->sensor];
    name_sensor(sensor, sizeof sensor, uri);
    struct nrg_found *found = nrg_probe_found(probe, sensor);
    if (!found)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    nrg_copy(found->locator, sizeof found->locator, uri->given);
    found->required = true;
    int rc = nrg_meter_channels(found, uri, fields, n_fields, s->period_ns, err);
    if (!rc)
        rc = nrg_uri_finish(uri, err);
    if (!rc)
        rc = nrg_port_check(probe->ctx, &s->port, err);
    return rc ? rc : check_shared(probe, probe->n_found - 1, s, err);
}

int nrg_meter_probe(struct nrg_probe *probe, struct nrg_error *err)
{
    struct nrg_meter_field fields[NRG_METER_FIELDS] = {0};
    struct nrg_uri *uri = malloc(sizeof *uri);
    struct nrg_meter_settings settings;
    size_t n_fields;
    void *decoder = NULL;
    if (!uri)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    int rc = nrg_uri_join(uri, probe->driver->name, probe->argument, err);
    rc = rc ? rc : nrg_meter_expand(uri, probe->options->config, err);
    rc = rc ? rc : nrg_meter_find_devices(uri, err);
    rc = rc ? rc : nrg_meter_read_uri(uri, &settings, fields, &n_fields, &decoder, err);
    free(decoder);
    rc = rc ? rc : add_found(probe, uri, &settings, fields, n_fields, err);
    free(uri);
    return rc;
}
