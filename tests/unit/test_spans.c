/*
 * Marks of this process, through its own rings, to rows: every expectation is counted by the test
 * itself while it marks.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <nrg/nrg.h>

#include "mark/client.h"
#include "sensors/channel.h"
#include "support/span_bench.h"

static const struct bench_row *nth_event(const struct span_bench *b, size_t n)
{
    for (size_t i = 0; i < b->n_rows; i++)
        if (b->rows[i].series == BENCH_SPANS && !n--)
            return &b->rows[i];
    fail_msg("there are not that many events");
    return NULL;
}

static void expect(const struct span_bench *b, size_t n, int event, const char *name, int64_t value)
{
    const struct bench_row *row = nth_event(b, n);
    assert_int_equal(row->values[NRG_S_EVENT], event);
    assert_true(row->values[NRG_S_VALUE] == value);
    assert_true(row->values[NRG_S_PARENT] == NRG_MISSING);
    if (name)
        assert_string_equal(bench_name(b, row->values[NRG_S_NAME]), name);
}

static void test_without_recorder(void **state)
{
    (void)state;
    errno = 77;
    nrg_span_begin("a");
    nrg_span_begin_name(3);
    nrg_span_begin_numbered(3, 4);
    nrg_mark("m");
    nrg_count_add("c", 1);
    nrg_span_past(1, "gpu-0", "gpu-0", 1, 2);
    nrg_span_end();
    nrg_span_end();
    nrg_span_unwind(0);
    assert_int_equal(nrg_span_depth(), 0);
    assert_int_not_equal(nrg_name_intern("a", NULL, NULL), 0);
    assert_int_equal(nrg_recording_active(), 0);
    assert_int_equal(errno, 77);
}

static void test_events_and_values(void **state)
{
    (void)state;
    struct span_bench b;
    bench_begin(&b, true);
    assert_int_equal(nrg_recording_active(), 1);
    errno = 78;
    int64_t before = nrg_now_ns();
    nrg_span_begin("outer");
    nrg_span_begin_numbered(nrg_name_intern("step", "step", NULL), -17);
    nrg_count_add("tokens", INT64_MAX);
    nrg_mark("here");
    assert_int_equal(nrg_span_depth(), 2);
    nrg_span_end();
    nrg_span_begin_name(nrg_name_intern("layer1", "module", "Conv2d"));
    nrg_span_unwind(0);
    nrg_span_end(); /* without an open one */
    int64_t after = nrg_now_ns();
    assert_int_equal(errno, 78);
    bench_step(&b);
    expect(&b, 0, NRG_SPAN_BEGIN, "outer", NRG_MISSING);
    expect(&b, 1, NRG_SPAN_BEGIN, "step", -17);
    expect(&b, 2, NRG_SPAN_COUNT, "tokens", INT64_MAX);
    expect(&b, 3, NRG_SPAN_MARK, "here", NRG_MISSING);
    expect(&b, 4, NRG_SPAN_END, NULL, NRG_MISSING);
    expect(&b, 5, NRG_SPAN_BEGIN, "layer1", NRG_MISSING);
    expect(&b, 7, NRG_SPAN_END, NULL, NRG_MISSING);
    assert_int_equal(bench_count(&b, BENCH_SPANS, 0, -1), 8);
    /* The clock may be the TSC: its conversion is good to far less than this. */
    assert_in_range(nth_event(&b, 0)->t_ns, before - 50000, after + 50000);
    assert_in_range(nth_event(&b, 7)->t_ns, before - 50000, after + 50000);
    const struct nrg_span_track *track = bench_track_of(&b, (int32_t)syscall(SYS_gettid));
    assert_non_null(track);
    assert_int_equal(track->pid, getpid());
    assert_string_equal(track->kind, "thread");
    assert_true(track->start_ticks > 0);
    assert_true(bench_count(&b, BENCH_THREADS, track->id, -1) >= 1);
    bench_end(&b);
    assert_int_equal(nrg_recording_active(), 0);
    assert_int_equal(bench_check(&b), 0);
    assert_int_equal(b.totals.spans, 3);
    assert_int_equal(b.totals.dropped + b.totals.damaged, 0);
    bench_release(&b);
}

/* Burns at least that much CPU time of the thread. */
static void use_cpu(int64_t ns)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    int64_t until = (int64_t)ts.tv_sec * NRG_NS_PER_S + ts.tv_nsec + ns;
    while ((int64_t)ts.tv_sec * NRG_NS_PER_S + ts.tv_nsec < until)
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
}

/* A row of threads with that CPU time or more, from `from` on; the number of rows: there is none.
 */
static size_t thread_row(const struct span_bench *b, size_t from, int64_t cpu_ns)
{
    while (from < b->n_rows &&
           (b->rows[from].series != BENCH_THREADS || b->rows[from].values[NRG_T_CPU_NS] < cpu_ns))
        from++;
    return from;
}

/* The sampler asks for CPU times between two rounds: they come at their own time, in order. */
static void test_cpu_times_beside_those_of_processes(void **state)
{
    (void)state;
    struct span_bench b;
    bench_begin(&b, true);
    nrg_span_begin("a");
    bench_step(&b);
    size_t at = b.n_rows, seen = b.n_rows;
    for (size_t i = 0; i < seen; i++)
        at = b.rows[i].series == BENCH_THREADS ? i : at;
    assert_true(at < seen);
    int64_t cpu_ns = b.rows[at].values[NRG_T_CPU_NS];
    int64_t asked_ns[6];
    for (size_t i = 0; i < 6; i++) { /* more often than there is room for */
        use_cpu(NRG_NS_PER_MS / 10);
        asked_ns[i] = nrg_now_ns();
        nrg_span_drain_read_cpu(b.drain);
    }
    nrg_span_end();
    bench_step(&b);
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0);
    for (size_t i = 0; i < 4; i++) {
        at = thread_row(&b, at + 1, cpu_ns + (int64_t)(i + 1) * NRG_NS_PER_MS / 10);
        assert_true(at < b.n_rows && b.rows[at].t_ns >= asked_ns[i]);
        assert_true(b.rows[at].t_ns <= asked_ns[i + 1]);
    }
    bench_release(&b);
}

/* The CPU time of the last row of threads in [from_ns, to_ns], or NRG_MISSING. */
static int64_t cpu_between(const struct span_bench *b, int64_t from_ns, int64_t to_ns)
{
    int64_t cpu_ns = NRG_MISSING;
    for (size_t i = 0; i < b->n_rows; i++)
        if (b->rows[i].series == BENCH_THREADS && b->rows[i].t_ns >= from_ns &&
            b->rows[i].t_ns <= to_ns)
            cpu_ns = b->rows[i].values[NRG_T_CPU_NS];
    return cpu_ns;
}

/* A span that is long has its thread's CPU time at both edges; one of many short ones has not. */
static void test_cpu_times_at_the_edges_of_long_spans(void **state)
{
    (void)state;
    enum { LONG = 5, SHORT = 1000 };
    struct span_bench b;
    bench_begin(&b, true);
    nrg_mark("before");
    for (int i = 0; i < LONG; i++) {
        nrg_span_begin("long");
        use_cpu(10 * NRG_NS_PER_MS);
        nrg_span_end();
    }
    nrg_mark("between");
    for (int i = 0; i < SHORT; i++) {
        nrg_span_begin("short");
        nrg_span_end();
    }
    bench_step(&b);
    bench_end(&b);
    for (size_t i = 0; i < LONG; i++) {
        int64_t end_ns = nth_event(&b, 2 + 2 * i)->t_ns, before_ns = nth_event(&b, 2 * i)->t_ns;
        int64_t before = cpu_between(&b, 0, nth_event(&b, 1 + 2 * i)->t_ns);
        int64_t after = cpu_between(&b, end_ns, nth_event(&b, 3 + 2 * i)->t_ns);
        assert_true(before_ns <= end_ns && before != NRG_MISSING && after != NRG_MISSING);
        assert_true(after - before >= 10 * NRG_NS_PER_MS);
    }
    assert_true(bench_count(&b, BENCH_THREADS, 0, -1) < LONG + SHORT / 2);
    bench_release(&b);
}

static void test_names(void **state)
{
    (void)state;
    struct span_bench b;
    char *longest = malloc(40000), changing[8] = "one";
    bench_begin(&b, true);
    memset(longest, 'x', 40000);
    memcpy(longest + NRG_SPAN_NAME_MAX - 1, "\xc3\xa9", 2); /* cut through the middle of it */
    longest[39999] = '\0';
    uint32_t number = nrg_name_intern("a", "module", "Linear");
    assert_int_not_equal(number, 0);
    assert_int_equal(nrg_name_intern("a", "module", "Linear"), number);
    assert_int_not_equal(nrg_name_intern("a", "module", "Conv"), number);
    assert_int_not_equal(nrg_name_intern("a", NULL, NULL), number);
    assert_int_equal(nrg_name_intern("a", NULL, NULL), nrg_name_intern("a", "span", ""));
    assert_int_equal(nrg_name_intern(NULL, NULL, NULL), 0);
    nrg_span_begin("a \"quoted\" <b>&amp;</b> 'name', with; all");
    nrg_span_begin("two\nlines\tand \xff\xfe bytes");
    nrg_span_begin(longest);
    nrg_span_begin(longest);
    nrg_span_begin("");
    nrg_span_begin(changing);
    memcpy(changing, "two", 4); /* the address is the same, the name is not */
    nrg_span_begin(changing);
    nrg_span_begin("grüße, 世界");
    nrg_span_unwind(0);
    bench_step(&b);
    expect(&b, 0, NRG_SPAN_BEGIN, "a \"quoted\" <b>&amp;</b> 'name', with; all", NRG_MISSING);
    expect(&b, 1, NRG_SPAN_BEGIN, "two lines and ?? bytes", NRG_MISSING);
    longest[NRG_SPAN_NAME_MAX - 1] = '\0';
    expect(&b, 2, NRG_SPAN_BEGIN, longest, NRG_MISSING);
    expect(&b, 3, NRG_SPAN_BEGIN, longest, NRG_MISSING);
    assert_int_equal(nth_event(&b, 2)->values[NRG_S_NAME], nth_event(&b, 3)->values[NRG_S_NAME]);
    expect(&b, 4, NRG_SPAN_BEGIN, "", NRG_MISSING);
    expect(&b, 5, NRG_SPAN_BEGIN, "one", NRG_MISSING);
    expect(&b, 6, NRG_SPAN_BEGIN, "two", NRG_MISSING);
    expect(&b, 7, NRG_SPAN_BEGIN, "grüße, 世界", NRG_MISSING);
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0);
    bench_release(&b);
    free(longest);
}

static void test_room_for_names_ends(void **state)
{
    (void)state;
    struct span_bench b;
    char text[64], *large = malloc(16001);
    size_t made = 0;
    bench_begin(&b, true);
    memset(large, 'n', 16000);
    large[16000] = '\0';
    for (int i = 0; i < 2000; i++) {
        snprintf(text, sizeof text, "%06d", i);
        memcpy(large, text, 6);
        nrg_span_begin(large);
        made += nrg_name_intern(large, NULL, NULL) != 0;
        nrg_span_end();
    }
    assert_in_range(made, 900, NRG_RING_NAMES_BYTES / 16000);
    assert_int_equal(nrg_span_depth(), 0);
    bench_step(&b);
    assert_int_equal(bench_count(&b, BENCH_SPANS, 0, NRG_SPAN_BEGIN), made);
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0);
    bench_release(&b);
    free(large);
}

static void test_full_ring_drops_whole_spans(void **state)
{
    (void)state;
    struct span_bench b;
    const uint64_t tries = 60000;
    bench_begin(&b, true);
    uint32_t name = nrg_name_intern("inner", NULL, NULL);
    nrg_span_begin("outer");
    for (uint64_t i = 0; i < tries; i++) {
        nrg_span_begin_name(name);
        nrg_count_add("c", 1);
        nrg_span_begin_numbered(name, (int64_t)i);
        nrg_span_end();
        nrg_span_end();
    }
    nrg_span_end();
    bench_step(&b);
    nrg_span_begin("after");
    nrg_span_end();
    bench_end(&b);
    size_t spans = bench_count(&b, BENCH_SPANS, 0, NRG_SPAN_BEGIN);
    size_t counts = bench_count(&b, BENCH_SPANS, 0, NRG_SPAN_COUNT);
    assert_int_equal(bench_check(&b), 0);
    assert_int_equal(bench_count(&b, BENCH_SPANS, 0, NRG_SPAN_END), spans);
    assert_int_equal(spans + counts + b.totals.dropped, 2 + 3 * tries);
    assert_true(spans > 10000 && b.totals.dropped > 100000);
    assert_int_equal(b.n_events, 1);
    assert_string_equal(b.events[0].kind, "lost");
    bench_release(&b);
}

/* A count in a dropped span is not one of the span around it. */
static void test_counts_of_dropped_spans_are_dropped(void **state)
{
    (void)state;
    struct span_bench b;
    bench_begin(&b, true);
    uint32_t name = nrg_name_intern("inner", NULL, NULL);
    nrg_span_begin("outer");
    for (int i = 0; i < 40000; i++) {
        nrg_span_begin_name(name);
        nrg_span_end();
    }
    nrg_span_begin_name(name); /* dropped: the ring is full */
    bench_step(&b);
    nrg_count_add("c", 1); /* there is room again */
    nrg_count_add_name(nrg_name_intern("c", "counter", NULL), 1);
    nrg_span_end();
    nrg_count_add("c", 1); /* of the outer one */
    nrg_span_end();
    nrg_count_add("c", 1);
    bench_end(&b);
    size_t spans = bench_count(&b, BENCH_SPANS, 0, NRG_SPAN_BEGIN);
    assert_int_equal(bench_check(&b), 0);
    assert_int_equal(bench_count(&b, BENCH_SPANS, 0, NRG_SPAN_COUNT), 2);
    assert_int_equal(spans + b.totals.dropped, 40002 + 2);
    bench_release(&b);
}

static void test_depth_beyond_all_reason(void **state)
{
    (void)state;
    struct span_bench b;
    bench_begin(&b, true);
    for (int i = 0; i < 1500; i++)
        nrg_span_begin("deep");
    assert_int_equal(nrg_span_depth(), 1500);
    nrg_span_unwind(1499);
    assert_int_equal(nrg_span_depth(), 1499);
    nrg_span_unwind(0);
    nrg_span_begin("flat");
    nrg_span_end();
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0);
    assert_int_equal(b.totals.spans, 1024 + 1);
    assert_int_equal(b.totals.dropped, 1500 - 1024);
    assert_int_equal(b.n_events, 1);
    assert_string_equal(b.events[0].kind, "lost");
    assert_non_null(strstr(b.events[0].detail, "1024")); /* and not that it marked too fast */
    bench_release(&b);
}

static void *mark_some(void *arg)
{
    int n = *(int *)arg;
    for (int i = 0; i < n; i++) {
        nrg_span_begin("of a thread");
        nrg_count_add("n", i);
        nrg_span_begin("inside");
        nrg_span_end();
        nrg_span_end();
    }
    nrg_span_begin("left open");
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct span_bench b;
    pthread_t threads[8];
    int n = 3000;
    bench_begin(&b, true);
    for (int i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, mark_some, &n), 0);
    for (int i = 0; i < 40; i++) {
        usleep(500);
        bench_step(&b);
    }
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0); /* what threads left open ended with them */
    assert_int_equal(b.totals.threads, 8);
    assert_int_equal(b.totals.spans + b.totals.dropped,
                     8 * (2 * 3000 + 1) + 8 * 3000 -
                         bench_count(&b, BENCH_SPANS, 0, NRG_SPAN_COUNT));
    for (size_t i = 0; i < b.n_tracks; i++)
        assert_true(bench_count(&b, BENCH_THREADS, b.tracks[i].id, -1) >= 2);
    bench_release(&b);
}

static void test_slots_come_free(void **state)
{
    (void)state;
    struct span_bench b;
    int n = 1;
    bench_begin(&b, true);
    for (int i = 0; i < 700; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, mark_some, &n), 0);
        pthread_join(thread, NULL);
        if (i % 100 == 99)
            bench_step(&b);
    }
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0);
    assert_int_equal(b.totals.threads, 700);
    assert_int_equal(b.totals.spans, 3 * 700);
    assert_int_equal(b.totals.dropped, 0);
    bench_release(&b);
}

static pthread_barrier_t barrier;

static void *hold_a_slot(void *arg)
{
    (void)arg;
    nrg_span_begin("held");
    pthread_barrier_wait(&barrier);
    nrg_span_end();
    return NULL;
}

static void test_more_threads_than_slots(void **state)
{
    (void)state;
    struct span_bench b;
    enum { N = NRG_RING_SLOTS + 20 };
    static pthread_t threads[N];
    bench_begin(&b, true);
    pthread_barrier_init(&barrier, NULL, N);
    for (int i = 0; i < N; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, hold_a_slot, NULL), 0);
    for (int i = 0; i < N; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&barrier);
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0);
    assert_int_equal(b.totals.threads, NRG_RING_SLOTS);
    assert_int_equal(b.totals.dropped, N - NRG_RING_SLOTS);
    bench_release(&b);
}

static void test_fork(void **state)
{
    (void)state;
    struct span_bench b;
    int status;
    bench_begin(&b, true);
    uint32_t name = nrg_name_intern("before fork", NULL, NULL);
    nrg_span_begin("parent");
    pid_t child = fork();
    if (child == 0) {
        bool inherited = nrg_span_depth() != 0;
        nrg_span_begin_name(name);
        nrg_span_begin("child");
        nrg_span_end();
        nrg_span_end();
        nrg_span_end(); /* the parent's is not ours to end */
        _exit(inherited);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    nrg_span_end();
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0);
    assert_int_equal(b.n_tracks, 2);
    const struct nrg_span_track *track = bench_track_of(&b, child);
    assert_non_null(track);
    assert_int_equal(track->pid, child);
    assert_int_equal(bench_count(&b, BENCH_SPANS, track->id, -1), 4);
    assert_int_equal(bench_count(&b, BENCH_SPANS, b.tracks[0].id + b.tracks[1].id - track->id, -1),
                     2);
    bench_release(&b);
}

static void test_past_spans(void **state)
{
    (void)state;
    struct span_bench b;
    bench_begin(&b, true);
    uint32_t kernel = nrg_name_intern("gemm", "kernel", NULL);
    int64_t now = nrg_now_ns(), ms = NRG_NS_PER_MS;
    nrg_span_begin("host");
    nrg_span_end();
    bench_step(&b); /* rows later than the past spans are out already */
    nrg_span_past(kernel, "stream 7", "gpu-0", now - 90 * ms, now - 80 * ms);
    nrg_span_past(kernel, "stream 7", "gpu-0", now - 70 * ms, now - 60 * ms);
    nrg_span_past(kernel, "stream 8", "gpu-0", now - 85 * ms, now - 75 * ms);
    nrg_span_past(kernel, NULL, NULL, now - 50 * ms, now - 40 * ms);
    nrg_span_past(kernel, "stream 7", "gpu-0", now - 65 * ms, now - 55 * ms); /* begins too early */
    nrg_span_past(kernel, "stream 7", "gpu-0", now, now + 3600 * NRG_NS_PER_S); /* of the future */
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0);
    assert_int_equal(b.totals.spans, 7);
    assert_int_equal(b.totals.late, 1);
    assert_int_equal(b.n_tracks, 3);
    assert_string_equal(b.tracks[1].name, "stream 7");
    assert_string_equal(b.tracks[1].domain, "gpu-0");
    assert_string_equal(b.tracks[1].kind, "gpu");
    for (size_t i = 0, n = 0; i < b.n_rows; i++) {
        if (b.rows[i].series != 100)
            continue;
        static const int64_t expected_ms[6] = {-90, -80, -70, -60, -60, -55};
        if (n < 6)
            assert_true(b.rows[i].t_ns == now + expected_ms[n] * ms);
        n++;
    }
    assert_int_equal(bench_count(&b, 100, b.tracks[1].id, -1), 8);
    assert_int_equal(bench_count(&b, 101, b.tracks[2].id, -1), 2);
    assert_int_equal(bench_count(&b, 102, b.tracks[0].id, -1), 2);
    bench_release(&b);
}

static void test_room_for_past_spans(void **state)
{
    (void)state;
    struct span_bench b;
    assert_int_equal(nrg_span_room(), UINT_MAX); /* nobody listens */
    bench_begin(&b, true);
    uint32_t kernel = nrg_name_intern("gemm", "kernel", NULL);
    uint32_t track = nrg_track_intern("stream 7", "gpu-0");
    int64_t t_ns = nrg_now_ns() - NRG_NS_PER_S;
    unsigned room = nrg_span_room();
    assert_in_range(room, 20000, 1u << 20);
    for (unsigned i = 0; i < room; i++)
        nrg_span_past_launched(kernel, track, t_ns + i, t_ns + i + 1, 0, t_ns);
    assert_int_equal(nrg_span_room(), 0);
    bench_step(&b); /* the recorder takes them */
    assert_true(nrg_span_room() >= room);
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0);
    assert_int_equal(b.totals.spans, room);
    assert_int_equal(b.totals.dropped, 0);
    bench_release(&b);
}

/* Times of one thread come from two clocks; what it says in order must nest in order. */
static void test_past_spans_inside_an_open_one(void **state)
{
    (void)state;
    struct span_bench b;
    const int n = 2000;
    bench_begin(&b, true);
    uint32_t layer = nrg_name_intern("layer", "layer", NULL);
    for (int i = 0; i < n; i++) {
        nrg_span_begin("step");
        int64_t from = nrg_now_ns() - (i % 2 ? 200 : 0); /* a little before the step, even */
        nrg_span_past(layer, NULL, NULL, from, nrg_now_ns());
        nrg_span_end();
        if (i % 100 == 0)
            bench_step(&b);
    }
    bench_end(&b);
    assert_int_equal(bench_check(&b), 0);
    assert_int_equal(b.totals.spans, 2 * n);
    const struct bench_row *past = b.rows;
    int64_t step_ns = 0;
    for (size_t i = 0; i < b.n_rows; i++) {
        if (b.rows[i].series != BENCH_SPANS)
            continue;
        if (b.rows[i].values[NRG_S_EVENT] == NRG_SPAN_BEGIN) {
            step_ns = b.rows[i].t_ns;
            continue;
        }
        while (past->series != 100)
            past++;
        assert_true(past[0].t_ns >= step_ns && past[1].t_ns <= b.rows[i].t_ns);
        past += 2;
    }
    bench_release(&b);
}

static void test_one_recorder_after_the_other(void **state)
{
    (void)state;
    struct span_bench b;
    for (int i = 0; i < 3; i++) {
        bench_begin(&b, true);
        nrg_span_begin("again");
        nrg_span_begin("and inside"); /* still open when the recorder ends */
        bench_end(&b);
        nrg_span_end();
        nrg_span_end();
        assert_int_equal(bench_check(&b), 2);
        assert_int_equal(b.totals.spans, 2);
        bench_release(&b);
    }
}

/* Each recorder here has memory of its own; in the second, a new name comes first. */
static void test_numbers_outlive_the_recorder(void **state)
{
    (void)state;
    struct span_bench b;
    uint32_t early = nrg_name_intern("before any recorder", "module", "Linear");
    bench_begin(&b, true);
    uint32_t kept = nrg_name_intern("kept", "step", NULL);
    assert_int_equal(nrg_name_intern("before any recorder", "module", "Linear"), early);
    bench_end(&b);
    bench_release(&b);
    uint32_t between = nrg_name_intern("between two recorders", NULL, NULL);
    bench_begin(&b, true);
    nrg_span_begin("new");
    nrg_span_begin_name(kept);
    nrg_span_begin_name(early);
    nrg_span_begin_name(between);
    nrg_span_unwind(0);
    assert_int_equal(nrg_name_intern("kept", "step", NULL), kept);
    bench_step(&b);
    expect(&b, 0, NRG_SPAN_BEGIN, "new", NRG_MISSING);
    expect(&b, 1, NRG_SPAN_BEGIN, "kept", NRG_MISSING);
    expect(&b, 2, NRG_SPAN_BEGIN, "before any recorder", NRG_MISSING);
    expect(&b, 3, NRG_SPAN_BEGIN, "between two recorders", NRG_MISSING);
    bench_end(&b);
    assert_int_equal(b.totals.damaged, 0);
    bench_release(&b);
}

/* Other processes' names stand where ours would have to: no spans, rather than wrong names. */
static void test_memory_with_names_of_others_is_refused(void **state)
{
    (void)state;
    struct span_bench b;
    assert_int_not_equal(nrg_name_intern("ours", NULL, NULL), 0);
    bench_begin(&b, false);
    atomic_store(&b.segment.header->names_used, 17);
    assert_int_equal(nrg_span_client_attach(b.segment.header), -EBUSY);
    assert_int_equal(nrg_recording_active(), 0);
    bench_end(&b);
    bench_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_recorder),
        cmocka_unit_test(test_events_and_values),
        cmocka_unit_test(test_cpu_times_beside_those_of_processes),
        cmocka_unit_test(test_cpu_times_at_the_edges_of_long_spans),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_full_ring_drops_whole_spans),
        cmocka_unit_test(test_counts_of_dropped_spans_are_dropped),
        cmocka_unit_test(test_depth_beyond_all_reason),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_slots_come_free),
        cmocka_unit_test(test_more_threads_than_slots),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_past_spans),
        cmocka_unit_test(test_room_for_past_spans),
        cmocka_unit_test(test_past_spans_inside_an_open_one),
        cmocka_unit_test(test_one_recorder_after_the_other),
        cmocka_unit_test(test_numbers_outlive_the_recorder),
        cmocka_unit_test(test_memory_with_names_of_others_is_refused),
        cmocka_unit_test(test_room_for_names_ends), /* for good: last */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
