/*
 * Spans as lanes: begin, length, row, depth and track of each, by one walk. A page can't draw tens
 * of millions of boxes, and a browser can't hold them: beyond MOST_SPANS the shortest are left out,
 * by a limit of length that a first walk finds. The head says how many; their energy is in the
 * rows all the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/walk.h"
#include "base/json/set.h"
#include "base/mem.h"
#include "report/page/internal.h"

#define MOST_SPANS    ((size_t)1 << 20)
#define LEAST_TICK_NS 100

struct nrg_page_spans {
    struct nrg_span_catalog catalog;
    struct nrg_span_walk walk;
    const struct nrg_attribution_buckets *buckets;
    int64_t begin_ns, end_ns;
    uint64_t by_log2[64]; /* spans of 2^i ns up to twice that */
    bool count;           /* the first walk */
    int64_t least_ns;
    size_t n, cap[5];
    int64_t tick_ns; /* unit of both times */
    int64_t last;    /* end of the span before, in ticks */
    uint32_t *step;  /* from the end of the span before to this one's: small numbers pack well */
    uint32_t *length;
    uint32_t *row;
    uint8_t *depth;
    uint8_t *track;
};

static int keep(struct nrg_page_spans *s, const struct nrg_span_walk_event *ev, uint32_t row)
{
    size_t need = s->n + 1;
    int rc = nrg_reserve(&s->step, &s->cap[0], need, sizeof *s->step);
    if (!rc)
        rc = nrg_reserve(&s->length, &s->cap[1], need, sizeof *s->length);
    if (!rc)
        rc = nrg_reserve(&s->row, &s->cap[2], need, sizeof *s->row);
    if (!rc)
        rc = nrg_reserve(&s->depth, &s->cap[3], need, 1);
    if (!rc)
        rc = nrg_reserve(&s->track, &s->cap[4], need, 1);
    if (rc)
        return rc;
    int64_t from_ns = ev->span->begin_ns > s->begin_ns ? ev->span->begin_ns : s->begin_ns;
    int64_t to_ns = ev->t_ns < s->end_ns ? ev->t_ns : s->end_ns;
    int64_t begin = (from_ns - s->begin_ns) / s->tick_ns, end = (to_ns - s->begin_ns) / s->tick_ns;
    s->step[s->n] = (uint32_t)(end - s->last);
    s->length[s->n] = (uint32_t)(end - begin);
    s->last = end;
    s->row[s->n] = row;
    s->depth[s->n] = (uint8_t)(ev->depth < 255 ? ev->depth : 255);
    s->track[s->n++] = (uint8_t)(ev->track < 255 ? ev->track : 255);
    return 0;
}

static int on_event(void *arg, const struct nrg_span_walk_event *ev)
{
    struct nrg_page_spans *s = arg;
    if (ev->what != NRG_WALK_CLOSE || ev->t_ns < s->begin_ns || ev->span->begin_ns > s->end_ns)
        return 0;
    int64_t length_ns = ev->t_ns - ev->span->begin_ns;
    if (s->count) {
        s->by_log2[length_ns > 0 ? 63 - __builtin_clzll((unsigned long long)length_ns) : 0]++;
        return 0;
    }
    uint32_t row =
        ev->span->row < s->buckets->n_places ? s->buckets->row_of_place[ev->span->row] : UINT32_MAX;
    bool room = length_ns >= s->least_ns && s->n < MOST_SPANS && row != UINT32_MAX;
    return room ? keep(s, ev, row) : 0;
}

/* The length below which spans are left out, so that the rest is few enough. */
static int64_t find_least(const struct nrg_page_spans *s)
{
    uint64_t sum = 0;
    for (int i = 63; i >= 0; i--) {
        sum += s->by_log2[i];
        if (sum > MOST_SPANS)
            return i < 62 ? (int64_t)1 << (i + 1) : INT64_MAX;
    }
    return 0;
}

/* Threads bear names that programs give them, or, of an imported trace, whole commands. */
static bool is_nameless(const struct nrg_span_track *t, bool redact)
{
    return redact && strcmp(t->kind, "gpu") != 0;
}

static json_t *tracks_json(const struct nrg_span_catalog *c, bool redact)
{
    json_t *list = json_array();
    for (size_t i = 0; i < c->n_tracks && i < 256; i++) {
        const struct nrg_span_track *t = &c->tracks[i];
        json_t *o = json_object();
        if (!is_nameless(t, redact))
            nrg_json_text(o, "name", t->name);
        nrg_json_text(o, "kind", t->kind);
        nrg_json_text(o, "domain", t->domain);
        nrg_json_count(o, "pid", t->pid);
        nrg_json_count(o, "tid", t->tid);
        json_array_append_new(list, o);
    }
    return list;
}

static int walk_twice(struct nrg_page_spans *s, uint64_t spans)
{
    int rc = 0;
    if (spans > MOST_SPANS) {
        s->count = true;
        rc = nrg_span_walk_run(&s->walk, s->end_ns, on_event, s);
        s->least_ns = find_least(s);
        s->count = false;
    }
    return rc ? rc : nrg_span_walk_run(&s->walk, s->end_ns, on_event, s);
}

static void add_arrays(struct nrg_page_data *d, struct nrg_page_spans *s)
{
    nrg_page_array(d, "span_step", "u4", s->step, s->n);
    nrg_page_array(d, "span_length", "u4", s->length, s->n);
    nrg_page_array(d, "span_row", "u4", s->row, s->n);
    nrg_page_array(d, "span_depth", "u1", s->depth, s->n);
    nrg_page_array(d, "span_track", "u1", s->track, s->n);
}

int nrg_page_lanes(struct nrg_page_data *d, struct nrg_error *err)
{
    const struct nrg_attribution *a = d->run->attribution;
    struct nrg_page_spans *s = d->spans = nrg_calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->buckets = a->buckets;
    s->begin_ns = a->summary.begin_ns;
    s->end_ns = s->begin_ns + a->buckets->edges_ns[a->buckets->n];
    s->tick_ns = LEAST_TICK_NS + (s->end_ns - s->begin_ns) / UINT32_MAX;
    int rc = nrg_span_catalog_load(&s->catalog, d->run->recording, err);
    if (!rc)
        rc = nrg_span_walk_init(&s->walk, d->run->recording, NULL, &s->catalog, NRG_BY_PATH);
    if (!rc)
        rc = walk_twice(s, a->spans);
    if (rc)
        return rc;
    json_object_set_new(d->head, "tracks", tracks_json(&s->catalog, d->run->redact));
    nrg_json_count(d->head, "spans_left_out", (int64_t)(a->spans > s->n ? a->spans - s->n : 0));
    nrg_json_count(d->head, "span_tick_ns", s->tick_ns);
    nrg_json_real(d->head, "spans_least_s", (double)s->least_ns * 1e-9);
    add_arrays(d, s);
    return 0;
}

void nrg_page_lanes_release(struct nrg_page_data *d)
{
    struct nrg_page_spans *s = d->spans;
    if (!s)
        return;
    nrg_span_walk_release(&s->walk);
    nrg_span_catalog_release(&s->catalog);
    free(s->step);
    free(s->length);
    free(s->row);
    free(s->depth);
    free(s->track);
    free(s);
}
