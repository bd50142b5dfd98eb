/* See made.h. */
#include "support/cmocka.h"

#include "support/made.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/store/column.h"

#define TICK_S 0.1

static const struct nrg_driver driver = {.name = "made"};

int64_t made_ns(double t_s)
{
    return MADE_ZERO + (int64_t)llround(t_s * 1e9);
}

void made_init(struct made *m)
{
    struct nrg_error err;
    *m = (struct made){0};
    strcpy(m->path, "/tmp/nrg-made-XXXXXX");
    int fd = mkstemp(m->path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(nrg_store_create(m->path, true, &m->store, &err), 0);
    nrg_rows_init(&m->spans, NRG_S_COLUMNS);
    nrg_rows_init(&m->threads, NRG_T_COLUMNS);
    nrg_rows_init(&m->processes, NRG_P_COLUMNS);
}

static void write_series(struct made *m, enum nrg_series_kind kind, struct nrg_rows *rows)
{
    if (!rows->n)
        return;
    int series = nrg_store_series(m->store, kind);
    assert_true(series > 0);
    assert_int_equal(nrg_store_rows(m->store, series, rows), 0);
}

void made_open(struct made *m)
{
    struct nrg_error err;
    write_series(m, NRG_SPANS, &m->spans);
    write_series(m, NRG_THREADS, &m->threads);
    write_series(m, NRG_PROCESSES, &m->processes);
    assert_int_equal(nrg_store_integer(m->store, "cpus", 4), 0);
    assert_int_equal(nrg_store_close(m->store, &err), 0);
    assert_int_equal(nrg_recording_open(m->path, &m->recording, &err), 0);
}

void made_release(struct made *m)
{
    nrg_rows_release(&m->spans);
    nrg_rows_release(&m->threads);
    nrg_rows_release(&m->processes);
    nrg_recording_close(m->recording);
    unlink(m->path);
}

struct nrg_channel made_counter(const char *name)
{
    struct nrg_channel c = {.quantity = NRG_ENERGY,
                            .kind = NRG_COUNTER,
                            .scale = 1e-6,
                            .resolution = 1e-6,
                            .update_ns = NRG_NS_PER_MS,
                            .covers_cpu =
                                strncmp(name, "gpu", 3) != 0 && strncmp(name, "dram", 4) != 0};
    nrg_copy(c.name, sizeof c.name, name);
    return c;
}

struct nrg_channel made_gauge(const char *name)
{
    struct nrg_channel c = made_counter(name);
    c.quantity = NRG_POWER;
    c.kind = NRG_GAUGE;
    c.scale = c.resolution = 1e-3;
    return c;
}

void made_channel(struct made *m, const struct nrg_channel *channel, const double *t_s,
                  const int64_t *raw, size_t n)
{
    bool wanted[] = {true};
    struct nrg_channel copy = *channel;
    struct nrg_found found = {
        .driver = &driver, .channels = &copy, .n_channels = 1, .wanted = wanted};
    struct nrg_rows rows;
    int series[1];
    int64_t period =
        n > 1 ? (int64_t)llround((t_s[n - 1] - t_s[0]) / (double)(n - 1) * 1e9) : NRG_NS_PER_S;
    assert_int_equal(nrg_store_sensor(m->store, &found, period, series, 1), 0);
    nrg_rows_init(&rows, 1);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(nrg_rows_add(&rows, made_ns(t_s[i]), 0, &raw[i]), 0);
    assert_int_equal(nrg_store_rows(m->store, series[0], &rows), 0);
    nrg_rows_release(&rows);
}

void made_power(struct made *m, const struct nrg_channel *channel, double begin_s, double end_s,
                double step_s, double (*energy_j)(void *, double),
                double (*power_w)(void *, double), void *arg)
{
    size_t n = (size_t)llround((end_s - begin_s) / step_s) + 1;
    double *t_s = calloc(n, sizeof *t_s);
    int64_t *raw = calloc(n, sizeof *raw);
    assert_non_null(t_s);
    assert_non_null(raw);
    for (size_t i = 0; i < n; i++) {
        t_s[i] = begin_s + (double)i * step_s;
        double v = channel->kind == NRG_COUNTER ? energy_j(arg, t_s[i]) : power_w(arg, t_s[i]);
        raw[i] = (int64_t)llround(v / channel->scale);
    }
    made_channel(m, channel, t_s, raw, n);
    free(t_s);
    free(raw);
}

static double constant_j(void *arg, double t_s)
{
    return *(double *)arg * (t_s + 100);
}

static double constant_w(void *arg, double t_s)
{
    (void)t_s;
    return *(double *)arg;
}

void made_constant(struct made *m, const struct nrg_channel *channel, double begin_s, double end_s,
                   double step_s, double power_w)
{
    made_power(m, channel, begin_s, end_s, step_s, constant_j, constant_w, &power_w);
}

void made_busy(struct made *m, double begin_s, double end_s, double cpus)
{
    struct nrg_channel c = made_counter("cpu.busy");
    c.quantity = NRG_SECONDS;
    c.covers_cpu = false;
    made_constant(m, &c, begin_s, end_s, TICK_S, cpus);
}

void made_estimate(struct made *m, double begin_s, double end_s, double power_w, double idle_w,
                   double low, double high)
{
    static const char *const names[] = {"machine", "machine.low", "machine.high", "machine.idle"};
    const double powers_w[] = {power_w, low * power_w, high * power_w, idle_w};
    for (size_t i = 0; i < 4; i++) {
        struct nrg_channel c = made_counter(names[i]);
        c.provenance = NRG_ESTIMATED;
        c.update_ns = 100 * NRG_NS_PER_MS;
        c.covers_cpu = !i;
        nrg_copy(c.parent, sizeof c.parent, i ? names[0] : "");
        made_constant(m, &c, begin_s, end_s, TICK_S, powers_w[i]);
    }
}

int64_t made_name(struct made *m, const char *kind, const char *text)
{
    struct nrg_span_name name = {.id = ++m->names, .text = (char *)text};
    nrg_copy(name.kind, sizeof name.kind, kind);
    assert_int_equal(nrg_store_span_name(m->store, &name), 0);
    return name.id;
}

int64_t made_track(struct made *m, const char *kind, int32_t pid, int32_t tid, const char *domain)
{
    struct nrg_span_track track = {.id = ++m->tracks, .pid = pid, .tid = tid};
    nrg_copy(track.kind, sizeof track.kind, kind);
    nrg_copy(track.domain, sizeof track.domain, domain);
    assert_int_equal(nrg_store_span_track(m->store, &track), 0);
    return track.id;
}

int64_t made_path(struct made *m, int64_t parent, int64_t name)
{
    struct nrg_span_path path = {++m->paths, parent, name};
    assert_int_equal(nrg_store_span_path(m->store, &path), 0);
    return path.id;
}

void made_event(struct made *m, double t_s, int64_t track, enum nrg_span_event event, int64_t name,
                int64_t value, int64_t parent)
{
    int64_t cells[] = {track, (int64_t)event, name, value, parent};
    assert_int_equal(nrg_rows_add(&m->spans, made_ns(t_s), 0, cells), 0);
}

void made_begin(struct made *m, double t_s, int64_t track, int64_t name)
{
    made_event(m, t_s, track, NRG_SPAN_BEGIN, name, NRG_MISSING, NRG_MISSING);
}

void made_end(struct made *m, double t_s, int64_t track)
{
    made_event(m, t_s, track, NRG_SPAN_END, NRG_MISSING, NRG_MISSING, NRG_MISSING);
}

void made_span(struct made *m, double begin_s, double end_s, int64_t track, int64_t name)
{
    made_begin(m, begin_s, track, name);
    made_end(m, end_s, track);
}

void made_thread(struct made *m, int64_t track, double begin_s, double end_s, double cpus)
{
    size_t n = (size_t)llround((end_s - begin_s) / TICK_S);
    for (size_t i = 0; i <= n; i++) {
        double s = (double)i * TICK_S;
        int64_t cells[] = {track, (int64_t)llround(s * cpus * 1e9)};
        assert_int_equal(nrg_rows_add(&m->threads, made_ns(begin_s + s), 0, cells), 0);
    }
}

void made_thread_row(struct made *m, int64_t track, double t_s, double cpu_s)
{
    int64_t cells[] = {track, (int64_t)llround(cpu_s * 1e9)};
    if (m->threads.n >= NRG_CHUNK_MAX_ROWS / 2) { /* more than a chunk holds */
        write_series(m, NRG_THREADS, &m->threads);
        m->threads.n = 0;
    }
    assert_int_equal(nrg_rows_add(&m->threads, made_ns(t_s), 0, cells), 0);
}

int64_t made_process(struct made *m, int32_t pid, double begin_s, double end_s, double cpus)
{
    size_t n = (size_t)llround((end_s - begin_s) / TICK_S);
    struct nrg_process_info info = {.id = ++m->process_ids + 1,
                                    .pid = pid,
                                    .uid = -1,
                                    .first_ns = made_ns(begin_s),
                                    .last_ns = made_ns(end_s)};
    snprintf(info.name, sizeof info.name, "p%d", (int)pid);
    assert_int_equal(nrg_store_process(m->store, &info), 0);
    for (size_t i = 0; i <= n; i++) {
        double s = (double)i * TICK_S;
        int64_t cells[] = {info.id, (int64_t)llround(s * cpus * 1e9), 1 << 20, 1};
        assert_int_equal(nrg_rows_add(&m->processes, made_ns(begin_s + s), 0, cells), 0);
    }
    return info.id;
}

void made_run(struct made *m, const char *kind, double begin_s, double end_s)
{
    struct nrg_run run = {
        .id = ++m->runs, .begin_ns = made_ns(begin_s), .end_ns = made_ns(end_s), .exit_code = 0};
    nrg_copy(run.kind, sizeof run.kind, kind);
    assert_int_equal(nrg_store_run(m->store, &run), 0);
}
