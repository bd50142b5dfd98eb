/*
 * The rank test of Mann and Whitney, see effect.h: how likely B's values stand so far ahead of or
 * behind A's when both come from one distribution. It needs no normal scatter, and an outlier
 * counts no more than any other value; with few runs it can't say much (three of each side: never
 * below 0.1), which is why it stands beside the interval and not in its place.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "compare/effect.h"

#define EXACT 20 /* values of a side */
#define PAIRS ((size_t)EXACT * EXACT + 1)

/* Pairs in which B's value is the larger; ties count half. */
static double larger_pairs(const double *a, size_t n_a, const double *b, size_t n_b)
{
    double pairs = 0;
    for (size_t i = 0; i < n_a; i++)
        for (size_t j = 0; j < n_b; j++)
            pairs += b[j] > a[i] ? 1 : b[j] < a[i] ? 0 : 0.5;
    return pairs;
}

/*
 * Of all orders of n_a + n_b values, the part that has at most so many such pairs. The largest
 * value is one of A's, in no pair, or one of B's, in a pair with each of A's: ways(a, b, u) =
 * ways(a - 1, b, u) + ways(a, b - 1, u - a). `ways` has a row per b, for one a.
 */
static double part_up_to(double (*ways)[PAIRS], size_t n_a, size_t n_b, size_t pairs)
{
    double some = 0, all = 0;
    for (size_t b = 0; b <= n_b; b++)
        ways[b][0] = 1;
    for (size_t a = 1; a <= n_a; a++)
        for (size_t b = 1; b <= n_b; b++)
            for (size_t u = a; u <= a * b; u++)
                ways[b][u] += ways[b - 1][u - a];
    for (size_t u = 0; u <= n_a * n_b; u++) {
        all += ways[n_b][u];
        some += u <= pairs ? ways[n_b][u] : 0;
    }
    return some / all;
}

static int exact_p(size_t n_a, size_t n_b, double pairs, double *p_value)
{
    double(*ways)[PAIRS] = nrg_calloc(EXACT + 1, sizeof *ways);
    if (!ways)
        return -ENOMEM;
    double fewer = fmin(pairs, (double)(n_a * n_b) - pairs);
    *p_value = fmin(1, 2 * part_up_to(ways, n_a, n_b, (size_t)fewer));
    free(ways);
    return 0;
}

/* Sum of t^3 - t over groups of t equal values; sorts. */
static double tie_sum(double *all, size_t n)
{
    double sum = 0;
    nrg_sort(all, n);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && all[j] == all[i]; j++)
            ;
        double t = (double)(j - i);
        sum += t * t * t - t;
    }
    return sum;
}

int nrg_rank_test(const double *a, size_t n_a, const double *b, size_t n_b, double *p_value)
{
    size_t n = n_a + n_b;
    double *all = nrg_calloc(n + 1, sizeof *all);
    *p_value = NAN;
    if (!all)
        return -ENOMEM;
    if (n_a)
        memcpy(all, a, n_a * sizeof *a);
    if (n_b)
        memcpy(all + n_a, b, n_b * sizeof *b);
    double ties = tie_sum(all, n), pairs = larger_pairs(a, n_a, b, n_b);
    free(all);
    if (!n_a || !n_b)
        return 0;
    if (ties <= 0 && n_a <= EXACT && n_b <= EXACT)
        return exact_p(n_a, n_b, pairs, p_value);
    double ab = (double)n_a * (double)n_b, count = (double)n;
    double variance = ab / 12 * (count + 1 - ties / (count * (count - 1)));
    double far = fmax(0, fabs(pairs - ab / 2) - 0.5);
    *p_value = variance > 0 ? nrg_student_tails(far / sqrt(variance), INFINITY) : 1;
    return 0;
}
