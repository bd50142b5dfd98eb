/*
 * The power log of a Jetson as the edge-vision-power-estimation project writes it: no header,
 *
 *     20250128-13:38:25.941535,5008.0,1720.0
 *
 * date and time of the reading, mV and mA of the board's input VDD_IN as the INA3221 showed them;
 * their product is microwatts. The log does not say how long the chip averaged, so no lag is
 * corrected.
 *
 * Refuses lines with more or fewer fields, impossible dates, negative voltages.
 */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "import/internal.h"
#include "sensors/virtual/replay_time.h"

#define STAMP 17 /* 20250128-13:38:25 */

static const struct nrg_channel vdd_in[] = {
    {.name = "VDD_IN",
     .quantity = NRG_POWER,
     .kind = NRG_GAUGE,
     .provenance = NRG_DERIVED,
     .covers_cpu = true,
     .scale = 1e-6,
     .source = "product of the log's mV and mA"},
    {.name = "VDD_IN",
     .quantity = NRG_VOLTAGE,
     .kind = NRG_GAUGE,
     .scale = 1e-6,
     .source = "the log's mV"},
    {.name = "VDD_IN",
     .quantity = NRG_CURRENT,
     .kind = NRG_GAUGE,
     .scale = 1e-6,
     .source = "the log's mA"},
};

static bool is_jetson_line(const char *line, size_t len)
{
    static const char form[] = "dddddddd-dd:dd:dd";
    if (len < STAMP)
        return false;
    for (size_t i = 0; i < STAMP; i++) {
        bool digit = line[i] >= '0' && line[i] <= '9';
        if (form[i] == 'd' ? !digit : line[i] != form[i])
            return false;
    }
    return true;
}

/* Rewritten as an ISO date, for the parser of those. */
int nrg_import_compact_time(const char *text, size_t len, int64_t *t_ns)
{
    char iso[64];
    if (!is_jetson_line(text, len) || len > 40)
        return -EINVAL;
    int n = snprintf(iso, sizeof iso, "%.4s-%.2s-%.2sT%.*s", text, text + 4, text + 6,
                     (int)(len - 9), text + 9);
    return nrg_time_from_iso(iso, (size_t)n, t_ns);
}

static int read_record(struct nrg_import *im, char *line, size_t len, struct nrg_error *err)
{
    const char *end = line + len, *first = memchr(line, ',', len);
    const char *second = first ? memchr(first + 1, ',', (size_t)(end - first - 1)) : NULL;
    double mv, ma;
    int64_t t_ns;
    if (!second)
        return nrg_fail(err, -EINVAL, NULL, "is not DATE,mV,mA");
    if (nrg_import_compact_time(line, (size_t)(first - line), &t_ns))
        return nrg_fail(err, -EINVAL, NULL, "the date is not YYYYmmdd-HH:MM:SS.ffffff");
    if (nrg_parse_double(first + 1, (size_t)(second - first - 1), &mv) || mv < 0 || mv > 1e6)
        return nrg_fail(err, -EINVAL, NULL, "the second field is not a voltage in mV");
    if (nrg_parse_double(second + 1, (size_t)(end - second - 1), &ma) || ma < -1e7 || ma > 1e7)
        return nrg_fail(err, -EINVAL, NULL, "the third field is not a current in mA");
    const double values[] = {mv * ma * 1e-6, mv * 1e-3, ma * 1e-3};
    int rc = nrg_import_begin(im, t_ns - im->options->zone_offset_ns, 0, err);
    for (size_t i = 0; !rc && i < sizeof values / sizeof *values; i++)
        rc = nrg_import_value(im, &vdd_in[i], values[i], err);
    return rc ? rc : nrg_import_end(im, err);
}

const struct nrg_import_format nrg_import_jetson_log = {
    .name = "jetson-log",
    .means = true,
    .match = is_jetson_line,
    .record = read_record,
};
