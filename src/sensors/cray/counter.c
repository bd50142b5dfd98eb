/* See counter.h. */
#include "sensors/cray/counter.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "sensors/channel.h"

#define MOST_ACCELERATORS 64
#define MOST_W            1000000

static const struct {
    const char *prefix;
    enum nrg_cray_domain domain;
} domains[] = {
    {"cpu", NRG_CRAY_CPU},
    {"memory", NRG_CRAY_MEMORY},
    {"accel", NRG_CRAY_ACCEL},
};

static bool is_quantity(const char *word, bool *energy)
{
    *energy = !strcmp(word, "energy");
    return *energy || !strcmp(word, "power");
}

bool nrg_cray_file(const char *name, struct nrg_cray_file *file)
{
    *file = (struct nrg_cray_file){.domain = NRG_CRAY_NODE, .number = -1};
    if (is_quantity(name, &file->energy))
        return true;
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++) {
        size_t len = strlen(domains[i].prefix), digits;
        uint64_t number;
        if (strncmp(name, domains[i].prefix, len) != 0)
            continue;
        digits = strspn(name + len, "0123456789");
        if (digits && (nrg_parse_u64(name + len, digits, &number) || number >= MOST_ACCELERATORS))
            return false;
        file->domain = domains[i].domain;
        file->number = digits ? (int)number : -1;
        return name[len + digits] == '_' && is_quantity(name + len + digits + 1, &file->energy);
    }
    return false;
}

static bool field_is(const char *field, size_t len, const char *word)
{
    return field && len == strlen(word) && !memcmp(field, word, len);
}

int nrg_cray_parse(const char *text, size_t len, bool energy, int64_t *value, int64_t *stamp_us)
{
    const char *end = text + len, *field;
    size_t width;
    *stamp_us = NRG_MISSING;
    field = nrg_next_field(&text, end, &width);
    if (!field || nrg_parse_i64(field, width, value))
        return -EPROTO;
    field = nrg_next_field(&text, end, &width);
    if (!field_is(field, width, energy ? "J" : "W"))
        return -EPROTO;
    if (*value < 0 || (!energy && *value > MOST_W))
        return -ERANGE;
    field = nrg_next_field(&text, end, &width);
    if (!field)
        return 0;
    if (nrg_parse_i64(field, width, stamp_us) || *stamp_us < 0 || *stamp_us > INT64_MAX / 2000)
        return -EPROTO;
    field = nrg_next_field(&text, end, &width);
    return field_is(field, width, "us") && !nrg_next_field(&text, end, &width) ? 0 : -EPROTO;
}

int64_t nrg_cray_count(const char *text, size_t len)
{
    const char *end = text + len;
    size_t width;
    int64_t count;
    const char *field = nrg_next_field(&text, end, &width);
    return field && !nrg_parse_i64(field, width, &count) ? count : NRG_MISSING;
}
