/*
 * How many runs a difference needs, see effect.h: the textbook's n = (z1 + z2)² (sa² + sb²) / d²,
 * with Student's quantiles for the n that comes out.
 */
#include <math.h>

#include "base/stats.h"
#include "compare/effect.h"

/* Student's quantile that is passed with that probability from below. */
static double one_sided(double probability, double freedom)
{
    return nrg_student_half(2 * probability - 1, freedom);
}

/* For runs that vary by so much, a difference of d in the logarithm. */
static double runs_for(double scatter_a, double scatter_b, double d, double confidence)
{
    double both = scatter_a * scatter_a + scatter_b * scatter_b;
    double level = 1 - (1 - confidence) / 2, n = 2;
    for (int i = 0; i < 50; i++) {
        double f = fmax(2 * n - 3, 1); /* one for each side, one for the drift */
        double sum = one_sided(level, f) + one_sided(NRG_RUNS_NEEDED_POWER, f);
        n = (n + fmax(2, sum * sum * both / (d * d))) / 2;
    }
    return n;
}

/* What the sensors may add is a bound, which runs need not reach: the low end does without it. */
struct nrg_runs_needed nrg_runs_needed(const struct nrg_effect *e, double difference,
                                       double confidence)
{
    double d = log1p(fabs(difference)), freedom = fmax(e->freedom, 1);
    if (isnan(e->scatter_a + e->scatter_b) || !(d > 0))
        return (struct nrg_runs_needed){NAN, NAN, NAN};
    double n = runs_for(e->scatter_a, e->scatter_b, d, confidence);
    double least = runs_for(e->seen_a, e->seen_b, d, confidence);
    return (struct nrg_runs_needed){.runs = ceil(n - 0.01),
                                    .low = ceil(least * freedom / nrg_chi_squared(0.975, freedom)),
                                    .high = ceil(n * freedom / nrg_chi_squared(0.025, freedom))};
}
