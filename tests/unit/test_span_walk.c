/*
 * attribute/walk.c and record/read/spans.c: the order of events, places in the tree, and
 * files that no sane program writes.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/walk.h"
#include "support/made.h"

struct seen {
    char text[4096];
    int64_t last_ns;
    size_t opens, closes;
    const struct nrg_span_catalog *catalog;
    size_t deepest; /* spans around one */
};

static int note(void *arg, const struct nrg_span_walk_event *ev)
{
    struct seen *s = arg;
    char part[64];
    assert_true(ev->t_ns >= s->last_ns);
    s->last_ns = ev->t_ns;
    s->opens += ev->what == NRG_WALK_OPEN;
    s->closes += ev->what == NRG_WALK_CLOSE;
    if (ev->what == NRG_WALK_OPEN && ev->depth > s->deepest)
        s->deepest = ev->depth;
    if (ev->what == NRG_WALK_COUNT)
        snprintf(part, sizeof part, "%zu+%lld ", ev->track, (long long)ev->amount);
    else
        snprintf(part, sizeof part, "%zu%c%u/%zu ", ev->track,
                 ev->what == NRG_WALK_OPEN ? '<' : '>', ev->span->path, ev->depth);
    if (strlen(s->text) + strlen(part) < sizeof s->text)
        strcat(s->text, part);
    return 0;
}

struct walked {
    struct made m;
    struct nrg_span_catalog catalog;
    struct nrg_span_walk walk;
    struct seen seen;
};

static struct walked *walk(struct walked *w, enum nrg_rows_by by)
{
    made_open(&w->m);
    assert_int_equal(nrg_span_catalog_load(&w->catalog, w->m.recording, NULL), 0);
    assert_int_equal(nrg_span_walk_init(&w->walk, w->m.recording, NULL, &w->catalog, by), 0);
    assert_int_equal(nrg_span_walk_run(&w->walk, made_ns(100), note, &w->seen), 0);
    assert_int_equal(w->seen.opens, w->seen.closes);
    return w;
}

static void done(struct walked *w)
{
    nrg_span_walk_release(&w->walk);
    nrg_span_catalog_release(&w->catalog);
    made_release(&w->m);
    free(w);
}

static struct walked *start(void)
{
    struct walked *w = calloc(1, sizeof *w);
    assert_non_null(w);
    made_init(&w->m);
    return w;
}

static void merges_tracks_by_time(void **state)
{
    struct walked *w = start();
    int64_t name = made_name(&w->m, "span", "a"), two = made_name(&w->m, "span", "b");
    int64_t x = made_track(&w->m, "thread", 1, 1, ""), y = made_track(&w->m, "thread", 1, 2, "");
    (void)state;
    made_begin(&w->m, 1, x, name);
    made_begin(&w->m, 2, y, name);
    made_begin(&w->m, 3, x, two);
    made_end(&w->m, 4, y);
    made_event(&w->m, 4.5, x, NRG_SPAN_COUNT, name, 7, NRG_MISSING);
    made_end(&w->m, 5, x);
    made_end(&w->m, 6, x);
    walk(w, NRG_BY_PATH);
    assert_string_equal(w->seen.text, "0<1/0 1<1/0 0<2/1 1>1/0 0+7 0>2/1 0>1/0 ");
    assert_int_equal(w->walk.spans, 3);
    assert_int_equal(w->seen.deepest, 1);
    /* Again: the same places. */
    w->seen = (struct seen){0};
    assert_int_equal(nrg_span_walk_run(&w->walk, made_ns(100), note, &w->seen), 0);
    assert_string_equal(w->seen.text, "0<1/0 1<1/0 0<2/1 1>1/0 0+7 0>2/1 0>1/0 ");
    done(w);
}

/* More events than a chunk holds, on several tracks: order holds across chunks. */
static void many_chunks(void **state)
{
    struct walked *w = start();
    int64_t name = made_name(&w->m, "span", "a"), tracks[5];
    (void)state;
    for (int i = 0; i < 5; i++)
        tracks[i] = made_track(&w->m, "thread", 1, 1 + i, "");
    int series = nrg_store_series(w->m.store, NRG_SPANS);
    for (int block = 0; block < 10; block++) {
        for (int i = 0; i < 5000; i++) {
            double t = block * 5 + i * 0.001;
            made_begin(&w->m, t, tracks[i % 5], name);
            made_end(&w->m, t + 0.0005 * (i % 3), tracks[i % 5]);
        }
        assert_int_equal(nrg_store_rows(w->m.store, series, &w->m.spans), 0);
        assert_int_equal(nrg_store_commit(w->m.store), 0);
        w->m.spans.n = 0;
    }
    walk(w, NRG_BY_PATH);
    assert_int_equal(w->walk.spans, 50000);
    assert_int_equal(w->walk.unmatched_ends + w->walk.unclosed + w->walk.cut, 0);
    done(w);
}

/* 10,000 levels: no deep tree, no deep C stack, and every span is closed. */
static void endless_recursion(void **state)
{
    struct walked *w = start();
    int64_t name = made_name(&w->m, "span", "f"), x = made_track(&w->m, "thread", 1, 1, "");
    (void)state;
    for (int i = 0; i < 10000; i++)
        made_begin(&w->m, i * 0.001, x, name);
    for (int i = 0; i < 10000; i++)
        made_end(&w->m, 20 + i * 0.001, x);
    walk(w, NRG_BY_PATH);
    assert_int_equal(w->seen.deepest, 9999);
    assert_int_equal(w->walk.paths.n, NRG_TREE_DEPTH + 1);
    assert_int_equal(w->walk.paths.folded, 10000 - NRG_TREE_DEPTH);
    assert_int_equal(w->seen.opens, 10000);
    done(w);
}

static void ends_that_match_nothing(void **state)
{
    struct walked *w = start();
    int64_t a = made_name(&w->m, "span", "a"), b = made_name(&w->m, "span", "b"),
            c = made_name(&w->m, "span", "c"), x = made_track(&w->m, "thread", 1, 1, "");
    (void)state;
    made_end(&w->m, 0, x);
    made_begin(&w->m, 1, x, a);
    made_begin(&w->m, 2, x, b);
    made_event(&w->m, 3, x, NRG_SPAN_END, c, NRG_MISSING, NRG_MISSING); /* an end without a begin */
    made_event(&w->m, 4, x, NRG_SPAN_END, a, NRG_MISSING, NRG_MISSING); /* closes both */
    made_begin(&w->m, 5, x, c);                                         /* never ends */
    walk(w, NRG_BY_PATH);
    assert_int_equal(w->walk.unmatched_ends, 2);
    assert_int_equal(w->walk.cut, 1);
    assert_int_equal(w->walk.unclosed, 1);
    done(w);
}

/* A chunk whose rows of a track are not in order of time, as the store would never write it. */
static void time_that_goes_back(void **state)
{
    struct walked *w = start();
    int64_t a = made_name(&w->m, "span", "a"), x = made_track(&w->m, "thread", 1, 1, ""),
            y = made_track(&w->m, "thread", 1, 2, "");
    (void)state;
    int series = nrg_store_series(w->m.store, NRG_SPANS);
    made_begin(&w->m, 5, x, a);
    made_begin(&w->m, 8, x, a);
    assert_int_equal(nrg_store_rows(w->m.store, series, &w->m.spans), 0);
    assert_int_equal(nrg_store_commit(w->m.store), 0);
    w->m.spans.n = 0;
    /* Another series of spans, earlier: merged by time, nothing is lost. */
    made_span(&w->m, 6, 7, y, a);
    walk(w, NRG_BY_PATH);
    assert_string_equal(w->seen.text, "0<1/0 1<1/0 1>1/0 0<2/1 0>2/1 0>1/0 ");
    assert_int_equal(w->walk.cut, 0);
    done(w);
}

static void unknown_ids(void **state)
{
    struct walked *w = start();
    int64_t x = made_track(&w->m, "thread", 1, 1, "");
    (void)state;
    made_span(&w->m, 1, 2, x, 99);
    made_span(&w->m, 1, 2, 77, 99);
    made_event(&w->m, 3, x, (enum nrg_span_event)9, 1, 1, 1);
    made_event(&w->m, 4, x, NRG_SPAN_BEGIN, 1, 1, 1234); /* a path that is not there */
    walk(w, NRG_BY_PATH);
    assert_int_equal(w->walk.unknown, 2);
    assert_int_equal(w->walk.damaged, 1);
    assert_int_equal(w->walk.spans, 2);
    assert_int_equal(w->walk.paths.nodes[1].name, w->catalog.n_names);
    done(w);
}

/* A kernel belongs below the operator that launched it, wherever it runs. */
static void paths_place_spans(void **state)
{
    struct walked *w = start();
    int64_t step = made_name(&w->m, "step", "step"), op = made_name(&w->m, "operator", "mm"),
            kernel = made_name(&w->m, "kernel", "gemm");
    int64_t host = made_track(&w->m, "thread", 1, 1, ""),
            gpu = made_track(&w->m, "gpu", 1, 0, "gpu-0");
    int64_t path = made_path(&w->m, made_path(&w->m, 0, step), op);
    (void)state;
    made_event(&w->m, 1, host, NRG_SPAN_BEGIN, step, 1, NRG_MISSING);
    made_span(&w->m, 2, 3, host, op);
    made_event(&w->m, 4, gpu, NRG_SPAN_BEGIN, kernel, NRG_MISSING, path);
    made_end(&w->m, 5, gpu);
    made_end(&w->m, 6, host);
    walk(w, NRG_BY_STEP);
    const struct nrg_span_tree *paths = &w->walk.paths, *rows = w->walk.rows;
    assert_int_equal(paths->n, 4);
    assert_int_equal(paths->nodes[3].parent, 2);
    assert_int_equal(paths->nodes[2].parent, 1);
    assert_int_equal(rows->n, 2); /* the step that was open has it all */
    assert_int_equal(rows->nodes[1].number, 1);
    done(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_tracks_by_time), cmocka_unit_test(many_chunks),
        cmocka_unit_test(endless_recursion),     cmocka_unit_test(ends_that_match_nothing),
        cmocka_unit_test(time_that_goes_back),   cmocka_unit_test(unknown_ids),
        cmocka_unit_test(paths_place_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
