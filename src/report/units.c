/* See units.h. */
#include "report/units.h"

#include <math.h>
#include <stdio.h>

struct scale {
    double from, divide;
    const char *unit;
};

static const char *show(char *buf, size_t size, double value, const struct scale *scales)
{
    if (isnan(value)) {
        snprintf(buf, size, "-");
        return buf;
    }
    while (fabs(value) < scales->from)
        scales++;
    double v = value / scales->divide;
    snprintf(buf, size, "%.*f %s",
             fabs(v) >= 1000  ? 0
             : fabs(v) >= 100 ? 1
             : fabs(v) >= 10  ? 2
                              : 3,
             v, scales->unit);
    return buf;
}

const char *nrg_show_energy(char *buf, size_t size, double energy_j)
{
    static const struct scale scales[] = {{1e7, 1e6, "MJ"},   {1e4, 1e3, "kJ"},   {1, 1, "J"},
                                          {1e-3, 1e-3, "mJ"}, {1e-9, 1e-6, "uJ"}, {0, 1, "J"}};
    return show(buf, size, energy_j, scales);
}

const char *nrg_show_power(char *buf, size_t size, double power_w)
{
    static const struct scale scales[] = {
        {1e4, 1e3, "kW"}, {1, 1, "W"}, {1e-6, 1e-3, "mW"}, {0, 1, "W"}};
    return show(buf, size, power_w, scales);
}

const char *nrg_show_bytes(char *buf, size_t size, double bytes)
{
    static const struct scale scales[] = {{1024.0 * 1024 * 1024, 1024.0 * 1024 * 1024, "GiB"},
                                          {1024.0 * 1024, 1024.0 * 1024, "MiB"},
                                          {1024, 1024, "KiB"},
                                          {0, 1, "B"}};
    return show(buf, size, bytes, scales);
}

const char *nrg_show_seconds(char *buf, size_t size, double seconds)
{
    static const struct scale scales[] = {{7200, 3600, "h"},  {600, 60, "min"},   {1, 1, "s"},
                                          {1e-3, 1e-3, "ms"}, {1e-9, 1e-6, "us"}, {0, 1, "s"}};
    return show(buf, size, seconds, scales);
}
