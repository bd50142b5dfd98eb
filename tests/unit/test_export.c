/* Bins and exports on recordings made by hand: edges, wraps, gaps, shares. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "energy/bins.h"
#include "record/store/writer.h"
#include "report/export/formats.h"

#define S  NRG_NS_PER_S
#define MS NRG_NS_PER_MS

struct made {
    struct tree tree;
    struct nrg_store *store;
    struct nrg_recording *recording;
    int series;
    char path[300];
};

static const struct nrg_channel package = {.name = "package-0",
                                           .quantity = NRG_ENERGY,
                                           .kind = NRG_COUNTER,
                                           .scale = 1e-6,
                                           .wrap = 30000000};
static const struct nrg_channel gpu = {
    .name = "gpu-0", .quantity = NRG_POWER, .kind = NRG_GAUGE, .scale = 1e-3};
static const struct nrg_channel busy = {
    .name = "cpu.busy", .quantity = NRG_SECONDS, .kind = NRG_COUNTER, .scale = 1e-2};

static void begin(struct made *m)
{
    static const struct nrg_driver driver = {.name = "nvml"};
    struct nrg_channel channels[] = {package, gpu, busy};
    bool wanted[] = {true, true, true};
    const struct nrg_found found = {.driver = &driver,
                                    .sensor = "test",
                                    .channels = channels,
                                    .n_channels = 3,
                                    .wanted = wanted};
    tree_init(&m->tree);
    snprintf(m->path, sizeof m->path, "%s/r.nrg", m->tree.path);
    assert_int_equal(nrg_store_create(m->path, false, &m->store, NULL), 0);
    assert_int_equal(nrg_store_sensor(m->store, &found, 500 * MS, &m->series, 1), 0);
    const struct nrg_clock_pair pair = {.mono_ns = 10 * S, .real_ns = 1000 * S};
    nrg_store_clock(m->store, &pair);
}

static void row(struct made *m, int64_t t_ns, int64_t energy, int64_t power, int64_t busy_ticks)
{
    const int64_t cells[] = {energy, power, busy_ticks};
    struct nrg_rows rows;
    nrg_rows_init(&rows, 3);
    assert_int_equal(nrg_rows_add(&rows, t_ns, 0, cells), 0);
    assert_int_equal(nrg_store_rows(m->store, m->series, &rows), 0);
    nrg_rows_release(&rows);
}

static void finish(struct made *m)
{
    assert_int_equal(nrg_store_close(m->store, NULL), 0);
    assert_int_equal(nrg_recording_open(m->path, &m->recording, NULL), 0);
}

static void end(struct made *m)
{
    nrg_recording_close(m->recording);
    tree_release(&m->tree);
}

struct kept {
    size_t n;
    struct nrg_bin bins[32];
    struct nrg_bin_cell cells[32][3];
    double cpu_s[32];
};

static int keep(void *arg, const struct nrg_bin *bin)
{
    struct kept *k = arg;
    assert_true(k->n < 32);
    k->bins[k->n] = *bin;
    memcpy(k->cells[k->n], bin->cells, sizeof k->cells[0]);
    for (size_t i = 0; i < bin->n_processes; i++)
        k->cpu_s[k->n] += bin->processes[i].cpu_s;
    k->n++;
    return 0;
}

static void bins(void **state)
{
    struct made m = {0};
    struct kept k = {0};
    (void)state;
    begin(&m);
    /* 10 J each 500 ms, wrapping at 30 J; the gauge is away between 11 and 13 s. */
    row(&m, 10 * S, 25000000, 1000, 0);
    row(&m, 10 * S + 500 * MS, 5000000, 3000, 50);
    row(&m, 11 * S, 15000000, 3000, NRG_MISSING);
    row(&m, 13 * S, 25000000, 7000, 250);
    finish(&m);
    const struct nrg_span_ns spans[] = {{10 * S, 11 * S + 500 * MS}, {12 * S, 13 * S}};
    const struct nrg_bins_options o = {.spans = spans, .n_spans = 2, .period_ns = S};
    assert_int_equal(nrg_bins_make(m.recording, &o, keep, &k, NULL), 0);
    assert_int_equal(k.n, 3);
    assert_float_equal(nrg_bin_mean(&k.cells[0][0]), 20, 1e-9);
    assert_float_equal(nrg_bin_mean(&k.cells[0][1]), 2.5, 1e-9); /* 2 W, then 3 W */
    assert_int_equal(k.bins[1].end_ns, 11 * S + 500 * MS);       /* a short last one */
    assert_int_equal(k.bins[2].span, 1);
    assert_float_equal(nrg_bin_mean(&k.cells[2][0]), 5, 1e-9);
    assert_true(isnan(nrg_bin_mean(&k.cells[2][1]))); /* a gap, not a straight line */
    assert_float_equal(nrg_bin_mean(&k.cells[2][2]), 0.8, 1e-9);
    const struct nrg_bins_options many = {.spans = spans, .n_spans = 2, .period_ns = 1};
    struct nrg_error err;
    assert_int_equal(nrg_bins_make(m.recording, &many, keep, &k, &err), -E2BIG);
    end(&m);
}

static void processes_in_bins(void **state)
{
    struct made m = {0};
    struct kept k = {0};
    (void)state;
    begin(&m);
    for (int i = 0; i <= 6; i++)
        row(&m, 10 * S + i * 500 * MS, i * 1000000, 1000, i * 50);
    int series = nrg_store_series(m.store, NRG_PROCESSES);
    const struct nrg_process_info info = {
        .id = 1, .pid = 77, .first_ns = 10 * S, .last_ns = 13 * S, .cpu_ns = 3 * S, .name = "p"};
    struct nrg_rows rows;
    nrg_rows_init(&rows, NRG_P_COLUMNS);
    const int64_t first[] = {1, S / 2, 4096, 1}, last[] = {1, 3 * S, 8192, 1};
    nrg_rows_add(&rows, 10 * S + 500 * MS, 0, first);
    nrg_rows_add(&rows, 13 * S, 0, last);
    nrg_store_rows(m.store, series, &rows);
    nrg_rows_release(&rows);
    nrg_store_process(m.store, &info);
    finish(&m);
    const struct nrg_span_ns span = {10 * S, 13 * S};
    const struct nrg_bins_options o = {
        .spans = &span, .n_spans = 1, .period_ns = S, .processes = true};
    assert_int_equal(nrg_bins_make(m.recording, &o, keep, &k, NULL), 0);
    assert_int_equal(k.n, 3);
    for (size_t i = 0; i < 3; i++)
        assert_float_equal(k.cpu_s[i], 1, 1e-9);
    end(&m);
}

static void aipowermeter_record(void **state)
{
    struct made m = {0};
    char folder[400], path[500], line[4096];
    (void)state;
    begin(&m);
    for (int i = 0; i <= 4; i++)
        row(&m, 10 * S + i * 500 * MS, i * 5000000, 50000, i * 100);
    int series = nrg_store_series(m.store, NRG_GPU_PROCESSES);
    struct nrg_rows rows;
    nrg_rows_init(&rows, NRG_G_COLUMNS);
    const int64_t other[] = {-1, 0, 5, 250000, 100, NRG_MISSING};
    nrg_rows_add(&rows, 10 * S + 500 * MS, 0, other);
    nrg_store_rows(m.store, series, &rows);
    nrg_rows_release(&rows);
    const struct nrg_run runs[] = {{1, "baseline", 9 * S, 10 * S, -1},
                                   {2, "run", 10 * S, 12 * S, 0}};
    nrg_store_run(m.store, &runs[0]);
    nrg_store_run(m.store, &runs[1]);
    finish(&m);
    setenv("TZ", "UTC", 1);
    snprintf(folder, sizeof folder, "%s/ap", m.tree.path);
    assert_int_equal(nrg_export_aipowermeter(m.recording, S, folder, false, NULL), 0);
    snprintf(path, sizeof path, "%s/power_metrics.json", folder);
    FILE *in = fopen(path, "r");
    assert_non_null(fgets(line, sizeof line, in));
    json_t *doc = json_loads(line, 0, NULL);
    double package_w = 0, gpu_w = 0, foreign = 0, own = 1;
    const char *date;
    assert_int_equal(json_unpack(doc, "{s:s, s:{s:{s:F}, s:{s:{s:F}, s:{s:{s:F}}, s:{s:F}}}}",
                                 "date", &date, "metrics", "cpu", "intel_power", &package_w, "gpu",
                                 "per_gpu_power_draw", "0", &gpu_w,
                                 "per_gpu_per_pid_utilization_absolute", "0", "5", &foreign,
                                 "per_gpu_absolute_percent_usage", "0", &own),
                     0);
    assert_string_equal(date, "1970-01-01 00:16:41.000000"); /* the end of the interval */
    assert_float_equal(package_w, 10, 1e-9);
    assert_float_equal(gpu_w, 50, 1e-9);
    assert_float_equal(foreign, 0.25, 1e-9);
    assert_float_equal(own, 0, 1e-9); /* none of our processes is on the device */
    json_decref(doc);
    assert_non_null(fgets(line, sizeof line, in));
    assert_non_null(fgets(line, sizeof line, in));
    assert_string_equal(line, "\"END OF RECORDING SEGMENT\"\n");
    assert_null(fgets(line, sizeof line, in));
    fclose(in);
    end(&m);
}

static void nothing_to_export(void **state)
{
    struct made m = {0};
    struct nrg_error err;
    (void)state;
    begin(&m);
    finish(&m);
    FILE *out = fopen("/dev/null", "w");
    assert_int_equal(nrg_export_csv_long(m.recording, out, &err), -ENODATA);
    assert_int_equal(nrg_export_json(m.recording, out, &err), -ENODATA);
    fclose(out);
    end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bins),
        cmocka_unit_test(processes_in_bins),
        cmocka_unit_test(aipowermeter_record),
        cmocka_unit_test(nothing_to_export),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
