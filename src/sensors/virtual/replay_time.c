/* See replay_time.h. Bounded to |t| < 146 years from 1970, so that differences fit int64. */
#include "sensors/virtual/replay_time.h"

#include <errno.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/parse.h"

#define MAX_SECONDS INT64_C(4600000000)

struct text {
    const char *p, *end;
};

static bool take_char(struct text *t, char c)
{
    if (t->p == t->end || *t->p != c)
        return false;
    t->p++;
    return true;
}

/* min..max decimal digits; the number of digits, 0 when there are too few. */
static int take_digits(struct text *t, int min, int max, int64_t *out)
{
    int n = 0;
    *out = 0;
    while (n < max && t->p < t->end && *t->p >= '0' && *t->p <= '9') {
        *out = *out * 10 + (*t->p++ - '0');
        n++;
    }
    return n < min ? 0 : n;
}

/* ".25" -> 250000000; nothing is 0. Digits beyond ns are dropped. */
static bool take_fraction_ns(struct text *t, int64_t *ns)
{
    int64_t rest;
    *ns = 0;
    if (!take_char(t, '.') && !take_char(t, ','))
        return true;
    int n = take_digits(t, 1, 9, ns);
    for (int i = n; i < 9; i++)
        *ns *= 10;
    while (n == 9 && take_digits(t, 1, 1, &rest))
        ;
    return n > 0;
}

static struct text without_blanks(const char *text, size_t len)
{
    nrg_trim(&text, &len);
    return (struct text){text, text + len};
}

int nrg_time_from_seconds(const char *text, size_t len, int64_t *t_ns)
{
    struct text t = without_blanks(text, len);
    int64_t s, ns;
    bool negative = take_char(&t, '-');
    if (!take_digits(&t, 1, 11, &s) || !take_fraction_ns(&t, &ns) || t.p != t.end ||
        s > MAX_SECONDS)
        return -EINVAL;
    *t_ns = s * NRG_NS_PER_S + ns;
    if (negative)
        *t_ns = -*t_ns;
    return 0;
}

/* Days since 1970-01-01 of the Gregorian calendar, counted in years that start in March. */
static int64_t days_from_civil(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t month_from_march = (month + 9) % 12;
    int64_t day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    return y * 365 + y / 4 - y / 100 + y / 400 + day_of_year - 719468;
}

static bool take_zone_s(struct text *t, int64_t *offset_s)
{
    int64_t hours, minutes = 0;
    *offset_s = 0;
    if (t->p == t->end || take_char(t, 'Z'))
        return true;
    bool minus = take_char(t, '-');
    if ((!minus && !take_char(t, '+')) || !take_digits(t, 2, 2, &hours))
        return false;
    bool colon = take_char(t, ':');
    if ((colon || t->p < t->end) && !take_digits(t, 2, 2, &minutes))
        return false;
    *offset_s = (hours * 60 + minutes) * (minus ? -60 : 60);
    return hours < 24 && minutes < 60;
}

int nrg_time_from_iso(const char *text, size_t len, int64_t *t_ns)
{
    struct text t = without_blanks(text, len);
    int64_t year, month, day, hour, minute, second, ns, offset_s;
    if (!take_digits(&t, 4, 4, &year) || !take_char(&t, '-') || !take_digits(&t, 2, 2, &month) ||
        !take_char(&t, '-') || !take_digits(&t, 2, 2, &day) ||
        !(take_char(&t, 'T') || take_char(&t, ' ')))
        return -EINVAL;
    if (!take_digits(&t, 2, 2, &hour) || !take_char(&t, ':') || !take_digits(&t, 2, 2, &minute) ||
        !take_char(&t, ':') || !take_digits(&t, 2, 2, &second) || !take_fraction_ns(&t, &ns) ||
        !take_zone_s(&t, &offset_s) || t.p != t.end)
        return -EINVAL;
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60 ||
        year < 1900 || year > 2100)
        return -EINVAL;
    int64_t s = days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    *t_ns = (s - offset_s) * NRG_NS_PER_S + ns;
    return 0;
}
