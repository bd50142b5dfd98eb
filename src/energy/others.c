/*
 * See others.h. The sum of the differences may only grow: it waits while it is below what it was,
 * and what it then gains within one tick may be rounding, so it counts only from the next tick on.
 */
#include "energy/others.h"

#include <math.h>

#define PAIRED_S   0.5e-3 /* the two times are read so far apart at most */
#define EVEN       0.1    /* of a cell: one that differs more from the others is left alone */
#define LEAST_PAIR 20     /* neighbours, to tell anything from */
#define SHORTEST   0.02   /* of a cell, that others stay busy: less does not show */
#define LONGEST    20.0
#define LEVELS     1.0 /* cells that others stay busy in the mean: then they go from level to level */
#define SAME       0.01 /* CPUs, beside a tick of a cell: of one level */
#define FINE       0.05 /* of a cell: a longer tick hides levels */

void nrg_others_spread(const double *busy_s, const double *mine_s, const double *recorder_s,
                       size_t n, double tick_s, double *others_s)
{
    double sum_s = 0, known_s = 0, slack_s = tick_s + PAIRED_S;
    for (size_t k = 0; k < n; k++) {
        double own_s = recorder_s ? recorder_s[k] : 0;
        sum_s += busy_s[k] - mine_s[k] - own_s;
        double grown_s = sum_s - known_s - slack_s;
        double beyond_s = grown_s > 0 ? grown_s : 0;
        known_s += beyond_s;
        known_s = fmax(known_s, 0);
        others_s[k] = beyond_s + own_s;
    }
}

static double length_s(const int64_t *begin_ns, size_t k)
{
    return (double)(begin_ns[k + 1] - begin_ns[k]) * 1e-9;
}

static bool is_even(const int64_t *begin_ns, size_t k, double cell_s)
{
    return fabs(length_s(begin_ns, k) - cell_s) < EVEN * cell_s;
}

/* Sums over pairs of neighbouring cells. */
struct pairs {
    double n, mean, own, next; /* own: variance of a cell's CPUs; next: covariance of neighbours */
};

static struct pairs sum_pairs(const double *others_s, const int64_t *begin_ns, size_t n,
                              double cell_s)
{
    struct pairs p = {0};
    double before = 0, after = 0;
    for (size_t k = 0; k + 1 < n; k++) {
        if (!is_even(begin_ns, k, cell_s) || !is_even(begin_ns, k + 1, cell_s))
            continue;
        double a = others_s[k] / cell_s, b = others_s[k + 1] / cell_s;
        p.n++;
        before += a;
        after += b;
        p.own += (a * a + b * b) / 2;
        p.next += a * b;
    }
    if (p.n < LEAST_PAIR)
        return p;
    p.mean = (before + after) / 2 / p.n;
    p.own = p.own / p.n - p.mean * p.mean;
    p.next = p.next / p.n - p.mean * p.mean;
    return p;
}

/* Of cells whose length is 1 and a correlation that decays over `stay`: variance of a cell's mean,
 * and covariance with the next one's. */
static double own_variance(double stay)
{
    return 2 * stay * stay * (1 / stay + expm1(-1 / stay));
}

static double next_covariance(double stay)
{
    double part = expm1(-1 / stay);
    return stay * stay * part * part;
}

/* How long others stay busy, in cells, from how alike neighbours are. */
static double find_stay(double likeness)
{
    double low = SHORTEST, high = LONGEST;
    for (int i = 0; i < 40; i++) {
        double stay = sqrt(low * high);
        *(next_covariance(stay) / own_variance(stay) < likeness ? &low : &high) = stay;
    }
    return low;
}

/* x = inverse(a) * b of a symmetric matrix {own, next, far}, whose outer entries are alike. */
static void solve_three(double own, double next, double far, const double b[3], double x[3])
{
    double odd = (b[0] - b[2]) / (own - far), even = b[0] + b[2];
    double sum = own + far, det = sum * own - 2 * next * next;
    double outer = (even * own - 2 * next * b[1]) / det;
    x[1] = (b[1] * sum - next * even) / det;
    x[0] = (outer + odd) / 2;
    x[2] = (outer - odd) / 2;
}

static void set_weights(struct nrg_others_profile *profile, double stay, double variance,
                        double noise)
{
    double own = variance * own_variance(stay) + 2 * noise;
    double next = variance * next_covariance(stay) - noise;
    double far = variance * next_covariance(stay) * exp(-1 / stay);
    double whole = -expm1(-1 / stay), width = 1.0 / NRG_OTHERS_PARTS;
    for (size_t i = 0; i < NRG_OTHERS_PARTS; i++) {
        double from = (double)i * width, to = from + width;
        double left = stay * (exp(-from / stay) - exp(-to / stay)) / width;
        double right = stay * (exp((to - 1) / stay) - exp((from - 1) / stay)) / width;
        const double with[3] = {variance * stay * whole * left,
                                variance * stay * (2 - left - right),
                                variance * stay * whole * right};
        solve_three(own, next, far, with, profile->weight[i]);
    }
}

void nrg_others_fit_profile(struct nrg_others_profile *profile, const double *others_s,
                            const int64_t *begin_ns, size_t n, const struct nrg_others_clock *clock)
{
    *profile = (struct nrg_others_profile){0};
    if (n < LEAST_PAIR)
        return;
    double cell_s = length_s(begin_ns, n / 2), tick = clock->tick_s / cell_s;
    struct pairs pairs = sum_pairs(others_s, begin_ns, n, cell_s);
    double noise = tick * tick / 12, own = pairs.own - 2 * noise, next = pairs.next + noise;
    if (pairs.n < LEAST_PAIR || !(own > 2 * noise) || !(next > 2 * own / sqrt(pairs.n)))
        return;
    double stay = find_stay(fmin(next / own, 1));
    profile->cell_s = cell_s;
    profile->late = fmax(tick, clock->late_s / cell_s);
    profile->same = stay > LEVELS && tick < FINE ? tick + SAME : 0;
    profile->mean = pairs.mean;
    set_weights(profile, stay, own / own_variance(stay), noise);
}

/* CPUs of cell k and two on both sides. */
static bool take_five(const double *others_s, const int64_t *begin_ns, size_t n, size_t k,
                      double cpus[5])
{
    bool all = k >= 2 && k + 2 < n;
    for (size_t i = 0; all && i < 5; i++) {
        double cell_s = length_s(begin_ns, k + i - 2);
        all = cell_s > 0;
        cpus[i] = all ? others_s[k + i - 2] / cell_s : 0;
    }
    return all;
}

/* CPU time is counted up to a tick late, which moves a change by as much. */
static double unsure_of_change(const struct nrg_others_profile *profile, double cpus)
{
    double part = fmin(profile->late * NRG_OTHERS_PARTS, 1);
    return cpus * cpus * part * part / 3;
}

/*
 * Who stays at a level for longer than a cell changes it at one moment, which follows from how much
 * of the cell's CPU time belongs to either level. Both must be known: from two cells each.
 */
static bool find_levels(const struct nrg_others_profile *profile, const double cpus[5],
                        struct nrg_others_cell *cell)
{
    double before = cpus[1], own = cpus[2], after = cpus[3], same = profile->same;
    bool stays = fabs(own - before) < same || fabs(own - after) < same;
    bool changes = fabs(cpus[0] - before) < same && fabs(cpus[4] - after) < same &&
                   (own - before) * (after - own) > 0;
    if (!stays && !changes)
        return false;
    double at = stays ? 0 : (after - own) / (after - before) * NRG_OTHERS_PARTS;
    for (size_t i = 0; i < NRG_OTHERS_PARTS; i++) {
        double part = fmin(fmax(at - (double)i, 0), 1);
        cell->cpus[i] = stays ? own : part * before + (1 - part) * after;
        if (!stays && fabs((double)i + 0.5 - at) < 1)
            cell->unsure2[i] = unsure_of_change(profile, after - before);
    }
    return true;
}

bool nrg_others_parts(const struct nrg_others_profile *profile, const double *others_s,
                      const int64_t *begin_ns, size_t n, size_t k, struct nrg_others_cell *cell)
{
    double cpus[5];
    *cell = (struct nrg_others_cell){0};
    if (!take_five(others_s, begin_ns, n, k, cpus))
        return false;
    if (profile->same > 0 && find_levels(profile, cpus, cell))
        return true;
    double up = cpus[2] - cpus[1], down = cpus[3] - cpus[2];
    bool even = profile->cell_s > 0;
    for (size_t i = 1; even && i < 4; i++)
        even = is_even(begin_ns, k + i - 2, profile->cell_s);
    for (size_t i = 0; i < NRG_OTHERS_PARTS; i++) {
        const double *weight = profile->weight[i];
        cell->unsure2[i] = (up * up + down * down) / 2;
        cell->cpus[i] = profile->mean;
        for (size_t j = 0; j < 3; j++)
            cell->cpus[i] += weight[j] * (cpus[j + 1] - profile->mean);
    }
    return even;
}
