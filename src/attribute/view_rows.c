/*
 * Rows of the result from the view: sums over what is inside, intervals, flags, in the order of a
 * walk through the tree. Places in which nothing happened have no row. What the rows do not have
 * is the domains' unattributed energy.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/rows_memory.h"
#include "attribute/view.h"

#define UNCOVERED_NS 1000 /* rounding of times, not a gap */

struct builder {
    struct nrg_engine *e;
    const struct nrg_view *v;
    struct nrg_arena *arena;
    uint32_t *child, *next; /* of nodes that have a row; 0: none */
    uint8_t *used;
    size_t *row_of;
    uint32_t *node_of; /* per row */
    double *inside_j;  /* [row * n_parts + part], inclusive; NAN: nothing is known */
    double *missing_j; /* the same, of the time without a reading: at most, not counted */
};

bool nrg_row_known(const struct nrg_engine *e, size_t p, const struct nrg_row_sums *sums,
                   const struct nrg_row_part *row)
{
    if (nrg_method_reads(e->parts[p].method))
        return !row->unknown || row->unknown < sums->stretches;
    return row->covered_ns > 0 || sums->self_ns <= 0;
}

/* Energy of a node's own time in a part; NAN when none of it is known. */
static double self_j(const struct builder *b, size_t node, size_t p)
{
    const struct nrg_row_part *part = &b->v->parts[node * b->e->n_parts + p];
    return nrg_row_known(b->e, p, &b->v->nodes[node].sums, part) ? part->energy_j : NAN;
}

static double sum_known(double a, double b)
{
    return isnan(a) ? b : isnan(b) ? a : a + b;
}

/* Children in the order in which they were seen first. */
static void link_children(struct builder *b)
{
    const struct nrg_view_node *nodes = b->v->nodes;
    for (size_t i = 1; i < b->v->n; i++)
        if (nodes[i].sums.calls || nodes[i].sums.stretches)
            for (uint32_t at = (uint32_t)i; at && !b->used[at]; at = nodes[at].parent)
                b->used[at] = 1;
    for (size_t i = b->v->n; i-- > 1;)
        if (b->used[i]) {
            b->next[i] = b->child[nodes[i].parent];
            b->child[nodes[i].parent] = (uint32_t)i;
        }
}

static void set_row(struct builder *b, uint32_t node, unsigned depth)
{
    const struct nrg_view_node *from = &b->v->nodes[node];
    size_t at = b->e->out->n_rows++;
    struct nrg_attribution_row *row = &b->e->out->rows[at];
    b->row_of[node] = at;
    b->node_of[at] = node;
    *row = (struct nrg_attribution_row){.name = from->name,
                                        .kind = from->kind,
                                        .detail = from->detail,
                                        .parent = from->parent ? b->row_of[from->parent] : SIZE_MAX,
                                        .depth = depth,
                                        .number = from->number,
                                        .calls = from->sums.calls,
                                        .time_s = from->sums.self_ns * 1e-9,
                                        .self_time_s = from->sums.self_ns * 1e-9,
                                        .flags = from->sums.flags,
                                        .merged_with = SIZE_MAX,
                                        .macs = NAN,
                                        .flops = NAN,
                                        .read_bytes = NAN,
                                        .written_bytes = NAN};
}

/* The walk, without recursion: trees may be deep. */
static void order_rows(struct builder *b)
{
    uint32_t at = b->child[0];
    unsigned depth = 0;
    while (at) {
        set_row(b, at, depth);
        if (b->child[at]) {
            at = b->child[at];
            depth++;
            continue;
        }
        while (at && !b->next[at]) {
            at = b->v->nodes[at].parent;
            depth -= depth > 0;
        }
        at = at ? b->next[at] : 0;
    }
}

/* What the time without a reading may have used, if it used what the rest did. */
static double missing_j(const struct builder *b, uint32_t node, size_t p)
{
    const struct nrg_row_part *part = &b->v->parts[node * b->e->n_parts + p];
    double known_ns = part->covered_ns + part->moved_ns, self = self_j(b, node, p);
    double missing_ns = b->v->nodes[node].sums.self_ns - known_ns;
    bool some = known_ns > 0 && missing_ns > UNCOVERED_NS && self > 0;
    return some ? self * missing_ns / known_ns : 0;
}

static void sum_inside(struct builder *b)
{
    struct nrg_attribution *out = b->e->out;
    size_t n_parts = b->e->n_parts;
    for (size_t r = 0; r < out->n_rows; r++)
        for (size_t p = 0; p < n_parts; p++) {
            b->inside_j[r * n_parts + p] = self_j(b, b->node_of[r], p);
            b->missing_j[r * n_parts + p] = missing_j(b, b->node_of[r], p);
        }
    for (size_t r = out->n_rows; r-- > 0;) {
        struct nrg_attribution_row *row = &out->rows[r];
        if (row->parent == SIZE_MAX)
            continue;
        out->rows[row->parent].time_s += row->time_s;
        for (size_t p = 0; p < n_parts; p++) {
            double *above = &b->inside_j[row->parent * n_parts + p];
            *above = sum_known(*above, b->inside_j[r * n_parts + p]);
            b->missing_j[row->parent * n_parts + p] += b->missing_j[r * n_parts + p];
        }
    }
}

/* Of names: a row's time and energy are those of all places inside a span of that name. */
static void sum_flat(struct builder *b)
{
    struct nrg_attribution *out = b->e->out;
    size_t n_parts = b->e->n_parts;
    for (size_t r = 0; r < out->n_rows; r++) {
        uint32_t node = b->node_of[r];
        out->rows[r].time_s = b->v->inside_ns[node] * 1e-9;
        for (size_t p = 0; p < n_parts; p++) {
            b->inside_j[r * n_parts + p] = b->v->inside_j[node * n_parts + p];
            b->missing_j[r * n_parts + p] = missing_j(b, node, p);
        }
    }
}

struct interval {
    double energy_j, low_j, high_j;
};

/* Adds a part's energy with its error; calibration is on top of what the walk found. */
static void add_interval(const struct nrg_engine *e, size_t p, double energy_j,
                         const struct nrg_row_error *error, double idle_off_j, double missing_j,
                         struct interval *sum)
{
    const struct nrg_part *part = &e->parts[p];
    if (isnan(energy_j))
        return;
    double random = e->z * sqrt(error->variance_j2) + idle_off_j;
    double low = energy_j - error->below_j - random;
    double high = energy_j + error->above_j + random + missing_j;
    if (energy_j >= 0)
        low = fmax(0, low) * part->factor_low;
    if (high > 0) /* no row has more than there is */
        high = fmin(high, fmax(energy_j, part->out->total_j)) * part->factor_high;
    *sum = (struct interval){sum_known(sum->energy_j, energy_j), sum_known(sum->low_j, low),
                             sum_known(sum->high_j, high)};
}

static double idle_off_j(const struct nrg_engine *e, size_t p, double work_s)
{
    bool apart = e->options->idle == NRG_IDLE_APART;
    return apart ? e->z * e->parts[p].idle_error_w * work_s : 0;
}

static void set_energy(struct builder *b, size_t r)
{
    struct nrg_engine *e = b->e;
    struct nrg_attribution_row *row = &e->out->rows[r];
    const struct nrg_row_part *parts = &b->v->parts[b->node_of[r] * e->n_parts];
    struct interval self = {NAN, NAN, NAN}, all = {NAN, NAN, NAN};
    double work_s = b->v->nodes[b->node_of[r]].sums.work_s;
    double *domain_j = &b->inside_j[r * e->n_parts];
    for (size_t p = 0; p < e->n_parts; p++) {
        double part_s = row->self_time_s > 0 ? row->time_s / row->self_time_s : 1;
        add_interval(e, p, self_j(b, b->node_of[r], p), &parts[p].self, idle_off_j(e, p, work_s),
                     missing_j(b, b->node_of[r], p), &self);
        add_interval(e, p, domain_j[p], &parts[p].whole, idle_off_j(e, p, work_s * part_s),
                     b->missing_j[r * e->n_parts + p], &all);
    }
    row->energy_self_j = self.energy_j;
    row->self_low_j = self.low_j;
    row->self_high_j = self.high_j;
    row->energy_j = all.energy_j;
    row->low_j = all.low_j;
    row->high_j = all.high_j;
    for (size_t p = 0; p < e->n_parts; p++)
        if (isnan(domain_j[p]) && !isnan(row->energy_j))
            domain_j[p] = 0; /* its tracks do not use that domain */
    row->domain_j = domain_j;
    if (row->high_j - row->low_j > row->energy_j)
        row->flags |= NRG_ROW_UNRESOLVED;
}

static void set_sensor(struct builder *b, size_t r)
{
    struct nrg_engine *e = b->e;
    struct nrg_attribution_row *row = &e->out->rows[r];
    const struct nrg_row_sums *sums = &b->v->nodes[b->node_of[r]].sums;
    const struct nrg_row_part *parts = &b->v->parts[b->node_of[r] * e->n_parts];
    double most = -1, covered_ns = 0;
    row->updates_per_call = NAN;
    row->method = e->out->method;
    for (size_t p = 0; p < e->n_parts; p++) {
        double j = row->domain_j[p], known = parts[p].covered_ns + parts[p].moved_ns;
        covered_ns = fmax(covered_ns, known);
        if ((known > 0 && known < sums->self_ns - UNCOVERED_NS) || parts[p].unknown)
            row->flags |= NRG_ROW_UNCOVERED;
        if (e->parts[p].channel->channel.provenance == NRG_ESTIMATED && j > 0)
            row->flags |= NRG_ROW_ESTIMATED;
        if (!(j > most) || !sums->stretches)
            continue;
        most = j;
        row->updates_per_call =
            sums->self_ns / (double)sums->stretches / (double)e->parts[p].width_ns;
    }
    if (e->n_parts && covered_ns < sums->self_ns - UNCOVERED_NS)
        row->flags |= NRG_ROW_UNCOVERED;
}

/* What no row has. For a regression or single readings that is simply the rest. */
static void set_rest(struct builder *b)
{
    struct nrg_engine *e = b->e;
    for (size_t p = 0; p < e->n_parts; p++) {
        struct nrg_attribution_domain *out = e->parts[p].out;
        double rows_j = 0;
        for (size_t r = 0; r < e->out->n_rows; r++) {
            double j = self_j(b, b->node_of[r], p);
            rows_j += isnan(j) ? 0 : j;
        }
        if (nrg_method_reads(e->parts[p].method))
            out->idle_j = out->other_processes_j = 0;
        /* For integrate this adds the rounding of millions of sums, nothing else. */
        out->unattributed_j = out->total_j - rows_j - out->idle_j - out->other_processes_j;
    }
}

static int allocate(struct builder *b)
{
    size_t n = b->v->n + 1, n_rows = 0;
    b->child = calloc(n, sizeof *b->child);
    b->next = calloc(n, sizeof *b->next);
    b->used = calloc(n, 1);
    b->row_of = calloc(n, sizeof *b->row_of);
    b->node_of = calloc(n, sizeof *b->node_of);
    if (!b->child || !b->next || !b->used || !b->row_of || !b->node_of)
        return -ENOMEM;
    link_children(b);
    for (size_t i = 1; i < b->v->n; i++)
        n_rows += b->used[i];
    b->e->out->rows = nrg_arena_array(b->arena, n_rows + 1, sizeof *b->e->out->rows);
    b->inside_j = nrg_arena_array(b->arena, n_rows * b->e->n_parts + 1, sizeof *b->inside_j);
    b->missing_j = nrg_arena_array(b->arena, n_rows * b->e->n_parts + 1, sizeof *b->missing_j);
    return b->e->out->rows && b->inside_j && b->missing_j ? 0 : -ENOMEM;
}

int nrg_rows_make(struct nrg_engine *e, const struct nrg_view *v)
{
    struct nrg_rows_memory *memory = e->out->memory;
    struct builder b = {.e = e, .v = v, .arena = &memory->arena};
    int rc = allocate(&b);
    if (!rc) {
        order_rows(&b);
        if (v->inside_j)
            sum_flat(&b);
        else
            sum_inside(&b);
        for (size_t r = 0; r < e->out->n_rows; r++) {
            uint32_t carrier = v->nodes[b.node_of[r]].sums.merged_with;
            e->out->rows[r].merged_with = carrier ? b.row_of[carrier] : SIZE_MAX;
            set_energy(&b, r);
            set_sensor(&b, r);
        }
        set_rest(&b);
        rc = nrg_rows_counts(e, v, b.row_of, b.arena);
    }
    free(b.child);
    free(b.next);
    free(b.used);
    free(b.row_of);
    free(b.node_of);
    return rc;
}
