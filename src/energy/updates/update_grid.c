/* See update_grid.h. Periods are tried about that of the line; each leaves phases, or none. */
#include "energy/updates/update_grid.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define LEAST_CHANGES 16
#define PERIODS       2001 /* that are looked at, for one that all updates allow */
#define PERIOD_OFF    2e-3 /* of the period, to both sides */
#define JITTER        0.1  /* of the time between readings: how far an update may lie outside */

bool nrg_update_is_news(const struct nrg_timeline *tl, size_t i)
{
    return tl->is_gauge ? fabs(nrg_point_gauge(tl, i) - nrg_point_gauge(tl, i - 1)) > tl->held_w
                        : nrg_point_j(tl, i) != nrg_point_j(tl, i - 1);
}

static double middle_s(const struct nrg_update *update)
{
    return (update->low_s + update->high_s) / 2;
}

/* How far a phase is outside of where an update of that number may lie: below 0 where it is late.
 */
static double outside_s(const struct nrg_update *u, double number, double about_s, double phase_s)
{
    double early_s = u->low_s - number * about_s - phase_s;
    double late_s = u->high_s - number * about_s - phase_s;
    return early_s > 0 ? early_s : late_s < 0 ? late_s : 0;
}

/*
 * By a phase that moves no further than readings say: those that are half an update apart may show
 * two neighbours 0.5 or 1.5 updates apart. Where two numbers are as likely, nothing was missed.
 */
void nrg_updates_number(struct nrg_update *u, size_t n, double about_s)
{
    double phase_s = n ? middle_s(&u[0]) : 0, next = 0;
    for (size_t i = 0; i < n; i++) {
        double first = fmax(next, round((middle_s(&u[i]) - phase_s) / about_s) - 1), best = first;
        double surer_s = JITTER * (u[i].high_s - u[i].low_s);
        for (double k = first + 1; i && k < first + 3; k++)
            if (fabs(outside_s(&u[i], k, about_s, phase_s)) + surer_s <
                fabs(outside_s(&u[i], best, about_s, phase_s)))
                best = k;
        u[i].number = best;
        phase_s += outside_s(&u[i], best, about_s, phase_s);
        next = best + 1;
    }
}

static bool fit_line(const struct nrg_update *u, size_t n, struct nrg_update_grid *grid)
{
    double sum_k = 0, sum_t = 0, sum_kk = 0, sum_kt = 0, count = (double)n;
    for (size_t i = 0; i < n; i++) {
        double k = u[i].number, t = middle_s(&u[i]);
        sum_k += k, sum_t += t, sum_kk += k * k, sum_kt += k * t;
    }
    double det = count * sum_kk - sum_k * sum_k;
    if (!(det > 0))
        return false;
    grid->period_s = (count * sum_kt - sum_k * sum_t) / det;
    grid->origin_s = (sum_t - grid->period_s * sum_k) / count;
    return grid->period_s > 0;
}

/* Phases with which all updates lie where they may; none where low is above high. */
struct phases {
    double low_s, high_s;
};

static struct phases phases_of(const struct nrg_update *u, size_t n, double period_s)
{
    struct phases p = {-INFINITY, INFINITY};
    for (size_t i = 0; i < n; i++) {
        double low_s = u[i].low_s - period_s * u[i].number;
        double high_s = u[i].high_s - period_s * u[i].number;
        p.low_s = low_s > p.low_s ? low_s : p.low_s;
        p.high_s = high_s < p.high_s ? high_s : p.high_s;
    }
    return p;
}

/* Periods that are looked at. */
struct periods {
    const struct nrg_update *updates;
    size_t n;
    double middle_s, step_s;
};

static double period_s(const struct periods *p, int i)
{
    return p->middle_s + p->step_s * (i - PERIODS / 2);
}

/* How far phases may differ with a period; below 0, how far updates lie outside. As a function of
 * the period it rises to its top and falls from there. */
static double room_s(const struct periods *p, int i)
{
    struct phases phases = phases_of(p->updates, p->n, period_s(p, i));
    return phases.high_s - phases.low_s;
}

static int widest(const struct periods *p)
{
    int low = 0, high = PERIODS - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (room_s(p, middle) < room_s(p, middle + 1))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The last period from one with more than so much room to another, which may have less. */
static int last_with_room(const struct periods *p, int from, int to, double least_s)
{
    if (room_s(p, to) > least_s)
        return to;
    while (abs(to - from) > 1) {
        int middle = (from + to) / 2;
        if (room_s(p, middle) > least_s)
            from = middle;
        else
            to = middle;
    }
    return from;
}

bool nrg_update_grid_find(const struct nrg_update *u, size_t n, struct nrg_update_grid *grid)
{
    *grid = (struct nrg_update_grid){0};
    if (!n || !fit_line(u, n, grid))
        return false;
    struct periods periods = {u, n, grid->period_s,
                              2 * PERIOD_OFF * grid->period_s / (PERIODS - 1)};
    double slack_s = JITTER * (u[0].high_s - u[0].low_s);
    int best = widest(&periods);
    double widest_s = room_s(&periods, best);
    grid->half_period_s = periods.step_s;
    grid->half_origin_s = slack_s;
    if (!(widest_s > -slack_s))
        return true;
    double low_s = period_s(&periods, last_with_room(&periods, best, 0, -slack_s));
    double high_s = period_s(&periods, last_with_room(&periods, best, PERIODS - 1, -slack_s));
    grid->regular = true;
    grid->period_s = (low_s + high_s) / 2;
    struct phases phases = phases_of(u, n, grid->period_s);
    grid->origin_s = (phases.low_s + phases.high_s) / 2;
    grid->half_period_s = fmax((high_s - low_s) / 2, periods.step_s);
    grid->half_origin_s = fmax(widest_s / 2, slack_s) + slack_s;
    return true;
}

bool nrg_update_grid_fit(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns,
                         double update_ns, double per_update, struct nrg_update_grid *grid)
{
    struct nrg_update *updates = NULL;
    size_t n = 0, cap = 0;
    double readings = 0;
    int rc = 0;
    for (size_t i = 1; !rc && i < tl->n && nrg_point_ns(tl, i) <= end_ns; i++) {
        struct nrg_update update = {(double)(nrg_point_ns(tl, i - 1) - begin_ns) / 1e9,
                                    (double)(nrg_point_ns(tl, i) - begin_ns) / 1e9, 0};
        if (nrg_point_ns(tl, i) < begin_ns)
            continue;
        readings++;
        if (nrg_update_is_news(tl, i))
            rc = nrg_append(&updates, &n, &cap, &update, sizeof update);
    }
    bool enough =
        n >= LEAST_CHANGES && readings * update_ns >= per_update * (double)(end_ns - begin_ns);
    if (!rc && enough)
        nrg_updates_number(updates, n, update_ns / 1e9);
    bool found = !rc && enough && nrg_update_grid_find(updates, n, grid);
    free(updates);
    return found;
}
