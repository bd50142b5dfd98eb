/* See rows.h. A row costs the slices that its reading saw, not all classes, where the kernel
 * allows. */
#include "attribute/regress/rows/rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/rows/kept_rows.h"
#include "base/checked.h"
#include "base/linalg.h"
#include "base/mem.h"

static int64_t to_ns(double s)
{
    return nrg_round_within(s * 1e9, -NRG_MAX_TIME_NS, NRG_MAX_TIME_NS);
}

double nrg_kernel_lag_s(const struct nrg_kernel *kernel)
{
    double age_s = (kernel->near_s + kernel->far_s) / 2;
    return kernel->kind == NRG_KERNEL_EXP ? age_s + kernel->tau_s : age_s;
}

double nrg_kernel_memory_s(const struct nrg_kernel *kernel)
{
    return kernel->kind == NRG_KERNEL_EXP ? kernel->tau_s : kernel->far_s - kernel->near_s;
}

struct nrg_kernel nrg_kernel_moved(struct nrg_kernel kernel, double shift_s, double more_s)
{
    kernel.near_s += shift_s;
    kernel.far_s += shift_s;
    *(kernel.kind == NRG_KERNEL_EXP ? &kernel.tau_s : &kernel.far_s) += more_s;
    return kernel;
}

void nrg_rowgen_init(struct nrg_rowgen *gen, const struct nrg_regress_options *options,
                     const struct nrg_kernel *kernel, const uint32_t *map, bool drift)
{
    *gen = (struct nrg_rowgen){
        .options = options, .kernel = *kernel, .map = map, .drift = drift, .block = 1};
    gen->near_ns = to_ns(kernel->near_s);
    gen->far_ns = to_ns(kernel->far_s);
    gen->cuts =
        options->waits_w || options->waits_scale || options->others_column || options->within_of;
    gen->margin_ns = kernel->near_s < 0 ? to_ns(-kernel->near_s) : 0;
    gen->usable_from_ns = options->begin_ns;
    gen->usable_to_ns = INT64_MAX;
    if (kernel->kind != NRG_KERNEL_EXP)
        gen->usable_from_ns += gen->far_ns;
    gen->short_box = kernel->kind == NRG_KERNEL_BOX &&
                     (kernel->far_s - kernel->near_s) * 1e9 < (double)options->timeline->period_ns;
    nrg_observer_init(&gen->observer, options);
}

bool nrg_rowgen_remembers(const struct nrg_rowgen *gen)
{
    return gen->kernel.kind != NRG_KERNEL_LEVEL && !gen->short_box;
}

void nrg_rowgen_release(struct nrg_rowgen *gen)
{
    free(gen->head.open);
    free(gen->tail.open);
    free(gen->together[0].open);
    free(gen->together[1].open);
    free(gen->state);
    free(gen->x);
    free(gen->touched);
    free(gen->mark);
    *gen = (struct nrg_rowgen){0};
}

static uint64_t needs(const struct nrg_rowgen *gen, const struct nrg_walker *head,
                      const struct nrg_walker *tail)
{
    bool two = gen->kernel.kind == NRG_KERNEL_BOX && !gen->short_box;
    return two && tail->next < head->next ? tail->next : head->next;
}

uint64_t nrg_rowgen_needs(const struct nrg_rowgen *gen)
{
    return needs(gen, &gen->head, &gen->tail);
}

uint64_t nrg_rowgen_needs_together(const struct nrg_rowgen *gen)
{
    return needs(gen, &gen->together[0], &gen->together[1]);
}

static int grow_columns(struct nrg_rowgen *gen, size_t n)
{
    size_t cap = gen->cap, cap_x = cap, cap_touched = cap, cap_mark = cap;
    if (n <= gen->n)
        return 0;
    if (nrg_reserve(&gen->state, &cap, n, sizeof *gen->state) ||
        nrg_reserve(&gen->x, &cap_x, n, sizeof *gen->x) ||
        nrg_reserve(&gen->touched, &cap_touched, n, sizeof *gen->touched) ||
        nrg_reserve(&gen->mark, &cap_mark, n, sizeof *gen->mark))
        return -ENOMEM;
    gen->cap = cap;
    for (size_t i = gen->n; i < n; i++) {
        gen->state[i] = gen->x[i] = 0;
        gen->mark[i] = false;
    }
    gen->n = n;
    return 0;
}

int nrg_walker_open(struct nrg_walker *w, const struct nrg_slices *slices, int64_t t_ns)
{
    for (; w->next < slices->dropped + slices->n; w->next++) {
        const struct nrg_regress_slice *slice = &slices->items[w->next - slices->dropped];
        if (slice->begin_ns >= t_ns)
            break;
        if (nrg_append(&w->open, &w->n_open, &w->cap_open, slice, sizeof *w->open))
            return -ENOMEM;
    }
    return 0;
}

/*
 * A running average starts from what it showed, whatever made it: that part of the reading is
 * taken off, and idle fills up only what is left. What the first reading was off by is taken off,
 * too, from all rows in which it still shows, alike: it has a column.
 */
static void start_of_average(struct nrg_rowgen *gen)
{
    double tau_ns = gen->kernel.tau_s * 1e9;
    double old = exp(-(double)(gen->seen.to_ns - gen->first_ns) / tau_ns);
    gen->y -= gen->first_y * old;
    gen->x[NRG_COLUMN_IDLE] = 1 - old;
    nrg_rowgen_set(gen, NRG_COLUMN_START, old);
}

static bool finish_row(struct nrg_rowgen *gen)
{
    const struct nrg_observation *seen = &gen->seen;
    bool gauge = gen->options->timeline->is_gauge, average = gen->kernel.kind == NRG_KERNEL_EXP;
    double h_s = (double)(seen->to_ns - seen->from_ns) / 1e9;
    gen->y = seen->y;
    gen->restart = seen->restart;
    gen->weight_s = h_s;
    nrg_rowgen_set(gen, NRG_COLUMN_IDLE, gauge ? 1 : h_s);
    if (gauge && gen->kernel.kind == NRG_KERNEL_LEVEL) {
        if (seen->restart || !(h_s > 0))
            return false;
        for (size_t i = 0; i < gen->n_touched; i++)
            if (gen->touched[i] >= NRG_COLUMN_CLASSES || gen->touched[i] == NRG_COLUMN_AWAKE)
                gen->x[gen->touched[i]] /= h_s;
    }
    if (!gen->map && gen->options->awake)
        nrg_rowgen_set_awake(gen, gen->options->awake);
    if (!gen->map && gen->options->together)
        nrg_rowgen_set_together(gen, gen->options->together);
    if (gen->options->pace)
        nrg_rowgen_set(gen, NRG_COLUMN_PACE,
                       nrg_pace_between(gen->options->pace, seen->from_ns, seen->to_ns));
    if (average && !gen->started)
        gen->first_y = gauge ? seen->y : 0;
    if (average && gauge) {
        if (!gen->started)
            return false;
        start_of_average(gen);
    }
    if (!gen->slow_apart)
        nrg_rowgen_set_slow(gen);
    return nrg_rowgen_is_usable(gen, seen);
}

static int make_row(struct nrg_rowgen *gen, const struct nrg_slices *slices)
{
    int rc = nrg_rowgen_see(gen, slices);
    if (rc)
        return rc;
    if (!gen->started)
        gen->first_ns = gen->seen.to_ns;
    bool usable = finish_row(gen);
    gen->started = true;
    gen->at_ns = gen->seen.to_ns;
    return usable;
}

static void clear_row(struct nrg_rowgen *gen)
{
    for (size_t i = 0; i < gen->n_touched; i++) {
        gen->mark[gen->touched[i]] = false;
        gen->x[gen->touched[i]] = 0;
    }
    if (gen->dense)
        memset(gen->x, 0, gen->n * sizeof *gen->x);
    gen->n_touched = 0;
    gen->dense = false;
}

static void end_rows(struct nrg_rowgen *gen)
{
    if (gen->keeps)
        gen->keeps->complete = !gen->keeps->full;
}

int nrg_rowgen_next(struct nrg_rowgen *gen, const struct nrg_slices *slices, int64_t ready_ns,
                    size_t n_columns)
{
    int rc = grow_columns(gen, n_columns);
    if (gen->kept && !rc) {
        clear_row(gen);
        return nrg_kept_rows_next(gen->kept, gen);
    }
    while (!rc) {
        if (!gen->pending && !nrg_observe(&gen->observer, &gen->seen)) {
            end_rows(gen);
            break;
        }
        gen->pending = true;
        if (gen->seen.to_ns > ready_ns - gen->margin_ns)
            break;
        gen->pending = false;
        if (gen->stride && !nrg_row_is_taken(gen->nth++, gen->stride, gen->block))
            continue;
        clear_row(gen);
        rc = make_row(gen, slices);
    }
    if (rc > 0 && gen->keeps)
        nrg_kept_rows_add(gen->keeps, gen);
    return rc;
}
