/* See meter/spec.h. Units and types stand in one table each; names are compared by letters. */
#include "sensors/meter/spec.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"

#define MOST 1e15 /* larger values are noise */

static const struct nrg_meter_unit units[] = {
    {"W", NRG_POWER, NRG_GAUGE, 1, 0, true},
    {"mW", NRG_POWER, NRG_GAUGE, 1e-3, 0, true},
    {"uW", NRG_POWER, NRG_GAUGE, 1e-6, 0, true},
    {"kW", NRG_POWER, NRG_GAUGE, 1e3, 0, true},
    {"J", NRG_ENERGY, NRG_COUNTER, 1, 0, true},
    {"mJ", NRG_ENERGY, NRG_COUNTER, 1e-3, 1e-3, true},
    {"uJ", NRG_ENERGY, NRG_COUNTER, 1e-6, 1e-6, true},
    {"kJ", NRG_ENERGY, NRG_COUNTER, 1e3, 1, true},
    {"Ws", NRG_ENERGY, NRG_COUNTER, 1, 0, true},
    {"Wmin", NRG_ENERGY, NRG_COUNTER, 60, 60, true},
    {"mWh", NRG_ENERGY, NRG_COUNTER, 3.6, 3.6, true},
    {"Wh", NRG_ENERGY, NRG_COUNTER, 3600, 3600, true},
    {"kWh", NRG_ENERGY, NRG_COUNTER, 3.6e6, 3600, true},
    {"V", NRG_VOLTAGE, NRG_GAUGE, 1, 0, true},
    {"mV", NRG_VOLTAGE, NRG_GAUGE, 1e-3, 0, true},
    {"kV", NRG_VOLTAGE, NRG_GAUGE, 1e3, 0, true},
    {"A", NRG_CURRENT, NRG_GAUGE, 1, 0, true},
    {"mA", NRG_CURRENT, NRG_GAUGE, 1e-3, 0, true},
    {"uA", NRG_CURRENT, NRG_GAUGE, 1e-6, 0, true},
    {"C", NRG_TEMPERATURE, NRG_GAUGE, 1, 0, true},
    {"\xc2\xb0"
     "C",
     NRG_TEMPERATURE, NRG_GAUGE, 1, 0, true},
    {"degC", NRG_TEMPERATURE, NRG_GAUGE, 1, 0, true},
    {"Hz", NRG_CLOCK, NRG_GAUGE, 1, 0, true},
    {"%", NRG_UTILISATION, NRG_GAUGE, 0.01, 0, true},
    {"VA", NRG_APPARENT, NRG_GAUGE, 1, 0, false},
    {"var", NRG_APPARENT, NRG_GAUGE, 1, 0, false},
    {"none", NRG_APPARENT, NRG_GAUGE, 1, 0, false},
};
#define N_UNITS (sizeof units / sizeof *units)

/* Names that tell the unit when none is given, without the digits at their end. Those that say a
 * unit are sure; the others are what such names usually mean. Energy has no usual unit. */
static const struct {
    const char *word, *unit;
    bool says;
} words[] = {
    {"power", "W", false},    {"apower", "W", false},      {"p", "W", false},
    {"watt", "W", true},      {"watts", "W", true},        {"realpower", "W", false},
    {"load", "W", false},     {"wall", "W", false},        {"joules", "J", true},
    {"e", "Wh", false},       {"kwh", "kWh", true},        {"wh", "Wh", true},
    {"voltage", "V", false},  {"volt", "V", true},         {"volts", "V", true},
    {"vrms", "V", false},     {"v", "V", false},           {"current", "A", false},
    {"amps", "A", true},      {"irms", "A", false},        {"i", "A", false},
    {"ct", "A", false},       {"temperature", "C", false}, {"temp", "C", false},
    {"t", "C", false},        {"tc", "C", false},          {"frequency", "Hz", false},
    {"freq", "Hz", false},    {"f", "Hz", false},          {"powerw", "W", true},
    {"powermw", "mW", true},  {"powerkw", "kW", true},     {"energyj", "J", true},
    {"energywh", "Wh", true}, {"energykwh", "kWh", true},
};
#define N_WORDS (sizeof words / sizeof *words)

static bool is_word(const char *text, size_t len, const char *word)
{
    return strlen(word) == len && !memcmp(text, word, len);
}

const struct nrg_meter_unit *nrg_meter_unit_find(const char *name, size_t len)
{
    for (size_t i = 0; i < N_UNITS; i++)
        if (is_word(name, len, units[i].name))
            return &units[i];
    return NULL;
}

const struct nrg_meter_unit *nrg_meter_unit_of(enum nrg_quantity quantity, double factor)
{
    for (size_t i = 0; i < N_UNITS; i++)
        if (units[i].quantity == quantity && units[i].factor == factor)
            return &units[i];
    return NULL;
}

struct nrg_meter_field nrg_meter_unit_field(const struct nrg_meter_unit *unit, const char *name)
{
    struct nrg_meter_field field = {
        .quantity = unit->quantity, .kind = unit->kind, .resolution = unit->step};
    nrg_copy_clean(field.name, sizeof field.name, name, strlen(name));
    return field;
}

/* The part of a name that counts: up to a bracket, only letters and digits, in lower case. */
static size_t simplify_name(const char *name, size_t len, char *out, size_t size)
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

/* "power_phase_a", "voltage_c": a phase of a quantity that the name says, no unit of another. */
static bool is_phase(const char *name, size_t len, const struct nrg_meter_unit *unit)
{
    static const struct {
        const char *word;
        enum nrg_quantity quantity;
    } said[] = {{"power", NRG_POWER},     {"energy", NRG_ENERGY},   {"voltage", NRG_VOLTAGE},
                {"current", NRG_CURRENT}, {"factor", NRG_APPARENT}, {"frequency", NRG_CLOCK},
                {"temp", NRG_TEMPERATURE}};
    char lower[64];
    size_t n = simplify_name(name, len, lower, sizeof lower);
    bool letter = n && strchr("abc", lower[n - 1]) && unit->name[1] == '\0';
    for (size_t i = 0; letter && i < sizeof said / sizeof *said; i++)
        if (strstr(lower, said[i].word) && said[i].quantity != unit->quantity)
            return true;
    return false;
}

/* "power_mw", "total_kWh", "bus_V": case does not count. */
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
            return is_phase(name, len, &units[i]) ? NULL : &units[i];
    return NULL;
}

/* `guess`: also what such names usually mean. */
static const struct nrg_meter_unit *unit_by_name(const char *name, size_t len, bool guess)
{
    char word[48];
    while (len && isspace((unsigned char)name[len - 1]))
        len--;
    const struct nrg_meter_unit *unit = unit_in_brackets(name, len);
    if (!unit)
        unit = unit_in_suffix(name, len);
    size_t n = simplify_name(name, len, word, sizeof word);
    while (n && isdigit((unsigned char)word[n - 1]))
        word[--n] = '\0';
    for (size_t i = 0; !unit && n && i < N_WORDS; i++)
        if ((guess || words[i].says) && !strcmp(words[i].word, word))
            unit = nrg_meter_unit_find(words[i].unit, strlen(words[i].unit));
    return unit;
}

const struct nrg_meter_unit *nrg_meter_unit_of_name(const char *name, size_t len)
{
    return unit_by_name(name, len, true);
}

const struct nrg_meter_unit *nrg_meter_unit_said(const char *name, size_t len)
{
    return unit_by_name(name, len, false);
}

/* The next character of a name that counts; -1: there is none. */
static int next_letter(const char *name, size_t len, size_t *at)
{
    while (*at < len && name[*at] != '(' && name[*at] != '[') {
        unsigned char c = (unsigned char)name[(*at)++];
        if (isalnum(c))
            return tolower(c);
    }
    return -1;
}

bool nrg_meter_same_name(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t i = 0, k = 0, same = 0;
    for (;; same++) {
        int x = next_letter(a, a_len, &i), y = next_letter(b, b_len, &k);
        if (x != y)
            return false;
        if (x < 0)
            return same > 0;
    }
}

/* Types of a packed struct, and what waveform/format.h calls them. */
static const struct {
    const char *name, *sample;
} types[] = {
    {"int16", "s16le"},  {"uint16", "u16le"}, {"int8", "s8"},      {"uint8", "u8"},
    {"byte", "u8"},      {"int32", "s32le"},  {"uint32", "u32le"}, {"int64", "s64le"},
    {"uint64", "u64le"}, {"float", "f32le"},  {"double", "f64le"}, {"int", "s16le"},
    {"long", "s32le"},
};

static bool find_type(const char *name, size_t len, struct nrg_sample_type *type)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (is_word(name, len, types[i].name))
            return !nrg_sample_type_parse(types[i].sample, strlen(types[i].sample), type);
    return false;
}

/* The text of a spec while it is read, and what messages need to name the place. */
struct cursor {
    const char *at, *end, *begin, *key;
    struct nrg_error *err;
};

#define REFUSE(c, ...)                                                                             \
    nrg_fail_at((c)->err, -EINVAL, (c)->key, (c)->at - (c)->begin + 1, __VA_ARGS__)

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && isspace((unsigned char)*c->at))
        c->at++;
}

/* How many bytes there are up to one of `stops`, without blanks at their end. */
static size_t span_to(const struct cursor *c, const char *stops)
{
    size_t n = 0, left = (size_t)(c->end - c->at);
    while (n < left && !strchr(stops, c->at[n]))
        n++;
    while (n && isspace((unsigned char)c->at[n - 1]))
        n--;
    return n;
}

static int parse_unit(struct cursor *c, size_t len, struct nrg_meter_spec *spec)
{
    spec->unit = nrg_meter_unit_find(c->at, len);
    if (!spec->unit)
        return REFUSE(c, "'%.*s' is not a known unit: " NRG_METER_UNITS, (int)(len < 40 ? len : 40),
                      c->at);
    c->at += len;
    return 0;
}

static int parse_word(struct cursor *c, struct nrg_meter_spec *spec)
{
    c->at++;
    skip_blanks(c);
    size_t len = span_to(c, ":* \t");
    bool counter = is_word(c->at, len, "counter");
    if (counter || is_word(c->at, len, "gauge")) {
        spec->kind = counter ? NRG_COUNTER : NRG_GAUGE;
        spec->has_kind = true;
    } else if (!find_type(c->at, len, &spec->type)) {
        spec->unit = nrg_meter_unit_find(c->at, len);
        if (!spec->unit)
            return REFUSE(c,
                          "'%.*s' is neither a unit (" NRG_METER_UNITS
                          "), nor a type (int8 uint8 int16 uint16 "
                          "int32 uint32 int64 uint64 float double), nor counter or gauge",
                          (int)(len < 40 ? len : 40), c->at);
    }
    c->at += len;
    skip_blanks(c);
    return 0;
}

static int parse_scale(struct cursor *c, struct nrg_meter_spec *spec)
{
    c->at++;
    skip_blanks(c);
    size_t len = nrg_meter_scan(c->at, (size_t)(c->end - c->at), false, &spec->scale);
    if (!len || !(fabs(spec->scale) <= 1e12 && fabs(spec->scale) >= 1e-12))
        return REFUSE(c, "wants a number after '*', such as *0.01");
    spec->has_scale = true;
    c->at += len;
    skip_blanks(c);
    return 0;
}

/* Up to a colon or a star, but without a unit as the last word ("load mW"). */
static int parse_name(struct cursor *c, struct nrg_meter_spec *spec)
{
    size_t len = span_to(c, ":*"), from = len;
    while (from && !isspace((unsigned char)c->at[from - 1]))
        from--;
    if (from && c->at + len == c->end && nrg_meter_unit_find(c->at + from, len - from))
        for (len = from; len && isspace((unsigned char)c->at[len - 1]);)
            len--;
    if (!len || len >= sizeof spec->name)
        return REFUSE(c, "%s", len ? "a name has at most 31 bytes" : "wants a name");
    nrg_copy_clean(spec->name, sizeof spec->name, c->at, len);
    c->at += len;
    skip_blanks(c);
    return 0;
}

int nrg_meter_spec_parse(struct nrg_meter_spec *spec, const char *text, size_t len,
                         const char *begin, const char *key, struct nrg_error *err)
{
    struct cursor c = {.at = text, .end = text + len, .begin = begin, .key = key, .err = err};
    *spec = (struct nrg_meter_spec){.scale = 1};
    while (c.end > c.at && isspace((unsigned char)c.end[-1]))
        c.end--;
    skip_blanks(&c);
    int rc = parse_name(&c, spec);
    while (!rc && c.at < c.end && *c.at == ':')
        rc = parse_word(&c, spec);
    if (!rc && c.at < c.end && *c.at == '*')
        rc = parse_scale(&c, spec);
    if (!rc && c.at < c.end)
        rc = parse_unit(&c, (size_t)(c.end - c.at), spec);
    if (!rc && !spec->has_kind && spec->unit)
        spec->kind = spec->unit->kind;
    return rc;
}

int nrg_meter_spec_field(const char *text, size_t len, const char *begin, const char *key,
                         struct nrg_meter_field *field, double *factor, struct nrg_error *err)
{
    struct nrg_meter_spec spec;
    int rc = nrg_meter_spec_parse(&spec, text, len, begin, key, err);
    if (rc)
        return rc;
    const struct nrg_meter_unit *unit =
        spec.unit ? spec.unit : nrg_meter_unit_of_name(spec.name, strlen(spec.name));
    if (!unit || !unit->recorded)
        return nrg_fail_at(err, -EINVAL, key, text - begin + 1,
                           unit ? "values in %2$s are not recorded: leave '%1$s' out"
                                : "the unit of '%1$s' is not known: write %1$s:W or so",
                           spec.name, unit ? unit->name : "");
    *field = nrg_meter_unit_field(unit, spec.name);
    if (spec.has_kind)
        field->kind = spec.kind;
    *factor = unit->factor * spec.scale;
    return 0;
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
    nrg_trim(&text, &len);
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
