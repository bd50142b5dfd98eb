/*
 * See held.h. Differences between neighbours are of two kinds: many small ones, the noise, and
 * some large ones, the news. The border is sought from four deviations of the small ones on. What
 * makes sure of it is that the news then come on a strict grid, as those of a device's clock do: a
 * program's own changes do not.
 */
#include "energy/updates/held.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/stats.h"
#include "energy/updates/update_grid.h"

#define MOST_READINGS 50000
#define LEAST_NEWS    30
#define READ_PER_NEWS 2.5 /* readings */
#define START         4   /* medians of all differences: the first border */
#define DEVIATIONS    4
#define STEPS         2.5 /* of a sensor: a value between two of them is rounded to either */
#define ROUNDS        8
#define BORDERS       6 /* noise has tails: so many are tried */
#define FURTHER       1.25
#define FOLLOWED      10   /* at least one of so many news follows on one */
#define TUNE_OFF      0.04 /* of the distance that was seen first */
#define TUNE_STEPS    4    /* in which the last update moves by one */

struct changes {
    double *apart_w; /* of neighbours, sorted */
    struct nrg_update *news;
    double *spacing_s;
    size_t n;         /* neighbours */
    double reading_s; /* from one to the next */
};

static double apart_w(const struct nrg_timeline *tl, size_t i)
{
    return fabs(nrg_point_gauge(tl, i) - nrg_point_gauge(tl, i - 1));
}

static size_t readings_of(const struct nrg_timeline *tl)
{
    return tl->n < MOST_READINGS ? tl->n : MOST_READINGS;
}

/* The smallest difference that is none: the sensor's step, or next to nothing. */
static double least_step(const struct changes *c)
{
    size_t i = 0;
    while (i < c->n && !(c->apart_w[i] > 0))
        i++;
    return i < c->n ? c->apart_w[i] : 0;
}

/* Above what differences are no noise, if most of them are. */
static double noise_border(const struct changes *c)
{
    double step_w = least_step(c), border_w = START * fmax(c->apart_w[c->n / 2], step_w);
    for (int round = 0; round < ROUNDS; round++) {
        double squares = 0;
        size_t n = 0;
        for (; n < c->n && c->apart_w[n] <= border_w; n++)
            squares += c->apart_w[n] * c->apart_w[n];
        border_w = fmax(DEVIATIONS * sqrt(squares / fmax((double)n, 1)), STEPS * step_w);
    }
    return border_w;
}

/* Changes by more than the border: between which readings they were. */
static size_t list_news(const struct nrg_timeline *tl, double border_w, struct changes *c)
{
    size_t n = 0;
    int64_t first_ns = nrg_point_ns(tl, 0);
    for (size_t i = 1; i < readings_of(tl); i++)
        if (!nrg_point_gap(tl, i - 1) && apart_w(tl, i) > border_w)
            c->news[n++] = (struct nrg_update){(double)(nrg_point_ns(tl, i - 1) - first_ns) / 1e9,
                                               (double)(nrg_point_ns(tl, i) - first_ns) / 1e9, 0};
    return n;
}

/* The distance of news that followed on one another: many updates change little, and are none. */
static double least_spacing_s(struct changes *c, size_t news)
{
    for (size_t i = 0; i + 1 < news; i++)
        c->spacing_s[i] = c->news[i + 1].high_s - c->news[i].high_s;
    nrg_sort(c->spacing_s, news - 1);
    double least_s = c->spacing_s[(news - 1) / FOLLOWED], sum = 0, n = 0;
    for (size_t i = 0; i + 1 < news; i++)
        if (fabs(c->spacing_s[i] - least_s) < least_s / 2) {
            sum += c->spacing_s[i];
            n++;
        }
    return n > 0 ? sum / n : least_s;
}

/* How far news are alike in their phase, from 0 to how many they are. */
static double in_phase(const struct changes *c, size_t news, double period_s)
{
    double x = 0, y = 0;
    for (size_t i = 0; i < news; i++) {
        double turn = 2 * M_PI * (c->news[i].low_s + c->news[i].high_s) / (2 * period_s);
        x += cos(turn);
        y += sin(turn);
    }
    return hypot(x, y);
}

/* The period within `reach` of one, as a part of it, with which news are most in phase. What may be
 * wrong with it then is returned in `reach`. */
static double tune_period_s(const struct changes *c, size_t news, double about_s, double *reach)
{
    double updates = (c->news[news - 1].high_s - c->news[0].low_s) / about_s;
    double step = 1 / (TUNE_STEPS * fmax(updates, 1)), best_s = about_s, most = 0;
    for (double off = -*reach; off <= *reach; off += step) {
        double period_s = about_s * (1 + off), alike = in_phase(c, news, period_s);
        best_s = alike > most ? period_s : best_s;
        most = fmax(most, alike);
    }
    *reach = fmin(*reach, 1 / fmax(updates, 1));
    return best_s;
}

/* By a few news first and then by more: stretches without any must not be miscounted. */
static double find_period_s(const struct changes *c, size_t news, double about_s)
{
    double period_s = about_s, reach = TUNE_OFF;
    for (size_t n = LEAST_NEWS; n < news; n *= 4)
        period_s = tune_period_s(c, n, period_s, &reach);
    return tune_period_s(c, news, period_s, &reach);
}

/* How far apart news beyond a border are, of a strict grid; 0: they are on none. */
static double grid_period_s(const struct nrg_timeline *tl, double border_w, struct changes *c)
{
    struct nrg_update_grid grid;
    size_t news = list_news(tl, border_w, c);
    if (news < LEAST_NEWS || (double)c->n < READ_PER_NEWS * (double)news)
        return 0;
    double spacing_s = least_spacing_s(c, news);
    if (spacing_s < READ_PER_NEWS * c->reading_s) /* any news are on a grid that is so fine */
        return 0;
    nrg_updates_number(c->news, news, find_period_s(c, news, spacing_s));
    return nrg_update_grid_find(c->news, news, &grid) && grid.regular ? grid.period_s : 0;
}

/* Equal values first; then those that noise may tell apart. */
static struct nrg_held find_border(const struct nrg_timeline *tl, struct changes *c)
{
    double border_w = 0;
    for (int i = 0; i <= BORDERS; i++) {
        double period_s = grid_period_s(tl, border_w, c);
        if (period_s > 0)
            return (struct nrg_held){(int64_t)(period_s * 1e9), border_w};
        border_w = i ? FURTHER * border_w : noise_border(c);
    }
    return (struct nrg_held){0};
}

int nrg_held_find(const struct nrg_timeline *tl, struct nrg_held *held)
{
    struct nrg_arena memory = {0};
    size_t n = readings_of(tl);
    *held = (struct nrg_held){0};
    if (!tl->is_gauge || (double)n < READ_PER_NEWS * LEAST_NEWS)
        return 0;
    struct changes c = {.apart_w = nrg_arena_array(&memory, n, sizeof *c.apart_w),
                        .news = nrg_arena_array(&memory, n, sizeof *c.news),
                        .spacing_s = nrg_arena_array(&memory, n, sizeof *c.spacing_s)};
    for (size_t i = 1; !memory.failed && i < n; i++)
        if (!nrg_point_gap(tl, i - 1))
            c.apart_w[c.n++] = apart_w(tl, i);
    c.reading_s = (double)(nrg_point_ns(tl, n - 1) - nrg_point_ns(tl, 0)) / 1e9 / (double)(n - 1);
    if (c.n) {
        nrg_sort(c.apart_w, c.n);
        *held = find_border(tl, &c);
    }
    int rc = memory.failed ? -ENOMEM : 0;
    nrg_arena_release(&memory);
    return rc;
}
