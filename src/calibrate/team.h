/*
 * A team of threads that share one piece of work; the caller is one of them. While one piece
 * follows another they wait by spinning, so that the scheduler is not measured. Between two
 * measurements they sleep, so that idle is idle.
 *
 * One caller at a time. New, run, free.
 */
#ifndef NRG_CALIBRATE_TEAM_H
#define NRG_CALIBRATE_TEAM_H

#include "base/error.h"

struct nrg_team;

/* Called in every member: member `at` of `n`. */
typedef void nrg_team_fn(void *arg, unsigned at, unsigned n);

/* `n` of 1 or more, the caller included. 0 or -errno with err. */
int nrg_team_new(struct nrg_team **team, unsigned n, struct nrg_error *err);
void nrg_team_free(struct nrg_team *team);
unsigned nrg_team_size(const struct nrg_team *team);

/* Returns when all members have returned. */
void nrg_team_run(struct nrg_team *team, nrg_team_fn *fn, void *arg);

/* The part of `total` that is member `at`'s, in whole `step`s; the parts of all are the total. */
void nrg_team_part(size_t total, size_t step, unsigned at, unsigned n, size_t *begin, size_t *end);

#endif
