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

void nrg_others_spread(const double *busy_s, const double *mine_s, size_t n, double tick_s,
                       double *others_s)
{
    double sum_s = 0, known_s = 0, slack_s = tick_s + PAIRED_S;
    for (size_t k = 0; k < n; k++) {
        sum_s += busy_s[k] - mine_s[k];
        double grown_s = sum_s - known_s - slack_s;
        others_s[k] = grown_s > 0 ? grown_s : 0;
        known_s += others_s[k];
        known_s = fmax(known_s, 0);
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
                            const int64_t *begin_ns, size_t n, double tick_s)
{
    *profile = (struct nrg_others_profile){0};
    if (n < LEAST_PAIR)
        return;
    double cell_s = length_s(begin_ns, n / 2), tick = tick_s / cell_s;
    struct pairs pairs = sum_pairs(others_s, begin_ns, n, cell_s);
    double noise = tick * tick / 12, own = pairs.own - 2 * noise, next = pairs.next + noise;
    if (pairs.n < LEAST_PAIR || !(own > 2 * noise) || !(next > 2 * own / sqrt(pairs.n)))
        return;
    double stay = find_stay(fmin(next / own, 1));
    profile->cell_s = cell_s;
    profile->mean = pairs.mean;
    set_weights(profile, stay, own / own_variance(stay), noise);
}

bool nrg_others_parts(const struct nrg_others_profile *profile, const double *others_s,
                      const int64_t *begin_ns, size_t n, size_t k, double parts[NRG_OTHERS_PARTS])
{
    double cell_s = profile->cell_s, off[3];
    if (!(cell_s > 0) || k < 1 || k + 1 >= n)
        return false;
    for (size_t i = 0; i < 3; i++) {
        if (!is_even(begin_ns, k + i - 1, cell_s))
            return false;
        off[i] = others_s[k + i - 1] / length_s(begin_ns, k + i - 1) - profile->mean;
    }
    for (size_t i = 0; i < NRG_OTHERS_PARTS; i++) {
        const double *weight = profile->weight[i];
        parts[i] = profile->mean + weight[0] * off[0] + weight[1] * off[1] + weight[2] * off[2];
    }
    return true;
}
