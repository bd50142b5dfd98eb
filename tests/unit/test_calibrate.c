/*
 * nrg calibrate's kernels against naive loops, the team, caches of a fake tree, and the loop over
 * points with a meter of known power.
 */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "calibrate/calibration.h"

static float *numbers(size_t n, uint32_t seed)
{
    float *out = aligned_alloc(64, (n * sizeof *out + 63) / 64 * 64);
    assert_non_null(out);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1103515245u + 12345u;
        out[i] = (float)(seed >> 16 & 255) / 64 - 2;
    }
    return out;
}

static struct nrg_team *team_of(unsigned n)
{
    struct nrg_team *team = NULL;
    assert_int_equal(nrg_team_new(&team, n, NULL), 0);
    assert_int_equal(nrg_team_size(team), n);
    return team;
}

/* ---- products ---- */

static void check_gemm(struct nrg_team *team, size_t m, size_t n, size_t k)
{
    float *a = numbers(m * k, 1), *b = numbers(k * n, 2), *c = numbers(m * n, 3);
    float *room = numbers(nrg_gemm_room(team), 4);
    const struct nrg_gemm gemm = {m, n, k, a, b, c};
    nrg_gemm(team, &gemm, room);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double want = 0;
            for (size_t p = 0; p < k; p++)
                want += (double)a[i * k + p] * (double)b[p * n + j];
            assert_true(fabs(want - (double)c[i * n + j]) <= 1e-4 * (double)k);
        }
    free(a);
    free(b);
    free(c);
    free(room);
}

static void products(void **state)
{
    static const size_t sizes[][3] = {{1, 1, 1},      {6, 16, 8},     {7, 17, 9},
                                      {1, 100, 33},   {5, 700, 40},   {100, 1, 33},
                                      {97, 241, 257}, {13, 250, 300}, {200, 30, 513}};
    (void)state;
    for (unsigned threads = 1; threads <= 5; threads += 2) {
        struct nrg_team *team = team_of(threads);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_gemm(team, sizes[i][0], sizes[i][1], sizes[i][2]);
        nrg_team_free(team);
    }
}

/* ---- convolutions ---- */

static double naive_conv(const struct nrg_conv *c, const float *input, const float *weight,
                         size_t image, size_t o, size_t y, size_t x)
{
    double sum = 0;
    for (size_t i = 0; i < c->in; i++)
        for (size_t dy = 0; dy < c->kernel; dy++)
            for (size_t dx = 0; dx < c->kernel; dx++) {
                long fy = (long)(y * c->stride + dy) - (long)c->padding;
                long fx = (long)(x * c->stride + dx) - (long)c->padding;
                if (fy < 0 || fx < 0 || fy >= (long)c->height || fx >= (long)c->width)
                    continue;
                size_t at = ((image * c->in + i) * c->height + (size_t)fy) * c->width + (size_t)fx;
                sum += (double)input[at] *
                       (double)weight[((o * c->in + i) * c->kernel + dy) * c->kernel + dx];
            }
    return sum;
}

static void check_conv(struct nrg_team *team, const struct nrg_conv *c)
{
    size_t high = nrg_conv_height(c), wide = nrg_conv_width(c);
    float *input = numbers(c->batch * c->in * c->height * c->width, 5);
    float *weight = numbers(c->out * c->in * c->kernel * c->kernel, 6);
    float *output = numbers(c->batch * c->out * high * wide, 7);
    float *columns = numbers(nrg_conv_columns(c), 8), *room = numbers(nrg_gemm_room(team), 9);
    nrg_conv(team, c, input, weight, output, columns, room);
    for (size_t b = 0; b < c->batch; b++)
        for (size_t o = 0; o < c->out; o++)
            for (size_t y = 0; y < high; y++)
                for (size_t x = 0; x < wide; x++) {
                    double want = naive_conv(c, input, weight, b, o, y, x);
                    double got = (double)output[((b * c->out + o) * high + y) * wide + x];
                    assert_true(fabs(want - got) < 1e-2);
                }
    free(input);
    free(weight);
    free(output);
    free(columns);
    free(room);
}

static void convolutions(void **state)
{
    static const struct nrg_conv convs[] = {{1, 3, 11, 9, 5, 3, 1, 1},
                                            {2, 4, 12, 12, 7, 7, 2, 3},
                                            {3, 8, 6, 5, 9, 1, 1, 0},
                                            {1, 1, 5, 5, 1, 5, 1, 0}};
    (void)state;
    for (unsigned threads = 1; threads <= 2; threads++) {
        struct nrg_team *team = team_of(threads);
        for (size_t i = 0; i < sizeof convs / sizeof *convs; i++)
            check_conv(team, &convs[i]);
        nrg_team_free(team);
    }
    assert_int_equal(nrg_conv_height(&convs[1]), 6);
}

/* ---- streams ---- */

static void streams(void **state)
{
    enum { N = 16 * 7 * 3 };
    float *a = numbers(N, 1), *b = numbers(N, 2), *c = numbers(N, 3);
    (void)state;
    struct nrg_team *team = team_of(3);
    struct nrg_stream s = {
        .kind = NRG_STREAM_COPY, .floats = N, .a = a, .b = b, .c = c, .passes = 2};
    nrg_stream(team, &s);
    assert_memory_equal(a, b, N * sizeof *a);
    s.kind = NRG_STREAM_TRIAD;
    nrg_stream(team, &s);
    for (size_t i = 0; i < N; i++)
        assert_true(fabsf(a[i] - (b[i] + 3 * c[i])) < 1e-5f);
    s.kind = NRG_STREAM_WRITE;
    nrg_stream(team, &s);
    for (size_t i = 1; i < N; i++)
        assert_true(a[i] == a[0]);
    s.kind = NRG_STREAM_READ;
    nrg_stream(team, &s);
    assert_true(s.sums[2] != 0);
    nrg_team_free(team);
    free(a);
    free(b);
    free(c);
}

static void parts_are_the_whole(void **state)
{
    (void)state;
    for (size_t total = 0; total < 100; total += 7)
        for (unsigned n = 1; n < 9; n++) {
            size_t begin, end, next = 0;
            for (unsigned at = 0; at < n; at++) {
                nrg_team_part(total, 4, at, n, &begin, &end);
                assert_int_equal(begin, next);
                assert_true(begin % 4 == 0 || begin == total);
                next = end;
            }
            assert_int_equal(next, total);
        }
}

/* ---- caches and points ---- */

static void write_cache(struct tree *t, const char *index, const char *type, const char *level,
                        const char *size, const char *shared)
{
    const char *const files[] = {"type", "level", "size", "shared_cpu_list"};
    const char *const texts[] = {type, level, size, shared};
    char path[128];
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/%s/%s", index, files[i]);
        tree_write(t, path, "%s", texts[i]);
    }
}

static void points_follow_the_caches(void **state)
{
    struct tree t;
    struct nrg_caches caches;
    struct nrg_points points;
    struct nrg_points_options o = {
        .threads = 4, .families = {true, true, true}, .memory_bytes = 1 << 30};
    (void)state;
    tree_init(&t);
    nrg_caches_read(&t.ctx.root, &caches);
    assert_int_equal(caches.n, 0);
    write_cache(&t, "index0", "Data\n", "1\n", "48K\n", "0\n");
    write_cache(&t, "index1", "Instruction\n", "1\n", "32K\n", "0\n");
    write_cache(&t, "index3", "Unified\n", "3\n", "16384K\n", "0-7\n");
    write_cache(&t, "index2", "Unified\n", "2\n", "1M\n", "0,8\n");
    write_cache(&t, "index4", "Unified\n", "77\n", "nonsense\n", "x\n");
    nrg_caches_read(&t.ctx.root, &caches);
    assert_int_equal(caches.n, 3);
    assert_int_equal(caches.levels[0].size_bytes, 48 << 10);
    assert_int_equal(caches.levels[1].shared_by, 2);
    assert_int_equal(caches.levels[2].level, 3);
    assert_int_equal(caches.levels[2].shared_by, 8);
    assert_int_equal(nrg_points_make(&points, &caches, &o), 0);
    size_t memory = 0;
    for (size_t i = 0; i < points.n; i++) {
        const struct nrg_point *p = &points.items[i];
        if (p->family != NRG_POINT_STREAM) {
            assert_true(p->macs > 0 && p->read_bytes > 0 && p->written_bytes > 0);
            continue;
        }
        assert_true(p->read_bytes + p->written_bytes == (double)p->set_bytes);
        if (!strcmp(p->level, "L1")) /* four private ones */
            assert_true(p->set_bytes < 4 * 48 << 10);
        if (!strcmp(p->level, "memory"))
            assert_true(++memory && p->set_bytes > 31 << 20);
    }
    assert_int_equal(memory, 8);
    nrg_points_release(&points);
    o.memory_bytes = 1 << 20;
    assert_int_equal(nrg_points_make(&points, &caches, &o), 0);
    assert_true(points.memory_short);
    nrg_points_release(&points);
    tree_release(&t);
}

/* ---- the loop, with a machine of known power ---- */

#define IDLE_W 10.0
#define BUSY_W 50.0

struct machine {
    size_t readings, stop_after;
    double noise; /* relative, of alternating sign */
    bool fail;
};

static bool machine_stops(void *arg)
{
    const struct machine *m = arg;
    return m->stop_after && m->readings >= m->stop_after;
}

static int machine_measure(void *arg, void (*work)(void *), void *work_arg,
                           struct nrg_work_reading *reading, struct nrg_error *err)
{
    struct machine *m = arg;
    int64_t begin = nrg_now_ns();
    if (m->fail)
        return nrg_fail(err, -EIO, NULL, "the meter fell off");
    work(work_arg);
    double s = (double)(nrg_now_ns() - begin) / 1e9;
    /* The first reading is idle; this machine never cools down after. */
    bool idle = !m->readings;
    double sign = m->readings++ % 2 ? 1 : -1;
    *reading =
        (struct nrg_work_reading){.duration_s = s,
                                  .energy_j = s * (idle ? IDLE_W : BUSY_W * (1 + sign * m->noise)),
                                  .uncertainty_j = 0,
                                  .utilisation = 0};
    return 0;
}

static int calibrate(struct nrg_calibration *out, struct machine *m, struct nrg_points *points,
                     double relative_error, struct nrg_error *err)
{
    const struct nrg_calibrate_options quick = {
        .relative_error = relative_error, .window_s = 0.002, .limit_s = 0.05, .idle_s = 0.002};
    static const struct nrg_points_options o = {.threads = 1,
                                                .quick = true,
                                                .families = {[NRG_POINT_GEMM] = true},
                                                .memory_bytes = 1 << 20};
    const struct nrg_caches none = {0};
    const struct nrg_meter meter = {m, machine_measure, machine_stops, NULL};
    struct nrg_team *team = team_of(1);
    assert_int_equal(nrg_points_make(points, &none, &o), 0);
    int rc = nrg_calibrate(out, points, team, &meter, &quick, err);
    nrg_team_free(team);
    return rc;
}

static void energy_is_power_times_time(void **state)
{
    struct nrg_calibration c;
    struct nrg_points points;
    struct machine m = {0};
    (void)state;
    assert_int_equal(calibrate(&c, &m, &points, 1e9, NULL), 0);
    assert_int_equal(c.n, points.n);
    assert_false(c.interrupted);
    assert_true(fabs(c.idle_before_w - IDLE_W) < 1e-6);
    assert_true(fabs(c.idle_after_w - BUSY_W) < 1e-6);
    assert_true(fabs(c.idle_w - (IDLE_W + BUSY_W) / 2) < 1e-6);
    assert_true(c.idle_uncertainty_w >= (BUSY_W - IDLE_W) / 2 - 1e-6);
    for (size_t i = 0; i < c.n; i++) {
        const struct nrg_point_result *r = &c.results[i];
        assert_true(r->repeats == 3 && r->reached_error && r->calls >= 3);
        assert_true(fabs(r->energy_j - BUSY_W * r->time_s) < 1e-6 * r->energy_j);
        assert_true(isnan(r->above_j)); /* idle is 10 to 50 W: nothing can be said */
    }
    nrg_calibration_release(&c);
    nrg_points_release(&points);
}

static void noise_is_repeated_until_the_limit(void **state)
{
    struct nrg_calibration c;
    struct nrg_points points;
    struct machine m = {.noise = 0.5};
    (void)state;
    assert_int_equal(calibrate(&c, &m, &points, 0.03, NULL), 0);
    for (size_t i = 0; i < c.n; i++) {
        assert_false(c.results[i].reached_error);
        assert_true(c.results[i].repeats >= 3);
        assert_true(c.results[i].spread > 0.03);
        assert_true(c.results[i].uncertainty_j > 0.03 * c.results[i].energy_j);
    }
    nrg_calibration_release(&c);
    nrg_points_release(&points);
}

static void interrupted_keeps_what_is_there(void **state)
{
    struct nrg_calibration c;
    struct nrg_points points;
    struct machine m = {.stop_after = 6};
    (void)state;
    assert_int_equal(calibrate(&c, &m, &points, 0.03, NULL), 0);
    assert_true(c.interrupted);
    assert_true(c.n >= 1 && c.n < points.n);
    assert_true(isnan(c.idle_after_w));
    const struct nrg_point_result *r = &c.results[0];
    double above_j = (BUSY_W - IDLE_W) * r->time_s;
    if (above_j > r->spread * r->energy_j)
        assert_true(fabs(r->above_j - above_j) < 1e-6 * above_j);
    else /* a busy machine: calls took very different times */
        assert_true(isnan(r->above_j));
    nrg_calibration_release(&c);
    nrg_points_release(&points);
}

static void a_failing_meter_is_said(void **state)
{
    struct nrg_calibration c;
    struct nrg_points points;
    struct nrg_error err = {0};
    struct machine m = {.fail = true};
    (void)state;
    assert_int_equal(calibrate(&c, &m, &points, 0.03, &err), -EIO);
    assert_non_null(strstr(err.what, "fell off"));
    nrg_points_release(&points);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),
        cmocka_unit_test(convolutions),
        cmocka_unit_test(streams),
        cmocka_unit_test(parts_are_the_whole),
        cmocka_unit_test(points_follow_the_caches),
        cmocka_unit_test(energy_is_power_times_time),
        cmocka_unit_test(noise_is_repeated_until_the_limit),
        cmocka_unit_test(interrupted_keeps_what_is_there),
        cmocka_unit_test(a_failing_meter_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
