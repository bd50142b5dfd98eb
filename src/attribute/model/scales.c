/* See scales.h. Priors cost one factorisation of the columns each, noise a pass over the rows. */
#include "attribute/model/scales.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define DECADES_DOWN 11   /* to NRG_SCALE_FLOOR */
#define ROUNDS       4    /* over all scales */
#define BLOCK_MOST   10.0 /* of mean_w^2: beyond it readings alone decide */
#define NOISE_MOST   10.0
#define AGE_FLOOR_S  3e-6 /* no reading is punctual to less */
#define NOISE_FLOOR  1e-8 /* noise at the rounding alone would let one bad row decide */
#define GAIN         1e-3 /* of log evidence: less is rounding */

void nrg_scales_start(struct nrg_scales *s, const struct nrg_facts *f)
{
    *s = (struct nrg_scales){.noise = {[NRG_NOISE_AGE] = 1,
                                       [NRG_NOISE_CUT] = 1e-8,
                                       [NRG_NOISE_WHITE] = 1e-7,
                                       [NRG_NOISE_CALLS] = 1e-8}};
    for (size_t b = 0; b < NRG_BLOCKS; b++)
        s->block[b] = nrg_model_blocks[b]->wide ? NRG_SCALE_WIDE : nrg_model_blocks[b]->start;
    for (size_t i = 0; i < NRG_NOISES; i++)
        s->noise_floor[i] = NOISE_FLOOR;
    double age = AGE_FLOOR_S / fmax(f->update_s, 1e-4);
    s->noise_floor[NRG_NOISE_AGE] = 12 * age * age;
}

void nrg_scales_prior(const struct nrg_scales *s, const struct nrg_facts *f,
                      const struct nrg_design *d, double *prior)
{
    double unit = f->mean_w * f->mean_w;
    for (size_t b = 0; b < NRG_BLOCKS; b++)
        for (size_t i = d->first[b]; i < d->first[b + 1]; i++)
            prior[i] = s->block[b] * unit;
    for (size_t i = f->spans; i < f->n_classes; i++)
        prior[d->first[NRG_BLOCK_CLASSES] + i] = NRG_SCALE_WIDE * unit;
    if (!isnan(f->idle_w)) {
        double known = fmax(f->idle_error_w, 1e-4 * f->mean_w);
        prior[d->first[NRG_BLOCK_IDLE]] = known * known;
    }
    for (size_t i = 0; i < d->n_extra; i++)
        prior[d->k + i] = 1e30;
}

/* All that a search holds. */
struct search {
    const struct nrg_facts *facts;
    const struct nrg_design *design;
    double others_w;
    struct nrg_model_sums sums; /* of the scales of noise in `summed` */
    double summed[NRG_NOISES];
    struct nrg_arena memory;
    struct nrg_model_room room;
    double *prior;
};

static int begin_search(struct search *s)
{
    size_t k = s->design->k + s->design->n_extra;
    s->prior = nrg_arena_array(&s->memory, k + 1, sizeof *s->prior);
    return nrg_model_room_init(&s->room, &s->memory, k);
}

static void end_search(struct search *s)
{
    nrg_model_sums_release(&s->sums);
    nrg_arena_release(&s->memory);
}

static bool is_summed(const struct search *s, const struct nrg_scales *scales)
{
    for (size_t i = 0; i < NRG_NOISES; i++)
        if (s->summed[i] != scales->noise[i])
            return false;
    return s->sums.n > 0;
}

static int evidence(struct search *s, const struct nrg_scales *scales, bool profiled, double *log_z)
{
    if (!is_summed(s, scales)) {
        nrg_model_sums_release(&s->sums);
        int rc = nrg_model_sums_init(&s->sums, s->design->k + s->design->n_extra);
        if (!rc)
            rc = nrg_design_sum(s->design, scales->noise, s->others_w, &s->sums);
        if (rc)
            return rc;
        for (size_t i = 0; i < NRG_NOISES; i++)
            s->summed[i] = scales->noise[i];
    }
    nrg_scales_prior(scales, s->facts, s->design, s->prior);
    *log_z = nrg_model_evidence(&s->sums, s->prior, profiled, &s->room);
    return 0;
}

int nrg_scales_evidence(const struct nrg_scales *scales, const struct nrg_facts *f,
                        const struct nrg_design *d, double others_w, bool profiled, double *log_z)
{
    struct search s = {.facts = f, .design = d, .others_w = others_w};
    int rc = begin_search(&s);
    if (!rc)
        rc = evidence(&s, scales, profiled, log_z);
    end_search(&s);
    return rc;
}

/* The i-th scale that is sought: of blocks, then of noise; NULL: it is wide. */
static double *scale_of(struct nrg_scales *s, size_t i)
{
    if (i < NRG_BLOCKS)
        return nrg_model_blocks[i]->wide ? NULL : &s->block[i];
    return &s->noise[i - NRG_BLOCKS];
}

static double within(const struct nrg_scales *s, size_t i, double value)
{
    bool block = i < NRG_BLOCKS;
    double floor = block ? NRG_SCALE_FLOOR : s->noise_floor[i - NRG_BLOCKS];
    return fmin(fmax(value, floor), block ? BLOCK_MOST : NOISE_MOST);
}

static bool differs(const struct search *s, size_t i)
{
    if (i < NRG_BLOCKS)
        return s->design->first[i + 1] > s->design->first[i];
    return !s->facts->is_gauge ||
           (i - NRG_BLOCKS != NRG_NOISE_AGE && i - NRG_BLOCKS != NRG_NOISE_CUT);
}

/* Tries a value; whether it is better. */
static int try_value(struct search *s, struct nrg_scales *best, double *log_z, size_t i,
                     double value, bool *better)
{
    struct nrg_scales trial = *best;
    double z;
    *scale_of(&trial, i) = within(best, i, value);
    int rc = evidence(s, &trial, false, &z);
    if (!rc && z > *log_z + GAIN) {
        *best = trial;
        *log_z = z;
        *better = true;
    }
    return rc;
}

static int by_decades(struct search *s, struct nrg_scales *best, double *log_z, bool *better)
{
    int rc = 0;
    for (size_t i = 0; i < NRG_BLOCKS + NRG_NOISES; i++)
        for (int power = -DECADES_DOWN; !rc && power <= 1; power++)
            if (scale_of(best, i) && differs(s, i))
                rc = try_value(s, best, log_z, i, pow(10, power), better);
    return rc;
}

static int by_factor(struct search *s, struct nrg_scales *best, double *log_z, double factor,
                     bool *better)
{
    int rc = 0;
    for (size_t i = 0; i < NRG_BLOCKS + NRG_NOISES; i++)
        for (int up = 0; !rc && up < 2; up++)
            if (scale_of(best, i) && differs(s, i))
                rc = try_value(s, best, log_z, i, *scale_of(best, i) * (up ? factor : 1 / factor),
                               better);
    return rc;
}

int nrg_scales_search(struct nrg_scales *scales, const struct nrg_facts *f,
                      const struct nrg_design *d, double others_w, double *log_z)
{
    const double factors[] = {3, 1.7};
    struct search s = {.facts = f, .design = d, .others_w = others_w};
    bool better = true;
    int rc = begin_search(&s);
    if (!rc)
        rc = evidence(&s, scales, false, log_z);
    for (int round = 0; !rc && better && round < ROUNDS; round++) {
        better = false;
        rc = by_decades(&s, scales, log_z, &better);
    }
    for (size_t k = 0; k < sizeof factors / sizeof *factors; k++) {
        better = true;
        for (int round = 0; !rc && better && round < ROUNDS; round++) {
            better = false;
            rc = by_factor(&s, scales, log_z, factors[k], &better);
        }
    }
    end_search(&s);
    return rc;
}
