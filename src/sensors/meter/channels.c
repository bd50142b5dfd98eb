/*
 * See meter/channels.h. A meter outside the machine measures all that the machine's own sensors
 * measure, and more. So all its powers and energies are wide: shown beside the sum of the parts and
 * never added to them. One of them can be the machine's plug: it is called `wall` and covers the
 * processors, so that nothing is estimated beside it.
 */
#include "sensors/meter/channels.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"

#define WALL          "wall"
#define MOST_SCALE    1e6
#define MOST_OFFSET_W 1e6

enum cover { COVER_DEFAULT, COVER_NONE, COVER_MACHINE, COVER_NAMED };

struct place {
    enum cover cover;
    char name[32];              /* of the fields that are the wall */
    enum nrg_quantity quantity; /* that the wall can have: power, or energy without any power */
    size_t n_names;             /* distinct names among the fields of that quantity */
};

static bool is_energy(const struct nrg_meter_field *field)
{
    return field->quantity == NRG_POWER ||
           (field->quantity == NRG_ENERGY && field->kind == NRG_COUNTER);
}

static bool seen_before(const struct nrg_meter_field *fields, size_t i, enum nrg_quantity quantity)
{
    for (size_t k = 0; k < i; k++)
        if (fields[k].quantity == quantity && !strcmp(fields[k].name, fields[i].name))
            return true;
    return false;
}

static void count_names(struct place *place, const struct nrg_meter_field *fields, size_t n)
{
    static const enum nrg_quantity order[] = {NRG_POWER, NRG_ENERGY};
    for (size_t q = 0; !place->n_names && q < 2; q++) {
        place->quantity = order[q];
        for (size_t i = 0; i < n; i++) {
            if (fields[i].quantity != order[q] || seen_before(fields, i, order[q]))
                continue;
            if (!place->n_names++ && place->cover != COVER_NAMED)
                nrg_copy(place->name, sizeof place->name, fields[i].name);
        }
    }
}

static int parse_covers(struct place *place, struct nrg_uri *uri,
                        const struct nrg_meter_field *fields, size_t n, struct nrg_error *err)
{
    const char *text = nrg_uri_text(uri, "covers"), *colon = text ? strchr(text, ':') : NULL;
    if (!text)
        return 0;
    if (!strcmp(text, "none") || !strcmp(text, "machine")) {
        place->cover = *text == 'n' ? COVER_NONE : COVER_MACHINE;
        return 0;
    }
    if (!colon || strcmp(colon, ":machine"))
        return nrg_fail(err, -EINVAL, uri->text,
                        "covers= wants machine, none or NAME:machine, not '%s'", text);
    place->cover = COVER_NAMED;
    if ((size_t)(colon - text) < sizeof place->name) /* else it is no field's */
        snprintf(place->name, sizeof place->name, "%.*s", (int)(colon - text), text);
    for (size_t i = 0; i < n; i++)
        if (is_energy(&fields[i]) && !strcmp(fields[i].name, place->name))
            return 0;
    return nrg_fail(err, -EINVAL, uri->text, "covers=: the meter has no power called '%s'",
                    place->name);
}

/* The unit of raw values: fine enough for any meter, and any value fits 63 bits. */
static double step_of(const struct nrg_meter_field *field)
{
    if (field->kind == NRG_COUNTER)
        return field->resolution > 0 ? field->resolution : 1e-3;
    return field->quantity == NRG_TEMPERATURE ? 1e-3 : 1e-6;
}

static int add_meter_channel(struct nrg_found *found, const struct nrg_uri *uri,
                             const struct nrg_meter_field *field, bool wall, int64_t period_ns)
{
    struct nrg_channel *c =
        nrg_found_channel(found, wall ? WALL : field->name, field->quantity, field->kind);
    if (!c)
        return -ENOMEM;
    snprintf(c->source, sizeof c->source, "%.90s, %s", uri->text, field->name);
    c->scale = step_of(field);
    c->resolution = field->resolution;
    c->wrap = field->kind == NRG_COUNTER && field->resolution > 0 ? field->wrap : 0;
    c->update_ns = period_ns;
    c->wide = is_energy(field);
    c->covers_cpu = wall;
    return 0;
}

static int add_sum(struct nrg_found *found, const struct nrg_uri *uri, int64_t period_ns)
{
    const struct nrg_meter_field sum = {
        .name = "sum of its powers", .quantity = NRG_POWER, .kind = NRG_GAUGE};
    int rc = add_meter_channel(found, uri, &sum, true, period_ns);
    if (!rc)
        found->channels[found->n_channels - 1].provenance = NRG_DERIVED;
    return rc;
}

int nrg_meter_channels(struct nrg_found *found, struct nrg_uri *uri,
                       const struct nrg_meter_field *fields, size_t n_fields, int64_t period_ns,
                       struct nrg_error *err)
{
    struct place place = {0};
    int rc = parse_covers(&place, uri, fields, n_fields, err);
    if (rc)
        return rc;
    count_names(&place, fields, n_fields);
    bool one = place.cover == COVER_NAMED || (place.n_names == 1 && place.cover != COVER_NONE);
    bool sum = place.cover == COVER_MACHINE && place.n_names > 1;
    if (sum && place.quantity != NRG_POWER)
        return nrg_fail(err, -EINVAL, uri->text,
                        "covers=machine: counters are not added up; covers=NAME:machine says "
                        "which is the machine's");
    for (size_t i = 0; !rc && i < n_fields; i++)
        rc = add_meter_channel(found, uri, &fields[i],
                               one && is_energy(&fields[i]) && !strcmp(fields[i].name, place.name),
                               period_ns);
    if (!rc && sum)
        rc = add_sum(found, uri, period_ns);
    return rc ? nrg_fail(err, rc, uri->text, "out of memory") : 0;
}

static int64_t to_raw(double value, double scale)
{
    double raw = value / scale;
    return fabs(raw) < 9e18 ? (int64_t)llround(raw) : NRG_MISSING; /* NAN is not less */
}

void nrg_meter_raw(const struct nrg_found *found, const struct nrg_meter_reading *reading,
                   int64_t *raw)
{
    double sum = 0;
    for (size_t i = 0; i < found->n_channels; i++) {
        const struct nrg_channel *c = &found->channels[i];
        double value = i < reading->n_values ? reading->values[i] : sum;
        raw[i] = to_raw(value, c->scale);
        if (c->quantity == NRG_POWER && i < reading->n_values)
            sum += value;
    }
}

/* "-200ms" too: a meter whose clock is ahead. Raw samples have phase= and shift= instead. */
static int read_delay(struct nrg_uri *uri, int64_t *delay_ns, struct nrg_error *err)
{
    if (!strncmp(uri->scheme, "waveform", 8))
        return 0;
    const char *text = nrg_uri_text(uri, "delay");
    bool ahead = text && *text == '-';
    if (text && nrg_parse_duration_ns(text + ahead, delay_ns))
        return nrg_fail(err, -EINVAL, uri->text,
                        "delay= wants a duration such as 200ms or -1.5s, not '%.40s'", text);
    if (ahead)
        *delay_ns = -*delay_ns;
    return 0;
}

int nrg_meter_adjust_read(struct nrg_meter_adjust *a, struct nrg_uri *uri, struct nrg_error *err)
{
    static const struct nrg_uri_key keys[] = {
        NRG_URI_NUMBER("scale", struct nrg_meter_adjust, scale, -MOST_SCALE, MOST_SCALE),
        NRG_URI_NUMBER("offset", struct nrg_meter_adjust, offset_w, -MOST_OFFSET_W, MOST_OFFSET_W),
        {0},
    };
    *a = (struct nrg_meter_adjust){.scale = 1};
    int rc = nrg_uri_read(uri, keys, a, err);
    if (!rc)
        rc = read_delay(uri, &a->delay_ns, err);
    if (!rc && a->scale == 0)
        rc = nrg_fail(err, -EINVAL, uri->text, "scale=0 would make every value 0");
    return rc;
}

void nrg_meter_adjust_apply(const struct nrg_meter_adjust *a, const struct nrg_found *found,
                            const struct nrg_meter_reading *reading, double *to,
                            struct nrg_meter_reading *adjusted)
{
    *adjusted = *reading;
    adjusted->values = to;
    adjusted->sent_ns -= a->delay_ns;
    for (size_t i = 0; i < reading->n_values && i < found->n_channels; i++) {
        enum nrg_quantity quantity = found->channels[i].quantity;
        to[i] = reading->values[i];
        if (quantity == NRG_POWER || quantity == NRG_ENERGY)
            to[i] *= a->scale;
        if (quantity == NRG_POWER)
            to[i] += a->offset_w;
    }
}
