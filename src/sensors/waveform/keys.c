/*
 * The waveform meter's URI:
 *
 *   waveform:PLACE?format=s16le&channels=2&rate=8000&v=1&i=2&vcal=0.0123&ical=0.0004&phase=1.5
 *
 * Lists (i, ical, phase, shift, ioffset) have one entry per current; a single calibration stands
 * for all. What is missing is taken from the stream where that tells it: a WAV's header, the names
 * in the first line of a CSV, the kernel's description of an ADC (wave_iio.c).
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"
#include "sensors/waveform/internal.h"

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
    const char *text = nrg_uri_text(uri, "i");
    unsigned n = 0;
    keys->set.n_currents = 1;
    keys->i[0] = (struct nrg_wave_column){.index = 1};
    for (const char *at = text; at; n++) {
        size_t len = strcspn(at, ",");
        if (n == NRG_WAVE_CURRENTS)
            return nrg_fail(err, -EINVAL, uri->text, "i= has more than %d currents",
                            NRG_WAVE_CURRENTS);
        int rc = read_column(&keys->i[n], at, len, "i", uri, err);
        if (rc)
            return rc;
        at = at[len] ? at + len + 1 : NULL;
        keys->set.n_currents = n + 1;
    }
    return 0;
}

/* One number per current; one alone stands for all. Keeps what `out` has when not given. */
static int read_list(double *out, const struct nrg_wave_keys *keys, struct nrg_uri *uri,
                     const char *key, double most, struct nrg_error *err)
{
    const char *text = nrg_uri_text(uri, key);
    unsigned n = 0;
    for (const char *at = text; at; n++) {
        size_t len = strcspn(at, ",");
        double value;
        if (n == keys->set.n_currents || nrg_parse_double(at, len, &value) ||
            !(fabs(value) <= most))
            return nrg_fail(err, -EINVAL, uri->text,
                            "%s= wants a number of at most %g per current (%u)", key, most,
                            keys->set.n_currents);
        out[n] = value;
        at = at[len] ? at + len + 1 : NULL;
    }
    for (unsigned c = n; n == 1 && c < keys->set.n_currents; c++)
        out[c] = out[0];
    return 0;
}

static int read_calibration(struct nrg_wave_keys *keys, struct nrg_uri *uri, struct nrg_error *err)
{
    double i_scale[NRG_WAVE_CURRENTS], delay[NRG_WAVE_CURRENTS] = {0};
    double offset[NRG_WAVE_CURRENTS] = {0}, v_scale = 1, v_offset = 0;
    for (unsigned c = 0; c < NRG_WAVE_CURRENTS; c++)
        i_scale[c] = 1;
    int rc = nrg_uri_number(uri, "vcal", -1e9, 1e9, &v_scale, err);
    rc = rc ? rc : nrg_uri_number(uri, "voffset", -1e12, 1e12, &v_offset, err);
    rc = rc ? rc : nrg_uri_number(uri, "mains", 10, 1000, &keys->mains_hz, err);
    rc = rc ? rc : read_list(i_scale, keys, uri, "ical", 1e9, err);
    rc = rc ? rc : read_list(offset, keys, uri, "ioffset", 1e12, err);
    rc = rc ? rc : read_list(delay, keys, uri, "shift", NRG_WAVE_HISTORY / 2.0, err);
    rc = rc ? rc : read_list(keys->phase_deg, keys, uri, "phase", 180, err);
    keys->set.v_scale = v_scale;
    keys->set.v_offset = v_offset;
    for (unsigned c = 0; c < NRG_WAVE_CURRENTS; c++) {
        keys->set.i_scale[c] = i_scale[c];
        keys->set.i_offset[c] = offset[c];
        keys->set.delay[c] = delay[c];
    }
    return rc;
}

/* Names of a raw stream's channels, so that v= and i= can use them. */
static int find_name(struct nrg_wave_column *column, const char *names, const struct nrg_uri *uri,
                     struct nrg_error *err)
{
    unsigned index = 0;
    for (const char *at = names; at && *column->name; index++) {
        size_t len = strcspn(at, ",");
        if (len == strlen(column->name) && !memcmp(at, column->name, len)) {
            column->index = index;
            *column->name = '\0';
        }
        at = at[len] ? at + len + 1 : NULL;
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
    double channels = 2;
    int rc = nrg_uri_number(uri, "channels", 1, NRG_FRAME_CHANNELS, &channels, err);
    if (rc)
        return rc;
    if (!format)
        format = ends_with(uri->place, ".csv") || ends_with(uri->place, ".tsv") ? "csv" : "wav";
    if (!strcmp(format, "wav") || !strcmp(format, "csv")) {
        keys->source = *format == 'w' ? NRG_WAVE_WAV : NRG_WAVE_CSV;
        return 0;
    }
    keys->source = NRG_WAVE_RAW;
    return nrg_sample_frame_parse(&keys->frame, format, (unsigned)channels, err);
}

static int read_rate(struct nrg_wave_keys *keys, struct nrg_uri *uri, struct nrg_error *err)
{
    double rate_hz = 0, cycles = 5;
    const char *time = nrg_uri_text(uri, "time");
    int rc = nrg_uri_number(uri, "rate", 200, 1e8, &rate_hz, err);
    rc = rc ? rc : nrg_uri_number(uri, "cycles", 1, 1000, &cycles, err);
    if (!rc && time) {
        keys->have_time = true;
        rc = read_column(&keys->time, time, strlen(time), "time", uri, err);
    }
    keys->set.rate_hz = rate_hz;
    keys->set.cycles = (unsigned)cycles;
    bool told = keys->source == NRG_WAVE_WAV || (keys->source == NRG_WAVE_CSV && time);
    if (!rc && !told && !(rate_hz > 0))
        rc = nrg_fail(err, -EINVAL, uri->text, "rate= is missing: samples per second%s",
                      keys->source == NRG_WAVE_CSV ? ", or time= with the column of seconds" : "");
    return rc;
}

/* One of two words. */
static int read_choice(struct nrg_uri *uri, const char *key, const char *no, const char *yes,
                       bool *out, struct nrg_error *err)
{
    const char *text = nrg_uri_text(uri, key);
    if (text && strcmp(text, no) && strcmp(text, yes))
        return nrg_fail(err, -EINVAL, uri->text, "%s= wants %s or %s, not '%s'", key, no, yes,
                        text);
    *out = text && !strcmp(text, yes);
    return 0;
}

int nrg_wave_keys_read(struct nrg_wave_keys *keys, struct nrg_uri *uri, struct nrg_error *err)
{
    *keys = (struct nrg_wave_keys){.mains_hz = 50};
    const char *v = nrg_uri_text(uri, "v");
    int rc = read_format(keys, uri, err);
    if (!rc && v)
        rc = read_column(&keys->v, v, strlen(v), "v", uri, err);
    rc = rc ? rc : read_currents(keys, uri, err);
    rc = rc ? rc : read_rate(keys, uri, err);
    rc = rc ? rc : read_calibration(keys, uri, err);
    rc = rc ? rc : read_choice(uri, "dc", "remove", "keep", &keys->set.keep_dc, err);
    rc = rc ? rc : read_choice(uri, "clock", "arrival", "samples", &keys->by_samples, err);
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
