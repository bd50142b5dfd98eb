/*
 * Fields of a meter to channels, and the meter's place in the tree of channels (meter.h).
 *
 * A meter outside the machine sees more than the machine's own sensors, and they are parts of
 * what it sees: all its powers and energies are wide, shown beside the sum of the parts and never
 * added to them. One of them can be the machine's plug: it is called `wall` and covers the
 * processors, so that nothing is estimated beside it.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/meter/driver.h"

#define WALL "wall"

enum cover { COVER_DEFAULT, COVER_NONE, COVER_MACHINE, COVER_NAMED };

struct place {
    enum cover cover;
    char name[32];              /* of the fields that are the wall */
    enum nrg_quantity quantity; /* of those that can be: power, or energy where there is none */
    size_t n_names;             /* of these, distinct */
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
    snprintf(place->name, sizeof place->name, "%.*s", (int)(colon - text), text);
    for (size_t i = 0; i < n; i++)
        if (is_energy(&fields[i]) && !strcmp(fields[i].name, place->name))
            return 0;
    return nrg_fail(err, -EINVAL, uri->text, "covers=: the meter has no power called '%s'",
                    place->name);
}

/* Small enough for any meter, large enough for any value in 63 bits. */
static double step_of(const struct nrg_meter_field *field)
{
    if (field->kind == NRG_COUNTER)
        return field->resolution > 0 ? field->resolution : 1e-3;
    return field->quantity == NRG_TEMPERATURE ? 1e-3 : 1e-6;
}

static int add_channel(struct nrg_found *found, const struct nrg_uri *uri,
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
    int rc = add_channel(found, uri, &sum, true, period_ns);
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
        rc = add_channel(found, uri, &fields[i],
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
