/* See buckets.h. Arrays are dense: how many buckets there may be follows from the number of places.
 */
#include "attribute/buckets.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "energy/edges.h"

#define MOST_SUMS      ((size_t)2 << 20) /* of places, domains and buckets */
#define LEAST_WIDTH_NS NRG_NS_PER_MS
#define BEYOND         0.5 /* as energy/domains.c has it */

static int64_t to_ns(double s)
{
    return (int64_t)llround(s * 1e9);
}

/* 1, 2 or 5 times a power of ten, so that edges are short numbers. */
static int64_t round_width_ns(int64_t least_ns)
{
    static const int64_t steps[] = {1, 2, 5};
    for (int64_t unit_ns = LEAST_WIDTH_NS; unit_ns < INT64_MAX / 50; unit_ns *= 10)
        for (size_t i = 0; i < 3; i++)
            if (unit_ns * steps[i] >= least_ns)
                return unit_ns * steps[i];
    return least_ns;
}

static int set_range(struct nrg_engine *e, struct nrg_buckets *b, int64_t begin_ns, int64_t end_ns)
{
    const struct nrg_attribution_options *o = e->options;
    double last_s = (double)(end_ns - begin_ns) * 1e-9;
    if (!(o->from_s < last_s))
        return nrg_fail(e->err, -ERANGE, nrg_recording_path(e->recording),
                        "lasts %.9g s: nothing of it comes after %.9g s", last_s, o->from_s);
    b->n = 1;
    b->edges_ns = nrg_arena_array(&b->memory, 2, sizeof *b->edges_ns);
    if (!b->edges_ns)
        return -ENOMEM;
    b->edges_ns[0] = begin_ns + to_ns(o->from_s);
    b->edges_ns[1] = o->to_s < last_s ? begin_ns + to_ns(o->to_s) : end_ns;
    e->out->from_s = (double)(b->edges_ns[0] - begin_ns) * 1e-9;
    e->out->to_s = (double)(b->edges_ns[1] - begin_ns) * 1e-9;
    return 0;
}

static int set_edges(struct nrg_engine *e, struct nrg_buckets *b)
{
    int64_t begin_ns = e->windows[0].begin_ns, end_ns = e->windows[e->n_windows - 1].end_ns;
    if (e->options->has_range)
        return set_range(e, b, begin_ns, end_ns);
    size_t most = MOST_SUMS / ((e->walk.rows->n + 1) * (e->n_parts + 1));
    most = most > e->options->buckets ? e->options->buckets : most ? most : 1;
    int64_t width_ns = round_width_ns((end_ns - begin_ns) / (int64_t)most + 1);
    b->n = (size_t)((end_ns - begin_ns + width_ns - 1) / width_ns);
    b->edges_ns = nrg_arena_array(&b->memory, b->n + 1, sizeof *b->edges_ns);
    for (size_t i = 0; b->edges_ns && i <= b->n; i++)
        b->edges_ns[i] = i < b->n ? begin_ns + (int64_t)i * width_ns : end_ns;
    return b->edges_ns ? 0 : -ENOMEM;
}

/* An estimate's own channel of its least or most energy; a domain has it in each bucket. */
static bool set_band(struct nrg_engine *e, size_t p, const char *suffix, size_t offset)
{
    struct nrg_buckets *b = e->buckets;
    char name[64];
    snprintf(name, sizeof name, "%.48s%s", e->parts[p].channel->channel.name, suffix);
    size_t channel = nrg_frame_find(&e->frame, name, NRG_ENERGY);
    const struct nrg_timeline *tl =
        channel < e->frame.n ? nrg_frame_timeline(&e->frame, channel) : NULL;
    for (size_t i = 0; i < b->n; i++) {
        double j = tl ? nrg_timeline_between(tl, b->edges_ns[i], b->edges_ns[i + 1], NULL) : NAN;
        *(double *)((char *)&b->domain[p * b->n + i] + offset) = j;
    }
    if (tl)
        nrg_frame_drop(&e->frame, channel);
    return tl;
}

int nrg_buckets_make(struct nrg_engine *e)
{
    if (!e->options->has_range && !e->options->buckets)
        return 0;
    struct nrg_buckets *b = e->buckets = nrg_calloc(1, sizeof *b);
    if (!b)
        return -ENOMEM;
    b->n_parts = e->n_parts;
    int rc = set_edges(e, b);
    if (rc)
        return rc;
    size_t places = e->walk.rows->n + 1;
    b->place_j = nrg_arena_array(&b->memory, places * e->n_parts * b->n + 1, sizeof *b->place_j);
    b->place_s = nrg_arena_array(&b->memory, places * b->n, sizeof *b->place_s);
    b->place_calls = nrg_arena_array(&b->memory, places * b->n, sizeof *b->place_calls);
    b->domain = nrg_arena_array(&b->memory, e->n_parts * b->n + 1, sizeof *b->domain);
    if (b->memory.failed)
        return -ENOMEM;
    for (size_t p = 0; p < e->n_parts; p++)
        if (!set_band(e, p, ".low", offsetof(struct nrg_time_bucket, low_j)) ||
            !set_band(e, p, ".high", offsetof(struct nrg_time_bucket, high_j)))
            for (size_t i = 0; i < b->n; i++)
                b->domain[p * b->n + i].low_j = b->domain[p * b->n + i].high_j = NAN;
    return 0;
}

void nrg_buckets_free(struct nrg_buckets *b)
{
    if (b)
        nrg_arena_release(&b->memory);
    free(b);
}

/* The bucket that holds t_ns; n: after the last, and 0 also before the first. */
static size_t find_bucket(const struct nrg_buckets *b, int64_t t_ns)
{
    size_t low = 0, high = b->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (b->edges_ns[middle + 1] <= t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void nrg_buckets_spread(struct nrg_buckets *b, uint32_t place, size_t part, struct nrg_span_ns when,
                        double energy_j)
{
    double *sums = &b->place_j[((size_t)place * b->n_parts + part) * b->n];
    int64_t length_ns = when.end_ns - when.begin_ns;
    size_t i = find_bucket(b, when.begin_ns);
    if (length_ns <= 0) { /* an instant */
        if (i < b->n && when.begin_ns >= b->edges_ns[0])
            sums[i] += energy_j;
        return;
    }
    for (; i < b->n && b->edges_ns[i] < when.end_ns; i++) {
        int64_t from = b->edges_ns[i] > when.begin_ns ? b->edges_ns[i] : when.begin_ns;
        int64_t to = b->edges_ns[i + 1] < when.end_ns ? b->edges_ns[i + 1] : when.end_ns;
        if (to > from)
            sums[i] += energy_j * ((double)(to - from) / (double)length_ns);
    }
}

void nrg_buckets_domain(struct nrg_engine *e, size_t edge, size_t part, double energy_j,
                        double idle_j, double other_j, double covered_s)
{
    struct nrg_buckets *b = e->buckets;
    bool reads = nrg_method_reads(e->parts[part].method);
    if (!nrg_buckets_holds(b, edge))
        return;
    struct nrg_time_bucket *to = &b->domain[part * b->n + edge - 1];
    to->total_j += energy_j;
    to->idle_j += !reads && e->options->idle == NRG_IDLE_APART ? idle_j : 0;
    to->other_processes_j += reads ? 0 : other_j;
    to->covered_s += covered_s;
}

void nrg_buckets_others(struct nrg_engine *e, size_t part, double other_j, double covered_s)
{
    struct nrg_buckets *b = e->buckets;
    double known_j = e->parts[part].others_j;
    if (isnan(known_j) || nrg_method_reads(e->parts[part].method))
        return;
    for (size_t i = 0; i < b->n; i++) {
        struct nrg_time_bucket *to = &b->domain[part * b->n + i];
        double share = other_j > 0     ? to->other_processes_j / other_j
                       : covered_s > 0 ? to->covered_s / covered_s
                                       : 0;
        to->other_processes_j = known_j * share;
    }
}

void nrg_buckets_scale(struct nrg_buckets *b, uint32_t place, size_t part, double factor)
{
    double *sums = &b->place_j[((size_t)place * b->n_parts + part) * b->n];
    for (size_t i = 0; i < b->n; i++)
        sums[i] *= factor;
}

/* Where a regression can't tell rows apart, the first of them has the energy of all. */
static void move_merged(struct nrg_engine *e, size_t place)
{
    struct nrg_buckets *b = e->buckets;
    size_t to = e->rows[place].merged_with;
    for (size_t p = 0; to && p < e->n_parts; p++) {
        double *from_j = &b->place_j[(place * e->n_parts + p) * b->n];
        double *to_j = &b->place_j[(to * e->n_parts + p) * b->n];
        if (!(e->row_parts[place * e->n_parts + p].moved_ns > 0))
            continue;
        for (size_t i = 0; i < b->n; i++) {
            to_j[i] += from_j[i];
            from_j[i] = 0;
        }
    }
}

void nrg_buckets_finish(struct nrg_engine *e)
{
    nrg_cputime_buckets(e);
    for (size_t i = 1; i < e->walk.rows->n; i++)
        move_merged(e, i);
}

/* A range has edges of its own. Buckets are added up by whoever looks at them, so they have none.
 */
static double range_edges_j(const struct nrg_engine *e, const struct nrg_domain *d,
                            const struct nrg_timeline *tl)
{
    const int64_t *edges_ns = e->buckets->edges_ns;
    if (!e->options->has_range || d->channel->channel.provenance == NRG_ESTIMATED)
        return 0;
    struct nrg_edge_doubt doubt =
        nrg_timeline_edges(tl, edges_ns[0], edges_ns[1], fmax(d->peak_w, d->mean_w));
    return fmax(doubt.below_j, doubt.above_j);
}

/* What is common to the whole run is what its interval has beyond edges, noise and unread time. */
static struct nrg_range_error range_error(const struct nrg_engine *e, size_t p)
{
    const struct nrg_part *part = &e->parts[p];
    const struct nrg_domain *d = part->domain;
    const struct nrg_channel *c = &part->channel->channel;
    const struct nrg_timeline *tl = part->tl;
    const struct nrg_summary *s = &e->out->summary;
    double update_s = (double)tl->update_ns * 1e-9, covered_s = d->covered * s->duration_s;
    struct nrg_power_range range = nrg_timeline_gauge_range(tl, s->begin_ns, s->end_ns);
    struct nrg_range_error error = {.factor_low = 1, .factor_high = 1, .most_w = d->peak_w};
    if (tl->is_gauge) {
        error.most_w = range.high_w + BEYOND * (range.high_w - range.low_w);
        error.fixed_j = nrg_timeline_gauge_ends_j(tl, s->begin_ns, s->end_ns, c->window_ns);
        error.per_s_j = c->resolution / sqrt(12);
        error.noise_j2_per_s = covered_s > 0 ? tl->noise_j2 / covered_s : 0;
    } else if (c->provenance != NRG_ESTIMATED) {
        error.fixed_j = c->resolution;
        error.update_s = update_s;
    }
    error.most_w = fmax(0, fmax(error.most_w, fmax(d->mean_w, d->unread_w)));
    double off_j = error.fixed_j + fmax(0, d->mean_w) * error.update_s +
                   error.per_s_j * s->duration_s + sqrt(error.noise_j2_per_s * covered_s);
    double unread_j = (1 - d->covered) * s->duration_s * error.most_w;
    if (d->energy_j > 0) {
        double low_j = d->low_j + off_j + d->edges_below_j;
        double high_j = d->high_j - off_j - unread_j - d->edges_above_j;
        error.factor_low = fmin(1, fmax(0, low_j / d->energy_j));
        error.factor_high = fmax(1, high_j / d->energy_j);
    }
    error.fixed_j += range_edges_j(e, d, tl);
    return error;
}

struct adder {
    const struct nrg_engine *e;
    const struct nrg_buckets *b;
    const struct nrg_view *view;
    const size_t *row_of;
    double *row_j, *inside_j;
    double *row_s, *inside_s;
    uint32_t *row_calls;
    uint32_t *stamp; /* per node of a flat view */
};

static void add_place(const struct adder *a, size_t place, size_t row, double *to_j, double *to_s)
{
    size_t n = a->b->n, n_sums = a->b->n_parts * n;
    for (size_t i = 0; i < n_sums; i++)
        to_j[row * n_sums + i] += a->b->place_j[place * n_sums + i];
    for (size_t i = 0; i < n; i++)
        to_s[row * n + i] += a->b->place_s[place * n + i];
}

/* Of a flat view: a place is inside all names that stand above it, once in each. */
static void add_inside(const struct adder *a, size_t place)
{
    for (size_t up = place; up; up = a->e->walk.rows->nodes[up].parent) {
        uint32_t node = a->view->view_of[up];
        if (a->stamp[node] == place)
            continue;
        a->stamp[node] = (uint32_t)place;
        add_place(a, place, a->row_of[node], a->inside_j, a->inside_s);
    }
}

/* Where the spans of a walk find their rows. */
static uint32_t *map_places(const struct adder *a, struct nrg_arena *arena)
{
    size_t n = a->e->walk.rows->n;
    uint32_t *map = nrg_arena_array(arena, n + 1, sizeof *map);
    for (size_t i = 0; map && i <= n; i++) {
        bool used = i && i < n && (a->e->rows[i].calls || a->e->rows[i].stretches);
        map[i] = used ? (uint32_t)a->row_of[a->view->view_of[i]] : UINT32_MAX;
    }
    return map;
}

static void add_rows(const struct adder *a)
{
    size_t n = a->b->n;
    for (size_t place = 1; place < a->e->walk.rows->n; place++) {
        const struct nrg_row_sums *sums = &a->e->rows[place];
        if (!sums->calls && !sums->stretches)
            continue; /* nothing happened: it may have no row */
        size_t row = a->row_of[a->view->view_of[place]];
        add_place(a, place, row, a->row_j, a->row_s);
        for (size_t i = 0; i < n; i++)
            a->row_calls[row * n + i] += a->b->place_calls[place * n + i];
        if (a->inside_j)
            add_inside(a, place);
    }
}

static struct nrg_range_error *make_errors(const struct nrg_engine *e, struct nrg_arena *arena)
{
    struct nrg_range_error *errors = nrg_arena_array(arena, e->n_parts + 1, sizeof *errors);
    for (size_t p = 0; errors && p < e->n_parts; p++)
        errors[p] = range_error(e, p);
    return errors;
}

static int64_t *relative_edges(const struct nrg_engine *e, struct nrg_arena *arena)
{
    const struct nrg_buckets *b = e->buckets;
    int64_t *edges_ns = nrg_arena_array(arena, b->n + 1, sizeof *edges_ns);
    for (size_t i = 0; edges_ns && i <= b->n; i++)
        edges_ns[i] = b->edges_ns[i] - e->windows[0].begin_ns;
    return edges_ns;
}

int nrg_buckets_of_rows(const struct nrg_engine *e, const struct nrg_view *view,
                        const size_t *row_of, struct nrg_view_rows *rows, struct nrg_arena *arena)
{
    const struct nrg_buckets *b = e->buckets;
    size_t n_times = rows->n * b->n + 1, n_sums = rows->n * b->n_parts * b->n + 1;
    struct adder a = {.e = e, .b = b, .view = view, .row_of = row_of};
    struct nrg_arena scratch = {0};
    bool flat = view->inside_ns != NULL;
    struct nrg_attribution_buckets *out = nrg_arena_alloc(arena, sizeof *out);
    struct nrg_time_bucket *domain = nrg_arena_array(arena, b->n_parts * b->n + 1, sizeof *domain);
    a.row_j = nrg_arena_array(arena, n_sums, sizeof *a.row_j);
    a.row_s = nrg_arena_array(arena, n_times, sizeof *a.row_s);
    a.row_calls = nrg_arena_array(arena, n_times, sizeof *a.row_calls);
    a.inside_j = flat ? nrg_arena_array(arena, n_sums, sizeof *a.inside_j) : NULL;
    a.inside_s = flat ? nrg_arena_array(arena, n_times, sizeof *a.inside_s) : NULL;
    a.stamp = nrg_arena_array(&scratch, view->n + 1, sizeof *a.stamp);
    const struct nrg_range_error *errors = make_errors(e, arena);
    const int64_t *edges_ns = relative_edges(e, arena);
    const uint32_t *places = map_places(&a, arena);
    int rc = arena->failed || scratch.failed ? -ENOMEM : 0;
    if (!rc) {
        add_rows(&a);
        memcpy(domain, b->domain, b->n_parts * b->n * sizeof *domain);
        *out = (struct nrg_attribution_buckets){.n = b->n,
                                                .n_domains = b->n_parts,
                                                .edges_ns = edges_ns,
                                                .domain = domain,
                                                .errors = errors,
                                                .row_j = a.row_j,
                                                .row_s = a.row_s,
                                                .row_calls = a.row_calls,
                                                .row_of_place = places,
                                                .n_places = e->walk.rows->n,
                                                .inside_j = a.inside_j,
                                                .inside_s = a.inside_s};
        rows->buckets = out;
    }
    nrg_arena_release(&scratch);
    return rc;
}
