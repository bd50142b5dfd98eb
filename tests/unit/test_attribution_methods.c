/*
 * attribute/attribution.c: the methods, lag, and the flags of spans that are too short.
 */
#include "support/cmocka.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/attributed.h"

/* 10 W up to t = 5, then 30 W. */
static double stepped_j(void *arg, double t_s)
{
    (void)arg;
    return 10 * (t_s + 1) + (t_s > 5 ? 20 * (t_s - 5) : 0);
}

static void step_of_power(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_power(&m, &c, -1, 11, 0.01, stepped_j, NULL, NULL);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t low = made_name(&m, "span", "low"), high = made_name(&m, "span", "high"),
            both = made_name(&m, "span", "both");
    made_span(&m, 1, 3, track, low);
    made_span(&m, 4.5, 5.503, track, both);
    made_span(&m, 6, 8, track, high);
    attribute(&m, &plain, &a);
    close_to(row(&a, "low")->energy_j, 20, 1e-4, "low");
    close_to(row(&a, "high")->energy_j, 60, 1e-4, "high");
    /* It ends within an interval, and the counter says that it is up to 1 ms old. */
    close_to(row(&a, "both")->energy_j, 5 + 30 * 0.503, 0.01, "both");
    close_to(a.total_j, 200, 1e-4, "total");
    assert_int_equal(row(&a, "low")->flags, 0);
    close_to(row(&a, "low")->updates_per_call, 200, 1, "updates");
    /* Two edges within an interval of 0.01 s that is like its neighbours: rounding and phase. */
    assert_true(row(&a, "low")->high_j - row(&a, "low")->low_j < 0.1);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* 10 W, from 5.03 to 5.09 nothing, then 30 W. */
static double paused_j(void *arg, double t_s)
{
    (void)arg;
    return 10 * (fmin(t_s, 5.03) + 1) + 30 * fmax(t_s - 5.09, 0);
}

/* Edges cut intervals of 0.1 s: what the intervals around them draw says whose the energy is. By
 * time, each span would be off by 0.2 J and more. */
static void edges_by_neighbours(void **state)
{
    double (*const energy_j[])(void *, double) = {stepped_j, paused_j};
    (void)state;
    for (int paused = 0; paused < 2; paused++) {
        struct made m;
        struct nrg_attribution a;
        struct nrg_channel c = made_counter("package-0");
        c.update_ns = 0; /* always fresh */
        made_init(&m);
        made_power(&m, &c, -1.05, 11, 0.1, energy_j[paused], NULL, NULL);
        made_run(&m, "run", 0, 10);
        int64_t track = made_track(&m, "thread", 7, 7, "");
        made_span(&m, 1, paused ? 5.03 : 5, track, made_name(&m, "span", "low"));
        made_span(&m, paused ? 5.09 : 5, 9, track, made_name(&m, "span", "high"));
        attribute(&m, &plain, &a);
        close_to(row(&a, "low")->energy_j, paused ? 40.3 : 40, 1e-4, "low");
        close_to(row(&a, "high")->energy_j, paused ? 117.3 : 120, 1e-4, "high");
        assert_true(row(&a, "low")->high_j - row(&a, "low")->low_j < 0.1);
        nrg_attribution_release(&a);
        made_release(&m);
    }
}

/* One reading of a gauge holds for one period to each side. */
static void one_sample(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_gauge("machine");
    static const double t_s[] = {5};
    static const int64_t raw[] = {10000};
    (void)state;
    made_init(&m);
    made_channel(&m, &c, t_s, raw, 1);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "log", 0, 0, "");
    made_span(&m, 4.5, 5.5, track, made_name(&m, "layer", "near"));
    made_span(&m, 8, 9, track, made_name(&m, "layer", "far"));
    attribute(&m, &plain, &a);
    close_to(row(&a, "near")->energy_j, 10, 1e-6, "near");
    assert_true(isnan(row(&a, "far")->energy_j));
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Readings 10, 20, 30 W at 1, 2, 3 s; windows with two, one and none of them. */
static void nearest_and_window(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_gauge("machine");
    struct nrg_attribution_options o = plain;
    static const double t_s[] = {1, 2, 3};
    static const int64_t raw[] = {10000, 20000, 30000};
    (void)state;
    made_init(&m);
    made_channel(&m, &c, t_s, raw, 3);
    made_run(&m, "run", 1, 3);
    int64_t track = made_track(&m, "log", 0, 0, "");
    made_span(&m, 1, 2, track, made_name(&m, "layer", "two"));
    made_span(&m, 2.25, 2.5, track, made_name(&m, "layer", "none"));
    made_span(&m, 2.75, 3.25, track, made_name(&m, "layer", "one"));
    o.method = NRG_METHOD_WINDOW;
    attribute(&m, &o, &a);
    close_to(row(&a, "two")->energy_j, 15, 1e-9, "both ends count");
    close_to(row(&a, "one")->energy_j, 15, 1e-9, "one");
    assert_true(isnan(row(&a, "none")->energy_j));
    nrg_attribution_release(&a);
    o.method = NRG_METHOD_NEAREST;
    attribute(&m, &o, &a);
    close_to(row(&a, "two")->energy_j, 20, 1e-9, "at the end");
    close_to(row(&a, "none")->energy_j, 5, 1e-9, "the earlier of two");
    close_to(row(&a, "one")->energy_j, 15, 1e-9, "after the last");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* A first-order sensor, tau 0.4 s, while power steps from 10 to 30 W at 5 s. */
static double lagged_w(void *arg, double t_s)
{
    (void)arg;
    return t_s < 5 ? 10 : 30 - 20 * exp(-(t_s - 5) / 0.4);
}

static void lag_is_corrected(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_gauge("machine");
    struct nrg_attribution_options o = plain;
    (void)state;
    c.scale = 1e-6;
    c.resolution = 1e-6;
    c.lag_ns = 400 * NRG_NS_PER_MS;
    made_init(&m);
    made_power(&m, &c, -1, 11, 0.002, NULL, lagged_w, NULL);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "log", 0, 0, "");
    made_span(&m, 4, 5, track, made_name(&m, "layer", "low"));
    made_span(&m, 5, 5.5, track, made_name(&m, "layer", "high"));
    o.lag = NRG_LAG_NONE;
    attribute(&m, &o, &a);
    double shown = 30 * 0.5 - 20 * 0.4 * (1 - exp(-0.5 / 0.4));
    close_to(row(&a, "high")->energy_j, shown, 0.01, "as the sensor shows it");
    nrg_attribution_release(&a);
    o.lag = NRG_LAG_AUTO;
    attribute(&m, &o, &a);
    assert_string_equal(a.domains[0].lag_source, "driver");
    close_to(row(&a, "low")->energy_j, 10, 0.05, "before the step");
    close_to(row(&a, "high")->energy_j, 15, 0.05, "after the step");
    nrg_attribution_release(&a);
    o.lag = NRG_LAG_GIVEN;
    o.lag_s = 0.8;
    attribute(&m, &o, &a);
    assert_string_equal(a.domains[0].lag_source, "given");
    close_to(a.domains[0].lag_s, 0.8, 0, "given");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Layers of 1 to 5 ms in steps, 20, 50 and 80 W, 10 W between them, read every 20 ms. */
struct layered {
    double t_s[20001], energy_j[20001];
    size_t n, at;
};

static double layered_j(void *arg, double t_s)
{
    struct layered *l = arg;
    while (l->at + 2 < l->n && l->t_s[l->at + 1] < t_s)
        l->at++;
    double part = (t_s - l->t_s[l->at]) / (l->t_s[l->at + 1] - l->t_s[l->at]);
    return l->energy_j[l->at] + part * (l->energy_j[l->at + 1] - l->energy_j[l->at]);
}

static void layered_add(struct layered *l, double length_s, double power_w)
{
    l->t_s[l->n + 1] = l->t_s[l->n] + length_s;
    l->energy_j[l->n + 1] = l->energy_j[l->n] + length_s * power_w;
    l->n++;
}

/* 10 W and 30 W by turns, 3 s each, seen through a first-order sensor of tau; 0: as it is. */
static double turns_w(void *arg, double t_s)
{
    double tau = *(double *)arg, w = 10;
    for (int k = 1; k * 3 - 1 < t_s; k++) {
        double to = k % 2 ? 30 : 10, s = fmin(3, t_s - (k * 3 - 1));
        w = tau > 0 ? to + (w - to) * exp(-s / tau) : to;
    }
    return w;
}

static void lag_is_found_in_readings(void **state)
{
    static const double taus[] = {0, 0.3, 0.8};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct made m;
        struct nrg_attribution a;
        struct nrg_channel c = made_gauge("machine");
        double tau = taus[i];
        made_init(&m);
        made_power(&m, &c, -1, 31, 0.01, NULL, turns_w, &tau);
        made_run(&m, "run", 0, 30);
        int64_t track = made_track(&m, "log", 0, 0, "");
        made_span(&m, 5, 5.5, track, made_name(&m, "layer", "low"));
        attribute(&m, &plain, &a);
        assert_string_equal(a.domains[0].lag_source, tau > 0 ? "fitted" : "none");
        close_to(a.domains[0].lag_s, tau, 0.05 * tau, "lag");
        /* At 5 s power falls to 10 W. */
        if (tau > 0)
            close_to(row(&a, "low")->energy_j, 5, 0.3, "with the lag corrected");
        nrg_attribution_release(&a);
        made_release(&m);
    }
}

/* Two streams that always run together are one number, and a row around one of them may have
 * anything from nothing to all of it. */
static void classes_that_hang_together(void **state)
{
    struct layered *l = calloc(1, sizeof *l);
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    uint32_t seed = 777;
    double truth = 0;
    (void)state;
    o.method = NRG_METHOD_REGRESS;
    made_init(&m);
    int64_t track = made_track(&m, "log", 0, 0, ""), other = made_track(&m, "log", 0, 0, ""),
            one = made_name(&m, "layer", "one"), two = made_name(&m, "layer", "two"),
            around = made_name(&m, "layer", "around");
    layered_add(l, 1, 10);
    for (int i = 0; i < 3000; i++) {
        seed = seed * 1664525 + 1013904223;
        double length = 0.001 + 0.003 * (seed >> 8) / (1 << 24), at = l->t_s[l->n];
        layered_add(l, length, 40);
        made_span(&m, at, at + length, track, one);
        made_begin(&m, at, other, around);
        made_span(&m, at, at + length, other, two);
        made_end(&m, at + length, other);
        truth += 40 * length;
        seed = seed * 1664525 + 1013904223;
        layered_add(l, 0.0005 + 0.004 * (seed >> 8) / (1 << 24), 10);
    }
    layered_add(l, 1, 10);
    double end = floor(l->t_s[l->n] / 0.1) * 0.1;
    made_power(&m, &c, 0, end, 0.1, layered_j, NULL, l);
    made_run(&m, "run", 0, end);
    attribute(&m, &o, &a);
    assert_int_equal(a.n_rows, 3);
    assert_int_equal(a.rows[0].flags & NRG_ROW_MERGED, NRG_ROW_MERGED);
    assert_int_equal(a.rows[2].flags & NRG_ROW_MERGED, NRG_ROW_MERGED);
    assert_int_equal(a.rows[2].merged_with, 0);
    assert_int_equal(a.rows[2].flags & NRG_ROW_UNCOVERED, 0);
    assert_true(isnan(a.rows[2].energy_j));
    close_to(a.rows[0].energy_j, truth, 0.02 * truth, "both");
    assert_true(a.rows[1].flags & NRG_ROW_UNRESOLVED);
    close_to(a.rows[1].low_j, 0, 0.001 * truth, "around the second, at least");
    assert_true(a.rows[1].high_j > truth && a.rows[1].high_j < 1.5 * truth);
    nrg_attribution_release(&a);
    made_release(&m);
    free(l);
}

/* 20 ms of work in every second, read once a second: the interval must not be confident. */
static void short_spans_are_unresolved(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 101, 1, 10);
    made_run(&m, "run", 0, 100);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t layer = made_name(&m, "layer", "short"), all = made_name(&m, "phase", "all");
    made_begin(&m, 0, track, all);
    for (int i = 0; i < 100; i++)
        made_span(&m, i + 0.3, i + 0.32, track, layer);
    made_end(&m, 100, track);
    attribute(&m, &plain, &a);
    const struct nrg_attribution_row *r = row(&a, "short");
    close_to(r->energy_j, 20, 0.01, "interpolated");
    assert_int_equal(r->flags & NRG_ROW_UNRESOLVED, NRG_ROW_UNRESOLVED);
    /* It may have used nothing, or as much as the ceiling of four times the power allows. */
    assert_true(r->low_j < 1 && r->high_j > 75);
    close_to(r->updates_per_call, 0.02, 1e-3, "updates per call");
    /* What holds whole intervals is known. */
    assert_int_equal(row(&a, "all")->flags & NRG_ROW_UNRESOLVED, 0);
    close_to(row(&a, "all")->low_j, 1000, 5, "all, low");
    nrg_attribution_release(&a);
    made_release(&m);
}

static void regression_tells_layers_apart(void **state)
{
    static const double power_w[] = {20, 50, 80};
    struct layered *l = calloc(1, sizeof *l);
    double truth[3] = {0};
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    uint32_t seed = 12345;
    (void)state;
    o.method = NRG_METHOD_AUTO;
    o.idle = NRG_IDLE_APART;
    made_init(&m);
    int64_t track = made_track(&m, "thread", 7, 7, ""), step = made_name(&m, "step", "step"),
            layers[] = {made_name(&m, "layer", "a"), made_name(&m, "layer", "b"),
                        made_name(&m, "layer", "c")};
    layered_add(l, 1, 10);
    for (int i = 0; i < 2000; i++) {
        made_event(&m, l->t_s[l->n], track, NRG_SPAN_BEGIN, step, i, NRG_MISSING);
        for (int k = 0; k < 3; k++) {
            seed = seed * 1664525 + 1013904223;
            double length = 0.001 + 0.004 * (seed >> 8) / (1 << 24), at = l->t_s[l->n];
            layered_add(l, length, power_w[k]);
            truth[k] += length * power_w[k];
            made_span(&m, at, l->t_s[l->n], track, layers[k]);
        }
        made_end(&m, l->t_s[l->n], track);
        seed = seed * 1664525 + 1013904223;
        layered_add(l, 0.0005 + 0.003 * (seed >> 8) / (1 << 24), 10);
    }
    double end = floor(l->t_s[l->n] / 0.02) * 0.02;
    made_power(&m, &c, 0, end, 0.02, layered_j, NULL, l);
    made_run(&m, "run", 0, end);
    attribute(&m, &o, &a);
    assert_int_equal(a.method, NRG_METHOD_REGRESS);
    assert_non_null(strstr(a.domains[0].why, "updates of the sensor"));
    static const char *const names[] = {"a", "b", "c"};
    for (int k = 0; k < 3; k++) {
        const struct nrg_attribution_row *r = row(&a, names[k]);
        close_to(r->energy_j, truth[k] * (1 - 10 / power_w[k]), 0.01 * truth[k], names[k]);
        assert_int_equal(r->method, NRG_METHOD_REGRESS);
        assert_int_equal(r->flags & NRG_ROW_UNRESOLVED, 0);
    }
    close_to(a.domains[0].idle_w, 10, 0.2, "idle");
    assert_true(fabs(a.unattributed_j) < 0.01 * a.total_j);
    nrg_attribution_release(&a);
    o.idle = NRG_IDLE_SHARE;
    attribute(&m, &o, &a);
    for (int k = 0; k < 3; k++)
        close_to(row(&a, names[k])->energy_j, truth[k], 0.01 * truth[k], "with its idle");
    nrg_attribution_release(&a);
    o.by = NRG_BY_STEP;
    attribute(&m, &o, &a);
    assert_int_equal(a.n_rows, 2000);
    double all = 0;
    for (size_t i = 0; i < a.n_rows; i++)
        all += isnan(a.rows[i].energy_j) ? 0 : a.rows[i].energy_j; /* beyond the last reading */
    close_to(all, truth[0] + truth[1] + truth[2], 0.01 * all, "sum of the steps");
    nrg_attribution_release(&a);
    made_release(&m);
    free(l);
}

/* The real pair of a power log and layer times, if it is there: see its README for the numbers. */
#define LENET "/data/jetson/jetson/power_logging/raw_data_pruned/prebuilt_models/lenet/"

static FILE *open_shared(const char *name)
{
    const char *shared = getenv("NRG_SHARED");
    char path[512];
    snprintf(path, sizeof path, "%s" LENET "%s", shared ? shared : NRG_TEST_SOURCE "/../../shared",
             name);
    return fopen(path, "r");
}

/* 2025-01-28 13:38:26.003326 is 1738071506.003326; the log's day is that day. */
#define LENET_DAY INT64_C(1738022400)
#define LENET_T0  1738071500.0

static void read_power_log(struct made *m, FILE *file)
{
    struct nrg_channel c = made_gauge("machine");
    double t_s[512], mv, ma;
    int64_t raw[512];
    size_t n = 0;
    int hour, minute, second, us;
    c.scale = c.resolution = 1e-6;
    c.update_ns = 0;
    while (n < 512 && fscanf(file, "20250128-%d:%d:%d.%d,%lf,%lf\n", &hour, &minute, &second, &us,
                             &mv, &ma) == 6) {
        t_s[n] = (double)(LENET_DAY + hour * 3600 + minute * 60 + second) - LENET_T0 + us * 1e-6;
        raw[n++] = (int64_t)llround(mv * ma);
    }
    assert_int_equal(n, 410);
    made_channel(m, &c, t_s, raw, n);
    made_run(m, "run", t_s[0], t_s[n - 1]);
}

static size_t read_layers(struct made *m, FILE *file)
{
    json_error_t error;
    json_t *cycles = json_loadf(file, 0, &error), *cycle, *layer;
    int64_t track = made_track(m, "log", 0, 0, ""), step = made_name(m, "cycle", "cycle"), names[8];
    const char *key, *texts[8];
    size_t i, n = 0, n_names = 0;
    assert_non_null(cycles);
    json_array_foreach(cycles, i, cycle)
    {
        double first = 0, last = 0;
        json_object_foreach(cycle, key, layer)
        {
            double begin = json_number_value(json_object_get(layer, "start_time")) - LENET_T0;
            double end = begin + json_number_value(json_object_get(layer, "elapsed_time")) * 1e-3;
            size_t k = 0;
            while (k < n_names && strcmp(texts[k], key) != 0)
                k++;
            if (k == n_names) {
                names[n_names] = made_name(m, "layer", key);
                texts[n_names++] = key;
            }
            if (first == 0)
                made_event(m, first = begin, track, NRG_SPAN_BEGIN, step, (int64_t)i + 1,
                           NRG_MISSING);
            made_span(m, begin, end, track, names[k]);
            last = end;
            n++;
        }
        made_end(m, last, track);
    }
    json_decref(cycles);
    return n;
}

static double layers_j(const struct nrg_attribution *a)
{
    double sum = 0;
    for (size_t i = 0; i < a->n_rows; i++)
        if (!strcmp(a->rows[i].kind, "layer") && !isnan(a->rows[i].energy_j))
            sum += a->rows[i].energy_j;
    return sum;
}

static void check_windows(const struct nrg_attribution *a)
{
    static const struct {
        int64_t cycle;
        const char *layer;
        double power_uw;
    } known[] = {{2, "_feat_conv1", 8653824},     {30, "_feat_conv2", 8333312},
                 {40, "_classifer_fc1", 8213120}, {50, "_feat_conv2", 8132992},
                 {54, "_classifer_fc2", 8092928}, {60, "_feat_conv2", 8052864},
                 {61, "_feat_conv2", 8052864},    {70, "_feat_conv1", 8012800}};
    size_t found = 0;
    for (size_t i = 0; i < a->n_rows; i++) {
        const struct nrg_attribution_row *r = &a->rows[i];
        if (strcmp(r->kind, "layer") != 0 || isnan(r->energy_j))
            continue;
        assert_true(found < 8);
        assert_int_equal(a->rows[r->parent].number, known[found].cycle);
        assert_string_equal(r->name, known[found].layer);
        close_to(r->energy_j / r->time_s * 1e6, known[found].power_uw, 1, r->name);
        found++;
    }
    assert_int_equal(found, 8);
}

static void lenet(void **state)
{
    FILE *power = open_shared("lenet_power_log.rows600-1009.log"),
         *layers = open_shared("lenet_layerwise_latency.first70cycles.json");
    struct nrg_attribution_options o = plain;
    struct nrg_attribution a;
    struct made m;
    (void)state;
    if (!power || !layers)
        skip();
    made_init(&m);
    read_power_log(&m, power);
    assert_int_equal(read_layers(&m, layers), 350);
    fclose(power);
    fclose(layers);
    o.lag = NRG_LAG_NONE;
    attribute(&m, &o, &a);
    close_to(layers_j(&a), 0.186382, 0.00005, "as the sensor shows it");
    nrg_attribution_release(&a);
    o.lag = NRG_LAG_GIVEN;
    o.lag_s = 0.42;
    attribute(&m, &o, &a);
    close_to(layers_j(&a), 0.1647, 0.0002, "with the lag given");
    nrg_attribution_release(&a);
    o.lag = NRG_LAG_AUTO;
    attribute(&m, &o, &a);
    assert_string_equal(a.domains[0].lag_source, "fitted");
    close_to(a.domains[0].lag_s, 0.42, 0.05, "lag");
    close_to(layers_j(&a), 0.165, 0.003, "with the lag found");
    /* No layer is resolved by this sensor, and each row says so. */
    for (size_t i = 0; i < a.n_rows; i++)
        if (!strcmp(a.rows[i].kind, "layer"))
            assert_int_equal(a.rows[i].flags & NRG_ROW_UNRESOLVED, NRG_ROW_UNRESOLVED);
    nrg_attribution_release(&a);
    o.method = NRG_METHOD_WINDOW;
    o.by = NRG_BY_CYCLE;
    attribute(&m, &o, &a);
    check_windows(&a);
    nrg_attribution_release(&a);
    o.method = NRG_METHOD_NEAREST;
    attribute(&m, &o, &a);
    close_to(layers_j(&a), 0.1864, 0.00005, "nearest");
    nrg_attribution_release(&a);
    made_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_of_power),
        cmocka_unit_test(edges_by_neighbours),
        cmocka_unit_test(one_sample),
        cmocka_unit_test(nearest_and_window),
        cmocka_unit_test(lag_is_corrected),
        cmocka_unit_test(lag_is_found_in_readings),
        cmocka_unit_test(classes_that_hang_together),
        cmocka_unit_test(short_spans_are_unresolved),
        cmocka_unit_test(regression_tells_layers_apart),
        cmocka_unit_test(lenet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
