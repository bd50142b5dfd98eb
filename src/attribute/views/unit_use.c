/*
 * Joules per unit of work. Spans of some kinds are units themselves (a step, an epoch, a cycle);
 * counters say how many samples or tokens went by (counter_use.c). A unit inside one of its own
 * kind is not counted twice: only the outermost rows are taken.
 *
 * Ranks: a job of several processes has each of its steps and epochs once in each of them.
 * nrg.torch says so in the detail ("rank 1 of 4"). The job has as many as the rank that has most;
 * joules are those of all ranks, time is that of the slowest, because they run at the same time.
 * What ranks count (samples) adds up, in the same time.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/internal.h"
#include "base/mem.h"

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
    struct nrg_attribution *a;
    struct rank ranks[MAX_RANKS];
    size_t n_ranks;
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

/* The number of a unit, made if need be, or -ENOMEM. */
static int64_t find_unit(struct nrg_attribution *a, const struct nrg_attribution_row *row)
{
    size_t at = 0;
    while (at < a->n_units &&
           (strcmp(a->units[at].name, row->name) || strcmp(a->units[at].kind, row->kind)))
        at++;
    const struct nrg_unit_use unit = {
        .name = row->name, .kind = row->kind, .of = row->name, .of_kind = row->kind};
    if (at == a->n_units && nrg_append(&a->units, &a->n_units, &a->cap_units, &unit, sizeof unit))
        return -ENOMEM;
    return (int64_t)at;
}

static void add_energy(struct nrg_unit_use *unit, const struct nrg_attribution_row *row)
{
    unit->energy_j += row->energy_j;
    unit->low_j += row->low_j;
    unit->high_j += row->high_j;
    unit->scaled_low_j += row->scaled_low_j;
    unit->scaled_high_j += row->scaled_high_j;
    bool open = unit->high_j - unit->low_j > unit->energy_j;
    unit->flags = ((unit->flags | row->flags) & ~(unsigned)NRG_ROW_UNRESOLVED) |
                  (open ? NRG_ROW_UNRESOLVED : 0);
    if (row->provenance > unit->provenance)
        unit->provenance = row->provenance;
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

/* To the rank that a row belongs to, or to the unit itself. */
static void add_time(struct finder *f, size_t unit, const char *detail, double amount,
                     double time_s)
{
    struct nrg_unit_use *to = &f->a->units[unit];
    struct rank *rank = detail ? find_rank(f, unit, detail) : NULL;
    *(rank ? &rank->amount : &to->amount) += amount;
    *(rank ? &rank->time_s : &to->time_s) += time_s;
}

static int add_unit(struct finder *f, const struct nrg_attribution_row *row)
{
    int64_t at = row->calls ? find_unit(f->a, row) : 0;
    if (!row->calls || at < 0)
        return (int)at;
    add_energy(&f->a->units[at], row);
    add_time(f, (size_t)at, nrg_detail_is_rank(row->detail) ? row->detail : NULL,
             (double)row->calls, row->time_s);
    return 0;
}

/* Adds what the ranks have in common to their units. */
static void join_ranks(struct finder *f)
{
    for (size_t u = 0; u < f->a->n_units; u++) {
        double amount = 0, time_s = 0;
        for (size_t i = 0; i < f->n_ranks; i++) {
            const struct rank *rank = &f->ranks[i];
            if (rank->unit != u)
                continue;
            f->a->units[u].ranks += rank->amount > 0;
            amount = rank->amount > amount ? rank->amount : amount;
            time_s = rank->time_s > time_s ? rank->time_s : time_s;
        }
        f->a->units[u].amount += amount;
        f->a->units[u].time_s += time_s;
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

static bool is_of(const struct nrg_unit_use *unit, const struct nrg_attribution_row *row)
{
    return !strcmp(row->name, unit->of) && !strcmp(row->kind, unit->of_kind);
}

static bool inside_own_class(const struct nrg_view_rows *v, size_t i, const struct nrg_unit_use *u)
{
    for (size_t at = v->rows[i].parent; at < v->n; at = v->rows[at].parent)
        if (is_of(u, &v->rows[at]))
            return true;
    return false;
}

/* Of a job with ranks: the time of a class is not the sum over its processes. */
static void share_times(struct finder *f, size_t first)
{
    bool job = false;
    for (size_t i = 0; i < f->v->n && !job; i++)
        job = nrg_detail_is_rank(f->v->rows[i].detail);
    for (size_t u = first; job && u < f->a->n_units; u++) {
        struct nrg_unit_use *unit = &f->a->units[u];
        if (!strcmp(unit->of_kind, NRG_OF_PROGRAM) || !strcmp(unit->of_kind, NRG_OF_MACHINE))
            continue;
        unit->time_s = 0;
        for (size_t i = 0; i < f->v->n; i++)
            if (is_of(unit, &f->v->rows[i]) && !inside_own_class(f->v, i, unit))
                add_time(f, u, rank_of(f->v, i), 0, f->v->rows[i].time_s);
    }
}

int nrg_units_find(struct nrg_attribution *a, const struct nrg_unit_sources *s,
                   const char *const *per, struct nrg_error *err)
{
    struct finder f = {.v = s->paths, .a = a};
    int rc = 0;
    for (size_t i = 0; !rc && i < f.v->n; i++)
        if (is_unit(&f.v->rows[i]) && !nrg_row_inside_own_kind(f.v, i))
            rc = add_unit(&f, &f.v->rows[i]);
    size_t first = a->n_units;
    if (!rc)
        rc = nrg_units_counted(a, s);
    for (size_t i = 0; !rc && per && per[i]; i++)
        rc = nrg_units_asked(a, s, per[i], err);
    if (rc)
        return rc;
    share_times(&f, first);
    join_ranks(&f);
    return 0;
}
