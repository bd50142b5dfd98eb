/*
 * Intervals and groups of rows from a regression. The energy of a row with all that is inside is a
 * sum of powers times times, and the powers' errors are correlated: what one class has too much,
 * its neighbour has too little. So the interval of a sum comes from the covariance, and is mostly
 * narrower than those of its parts.
 *
 * Classes that can't be told apart are one number: it stands in the first of their rows. A row
 * around some of these, but not all, may have anything from nothing to all of it.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/internal.h"

struct sums {
    struct nrg_engine *e;
    struct nrg_arena memory; /* of what follows */
    double *cost_s;          /* per class: of the place that is looked at, with all inside */
    uint32_t *classes;       /* those that are in use */
    size_t n;
    uint32_t *last;       /* per place: the last place that is inside, in the order of `order` */
    uint32_t *order, *at; /* places in the order of a walk, and where each stands */
};

/* The walk's order makes what is inside a place a range. Parents have smaller numbers. */
static int make_order(struct sums *s)
{
    const struct nrg_span_tree *tree = &s->e->walk.paths;
    uint32_t *size = nrg_arena_array(&s->memory, tree->n + 1, sizeof *size);
    uint32_t *next = nrg_arena_array(&s->memory, tree->n + 1, sizeof *next);
    s->order = nrg_arena_array(&s->memory, tree->n + 1, sizeof *s->order);
    s->at = nrg_arena_array(&s->memory, tree->n + 1, sizeof *s->at);
    s->last = nrg_arena_array(&s->memory, tree->n + 1, sizeof *s->last);
    if (s->memory.failed)
        return -ENOMEM;
    for (size_t i = tree->n; i-- > 0;) {
        size[i]++;
        if (i)
            size[tree->nodes[i].parent] += size[i];
    }
    for (size_t i = 0; i < tree->n; i++) {
        uint32_t parent = tree->nodes[i].parent;
        s->at[i] = i ? next[parent] : 0;
        if (i)
            next[parent] += size[i];
        next[i] = s->at[i] + 1;
        s->last[i] = s->at[i] + size[i] - 1;
        s->order[s->at[i]] = (uint32_t)i;
    }
    return 0;
}

static void add_inside(struct sums *s, uint32_t place, double *time_s)
{
    const struct nrg_engine *e = s->e;
    for (size_t i = 0; i < s->n; i++)
        s->cost_s[s->classes[i]] = 0;
    s->n = 0;
    for (uint32_t k = s->at[place]; k <= s->last[place]; k++) {
        uint32_t inner = s->order[k], c = e->class_of[inner];
        *time_s += e->rows[inner].self_ns * 1e-9;
        if (c == UINT32_MAX || !(e->rows[inner].cost_s > 0))
            continue;
        if (s->cost_s[c] <= 0)
            s->classes[s->n++] = c;
        s->cost_s[c] += e->rows[inner].cost_s;
    }
}

static double variance(const struct sums *s, const struct nrg_part *part, double time_s)
{
    const struct nrg_regress_result *r = &part->regressed;
    size_t n = s->e->n_classes;
    bool with_idle = s->e->options->idle == NRG_IDLE_SHARE && r->idle_fitted && r->idle_covariance;
    double sum = with_idle ? time_s * time_s * r->idle_variance : 0;
    for (size_t i = 0; i < s->n; i++) {
        uint32_t a = s->classes[i];
        for (size_t k = 0; k < s->n; k++)
            sum += s->cost_s[a] * s->cost_s[s->classes[k]] * r->covariance[a * n + s->classes[k]];
        if (with_idle)
            sum += 2 * time_s * s->cost_s[a] * r->idle_covariance[a];
    }
    return fmax(0, sum);
}

/* Of all classes alike: these errors add up. */
static double drift_j(const struct sums *s, const struct nrg_part *part)
{
    double all_j = 0;
    for (size_t shape = 0; shape < NRG_DOUBTS; shape++) {
        double sum_j = 0;
        for (size_t i = 0; i < s->n; i++)
            sum_j +=
                s->cost_s[s->classes[i]] * part->regressed.classes[s->classes[i]].drift_w[shape];
        all_j += fabs(sum_j);
    }
    return all_j;
}

static double inside_j(const struct sums *s, const struct nrg_part *part)
{
    double sum_j = 0;
    for (size_t i = 0; i < s->n; i++)
        sum_j = nrg_sum_known(sum_j, s->cost_s[s->classes[i]] *
                                         part->regressed.classes[s->classes[i]].power_w);
    return sum_j;
}

/* Of a sum, how much less it is where powers may be negative. Powers that can't be move the others,
 * mostly all in one direction. */
static double moved_j(const struct sums *s, const struct nrg_part *part)
{
    double sum_j = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct nrg_regress_class *c = &part->regressed.classes[s->classes[i]];
        sum_j = nrg_sum_known(sum_j, s->cost_s[s->classes[i]] * (c->power_w - c->free_w));
    }
    return sum_j;
}

/* Classes that no reading saw: nothing says that they differ in opposite directions. Those of other
 * domains' tracks have no part in it. */
static void add_unseen(const struct sums *s, size_t p, uint32_t place, struct nrg_row_error *whole)
{
    const struct nrg_engine *e = s->e;
    const struct nrg_part *part = &e->parts[p];
    for (uint32_t k = s->at[place]; k <= s->last[place]; k++) {
        uint32_t inner = s->order[k], c = e->class_of[inner];
        if (c == UINT32_MAX || !isnan(part->regressed.classes[c].power_w) ||
            !(e->row_parts[inner * e->n_parts + p].covered_ns > 0))
            continue;
        whole->below_j += part->below_w[inner] * e->rows[inner].cost_s;
        whole->above_j += part->above_w[inner] * e->rows[inner].cost_s;
    }
}

/* Of the energy inside: what classes there may have of their neighbours remains as far as these are
 * elsewhere. */
static double left_over(const struct nrg_part *part, double inside_j, double all_j)
{
    double elsewhere = all_j > 0 ? fmax(1 - inside_j / all_j, 0) : 1;
    return part->regressed.left_over + part->regressed.to_neighbours * elsewhere;
}

/* Half of the interval of what is inside; all_j: of the run. */
static double half_j(const struct sums *s, const struct nrg_part *part, double time_s, double all_j)
{
    double energy_j = inside_j(s, part);
    return hypot(part->regressed.t * sqrt(variance(s, part, time_s)),
                 2 * NRG_REGRESS_LEAST_ERROR * energy_j) +
           drift_j(s, part) + left_over(part, energy_j, all_j) * energy_j;
}

double nrg_regress_sum_error(struct nrg_engine *e, size_t p, double *cost_s)
{
    const struct nrg_part *part = &e->parts[p];
    struct sums s = {.e = e, .cost_s = cost_s};
    double all_j = INFINITY, result = NAN;
    bool known = e->options->idle != NRG_IDLE_SHARE;
    s.classes = nrg_arena_array(&s.memory, e->n_classes + 1, sizeof *s.classes);
    for (uint32_t c = 0; s.classes && c < e->n_classes; c++)
        if (cost_s[c] > 0) {
            s.classes[s.n++] = c;
            known &= !isnan(part->regressed.classes[c].power_w);
        }
    if (s.n && known && inside_j(&s, part) > 0)
        result = (half_j(&s, part, 0, all_j) + fabs(moved_j(&s, part))) / inside_j(&s, part);
    nrg_arena_release(&s.memory);
    return result;
}

static void whole_errors(struct sums *s, size_t p)
{
    struct nrg_engine *e = s->e;
    const struct nrg_part *part = &e->parts[p];
    double run_s = 0;
    add_inside(s, 0, &run_s);
    double all_j = inside_j(s, part);
    for (uint32_t i = 1; i < e->walk.paths.n; i++) {
        struct nrg_row_error *whole = &e->row_parts[i * e->n_parts + p].whole;
        double time_s = 0;
        add_inside(s, i, &time_s);
        double half = half_j(s, part, time_s, all_j), moved = moved_j(s, part);
        *whole = (struct nrg_row_error){.below_j = half + fmax(moved, 0),
                                        .above_j = half + fmax(-moved, 0)};
        add_unseen(s, p, i, whole);
        if (s->n == 1 && s->at[i] == s->last[i]) /* no place inside: as the class has it */
            *whole = e->row_parts[i * e->n_parts + p].self;
    }
}

/* Where rows are not paths, errors add up end to end: too wide, but never too narrow. */
static void plain_errors(struct nrg_engine *e, size_t p)
{
    const struct nrg_span_tree *tree = e->walk.rows;
    for (size_t i = tree->n; i-- > 1;) {
        struct nrg_row_part *row = &e->row_parts[i * e->n_parts + p];
        struct nrg_row_error *above = &e->row_parts[tree->nodes[i].parent * e->n_parts + p].whole;
        nrg_row_error_add(&row->whole, &row->self);
        nrg_row_error_add(above, &row->whole);
    }
}

/* The number of a group goes to its first place. */
static void merge_groups(struct nrg_engine *e, size_t p, uint32_t *first)
{
    const struct nrg_regress_result *r = &e->parts[p].regressed;
    for (uint32_t i = 1; i < e->walk.paths.n; i++) {
        uint32_t c = e->class_of[i];
        if (c == UINT32_MAX || c == e->rest_class || !(e->rows[i].cost_s > 0))
            continue;
        uint32_t *carrier = &first[r->classes[c].group];
        if (!*carrier) {
            *carrier = i;
            continue;
        }
        struct nrg_row_part *to = &e->row_parts[*carrier * e->n_parts + p];
        struct nrg_row_part *from = &e->row_parts[i * e->n_parts + p];
        to->energy_j += from->energy_j;
        nrg_row_error_add(&to->self, &from->self);
        nrg_row_error_add(&to->whole, &from->self);
        from->moved_ns = from->covered_ns;
        from->energy_j = from->covered_ns = 0;
        from->self = from->whole = (struct nrg_row_error){0};
        e->rows[i].flags |= NRG_ROW_MERGED;
        e->rows[*carrier].flags |= NRG_ROW_MERGED;
        e->rows[i].merged_with = *carrier;
    }
}

/* How many rows of the group of `carrier` each place holds. */
static uint32_t count_members(const struct sums *s, uint32_t carrier, uint32_t *held)
{
    const struct nrg_engine *e = s->e;
    const struct nrg_span_node *nodes = e->walk.paths.nodes;
    uint32_t members = 0;
    memset(held, 0, e->walk.paths.n * sizeof *held);
    for (uint32_t i = 1; i < e->walk.paths.n; i++) {
        if (i != carrier && e->rows[i].merged_with != carrier)
            continue;
        members++;
        for (uint32_t at = i; at; at = nodes[at].parent)
            held[at]++;
    }
    return members;
}

/* The group's number is in the row around its carrier, and in none around the others alone. */
static void doubt_group(const struct sums *s, size_t p, uint32_t carrier, uint32_t *held)
{
    struct nrg_engine *e = s->e;
    const struct nrg_row_part *group = &e->row_parts[carrier * e->n_parts + p];
    uint32_t members = count_members(s, carrier, held);
    for (uint32_t i = 1; i < e->walk.paths.n; i++) {
        bool inner = s->at[i] == s->last[i];
        if (inner || !held[i] || held[i] == members)
            continue;
        struct nrg_row_error *whole = &e->row_parts[i * e->n_parts + p].whole;
        bool has = s->at[carrier] >= s->at[i] && s->at[carrier] <= s->last[i];
        whole->below_j += has ? group->energy_j : 0;
        whole->above_j += group->self.above_j + (has ? 0 : group->energy_j);
    }
}

static int doubt_groups(struct sums *s, size_t p, const uint32_t *first)
{
    const struct nrg_engine *e = s->e;
    uint32_t *held = nrg_arena_array(&s->memory, e->walk.paths.n + 1, sizeof *held);
    for (size_t g = 0; held && g < e->n_classes; g++)
        if (first[g] && e->rows[first[g]].flags & NRG_ROW_MERGED)
            doubt_group(s, p, first[g], held);
    return held ? 0 : -ENOMEM;
}

int nrg_regress_errors(struct nrg_engine *e)
{
    struct sums s = {.e = e};
    uint32_t *first = nrg_arena_array(&s.memory, e->n_classes + 1, sizeof *first);
    s.cost_s = nrg_arena_array(&s.memory, e->n_classes + 1, sizeof *s.cost_s);
    s.classes = nrg_arena_array(&s.memory, e->n_classes + 1, sizeof *s.classes);
    int rc = make_order(&s);
    for (size_t p = 0; !rc && p < e->n_parts; p++) {
        if (e->parts[p].method != NRG_METHOD_REGRESS)
            continue;
        if (e->walk.rows != &e->walk.paths) {
            plain_errors(e, p);
            continue;
        }
        whole_errors(&s, p);
        memset(first, 0, (e->n_classes + 1) * sizeof *first);
        merge_groups(e, p, first);
        rc = doubt_groups(&s, p, first);
    }
    nrg_arena_release(&s.memory);
    return rc;
}
