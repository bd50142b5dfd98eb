/*
 * The line of a counter's updates in what a first fit leaves: see clockwork.h. The ages of readings
 * follow one another like the teeth of a saw. Divided by the power at each reading, what is left
 * has a line in its spectrum: its frequency is that of the updates (or one that can't be told from
 * it at the times of the readings, which is as good), its phase that of their clock.
 *
 * From one reading to the next, a saw whose teeth are many readings long hardly changes, but where
 * a tooth ends. So what readings are off by may be kept from one to the next in part: the more of
 * it, the more a slow saw looks like itself, and the more the errors of powers add up.
 */
#include <complex.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/updates/clockwork.h"
#include "base/mem.h"

#define COARSE_WORK    2e6  /* rows times frequencies of the first search */
#define WAITING_WORK   3e7  /* the same where threads wait: a line shows in more rows only */
#define PER_RESOLUTION 4    /* frequencies that are tried */
#define LEAST_SEEN     0.4  /* of a line, half of a resolution away: (2 / pi)^2 */
#define MANY           64   /* frequencies */
#define CLEARLY        25.0 /* as in trials.h */
#define SLOW           1.5  /* teeth in the readings of the first search */
#define SLOW_READINGS  4000
#define PART_READINGS  256
#define DEPENDENT      1e-6 /* a sine and a cosine that can't be told apart */

/* Sums of least squares of what is left on a cosine and a sine of the ages. */
struct line {
    double cc, ss, cs, ce, se;
};

/* The part that it explains of ee; *phase: of the saw that has it. */
static double explained(const struct line *l, double ee, double *phase)
{
    double det = l->cc * l->ss - l->cs * l->cs;
    if (!(det > DEPENDENT * l->cc * l->ss) || !(ee > 0))
        return 0;
    double a = (l->ce * l->ss - l->se * l->cs) / det, b = (l->se * l->cc - l->ce * l->cs) / det;
    *phase = atan2(a, b) / (2 * M_PI);
    return (a * l->ce + b * l->se) / ee;
}

/* Frequencies side by side: what every 64 bit machine can do at once. */
#define LANES 4
typedef float lanes __attribute__((vector_size(LANES * sizeof(float))));

/* A reading, and its power as wheels that turn on by LANES frequencies. */
struct wheel {
    lanes re, im;
    float step_re, step_im;
    float off_j; /* what is left of it, and of those before, as far as that is kept */
    float kept;  /* of the reading before; 0: a stretch begins, or nothing is */
    float joined;
};

/* Frequencies that are tried, `count` of them from `low` on, and in which readings. */
struct band {
    double low, step;
    size_t count;
    size_t n, stride; /* every `stride`th of the first n */
    double kept;
};

/* One lane after the other is a step further. */
static void set_wheel(const struct band *band, const struct nrg_saw_reading *now, struct wheel *w)
{
    double turn = 2 * M_PI * band->low * now->t_s, more = 2 * M_PI * band->step * now->t_s;
    double at_im, at_re, step_im, step_re;
    sincos(turn, &at_im, &at_re);
    sincos(more, &step_im, &step_re);
    double complex at = now->power_w * (at_re + I * at_im), step = step_re + I * step_im, all = 1;
    for (int k = 0; k < LANES; k++, at *= step, all *= step) {
        w->re[k] = (float)creal(at);
        w->im[k] = (float)cimag(at);
    }
    w->step_re = (float)creal(all);
    w->step_im = (float)cimag(all);
}

/* Returns how many there are; *ee: the sum of squares of what is left. */
static size_t set_wheels(const struct nrg_saw *s, const struct band *band, struct wheel *wheels,
                         double *ee)
{
    double last_j = 0, off_j = 0;
    size_t n = 0;
    bool joined = false;
    *ee = 0;
    for (size_t i = 0; i < band->n; i++) {
        const struct nrg_saw_reading *now = &s->readings[i];
        joined &= now->joined;
        if (i % band->stride)
            continue;
        double level_j = now->beyond_j + s->update_s / 2 * now->power_w;
        off_j = joined ? band->kept * off_j + level_j - last_j : 0;
        last_j = level_j;
        *ee += off_j * off_j;
        set_wheel(band, now, &wheels[n]);
        wheels[n].off_j = (float)off_j;
        wheels[n].kept = joined ? (float)band->kept : 0;
        wheels[n++].joined = joined;
        joined = true;
    }
    return n;
}

/* What is carried from one reading to the next. */
struct carried {
    lanes c, d, re, im;
};

struct sums {
    lanes cc, ss, cs, ce, se;
};

/* Sums of LANES frequencies over some readings; the wheels turn on to the next. */
static struct sums turn_wheels(struct wheel *wheels, size_t n, struct carried *carried)
{
    struct sums sum = {.cc = {0}};
    struct carried last = *carried;
    for (size_t i = 0; i < n; i++) {
        struct wheel *w = &wheels[i];
        lanes re = w->re, im = w->im;
        last.c = w->kept * last.c + w->joined * (re - last.re);
        last.d = w->kept * last.d + w->joined * (im - last.im);
        last.re = re;
        last.im = im;
        sum.cc += last.c * last.c;
        sum.ss += last.d * last.d;
        sum.cs += last.c * last.d;
        sum.ce += last.c * w->off_j;
        sum.se += last.d * w->off_j;
        w->re = re * w->step_re - im * w->step_im;
        w->im = re * w->step_im + im * w->step_re;
    }
    *carried = last;
    return sum;
}

/* The same over all of them, a part after the other: sums of many single precision numbers lose
 * digits. */
static void add_lines(struct wheel *wheels, size_t n, struct line lines[LANES])
{
    struct carried carried = {.c = {0}};
    memset(lines, 0, LANES * sizeof *lines);
    for (size_t i = 0; i < n; i += PART_READINGS) {
        size_t some = n - i < PART_READINGS ? n - i : PART_READINGS;
        struct sums sum = turn_wheels(wheels + i, some, &carried);
        for (int k = 0; k < LANES; k++) {
            lines[k].cc += (double)sum.cc[k];
            lines[k].ss += (double)sum.ss[k];
            lines[k].cs += (double)sum.cs[k];
            lines[k].ce += (double)sum.ce[k];
            lines[k].se += (double)sum.se[k];
        }
    }
}

/* Wheels of all readings for the frequencies of a band, set anew for every part of it. */
struct scan {
    const struct nrg_saw *saw;
    struct wheel *wheels;
    size_t n;
    double ee;
};

static void start_scan(struct scan *scan, const struct band *band)
{
    scan->n = set_wheels(scan->saw, band, scan->wheels, &scan->ee);
}

/* The frequency of a band that explains most. parts: what each of them does; NULL. */
static void try_all(struct scan *scan, const struct band *band, struct nrg_clockwork *best,
                    double *part, float *parts)
{
    struct line lines[LANES];
    start_scan(scan, band);
    for (size_t k = 0; k < band->count; k++) {
        if (k % LANES == 0)
            add_lines(scan->wheels, scan->n, lines);
        double phase = 0, now = explained(&lines[k % LANES], scan->ee, &phase);
        if (parts)
            parts[k] = (float)now;
        if (now > *part) {
            *part = now;
            best->frequency = band->low + band->step * (double)k;
            best->phase = phase;
        }
    }
}

static bool is_chance(const struct scan *scan, const struct band *band, double part)
{
    double chance = 2 * log((double)band->count);
    return (double)scan->n * -log1p(-fmin(part, 1 - 1e-9)) < chance + CLEARLY;
}

/*
 * First one frequency per resolution. A line in the middle between two of them shows by LEAST_SEEN
 * of itself in both, so that the frequencies about those that explain much are all that is left to
 * try: four of them, from half of the way to the one before.
 */
static int try_coarse_to_fine(struct scan *scan, const struct band *band,
                              struct nrg_clockwork *best, double *part)
{
    struct band coarse = *band;
    coarse.step *= PER_RESOLUTION;
    coarse.count = band->count / PER_RESOLUTION + 1;
    float *parts = nrg_calloc(coarse.count, sizeof *parts);
    if (!parts)
        return -ENOMEM;
    try_all(scan, &coarse, best, part, parts);
    double most = *part;
    for (size_t k = 0; k < coarse.count; k++) {
        struct band fine = *band;
        fine.low += coarse.step * ((double)k - 0.5);
        fine.count = PER_RESOLUTION;
        if ((double)parts[k] >= LEAST_SEEN * most &&
            !is_chance(scan, band, (double)parts[k] / LEAST_SEEN))
            try_all(scan, &fine, best, part, NULL);
    }
    free(parts);
    return 0;
}

/* The frequency that explains most, and whether that is more than chance does. */
static int scan_band(const struct nrg_saw *s, const struct band *band, struct nrg_clockwork *best,
                     double *part)
{
    struct scan scan = {.saw = s};
    int rc = 0;
    scan.wheels = nrg_calloc(band->n / band->stride + 1, sizeof *scan.wheels);
    if (!scan.wheels)
        return -ENOMEM;
    *part = 0;
    if (band->count > MANY)
        rc = try_coarse_to_fine(&scan, band, best, part);
    else
        try_all(&scan, band, best, part, NULL);
    if (is_chance(&scan, band, *part))
        *part = 0;
    free(scan.wheels);
    return rc;
}

static void set_band(struct band *band, double low, double width, double step)
{
    band->low = low;
    band->step = step;
    band->count = (size_t)(width / step) + 1;
}

/* Frequencies further apart than one per row look alike. */
static double width_of(const struct nrg_saw *s)
{
    return fmin(2 * NRG_SAW_PERIOD_OFF / s->update_s, 1 / nrg_saw_row_s(s));
}

/* So many readings that all frequencies can be tried. */
static size_t first_readings(const struct nrg_saw *s)
{
    size_t n = s->n;
    double most = s->r->waits.used ? WAITING_WORK : COARSE_WORK;
    while (n > NRG_SAW_LEAST_ROWS &&
           (double)n * nrg_saw_length_s(s, n) * width_of(s) * PER_RESOLUTION > most)
        n = n / 4 * 3;
    return n;
}

int nrg_saw_find_line(const struct nrg_saw *s, double kept, struct nrg_clockwork *best,
                      double *part)
{
    double width = width_of(s);
    struct band band = {.n = first_readings(s), .stride = 1, .kept = kept};
    set_band(&band, 1 / s->update_s - width / 2, width,
             1 / (PER_RESOLUTION * nrg_saw_length_s(s, band.n)));
    int rc = scan_band(s, &band, best, part);
    for (bool last = false; !rc && *part > nrg_saw_least_part(s) && !last;) {
        double reach = band.step;
        last = band.n == s->n;
        band.n = 2 * band.n < s->n ? 2 * band.n : s->n;
        set_band(&band, best->frequency - reach, 2 * reach,
                 1 / (2 * PER_RESOLUTION * nrg_saw_length_s(s, band.n)));
        rc = scan_band(s, &band, best, part);
    }
    return rc;
}

int nrg_saw_find_slow_line(const struct nrg_saw *s, double kept, struct nrg_clockwork *best,
                           double *part)
{
    double reading_hz = 1e9 / (double)s->r->options.timeline->period_ns,
           in_step = round(1 / s->update_s / reading_hz) * reading_hz,
           width = 2 * SLOW / nrg_saw_length_s(s, first_readings(s));
    struct band band = {.n = s->n, .stride = s->n / SLOW_READINGS + 1, .kept = kept};
    set_band(&band, in_step - width / 2, width, 1 / (PER_RESOLUTION * nrg_saw_length_s(s, s->n)));
    return scan_band(s, &band, best, part);
}
