/*
 * What is kept small comes back as it was: readings of a channel (energy/packed.c) and slices of
 * activity (attribute/regress/rows/slice_log.c), beside plain arrays that are filled in the plain
 * way.
 */
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/regress/rows/slice_log.h"
#include "energy/packed.h"
#include "support/cmocka.h"

#define MOST 2000

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Of any size: a few bits, or all of them. */
static int64_t any_number(uint64_t *state, unsigned most_bits)
{
    unsigned bits = (unsigned)(next_random(state) % (most_bits + 1));
    return bits ? (int64_t)(next_random(state) >> (64 - bits)) : 0;
}

struct plain {
    size_t n;
    int64_t t_ns[MOST];
    double sum_j[MOST], gauge[MOST];
    bool gap[MOST];
};

static void add_plain(struct plain *to, bool gauge, double scale, int64_t t_ns, int64_t raw,
                      bool gap)
{
    size_t i = to->n++;
    to->t_ns[i] = t_ns;
    to->gauge[i] = gauge ? (double)raw * scale : 0;
    to->gap[i] = false;
    to->sum_j[i] = 0;
    if (!i)
        return;
    double s = (double)(t_ns - to->t_ns[i - 1]) / 1e9;
    double step_j = gauge ? (to->gauge[i] + to->gauge[i - 1]) / 2 * s : (double)raw * scale;
    to->gap[i - 1] = gap;
    to->sum_j[i] = to->sum_j[i - 1] + (gap ? 0 : step_j);
}

/* To the last bit, read in order and out of it. */
static void assert_same(struct nrg_packed *points, const struct plain *plain, uint64_t *state)
{
    for (size_t k = 0; k < 2 * plain->n; k++) {
        size_t i = k < plain->n ? k : (size_t)(next_random(state) % plain->n);
        const struct nrg_point_view *v = nrg_packed_at(points, i);
        size_t at = i % NRG_POINT_BLOCK;
        assert_int_equal(v->t_ns[at], plain->t_ns[i]);
        assert_true(v->sum_j[at] == plain->sum_j[i]);
        assert_true(v->gauge[at] == plain->gauge[i]);
        assert_int_equal(v->gap[at], plain->gap[i]);
        assert_int_equal(nrg_packed_up_to(points, plain->t_ns[i]), i + 1);
        assert_int_equal(nrg_packed_up_to(points, plain->t_ns[i] - 1), i);
    }
}

static void readings_come_back(void **state)
{
    static struct plain plain;
    uint64_t random = 20261117;
    (void)state;
    for (unsigned trial = 0; trial < 200; trial++) {
        bool gauge = trial % 2;
        unsigned time_bits = trial % 41, raw_bits = gauge ? trial % 63 : trial % 64;
        size_t n = 1 + (size_t)(next_random(&random) % (trial % 10 ? 300 : MOST));
        double scale = ldexp(1.3, (int)(trial % 30) - 20);
        struct nrg_packed points;
        int64_t t_ns = any_number(&random, 50);
        plain.n = 0;
        assert_int_equal(nrg_packed_init(&points, gauge, scale, NULL), 0);
        for (size_t i = 0; i < n; i++) {
            bool gap = i && trial % 3 == 0 && !(next_random(&random) % 50);
            int64_t raw = gap && !gauge ? 0 : any_number(&random, raw_bits);
            if (gauge && next_random(&random) % 2)
                raw = -raw;
            t_ns += 1 + any_number(&random, time_bits);
            assert_int_equal(nrg_packed_add(&points, t_ns, raw, gap), 0);
            add_plain(&plain, gauge, scale, t_ns, raw, gap);
        }
        assert_int_equal(nrg_packed_finish(&points), 0);
        assert_same(&points, &plain, &random);
        nrg_packed_release(&points);
    }
}

/* Three channels of one series, the later two packed like the first; each lacks some readings, in
 * every second trial, and the first goes before the others are looked at. */
static void channels_share_times(void **state)
{
    static struct plain plain[3];
    uint64_t random = 99;
    (void)state;
    for (unsigned trial = 0; trial < 60; trial++) {
        struct nrg_packed points[3];
        int64_t t_ns = any_number(&random, 50);
        size_t n = 1 + (size_t)(next_random(&random) % 2000);
        for (size_t c = 0; c < 3; c++) {
            plain[c].n = 0;
            assert_int_equal(nrg_packed_init(&points[c], c == 1, 0.5, c ? &points[0] : NULL), 0);
        }
        for (size_t i = 0; i < n; i++) {
            t_ns += 1 + any_number(&random, trial % 30);
            for (size_t c = 0; c < 3; c++) {
                int64_t raw = any_number(&random, 20);
                if (trial % 2 && !(next_random(&random) % 400))
                    continue;
                assert_int_equal(nrg_packed_add(&points[c], t_ns, raw, false), 0);
                add_plain(&plain[c], c == 1, 0.5, t_ns, raw, false);
            }
        }
        for (size_t c = 0; c < 3; c++)
            assert_int_equal(nrg_packed_finish(&points[c]), 0);
        for (size_t c = 0; c < 3; c++) {
            assert_same(&points[c], &plain[c], &random);
            nrg_packed_release(&points[c]);
        }
    }
}

/* Of a sanitizer's heap mallinfo2 knows nothing. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t heap_used(void)
{
    if (__sanitizer_get_current_allocated_bytes)
        return __sanitizer_get_current_allocated_bytes();
    struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd;
}

/* Heap that four channels of late readings take, packed like the first of them, or each by itself.
 */
static size_t heap_of_channels(bool alike)
{
    struct nrg_packed points[4];
    uint64_t random = 5;
    int64_t t_ns = 0;
    size_t before = heap_used();
    for (size_t c = 0; c < 4; c++)
        assert_int_equal(nrg_packed_init(&points[c], false, 1, c && alike ? points : NULL), 0);
    for (size_t i = 0; i < 200000; i++) {
        t_ns += 900000 + any_number(&random, 17);
        for (size_t c = 0; c < 4; c++)
            assert_int_equal(nrg_packed_add(&points[c], t_ns, (int64_t)(i % 50), false), 0);
    }
    for (size_t c = 0; c < 4; c++)
        assert_int_equal(nrg_packed_finish(&points[c]), 0);
    size_t after = heap_used();
    for (size_t c = 0; c < 4; c++)
        nrg_packed_release(&points[c]);
    return after - before;
}

static void shared_times_are_kept_once(void **state)
{
    (void)state;
    size_t each = heap_of_channels(false), alike = heap_of_channels(true);
    /* 3 bytes of time for each reading of the three that need none */
    assert_in_range(each - alike, 3 * 3 * 190000, 3 * 3 * 210000);
}

static void nothing_is_nothing(void **state)
{
    struct nrg_packed points;
    (void)state;
    assert_int_equal(nrg_packed_init(&points, false, 1, NULL), 0);
    assert_int_equal(nrg_packed_finish(&points), 0);
    assert_int_equal(nrg_packed_up_to(&points, INT64_MAX), 0);
    nrg_packed_release(&points);
    nrg_packed_release(&points);
}

static struct nrg_slice some_slice(uint64_t *state, const struct nrg_slice *last)
{
    static const double rates[] = {0, -0.0, 1, 0.25, -3.5};
    static const float calls[] = {0, 1, 0.5f, 0.001f};
    struct nrg_slice s = *last;
    s.begin_ns = next_random(state) % 2 && last->end_ns >= last->begin_ns
                     ? last->end_ns
                     : last->begin_ns + any_number(state, 40);
    s.end_ns = s.begin_ns + 1 + any_number(state, 40);
    s.rate = rates[next_random(state) % 5];
    s.calls = calls[next_random(state) % 4];
    s.class_ = (uint32_t)any_number(state, 32);
    s.pool = (uint32_t)(next_random(state) % 3);
    s.cell += (uint32_t)(next_random(state) % 2);
    s.group = (uint32_t)any_number(state, 32);
    s.track = next_random(state) % 3 ? s.track : (uint32_t)any_number(state, 32);
    return s;
}

static void slices_come_back(void **state)
{
    static struct nrg_slice slices[MOST];
    struct nrg_slice_log log = {0};
    struct nrg_slice_reader reader;
    struct nrg_slice last = {.begin_ns = -1000, .end_ns = -1000};
    uint64_t random = 7;
    (void)state;
    nrg_slice_reader_init(&reader, &log);
    assert_false(nrg_slice_read(&reader));
    for (size_t i = 0; i < MOST; i++) {
        slices[i] = last = some_slice(&random, &last);
        assert_int_equal(nrg_slice_log_add(&log, &slices[i]), 0);
    }
    for (int pass = 0; pass < 2; pass++) {
        nrg_slice_reader_init(&reader, &log);
        for (size_t i = 0; i < MOST; i++) {
            const struct nrg_slice *was = &slices[i], *is = &reader.slice;
            assert_true(nrg_slice_read(&reader));
            assert_int_equal(is->begin_ns, was->begin_ns);
            assert_int_equal(is->end_ns, was->end_ns);
            assert_memory_equal(&is->rate, &was->rate, sizeof is->rate);
            assert_memory_equal(&is->calls, &was->calls, sizeof is->calls);
            assert_int_equal(is->class_, was->class_);
            assert_int_equal(is->pool, was->pool);
            assert_int_equal(is->cell, was->cell);
            assert_int_equal(is->group, was->group);
            assert_int_equal(is->track, was->track);
        }
        assert_false(nrg_slice_read(&reader));
    }
    nrg_slice_log_release(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readings_come_back),         cmocka_unit_test(channels_share_times),
        cmocka_unit_test(shared_times_are_kept_once), cmocka_unit_test(nothing_is_nothing),
        cmocka_unit_test(slices_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
