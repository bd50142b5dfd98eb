/* See poly.h. */
#include "predict/compat/poly.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

size_t nrg_poly_count(size_t n, unsigned degree)
{
    size_t count = 1; /* (n + degree) over degree */
    for (unsigned d = 1; d <= degree; d++)
        count = count * (n + d) / d;
    return count;
}

/*
 * Products of degree d are those of degree d - 1 times each feature from their last one on. So the
 * start of the products for each last feature is all that has to be kept.
 */
void nrg_poly_expand(const double *x, size_t n, unsigned degree, double *out)
{
    size_t at = 1, begin = 0;
    size_t starts[64] = {0}; /* of the previous degree: products whose first factor is i or later */
    out[0] = 1;
    if (n > 64)
        return;
    for (unsigned d = 1; d <= degree; d++) {
        size_t end = at, next[64];
        for (size_t i = 0; i < n; i++) {
            next[i] = at;
            for (size_t p = d == 1 ? begin : starts[i]; p < end; p++)
                out[at++] = x[i] * out[p];
        }
        for (size_t i = 0; i < n; i++)
            starts[i] = next[i];
        begin = end;
    }
}

int nrg_scaler_fit(struct nrg_scaler *s, const double *x, const double *weights, size_t rows,
                   size_t n)
{
    double total = 0;
    *s = (struct nrg_scaler){.mean = nrg_calloc(2 * n + 1, sizeof(double)), .n = n};
    if (!s->mean)
        return -ENOMEM;
    s->deviation = s->mean + n;
    for (size_t i = 0; i < rows; i++)
        total += weights ? weights[i] : 1;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n; j++)
            s->mean[j] += (weights ? weights[i] : 1) / total * x[i * n + j];
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n; j++) {
            double d = x[i * n + j] - s->mean[j];
            s->deviation[j] += (weights ? weights[i] : 1) / total * d * d;
        }
    for (size_t j = 0; j < n; j++) {
        s->deviation[j] = sqrt(s->deviation[j]);
        if (!(s->deviation[j] > 1e-12 * fabs(s->mean[j])))
            s->deviation[j] = 1;
    }
    return 0;
}

void nrg_scaler_apply(const struct nrg_scaler *s, double *x)
{
    for (size_t j = 0; j < s->n; j++)
        x[j] = (x[j] - s->mean[j]) / s->deviation[j];
}

void nrg_scaler_release(struct nrg_scaler *s)
{
    free(s->mean);
    *s = (struct nrg_scaler){0};
}
