/* See meter_spec.h. Units stand in one table; names are compared by their letters only. */
#include "sensors/meter/spec.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"

#define MOST 1e15 /* of any value: what is more is noise */

static const struct nrg_meter_unit units[] = {
    {"W", NRG_POWER, NRG_GAUGE, 1, 0},
    {"mW", NRG_POWER, NRG_GAUGE, 1e-3, 0},
    {"uW", NRG_POWER, NRG_GAUGE, 1e-6, 0},
    {"kW", NRG_POWER, NRG_GAUGE, 1e3, 0},
    {"J", NRG_ENERGY, NRG_COUNTER, 1, 0},
    {"mJ", NRG_ENERGY, NRG_COUNTER, 1e-3, 1e-3},
    {"uJ", NRG_ENERGY, NRG_COUNTER, 1e-6, 1e-6},
    {"kJ", NRG_ENERGY, NRG_COUNTER, 1e3, 1},
    {"Ws", NRG_ENERGY, NRG_COUNTER, 1, 0},
    {"Wmin", NRG_ENERGY, NRG_COUNTER, 60, 60},
    {"mWh", NRG_ENERGY, NRG_COUNTER, 3.6, 3.6},
    {"Wh", NRG_ENERGY, NRG_COUNTER, 3600, 3600},
    {"kWh", NRG_ENERGY, NRG_COUNTER, 3.6e6, 3600},
    {"V", NRG_VOLTAGE, NRG_GAUGE, 1, 0},
    {"mV", NRG_VOLTAGE, NRG_GAUGE, 1e-3, 0},
    {"kV", NRG_VOLTAGE, NRG_GAUGE, 1e3, 0},
    {"A", NRG_CURRENT, NRG_GAUGE, 1, 0},
    {"mA", NRG_CURRENT, NRG_GAUGE, 1e-3, 0},
    {"uA", NRG_CURRENT, NRG_GAUGE, 1e-6, 0},
    {"\xc2\xb0"
     "C",
     NRG_TEMPERATURE, NRG_GAUGE, 1, 0},
    {"C", NRG_TEMPERATURE, NRG_GAUGE, 1, 0},
    {"degC", NRG_TEMPERATURE, NRG_GAUGE, 1, 0},
    {"Hz", NRG_CLOCK, NRG_GAUGE, 1, 0},
    {"%", NRG_UTILISATION, NRG_GAUGE, 0.01, 0},
};
#define N_UNITS (sizeof units / sizeof *units)

/* Words that tell the unit when none is given; the whole name, digits at its end left out. */
static const struct {
    const char *word, *unit;
} words[] = {
    {"power", "W"},    {"apower", "W"},    {"p", "W"},         {"watt", "W"},
    {"watts", "W"},    {"realpower", "W"}, {"load", "W"},      {"wall", "W"},
    {"energy", "J"},   {"joules", "J"},    {"e", "Wh"},        {"kwh", "kWh"},
    {"wh", "Wh"},      {"voltage", "V"},   {"volt", "V"},      {"volts", "V"},
    {"vrms", "V"},     {"v", "V"},         {"current", "A"},   {"amps", "A"},
    {"irms", "A"},     {"i", "A"},         {"ct", "A"},        {"temperature", "C"},
    {"temp", "C"},     {"t", "C"},         {"tc", "C"},        {"frequency", "Hz"},
    {"freq", "Hz"},    {"f", "Hz"},        {"powerw", "W"},    {"powermw", "mW"},
    {"powerkw", "kW"}, {"energyj", "J"},   {"energywh", "Wh"}, {"energykwh", "kWh"},
};
#define N_WORDS (sizeof words / sizeof *words)

const struct nrg_meter_unit *nrg_meter_unit_find(const char *name, size_t len)
{
    for (size_t i = 0; i < N_UNITS; i++)
        if (strlen(units[i].name) == len && !memcmp(units[i].name, name, len))
            return &units[i];
    return NULL;
}

/* The part of a name that counts: up to a bracket, letters and digits only, small. */
static size_t plain(const char *name, size_t len, char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < len && name[i] != '(' && name[i] != '[' && n + 1 < size; i++)
        if (isalnum((unsigned char)name[i]))
            out[n++] = (char)tolower((unsigned char)name[i]);
    out[n] = '\0';
    return n;
}

static const struct nrg_meter_unit *unit_in_brackets(const char *name, size_t len)
{
    const char *open = memchr(name, '(', len), *end = name + len;
    if (!open)
        open = memchr(name, '[', len);
    if (!open)
        return NULL;
    const char *close = ++open;
    while (close < end && *close != ')' && *close != ']')
        close++;
    return nrg_meter_unit_find(open, (size_t)(close - open));
}

/* "power_mw", "total_kWh", "bus_V": case is only looked at where it must be (mW, MW). */
static const struct nrg_meter_unit *unit_in_suffix(const char *name, size_t len)
{
    size_t from = len;
    while (from && name[from - 1] != '_' && name[from - 1] != ' ' && name[from - 1] != '-')
        from--;
    if (!from)
        return NULL;
    for (size_t i = 0; i < N_UNITS; i++)
        if (strlen(units[i].name) == len - from &&
            !strncasecmp(units[i].name, name + from, len - from))
            return &units[i];
    return NULL;
}

const struct nrg_meter_unit *nrg_meter_unit_of_name(const char *name, size_t len)
{
    char word[48];
    while (len && isspace((unsigned char)name[len - 1]))
        len--;
    const struct nrg_meter_unit *unit = unit_in_brackets(name, len);
    if (!unit)
        unit = unit_in_suffix(name, len);
    size_t n = plain(name, len, word, sizeof word);
    while (n && isdigit((unsigned char)word[n - 1]))
        word[--n] = '\0';
    for (size_t i = 0; !unit && n && i < N_WORDS; i++)
        if (!strcmp(words[i].word, word))
            unit = nrg_meter_unit_find(words[i].unit, strlen(words[i].unit));
    return unit;
}

bool nrg_meter_same_name(const char *a, size_t a_len, const char *b, size_t b_len)
{
    char x[64], y[64];
    size_t n = plain(a, a_len, x, sizeof x);
    return n && n == plain(b, b_len, y, sizeof y) && !memcmp(x, y, n);
}

static int set_kind(const char *text, size_t len, const char *key, struct nrg_meter_field *field,
                    struct nrg_error *err)
{
    if (len == 7 && !memcmp(text, "counter", 7))
        field->kind = NRG_COUNTER;
    else if (len == 5 && !memcmp(text, "gauge", 5))
        field->kind = NRG_GAUGE;
    else
        return nrg_fail(err, -EINVAL, key, "after the unit stands counter or gauge, not '%.*s'",
                        (int)(len < 40 ? len : 40), text);
    return 0;
}

int nrg_meter_spec(const char *text, size_t len, const char *key, struct nrg_meter_field *field,
                   double *factor, struct nrg_error *err)
{
    const char *end = text + len, *colon = memchr(text, ':', len);
    size_t name_len = colon ? (size_t)(colon - text) : len;
    const char *unit_text = colon ? colon + 1 : end;
    const char *second = memchr(unit_text, ':', (size_t)(end - unit_text));
    size_t unit_len = (size_t)((second ? second : end) - unit_text);
    *field = (struct nrg_meter_field){0};
    if (!name_len || name_len >= sizeof field->name)
        return nrg_fail(err, -EINVAL, key, "a name has 1 to %zu bytes: '%.*s'",
                        sizeof field->name - 1, (int)(len < 60 ? len : 60), text);
    nrg_copy_clean(field->name, sizeof field->name, text, name_len);
    const struct nrg_meter_unit *unit = unit_len ? nrg_meter_unit_find(unit_text, unit_len)
                                                 : nrg_meter_unit_of_name(text, name_len);
    if (!unit && unit_len)
        return nrg_fail(err, -EINVAL, key,
                        "'%.*s' is no unit that is known: W mW kW J kJ Wh kWh V mV A mA C Hz %%",
                        (int)(unit_len < 40 ? unit_len : 40), unit_text);
    if (!unit)
        return nrg_fail(err, -EINVAL, key, "the unit of '%s' is not known: write %s:W or so",
                        field->name, field->name);
    field->quantity = unit->quantity;
    field->kind = unit->kind;
    field->resolution = unit->step;
    *factor = unit->factor;
    return second ? set_kind(second + 1, (size_t)(end - second - 1), key, field, err) : 0;
}

size_t nrg_meter_scan(const char *text, size_t len, bool comma, double *value)
{
    char buf[48];
    size_t i = 0, n = 0, digits = 0;
    bool point = false;
    if (i < len && (text[i] == '-' || text[i] == '+'))
        buf[n++] = text[i++];
    for (; i < len && n < 32; i++) {
        bool is_point = !point && (text[i] == '.' || (comma && text[i] == ','));
        if (!is_point && !isdigit((unsigned char)text[i]))
            break;
        digits += !is_point;
        point |= is_point;
        buf[n++] = is_point ? '.' : text[i];
    }
    if (!digits || (i < len && isdigit((unsigned char)text[i])))
        return 0;
    size_t e = i + 1;
    if (e < len && (text[i] == 'e' || text[i] == 'E')) {
        e += text[e] == '-' || text[e] == '+';
        size_t from = e;
        while (e < len && e < from + 3 && isdigit((unsigned char)text[e]))
            e++;
        if (e > from) {
            memcpy(buf + n, text + i, e - i);
            n += e - i;
            i = e;
        }
    }
    return nrg_parse_double(buf, n, value) ? 0 : i;
}

static bool is_missing(const char *text, size_t len)
{
    static const char *const names[] = {"nan", "null", "none", "-", "n/a", "unavailable"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && !strncasecmp(names[i], text, len))
            return true;
    return !len;
}

int nrg_meter_value(const char *text, size_t len, bool comma, const struct nrg_meter_field *field,
                    double factor, double *value)
{
    while (len && isspace((unsigned char)*text)) {
        text++;
        len--;
    }
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    *value = NAN;
    if (is_missing(text, len))
        return 0;
    size_t used = nrg_meter_scan(text, len, comma, value);
    if (!used)
        return -EINVAL;
    while (used < len && isspace((unsigned char)text[used]))
        used++;
    if (used < len) {
        const struct nrg_meter_unit *unit = nrg_meter_unit_find(text + used, len - used);
        if (!unit || unit->quantity != field->quantity)
            return -EINVAL;
        factor = unit->factor;
    }
    *value *= factor;
    return fabs(*value) < MOST ? 0 : -EINVAL;
}
