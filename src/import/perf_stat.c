/*
 * Energy events of `perf stat -I 1000 -x, -e power/energy-pkg/`, with any separator:
 *
 *     # started on Sun Aug 24 12:00:00 2026
 *          1.001048308,19.63,Joules,power/energy-pkg/,2002406532,100.00,,
 *          1.001048308,S0,1,19.63,Joules,power/energy-pkg/,...       (--per-socket, -A: CPU0)
 *
 * A value is what was used since the line before of the same event: exact intervals. Lines of one
 * time are one record. The date in the first comment (perf's -o) is local time; without it times
 * count from perf's start. Without -I there is one interval, whose length is that of the event
 * duration_time, or the user's (--period): the counters' own times are sums over packages.
 *
 * Without --per-socket or -A the values are sums over all packages, which become package-0.
 * Other events and "<not counted>" are left out. Refuses times that do not rise.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/parse.h"
#include "import/internal.h"
#include "sensors/virtual/replay_time.h"

#define STARTED "# started on "
#define UNIT    "Joules"

enum { FIELDS = 16, ENERGIES = 64, PLACES = 16 };

struct perf {
    int64_t start_ns;      /* the date, 0 without one */
    int64_t t_ns, last_ns; /* of the record that is being collected, and of the one before */
    bool timed;            /* -I was given */
    int64_t duration_ns;   /* of the event duration_time; 0: none */
    int cpus[PLACES];      /* -A: the CPUs in whose name packages are counted */
    size_t n_cpus, n;
    struct nrg_import_energy energies[ENERGIES];
};

static const struct event {
    const char *name, *domain;
} events[] = {
    {"power/energy-pkg/", "package"},    {"power/energy-cores/", "core"},
    {"power_core/energy-core/", "core"}, {"power/energy-gpu/", "uncore"},
    {"power/energy-ram/", "dram"},       {"power/energy-psys/", "psys"},
};

static bool has_text(const char *line, size_t len, const char *text)
{
    return memmem(line, len, text, strlen(text)) != NULL;
}

static bool is_perf(const char *line, size_t len)
{
    size_t n = strlen(STARTED);
    if (len > n && !memcmp(line, STARTED, n))
        return true;
    if (len && *line == '{')
        return false; /* -j */
    return has_text(line, len, "power/energy-") || has_text(line, len, "power_core/energy-") ||
           (has_text(line, len, "duration_time") && has_text(line, len, "ns"));
}

/* "Sun Aug 24 12:00:00 2026", of the C locale whatever the user's is. */
static int read_date(const char *text, size_t len, int64_t *t_ns)
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const char *end = text + len, *parts[5];
    size_t lens[5];
    char iso[40], month[4] = "";
    for (size_t i = 0; i < 5; i++)
        if (!(parts[i] = nrg_next_field(&text, end, &lens[i])))
            return -EINVAL;
    int64_t day;
    if (lens[1] != 3 || lens[3] != 8 || lens[4] != 4 || nrg_parse_i64(parts[2], lens[2], &day))
        return -EINVAL;
    memcpy(month, parts[1], 3);
    const char *found = strstr(months, month);
    if (!found || (found - months) % 3)
        return -EINVAL;
    snprintf(iso, sizeof iso, "%.4s-%02d-%02dT%.8s", parts[4], (int)(found - months) / 3 + 1,
             (int)(day % 100), parts[3]);
    return nrg_time_from_iso(iso, strlen(iso), t_ns);
}

/* Writes the record that was collected so far. */
static int write_record(struct nrg_import *im, struct nrg_error *err)
{
    struct perf *p = im->state;
    int64_t t_ns = p->t_ns;
    if (!p->n)
        return 0;
    if (!p->timed)
        t_ns = im->options->period_ns ? im->options->period_ns : p->duration_ns;
    if (!t_ns)
        return nrg_fail(err, -ENODATA, NULL,
                        "does not tell how long perf stat ran, since -I was not given: say it with "
                        "--period (the \"seconds time elapsed\")");
    int rc = nrg_import_interval(im, p->start_ns + t_ns, t_ns - p->last_ns, p->energies, p->n, err);
    p->last_ns = t_ns;
    p->n = 0;
    return rc;
}

static int start_log(struct nrg_import *im, const char *line, size_t len, struct nrg_error *err)
{
    struct perf *p = im->state;
    int64_t t_ns;
    size_t n = strlen(STARTED);
    if (len < n || memcmp(line, STARTED, n))
        return 0; /* any other comment */
    int rc = write_record(im, err);
    if (!rc && read_date(line + n, len - n, &t_ns))
        rc = nrg_fail(err, -EINVAL, NULL, "has no date after \"" STARTED "\"");
    if (rc)
        return rc;
    p->start_ns = t_ns - im->options->zone_offset_ns;
    p->t_ns = p->last_ns = 0;
    return 0;
}

struct fields {
    const char *text[FIELDS];
    size_t len[FIELDS], n;
};

static bool field_is(const struct fields *f, size_t i, const char *text)
{
    return i < f->n && f->len[i] == strlen(text) && !memcmp(f->text[i], text, f->len[i]);
}

static void split(struct fields *f, const char *line, size_t len, char separator)
{
    const char *at = line, *end = line + len;
    for (f->n = 0; at <= end && f->n < FIELDS; f->n++) {
        const char *stop = memchr(at, separator, (size_t)(end - at));
        stop = stop ? stop : end;
        f->text[f->n] = at;
        f->len[f->n] = (size_t)(stop - at);
        nrg_trim(&f->text[f->n], &f->len[f->n]);
        at = stop + 1;
    }
}

/* Some locales have a comma where the number has its point. */
static int read_number(const struct fields *f, size_t i, double *value)
{
    char text[40];
    if (f->len[i] >= sizeof text)
        return -EINVAL;
    snprintf(text, sizeof text, "%.*s", (int)f->len[i], f->text[i]);
    for (char *at = text; *at; at++)
        *at = *at == ',' ? '.' : *at;
    return nrg_parse_double(text, strlen(text), value);
}

/* The package that fields [1, value) name: "S1", "S1-D0", or by "CPU18" the second CPU seen. */
static int package_of(struct perf *p, const struct fields *f, size_t value)
{
    for (size_t i = 0; i < value; i++) {
        int64_t number;
        const char *text = f->text[i], *dash = memchr(text, '-', f->len[i]);
        size_t n = dash ? (size_t)(dash - text) : f->len[i];
        if (n > 1 && text[0] == 'S' && !nrg_parse_i64(text + 1, n - 1, &number))
            return number >= 0 && number < PLACES ? (int)number : 0;
        if (n <= 3 || memcmp(text, "CPU", 3) || nrg_parse_i64(text + 3, n - 3, &number))
            continue;
        for (size_t k = 0; k < p->n_cpus; k++)
            if (p->cpus[k] == number)
                return (int)k;
        if (p->n_cpus < PLACES)
            p->cpus[p->n_cpus++] = (int)number;
        return (int)p->n_cpus - 1;
    }
    return -1;
}

static int add_energy(struct perf *p, const struct fields *f, size_t unit, struct nrg_error *err)
{
    char name[40], source[128];
    double energy_j;
    const struct event *event = NULL;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        size_t n = strlen(events[i].name);
        if (unit + 1 < f->n && f->len[unit + 1] >= n &&
            !memcmp(f->text[unit + 1], events[i].name, n))
            event = &events[i];
    }
    if (!event || f->text[unit - 1][0] == '<')
        return 0; /* <not counted>, <not supported> */
    if (read_number(f, unit - 1, &energy_j) || !(energy_j >= 0))
        return nrg_fail(err, -EINVAL, NULL, "the field before " UNIT " is no energy");
    if (p->n == ENERGIES)
        return nrg_fail(err, -E2BIG, NULL, "more than %d energies at one time", ENERGIES);
    int package = package_of(p, f, unit - 1);
    bool numbered = strcmp(event->domain, "psys") != 0;
    snprintf(name, sizeof name, numbered ? "%s-%d" : "%s", event->domain,
             package < 0 ? 0 : package);
    snprintf(source, sizeof source, "perf stat: %s%s", event->name,
             package < 0 ? " of all packages" : "");
    struct nrg_import_energy *e = &p->energies[p->n++];
    e->channel = nrg_import_energy_channel(name, NRG_MEASURED, source);
    e->energy_j = energy_j;
    return 0;
}

/* The line's time, where it has one; a new one ends the record before. */
static int take_time(struct nrg_import *im, const struct fields *f, size_t value,
                     struct nrg_error *err)
{
    struct perf *p = im->state;
    double seconds;
    int64_t t_ns;
    bool timed = value > 0 && !read_number(f, 0, &seconds);
    if (p->n && timed != p->timed)
        return nrg_fail(err, -EINVAL, NULL, "is of another run of perf than the line before");
    p->timed = timed;
    if (!timed)
        return 0;
    if (nrg_time_from_seconds(f->text[0], f->len[0], &t_ns) || t_ns <= 0)
        t_ns = seconds > 0 && seconds < 1e9 ? (int64_t)llround(seconds * 1e9) : 0;
    if (t_ns <= 0 || t_ns < p->t_ns)
        return nrg_fail(err, -EINVAL, NULL, "the time is before that of the line before");
    int rc = t_ns > p->t_ns ? write_record(im, err) : 0;
    p->t_ns = t_ns;
    return rc;
}

static int read_fields(struct nrg_import *im, const struct fields *f, struct nrg_error *err)
{
    struct perf *p = im->state;
    for (size_t i = 1; i < f->n; i++) {
        double ns;
        if (field_is(f, i, UNIT)) {
            int rc = take_time(im, f, i - 1, err);
            return rc ? rc : add_energy(p, f, i, err);
        }
        if (field_is(f, i, "ns") && field_is(f, i + 1, "duration_time") && i == 1 &&
            !read_number(f, 0, &ns) && ns > 0 && ns < 1e18)
            p->duration_ns = (int64_t)ns;
    }
    return 0;
}

static int read_line(struct nrg_import *im, char *line, size_t len, struct nrg_error *err)
{
    struct perf *p = im->state;
    struct fields f;
    if (line[0] == '#')
        return start_log(im, line, len, err);
    const char *unit = memmem(line, len, UNIT, strlen(UNIT));
    const char *other = memmem(line, len, "duration_time", strlen("duration_time"));
    const char *word = unit ? unit : other;
    if (!word || word == line)
        return 0; /* another event */
    if (word[-1] == ' ')
        return nrg_fail(err, -EINVAL, NULL,
                        "is perf stat's table for people: it is read as made "
                        "by perf stat -I 1000 -x,");
    im->undated = !p->start_ns;
    split(&f, line, len, word[-1]);
    return read_fields(im, &f, err);
}

static int finish(struct nrg_import *im, struct nrg_error *err)
{
    struct perf *p = im->state;
    int rc = write_record(im, err);
    if (!rc && !im->result.records)
        rc = nrg_fail(err, -ENODATA, NULL,
                      "has no energy event that was counted "
                      "(perf stat -a -I 1000 -x, -e power/energy-pkg/)");
    *p = (struct perf){.duration_ns = p->duration_ns};
    return rc;
}

const struct nrg_import_format nrg_import_perf_stat = {
    .name = "perf-stat",
    .match = is_perf,
    .record = read_line,
    .finish = finish,
    .means = true,
    .state_size = sizeof(struct perf),
};
