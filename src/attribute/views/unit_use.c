/*
 * Joules per unit of work. Spans of some kinds are units themselves (a step, an epoch, a cycle);
 * counters say how many samples or tokens went by. A unit inside one of its own kind is not
 * counted twice: only the outermost rows are taken.
 *
 * Phases: a sample of training costs other joules than one of evaluation. So a counter is given per
 * phase: that is the outermost epoch ("training"), phase or step that it was counted in, by its
 * name. What was counted in none of them is a unit of its own, without a phase.
 *
 * Ranks: a job of several processes has each of its steps and epochs once in each of them.
 * nrg.torch says so in the detail ("rank 1 of 4"). The job has as many as the rank that has most;
 * joules are those of all ranks, time is that of the slowest, because they run at the same time.
 * What ranks count (samples) adds up, in the same time.
 */
#include <math.h>
#include <string.h>

#include "attribute/internal.h"

#define MAX_RANKS 256 /* of all units; further ranks count as processes of their own */

static const char *const unit_kinds[] = {NRG_KIND_EPOCH, NRG_KIND_STEP, NRG_KIND_CYCLE, "token",
                                         "request"};

struct rank {
    size_t unit;
    const char *detail;
    double amount, time_s;
};

struct finder {
    const struct nrg_view_rows *v;
    struct nrg_unit_use *units;
    size_t n, max;
    struct rank ranks[MAX_RANKS];
    size_t n_ranks;
};

/* What a row adds to a unit. */
struct share {
    double amount, energy_j, low_j, high_j, scaled_low_j, scaled_high_j, time_s;
};

static bool is_unit(const struct nrg_attribution_row *row)
{
    for (size_t i = 0; i < sizeof unit_kinds / sizeof *unit_kinds; i++)
        if (!strcmp(row->kind, unit_kinds[i]))
            return true;
    return false;
}

bool nrg_detail_is_rank(const char *detail)
{
    return !strncmp(detail, "rank ", 5) && strstr(detail, " of ");
}

bool nrg_row_inside_own_kind(const struct nrg_view_rows *v, size_t i)
{
    for (size_t at = v->rows[i].parent; at < v->n; at = v->rows[at].parent)
        if (!strcmp(v->rows[at].kind, v->rows[i].kind))
            return true;
    return false;
}

static double counted(const struct nrg_attribution_row *row, const char *name)
{
    for (size_t k = 0; k < row->n_counts; k++)
        if (!strcmp(row->counts[k].name, name))
            return row->counts[k].amount;
    return 0;
}

static bool is_phase(const struct nrg_attribution_row *row)
{
    return !strcmp(row->kind, NRG_KIND_EPOCH) || !strcmp(row->kind, NRG_KIND_STEP) ||
           !strcmp(row->kind, "phase");
}

/* An outermost phase in which that was counted. */
static bool is_phase_of(const struct nrg_view_rows *v, size_t i, const char *name)
{
    if (!is_phase(&v->rows[i]) || !(counted(&v->rows[i], name) > 0))
        return false;
    for (size_t at = v->rows[i].parent; at < v->n; at = v->rows[at].parent)
        if (is_phase(&v->rows[at]))
            return false;
    return true;
}

static bool inside_phase(const struct nrg_view_rows *v, size_t i)
{
    for (size_t at = i; at < v->n; at = v->rows[at].parent)
        if (is_phase(&v->rows[at]))
            return true;
    return false;
}

static struct share share_of(const struct nrg_attribution_row *row, double amount)
{
    return (struct share){amount,      row->energy_j,     row->low_j,
                          row->high_j, row->scaled_low_j, row->scaled_high_j,
                          row->time_s};
}

/* What of a row outside of all phases is in no phase inside of it, either. How their errors go
 * together is not known: the interval is that of the worst case. */
static struct share rest_of(const struct nrg_view_rows *v, size_t i, const char *name)
{
    struct share s = share_of(&v->rows[i], counted(&v->rows[i], name));
    for (size_t k = i + 1; k < v->n && v->rows[k].depth > v->rows[i].depth; k++)
        if (is_phase_of(v, k, name)) {
            s.amount -= counted(&v->rows[k], name);
            s.energy_j -= v->rows[k].energy_j;
            s.low_j = fmax(0, s.low_j - v->rows[k].high_j);
            s.high_j -= v->rows[k].low_j;
            s.scaled_low_j = fmax(0, s.scaled_low_j - v->rows[k].scaled_high_j);
            s.scaled_high_j -= v->rows[k].scaled_low_j;
            s.time_s -= v->rows[k].time_s;
        }
    return s;
}

/* The number of a unit, made if need be; SIZE_MAX: no room. */
static size_t find_unit(struct finder *f, const char *name, const char *kind, const char *phase)
{
    size_t at = 0;
    while (at < f->n && (strcmp(f->units[at].name, name) || strcmp(f->units[at].kind, kind) ||
                         strcmp(f->units[at].phase, phase)))
        at++;
    if (at == f->max)
        return SIZE_MAX;
    if (at == f->n)
        f->units[f->n++] = (struct nrg_unit_use){.name = name, .kind = kind, .phase = phase};
    return at;
}

static struct nrg_unit_use *add_energy(struct finder *f, size_t at, const struct share *s)
{
    struct nrg_unit_use *unit = &f->units[at];
    unit->energy_j += s->energy_j;
    unit->low_j += s->low_j;
    unit->high_j += s->high_j;
    unit->scaled_low_j += s->scaled_low_j;
    unit->scaled_high_j += s->scaled_high_j;
    return unit;
}

static struct rank *find_rank(struct finder *f, size_t unit, const char *detail)
{
    size_t i = 0;
    while (i < f->n_ranks && (f->ranks[i].unit != unit || strcmp(f->ranks[i].detail, detail)))
        i++;
    if (i == MAX_RANKS)
        return NULL;
    if (i == f->n_ranks)
        f->ranks[f->n_ranks++] = (struct rank){.unit = unit, .detail = detail};
    return &f->ranks[i];
}

static void add_unit(struct finder *f, const struct nrg_attribution_row *row)
{
    struct share s = share_of(row, (double)row->calls);
    size_t at = row->calls ? find_unit(f, row->name, row->kind, "") : SIZE_MAX;
    if (at == SIZE_MAX)
        return;
    struct nrg_unit_use *unit = add_energy(f, at, &s);
    struct rank *rank = nrg_detail_is_rank(row->detail) ? find_rank(f, at, row->detail) : NULL;
    *(rank ? &rank->amount : &unit->amount) += s.amount;
    *(rank ? &rank->time_s : &unit->time_s) += s.time_s;
}

/* Adds what the ranks have in common to their units. */
static void join_ranks(struct finder *f)
{
    for (size_t u = 0; u < f->n; u++) {
        double amount = 0, time_s = 0;
        for (size_t i = 0; i < f->n_ranks; i++) {
            const struct rank *rank = &f->ranks[i];
            if (rank->unit != u)
                continue;
            f->units[u].ranks += rank->amount > 0;
            amount = rank->amount > amount ? rank->amount : amount;
            time_s = rank->time_s > time_s ? rank->time_s : time_s;
        }
        f->units[u].amount += amount;
        f->units[u].time_s += time_s;
    }
}

/* The rank that a row belongs to; NULL: none. */
static const char *rank_of(const struct nrg_view_rows *v, size_t i)
{
    for (size_t at = i; at < v->n; at = v->rows[at].parent)
        if (nrg_detail_is_rank(v->rows[at].detail))
            return v->rows[at].detail;
    return NULL;
}

static void add_counter(struct finder *f, size_t i, const char *name)
{
    const struct nrg_attribution_row *row = &f->v->rows[i];
    bool phase = is_phase_of(f->v, i, name);
    bool outermost = row->parent >= f->v->n || !(counted(&f->v->rows[row->parent], name) > 0);
    if (!phase && (inside_phase(f->v, i) || !outermost))
        return;
    struct share s = phase ? share_of(row, counted(row, name)) : rest_of(f->v, i, name);
    const char *word = !strcmp(row->kind, NRG_KIND_EPOCH) ? "training" : row->name;
    size_t at = s.amount > 0 ? find_unit(f, name, NRG_KIND_COUNTER, phase ? word : "") : SIZE_MAX;
    if (at == SIZE_MAX)
        return;
    struct nrg_unit_use *unit = add_energy(f, at, &s);
    const char *detail = rank_of(f->v, i);
    struct rank *rank = detail ? find_rank(f, at, detail) : NULL;
    unit->amount += s.amount;
    *(rank ? &rank->time_s : &unit->time_s) += s.time_s;
}

size_t nrg_units_find(const struct nrg_view_rows *v, struct nrg_unit_use *units, size_t max)
{
    struct finder f = {.v = v, .units = units, .max = max};
    for (size_t i = 0; i < v->n; i++)
        if (is_unit(&v->rows[i]) && !nrg_row_inside_own_kind(v, i))
            add_unit(&f, &v->rows[i]);
    for (size_t i = 0; i < v->n; i++)
        for (size_t k = 0; k < v->rows[i].n_counts; k++)
            add_counter(&f, i, v->rows[i].counts[k].name);
    join_ranks(&f);
    return f.n;
}
