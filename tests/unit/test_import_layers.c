/* Readers of layer times on streams in memory, placing by clock pairs and by power, the join. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "import/align.h"
#include "import/internal.h"
#include "import/join.h"
#include "import/layers/log.h"
#include "import/layers/read.h"
#include "import/log.h"
#include "record/read/layer_runs.h"
#include "record/store/writer.h"

struct reading {
    struct nrg_import_join_options options;
    struct nrg_import_layers file;
    struct nrg_layer_import im;
    struct nrg_error err;
};

static int read_text(struct reading *r, const char *text)
{
    *r = (struct reading){.options = {.idle_w = NAN}, .file = {.path = "layers"}};
    r->im.options = &r->options;
    r->im.file = &r->file;
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(in);
    int rc = nrg_layer_import_stream(&r->im, in, "layers", &r->err);
    fclose(in);
    return rc;
}

static void release(struct reading *r)
{
    nrg_layer_import_release(&r->im);
    free(r->file.notes);
}

static bool noted(const struct reading *r, const char *text)
{
    for (size_t i = 0; i < r->file.n_notes; i++)
        if (strstr(r->file.notes[i], text))
            return true;
    return false;
}

/* "kind name begin-end" of the n-th span as it was collected. */
static const char *span_text(const struct reading *r, size_t n)
{
    static char text[300];
    const struct nrg_span_record *s = &r->im.sink->records[n];
    struct nrg_span_name name = nrg_span_sink_name_of(r->im.sink, s->name);
    snprintf(text, sizeof text, "%s %.100s %lld-%lld", name.kind, name.text, (long long)s->begin_ns,
             (long long)s->end_ns);
    return text;
}

static void recognises(void **state)
{
    static const struct {
        const char *text, *format;
    } cases[] = {
        {"{\"a\": [1.5]}", "tensorrt-profiler"},
        {"{\"a\": [[1.5, \"20240101-00:00:00\"]]}", "tensorrt-profiler"},
        {"[{\"a\": {\"elapsed_time\": 1, \"start_time\": 1e9}}]", "torch-layerwise"},
        {"[{\"count\": 1}, {\"name\": \"a\", \"timeMs\": 1, \"averageMs\": 1}]", "trtexec-profile"},
        {"[{\"startComputeMs\": 1, \"endComputeMs\": 2}]", "trtexec-times"},
        {"[{\"cat\" : \"Node\",\"ph\" : \"X\",\"dur\" :1,\"ts\" :2,\"name\" :\"a\"}]",
         "onnxruntime-profile"},
        {"[{\"ph\": \"X\", \"name\": \"a\", \"ts\": 1, \"dur\": 2}]", "chrome-trace"},
        {"{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"a\", \"ts\": 1, \"dur\": 2}]}",
         "chrome-trace"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct reading r;
        int rc = read_text(&r, cases[i].text);
        if (rc)
            print_message("# %s: %s\n", cases[i].text, r.err.what);
        assert_int_equal(rc, 0);
        assert_string_equal(r.file.format, cases[i].format);
        release(&r);
    }
}

static void trt_windows(void **state)
{
    struct reading r;
    (void)state;
    assert_int_equal(read_text(&r, "{\"a\": [[0.5, \"20240101-00:00:01\"]],"
                                   " \"b\": [[\"20240101-00:00:02.000001\", 0.250254]]}"),
                     0);
    assert_true(r.file.wall_clock);
    assert_int_equal(r.file.cycles, 1);
    assert_string_equal(span_text(&r, 0), "cycle cycle 1704067200999500000-1704067202000001000");
    assert_string_equal(span_text(&r, 1), "layer a 1704067200999500000-1704067201000000000");
    assert_string_equal(span_text(&r, 2), "layer b 1704067201999750746-1704067202000001000");
    release(&r);
    assert_int_equal(read_text(&r, "{\"a\": [[1.0, 2.0]]}"), -EINVAL);
    assert_int_equal(r.err.offset, 17);
    release(&r);
}

static void chrome_clocks(void **state)
{
    struct reading r;
    (void)state;
    /* To the ns, where a double would lose some. */
    assert_int_equal(read_text(&r, "{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"a\", "
                                   "\"ts\": 1700000000123456.789, \"dur\": 0.5}]}"),
                     0);
    assert_string_equal(span_text(&r, 0), "span a 1700000000123456789-1700000000123457289");
    assert_true(r.file.wall_clock);
    assert_int_equal(r.im.base_ns, 0);
    release(&r);
    assert_int_equal(read_text(&r, "{\"traceEvents\": [{\"ph\": \"X\", \"name\": \"a\", \"ts\": 5, "
                                   "\"dur\": 1}], \"baseTimeNanoseconds\": 1700000000000000000}"),
                     0);
    assert_true(r.file.wall_clock);
    assert_int_equal(r.im.base_ns, INT64_C(1700000000000000000));
    release(&r);
    assert_int_equal(read_text(&r, "[{\"ph\": \"X\", \"name\": \"a\", \"ts\": 5, \"dur\": 1}]"), 0);
    assert_false(r.file.wall_clock);
    release(&r);
}

/* A kernel is tied through the call inside the operator, not to one that is merely near. */
static void kernel_below_operator(void **state)
{
    static const char text[] =
        "{\"traceEvents\": ["
        "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":50,\"dur\":9,"
        "\"args\":{\"correlation\":4,\"device\":1,\"stream\":7}},"
        "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"launch\",\"pid\":1,\"tid\":2,\"ts\":12,"
        "\"dur\":1,\"args\":{\"correlation\":4}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"other\",\"pid\":1,\"tid\":3,\"ts\":10,"
        "\"dur\":5,\"args\":{\"External id\":4}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"outer\",\"pid\":1,\"tid\":2,\"ts\":5,"
        "\"dur\":20,\"args\":{}},"
        "{\"ph\":\"X\",\"cat\":\"cpu_op\",\"name\":\"inner\",\"pid\":1,\"tid\":2,\"ts\":10,"
        "\"dur\":5,\"args\":{}}]}";
    struct reading r;
    (void)state;
    assert_int_equal(read_text(&r, text), 0);
    const struct nrg_span_sink *sink = r.im.sink;
    assert_int_equal(sink->records[0].path, 2);
    int64_t path[2];
    memcpy(path, nrg_map_text(&sink->paths, 2, NULL), sizeof path);
    assert_string_equal(nrg_span_sink_name_of(sink, path[1]).text, "inner");
    assert_string_equal(sink->descriptions[sink->records[0].track - 1].domain, "gpu-1");
    assert_true(noted(&r, "1 span of the GPU, 1 tied"));
    release(&r);
}

static void notes_and_cut_files(void **state)
{
    struct reading r;
    (void)state;
    assert_int_equal(read_text(&r, "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":2},{\"ph\":"),
                     0);
    assert_true(noted(&r, "cut off"));
    release(&r);
    assert_int_equal(read_text(&r, "{\"a\": [1.0, \"x\"]}"), -EINVAL);
    release(&r);
    assert_int_equal(read_text(&r, "{\"a\": [1.0, 2.0"), -EINVAL);
    assert_non_null(strstr(r.err.what, "cut off"));
    release(&r);
    assert_int_equal(read_text(&r, "{\"a\": []}"), -ENODATA);
    release(&r);
}

/* Activity and power of known shift: alternating stretches, a few of odd length. */
struct scene {
    struct nrg_power_series power;
    struct nrg_activity activity;
};

static void make_scene(struct scene *s, size_t n, int64_t period_ns, int64_t shift_ns,
                       bool (*busy)(size_t ms), uint32_t seed)
{
    *s = (struct scene){.activity = {.step_ns = NRG_NS_PER_MS, .n = 4000}};
    s->activity.busy = calloc(s->activity.n, sizeof(double));
    for (size_t i = 0; i < s->activity.n; i++)
        s->activity.busy[i] = busy(i);
    s->power.begin_ns = calloc(n, sizeof(int64_t));
    s->power.end_ns = calloc(n, sizeof(int64_t));
    s->power.power_w = calloc(n, sizeof(double));
    s->power.n = n;
    s->power.period_ns = period_ns;
    snprintf(s->power.name, sizeof s->power.name, "package-0");
    for (size_t i = 0; i < n; i++) {
        double mean = 0;
        int64_t begin = (int64_t)i * period_ns;
        for (int64_t t = begin; t < begin + period_ns; t += NRG_NS_PER_MS / 4) {
            int64_t ms = (t - shift_ns) / NRG_NS_PER_MS;
            bool high = t >= shift_ns && ms < 4000 && busy((size_t)ms);
            mean += (double)high * (double)(NRG_NS_PER_MS / 4) / (double)period_ns;
        }
        seed = seed * 1664525 + 1013904223;
        s->power.begin_ns[i] = begin;
        s->power.end_ns[i] = begin + period_ns;
        s->power.power_w[i] = 10 + 5 * mean + 0.2 * ((double)(seed >> 16) / 65536 - 0.5);
    }
}

static void free_scene(struct scene *s)
{
    free(s->activity.busy);
    nrg_power_series_release(&s->power);
}

static bool irregular(size_t ms)
{
    return (ms * ms / 7919 + ms / 150) % 3 == 0;
}

static bool regular(size_t ms)
{
    return ms % 200 < 100;
}

static void finds_a_shift(void **state)
{
    (void)state;
    for (int64_t k = 0; k < 6; k++) {
        struct scene s;
        struct nrg_alignment found;
        struct nrg_error err = {0};
        int64_t truth = 700 * NRG_NS_PER_MS + k * 137 * NRG_NS_PER_MS / 10;
        make_scene(&s, 600, 10 * NRG_NS_PER_MS, truth, irregular, (uint32_t)k + 1);
        int rc =
            nrg_align(&s.power, &s.activity, -2 * NRG_NS_PER_S, 4 * NRG_NS_PER_S, &found, &err);
        if (rc)
            print_message("# %s\n", err.what);
        assert_int_equal(rc, 0);
        assert_true(llabs(found.offset_ns - truth) <= found.uncertainty_ns);
        assert_true(found.uncertainty_ns < 5 * NRG_NS_PER_MS);
        assert_true(found.correlation > 0.9);
        free_scene(&s);
    }
}

static void refuses_to_guess(void **state)
{
    struct scene s;
    struct nrg_alignment found;
    struct nrg_error err = {0};
    (void)state;
    make_scene(&s, 200, 10 * NRG_NS_PER_MS, -1000 * NRG_NS_PER_MS, regular, 3);
    assert_int_equal(
        nrg_align(&s.power, &s.activity, -1500 * NRG_NS_PER_MS, -500 * NRG_NS_PER_MS, &found, &err),
        -EDOM);
    assert_non_null(strstr(err.what, "two places"));
    for (size_t i = 0; i < s.power.n; i++)
        s.power.power_w[i] = 10;
    assert_int_equal(nrg_align(&s.power, &s.activity, -NRG_NS_PER_S, NRG_NS_PER_S, &found, &err),
                     -EDOM);
    assert_non_null(strstr(err.what, "does not follow"));
    s.power.n = 4;
    assert_int_equal(nrg_align(&s.power, &s.activity, -NRG_NS_PER_S, NRG_NS_PER_S, &found, &err),
                     -EDOM);
    s.power.n = 200;
    free_scene(&s);
}

/* A recording whose wall clock was slewed, then stepped by an hour. */
static void make_recording(struct tree *t, const char *name, char *path, size_t size)
{
    struct nrg_store *store;
    struct nrg_error err;
    static const struct nrg_clock_pair pairs[] = {
        {.mono_ns = 100 * NRG_NS_PER_S, .real_ns = INT64_C(1700000000) * NRG_NS_PER_S},
        {.mono_ns = 101 * NRG_NS_PER_S, .real_ns = INT64_C(1700000001) * NRG_NS_PER_S + 500000},
        {.mono_ns = 102 * NRG_NS_PER_S, .real_ns = INT64_C(1700003602) * NRG_NS_PER_S},
    };
    static const struct nrg_run run = {
        .id = 1, .kind = "run", .begin_ns = 100 * NRG_NS_PER_S, .end_ns = 102 * NRG_NS_PER_S};
    snprintf(path, size, "%s/%s", t->path, name);
    assert_int_equal(nrg_store_create(path, false, &store, &err), 0);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(nrg_store_clock(store, &pairs[i]), 0);
    assert_int_equal(nrg_store_run(store, &run), 0);
    assert_int_equal(nrg_store_close(store, &err), 0);
}

static void dates_follow_the_clock(void **state)
{
    struct tree t;
    struct reading r;
    struct nrg_recording *recording;
    char path[300];
    (void)state;
    tree_init(&t);
    make_recording(&t, "run.nrg", path, sizeof path);
    assert_int_equal(nrg_recording_open(path, &recording, &r.err), 0);
    assert_int_equal(read_text(&r, "[{\"a\": {\"elapsed_time\": 0, \"start_time\": 1700000000.5}, "
                                   "\"b\": {\"elapsed_time\": 0, \"start_time\": 1700003602.25}}]"),
                     0);
    assert_int_equal(nrg_import_place(&r.im, recording, &r.err), 0);
    assert_string_equal(r.file.placed, "clock");
    const struct nrg_span_record *s = r.im.sink->records + 1; /* behind the cycle */
    assert_true(llabs(s[0].begin_ns - (100500 * NRG_NS_PER_MS - 250000)) < 1000); /* half slewed */
    assert_int_equal(s[1].begin_ns, 102250 * NRG_NS_PER_MS);
    release(&r);
    nrg_recording_close(recording);
    tree_release(&t);
}

/* A recording from before there were spans gets them; the result without an output is open. */
static void joins_an_old_recording(void **state)
{
    struct tree t;
    char path[300], layers[300];
    sqlite3 *db;
    struct nrg_import_join_result result;
    struct nrg_error err;
    struct nrg_layer_run *runs;
    size_t n;
    (void)state;
    tree_init(&t);
    make_recording(&t, "old.nrg", path, sizeof path);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "DROP TABLE span_name; DROP TABLE span_track; "
                                  "DROP TABLE span_path",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    tree_write(&t, "/layers.json", "{\"a\": [1.5, 2.5], \"b\": [1.0, 1.0]}");
    snprintf(layers, sizeof layers, "%s/layers.json", t.path);
    const char *const files[] = {layers};
    const struct nrg_import_join_options options = {.power = path,
                                                    .layers = files,
                                                    .n_layers = 1,
                                                    .has_offset = true,
                                                    .offset_ns = NRG_NS_PER_S,
                                                    .idle_w = NAN};
    assert_int_equal(nrg_import_join(&options, &result, &err), 0);
    assert_non_null(result.recording);
    assert_int_equal(result.files[0].spans, 6);
    assert_int_equal(nrg_layer_runs_load(result.recording, &runs, &n, &err), 0);
    assert_int_equal(n, 4);
    assert_int_equal(runs[0].begin_ns, 101 * NRG_NS_PER_S);
    assert_int_equal(runs[1].duration_ns, 1000000);
    assert_int_equal(runs[2].cycle, 2);
    assert_int_equal(runs[2].begin_ns, 101 * NRG_NS_PER_S + 2500000);
    free(runs);
    nrg_import_join_release(&result);
    tree_release(&t);
}

static void csv_logs(void **state)
{
    struct tree t;
    char path[300], output[300];
    struct nrg_import_result result;
    struct nrg_recording *recording;
    struct nrg_error err;
    size_t n;
    (void)state;
    tree_init(&t);
    snprintf(path, sizeof path, "%s/log.csv", t.path);
    snprintf(output, sizeof output, "%s/log.nrg", t.path);
    const struct nrg_import_options options = {.path = path, .output = output, .idle_w = NAN};
    tree_write(&t, "/log.csv",
               "# made by hand\ntime_s,package-0:energy_j,core-0:energy_j\n"
               "1700000000.0,5,1\n1700000000.1,6,\n1700000000.2,7.5,2\n");
    assert_int_equal(nrg_import(&options, &result, &err), 0);
    assert_string_equal(result.format, "csv");
    assert_int_equal(result.records, 3);
    assert_int_equal(nrg_recording_open(output, &recording, &err), 0);
    const struct nrg_recorded_channel *channels = nrg_recording_channels(recording, &n);
    assert_int_equal(n, 2);
    assert_string_equal(channels[1].channel.parent, "package-0");
    assert_int_equal(channels[0].period_ns, 100 * NRG_NS_PER_MS);
    nrg_recording_clocks(recording, &n);
    assert_int_equal(n, 2);
    nrg_recording_close(recording);
    assert_int_equal(nrg_import(&options, &result, &err), -EEXIST);
    tree_write(&t, "/log.csv", "time_s,package-0:energy_j\n1,5\n2,six\n");
    assert_int_equal(nrg_import(&options, &result, &err), -EINVAL);
    assert_int_equal(err.offset, 3);
    tree_write(&t, "/log.csv", "time_s,package-0:energy_j\n");
    assert_int_equal(nrg_import(&options, &result, &err), -ENODATA);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recognises),
        cmocka_unit_test(trt_windows),
        cmocka_unit_test(chrome_clocks),
        cmocka_unit_test(kernel_below_operator),
        cmocka_unit_test(notes_and_cut_files),
        cmocka_unit_test(finds_a_shift),
        cmocka_unit_test(refuses_to_guess),
        cmocka_unit_test(dates_follow_the_clock),
        cmocka_unit_test(joins_an_old_recording),
        cmocka_unit_test(csv_logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
