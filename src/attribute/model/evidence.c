/* See evidence.h. The factor of a tridiagonal V has one value below each diagonal, so that
 * whitening a row needs the whitened row before it and nothing else. */
#include "attribute/model/evidence.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

int nrg_model_sums_init(struct nrg_model_sums *sums, size_t k)
{
    *sums = (struct nrg_model_sums){0};
    sums->last = nrg_calloc(k + 1, sizeof *sums->last);
    int rc = sums->last ? nrg_gram_grow(&sums->gram, k) : -ENOMEM;
    if (rc)
        nrg_model_sums_release(sums);
    return rc;
}

void nrg_model_sums_release(struct nrg_model_sums *sums)
{
    nrg_gram_release(&sums->gram);
    free(sums->last);
    *sums = (struct nrg_model_sums){0};
}

void nrg_model_sums_add(struct nrg_model_sums *sums, double *x, double y, double variance,
                        double with_last)
{
    size_t k = sums->gram.n;
    double below = sums->pivot > 0 ? with_last / sums->pivot : 0;
    double pivot = sqrt(fmax(variance - below * below, variance * NRG_PIVOT_TOLERANCE));
    double white = (y - below * sums->last[0]) / pivot;
    if (below != 0)
        nrg_add_scaled(x, sums->last + 1, -below, k);
    nrg_scale(x, 1 / pivot, k);
    nrg_gram_add(&sums->gram, x, NULL, 0, white, 1);
    sums->last[0] = white;
    memcpy(sums->last + 1, x, k * sizeof *x);
    sums->pivot = pivot;
    sums->log_v += 2 * log(pivot);
    sums->n++;
}

int nrg_model_room_init(struct nrg_model_room *room, struct nrg_arena *arena, size_t k)
{
    room->k = k;
    room->factor = nrg_arena_array(arena, k * (k + 1) / 2 + 1, sizeof *room->factor);
    room->x = nrg_arena_array(arena, k + 1, sizeof *room->x);
    room->scale = nrg_arena_array(arena, k + 1, sizeof *room->scale);
    return arena->failed ? -ENOMEM : 0;
}

/* I + S G S, factored, and what solves it for S X'V^-1 y. */
static void solve(const struct nrg_model_sums *sums, const double *prior,
                  struct nrg_model_room *room)
{
    const double *g = sums->gram.a;
    double *a = room->factor;
    for (size_t i = 0; i < room->k; i++) {
        room->scale[i] = sqrt(prior[i]);
        room->x[i] = room->scale[i] * sums->gram.b[i];
    }
    for (size_t i = 0; i < room->k; i++) {
        for (size_t j = 0; j <= i; j++)
            *a++ = *g++ * room->scale[i] * room->scale[j];
        a[-1] += 1;
    }
    nrg_gram_factor(room->factor, room->k, NULL, NULL, false);
    nrg_gram_solve(room->factor, room->k, room->x, false);
}

double nrg_model_evidence(const struct nrg_model_sums *sums, const double *prior, bool profiled,
                          struct nrg_model_room *room)
{
    double log_det = 0, left = sums->gram.yy;
    solve(sums, prior, room);
    for (size_t i = 0; i < room->k; i++) {
        log_det += 2 * log(room->factor[nrg_packed(i, i)]);
        left -= room->scale[i] * sums->gram.b[i] * room->x[i];
    }
    left = fmax(left, NRG_RIDGE * sums->gram.yy);
    return -0.5 * (sums->log_v + log_det + (profiled ? (double)sums->n * log(left) : left));
}

void nrg_model_posterior(const struct nrg_model_sums *sums, const double *prior, double *mean,
                         double *covariance, struct nrg_model_room *room)
{
    solve(sums, prior, room);
    for (size_t i = 0; i < room->k; i++)
        mean[i] = room->scale[i] * room->x[i];
    nrg_gram_invert(room->factor, room->k, covariance);
    for (size_t i = 0; i < room->k; i++)
        for (size_t j = 0; j <= i; j++)
            covariance[nrg_packed(i, j)] *= room->scale[i] * room->scale[j];
}
