/* See internal.h. The errno table holds what sensors really return; strerrorname_np would know all
 * names, but only glibc has it. */
#include "sensors/virtual/internal.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct nrg_word_unit nrg_units_w[] = {{"W", 1},     {"", 1},     {"mW", 1e-3},
                                            {"uW", 1e-6}, {"kW", 1e3}, {NULL, 0}};
const struct nrg_word_unit nrg_units_j[] = {{"J", 1},     {"", 1},      {"mJ", 1e-3},
                                            {"uJ", 1e-6}, {"nJ", 1e-9}, {"kJ", 1e3},
                                            {"MJ", 1e6},  {"Wh", 3600}, {NULL, 0}};
const struct nrg_word_unit nrg_units_ratio[] = {{"%", 1e-2}, {"", 1}, {NULL, 0}};

int nrg_word_number(const char *text, const struct nrg_word_unit *units, double *out)
{
    char *end;
    /* strtod alone would take white space, "inf", "nan" and hexadecimal. */
    const char *digits = text + (*text == '-' || *text == '+');
    if ((!isdigit((unsigned char)*digits) && *digits != '.') || digits[1] == 'x' ||
        digits[1] == 'X')
        return -EINVAL;
    double number = strtod(text, &end);
    if (end == text || !isfinite(number))
        return -EINVAL;
    for (const struct nrg_word_unit *unit = units; unit->name; unit++) {
        if (!strcmp(end, unit->name)) {
            *out = number * unit->factor;
            return 0;
        }
    }
    return -EINVAL;
}

int nrg_word_errno(const char *name)
{
    static const struct {
        const char *name;
        int code;
    } known[] = {
        {"EACCES", EACCES}, {"EAGAIN", EAGAIN},         {"EBADMSG", EBADMSG},
        {"EBUSY", EBUSY},   {"EINTR", EINTR},           {"EINVAL", EINVAL},
        {"EIO", EIO},       {"ENODATA", ENODATA},       {"ENODEV", ENODEV},
        {"ENOENT", ENOENT}, {"ENOMEM", ENOMEM},         {"ENOTSUP", ENOTSUP},
        {"ENXIO", ENXIO},   {"EOPNOTSUPP", EOPNOTSUPP}, {"EPERM", EPERM},
        {"EPROTO", EPROTO}, {"EREMOTEIO", EREMOTEIO},   {"ERANGE", ERANGE},
        {"ESTALE", ESTALE}, {"ETIMEDOUT", ETIMEDOUT},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(known[i].name, name))
            return -known[i].code;
    return 0;
}

static unsigned least_of(unsigned a, unsigned b, unsigned c)
{
    unsigned ab = a < b ? a : b;
    return ab < c ? ab : c;
}

unsigned nrg_word_distance(const char *a, const char *b)
{
    unsigned rows[3][32]; /* the current row of the table and the two above it */
    size_t len_a = strlen(a), len_b = strlen(b);
    if (len_a > 31 || len_b > 31)
        return 99;
    for (unsigned j = 0; j <= len_b; j++)
        rows[0][j] = j;
    for (unsigned i = 1; i <= len_a; i++) {
        unsigned *row = rows[i % 3], *above = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (unsigned j = 1; j <= len_b; j++) {
            row[j] = least_of(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least_of(row[j], before[j - 2] + 1, row[j]);
        }
    }
    return rows[len_a % 3][len_b];
}
