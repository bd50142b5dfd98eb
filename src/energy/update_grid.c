/* See update_grid.h. Between two changes lie as many periods as their distance is nearest to. */
#include "energy/update_grid.h"

#include <math.h>

#define LEAST_CHANGES 16

bool nrg_update_grid_fit(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns,
                         double update_ns, double per_update, struct nrg_update_grid *grid)
{
    double k = 0, n = 0, sum_k = 0, sum_t = 0, sum_kk = 0, sum_kt = 0, last = 0, readings = 0;
    for (size_t i = 1; tl->gauge && i < tl->n && tl->t_ns[i] <= end_ns; i++) {
        if (tl->t_ns[i] < begin_ns)
            continue;
        readings++;
        if (tl->gauge[i] == tl->gauge[i - 1])
            continue;
        double t = (double)(tl->t_ns[i] - begin_ns);
        if (n > 0)
            k += fmax(1, round((t - last) / update_ns));
        last = t;
        n++;
        sum_k += k, sum_t += t, sum_kk += k * k, sum_kt += k * t;
    }
    double det = n * sum_kk - sum_k * sum_k, length = (double)(end_ns - begin_ns);
    if (n < LEAST_CHANGES || readings * update_ns < per_update * length || !(det > 0))
        return false;
    grid->period_ns = (n * sum_kt - sum_k * sum_t) / det;
    grid->origin_ns = (sum_t - grid->period_ns * sum_k) / n;
    grid->spacing_ns = length / readings;
    grid->changes = (size_t)n;
    return grid->period_ns > 0;
}
