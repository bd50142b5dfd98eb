/*
 * What the two files that learn from CPU times share (waits.c says what that is): slices as parts
 * of their calls, in groups of a thread and a cell, and the sums of the fit.
 *
 * waits.c makes and releases it; 0 or -ENOMEM. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_REGRESS_WAITS_H
#define NRG_ATTRIBUTE_REGRESS_WAITS_H

#include "attribute/regress/internal.h"

#define NRG_WAIT_PLACES  64                    /* classes with figures of their own */
#define NRG_LEAST_BUSY   0.05                  /* of a call */
#define NRG_WAIT_COMMON  (NRG_WAIT_SHAPES + 5) /* columns of all classes together: fit.c */
#define NRG_WAIT_COLUMNS (2 * NRG_WAIT_PLACES + NRG_WAIT_COMMON)

/* A slice as a part of its call. */
struct nrg_wait_piece {
    double length_s, calls, call_s; /* call_s: of the call that it is a part of */
    double from, to;                /* parts of the call */
    double lacks_s;                 /* that the call is expected to wait */
    double busy_s, whole2, cut2;    /* expected; its variance is alpha * whole2 + gamma * cut2 */
    uint32_t place;
};

struct nrg_wait_fit {
    struct nrg_regress *r;
    struct nrg_waits *w;
    struct nrg_arena memory;
    uint32_t *order; /* slices by group */
    size_t *first;   /* per group: of order */
    float *begin;    /* per slice: the part of its call that came before */
    size_t n_groups, stride;
    struct nrg_wait_piece *pieces; /* of one group */
    size_t cap_pieces;
    struct nrg_gram gram;
    double *x, *unit, *beta, *factor, *inverse;
    double *scatter;    /* per place: how much lengths scatter, -1/2 to 1/2 */
    double apart[2];    /* of busy, of longer: how far classes are from their line */
    double rate;        /* CPU time per second, of all spans */
    bool solved;        /* beta is of a turn before */
    double known[2][3]; /* sums for alpha and gamma */
};

/* waits.c: the pieces of a group, how many they are, and the CPU time that they had together. */
int nrg_wait_group(struct nrg_wait_fit *f, size_t g, size_t *n, double *cpu_s);

/* fit.c: what the groups say; places are chosen. At first calls are taken to be busy like
 * this. */
int nrg_wait_learn(struct nrg_wait_fit *f, double rate);

#endif
