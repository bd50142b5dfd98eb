/* See meter/time.h. Numbers are told apart by their digits, dates by what follows the year: a dash,
 * or a slash as nvidia-smi writes it. */
#include "sensors/meter/time.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/parse.h"
#include "sensors/channel.h"
#include "sensors/virtual/replay_time.h"

#define YEAR_1973_S INT64_C(100000000) /* fewer seconds are not a date */
#define FAR_NS      (INT64_C(146) * 366 * 86400 * NRG_NS_PER_S)

void nrg_meter_times_init(struct nrg_meter_times *times)
{
    struct nrg_clock_pair pair = nrg_clock_pair_now(0);
    time_t now = (time_t)(pair.real_ns / NRG_NS_PER_S);
    struct tm tm;
    *times = (struct nrg_meter_times){.real_minus_mono_ns = pair.real_ns - pair.mono_ns,
                                      .first_ns = NRG_MISSING};
    if (localtime_r(&now, &tm))
        times->zone_ns = tm.tm_gmtoff * NRG_NS_PER_S;
}

/* A zone stands after the time of day: Z, or a sign. */
static bool has_zone(const char *text, size_t len)
{
    if (len && (text[len - 1] == 'Z'))
        return true;
    for (size_t i = 11; i < len; i++)
        if (text[i] == '+' || text[i] == '-')
            return true;
    return false;
}

static int from_date(const struct nrg_meter_times *times, const char *text, size_t len,
                     int64_t *t_ns)
{
    char iso[48];
    if (len >= sizeof iso)
        return -EINVAL;
    memcpy(iso, text, len);
    if (iso[4] == '/' && iso[7] == '/')
        iso[4] = iso[7] = '-';
    int rc = nrg_time_from_iso(iso, len, t_ns);
    if (!rc && !has_zone(text, len))
        *t_ns -= times->zone_ns;
    if (!rc)
        *t_ns -= times->real_minus_mono_ns;
    return rc;
}

/* By its digits before the point: 9 to 10 are seconds of a date, 12 to 13 ms, and so on. */
static int from_number(struct nrg_meter_times *times, const char *text, size_t len,
                       int64_t arrived_ns, int64_t *t_ns)
{
    int64_t whole;
    size_t digits = 0;
    while (digits < len && isdigit((unsigned char)text[digits]))
        digits++;
    if (!digits || nrg_parse_i64(text, digits < 19 ? digits : 19, &whole))
        return -EINVAL;
    int power = digits >= 18 ? 0 : digits >= 15 ? 3 : digits >= 12 ? 6 : 9;
    if (nrg_parse_scaled(text, len, power, t_ns) || *t_ns > FAR_NS)
        return -EINVAL;
    if (power < 9 || whole >= YEAR_1973_S) {
        *t_ns -= times->real_minus_mono_ns;
        return 0;
    }
    if (times->first_ns == NRG_MISSING)
        times->first_ns = arrived_ns - *t_ns;
    *t_ns += times->first_ns;
    return 0;
}

int nrg_meter_time(struct nrg_meter_times *times, const char *text, size_t len, int64_t arrived_ns,
                   int64_t *t_ns)
{
    nrg_trim(&text, &len);
    if (len > 10 && (text[4] == '-' || text[4] == '/'))
        return from_date(times, text, len, t_ns);
    return from_number(times, text, len, arrived_ns, t_ns);
}
