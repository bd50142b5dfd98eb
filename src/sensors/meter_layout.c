/* See meter_layout.h. */
#include "sensors/meter/layout.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"

#define BLANK " \t"
#define NAME  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./#"

static const struct {
    const char *name;
    enum nrg_layout_type type;
} types[] = {
    {"int16", NRG_TYPE_INT16},   {"uint16", NRG_TYPE_UINT16}, {"int8", NRG_TYPE_INT8},
    {"uint8", NRG_TYPE_UINT8},   {"byte", NRG_TYPE_UINT8},    {"int32", NRG_TYPE_INT32},
    {"uint32", NRG_TYPE_UINT32}, {"int64", NRG_TYPE_INT64},   {"uint64", NRG_TYPE_UINT64},
    {"float", NRG_TYPE_FLOAT},   {"double", NRG_TYPE_DOUBLE}, {"int", NRG_TYPE_INT16},
    {"long", NRG_TYPE_INT32},
};

static const unsigned char sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};

static const struct unit {
    const char *name;
    bool recorded;
    enum nrg_quantity quantity;
    enum nrg_kind kind;
    double si;
} units[] = {
    {"W", true, NRG_POWER, NRG_GAUGE, 1},          {"mW", true, NRG_POWER, NRG_GAUGE, 1e-3},
    {"kW", true, NRG_POWER, NRG_GAUGE, 1e3},       {"V", true, NRG_VOLTAGE, NRG_GAUGE, 1},
    {"mV", true, NRG_VOLTAGE, NRG_GAUGE, 1e-3},    {"A", true, NRG_CURRENT, NRG_GAUGE, 1},
    {"mA", true, NRG_CURRENT, NRG_GAUGE, 1e-3},    {"C", true, NRG_TEMPERATURE, NRG_GAUGE, 1},
    {"Hz", true, NRG_CLOCK, NRG_GAUGE, 1},         {"J", true, NRG_ENERGY, NRG_COUNTER, 1},
    {"kJ", true, NRG_ENERGY, NRG_COUNTER, 1e3},    {"Wh", true, NRG_ENERGY, NRG_COUNTER, 3600},
    {"kWh", true, NRG_ENERGY, NRG_COUNTER, 3.6e6}, {"VA", false, NRG_POWER, NRG_GAUGE, 1},
    {"var", false, NRG_POWER, NRG_GAUGE, 1},       {"none", false, NRG_POWER, NRG_GAUGE, 1},
};

/* A name that begins like this, followed by nothing or a digit or (word) anything. */
static const struct {
    const char *begin;
    bool word;
    const char *unit;
    double scale; /* of whole numbers without one */
} names[] = {
    {"power", true, "W", 1},   {"realpower", true, "W", 1}, {"RP", false, "W", 1},
    {"P", false, "W", 1},      {"Vrms", true, "V", 0.01},   {"V", false, "V", 1},
    {"voltage", true, "V", 1}, {"Irms", true, "A", 1},      {"I", false, "A", 1},
    {"current", true, "A", 1}, {"temp", true, "C", 0.1},    {"T", false, "C", 0.1},
    {"E", false, "Wh", 1},     {"energy", true, "Wh", 1},   {"freq", true, "Hz", 1},
};

static const struct unit *find_unit(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].name) == len && !memcmp(units[i].name, name, len))
            return &units[i];
    return NULL;
}

static void set_unit(struct nrg_layout_item *item, const struct unit *unit)
{
    item->recorded = unit->recorded;
    item->quantity = unit->quantity;
    item->kind = unit->kind;
    item->unit = unit->si;
}

static bool is_whole(enum nrg_layout_type type)
{
    return type != NRG_TYPE_FLOAT && type != NRG_TYPE_DOUBLE;
}

/* What the name says where the text does not. */
static void guess(struct nrg_layout_item *item, bool has_unit)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t len = strlen(names[i].begin);
        char next = item->name[strlen(item->name) < len ? 0 : len];
        if (strncasecmp(item->name, names[i].begin, len) ||
            !(names[i].word || !next || (next >= '0' && next <= '9')))
            continue;
        const struct unit *unit = find_unit(names[i].unit, strlen(names[i].unit));
        if (!has_unit)
            set_unit(item, unit);
        if (!item->scaled && is_whole(item->type) && item->quantity == unit->quantity)
            item->scale = names[i].scale;
        return;
    }
}

struct cursor {
    const char *text, *at, *where;
    struct nrg_error *err;
};

static int fault(const struct cursor *c, const char *what)
{
    return nrg_fail(c->err, -EINVAL, c->where, "layout, character %td: %s", c->at - c->text + 1,
                    what);
}

static void skip_blank(struct cursor *c)
{
    c->at += strspn(c->at, BLANK);
}

static int parse_type(struct cursor *c, struct nrg_layout_item *item)
{
    skip_blank(c);
    size_t len = strspn(c->at, "abcdefghijklmnopqrstuvwxyz0123456789");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strlen(types[i].name) == len && !memcmp(types[i].name, c->at, len)) {
            item->type = types[i].type;
            c->at += len;
            return 0;
        }
    }
    return fault(c, "types are int8, uint8, int16, uint16, int32, uint32, int64, uint64, float "
                    "and double");
}

static int parse_scale(struct cursor *c, struct nrg_layout_item *item)
{
    skip_blank(c);
    size_t len = strspn(c->at, "0123456789.+-");
    if ((c->at[len] == 'e' || c->at[len] == 'E') && strspn(c->at + len + 1, "0123456789+-"))
        len += 1 + strspn(c->at + len + 1, "0123456789+-");
    if (nrg_parse_double(c->at, len, &item->scale) || !isfinite(item->scale) || item->scale == 0 ||
        fabs(item->scale) > 1e12 || fabs(item->scale) < 1e-12)
        return fault(c, "wants a number after '*', such as *0.01");
    item->scaled = true;
    c->at += len;
    return 0;
}

static int parse_unit(struct cursor *c, struct nrg_layout_item *item, bool *has_unit)
{
    size_t len = strspn(c->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    const struct unit *unit = find_unit(c->at, len);
    *has_unit = len > 0;
    if (!len)
        return 0;
    if (!unit)
        return fault(c, "units are W, mW, kW, V, mV, A, mA, C, Hz, J, kJ, Wh, kWh, VA, var, none");
    set_unit(item, unit);
    c->at += len;
    return 0;
}

static int parse_item(struct cursor *c, struct nrg_layout_item *item)
{
    bool has_unit = false;
    size_t len = strspn(c->at, NAME);
    *item = (struct nrg_layout_item){.type = NRG_TYPE_INT16, .scale = 1, .unit = 1};
    if (!len || len >= sizeof item->name)
        return fault(c, len ? "the name is too long" : "wants a name");
    memcpy(item->name, c->at, len);
    c->at += len;
    skip_blank(c);
    int rc = 0;
    if (*c->at == ':') {
        c->at++;
        rc = parse_type(c, item);
    }
    skip_blank(c);
    if (!rc && *c->at == '*') {
        c->at++;
        rc = parse_scale(c, item);
    }
    skip_blank(c);
    if (!rc)
        rc = parse_unit(c, item, &has_unit);
    skip_blank(c);
    if (!rc && *c->at && *c->at != ',')
        return fault(c, "wants name[:type][*scale][unit], separated by commas");
    if (!rc && !strcmp(item->name, "-"))
        item->recorded = false;
    else if (!rc)
        guess(item, has_unit);
    return rc;
}

int nrg_layout_parse(struct nrg_layout *layout, const char *text, const char *where,
                     struct nrg_error *err)
{
    struct cursor c = {.text = text, .at = text, .where = where, .err = err};
    memset(layout, 0, sizeof *layout);
    for (;;) {
        skip_blank(&c);
        if (!strncmp(c.at, "...", 3)) {
            c.at += 3;
            skip_blank(&c);
            layout->open_end = true;
            return *c.at || !layout->n ? fault(&c, "'...' stands at the end") : 0;
        }
        if (layout->n == NRG_LAYOUT_ITEMS)
            return fault(&c, "too many values");
        struct nrg_layout_item *item = &layout->items[layout->n];
        int rc = parse_item(&c, item);
        if (rc)
            return rc;
        layout->n++;
        layout->bytes += sizes[item->type];
        if (!*c.at++)
            return 0;
    }
}

size_t nrg_layout_size(enum nrg_layout_type type)
{
    return sizes[type];
}

static uint64_t whole_range(enum nrg_layout_type type)
{
    return type == NRG_TYPE_UINT32   ? UINT64_C(1) << 32
           : type == NRG_TYPE_UINT16 ? UINT64_C(1) << 16
                                     : 0;
}

/* E1 counts what P1 (or power1) shows: one domain, so one name. */
static const char *joint_name(const struct nrg_layout *layout, const struct nrg_layout_item *item)
{
    if (item->kind != NRG_COUNTER || item->name[0] != 'E')
        return item->name;
    for (size_t i = 0; i < layout->n; i++) {
        const struct nrg_layout_item *power = &layout->items[i];
        size_t skip = !strncmp(power->name, "power", 5) ? 5 : power->name[0] == 'P' ? 1 : 0;
        if (skip && power->recorded && power->quantity == NRG_POWER &&
            !strcmp(power->name + skip, item->name + 1))
            return power->name;
    }
    return item->name;
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
        struct nrg_meter_field *field = &fields[(*n_fields)++];
        *field = (struct nrg_meter_field){.quantity = item->quantity, .kind = item->kind};
        snprintf(field->name, sizeof field->name, "%.10s%.20s", prefix, joint_name(layout, item));
        if (packed && is_whole(item->type)) {
            field->resolution = fabs(item->scale * item->unit);
            field->wrap = item->kind == NRG_COUNTER ? whole_range(item->type) : 0;
        } else if (item->kind == NRG_COUNTER && item->unit >= 1) {
            field->resolution = item->scaled ? fabs(item->scale * item->unit) : 0;
        }
    }
    return 0;
}

static uint64_t little_endian(const uint8_t *bytes, unsigned n)
{
    uint64_t value = 0;
    while (n--)
        value = value << 8 | bytes[n];
    return value;
}

static double read_float(uint64_t bits)
{
    uint32_t word = (uint32_t)bits;
    float value;
    memcpy(&value, &word, sizeof value);
    return value;
}

static double read_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double read_item(enum nrg_layout_type type, uint64_t bits)
{
    switch (type) {
    case NRG_TYPE_INT8:
        return (double)(int8_t)bits;
    case NRG_TYPE_INT16:
        return (double)(int16_t)bits;
    case NRG_TYPE_INT32:
        return (double)(int32_t)bits;
    case NRG_TYPE_INT64:
        return (double)(int64_t)bits;
    case NRG_TYPE_FLOAT:
        return read_float(bits);
    case NRG_TYPE_DOUBLE:
        return read_double(bits);
    default:
        return (double)bits;
    }
}

/* What OpenEnergyMonitor senders send for a thermometer that is not there. */
#define NO_THERMOMETER 300.0

double nrg_layout_value(const struct nrg_layout_item *item, double sent)
{
    double value = sent * item->scale * item->unit;
    if (item->quantity == NRG_TEMPERATURE && value >= NO_THERMOMETER - 1e-9)
        return NAN;
    return isfinite(value) ? value : NAN;
}

void nrg_layout_unpack(const struct nrg_layout *layout, const uint8_t *bytes, double *values)
{
    for (size_t i = 0; i < layout->n; i++) {
        const struct nrg_layout_item *item = &layout->items[i];
        if (item->recorded)
            *values++ = nrg_layout_value(
                item, read_item(item->type, little_endian(bytes, sizes[item->type])));
        bytes += sizes[item->type];
    }
}
