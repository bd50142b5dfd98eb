/* See parse.h. */
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void nrg_trim(const char **text, size_t *len)
{
    while (*len && isspace((unsigned char)**text)) {
        (*text)++;
        (*len)--;
    }
    while (*len && isspace((unsigned char)(*text)[*len - 1]))
        (*len)--;
}

int nrg_parse_u64(const char *text, size_t len, uint64_t *out)
{
    uint64_t value = 0;
    nrg_trim(&text, &len);
    if (!len)
        return -EINVAL;
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (digit > 9)
            return -EINVAL;
        if (value > (UINT64_MAX - digit) / 10)
            return -ERANGE;
        value = value * 10 + digit;
    }
    *out = value;
    return 0;
}

int nrg_parse_i64(const char *text, size_t len, int64_t *out)
{
    uint64_t magnitude;
    nrg_trim(&text, &len);
    int negative = len && *text == '-';
    if (negative) {
        text++;
        len--;
        if (len && isspace((unsigned char)*text))
            return -EINVAL;
    }
    int rc = nrg_parse_u64(text, len, &magnitude);
    if (rc)
        return rc;
    if (magnitude > (uint64_t)INT64_MAX + (negative ? 1u : 0u))
        return -ERANGE;
    *out = negative ? (int64_t)(~magnitude + 1) : (int64_t)magnitude;
    return 0;
}

int nrg_parse_double(const char *text, size_t len, double *out)
{
    char buf[64], *end;
    nrg_trim(&text, &len);
    if (!len || len >= sizeof buf || memchr(text, '\0', len))
        return -EINVAL;
    memcpy(buf, text, len);
    buf[len] = '\0';
    double value = strtod(buf, &end);
    if (*end)
        return -EINVAL;
    if (!isfinite(value))
        return -ERANGE;
    *out = value;
    return 0;
}

/* A decimal number taken apart: digits * 10^exponent. */
struct decimal {
    uint64_t digits;
    int exponent;
    bool negative;
};

static int add_digit(struct decimal *d, unsigned digit, bool fraction)
{
    if (d->digits <= (UINT64_MAX - 9) / 10) {
        d->digits = d->digits * 10 + digit;
        d->exponent -= fraction;
    } else {
        d->exponent += !fraction;
    }
    return d->exponent > 1000 || d->exponent < -1000 ? -ERANGE : 0;
}

static int parse_exponent(const char *text, size_t len, struct decimal *d)
{
    int64_t exponent;
    if (len && *text == '+') {
        text++;
        len--;
    }
    if (!len || isspace((unsigned char)*text) || nrg_parse_i64(text, len, &exponent))
        return -EINVAL;
    if (exponent > 1000 || exponent < -1000)
        return -ERANGE;
    d->exponent += (int)exponent;
    return 0;
}

static int parse_decimal(const char *text, size_t len, struct decimal *d)
{
    size_t i = 0, digits = 0;
    bool fraction = false;
    int rc = 0;
    nrg_trim(&text, &len);
    *d = (struct decimal){.negative = len && *text == '-'};
    for (i = d->negative; !rc && i < len; i++) {
        unsigned digit = (unsigned)(unsigned char)text[i] - '0';
        if (text[i] == '.' && !fraction)
            fraction = true;
        else if (digit <= 9 && ++digits)
            rc = add_digit(d, digit, fraction);
        else
            break;
    }
    if (!digits || (i < len && text[i] != 'e' && text[i] != 'E'))
        return rc ? rc : -EINVAL;
    return rc || i == len ? rc : parse_exponent(text + i + 1, len - i - 1, d);
}

int nrg_parse_scaled(const char *text, size_t len, int power, int64_t *out)
{
    struct decimal d;
    int rc = parse_decimal(text, len, &d);
    if (rc)
        return rc;
    uint64_t value = d.digits, last = 0;
    int exponent = d.exponent + power;
    for (; exponent < 0 && (value || last); exponent++) {
        last = value % 10;
        value /= 10;
    }
    value += exponent == 0 && last >= 5;
    for (; exponent > 0 && value; exponent--)
        if (__builtin_mul_overflow(value, 10, &value))
            return -ERANGE;
    if (value > INT64_MAX)
        return -ERANGE;
    *out = d.negative ? -(int64_t)value : (int64_t)value;
    return 0;
}

struct unit {
    const char *name;
    double factor;
};

static int parse_with_unit(const char *text, const struct unit *units, double *out)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || !isfinite(value))
        return -EINVAL;
    while (*end == ' ')
        end++;
    for (const struct unit *u = units; u->name; u++) {
        if (!strcmp(end, u->name)) {
            *out = value * u->factor;
            return 0;
        }
    }
    return -EINVAL;
}

int nrg_parse_duration_ns(const char *text, int64_t *out_ns)
{
    static const struct unit units[] = {{"", 1e9},      {"s", 1e9},    {"ms", 1e6}, {"us", 1e3},
                                        {"ns", 1},      {"min", 6e10}, {"m", 6e10}, {"h", 3.6e12},
                                        {"d", 8.64e13}, {NULL, 0}};
    double ns;
    int rc = parse_with_unit(text, units, &ns);
    if (rc)
        return rc;
    if (ns < 0 || ns > 9e18)
        return -ERANGE;
    *out_ns = (int64_t)llround(ns);
    return 0;
}

int nrg_parse_rate_hz(const char *text, double *out_hz)
{
    static const struct unit units[] = {
        {"", 1},    {"Hz", 1},     {"hz", 1}, {"kHz", 1e3},       {"khz", 1e3},
        {"k", 1e3}, {"mHz", 1e-3}, {"/s", 1}, {"/min", 1.0 / 60}, {NULL, 0}};
    double hz;
    int rc = parse_with_unit(text, units, &hz);
    if (rc)
        return rc;
    if (!(hz > 0) || hz > 1e5)
        return -ERANGE;
    *out_hz = hz;
    return 0;
}

int nrg_parse_bytes(const char *text, double *out_bytes)
{
    static const struct unit units[] = {{"", 1},
                                        {"B", 1},
                                        {"M", 1e6},
                                        {"MB", 1e6},
                                        {"G", 1e9},
                                        {"GB", 1e9},
                                        {"MiB", 1048576.0},
                                        {"GiB", 1073741824.0},
                                        {"T", 1e12},
                                        {"TB", 1e12},
                                        {"TiB", 1099511627776.0},
                                        {NULL, 0}};
    double bytes;
    int rc = parse_with_unit(text, units, &bytes);
    if (rc)
        return rc;
    if (!(bytes > 0) || bytes > 1e18)
        return -ERANGE;
    *out_bytes = bytes;
    return 0;
}

int nrg_parse_cpulist(const char *text, int (*each)(unsigned cpu, void *arg), void *arg)
{
    const char *p = text;
    while (isspace((unsigned char)*p))
        p++;
    while (*p && !isspace((unsigned char)*p)) {
        char *end;
        if (!isdigit((unsigned char)*p))
            return -EINVAL;
        unsigned long first = strtoul(p, &end, 10), last = first;
        if (*end == '-') {
            if (!isdigit((unsigned char)end[1]))
                return -EINVAL;
            last = strtoul(end + 1, &end, 10);
        }
        if (first > last || last > 65535)
            return -ERANGE;
        for (unsigned long cpu = first; cpu <= last; cpu++) {
            int rc = each((unsigned)cpu, arg);
            if (rc)
                return rc;
        }
        if (*end && *end != ',' && !isspace((unsigned char)*end))
            return -EINVAL;
        p = *end == ',' ? end + 1 : end;
    }
    return 0;
}

static int count_cpu(unsigned cpu, void *arg)
{
    ++*(unsigned *)arg;
    return 0;
}

unsigned nrg_count_cpulist(const char *text)
{
    unsigned n = 0;
    nrg_parse_cpulist(text, count_cpu, &n);
    return n;
}

const char *nrg_next_field(const char **p, const char *end, size_t *len)
{
    const char *start = *p;
    while (start < end && isspace((unsigned char)*start))
        start++;
    if (start == end) {
        *p = end;
        return NULL;
    }
    const char *stop = start;
    while (stop < end && !isspace((unsigned char)*stop))
        stop++;
    *len = (size_t)(stop - start);
    *p = stop;
    return start;
}

bool nrg_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}
