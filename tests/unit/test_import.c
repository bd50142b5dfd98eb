/* Importers without files: streams in memory, and what they refuse. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "import/log.h"
#include "record/read/recording.h"

#define MS NRG_NS_PER_MS

static int check(const char *text, struct nrg_import_result *result, struct nrg_error *err)
{
    const struct nrg_import_options options = {.path = "log", .idle_w = NAN};
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    assert_non_null(in);
    int rc = nrg_import_stream(in, &options, result, err);
    fclose(in);
    return rc;
}

static void jetson_lines(void **state)
{
    static const struct {
        const char *line;
        const char *why;
    } bad[] = {
        {"20250128-13:38:26.0,5008.0\n", "DATE,mV,mA"},  {"20250128-13:38:26.0,5008.0,1,2\n", "mA"},
        {"20251328-13:38:26.0,5008.0,1\n", "date"},      {"20250128-13:38:26.0,-1,1\n", "mV"},
        {"20250128-13:38:26.0,nan,1\n", "mV"},           {"20250128-13:38:26.0,,1\n", "mV"},
        {"20250128-13:38:25.1,5000,1\n", "back in time"}};
    struct nrg_import_result result;
    struct nrg_error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[256];
        snprintf(text, sizeof text, "20250128-13:38:25.94,5008.0,1720.0\n\n%s", bad[i].line);
        assert_true(check(text, &result, &err) < 0);
        assert_int_equal(err.offset, 3);
        assert_string_equal(err.where, "log");
        assert_non_null(strstr(err.what, bad[i].why));
    }
    assert_int_equal(check("20250128-13:38:25.94,5008.0,1720.0\r\n"
                           "20250128-13:38:26.44,5008.0,1720.0\r\n",
                           &result, &err),
                     0);
    assert_string_equal(result.format, "jetson-log");
    assert_int_equal(result.records, 2);
    assert_int_equal(result.end_ns - result.begin_ns, 500 * MS);
    assert_int_equal(result.begin_ns, INT64_C(1738071505940000000));
}

static void only_the_last_line_may_be_cut(void **state)
{
    struct nrg_import_result result;
    struct nrg_error err;
    (void)state;
    assert_int_equal(check("20250128-13:38:25.94,5008.0,1720.0\n20250128-13:3", &result, &err), 0);
    assert_int_equal(result.unfinished_line, 2);
    assert_int_equal(result.records, 1);
    /* The same with a line end was not cut: it is wrong. */
    assert_int_equal(check("20250128-13:38:25.94,5008.0,1720.0\n20250128-13:3\n", &result, &err),
                     -EINVAL);
    assert_int_equal(err.offset, 2);
}

static void endless_lines(void **state)
{
    struct nrg_import_result result;
    struct nrg_error err;
    const struct nrg_import_options options = {.path = "log", .idle_w = NAN};
    size_t size = (size_t)20 << 20;
    char *text = malloc(size);
    (void)state;
    assert_non_null(text);
    memset(text, '{', size);
    FILE *in = fmemopen(text, size, "r");
    assert_int_equal(nrg_import_stream(in, &options, &result, &err), -EMSGSIZE);
    assert_int_equal(err.offset, 1);
    fclose(in);
    free(text);
}

static int import_text(struct tree *t, const char *text, bool held, struct nrg_recording **out)
{
    char path[300], output[300];
    struct nrg_import_result result;
    struct nrg_error err = {0};
    tree_write_bytes(t, "/in.json", text, strlen(text));
    snprintf(path, sizeof path, "%s/in.json", t->path);
    snprintf(output, sizeof output, "%s/out.nrg", t->path);
    const struct nrg_import_options options = {
        .path = path, .output = output, .overwrite = true, .idle_w = 1.5, .held = held};
    int rc = nrg_import(&options, &result, &err);
    if (rc)
        print_message("# %s:%lld: %s\n", err.where, err.offset, err.what);
    return rc ? rc : nrg_recording_open(output, out, &err);
}

static const struct nrg_recorded_channel *channel(const struct nrg_recording *r, const char *name)
{
    size_t n;
    const struct nrg_recorded_channel *c = nrg_recording_channels(r, &n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(c[i].channel.name, name))
            return &c[i];
    return NULL;
}

#define RECORD(second, cpu)                                                                        \
    "{\"date\": \"2022-03-04 10:00:0" second "\", \"metrics\": {\"cpu\": {" cpu "}}}\n"

static void channels_and_parents(void **state)
{
    struct tree t;
    struct nrg_recording *r;
    (void)state;
    tree_init(&t);
    assert_int_equal(import_text(&t,
                                 RECORD("0", "\"intel_power\": 5, \"total_cpu_power\": 3, "
                                             "\"psys_power\": -1")
                                     RECORD("1", "\"intel_power\": 5, \"uncore_power\": [1]"),
                                 false, &r),
                     0);
    assert_null(channel(r, "psys"));
    assert_string_equal(channel(r, "package-0")->channel.parent, "");
    assert_string_equal(channel(r, "core-0")->channel.parent, "package-0");
    assert_int_equal(channel(r, "uncore-0")->channel.quantity, NRG_POWER);
    assert_int_equal(channel(r, "package-0")->period_ns, 1000 * MS);
    assert_string_equal(nrg_recording_text(r, "idle_w"), "1.5");
    assert_int_equal(nrg_recording_realtime_ns(r, INT64_C(1646388000000000000)),
                     INT64_C(1646388000000000000));
    nrg_recording_close(r);
    tree_release(&t);
}

static int sum_missing(void *arg, const struct nrg_rows *rows)
{
    int64_t *cells = arg;
    for (size_t i = 0; i < rows->n; i++)
        cells[cells[0]++] = nrg_rows_column(rows, 0)[i];
    return 0;
}

static void held_counters(void **state)
{
    struct tree t;
    struct nrg_recording *r;
    int64_t cells[16] = {1};
    (void)state;
    tree_init(&t);
    assert_int_equal(import_text(&t,
                                 RECORD("0", "\"intel_power\": 5") RECORD("2", "\"x\": 5")
                                     RECORD("4", "\"intel_power\": 7"),
                                 true, &r),
                     0);
    assert_int_equal(channel(r, "package-0")->channel.kind, NRG_COUNTER);
    assert_int_equal(
        nrg_recording_read_series(r, channel(r, "package-0")->series, sum_missing, cells, NULL), 0);
    /* A start, 5 W for the usual 2 s, a record without the key, 7 W for 2 s. */
    const int64_t expected[] = {0, 10000000, NRG_MISSING, 24000000};
    assert_int_equal(cells[0], 5);
    assert_memory_equal(cells + 1, expected, sizeof expected);
    nrg_recording_close(r);
    tree_release(&t);
}

static void too_many_channels(void **state)
{
    struct nrg_import_result result;
    struct nrg_error err;
    struct nrg_str text = {0};
    (void)state;
    nrg_str_addf(&text, "{\"date\": \"2022-03-04 10:00:00\", \"metrics\": {\"gpu\": "
                        "{\"per_gpu_power_draw\": {\"0\": 1");
    for (int i = 1; i < 600; i++)
        nrg_str_addf(&text, ", \"%d\": 1", i);
    nrg_str_addf(&text, "}}}}\n");
    assert_int_equal(check(text.text, &result, &err), -E2BIG);
    nrg_str_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jetson_lines),  cmocka_unit_test(only_the_last_line_may_be_cut),
        cmocka_unit_test(endless_lines), cmocka_unit_test(channels_and_parents),
        cmocka_unit_test(held_counters), cmocka_unit_test(too_many_channels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
