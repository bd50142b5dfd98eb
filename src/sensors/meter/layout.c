/* See meter/layout.h. The text is a list of specs (meter/spec.h); names fill in what it leaves out.
 */
#include "sensors/meter/layout.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define KEY   "layout="
#define BLANK " \t"
#define NAME  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./#"

static const struct nrg_sample_type usual_type = {
    .bytes = 2, .bits = 16, .repeat = 1, .is_signed = true};

/* A name that begins like this, followed by nothing, a digit or (word) anything. */
static const struct {
    const char *begin;
    bool word;
    const char *unit;
    double scale; /* of whole numbers without a given scale */
} names[] = {
    {"power", true, "W", 1},   {"realpower", true, "W", 1}, {"RP", false, "W", 1},
    {"P", false, "W", 1},      {"Vrms", true, "V", 0.01},   {"V", false, "V", 1},
    {"voltage", true, "V", 1}, {"Irms", true, "A", 1},      {"I", false, "A", 1},
    {"current", true, "A", 1}, {"temp", true, "C", 0.1},    {"T", false, "C", 0.1},
    {"E", false, "Wh", 1},     {"energy", true, "Wh", 1},   {"freq", true, "Hz", 1},
};

/* Fills in what the name says and the text does not. */
static void guess_from_name(struct nrg_layout_item *item)
{
    struct nrg_meter_spec *spec = &item->spec;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i].begin);
        char next = spec->name[strlen(spec->name) < len ? 0 : len];
        if (strncasecmp(spec->name, names[i].begin, len) ||
            !(names[i].word || !next || (next >= '0' && next <= '9')))
            continue;
        const struct nrg_meter_unit *unit =
            nrg_meter_unit_find(names[i].unit, strlen(names[i].unit));
        if (!spec->unit) {
            spec->unit = unit;
            spec->kind = spec->has_kind ? spec->kind : unit->kind;
        }
        if (!spec->has_scale && !spec->type.is_float && spec->unit->quantity == unit->quantity)
            item->usual_scale = names[i].scale;
        return;
    }
}

static int parse_item(struct nrg_layout_item *item, const char *text, size_t len, const char *begin,
                      struct nrg_error *err)
{
    struct nrg_meter_spec *spec = &item->spec;
    *item = (struct nrg_layout_item){.usual_scale = 1};
    int rc = nrg_meter_spec_parse(spec, text, len, begin, KEY, err);
    if (rc)
        return rc;
    if (spec->name[strspn(spec->name, NAME)])
        return nrg_fail_at(err, -EINVAL, KEY, text - begin + 1,
                           "wants name[:type][*scale][unit], separated by commas");
    if (!spec->type.bytes)
        spec->type = usual_type;
    if (!strcmp(spec->name, "-"))
        return 0;
    guess_from_name(item);
    item->recorded = spec->unit && spec->unit->recorded;
    return 0;
}

static bool is_open_end(const char *text, size_t len)
{
    text += strspn(text, BLANK);
    return !strncmp(text, "...", 3) && len >= 3 &&
           strspn(text + 3, BLANK) == strcspn(text + 3, ",");
}

int nrg_layout_parse(struct nrg_layout *layout, const char *text, struct nrg_error *err)
{
    memset(layout, 0, sizeof *layout);
    for (const char *at = text; at;) {
        size_t len = strcspn(at, ",");
        if (is_open_end(at, len)) {
            layout->open_end = true;
            return at[len] || !layout->n
                       ? nrg_fail_at(err, -EINVAL, KEY, at - text + 1, "'...' must be at the end")
                       : 0;
        }
        if (layout->n == NRG_LAYOUT_ITEMS)
            return nrg_fail_at(err, -EINVAL, KEY, at - text + 1, "too many values");
        struct nrg_layout_item *item = &layout->items[layout->n];
        int rc = parse_item(item, at, len, text, err);
        if (rc)
            return rc;
        layout->n++;
        layout->bytes += item->spec.type.bytes;
        at = at[len] ? at + len + 1 : NULL;
    }
    return 0;
}

/* Steps after which a counter wraps; 0 for types that no meter lets wrap. */
static uint64_t whole_range(const struct nrg_sample_type *type)
{
    bool wraps = !type->is_signed && (type->bytes == 2 || type->bytes == 4);
    return wraps ? UINT64_C(1) << type->bits : 0;
}

/* E1 counts what P1 (or power1) shows: one domain, so one name. */
static const char *joint_name(const struct nrg_layout *layout, const struct nrg_meter_spec *spec)
{
    if (spec->kind != NRG_COUNTER || spec->name[0] != 'E')
        return spec->name;
    for (size_t i = 0; i < layout->n; i++) {
        const struct nrg_layout_item *item = &layout->items[i];
        const char *name = item->spec.name;
        size_t skip = !strncmp(name, "power", 5) ? 5 : name[0] == 'P' ? 1 : 0;
        if (skip && item->recorded && item->spec.unit->quantity == NRG_POWER &&
            !strcmp(name + skip, spec->name + 1))
            return name;
    }
    return spec->name;
}

int nrg_layout_fields(const struct nrg_layout *layout, const char *prefix, bool packed,
                      struct nrg_meter_field *fields, size_t *n_fields)
{
    for (size_t i = 0; i < layout->n; i++) {
        const struct nrg_layout_item *item = &layout->items[i];
        if (!item->recorded)
            continue;
        if (*n_fields == NRG_METER_FIELDS)
            return -E2BIG;
        const struct nrg_meter_spec *spec = &item->spec;
        double step = fabs(spec->scale * item->usual_scale * spec->unit->factor);
        struct nrg_meter_field *field = &fields[(*n_fields)++];
        *field = (struct nrg_meter_field){.quantity = spec->unit->quantity, .kind = spec->kind};
        snprintf(field->name, sizeof field->name, "%.10s%.20s", prefix, joint_name(layout, spec));
        if (packed && !spec->type.is_float) {
            field->resolution = step;
            field->wrap = spec->kind == NRG_COUNTER ? whole_range(&spec->type) : 0;
        } else if (spec->kind == NRG_COUNTER && spec->unit->factor >= 1 && spec->has_scale) {
            field->resolution = step;
        }
    }
    return 0;
}

/* What OpenEnergyMonitor senders send for a thermometer that is not there. */
#define NO_THERMOMETER 300.0

static double si_value(const struct nrg_meter_spec *spec, double in_unit)
{
    double value = in_unit * spec->unit->factor;
    if (spec->unit->quantity == NRG_TEMPERATURE && value >= NO_THERMOMETER - 1e-9)
        return NAN;
    return isfinite(value) ? value : NAN;
}

double nrg_layout_value(const struct nrg_layout_item *item, double sent)
{
    return si_value(&item->spec, sent * item->spec.scale);
}

void nrg_layout_unpack(const struct nrg_layout *layout, const uint8_t *bytes, double *values)
{
    for (size_t i = 0; i < layout->n; i++) {
        const struct nrg_layout_item *item = &layout->items[i];
        const struct nrg_meter_spec *spec = &item->spec;
        if (item->recorded)
            *values++ = si_value(spec, nrg_sample_value(&spec->type, bytes) * spec->scale *
                                           item->usual_scale);
        bytes += spec->type.bytes;
    }
}
