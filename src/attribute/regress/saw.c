/*
 * The line of a counter's updates in what a first fit leaves: see clockwork.h. The ages of readings
 * follow one another like the teeth of a saw. Divided by the power at each reading, what is left
 * has a line in its spectrum: its frequency is that of the updates (or one that can't be told from
 * it at the times of the readings, which is as good), its phase that of their clock.
 */
#include <complex.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "attribute/regress/clockwork.h"
#include "base/mem.h"

#define COARSE_WORK    2e6  /* rows times frequencies of the first search */
#define PER_RESOLUTION 4    /* frequencies that are tried */
#define CLEARLY        25.0 /* as in choose.c */

/* Rows of two kernels in step: what is expected up to the readings, and up to an update before. */
struct pair {
    struct nrg_rowgen now, before;
};

static void start_pair(const struct nrg_saw *s, struct pair *p)
{
    const struct nrg_regress *r = s->r;
    struct nrg_kernel now = {.kind = NRG_KERNEL_LEVEL},
                      before = nrg_kernel_moved(now, s->update_s, 0);
    bool drift = nrg_regress_sees_drift(r, r->rows_expected);
    nrg_rowgen_init(&p->now, &r->options, &now, NULL, drift);
    nrg_rowgen_init(&p->before, &r->options, &before, NULL, drift);
    p->now.usable_from_ns = p->before.usable_from_ns;
}

/* The power before the first reading of a stretch is not known, but the mean over it is. */
static void level_powers(struct nrg_saw *s, size_t from, size_t to)
{
    double mean_w = s->r->energy_j / s->r->energy_s, sum_w = 0;
    for (size_t i = from; i < to; i++)
        sum_w += s->rows[i].to_w;
    double off_w = to > from ? mean_w - sum_w / (double)(to - from) : 0;
    for (size_t i = from; i < to; i++) {
        s->rows[i].from_w = fmax(s->rows[i].from_w + off_w, 0);
        s->rows[i].to_w = fmax(s->rows[i].to_w + off_w, 0);
    }
}

/* Next row of both; 1, 0 at the end, or -errno. */
static int next_pair(const struct nrg_saw *s, struct pair *p)
{
    const struct nrg_regress *r = s->r;
    int rc = nrg_rowgen_next(&p->now, &r->slices, r->ready_ns, r->n_columns);
    if (rc > 0)
        rc = nrg_rowgen_next(&p->before, &r->slices, r->ready_ns, r->n_columns);
    return rc;
}

/* Fills rows with what is left if no reading were old. */
int nrg_saw_take_rows(struct nrg_saw *s)
{
    struct pair p;
    size_t begun = 0;
    int rc = 0;
    start_pair(s, &p);
    for (s->n = 0; s->n < s->n_read;) {
        rc = next_pair(s, &p);
        if (rc <= 0)
            break;
        double now_j = nrg_regress_expected(s->r, &p.now),
               before_j = nrg_regress_expected(s->r, &p.before);
        const struct nrg_observation *seen = &p.now.seen;
        struct nrg_saw_row *row = &s->rows[s->n];
        bool joined = s->n && !p.now.restart && row[-1].to_s == nrg_saw_seconds(s, seen->from_ns);
        if (!joined) {
            level_powers(s, begun, s->n);
            begun = s->n;
        }
        *row = (struct nrg_saw_row){.from_s = nrg_saw_seconds(s, seen->from_ns),
                                    .to_s = nrg_saw_seconds(s, seen->to_ns),
                                    .from_w = joined ? row[-1].to_w : 0,
                                    .off_j = p.now.y - now_j};
        row->to_w = row->from_w + (now_j - before_j) / s->update_s;
        s->n++;
    }
    level_powers(s, begun, s->n);
    nrg_rowgen_release(&p.now);
    nrg_rowgen_release(&p.before);
    return rc < 0 ? rc : 0;
}

/* Sums of least squares of what is left on a cosine and a sine of the ages. */
struct line {
    double cc, ss, cs, ce, se, ee;
};

static void add_to_line(const struct nrg_saw *s, const struct nrg_saw_row *row, double complex from,
                        double complex to, struct line *line)
{
    double c = row->from_w * creal(from) - row->to_w * creal(to);
    double d = row->from_w * cimag(from) - row->to_w * cimag(to);
    double e = row->off_j + s->update_s / 2 * (row->to_w - row->from_w);
    line->cc += c * c;
    line->ss += d * d;
    line->cs += c * d;
    line->ce += c * e;
    line->se += d * e;
    line->ee += e * e;
}

/* The part that it explains; *phase: of the saw that has it. */
static double explained(const struct line *l, double *phase)
{
    double det = l->cc * l->ss - l->cs * l->cs;
    if (!(det > 1e-12 * l->cc * l->ss) || !(l->ee > 0))
        return 0;
    double a = (l->ce * l->ss - l->se * l->cs) / det, b = (l->se * l->cc - l->ce * l->cs) / det;
    *phase = atan2(-a, -b) / (2 * M_PI);
    return (a * l->ce + b * l->se) / l->ee;
}

struct turning {
    double complex from, to, from_step, to_step;
};

/* The frequency that explains most of the first n rows, of `count` from `low` on. */
static int scan(const struct nrg_saw *s, size_t n, double low, double step, size_t count,
                struct nrg_clockwork *best, double *part)
{
    struct turning *wheels = nrg_calloc(n + 1, sizeof *wheels);
    if (!wheels)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        double from = 2 * M_PI * s->rows[i].from_s, to = 2 * M_PI * s->rows[i].to_s;
        wheels[i] = (struct turning){cexp(I * low * from), cexp(I * low * to),
                                     cexp(I * step * from), cexp(I * step * to)};
    }
    *part = 0;
    for (size_t k = 0; k < count; k++) {
        struct line line = {0};
        double phase = 0;
        for (size_t i = 0; i < n; i++) {
            struct turning *w = &wheels[i];
            add_to_line(s, &s->rows[i], w->from, w->to, &line);
            w->from *= w->from_step;
            w->to *= w->to_step;
        }
        double now = explained(&line, &phase);
        if (now > *part) {
            *part = now;
            best->frequency = low + step * (double)k;
            best->phase = phase;
        }
    }
    free(wheels);
    return 0;
}

/* Frequencies further apart than one per row look alike. */
static double band_of(const struct nrg_saw *s)
{
    return fmin(2 * NRG_SAW_PERIOD_OFF / s->update_s, 1 / nrg_saw_row_s(s));
}

/* First a part of the run, then twice as much each time, closer to what was found. */
int nrg_saw_find_line(const struct nrg_saw *s, struct nrg_clockwork *best, double *part)
{
    double middle = 1 / s->update_s, band = band_of(s);
    size_t n = s->n;
    while (n > NRG_SAW_LEAST_ROWS &&
           (double)n * nrg_saw_length_s(s, n) * band * PER_RESOLUTION > COARSE_WORK)
        n = n / 4 * 3;
    double step = 1 / (PER_RESOLUTION * nrg_saw_length_s(s, n));
    int rc = scan(s, n, middle - band / 2, step, (size_t)(band / step) + 1, best, part);
    double chance = 2 * log(band / step + 1);
    if (!rc && (double)n * -log1p(-fmin(*part, 1 - 1e-9)) < chance + CLEARLY)
        *part = 0;
    for (bool last = false; !rc && *part > NRG_SAW_LEAST_PART && !last;) {
        double reach = step;
        last = n == s->n;
        n = 2 * n < s->n ? 2 * n : s->n;
        step = 1 / (2 * PER_RESOLUTION * nrg_saw_length_s(s, n));
        rc = scan(s, n, best->frequency - reach, step, (size_t)(2 * reach / step) + 1, best, part);
    }
    return rc;
}
