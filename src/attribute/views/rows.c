/*
 * Rows of the result from the view: sums over what is inside, intervals, flags, in the order of a
 * walk through the tree. Places in which nothing happened have no row. What the rows do not have
 * is the domains' unattributed energy.
 */
#include <errno.h>
#include <math.h>

#include "attribute/buckets.h"
#include "attribute/internal.h"

/* What may be wrong with a row's energy besides what the walk found at edges. */
struct doubt {
    double missing_j; /* of the time without a reading: at most, not counted */
    double others_j;  /* of others beside it, whose watts are not known well */
};

struct builder {
    const struct nrg_engine *e;
    struct nrg_view_rows *out;
    struct nrg_view *v;
    struct nrg_arena *arena;  /* of the result */
    struct nrg_arena scratch; /* of what follows */
    uint32_t *child, *next;   /* of nodes that have a row; 0: none */
    uint8_t *used;
    size_t *row_of;
    uint32_t *node_of;    /* per row */
    double *inside_j;     /* [row * n_parts + part], inclusive; NAN: nothing is known */
    double *work_s;       /* per row: of all that is inside */
    struct doubt *doubts; /* as inside_j */
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

struct nrg_attribution_row nrg_row_unknown(const char *name, const char *kind, const char *detail)
{
    return (struct nrg_attribution_row){.name = name,
                                        .kind = kind,
                                        .detail = detail,
                                        .root = "",
                                        .parent = SIZE_MAX,
                                        .number = NRG_MISSING,
                                        .energy_j = NAN,
                                        .energy_self_j = NAN,
                                        .low_j = NAN,
                                        .high_j = NAN,
                                        .self_low_j = NAN,
                                        .self_high_j = NAN,
                                        .scaled_low_j = NAN,
                                        .scaled_high_j = NAN,
                                        .self_scaled_low_j = NAN,
                                        .self_scaled_high_j = NAN,
                                        .merged_with = SIZE_MAX,
                                        .updates_per_call = NAN,
                                        .macs = NAN,
                                        .flops = NAN,
                                        .read_bytes = NAN,
                                        .written_bytes = NAN};
}

static void set_row(struct builder *b, uint32_t node, unsigned depth)
{
    const struct nrg_view_node *from = &b->v->nodes[node];
    size_t at = b->out->n++;
    struct nrg_attribution_row *row = &b->out->rows[at];
    b->row_of[node] = at;
    b->node_of[at] = node;
    *row = nrg_row_unknown(from->name, from->kind, from->detail);
    row->root = from->root ? from->root : "";
    row->parent = from->parent ? b->row_of[from->parent] : SIZE_MAX;
    row->depth = depth;
    row->number = from->number;
    row->calls = from->sums.calls;
    row->time_s = row->self_time_s = from->sums.self_ns * 1e-9;
    row->flags = from->sums.flags;
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
    bool some = known_ns > 0 && missing_ns > NRG_UNCOVERED_NS && self > 0;
    return some ? self * missing_ns / known_ns : 0;
}

static struct doubt self_doubt(const struct builder *b, uint32_t node, size_t p)
{
    const struct nrg_row_part *part = &b->v->parts[node * b->e->n_parts + p];
    return (struct doubt){missing_j(b, node, p), part->others_j};
}

/* The same, but in a flat view of all places inside. */
static struct doubt inside_doubt(const struct builder *b, uint32_t node, size_t p)
{
    const struct nrg_view *v = b->v;
    struct doubt doubt = self_doubt(b, node, p);
    if (v->inside_others_j)
        doubt.others_j = v->inside_others_j[node * b->e->n_parts + p];
    return doubt;
}

/* A row's own energy, or in a flat view that of all places inside a span of its name. */
static void start_sums(struct builder *b)
{
    struct nrg_view_rows *out = b->out;
    const struct nrg_view *v = b->v;
    size_t n_parts = b->e->n_parts;
    for (size_t r = 0; r < out->n; r++) {
        uint32_t node = b->node_of[r];
        b->work_s[r] = v->inside_work_s ? v->inside_work_s[node] : v->nodes[node].sums.work_s;
        if (v->inside_ns)
            out->rows[r].time_s = v->inside_ns[node] * 1e-9;
        for (size_t p = 0; p < n_parts; p++) {
            double self = self_j(b, node, p);
            b->inside_j[r * n_parts + p] = v->inside_j ? v->inside_j[node * n_parts + p] : self;
            b->doubts[r * n_parts + p] = inside_doubt(b, node, p);
            out->part_j[p] = nrg_sum_known(out->part_j[p], self);
        }
    }
}

/* Adds each row to the one above; the rows of a flat view have none. */
static void sum_inside(struct builder *b)
{
    struct nrg_view_rows *out = b->out;
    size_t n_parts = b->e->n_parts;
    for (size_t r = out->n; r-- > 0;) {
        struct nrg_attribution_row *row = &out->rows[r];
        if (row->parent == SIZE_MAX)
            continue;
        out->rows[row->parent].time_s += row->time_s;
        b->work_s[row->parent] += b->work_s[r];
        for (size_t p = 0; p < n_parts; p++) {
            double *above = &b->inside_j[row->parent * n_parts + p];
            *above = nrg_sum_known(*above, b->inside_j[r * n_parts + p]);
            struct doubt *doubt = &b->doubts[row->parent * n_parts + p];
            const struct doubt *inner = &b->doubts[r * n_parts + p];
            doubt->missing_j += inner->missing_j;
            doubt->others_j += inner->others_j;
        }
    }
}

struct interval {
    double energy_j, low_j, high_j;
    double scaled_low_j, scaled_high_j; /* with the scale of what is estimated */
    double width_j;                     /* of what the sharing leaves open, calibration aside */
    double random_j;                    /* the part of it that adds up as squares over time */
};

/*
 * What idle power was measured to be is off by chance, as edges are. Where others' watts are in it,
 * it is wrong with them, in all rows alike. Where rests say by how much it is off (drift_j), whose
 * error that is does not matter any more, and what others' watts are off by is another thing.
 */
static double not_known_j(const struct nrg_engine *e, const struct nrg_part *part, double scatter_j,
                          double idle_s, double drift_j, double others_j)
{
    double off_j = e->z * part->idle_error_w * idle_s;
    if (e->options->idle != NRG_IDLE_APART)
        return scatter_j + others_j;
    if (part->idle_in_rests)
        return hypot(hypot(scatter_j, drift_j), others_j);
    double random_j = part->baseline_busy > 0 ? scatter_j + off_j : hypot(scatter_j, off_j);
    return random_j + drift_j + others_j;
}

/* Where a sensor looked away, any span may have been open. A regression knows which. */
static double missed_j(const struct nrg_part *part, double watts, double time_s)
{
    return part->method == NRG_METHOD_INTEGRATE ? watts * time_s : 0;
}

/* Adds a part's energy with its error, with idle power over idle_s; calibration is on top of what
 * the walk found. */
static void add_interval(const struct nrg_engine *e, size_t p, double energy_j,
                         const struct nrg_row_error *error, double idle_s, struct doubt doubt,
                         struct interval *sum)
{
    const struct nrg_part *part = &e->parts[p];
    if (isnan(energy_j))
        return;
    double scatter = e->z * sqrt(error->variance_j2), others = doubt.others_j;
    sum->random_j = nrg_sum_known(sum->random_j, scatter);
    double others_low = fmax(others * part->others_more, -others * part->others_less);
    double others_high = fmax(others * part->others_less, -others * part->others_more);
    double low = energy_j - error->below_j - part->idle_most_w * idle_s -
                 missed_j(part, part->domain->missed_below_w, idle_s) -
                 not_known_j(e, part, scatter, idle_s, part->idle_more_w * idle_s, others_low);
    double high = energy_j + error->above_j + doubt.missing_j +
                  missed_j(part, part->domain->missed_above_w, idle_s) +
                  not_known_j(e, part, scatter, idle_s, part->idle_less_w * idle_s, others_high);
    if (energy_j >= 0)
        low = fmax(0, low);
    if (high > 0) /* no row has more than there can be */
        high = fmin(high, fmax(energy_j, fmax(part->out->total_j, part->domain->high_j)));
    sum->energy_j = nrg_sum_known(sum->energy_j, energy_j);
    double scaled_low = energy_j >= 0 ? low * part->factor_low : low;
    double scaled_high = high > 0 ? high * part->factor_high : high;
    bool apart = !isnan(part->out->scale.low); /* it is said once, for all rows */
    sum->width_j = nrg_sum_known(sum->width_j, high - low);
    sum->low_j = nrg_sum_known(sum->low_j, apart ? low : scaled_low);
    sum->high_j = nrg_sum_known(sum->high_j, apart ? high : scaled_high);
    sum->scaled_low_j = nrg_sum_known(sum->scaled_low_j, scaled_low);
    sum->scaled_high_j = nrg_sum_known(sum->scaled_high_j, scaled_high);
}

/* A row around some of a group, whose number stands elsewhere, has nothing of it that is known, but
 * may have all. */
static double around_group_j(const struct nrg_engine *e, size_t p, double energy_j,
                             const struct nrg_row_error *whole)
{
    bool around = e->parts[p].method == NRG_METHOD_REGRESS && whole->above_j > 0;
    return isnan(energy_j) && around ? 0 : energy_j;
}

static void set_energy(struct builder *b, size_t r)
{
    const struct nrg_engine *e = b->e;
    struct nrg_attribution_row *row = &b->out->rows[r];
    const struct nrg_row_part *parts = &b->v->parts[b->node_of[r] * e->n_parts];
    struct interval self = {NAN, NAN, NAN, NAN, NAN, NAN, NAN}, all = self;
    double work_s = b->v->nodes[b->node_of[r]].sums.work_s;
    double *domain_j = &b->inside_j[r * e->n_parts];
    for (size_t p = 0; p < e->n_parts; p++) {
        add_interval(e, p, self_j(b, b->node_of[r], p), &parts[p].self, work_s,
                     self_doubt(b, b->node_of[r], p), &self);
        double inside_j = around_group_j(e, p, domain_j[p], &parts[p].whole);
        add_interval(e, p, inside_j, &parts[p].whole, b->work_s[r], b->doubts[r * e->n_parts + p],
                     &all);
    }
    row->energy_self_j = self.energy_j;
    row->self_low_j = self.low_j;
    row->self_high_j = self.high_j;
    row->self_scaled_low_j = self.scaled_low_j;
    row->self_scaled_high_j = self.scaled_high_j;
    row->self_random_j = self.random_j;
    row->random_j = all.random_j;
    row->energy_j = all.energy_j;
    row->low_j = all.low_j;
    row->high_j = all.high_j;
    row->scaled_low_j = all.scaled_low_j;
    row->scaled_high_j = all.scaled_high_j;
    for (size_t p = 0; p < e->n_parts; p++)
        if (isnan(domain_j[p]) && !isnan(row->energy_j))
            domain_j[p] = 0; /* its tracks do not use that domain */
    row->domain_j = domain_j;
    /* What a source does not know of itself widens all rows, but hides none behind another. */
    if (all.width_j > row->energy_j)
        row->flags |= NRG_ROW_UNRESOLVED;
}

static void set_sensor(struct builder *b, size_t r)
{
    const struct nrg_engine *e = b->e;
    struct nrg_attribution_row *row = &b->out->rows[r];
    const struct nrg_row_sums *sums = &b->v->nodes[b->node_of[r]].sums;
    const struct nrg_row_part *parts = &b->v->parts[b->node_of[r] * e->n_parts];
    double most = -1, covered_ns = 0;
    row->method = e->out->method;
    for (size_t p = 0; p < e->n_parts; p++) {
        double j = row->domain_j[p], known = parts[p].covered_ns + parts[p].moved_ns;
        covered_ns = fmax(covered_ns, known);
        if ((known > 0 && known < sums->self_ns - NRG_UNCOVERED_NS) || parts[p].unknown)
            row->flags |= NRG_ROW_UNCOVERED;
        enum nrg_provenance provenance = e->parts[p].channel->channel.provenance;
        if (provenance > row->provenance && j > 0)
            row->provenance = provenance;
        if (!(j > most) || !sums->stretches)
            continue;
        most = j;
        row->updates_per_call =
            sums->self_ns / (double)sums->stretches / (double)e->parts[p].width_ns;
    }
    if (e->n_parts && covered_ns < sums->self_ns - NRG_UNCOVERED_NS)
        row->flags |= NRG_ROW_UNCOVERED;
}

static void set_remedy(struct builder *b, size_t r)
{
    struct nrg_attribution_row *row = &b->out->rows[r];
    const struct nrg_row_part *parts = &b->v->parts[b->node_of[r] * b->e->n_parts];
    if (row->flags & NRG_ROW_UNRESOLVED)
        row->remedy = nrg_row_remedy(b->e, row, parts, b->work_s[r], !b->child[b->node_of[r]]);
}

static int allocate_rows(struct builder *b)
{
    size_t n = b->v->n + 1, n_rows = 0;
    b->child = nrg_arena_array(&b->scratch, n, sizeof *b->child);
    b->next = nrg_arena_array(&b->scratch, n, sizeof *b->next);
    b->used = nrg_arena_array(&b->scratch, n, 1);
    b->row_of = nrg_arena_array(&b->scratch, n, sizeof *b->row_of);
    b->node_of = nrg_arena_array(&b->scratch, n, sizeof *b->node_of);
    if (b->scratch.failed)
        return -ENOMEM;
    link_children(b);
    for (size_t i = 1; i < b->v->n; i++)
        n_rows += b->used[i];
    b->out->rows = nrg_arena_array(b->arena, n_rows + 1, sizeof *b->out->rows);
    b->out->part_j = nrg_arena_array(b->arena, b->e->n_parts + 1, sizeof *b->out->part_j);
    b->inside_j = nrg_arena_array(b->arena, n_rows * b->e->n_parts + 1, sizeof *b->inside_j);
    b->work_s = nrg_arena_array(&b->scratch, n_rows + 1, sizeof *b->work_s);
    b->doubts = nrg_arena_array(&b->scratch, n_rows * b->e->n_parts + 1, sizeof *b->doubts);
    return b->arena->failed || b->scratch.failed ? -ENOMEM : 0;
}

static int fill_rows(struct builder *b)
{
    nrg_regress_scatter(b->e, b->v);
    order_rows(b);
    start_sums(b);
    sum_inside(b);
    for (size_t r = 0; r < b->out->n; r++) {
        uint32_t carrier = b->v->nodes[b->node_of[r]].sums.merged_with;
        b->out->rows[r].merged_with = carrier ? b->row_of[carrier] : SIZE_MAX;
        set_energy(b, r);
        set_sensor(b, r);
        set_remedy(b, r);
    }
    return nrg_rows_counts(b->e, b->v, b->out->rows, b->row_of, b->arena);
}

int nrg_view_rows(struct nrg_view_rows *rows, const struct nrg_engine *e, enum nrg_rows_by by,
                  struct nrg_arena *arena)
{
    struct nrg_view view;
    struct builder b = {.e = e, .out = rows, .v = &view, .arena = arena};
    *rows = (struct nrg_view_rows){0};
    int rc = nrg_view_make(&view, e, by, arena);
    if (!rc)
        rc = allocate_rows(&b);
    if (!rc)
        rc = fill_rows(&b);
    if (!rc && e->buckets)
        rc = nrg_buckets_of_rows(e, &view, b.row_of, rows, arena);
    nrg_view_release(&view);
    nrg_arena_release(&b.scratch);
    return rc;
}
