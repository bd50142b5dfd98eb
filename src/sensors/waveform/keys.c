/*
 * The waveform meter's URI:
 *
 *   waveform:PLACE?format=s16le&channels=2&rate=8000&v=1&i=2&vcal=0.0123&ical=0.0004&phase=1.5
 *
 * Lists (i, ical, phase, shift, ioffset) have one entry per current; a single calibration applies
 * to all. Missing keys are taken from the stream where it has them: a WAV's header, the names in
 * the first line of a CSV, the kernel's description of an ADC (waveform/iio.c).
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"
#include "sensors/waveform/internal.h"

/* Numbers of the URI are read into it as doubles. */
_Static_assert(sizeof(nrg_wave_real) == sizeof(double), "the host has doubles");

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && !strcasecmp(text + a - b, end);
}

static int read_column(struct nrg_wave_column *column, const char *text, size_t len,
                       const char *key, const struct nrg_uri *uri, struct nrg_error *err)
{
    uint64_t number;
    *column = (struct nrg_wave_column){0};
    if (!len || len >= NRG_WAVE_NAME)
        return nrg_fail(err, -EINVAL, uri->text, "%s= wants the number or name of a column", key);
    if (nrg_parse_u64(text, len, &number)) {
        memcpy(column->name, text, len);
        return 0;
    }
    if (!number || number > NRG_FRAME_CHANNELS)
        return nrg_fail(err, -EINVAL, uri->text, "%s=: columns go from 1 to %d", key,
                        NRG_FRAME_CHANNELS);
    column->index = (unsigned)number - 1;
    return 0;
}

static int read_currents(struct nrg_wave_keys *keys, struct nrg_uri *uri, struct nrg_error *err)
{
    const char *list = nrg_uri_text(uri, "i");
    unsigned n = 0;
    size_t len;
    int rc = 0;
    keys->i[0] = (struct nrg_wave_column){.index = 1};
    for (const char *item; !rc && (item = nrg_next_item(&list, &len)); n++) {
        if (n == NRG_WAVE_CURRENTS)
            return nrg_fail(err, -EINVAL, uri->text, "i= has more than %d currents",
                            NRG_WAVE_CURRENTS);
        rc = read_column(&keys->i[n], item, len, "i", uri, err);
    }
    keys->set.n_currents = n ? n : 1;
    return rc;
}

/* One number per current; a single one applies to all. Without the key `out` stays as it is. */
static int read_list(double *out, const struct nrg_wave_keys *keys, struct nrg_uri *uri,
                     const char *key, double most, struct nrg_error *err)
{
    const char *list = nrg_uri_text(uri, key);
    unsigned n = 0;
    size_t len;
    for (const char *item; (item = nrg_next_item(&list, &len)); n++)
        if (n == keys->set.n_currents || nrg_parse_double(item, len, &out[n]) ||
            !(fabs(out[n]) <= most))
            return nrg_fail(err, -EINVAL, uri->text,
                            "%s= wants a number of at most %g per current (%u)", key, most,
                            keys->set.n_currents);
    for (unsigned c = n; n == 1 && c < keys->set.n_currents; c++)
        out[c] = out[0];
    return 0;
}

static int read_calibration(struct nrg_wave_keys *keys, struct nrg_uri *uri, struct nrg_error *err)
{
    struct nrg_wave_settings *set = &keys->set;
    for (unsigned c = 0; c < NRG_WAVE_CURRENTS; c++)
        set->i_scale[c] = 1;
    int rc = read_list(set->i_scale, keys, uri, "ical", 1e9, err);
    rc = rc ? rc : read_list(set->i_offset, keys, uri, "ioffset", 1e12, err);
    rc = rc ? rc : read_list(set->delay, keys, uri, "shift", NRG_WAVE_HISTORY / 2.0, err);
    return rc ? rc : read_list(keys->phase_deg, keys, uri, "phase", 180, err);
}

/* Finds a column by the names of a raw stream's channels (names=). */
static int find_name(struct nrg_wave_column *column, const char *names, const struct nrg_uri *uri,
                     struct nrg_error *err)
{
    unsigned index = 0;
    size_t len;
    const char *rest = names;
    for (const char *at; *column->name && (at = nrg_next_item(&rest, &len)); index++) {
        if (len == strlen(column->name) && !memcmp(at, column->name, len)) {
            column->index = index;
            *column->name = '\0';
        }
    }
    if (*column->name)
        return nrg_fail(err, -EINVAL, uri->text, "no channel is called '%s'%s%s", column->name,
                        names ? "; there are " : "", names ? names : "");
    return 0;
}

static int check_columns(struct nrg_wave_keys *keys, struct nrg_uri *uri, struct nrg_error *err)
{
    const char *names = nrg_uri_text(uri, "names");
    if (keys->source == NRG_WAVE_CSV)
        return 0;
    int rc = find_name(&keys->v, names, uri, err);
    unsigned last = keys->v.index;
    for (unsigned c = 0; !rc && c < keys->set.n_currents; c++) {
        rc = find_name(&keys->i[c], names, uri, err);
        last = keys->i[c].index > last ? keys->i[c].index : last;
    }
    if (!rc && keys->source == NRG_WAVE_RAW && last >= keys->frame.n)
        rc = nrg_fail(err, -EINVAL, uri->text, "v= and i=: the samples have %u channels",
                      keys->frame.n);
    return rc;
}

static int read_format(struct nrg_wave_keys *keys, struct nrg_uri *uri, struct nrg_error *err)
{
    const char *format = nrg_uri_text(uri, "format");
    if (!format)
        format = ends_with(uri->place, ".csv") || ends_with(uri->place, ".tsv") ? "csv" : "wav";
    if (!strcmp(format, "wav") || !strcmp(format, "csv")) {
        keys->source = *format == 'w' ? NRG_WAVE_WAV : NRG_WAVE_CSV;
        return 0;
    }
    keys->source = NRG_WAVE_RAW;
    return nrg_sample_frame_parse(&keys->frame, format, keys->channels, err);
}

static int read_rate(struct nrg_wave_keys *keys, struct nrg_uri *uri, struct nrg_error *err)
{
    const char *time = nrg_uri_text(uri, "time");
    int rc = time ? read_column(&keys->time, time, strlen(time), "time", uri, err) : 0;
    keys->have_time = time != NULL;
    bool told = keys->source == NRG_WAVE_WAV || (keys->source == NRG_WAVE_CSV && time);
    if (!rc && !told && !(keys->set.rate_hz > 0))
        rc = nrg_fail(err, -EINVAL, uri->text, "rate= is missing: samples per second%s",
                      keys->source == NRG_WAVE_CSV ? ", or time= with the column of seconds" : "");
    return rc;
}

int nrg_wave_keys_read(struct nrg_wave_keys *keys, struct nrg_uri *uri, struct nrg_error *err)
{
    static const struct nrg_uri_key plain[] = {
        NRG_URI_COUNT("channels", struct nrg_wave_keys, channels, 1, NRG_FRAME_CHANNELS),
        NRG_URI_NUMBER("rate", struct nrg_wave_keys, set.rate_hz, 200, 1e8),
        NRG_URI_COUNT("cycles", struct nrg_wave_keys, set.cycles, 1, 1000),
        NRG_URI_NUMBER("vcal", struct nrg_wave_keys, set.v_scale, -1e9, 1e9),
        NRG_URI_NUMBER("voffset", struct nrg_wave_keys, set.v_offset, -1e12, 1e12),
        NRG_URI_NUMBER("mains", struct nrg_wave_keys, mains_hz, 10, 1000),
        NRG_URI_WORD("dc", struct nrg_wave_keys, set.keep_dc, "remove", "keep"),
        NRG_URI_WORD("clock", struct nrg_wave_keys, by_samples, "arrival", "samples"),
        {0},
    };
    *keys =
        (struct nrg_wave_keys){.mains_hz = 50, .channels = 2, .set = {.v_scale = 1, .cycles = 5}};
    const char *v = nrg_uri_text(uri, "v");
    int rc = nrg_uri_read(uri, plain, keys, err);
    rc = rc ? rc : read_format(keys, uri, err);
    if (!rc && v)
        rc = read_column(&keys->v, v, strlen(v), "v", uri, err);
    rc = rc ? rc : read_currents(keys, uri, err);
    rc = rc ? rc : read_rate(keys, uri, err);
    rc = rc ? rc : read_calibration(keys, uri, err);
    return rc ? rc : check_columns(keys, uri, err);
}

static void add_field(struct nrg_meter_field *field, const char *name, unsigned number,
                      enum nrg_quantity quantity, double resolution)
{
    *field = (struct nrg_meter_field){.quantity = quantity, .resolution = resolution};
    field->kind = quantity == NRG_ENERGY ? NRG_COUNTER : NRG_GAUGE;
    nrg_copy(field->name, sizeof field->name, name);
    if (number)
        snprintf(field->name, sizeof field->name, "%s%u", name, number);
}

size_t nrg_wave_fields(struct nrg_meter_field *fields, unsigned n_currents)
{
    size_t n = 0;
    add_field(&fields[n++], "voltage", 0, NRG_VOLTAGE, 0);
    add_field(&fields[n++], "frequency", 0, NRG_CLOCK, 0);
    for (unsigned c = 0; c < n_currents; c++) {
        unsigned number = n_currents > 1 ? c + 1 : 0;
        add_field(&fields[n++], "power", number, NRG_POWER, 0);
        add_field(&fields[n++], "power", number, NRG_ENERGY, 1e-6);
        add_field(&fields[n++], "current", number, NRG_CURRENT, 0);
        add_field(&fields[n++], "apparent", number, NRG_APPARENT, 0);
        add_field(&fields[n++], "power_factor", number, NRG_UTILISATION, 0);
    }
    return n;
}
