/* See units.h. A unit is the first of its table that the number reaches. */
#include "report/units.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#define LEAST_PART                                                                                 \
    0.5 /* of the longer side of an interval: with less on the other one, ± misleads */

struct scale {
    double from, divide;
    const char *unit;
};

static struct nrg_shown show_scaled(double value, const struct scale *scales)
{
    struct nrg_shown shown = {"-"};
    if (isnan(value))
        return shown;
    while (fabs(value) < scales->from)
        scales++;
    double v = value / scales->divide;
    /* Four digits, also of what is rounded up to a fifth: 9.9999 is 10.00, not 10.000. */
    snprintf(shown.text, sizeof shown.text, "%.*f %s",
             fabs(v) >= 999.95   ? 0
             : fabs(v) >= 99.995 ? 1
             : fabs(v) >= 9.9995 ? 2
                                 : 3,
             v, scales->unit);
    return shown;
}

struct nrg_shown nrg_show_energy(double energy_j)
{
    static const struct scale scales[] = {{1e7, 1e6, "MJ"},   {1e4, 1e3, "kJ"},   {1, 1, "J"},
                                          {1e-3, 1e-3, "mJ"}, {1e-9, 1e-6, "uJ"}, {0, 1, "J"}};
    return show_scaled(energy_j, scales);
}

struct nrg_shown nrg_show_power(double power_w)
{
    static const struct scale scales[] = {
        {1e4, 1e3, "kW"}, {1, 1, "W"}, {1e-6, 1e-3, "mW"}, {0, 1, "W"}};
    return show_scaled(power_w, scales);
}

struct nrg_shown nrg_show_bytes(double bytes)
{
    static const struct scale scales[] = {{1024.0 * 1024 * 1024, 1024.0 * 1024 * 1024, "GiB"},
                                          {1024.0 * 1024, 1024.0 * 1024, "MiB"},
                                          {1024, 1024, "KiB"},
                                          {0, 1, "B"}};
    return show_scaled(bytes, scales);
}

struct nrg_shown nrg_show_seconds(double seconds)
{
    static const struct scale scales[] = {{7200, 3600, "h"},  {600, 60, "min"},   {1, 1, "s"},
                                          {1e-3, 1e-3, "ms"}, {1e-9, 1e-6, "us"}, {0, 1, "s"}};
    return show_scaled(seconds, scales);
}

struct nrg_shown nrg_show_integer(int64_t n)
{
    struct nrg_shown shown = {"-"};
    char digits[32];
    size_t at = 0, len = (size_t)snprintf(digits, sizeof digits, "%lld", (long long)n);
    if (n < 0)
        return shown;
    for (size_t i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            shown.text[at++] = ',';
        shown.text[at++] = digits[i];
    }
    shown.text[at] = '\0';
    return shown;
}

struct nrg_shown nrg_show_count(int64_t n)
{
    return nrg_show_amount((double)n);
}

struct nrg_shown nrg_show_amount(double n)
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    struct nrg_shown shown = {"-"};
    double v = trunc(n);
    size_t unit = 0;
    if (v < 10000) {
        if (v >= 0)
            snprintf(shown.text, sizeof shown.text, "%.0f", v);
        return shown;
    }
    for (; v >= 999.95 && unit < 6; unit++)
        v /= 1000;
    if (v < 999.95)
        snprintf(shown.text, sizeof shown.text, "%.*f%s",
                 v >= 99.95   ? 1
                 : v >= 9.995 ? 2
                              : 3,
                 v, units[unit]);
    else if (!isnan(v)) /* there is no unit so large, and infinity has none */
        snprintf(shown.text, sizeof shown.text, "%.3g", n);
    return shown;
}

static struct nrg_shown show_pair(struct nrg_shown low, struct nrg_shown high)
{
    struct nrg_shown shown;
    snprintf(shown.text, sizeof shown.text, "%.28s … %.28s", low.text, high.text);
    return shown;
}

struct nrg_shown nrg_show_range(double low, double high, struct nrg_shown (*show)(double value))
{
    return high >= low ? show_pair(show(low), show(high)) : (struct nrg_shown){"-"};
}

struct nrg_shown nrg_show_interval(double low_j, double high_j)
{
    return isnan(low_j) || isnan(high_j)
               ? (struct nrg_shown){"-"}
               : show_pair(nrg_show_energy(low_j), nrg_show_energy(high_j));
}

struct nrg_shown nrg_show_band(double energy_j, double low_j, double high_j, const char *plus_minus)
{
    struct nrg_shown shown = {"-"};
    double below_j = energy_j - low_j, above_j = high_j - energy_j, wide_j = fmax(below_j, above_j);
    bool lopsided = fmin(below_j, above_j) < LEAST_PART * wide_j || wide_j > energy_j;
    if (isnan(below_j) || isnan(above_j))
        return shown;
    if (lopsided && high_j > low_j)
        snprintf(shown.text, sizeof shown.text, "%.28s .. %.28s", nrg_show_energy(low_j).text,
                 nrg_show_energy(high_j).text);
    else
        snprintf(shown.text, sizeof shown.text, "%.8s %.28s", plus_minus,
                 nrg_show_energy(wide_j).text);
    return shown;
}
