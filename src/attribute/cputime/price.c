/*
 * What a CPU second costs by a model of CPU time (cputime.h), cell by cell.
 *
 * The model's energy above idle belongs to the CPU time of the workload and of others. Where the
 * kernel samples (ticks.c), the model's busy time and with it its energy wander off the threads'
 * exact CPU times, by as much as others seem to have, or the workload to lack. If the same ticks
 * were recorded, the price is the energy per second of *these*: what sampling made of the one it
 * made of the other, and a row has this price times its exact CPU time. Where a cell is too short
 * for some ticks, its neighbours count, too: by how long it is, since a choice by its ticks would
 * be one by what sampling made of them.
 */
#include <errno.h>
#include <math.h>

#include "attribute/cputime/cputime.h"

#define LEAST_TICKS 5 /* of a cell and its neighbours, in the mean */

void nrg_cpu_active(const struct nrg_engine *e, const struct nrg_part *part, double *active_j)
{
    const struct nrg_cells *c = &e->cells;
    for (size_t k = 0; k < c->n; k++) {
        int64_t known_ns = 0;
        double j = nrg_timeline_between(part->tl, c->begin_ns[k], c->begin_ns[k + 1], &known_ns);
        active_j[k] = c->outside[k] ? 0 : fmax(0, j - part->idle_w[k] * (double)known_ns * 1e-9);
    }
}

/* By the CPU time of the workload and what others have beside it. */
static void price_by_use(const struct nrg_cells *c, const struct nrg_part *part,
                         const float *workload_s, const double *active_j, double *price)
{
    for (size_t k = 0; k < c->n; k++) {
        double all_s = (double)workload_s[k];
        price[k] = all_s > 0 ? active_j[k] * (1 - (double)part->other[k]) / all_s : 0;
    }
}

/* Sums up to each cell; between runs there is nothing. */
static void add_up(const struct nrg_cells *c, const double *of_cell, double *sum)
{
    sum[0] = 0;
    for (size_t k = 0; k < c->n; k++)
        sum[k + 1] = sum[k] + (c->outside[k] ? 0 : of_cell[k]);
}

/* How long it takes until enough ticks have come, in the mean of the runs. */
static int64_t window_ns(const struct nrg_cells *c, double busy_s)
{
    double length_s = 0;
    for (size_t k = 0; k < c->n; k++)
        length_s += c->outside[k] ? 0 : nrg_cells_length_s(c, k);
    double least_s = busy_s > 0 ? LEAST_TICKS * NRG_CPU_TICK_S / busy_s * length_s : 0;
    return (int64_t)(fmin(least_s, length_s) * 1e9);
}

static int price_by_ticks(struct nrg_cpu_time *t, const struct nrg_cells *c, const double *active_j,
                          double *price)
{
    double *busy_s = nrg_arena_array(&t->memory, c->n + 1, sizeof *busy_s);
    double *sum_j = nrg_arena_array(&t->memory, c->n + 1, sizeof *sum_j);
    if (t->memory.failed)
        return -ENOMEM;
    add_up(c, c->busy_s, busy_s);
    add_up(c, active_j, sum_j);
    double mean = busy_s[c->n] > 0 ? sum_j[c->n] / busy_s[c->n] : 0;
    int64_t least_ns = window_ns(c, busy_s[c->n]);
    for (size_t k = 0; k < c->n; k++) {
        int64_t middle_ns = c->begin_ns[k] + (c->begin_ns[k + 1] - c->begin_ns[k]) / 2;
        size_t from = nrg_cells_find(c, middle_ns - least_ns / 2);
        size_t to = nrg_cells_find(c, middle_ns + least_ns / 2) + 1;
        double all_s = busy_s[to] - busy_s[from];
        price[k] = all_s > 0 ? (sum_j[to] - sum_j[from]) / all_s : mean;
        price[k] /= 1 + t->cells[k].excess;
    }
    return 0;
}

int nrg_cpu_prices(struct nrg_cpu_time *t, const struct nrg_engine *e, const struct nrg_part *part,
                   const float *workload_s, double *active_j, double *price)
{
    const struct nrg_cells *c = &e->cells;
    nrg_cpu_active(e, part, active_j);
    if (t->price_by_ticks)
        return price_by_ticks(t, c, active_j, price);
    price_by_use(c, part, workload_s, active_j, price);
    return 0;
}

/*
 * What the threads of a group have more than their process, per cell. Its CPU time is as of the
 * last tick, theirs may be exact: what it lacks in one cell it has in the next, so that the
 * difference counts in sum over the run, beyond a tick of each thread, and not cell by cell.
 */
int nrg_cpu_beyond(const struct nrg_engine *e, const struct nrg_cpu_readings *readings, double cpus,
                   size_t g, double *beyond_s)
{
    const struct nrg_cells *c = &e->cells;
    struct nrg_arena memory = {0};
    double *own_s = nrg_arena_array(&memory, c->n + 1, sizeof *own_s);
    double *tracks_s = nrg_arena_array(&memory, c->n + 1, sizeof *tracks_s);
    double threads = 0;
    for (size_t i = 0; i < c->n_tracks; i++)
        threads += c->track_group[i] == g;
    for (size_t k = 0; !memory.failed && k < c->n; k++) {
        own_s[k] = c->outside[k] ? 0 : (double)readings->group_s[k * c->n_groups + g];
        tracks_s[k] = c->outside[k] ? 0 : (double)readings->tracks_s[k * c->n_groups + g];
    }
    if (!memory.failed)
        nrg_others_spread(tracks_s, own_s, NULL, c->n, nrg_busy_tick_s(e) * fmin(threads, cpus),
                          beyond_s);
    nrg_arena_release(&memory);
    return memory.failed ? -ENOMEM : 0;
}
