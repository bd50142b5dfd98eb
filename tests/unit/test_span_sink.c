/* Spans of a log on their way into a recording: order, nesting, cutting, ids, activity. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/internal.h"
#include "record/read/cursor.h"
#include "record/read/span_catalog.h"

struct fixture {
    struct tree tree;
    char path[300];
    struct nrg_store *store;
    struct nrg_span_sink *sink;
    struct nrg_span_sink_result result;
    struct nrg_recording *recording;
    struct nrg_span_catalog catalog;
};

static void set_up(struct fixture *f)
{
    struct nrg_error err;
    memset(f, 0, sizeof *f);
    tree_init(&f->tree);
    snprintf(f->path, sizeof f->path, "%s/run.nrg", f->tree.path);
    assert_int_equal(nrg_store_create(f->path, false, &f->store, &err), 0);
    f->sink = nrg_span_sink_new();
    assert_non_null(f->sink);
}

static void tear_down(struct fixture *f)
{
    nrg_span_catalog_release(&f->catalog);
    nrg_recording_close(f->recording);
    nrg_span_sink_free(f->sink);
    tree_release(&f->tree);
}

static int shift_span(void *offset_ns, struct nrg_sink_span *span)
{
    span->begin_ns += *(const int64_t *)offset_ns;
    if (span->end_ns != NRG_MISSING)
        span->end_ns += *(const int64_t *)offset_ns;
    return 0;
}

/* Shifts, writes, closes and opens again. */
static void write_and_open(struct fixture *f, int64_t offset_ns)
{
    struct nrg_error err;
    assert_int_equal(nrg_span_sink_edit(f->sink, shift_span, &offset_ns), 0);
    assert_int_equal(nrg_span_sink_write(f->sink, f->store, &f->result), 0);
    assert_int_equal(nrg_store_close(f->store, &err), 0);
    assert_int_equal(nrg_recording_open(f->path, &f->recording, &err), 0);
    assert_int_equal(nrg_span_catalog_load(&f->catalog, f->recording, &err), 0);
}

static int64_t track(struct fixture *f, const char *name)
{
    struct nrg_span_track t = {.kind = "log"};
    snprintf(t.name, sizeof t.name, "%s", name);
    return nrg_span_sink_track(f->sink, &t);
}

static int64_t name(struct fixture *f, const char *text)
{
    return nrg_span_sink_name(f->sink, NRG_KIND_LAYER, text, strlen(text), "");
}

static void span(struct fixture *f, int64_t on, const char *text, int64_t begin, int64_t end)
{
    const struct nrg_sink_span s = {.begin_ns = begin,
                                    .end_ns = end,
                                    .track = on,
                                    .name = name(f, text),
                                    .number = NRG_MISSING,
                                    .path = NRG_MISSING};
    assert_int_equal(nrg_span_sink_span(f->sink, &s), 0);
}

/* All events as text, "track:B name@time", in order of time. */
static void events(struct fixture *f, char *text, size_t size)
{
    struct nrg_cursor *cursor;
    struct nrg_cursor_row row;
    int64_t last_ns = INT64_MIN;
    size_t len = 0;
    text[0] = '\0';
    assert_int_equal(nrg_cursor_open(f->recording, 1u << NRG_SPANS, &cursor), 0);
    while (nrg_cursor_next(cursor, &row) > 0) {
        const struct nrg_span_name *n = nrg_span_catalog_name(&f->catalog, row.cells[NRG_S_NAME]);
        assert_non_null(n);
        assert_true(row.t_ns >= last_ns);
        last_ns = row.t_ns;
        len += (size_t)snprintf(text + len, size - len, "%s%lld:%c %s@%lld", len ? " | " : "",
                                (long long)row.cells[NRG_S_TRACK], "BEMC"[row.cells[NRG_S_EVENT]],
                                n -> text, (long long)row.t_ns);
        assert_true(len < size);
    }
    nrg_cursor_free(cursor);
}

static void nests_and_orders(void **state)
{
    struct fixture f;
    char text[1000];
    (void)state;
    set_up(&f);
    int64_t a = track(&f, "a"), b = track(&f, "b");
    assert_int_equal(track(&f, "a"), a);
    /* Children first, tracks mixed, two of equal begin, touching edges, no length. */
    span(&f, a, "leaf", 20, 30);
    span(&f, b, "other", 15, 25);
    span(&f, a, "outer", 10, 100);
    span(&f, a, "same", 10, 40);
    span(&f, a, "next", 40, 60);
    span(&f, a, "empty", 60, 60);
    write_and_open(&f, 1000);
    events(&f, text, sizeof text);
    assert_string_equal(text, "1:B outer@1010 | 1:B same@1010 | 2:B other@1015 | 1:B leaf@1020 | "
                              "2:E other@1025 | 1:E leaf@1030 | 1:E same@1040 | 1:B next@1040 | "
                              "1:E next@1060 | 1:B empty@1060 | 1:E empty@1060 | 1:E outer@1100");
    assert_int_equal(f.result.spans, 6);
    assert_int_equal(f.result.cut, 0);
    assert_int_equal(f.result.empty, 1);
    assert_int_equal(f.result.outside, 0);
    assert_int_equal(f.result.first_ns, 1010);
    assert_int_equal(f.result.last_ns, 1100);
    tear_down(&f);
}

static void cuts_what_overlaps(void **state)
{
    struct fixture f;
    char text[1000];
    (void)state;
    set_up(&f);
    int64_t a = track(&f, "a");
    span(&f, a, "outer", 0, 50);
    span(&f, a, "inner", 10, 30);
    span(&f, a, "late", 20, 70); /* outlasts both: they end where it begins */
    assert_int_equal(nrg_span_sink_overlaps(f.sink, a), 2);
    write_and_open(&f, 0);
    events(&f, text, sizeof text);
    assert_string_equal(
        text,
        "1:B outer@0 | 1:B inner@10 | 1:E inner@20 | 1:E outer@20 | 1:B late@20 | 1:E late@70");
    assert_int_equal(f.result.cut, 2);
    tear_down(&f);
}

static void rounding_is_no_overlap(void **state)
{
    struct fixture f;
    char text[1000];
    (void)state;
    set_up(&f);
    int64_t a = track(&f, "a");
    f.sink->slack_ns = 1000;
    span(&f, a, "outer", 0, 50000);
    span(&f, a, "child", 10000, 51000);
    span(&f, a, "next", 49500, 90000);
    write_and_open(&f, 0);
    events(&f, text, sizeof text);
    assert_string_equal(text, "1:B outer@0 | 1:B child@10000 | 1:E child@49500 | "
                              "1:E outer@49500 | 1:B next@49500 | 1:E next@90000");
    assert_int_equal(f.result.cut, 0);
    tear_down(&f);
}

static void unclosed_spans_have_no_end(void **state)
{
    struct fixture f;
    char text[1000];
    (void)state;
    set_up(&f);
    int64_t a = track(&f, "a"), b = track(&f, "b");
    span(&f, a, "open", 5, NRG_MISSING);
    span(&f, a, "inside", 10, 20);
    span(&f, b, "outer", 0, 30);
    span(&f, b, "lost", 10, NRG_MISSING); /* can't outlast the one around it */
    write_and_open(&f, 0);
    events(&f, text, sizeof text);
    assert_string_equal(text, "2:B outer@0 | 1:B open@5 | 1:B inside@10 | 2:B lost@10 | "
                              "1:E inside@20 | 2:E lost@30 | 2:E outer@30");
    assert_int_equal(f.result.unclosed, 2);
    assert_int_equal(f.result.spans, 4);
    tear_down(&f);
}

static void numbers_paths_and_durations(void **state)
{
    struct fixture f;
    struct nrg_cursor *cursor;
    struct nrg_cursor_row row;
    (void)state;
    set_up(&f);
    int64_t a = track(&f, "a"), conv = name(&f, "conv");
    int64_t top = nrg_span_sink_path(f.sink, 0, name(&f, "net"));
    int64_t below = nrg_span_sink_path(f.sink, top, conv);
    assert_int_equal(nrg_span_sink_path(f.sink, 0, name(&f, "net")), top);
    assert_int_equal(nrg_span_sink_path(f.sink, 99, conv), -EINVAL);
    const struct nrg_sink_span s = {.begin_ns = 10,
                                    .end_ns = 20,
                                    .track = a,
                                    .name = conv,
                                    .number = 17,
                                    .path = below,
                                    .duration_ns = 12};
    assert_int_equal(nrg_span_sink_span(f.sink, &s), 0);
    /* Once more into the same recording: the ids go on. */
    assert_int_equal(nrg_span_sink_write(f.sink, f.store, &f.result), 0);
    write_and_open(&f, 100);
    assert_int_equal(f.catalog.n_names, 4);
    assert_int_equal(f.catalog.n_tracks, 2);
    assert_int_equal(f.catalog.n_paths, 4);
    assert_int_equal(nrg_span_catalog_path(&f.catalog, 4)->parent, 3);
    assert_int_equal(nrg_span_catalog_path(&f.catalog, 3)->parent, 0);
    assert_int_equal(nrg_cursor_open(f.recording, 1u << NRG_SPANS, &cursor), 0);
    for (int64_t i = 0; i < 2; i++) {
        assert_int_equal(nrg_cursor_next(cursor, &row), 1);
        assert_int_equal(row.cells[NRG_S_TRACK], 1 + i);
        assert_int_equal(row.cells[NRG_S_VALUE], 17);
        assert_int_equal(row.cells[NRG_S_PARENT], 2 + 2 * i);
        assert_int_equal(nrg_cursor_next(cursor, &row), 1);
        assert_int_equal(row.cells[NRG_S_VALUE], 12);
        assert_int_equal(row.t_ns, 20 + 100 * i);
    }
    nrg_cursor_free(cursor);
    tear_down(&f);
}

static void refuses(void **state)
{
    struct fixture f;
    (void)state;
    set_up(&f);
    int64_t a = track(&f, "a"), n = name(&f, "n");
    const struct {
        struct nrg_sink_span span;
        int code;
    } bad[] = {
        {{.begin_ns = 10, .end_ns = 9, .track = a, .name = n}, -EINVAL},
        {{.begin_ns = 10, .end_ns = 11, .track = a + 1, .name = n}, -EINVAL},
        {{.begin_ns = 10, .end_ns = 11, .track = a, .name = 0}, -EINVAL},
        {{.begin_ns = 10, .end_ns = 11, .track = a, .name = n, .path = 3}, -EINVAL},
        {{.begin_ns = 10, .end_ns = INT64_MAX - 1, .track = a, .name = n}, -ERANGE},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(nrg_span_sink_span(f.sink, &bad[i].span), bad[i].code);
    span(&f, a, "n", -1, 20); /* a recording has no negative times */
    assert_int_equal(nrg_span_sink_write(f.sink, f.store, &f.result), -ERANGE);
    nrg_store_discard(f.store);
    tear_down(&f);
}

static void long_and_strange_names(void **state)
{
    struct fixture f;
    size_t size = 3 * NRG_SPAN_NAME_MAX;
    char *text = malloc(size);
    (void)state;
    assert_non_null(text);
    set_up(&f);
    memset(text, 'x', size);
    int64_t a = track(&f, "a");
    int64_t cut = nrg_span_sink_name(f.sink, "layer", text, size, "");
    assert_int_equal(nrg_span_sink_name(f.sink, "layer", text, NRG_SPAN_NAME_MAX, ""), cut);
    span(&f, a, "<b>\"quo\\ted\"\nline</b>", 1, 2);
    assert_int_equal(nrg_span_sink_name(f.sink, "layer", "nul\0in", 6, ""), name(&f, "nul in"));
    write_and_open(&f, 0);
    assert_int_equal(strlen(nrg_span_catalog_name(&f.catalog, cut)->text), NRG_SPAN_NAME_MAX);
    char shown[200];
    events(&f, shown, sizeof shown);
    assert_string_equal(shown, "1:B <b>\"quo\\ted\" line</b>@1 | 1:E <b>\"quo\\ted\" line</b>@2");
    free(text);
    tear_down(&f);
}

/* Many chunks and tracks: order and count survive; truth by construction. */
static void many_spans(void **state)
{
    struct fixture f;
    struct nrg_cursor *cursor;
    struct nrg_cursor_row row;
    enum { N = 60000, TRACKS = 7 };
    int64_t tracks[TRACKS], depth[TRACKS + 1] = {0}, last_ns = 0;
    uint32_t x = 12345;
    size_t n = 0;
    (void)state;
    set_up(&f);
    for (size_t t = 0; t < TRACKS; t++) {
        char text[8];
        snprintf(text, sizeof text, "t%zu", t);
        tracks[t] = track(&f, text);
    }
    int64_t id = name(&f, "op");
    for (size_t i = 0; i < N; i++) {
        x = x * 1664525 + 1013904223;
        int64_t begin = (int64_t)(x % 100000) * 1000; /* any order; slots of 1 us never overlap */
        const struct nrg_sink_span s = {.begin_ns = begin,
                                        .end_ns = begin + 1 + (x >> 8) % 999,
                                        .track = tracks[i % TRACKS],
                                        .name = id,
                                        .number = NRG_MISSING};
        assert_int_equal(nrg_span_sink_span(f.sink, &s), 0);
    }
    write_and_open(&f, 0);
    assert_int_equal(f.result.cut, 0);
    assert_int_equal(nrg_cursor_open(f.recording, 1u << NRG_SPANS, &cursor), 0);
    while (nrg_cursor_next(cursor, &row) > 0) {
        assert_true(row.t_ns >= last_ns);
        last_ns = row.t_ns;
        int64_t *d = &depth[row.cells[NRG_S_TRACK]];
        *d += row.cells[NRG_S_EVENT] == NRG_SPAN_BEGIN ? 1 : -1;
        assert_true(*d >= 0);
        n++;
    }
    assert_int_equal(n, 2 * N);
    nrg_cursor_free(cursor);
    tear_down(&f);
}

static void activity(void **state)
{
    struct fixture f;
    double busy[5];
    (void)state;
    set_up(&f);
    int64_t a = track(&f, "a"), b = track(&f, "b");
    int64_t step = nrg_span_sink_name(f.sink, NRG_KIND_STEP, "step", 4, "");
    const struct nrg_sink_span container = {
        .begin_ns = 0, .end_ns = 500, .track = a, .name = step, .number = 1};
    assert_int_equal(nrg_span_sink_span(f.sink, &container), 0);
    span(&f, a, "x", 150, 250);
    span(&f, b, "y", 200, 275); /* in part at the same time */
    span(&f, b, "z", 450, 9000);
    assert_int_equal(nrg_span_sink_activity(f.sink, 0, 100, busy, 5), 0);
    const double expected[] = {0, 0.5, 0.75, 0, 0.5};
    for (size_t i = 0; i < 5; i++)
        assert_true(fabs(busy[i] - expected[i]) < 1e-12);
    nrg_store_discard(f.store);
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nests_and_orders),
        cmocka_unit_test(cuts_what_overlaps),
        cmocka_unit_test(rounding_is_no_overlap),
        cmocka_unit_test(unclosed_spans_have_no_end),
        cmocka_unit_test(numbers_paths_and_durations),
        cmocka_unit_test(refuses),
        cmocka_unit_test(long_and_strange_names),
        cmocka_unit_test(many_spans),
        cmocka_unit_test(activity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
