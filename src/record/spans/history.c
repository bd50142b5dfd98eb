/*
 * See spans/history.h. A history is a ring of moments that grows up to a limit; a time is found in
 * it by bisection, because moments of a thread are in order.
 */
#include "record/spans/history.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/queue.h"
#include "sensors/channel.h"

#define FIRST_MOMENTS 256
#define MOST_MOMENTS  65536
#define ALL_MOMENTS   (1u << 20)
#define MOST_THREADS  1024
#define MOST_PATHS    (1u << 20)

struct moment {
    int64_t t_ns, path; /* open from t_ns on */
};

struct nrg_span_history {
    int32_t pid, tid;
    int64_t start_ticks;
    bool ended;
    int64_t before; /* path before the first moment; NRG_MISSING: forgotten */
    struct moment *moments;
    size_t cap, first, n;
    int64_t open[NRG_LANE_MAX_DEPTH + 1]; /* path at each depth */
};

void nrg_span_histories_release(struct nrg_span_histories *h)
{
    for (size_t i = 0; i < h->n; i++) {
        free(h->items[i]->moments);
        free(h->items[i]);
    }
    free(h->items);
    nrg_map_release(&h->paths);
    *h = (struct nrg_span_histories){0};
}

/* The path of a name below another path, which the writer hears of at once. 0: no room. */
static int64_t path_below(struct nrg_span_histories *h, struct nrg_span_texts *texts,
                          int64_t parent, uint32_t number)
{
    const int64_t key[2] = {parent, nrg_span_texts_id(texts, number)};
    if (key[1] == NRG_MISSING || parent == NRG_MISSING)
        return parent;
    size_t before = h->paths.n;
    int64_t id = before < MOST_PATHS ? nrg_map_intern(&h->paths, (const char *)key, sizeof key) : 0;
    if (id <= 0)
        return parent;
    if (h->paths.n > before)
        nrg_queue_push(texts->queue, &(struct nrg_message){.kind = NRG_MSG_SPAN_PATH,
                                                           .span_path = {id, parent, key[1]}});
    return id;
}

/* A new history, or that of a thread that has ended. */
static struct nrg_span_history *make_history(struct nrg_span_histories *h)
{
    struct nrg_span_history *made;
    for (size_t i = 0; h->n >= MOST_THREADS && i < h->n; i++)
        if (h->items[i]->ended) {
            made = h->items[i];
            *made = (struct nrg_span_history){.moments = made->moments, .cap = made->cap};
            return made;
        }
    if (h->n >= MOST_THREADS || nrg_reserve(&h->items, &h->cap, h->n + 1, sizeof *h->items))
        return NULL;
    made = calloc(1, sizeof *made);
    if (made)
        h->items[h->n++] = made;
    return made;
}

void nrg_span_history_open(struct nrg_span_histories *h, struct nrg_span_lane *lane,
                           struct nrg_span_texts *texts)
{
    if (lane->history)
        return;
    struct nrg_span_history *made = make_history(h);
    if (!made)
        return;
    made->pid = lane->pid;
    made->tid = lane->tid;
    made->start_ticks = lane->start_ticks;
    for (unsigned i = 0; i < lane->depth; i++)
        made->open[i + 1] = path_below(h, texts, made->open[i], lane->names[i]);
    made->before = made->open[lane->depth];
    lane->history = made;
}

void nrg_span_history_leave(struct nrg_span_lane *lane)
{
    if (lane->history)
        lane->history->ended = true;
    lane->history = NULL;
}

/* Doubles the ring as long as there may be more; the oldest moment then comes first. */
static bool grow_moments(struct nrg_span_histories *h, struct nrg_span_history *of)
{
    size_t cap = of->cap ? of->cap * 2 : FIRST_MOMENTS;
    if (cap > MOST_MOMENTS || h->n_moments + cap - of->cap > ALL_MOMENTS)
        return false;
    struct moment *moments = malloc(cap * sizeof *moments);
    if (!moments)
        return false;
    for (size_t i = 0; i < of->n; i++)
        moments[i] = of->moments[(of->first + i) % of->cap];
    free(of->moments);
    h->n_moments += cap - of->cap;
    of->moments = moments;
    of->cap = cap;
    of->first = 0;
    return true;
}

static void add_moment(struct nrg_span_histories *h, struct nrg_span_history *of, int64_t t_ns,
                       int64_t path)
{
    if (of->n == of->cap && !grow_moments(h, of)) {
        of->before = NRG_MISSING;
        if (!of->cap)
            return;
        of->first = (of->first + 1) % of->cap;
        of->n--;
    }
    of->moments[(of->first + of->n++) % of->cap] = (struct moment){t_ns, path};
}

void nrg_span_history_add(struct nrg_span_histories *h, struct nrg_span_lane *lane,
                          struct nrg_span_texts *texts)
{
    struct nrg_span_history *of = lane->history;
    const struct nrg_lane_event *e = &lane->next;
    if (!of || lane->depth >= NRG_LANE_MAX_DEPTH + (e->op == NRG_RING_END))
        return;
    int64_t path;
    if (e->op == NRG_RING_BEGIN)
        path = of->open[lane->depth + 1] = path_below(h, texts, of->open[lane->depth], e->name);
    else
        path = of->open[lane->depth ? lane->depth - 1 : 0];
    add_moment(h, of, e->t_ns, path);
}

static bool is_of(const struct nrg_span_history *of, const struct nrg_span_lane *lane, int32_t tid)
{
    return of->tid == tid && of->pid == lane->pid && of->start_ticks == lane->start_ticks;
}

static const struct nrg_span_history *find_history(struct nrg_span_histories *h,
                                                   const struct nrg_span_lane *lane, int32_t tid)
{
    for (size_t n = 0; n < h->n; n++) {
        size_t i = (h->last + n) % h->n;
        if (is_of(h->items[i], lane, tid)) {
            h->last = i;
            return h->items[i];
        }
    }
    return NULL;
}

int64_t nrg_span_history_path(struct nrg_span_histories *h, const struct nrg_span_lane *lane,
                              int32_t tid, int64_t t_ns)
{
    const struct nrg_span_history *of = find_history(h, lane, tid);
    if (!of)
        return 0; /* it has never marked anything */
    size_t low = 0, high = of->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (of->moments[(of->first + middle) % of->cap].t_ns <= t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? of->moments[(of->first + low - 1) % of->cap].path : of->before;
}
