/*
 * What the measured program used of the machine's energy: the sum over its processes, and how far
 * that may be off. Everything is added end to end, as a total's intervals are:
 *
 *   - the sensors' errors, which are common to all: an estimate's band is a factor, a measured
 *     energy's edges may be all the program's;
 *   - idle power, by how it was found (shares.c); where it is not known, all up to the least power
 *     that was seen may be idle;
 *   - others' CPU seconds, which may draw half or twice as much as the program's, unless power
 *     told them apart. Not with an estimate, which is a function of CPU time;
 *   - memory's energy goes by what is resident, while whose the traffic was is not known;
 *   - what can't be shared out at all (a GPU that names no process, a rail, a part without
 *     readings) may be all its.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "energy/internal.h"

#define OTHERS_WATTS     2   /* times, or a part of, the program's watts per CPU second */
#define TOLD_APART_WATTS 1.1 /* when power shows them */
#define ROUNDING         1e-12

bool nrg_is_cpu_domain(const struct nrg_domain *d)
{
    return d->in_total && d->channel->channel.covers_cpu;
}

bool nrg_is_dram_domain(const struct nrg_domain *d)
{
    return d->in_total && !d->channel->channel.covers_cpu &&
           !strncmp(d->channel->channel.name, "dram", 4);
}

/* What domains of one kind have, and what their sensors may be off by. */
struct pool {
    double energy_j;
    double factor_low, factor_high; /* sums of energy that may be off in proportion */
    double below_j, above_j;        /* and of what may be anybody's */
    bool modelled;
};

static void add_to_pool(struct pool *pool, const struct nrg_domain *d)
{
    const struct nrg_channel *c = &d->channel->channel;
    double below = d->energy_j - d->low_j, above = d->high_j - d->energy_j;
    bool modelled = c->provenance == NRG_ESTIMATED;
    double part_low = modelled ? below : fmin(below, c->error_low * d->energy_j);
    double part_high = modelled ? above : fmin(above, c->error_high * d->energy_j);
    pool->energy_j += d->energy_j;
    pool->factor_low += part_low;
    pool->factor_high += part_high;
    pool->below_j += below - part_low;
    pool->above_j += above - part_high;
    pool->modelled |= modelled;
}

static struct pool pool_of(const struct nrg_summary *s, bool (*belongs)(const struct nrg_domain *))
{
    struct pool pool = {0};
    for (size_t i = 0; i < s->n_domains; i++)
        if (belongs(&s->domains[i]))
            add_to_pool(&pool, &s->domains[i]);
    return pool;
}

/* Adds a part of the program's energy, least_j to most_j before the sensors' errors. */
static void add_part(struct nrg_program *p, const struct pool *pool, double energy_j,
                     double least_j, double most_j)
{
    if (!(pool->energy_j > 0)) {
        p->high_j += pool->above_j;
        return;
    }
    double low = least_j * (1 - pool->factor_low / pool->energy_j) - pool->below_j;
    double high = most_j * (1 + pool->factor_high / pool->energy_j);
    p->energy_j = nrg_sum_known(p->energy_j, energy_j);
    p->low_j += fmax(0, fmin(low, energy_j));
    p->high_j += fmax(high, energy_j) + pool->above_j;
}

/* The program's share when the others' CPU seconds draw `times` as much as they were taken to. */
static double share_with(double share, double times)
{
    return share > 0 && share < 1 ? share / (share + times * (1 - share)) : share;
}

void nrg_program_cpu(struct nrg_summary *s, const struct nrg_cpu_cell *cells, size_t n,
                     bool told_apart)
{
    struct pool pool = pool_of(s, nrg_is_cpu_domain);
    double times = pool.modelled ? 1 : told_apart ? TOLD_APART_WATTS : OTHERS_WATTS;
    double energy_j = 0, least_j = 0, most_j = 0;
    s->program = (struct nrg_program){.energy_j = NAN, .unattributed_j = NAN};
    for (size_t k = 0; k < n; k++) {
        const struct nrg_cpu_cell *c = &cells[k];
        energy_j += c->share * (c->cpu_j - c->idle_j);
        least_j += share_with(c->share, times) * fmax(0, c->cpu_j - c->idle_most_j);
        most_j += share_with(c->share, 1 / times) * fmax(0, c->cpu_j - c->idle_least_j);
    }
    add_part(&s->program, &pool, energy_j, least_j, most_j);
}

static void add_dram(struct nrg_summary *s, struct nrg_frame *frame)
{
    struct pool pool = pool_of(s, nrg_is_dram_domain);
    double mine_j = NAN, idle_j = 0;
    for (size_t i = 0; i < s->n_processes; i++)
        mine_j = nrg_sum_known(mine_j, s->processes[i].dram_j);
    for (size_t i = 0; i < s->n_domains; i++) {
        double doubt_w;
        if (nrg_is_dram_domain(&s->domains[i]))
            idle_j = nrg_sum_known(idle_j, nrg_domain_idle_w(s, frame, &s->domains[i], &doubt_w) *
                                               s->duration_s);
    }
    double most_j = fmax(isnan(mine_j) ? 0 : mine_j, pool.energy_j - idle_j);
    add_part(&s->program, &pool, isnan(mine_j) ? 0 : mine_j, isnan(mine_j) ? 0 : mine_j, most_j);
}

/* GPUs and what nothing is known of. */
static void add_other(struct nrg_summary *s)
{
    for (size_t i = 0; i < s->n_domains; i++) {
        const struct nrg_domain *d = &s->domains[i];
        struct pool pool = {0};
        if (!d->in_total || nrg_is_cpu_domain(d) || nrg_is_dram_domain(d))
            continue;
        add_to_pool(&pool, d);
        bool shared = d->program.shared;
        add_part(&s->program, &pool, shared ? d->program.energy_j : 0,
                 shared ? d->program.least_j : 0, shared ? d->program.most_j : d->energy_j);
    }
}

static void say(struct nrg_program *p, const char *between, const char *what)
{
    size_t len = strlen(p->share_method);
    snprintf(p->share_method + len, sizeof p->share_method - len, "%s%s", len ? between : "", what);
}

static void say_method(struct nrg_summary *s)
{
    struct nrg_program *p = &s->program;
    bool dram = false, gpu = false, left = false;
    if (!isnan(s->cpu_domain_j)) {
        bool active = s->split == NRG_SPLIT_ACTIVE;
        say(p, "",
            !active          ? "CPU time, idle included"
            : s->idle_method ? "CPU time above idle ("
                             : "CPU time, idle power not known");
        if (active && s->idle_method) {
            say(p, "", s->idle_method);
            say(p, "", ")");
        }
    }
    for (size_t i = 0; i < s->n_domains; i++) {
        dram |= nrg_is_dram_domain(&s->domains[i]);
        gpu |= s->domains[i].in_total && s->domains[i].program.shared;
    }
    if (dram)
        say(p, "; ", "dram by memory");
    if (gpu)
        say(p, "; ", "GPU by its processors' time");
    for (size_t i = 0; i < s->n_domains; i++) {
        const struct nrg_domain *d = &s->domains[i];
        if (!d->in_total || nrg_is_cpu_domain(d) || nrg_is_dram_domain(d) || d->program.shared)
            continue;
        say(p, left ? ", " : "; ", left ? "" : "not shared out: ");
        say(p, "", d->channel->channel.name);
        left = true;
    }
}

/* Why the program's part can't be told; NULL when it can. */
static const char *why_unknown(const struct nrg_summary *s)
{
    bool any = false;
    for (size_t i = 0; i < s->n_processes; i++) {
        const struct nrg_process_energy *p = &s->processes[i];
        any |= !isnan(p->cpu_j) || !isnan(p->gpu_j);
    }
    return isnan(s->total_j)        ? "no energy was measured"
           : s->processes_elsewhere ? "the sensors are those of another machine (--root)"
           : !s->n_processes        ? "no process was recorded"
           : !isnan(s->cpu_domain_j) && isnan(s->other_processes_j)
               ? "busy time of the machine was not recorded"
           : !any ? "nothing tells which part of the energy was its"
                  : NULL;
}

static double known(double x)
{
    return isnan(x) ? 0 : x;
}

void nrg_program_make(struct nrg_summary *s, struct nrg_frame *frame)
{
    struct nrg_program *p = &s->program;
    const char *why = why_unknown(s);
    if (why) {
        *p = (struct nrg_program){.energy_j = NAN, .low_j = NAN, .high_j = NAN};
        nrg_copy(p->why, sizeof p->why, why);
    } else {
        add_dram(s, frame);
        add_other(s);
        p->energy_j = known(p->energy_j);
        p->high_j += s->absent_j;
        p->high_j = fmax(p->energy_j, fmin(p->high_j, s->total_high_j));
        say_method(s);
    }
    p->unattributed_j =
        s->total_j - known(p->energy_j) - known(s->other_processes_j) - known(s->idle_j);
    if (fabs(p->unattributed_j) <= ROUNDING * s->total_j)
        p->unattributed_j = 0;
}
