/*
 * Outputs of an attribution made by hand: what is printed adds up to what was given, is well-formed
 * whatever the names hold, and says what is not known.
 */
#include "support/cmocka.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/internal.h"
#include "attribute/model_join.h"
#include "report/attribution/report.h"

#define LONG 10240

static char long_name[LONG + 1];
static const struct nrg_recorded_channel package = {
    .channel = {.name = "package-0", .quantity = NRG_ENERGY, .kind = NRG_COUNTER},
    .driver = "rapl-powercap"};
static const struct nrg_recorded_channel gpu = {.channel = {.name = "gpu-0",
                                                            .quantity = NRG_POWER,
                                                            .kind = NRG_GAUGE,
                                                            .provenance = NRG_ESTIMATED},
                                                .driver = "nvml"};
static const struct nrg_domain domains[] = {{.channel = &package}, {.channel = &gpu}};

static const double whole_j[] = {50, 10}, part_j[] = {25, 5}, small_j[] = {0.5, 0};
static const struct nrg_row_count counts[] = {{"tokens", 640, 640}};

/* 60 J in a step, of which 30 J in one layer, 2 x 0.5 J in hostile ones; 40 J elsewhere. */
struct made {
    struct nrg_attribution_row rows[8];
    struct nrg_attribution_domain parts[2];
    struct nrg_missing notes[1];
    struct nrg_attribution a;
    struct nrg_attribution_report report;
};

static struct nrg_attribution_row row(const char *name, const char *kind, size_t parent,
                                      double energy_j, double self_j)
{
    return (struct nrg_attribution_row){.name = name,
                                        .kind = kind,
                                        .detail = "",
                                        .parent = parent,
                                        .number = NRG_MISSING,
                                        .calls = 10,
                                        .time_s = 2,
                                        .self_time_s = 1,
                                        .energy_j = energy_j,
                                        .energy_self_j = self_j,
                                        .low_j = energy_j * 0.9,
                                        .high_j = energy_j * 1.2,
                                        .self_low_j = NAN,
                                        .self_high_j = NAN,
                                        .method = NRG_METHOD_INTEGRATE,
                                        .merged_with = SIZE_MAX,
                                        .updates_per_call = 3,
                                        .macs = NAN,
                                        .flops = NAN,
                                        .read_bytes = NAN,
                                        .written_bytes = NAN};
}

static void make(struct made *m)
{
    memset(long_name, 'x', LONG);
    *m = (struct made){0};
    m->rows[0] = row("step", "step", SIZE_MAX, 60, 0);
    m->rows[0].domain_j = whole_j;
    m->rows[0].counts = counts;
    m->rows[0].n_counts = 1;
    m->rows[1] = row("Net", "module", 0, 60, 28);
    m->rows[1].detail = "Net";
    m->rows[2] = row("layer1", "module", 1, 30, 30);
    m->rows[2].domain_j = part_j;
    m->rows[2].macs = 1e9;
    m->rows[2].read_bytes = 100;
    m->rows[2].written_bytes = 20;
    m->rows[3] = row("a;b \"c\",\nd <b>&", "span", 1, 0.5, 0.5);
    m->rows[3].domain_j = small_j;
    m->rows[3].flags = NRG_ROW_UNRESOLVED | NRG_ROW_MERGED;
    m->rows[3].merged_with = 4;
    m->rows[4] = row("bad \xff\xfe utf-8 \x1b[31m", "span", 1, 0.5, 0.5);
    m->rows[5] = row("", "span", 1, 0.25, 0.25);
    m->rows[6] = row(long_name, "span", 1, 0.75, 0.75);
    m->rows[7] = row("layer1", "backward", 1, NAN, NAN);
    m->rows[7].low_j = m->rows[7].high_j = NAN;
    m->rows[7].flags = NRG_ROW_UNCOVERED;
    for (size_t i = 0; i < 8; i++)
        m->rows[i].depth = i == 0 ? 0 : i == 1 ? 1 : 2;
    for (size_t i = 0; i < 2; i++)
        m->parts[i] = (struct nrg_attribution_domain){.domain = &domains[i],
                                                      .method = NRG_METHOD_INTEGRATE,
                                                      .why = "20 updates per span",
                                                      .idle_w = NAN,
                                                      .residual = NAN,
                                                      .total_j = i ? 15 : 85,
                                                      .unattributed_j = i ? 5 : 7};
    m->notes[0] = (struct nrg_missing){.what = "spans", .why = "12 were dropped"};
    m->a = (struct nrg_attribution){.rows = m->rows,
                                    .n_rows = 8,
                                    .domains = m->parts,
                                    .n_domains = 2,
                                    .total_j = 100,
                                    .total_low_j = 99,
                                    .total_high_j = 101,
                                    .total_uncertainty_j = 1,
                                    .unattributed_j = 12,
                                    .idle_j = 20,
                                    .other_processes_j = 8,
                                    .duration_s = 4,
                                    .spans = 80,
                                    .method = NRG_METHOD_INTEGRATE,
                                    .notes = m->notes,
                                    .n_notes = 1};
    const struct nrg_view_rows view = {.rows = m->rows, .n = 8};
    assert_int_equal(nrg_units_find(&m->a,
                                    &(struct nrg_unit_sources){.paths = &view, .classes = &view},
                                    NULL, NULL),
                     0);
    m->report = (struct nrg_attribution_report){.attribution = &m->a, .confidence = 0.95};
}

/* What a writer writes, terminated; the caller frees. */
static char *written(const struct made *m,
                     int (*write)(const struct nrg_attribution_report *, FILE *))
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(write(&m->report, out), 0);
    assert_int_equal(fclose(out), 0);
    return text;
}

/* The text table; the caller frees. */
static char *shown(const struct made *m, struct nrg_attribution_view view)
{
    static struct {
        char *text;
        size_t size;
    } memory;
    FILE *out = open_memstream(&memory.text, &memory.size);
    assert_non_null(out);
    nrg_attribution_text(&m->report, &view, out);
    fclose(out);
    return memory.text;
}

static double real_of(const json_t *o, const char *key)
{
    assert_true(json_is_number(json_object_get(o, key)));
    return json_number_value(json_object_get(o, key));
}

static void json_is_whole(void **state)
{
    struct made m;
    (void)state;
    make(&m);
    char *text = written(&m, nrg_attribution_json);
    json_t *doc = json_loads(text, 0, NULL);
    assert_non_null(doc);
    assert_string_equal(json_string_value(json_object_get(doc, "schema")), "nrg.attribute/1");
    const json_t *rows = json_object_get(doc, "rows");
    assert_int_equal(json_array_size(rows), 8);
    double sum_j =
        real_of(doc, "unattributed_j") + real_of(doc, "idle_j") + real_of(doc, "other_processes_j");
    for (size_t i = 0; i < 7; i++)
        sum_j += real_of(json_array_get(rows, i), "energy_self_j");
    assert_float_equal(sum_j, real_of(doc, "total_j"), 1e-9);
    const json_t *layer = json_array_get(rows, 2), *odd = json_array_get(rows, 3);
    assert_int_equal(real_of(layer, "parent"), 1);
    assert_float_equal(real_of(layer, "energy_per_call_j"), 3, 1e-12);
    assert_float_equal(real_of(layer, "pj_per_mac"), 30 / (1e9 * 10) * 1e12, 1e-6);
    assert_float_equal(real_of(layer, "j_per_byte"), 30.0 / 1200, 1e-9);
    assert_float_equal(real_of(json_object_get(layer, "domains"), "gpu-0"), 5, 1e-12);
    assert_string_equal(json_string_value(json_object_get(odd, "name")), m.rows[3].name);
    assert_null(json_object_get(odd, "macs"));
    assert_string_equal(json_string_value(json_array_get(json_object_get(odd, "flags"), 0)),
                        "not resolved");
    assert_int_equal(real_of(odd, "merged_with"), 4);
    assert_null(json_object_get(json_array_get(rows, 7), "energy_j"));
    assert_null(json_object_get(json_array_get(rows, 0), "parent"));
    assert_int_equal(json_string_length(json_object_get(json_array_get(rows, 6), "name")), LONG);
    const json_t *per = json_array_get(json_object_get(doc, "per"), 1);
    assert_string_equal(json_string_value(json_object_get(per, "name")), "tokens");
    assert_string_equal(json_string_value(json_object_get(per, "of")), "step");
    assert_string_equal(json_string_value(json_object_get(per, "of_kind")), "step");
    assert_string_equal(json_string_value(json_object_get(per, "counted")), "directly");
    assert_float_equal(real_of(per, "energy_per_unit_j"), 60.0 / 640, 1e-12);
    json_decref(doc);
    free(text);
    free(m.a.units);
}

/* The next cell of CSV at *p into buf; true: the record ends with it. */
static bool csv_cell(const char **p, char *buf)
{
    bool quoted = **p == '"';
    *p += quoted;
    while (**p && (quoted ? **p != '"' || (*p)[1] == '"' : !strchr(",\n", **p))) {
        *p += quoted && **p == '"';
        *buf++ = *(*p)++;
    }
    *p += quoted;
    *buf = '\0';
    char last = *(*p)++;
    assert_true(last == ',' || last == '\n');
    return last == '\n';
}

static void csv_reads_back(void **state)
{
    struct made m;
    char *cell = malloc(LONG * 2), name[8][LONG + 1], kind[16][32];
    size_t n_columns = 0, n = 0;
    (void)state;
    make(&m);
    char *text = written(&m, nrg_attribution_csv);
    for (const char *p = text; *p; n++) {
        size_t column = 0;
        for (bool last = false; !last; column++) {
            last = csv_cell(&p, cell);
            if (n >= 1 && n <= 8 && column == 4)
                strcpy(name[n - 1], cell);
            if (n >= 1 && column == 3)
                strcpy(kind[n - 1], cell);
            if (n == 12 && column == 10)
                assert_string_equal(cell, "12");
        }
        n_columns = n ? n_columns : column;
        assert_int_equal(column, n_columns);
    }
    assert_int_equal(n, 1 + 8 + 4);
    for (size_t i = 0; i < 8; i++)
        assert_string_equal(name[i], m.rows[i].name);
    assert_string_equal(kind[11], "unattributed");
    free(text);
    free(cell);
    free(m.a.units);
}

static void folded_lines(void **state)
{
    struct made m;
    long long sum_uj = 0;
    bool seen = false;
    (void)state;
    make(&m);
    char *text = written(&m, nrg_attribution_folded), *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *blank = strrchr(line, ' '), *end;
        assert_non_null(blank);
        sum_uj += strtoll(blank + 1, &end, 10);
        assert_int_equal(*end, '\0');
        seen |= !strncmp(line, "step;Net;a:b \"c\", d <b>& 500000", 100);
    }
    assert_true(seen);
    assert_int_equal(sum_uj, 100000000);
    free(text);
    free(m.a.units);
}

static size_t columns_of(const char *line)
{
    size_t n = 0;
    for (; *line; line++)
        n += (*line & 0xc0) != 0x80;
    return n;
}

static void text_fits(void **state)
{
    static const unsigned widths[] = {60, 80, 100, 200};
    struct made m;
    (void)state;
    make(&m);
    m.a.n_notes = 0;
    for (size_t i = 0; i < 4; i++)
        for (int unicode = 0; unicode < 2; unicode++) {
            char *text =
                shown(&m, (struct nrg_attribution_view){.unicode = unicode, .width = widths[i]});
            char *table = strstr(text, "SPAN"), *end = strstr(table, "\n\n"), *save = NULL;
            char last[512] = "";
            *end = '\0';
            for (char *line = strtok_r(table, "\n", &save); line;
                 line = strtok_r(NULL, "\n", &save)) {
                assert_true(columns_of(line) <= widths[i]);
                for (const char *p = line; *p; p++)
                    assert_true((unsigned char)*p >= 0x20 && (unicode || (unsigned char)*p < 0x7f));
                snprintf(last, sizeof last, "%s", line);
            }
            assert_non_null(strstr(last, "unattributed"));
            assert_non_null(strstr(last, "12.00 J"));
            free(text);
        }
    free(m.a.units);
}

static void text_folds_and_says(void **state)
{
    struct made m;
    (void)state;
    make(&m);
    char *text = shown(&m, (struct nrg_attribution_view){.unicode = true, .top = 3});
    assert_non_null(strstr(text, "… 5 more"));
    assert_non_null(strstr(text, "2.000 J")); /* of the folded ones in sum */
    assert_null(strstr(text, "not resolved"));
    free(text);
    text = shown(&m, (struct nrg_attribution_view){.unicode = true, .top = 8, .min_share = 0.01});
    assert_non_null(strstr(text, "… 3 more"));
    free(text);
    text = shown(&m, (struct nrg_attribution_view){.unicode = true});
    assert_null(strstr(text, "more"));
    assert_non_null(strstr(text, "not resolved, together with bad"));
    assert_non_null(strstr(text, "not covered"));
    assert_non_null(strstr(text, "12 were dropped"));
    assert_non_null(strstr(text, "20 updates per span"));
    assert_non_null(strstr(text, "estimated (nvml"));
    assert_non_null(strstr(text, "93.75 mJ")); /* per token */
    assert_non_null(strstr(text, "6.000 J"));  /* per step */
    assert_null(strstr(text, "nan"));
    free(text);
    free(m.a.units);
}

/* ---- joining with a graph ---- */

static const char script[] =
    "graph(%self : __torch__.Net,\n"
    "      %x : Float(4, 8, strides=[8, 1], requires_grad=0, device=cpu)):\n"
    "  %w : Float(16, 8, strides=[8, 1], requires_grad=1, device=cpu) = "
    "prim::GetAttr[name=\"weight\"](%self), scope: __module.fc\n"
    "  %b : Float(16, strides=[1], requires_grad=1, device=cpu) = "
    "prim::GetAttr[name=\"bias\"](%self), scope: __module.fc\n"
    "  %y : Float(4, 16, strides=[16, 1], requires_grad=1, device=cpu) = "
    "aten::linear(%x, %w, %b), scope: __module.fc\n"
    "  %z : Float(4, 16, strides=[16, 1], requires_grad=1, device=cpu) = "
    "aten::relu(%y), scope: __module.act\n"
    "  return (%z)\n";

static void joins_modules_and_operators(void **state)
{
    struct nrg_attribution_row rows[] = {
        row("Net", "module", SIZE_MAX, 10, 1),   row("fc", "module", 0, 8, 1),
        row("aten::addmm", "operator", 1, 7, 7), row("fc", "backward", 0, 1, 0),
        row("aten::addmm", "operator", 3, 1, 1), row("Other", "module", SIZE_MAX, 1, 1),
        row("Other.fc", "module", 5, 1, 1),      row("fc", "module", 5, 1, 1),
    };
    struct nrg_attribution a = {.rows = rows, .n_rows = 8};
    const struct nrg_source source = {
        .bytes = (const uint8_t *)script, .size = sizeof script - 1, .name = "net"};
    struct nrg_analysis model;
    (void)state;
    rows[0].detail = "Net";
    rows[5].detail = "Other";
    assert_int_equal(nrg_analyse_bytes(&model, &source,
                                       &(struct nrg_analysis_options){.format = "torchscript"},
                                       NULL),
                     0);
    struct nrg_join_result result = nrg_attribution_join(&a, &model, false);
    assert_int_equal(result.modules, 2);
    assert_int_equal(result.operators, 1);
    assert_float_equal(rows[1].macs, 4 * 8 * 16, 0);
    assert_float_equal(rows[0].macs, 4 * 8 * 16, 0);
    assert_float_equal(rows[2].macs, 4 * 8 * 16, 0);
    assert_float_equal(rows[2].written_bytes, 4 * 16 * 4, 0);
    for (size_t i = 3; i < 8; i++)
        assert_true(isnan(rows[i].macs)); /* backward, and another model's */
    nrg_analysis_release(&model);
}

static void backward_in_modules_is_not_counted(void **state)
{
    struct nrg_attribution_row rows[] = {row("fc", "module", SIZE_MAX, 8, 1)};
    struct nrg_attribution a = {.rows = rows, .n_rows = 1};
    const struct nrg_source source = {
        .bytes = (const uint8_t *)script, .size = sizeof script - 1, .name = "net"};
    struct nrg_analysis model;
    (void)state;
    assert_int_equal(nrg_analyse_bytes(&model, &source, &(struct nrg_analysis_options){0}, NULL),
                     0);
    nrg_attribution_join(&a, &model, true);
    assert_true(isnan(rows[0].macs));
    nrg_attribution_join(&a, &model, false);
    assert_float_equal(rows[0].macs, 512, 0);
    nrg_analysis_release(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_whole),
        cmocka_unit_test(csv_reads_back),
        cmocka_unit_test(folded_lines),
        cmocka_unit_test(text_fits),
        cmocka_unit_test(text_folds_and_says),
        cmocka_unit_test(joins_modules_and_operators),
        cmocka_unit_test(backward_in_modules_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
