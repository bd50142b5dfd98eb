/*
 * Energy over time: what each row and each domain used between edges of time. The page adds buckets
 * up for a selection; `nrg attribute --from --to` is one bucket. Both use the rule of range.h for
 * the interval, so that they say the same.
 *
 * Every sum here is additive: two neighbouring buckets have together what one bucket over both has,
 * to rounding. So edges may lie anywhere. A cell of the engine that an edge cuts is left and
 * entered again there (flow.c). Where energy is known per reading only (nearest, window, cpu-time),
 * it is spread evenly over the time of that reading.
 *
 * The engine owns the buckets of places; those of rows are in the arena of the result. Functions
 * that can fail return 0 or a negative errno. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_BUCKETS_H
#define NRG_ATTRIBUTE_BUCKETS_H

#include "attribute/internal.h"
#include "attribute/time_buckets.h"

struct nrg_buckets {
    struct nrg_arena memory; /* of the arrays */
    size_t n, n_parts;
    int64_t *edges_ns; /* n + 1, on the recording's clock */
    double *place_j;   /* [(place * n_parts + part) * n + bucket] */
    double *place_s;   /* [place * n + bucket] */
    uint32_t *place_calls;
    struct nrg_time_bucket *domain; /* [part * n + bucket] */
};

/* Makes e->buckets where the options want them. Fills err where the range is not in the run. */
int nrg_buckets_make(struct nrg_engine *engine);
void nrg_buckets_free(struct nrg_buckets *buckets);

/* Edge of that number; INT64_MAX: there is none, or no buckets (NULL). */
static inline int64_t nrg_buckets_edge_ns(const struct nrg_buckets *b, size_t edge)
{
    return b && edge <= b->n ? b->edges_ns[edge] : INT64_MAX;
}

/* True when the next edge ends a bucket; false before the first and after the last. */
static inline bool nrg_buckets_holds(const struct nrg_buckets *b, size_t edge)
{
    return edge > 0 && edge <= b->n;
}

/* Adds to the bucket that ends with that edge. */
static inline void nrg_buckets_add(struct nrg_buckets *b, size_t edge, uint32_t place, size_t part,
                                   double energy_j)
{
    if (nrg_buckets_holds(b, edge))
        b->place_j[((size_t)place * b->n_parts + part) * b->n + edge - 1] += energy_j;
}

static inline void nrg_buckets_time(struct nrg_buckets *b, size_t edge, uint32_t place, double s)
{
    if (nrg_buckets_holds(b, edge))
        b->place_s[(size_t)place * b->n + edge - 1] += s;
}

static inline void nrg_buckets_call(struct nrg_buckets *b, size_t edge, uint32_t place)
{
    if (nrg_buckets_holds(b, edge))
        b->place_calls[(size_t)place * b->n + edge - 1]++;
}

/* Adds energy that was used evenly during `when`. */
void nrg_buckets_spread(struct nrg_buckets *buckets, uint32_t place, size_t part,
                        struct nrg_span_ns when, double energy_j);
/* What a domain used since the last cell or edge. */
void nrg_buckets_domain(struct nrg_engine *engine, size_t edge, size_t part, double energy_j,
                        double idle_j, double other_j, double covered_s);
/* The walk is over: a regression knows the others' energy of the whole run better. */
void nrg_buckets_others(struct nrg_engine *engine, size_t part, double other_j, double covered_s);
/* Of a place, as it becomes known after the walk that it has so many times what it was given. */
void nrg_buckets_scale(struct nrg_buckets *buckets, uint32_t place, size_t part, double factor);
/* What is known only after the walk: CPU times, and groups of rows that are one number. */
void nrg_buckets_finish(struct nrg_engine *engine);

/* The buckets of a view's rows. row_of: per node of the view. */
int nrg_buckets_of_rows(const struct nrg_engine *engine, const struct nrg_view *view,
                        const size_t *row_of, struct nrg_view_rows *rows, struct nrg_arena *arena);

#endif
