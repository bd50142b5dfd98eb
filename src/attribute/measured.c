/*
 * See measured.h. Of a unit (a step, or a row) the model has m joules. It may really be off that by
 * d, of a variance S = s2 * m^2 with one s2 for all units of a path. In an interval the unit has a
 * part w of what the model has there, and so gets w of what is left of it: L in all. Over
 * intervals,
 *
 *     g = sum (w * part of m in the interval)      part of d that is in L; 1: readings saw it alone
 *     a = g^2 + (1 - g) * min(g, 1 - g)            the same of variances, with what neighbours have
 *     v = what readings are off by, as it comes into L: at borders by how much w changes there
 *     variance of L = a * S + v
 *     energy = m + k * L,   k = g * S / (a * S + v), at most 1
 *     its variance = S * (1 - 2 * k * g + k^2 * a) + k^2 * v
 *
 * a is g for n equal units in one interval (g = 1 / n); where more than half is its own, one
 * neighbour has the rest: there can be more of them, which is less. s2 comes from the scatter of L,
 * beyond v; for the variance, its own error is added.
 */
#include "attribute/measured.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/buckets.h"
#include "attribute/left_over.h"
#include "base/mem.h"

#define BY_CHANCE  2  /* deviations */
#define MOST_SLOTS 16 /* paths of rows whose sums have an error of their own */

struct unit {
    double model_j, left_j, seen_j, noise_j2; /* seen_j: g * m */
    uint32_t first, interval;                 /* interval: in hand, from 1; 0: none */
    uint32_t last;                            /* the one before, and its w */
    float in_j, last_w;
};

struct group {
    double model_j, left_j, measured_j;
    double left_j2, noise_j2, seen_j2; /* sums of L^2, v and a * m^2 */
    double next_j2;                    /* of L times that of the unit that follows right after it */
    size_t n, n_next;
    const struct unit *last;
    double noise;          /* v is so many times what was expected */
    double error_j4, seen; /* of the first sum, and sum of g */
    double scatter2;       /* s2 */
    double scatter2_error;
    double sum_error; /* of the sum of all its units, as a part of it; NAN: not known */
};

/* Units of one kind. */
struct set {
    struct unit *units; /* [unit * n_parts + part] */
    uint32_t *group;    /* per unit; 0: it is none */
    size_t n;
};

struct nrg_measured {
    struct nrg_arena memory;
    struct set rows, steps;
    struct group *groups; /* per path */
    size_t n_groups;
    bool *inside;     /* per row: it has a number, or is in one that has */
    uint8_t *slot_of; /* per path of rows: from 1; 0: it has none */
    double *cost_s;   /* [(slot - 1) * n_classes + class] */
    size_t n_slots;
    size_t *at; /* per part: interval that was looked at last */
};

static int make_set(struct nrg_measured *m, struct set *set, size_t n, size_t n_parts)
{
    set->n = n;
    set->units = nrg_arena_array(&m->memory, n * n_parts + 1, sizeof *set->units);
    set->group = nrg_arena_array(&m->memory, n + 1, sizeof *set->group);
    return m->memory.failed ? -ENOMEM : 0;
}

/* Rows with a number, and those inside of them. */
static int find_inside(const struct nrg_engine *e, struct nrg_measured *m)
{
    const struct nrg_span_tree *tree = e->walk.rows;
    m->inside = nrg_arena_array(&m->memory, tree->n + 1, sizeof *m->inside);
    m->slot_of = nrg_arena_array(&m->memory, e->walk.paths.n + 1, sizeof *m->slot_of);
    m->cost_s = nrg_arena_array(&m->memory, MOST_SLOTS * e->n_classes + 1, sizeof *m->cost_s);
    for (size_t i = 1; m->inside && i < tree->n; i++)
        m->inside[i] = tree->nodes[i].number != NRG_MISSING || m->inside[tree->nodes[i].parent];
    return m->memory.failed ? -ENOMEM : 0;
}

int nrg_measured_make(struct nrg_engine *e)
{
    bool any = false;
    for (size_t p = 0; p < e->n_parts; p++)
        any |= e->parts[p].left_over != NULL;
    if (!any)
        return 0;
    struct nrg_measured *m = e->measured = nrg_calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    bool numbered = e->walk.rows != &e->walk.paths;
    m->at = nrg_arena_array(&m->memory, e->n_parts + 1, sizeof *m->at);
    int rc = make_set(m, &m->steps, (size_t)e->walk.n_steps + 1, e->n_parts);
    if (!rc && numbered)
        rc = make_set(m, &m->rows, e->walk.rows->n, e->n_parts);
    if (!rc && numbered)
        rc = find_inside(e, m);
    m->n_groups = e->walk.paths.n;
    m->groups = nrg_arena_array(&m->memory, m->n_groups + 1, sizeof *m->groups);
    return rc || m->memory.failed ? -ENOMEM : 0;
}

void nrg_measured_free(struct nrg_measured *m)
{
    if (m)
        nrg_arena_release(&m->memory);
    free(m);
}

void nrg_measured_step(struct nrg_measured *m, uint32_t step, uint32_t path)
{
    if (step < m->steps.n)
        m->steps.group[step] = path;
}

void nrg_measured_row(struct nrg_measured *m, uint32_t row, uint32_t path)
{
    if (row >= m->rows.n || !m->inside[row])
        return;
    m->rows.group[row] = path;
    if (!m->slot_of[path] && m->n_slots < MOST_SLOTS)
        m->slot_of[path] = (uint8_t)++m->n_slots;
}

void nrg_measured_cost(struct nrg_engine *e, const struct nrg_measured_stretch *stretch)
{
    struct nrg_measured *m = e->measured;
    uint32_t group = stretch->row < m->rows.n ? m->rows.group[stretch->row] : 0;
    uint32_t class_ = e->class_of[stretch->path];
    if (group && m->slot_of[group] && class_ != UINT32_MAX)
        m->cost_s[(m->slot_of[group] - 1u) * e->n_classes + class_] += stretch->cost_s;
}

/* The interval in hand is complete. */
static void settle(const struct nrg_left_over *l, struct unit *u)
{
    size_t i = (size_t)u->interval - 1;
    if (!u->interval)
        return;
    double in_j = (double)u->in_j, model_j = (double)l->model_j[i], last_w = (double)u->last_w;
    double w = model_j > in_j ? in_j / model_j : 1, border_j2 = (double)l->border_j2[i];
    u->model_j += in_j;
    u->left_j += (double)l->left[i] * in_j;
    u->seen_j += w * in_j;
    if (u->last + 1 == u->interval)
        u->noise_j2 += (w - last_w) * (w - last_w) * border_j2;
    else
        u->noise_j2 += (w * w + last_w * last_w) * border_j2;
    u->noise_j2 += w * w * l->alone_j2;
    u->first = u->first ? u->first : u->interval;
    u->last = u->interval;
    u->last_w = (float)w;
    u->interval = 0;
    u->in_j = 0;
}

static void settle_last(const struct nrg_left_over *l, struct unit *u)
{
    settle(l, u);
    if (u->last)
        u->noise_j2 += (double)u->last_w * (double)u->last_w * (double)l->border_j2[u->last - 1];
}

static void add_to(const struct nrg_left_over *l, struct unit *u, size_t i, double energy_j)
{
    if (u->interval != i + 1)
        settle(l, u);
    u->interval = (uint32_t)i + 1;
    u->in_j += (float)energy_j;
}

void nrg_measured_add(struct nrg_engine *e, size_t p, const struct nrg_measured_stretch *stretch,
                      double energy_j)
{
    struct nrg_measured *m = e->measured;
    const struct nrg_span_ns when = stretch->when;
    size_t row = stretch->row, step = stretch->step;
    const struct nrg_left_over *l = e->parts[p].left_over;
    bool in_row = row < m->rows.n && m->rows.group[row];
    bool in_step = step && step < m->steps.n && m->steps.group[step];
    if (!l || !(in_row || in_step) || !(energy_j > 0) || when.end_ns <= when.begin_ns)
        return;
    double power = energy_j / (double)(when.end_ns - when.begin_ns);
    size_t i = m->at[p];
    while (i > 0 && l->begin_ns[i] > when.begin_ns)
        i--;
    while (i < l->n && l->begin_ns[i + 1] <= when.begin_ns)
        i++;
    for (; i < l->n && l->begin_ns[i] < when.end_ns; i++) {
        int64_t from_ns = l->begin_ns[i] > when.begin_ns ? l->begin_ns[i] : when.begin_ns;
        int64_t to_ns = l->begin_ns[i + 1] < when.end_ns ? l->begin_ns[i + 1] : when.end_ns;
        double part_j = power * (double)(to_ns - from_ns);
        m->at[p] = i;
        if (in_row)
            add_to(l, &m->rows.units[row * e->n_parts + p], i, part_j);
        if (in_step)
            add_to(l, &m->steps.units[step * e->n_parts + p], i, part_j);
    }
}

/* a * m^2 */
static double seen_j2(const struct unit *u)
{
    double other_j = fmax(u->model_j - u->seen_j, 0);
    return u->seen_j * u->seen_j + other_j * fmin(u->seen_j, other_j);
}

static bool is_unit(const struct set *set, size_t i, const struct unit *u)
{
    return set->group[i] && u->model_j > 0;
}

static double centred_j(const struct unit *u, const struct group *g)
{
    return u->left_j - u->model_j * g->left_j / g->model_j;
}

static void add_squares(struct group *g, const struct unit *u)
{
    double left_j = centred_j(u, g);
    g->left_j2 += left_j * left_j;
    g->noise_j2 += u->noise_j2;
    g->seen_j2 += seen_j2(u);
    g->seen += u->seen_j / u->model_j;
    g->n++;
    if (g->last && u->first - g->last->last <= 1) {
        g->next_j2 += left_j * centred_j(g->last, g);
        g->n_next++;
    }
    g->last = u;
}

/*
 * What a reading has too much at the end of a unit, the next unit has too little: noise shows in
 * the covariance of neighbours, as far as that is not chance.
 */
static double find_noise(const struct group *g)
{
    if (!g->n_next || !(g->noise_j2 > 0))
        return 1;
    double n = (double)g->n, pairs = (double)g->n_next;
    double chance_j2 = BY_CHANCE * g->left_j2 / n / sqrt(pairs);
    return fmax(1, 2 * (-g->next_j2 / pairs - chance_j2) * n / g->noise_j2);
}

/* How much units of each path differ beyond what readings are off by. */
static void find_scatter(const struct nrg_engine *e, const struct set *set, size_t p)
{
    struct group *groups = e->measured->groups;
    size_t n_parts = e->n_parts, n_groups = e->measured->n_groups;
    double left_part2 = e->parts[p].left_over->left_part2;
    for (size_t i = 0; i < set->n; i++)
        if (is_unit(set, i, &set->units[i * n_parts + p]))
            add_squares(&groups[set->group[i]], &set->units[i * n_parts + p]);
    for (size_t k = 0; k < n_groups; k++) {
        struct group *g = &groups[k];
        g->noise = find_noise(g);
        if (g->n > 1 && g->seen_j2 > 0)
            g->scatter2 = fmax(g->left_j2 - g->noise * g->noise_j2, 0) / g->seen_j2 * (double)g->n /
                          (double)(g->n - 1);
    }
    for (size_t i = 0; i < set->n; i++) {
        const struct unit *u = &set->units[i * n_parts + p];
        struct group *g = &groups[set->group[i]];
        double variance_j2 = seen_j2(u) * g->scatter2 + g->noise * u->noise_j2;
        if (is_unit(set, i, u))
            g->error_j4 += 2 * variance_j2 * variance_j2;
    }
    for (size_t k = 0; k < n_groups; k++) { /* units that share an interval say the same */
        struct group *g = &groups[k];
        if (g->n > 1 && g->seen_j2 > 0)
            g->scatter2_error = fmin(sqrt(g->error_j4 * (double)g->n / g->seen) / g->seen_j2,
                                     left_part2 * (double)g->n / g->seen);
    }
}

/* k, and what the unit's energy is then. */
static double weight_of(const struct unit *u, const struct group *g)
{
    double own_j2 = u->seen_j * u->model_j * g->scatter2;
    return own_j2 > 0 ? fmin(own_j2 / (seen_j2(u) * g->scatter2 + g->noise * u->noise_j2), 1) : 0;
}

/* No less than nothing, which what is left may be beyond by rounding. */
static double measured_j(const struct unit *u, const struct group *g)
{
    return fmax(u->model_j + weight_of(u, g) * u->left_j, 0);
}

static double variance_of(const struct unit *u, const struct group *g)
{
    double k = weight_of(u, g);
    double open_j2 = u->model_j * (u->model_j - 2 * k * u->seen_j) + k * k * seen_j2(u);
    return (g->scatter2 + g->scatter2_error) * fmax(0, open_j2) + k * k * g->noise * u->noise_j2;
}

/* Sums per path; after it, energies are known. */
static void judge(const struct nrg_engine *e, struct set *set, size_t p)
{
    struct group *groups = e->measured->groups;
    memset(groups, 0, e->measured->n_groups * sizeof *groups);
    for (size_t i = 0; i < set->n; i++) {
        struct unit *u = &set->units[i * e->n_parts + p];
        settle_last(e->parts[p].left_over, u);
        groups[set->group[i]].model_j += u->model_j;
        groups[set->group[i]].left_j += u->left_j;
    }
    find_scatter(e, set, p);
    for (size_t i = 0; i < set->n; i++) {
        const struct unit *u = &set->units[i * e->n_parts + p];
        if (is_unit(set, i, u))
            groups[set->group[i]].measured_j += measured_j(u, &groups[set->group[i]]);
    }
}

/* By how much more than the model has; the sum of a path stays. */
static double more_j(const struct unit *u, const struct group *g)
{
    return g->measured_j > 0 ? measured_j(u, g) * g->model_j / g->measured_j - u->model_j : 0;
}

/*
 * What the classes may be off by remains as far as readings do not see it, and in the sum of the
 * path, which is the regression's: by less, since what one class has too much another has too
 * little.
 */
static void narrow(struct nrg_engine *e, size_t row, size_t p, const struct group *g)
{
    const struct unit *u = &e->measured->rows.units[row * e->n_parts + p];
    struct nrg_row_error *self = &e->row_parts[row * e->n_parts + p].self;
    double seen = weight_of(u, g) * fmin(u->seen_j / u->model_j, 1);
    double sum_j = g->sum_error * u->model_j;
    double less_j = isnan(sum_j) ? 0 : seen * fmax(self->below_j - sum_j, 0);
    double less_above_j = isnan(sum_j) ? 0 : seen * fmax(self->above_j - sum_j, 0);
    self->below_j -= less_j;
    self->above_j -= less_above_j;
    for (size_t at = row; e->measured->rows.group[at]; at = e->walk.rows->nodes[at].parent) {
        e->row_parts[at * e->n_parts + p].whole.below_j -= less_j;
        e->row_parts[at * e->n_parts + p].whole.above_j -= less_above_j;
    }
}

static void correct_row(struct nrg_engine *e, size_t row, size_t p)
{
    const struct set *set = &e->measured->rows;
    const struct unit *u = &set->units[row * e->n_parts + p];
    const struct group *g = &e->measured->groups[set->group[row]];
    if (!is_unit(set, row, u) || g->n < 2)
        return;
    struct nrg_row_part *part = &e->row_parts[row * e->n_parts + p];
    double variance_j2 = variance_of(u, g), energy_j = fmax(part->energy_j + more_j(u, g), 0);
    if (e->buckets)
        nrg_buckets_scale(e->buckets, (uint32_t)row, p, energy_j / part->energy_j);
    part->energy_j = energy_j;
    narrow(e, row, p, g);
    part->self.variance_j2 += variance_j2;
    for (size_t at = row; set->group[at]; at = e->walk.rows->nodes[at].parent)
        e->row_parts[at * e->n_parts + p].whole.variance_j2 += variance_j2;
}

void nrg_measured_finish(struct nrg_engine *e, struct nrg_single_steps *steps)
{
    struct nrg_measured *m = e->measured;
    for (size_t p = 0; p < e->n_parts; p++) {
        if (!e->parts[p].left_over)
            continue;
        judge(e, &m->rows, p);
        for (size_t k = 0; m->rows.n && k < m->n_groups; k++)
            m->groups[k].sum_error =
                m->slot_of[k]
                    ? nrg_regress_sum_error(e, p, &m->cost_s[(m->slot_of[k] - 1u) * e->n_classes])
                    : NAN;
        for (size_t i = 1; i < m->rows.n; i++)
            correct_row(e, i, p);
        judge(e, &m->steps, p);
        for (size_t i = 1; i < m->steps.n && i <= steps->n; i++) {
            const struct unit *u = &m->steps.units[i * e->n_parts + p];
            if (is_unit(&m->steps, i, u))
                steps->items[i - 1].energy_j += more_j(u, &m->groups[m->steps.group[i]]);
        }
    }
}
