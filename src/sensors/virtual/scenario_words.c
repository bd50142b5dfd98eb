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
