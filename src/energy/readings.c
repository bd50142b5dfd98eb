/* See readings.h. Prefix sums make the mean of any window one subtraction. */
#include "energy/readings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/search.h"

static void add_reading(struct nrg_readings *r, int64_t t_ns, double power_w)
{
    r->t_ns[r->n] = t_ns;
    r->power_w[r->n] = power_w;
    r->prefix[r->n + 1] = r->prefix[r->n] + power_w;
    r->n++;
}

int nrg_readings_init(struct nrg_readings *r, const struct nrg_timeline *tl)
{
    *r = (struct nrg_readings){0};
    r->t_ns = nrg_calloc(tl->n + 1, sizeof *r->t_ns);
    r->power_w = nrg_calloc(tl->n + 1, sizeof *r->power_w);
    r->prefix = nrg_calloc(tl->n + 2, sizeof *r->prefix);
    if (!r->t_ns || !r->power_w || !r->prefix) {
        nrg_readings_release(r);
        return -ENOMEM;
    }
    for (size_t i = 0; i < tl->n; i++) {
        if (tl->is_gauge)
            add_reading(r, nrg_point_ns(tl, i), nrg_point_gauge(tl, i));
        else if (i + 1 < tl->n && !nrg_point_gap(tl, i)) {
            int64_t width = nrg_point_ns(tl, i + 1) - nrg_point_ns(tl, i);
            add_reading(r, nrg_point_ns(tl, i) + width / 2,
                        (nrg_point_j(tl, i + 1) - nrg_point_j(tl, i)) * 1e9 / (double)width);
        }
    }
    return 0;
}

void nrg_readings_release(struct nrg_readings *r)
{
    free(r->t_ns);
    free(r->power_w);
    free(r->prefix);
    *r = (struct nrg_readings){0};
}

size_t nrg_readings_before(const struct nrg_readings *r, int64_t t_ns)
{
    return nrg_count_below(r->t_ns, r->n, sizeof *r->t_ns, t_ns);
}

size_t nrg_readings_upto(const struct nrg_readings *r, int64_t t_ns)
{
    return nrg_count_up_to(r->t_ns, r->n, sizeof *r->t_ns, t_ns);
}

double nrg_readings_mean(const struct nrg_readings *r, size_t from, size_t to)
{
    if (to <= from)
        return NAN;
    if (to == from + 1)
        return r->power_w[from]; /* exactly, not as a difference of sums */
    return (r->prefix[to] - r->prefix[from]) / (double)(to - from);
}

double nrg_readings_nearest(const struct nrg_readings *r, int64_t t_ns)
{
    size_t after = nrg_readings_upto(r, t_ns);
    if (!r->n)
        return NAN;
    if (!after || after == r->n)
        return r->power_w[after ? after - 1 : 0];
    int64_t left = t_ns - r->t_ns[after - 1], right = r->t_ns[after] - t_ns;
    return r->power_w[left <= right ? after - 1 : after];
}
