/*
 * Data sets from recordings: spans of known times at known power, joined with a graph whose MACs
 * and bytes are worked out here by hand. What can't be joined is counted, and said.
 */
#include "support/cmocka.h"
#include "support/made.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "predict/dataset/internal.h"

#define POWER_W 20.0

/* fc1 (8x16 by 16x32), relu, fc2 (8x32 by 32x4). */
static const char net[] =
    "graph(%self : __torch__.Net,\n"
    "      %x : Float(8, 16)):\n"
    "  %fc1 : __torch__.Linear = prim::GetAttr[name=\"fc1\"](%self)\n"
    "  %act : __torch__.ReLU = prim::GetAttr[name=\"act\"](%self)\n"
    "  %fc2 : __torch__.Linear = prim::GetAttr[name=\"fc2\"](%self)\n"
    "  %fc1w : Float(32, 16) = prim::GetAttr[name=\"weight\"](%fc1)\n"
    "  %fc1b : Float(32) = prim::GetAttr[name=\"bias\"](%fc1)\n"
    "  %h : Float(8, 32) = aten::linear(%x, %fc1w, %fc1b), scope: __module.fc1\n"
    "  %r : Float(8, 32) = aten::relu(%h), scope: __module.act\n"
    "  %fc2w : Float(4, 32) = prim::GetAttr[name=\"weight\"](%fc2)\n"
    "  %fc2b : Float(4) = prim::GetAttr[name=\"bias\"](%fc2)\n"
    "  %y : Float(8, 4) = aten::linear(%r, %fc2w, %fc2b), scope: __module.fc2\n"
    "  return (%y)\n";

/* One layer, called with 8 rows and then with `rows`. */
static char *twice(char *out, size_t size, int rows)
{
    snprintf(out, size,
             "graph(%%self : __torch__.Net,\n"
             "      %%x : Float(8, 16),\n"
             "      %%z : Float(%d, 16)):\n"
             "  %%fc : __torch__.Linear = prim::GetAttr[name=\"fc\"](%%self)\n"
             "  %%w : Float(16, 16) = prim::GetAttr[name=\"weight\"](%%fc)\n"
             "  %%b : Float(16) = prim::GetAttr[name=\"bias\"](%%fc)\n"
             "  %%u : Float(8, 16) = aten::linear(%%x, %%w, %%b), scope: __module.fc # m.py:1:0\n"
             "  %%v : Float(%d, 16) = aten::linear(%%z, %%w, %%b), scope: __module.fc # m.py:1:0\n"
             "  return (%%u, %%v)\n",
             rows, rows);
    return out;
}

struct fixture {
    struct made made;
    int64_t track;
    double t_s;
    struct nrg_dataset set;
    struct nrg_error err;
};

/* 20 W read every ms; one thread that is always busy, on a machine that does nothing else. */
static void begin(struct fixture *f, const char *graph, const char *cpu, double step_s)
{
    struct nrg_channel package = made_counter("package-0");
    memset(f, 0, sizeof *f);
    made_init(&f->made);
    package.update_ns = (int64_t)(step_s * 1e9);
    made_constant(&f->made, &package, 0, 20, step_s, POWER_W);
    f->track = made_track(&f->made, "thread", 7, 7, "");
    if (graph)
        assert_int_equal(nrg_store_graph(f->made.store, "Net", "torchscript", graph, strlen(graph)),
                         0);
    nrg_store_text(f->made.store, "cpu", cpu);
    f->t_s = 1;
    nrg_dataset_init(&f->set);
}

static int64_t module(struct fixture *f, const char *name)
{
    return made_name(&f->made, "module", name);
}

/* A call of `name` that takes so long, in whatever is open. */
static void call(struct fixture *f, int64_t name, double time_s)
{
    made_span(&f->made, f->t_s, f->t_s + time_s, f->track, name);
    f->t_s += time_s;
}

static int finish(struct fixture *f, const struct nrg_read_options *more)
{
    struct nrg_read_options options = {.idle = NRG_IDLE_NONE};
    if (more)
        options = *more;
    made_run(&f->made, "run", 0.5, 19);
    made_open(&f->made);
    nrg_recording_close(f->made.recording);
    f->made.recording = NULL;
    const char *path = f->made.path;
    int rc = nrg_dataset_read_recordings(&f->set, &path, 1, &options, &f->err);
    return rc ? rc : nrg_dataset_finish(&f->set, &f->err);
}

static void end(struct fixture *f)
{
    nrg_dataset_release(&f->set);
    made_release(&f->made);
}

static const struct nrg_row *row_of(const struct fixture *f, const char *node, const char *kind)
{
    for (size_t i = 0; i < f->set.n; i++)
        if (!strcmp(f->set.rows[i].node, node) && !strcmp(f->set.rows[i].kind, kind))
            return &f->set.rows[i];
    fail_msg("no row %s %s", node, kind);
    return NULL;
}

static double feature(const struct fixture *f, const struct nrg_row *row, enum nrg_feature feature)
{
    return nrg_row_feature(&f->set, (size_t)(row - f->set.rows), feature);
}

static size_t noted(const struct fixture *f, const char *text)
{
    for (size_t i = 0; i < f->set.n_notes; i++)
        if (strstr(f->set.notes[i].text, text))
            return f->set.notes[i].count;
    return 0;
}

static void check(const struct nrg_row *row, double energy_j, double repeats)
{
    if (fabs(row->energy_j / energy_j - 1) > 0.01)
        fail_msg("%s: %g J instead of %g J", row->node, row->energy_j, energy_j);
    assert_float_equal(row->repeats, repeats, 1e-9);
}

/* n passes of the net: 40 ms fc1, 20 ms act, 30 ms fc2, 10 ms of its own. */
static void pass(struct fixture *f, int64_t root, int n)
{
    int64_t fc1 = module(f, "fc1"), act = module(f, "act"), fc2 = module(f, "fc2");
    for (int i = 0; i < n; i++) {
        made_begin(&f->made, f->t_s, f->track, root);
        call(f, fc1, 0.04);
        call(f, act, 0.02);
        call(f, fc2, 0.03);
        f->t_s += 0.01;
        made_end(&f->made, f->t_s, f->track);
    }
}

/* The outermost module is called by its class. */
static int64_t root_name(struct fixture *f)
{
    struct nrg_span_name name = {.id = ++f->made.names, .text = "Net", .detail = "Net"};
    nrg_copy(name.kind, sizeof name.kind, "module");
    assert_int_equal(nrg_store_span_name(f->made.store, &name), 0);
    return name.id;
}

static void modules_of_a_run(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, net, "Some CPU", 0.001);
    pass(&f, root_name(&f), 50);
    assert_int_equal(finish(&f, NULL), 0);
    const struct nrg_row *fc1 = row_of(&f, "fc1", "aten::linear");
    check(fc1, POWER_W * 0.04, 50);
    assert_int_equal(fc1->level, NRG_NODE_OPERATOR);
    assert_string_equal(fc1->device, "Some CPU");
    assert_string_equal(fc1->provenance, "measured");
    assert_float_equal(feature(&f, fc1, NRG_F_MACS), 8 * 16 * 32, 0);
    assert_float_equal(feature(&f, fc1, NRG_F_READ_BYTES), 4 * (8 * 16 + 16 * 32 + 32), 0);
    assert_float_equal(feature(&f, fc1, NRG_F_WRITTEN_BYTES), 4 * 8 * 32, 0);
    assert_float_equal(feature(&f, fc1, NRG_F_BATCH), 8, 0);
    assert_true(fabs(feature(&f, fc1, NRG_F_TIME_S) - 0.04) < 1e-4);
    check(row_of(&f, "act", "aten::relu"), POWER_W * 0.02, 50);
    check(row_of(&f, "fc2", "aten::linear"), POWER_W * 0.03, 50);
    const struct nrg_row *model = row_of(&f, "", "Net");
    check(model, POWER_W * 0.1, 50);
    assert_int_equal(model->level, NRG_NODE_MODEL);
    assert_int_equal(model->n_parts, 3);
    assert_float_equal(feature(&f, model, NRG_F_REST_BYTES), 0, 0);
    end(&f);
}

/* relu was not measured: its traffic is the model's rest. */
static void what_has_no_row_is_the_rest(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, net, "Some CPU", 0.001);
    int64_t root = root_name(&f), fc1 = module(&f, "fc1"), fc2 = module(&f, "fc2");
    for (int i = 0; i < 50; i++) {
        made_begin(&f.made, f.t_s, f.track, root);
        call(&f, fc1, 0.04);
        f.t_s += 0.02;
        call(&f, fc2, 0.03);
        made_end(&f.made, f.t_s, f.track);
    }
    assert_int_equal(finish(&f, NULL), 0);
    const struct nrg_row *model = row_of(&f, "", "Net");
    assert_int_equal(model->n_parts, 2);
    assert_float_equal(feature(&f, model, NRG_F_REST_BYTES), 2 * 4 * 8 * 32, 0);
    end(&f);
}

/* fc2 multiplies and was not measured: the model's rest would be more than traffic. */
static void unmeasured_products_keep_a_module_out(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, net, "Some CPU", 0.001);
    int64_t root = root_name(&f), fc1 = module(&f, "fc1");
    for (int i = 0; i < 50; i++) {
        made_begin(&f.made, f.t_s, f.track, root);
        call(&f, fc1, 0.04);
        f.t_s += 0.06;
        made_end(&f.made, f.t_s, f.track);
    }
    assert_int_equal(finish(&f, NULL), 0);
    assert_int_equal(f.set.n, 1);
    assert_int_equal(noted(&f, "multiply and were not measured"), 1);
    end(&f);
}

/* Dispatched as addmm; the module around it has a row of its own then. */
static void operators_in_modules(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, net, "Some CPU", 0.001);
    int64_t fc1 = module(&f, "fc1"), addmm = made_name(&f.made, "operator", "aten::addmm");
    int64_t fill = made_name(&f.made, "operator", "aten::fill_");
    for (int i = 0; i < 50; i++) {
        made_begin(&f.made, f.t_s, f.track, fc1);
        call(&f, addmm, 0.03);
        call(&f, fill, 0.02);
        f.t_s += 0.01;
        made_end(&f.made, f.t_s, f.track);
    }
    assert_int_equal(finish(&f, NULL), 0);
    check(row_of(&f, "fc1", "aten::linear"), POWER_W * 0.03, 50);
    const struct nrg_row *linear = row_of(&f, "fc1", "Linear");
    check(linear, POWER_W * 0.06, 50);
    assert_int_equal(linear->n_parts, 1);
    assert_int_equal(noted(&f, "has none of in their module"), 1);
    end(&f);
}

/* The layer is called twice per pass: the same work twice is one row that stands for two. */
static void a_module_that_is_called_twice(void **state)
{
    struct fixture f;
    char text[2048];
    for (int same = 0; same < 2; same++) {
        begin(&f, twice(text, sizeof text, same ? 8 : 64), "Some CPU", 0.001);
        int64_t root = root_name(&f), fc = module(&f, "fc");
        for (int i = 0; i < 50; i++) {
            made_begin(&f.made, f.t_s, f.track, root);
            call(&f, fc, 0.04);
            call(&f, fc, 0.06);
            made_end(&f.made, f.t_s, f.track);
        }
        int rc = finish(&f, NULL);
        if (same) {
            assert_int_equal(rc, 0);
            const struct nrg_row *layer = row_of(&f, "fc", "aten::linear");
            check(layer, POWER_W * 0.05, 100);
            assert_int_equal(layer->multiplicity, 2);
            const struct nrg_row *model = row_of(&f, "", "Net");
            check(model, POWER_W * 0.1, 50);
            assert_int_equal(f.set.parts[model->first_part].count, 2);
        } else {
            assert_int_not_equal(rc, 0);
            assert_int_equal(noted(&f, "different sizes in one pass"), 1);
        }
        end(&f);
    }
    (void)state;
}

/* nrg.torch.measure: rounds of k calls, a layer measured once for each of its two sizes. */
static void rounds_of_a_measurement(void **state)
{
    static const char plan[] =
        "{\"schema\": \"nrg.measure/1\", \"model\": \"twice\", \"calls\": {\"\": 1, \"fc\": 2},"
        " \"nodes\": [{\"id\": 0, \"kind\": \"module\", \"places\": [[\"fc\", 0]]},"
        " {\"id\": 1, \"kind\": \"module\", \"places\": [[\"fc\", 1]]},"
        " {\"id\": 2, \"kind\": \"module\", \"places\": [[\"gone\", 0]]}]}";
    struct fixture f;
    char text[2048];
    (void)state;
    begin(&f, twice(text, sizeof text, 64), "Some CPU", 0.001);
    nrg_store_text(f.made.store, "note.measure", plan);
    int64_t calls = made_name(&f.made, "counter", "calls"), fc = module(&f, "fc");
    for (int node = 0; node < 3; node++) {
        char name[32];
        snprintf(name, sizeof name, "measure %d", node);
        made_begin(&f.made, f.t_s, f.track, made_name(&f.made, "phase", name));
        for (int round = 0; round < 4; round++) {
            made_begin(&f.made, f.t_s, f.track, fc);
            f.t_s += 0.2 * (node + 1);
            made_event(&f.made, f.t_s, f.track, NRG_SPAN_COUNT, calls, 10, 0);
            made_end(&f.made, f.t_s, f.track);
        }
        made_end(&f.made, f.t_s, f.track);
    }
    assert_int_equal(finish(&f, NULL), 0);
    assert_int_equal(f.set.n, 2);
    assert_int_equal(noted(&f, "without operators in the graph"), 1);
    for (size_t i = 0; i < 2; i++) {
        bool large = feature(&f, &f.set.rows[i], NRG_F_MACS) == 64 * 16 * 16;
        check(&f.set.rows[i], POWER_W * (large ? 0.04 : 0.02), 40);
        assert_string_equal(f.set.rows[i].model, "twice");
    }
    end(&f);
}

static void refusals(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, NULL, "Some CPU", 0.001); /* no graph */
    pass(&f, root_name(&f), 5);
    assert_int_not_equal(finish(&f, NULL), 0);
    assert_non_null(strstr(f.err.what, "keeps no graph"));
    end(&f);

    begin(&f, net, "Some CPU", 0.001); /* no spans */
    assert_int_not_equal(finish(&f, NULL), 0);
    assert_non_null(strstr(f.err.what, "holds no spans"));
    end(&f);

    begin(&f, net, "Some CPU", 0.001); /* a plan that is none */
    nrg_store_text(f.made.store, "note.measure", "{\"schema\": \"nrg.measure/1\", \"nodes\": 3}");
    pass(&f, root_name(&f), 5);
    assert_int_not_equal(finish(&f, NULL), 0);
    assert_non_null(strstr(f.err.what, "note 'measure'"));
    end(&f);

    begin(&f, "graph(%x : Float(8, 16)):\n  return (%x)\n", "Some CPU",
          0.001); /* another model's */
    pass(&f, root_name(&f), 5);
    assert_int_not_equal(finish(&f, NULL), 0);
    assert_non_null(strstr(f.err.what, "could be joined"));
    end(&f);
}

/* Of several recordings one that gives nothing is noted; the others count. */
static void one_without_rows_does_not_spoil_the_others(void **state)
{
    struct nrg_read_options options = {.idle = NRG_IDLE_NONE};
    struct fixture good, other;
    (void)state;
    begin(&other, "graph(%x : Float(8, 16)):\n  return (%x)\n", "Some CPU", 0.001);
    pass(&other, root_name(&other), 5);
    assert_int_not_equal(finish(&other, NULL), 0);
    begin(&good, net, "Some CPU", 0.001);
    pass(&good, root_name(&good), 5);
    assert_int_equal(finish(&good, NULL), 0);
    size_t rows = good.set.n;
    nrg_dataset_release(&good.set);
    nrg_dataset_init(&good.set);
    const char *paths[] = {other.made.path, good.made.path};
    assert_int_equal(nrg_dataset_read_recordings(&good.set, paths, 2, &options, &good.err), 0);
    assert_int_equal(nrg_dataset_finish(&good.set, &good.err), 0);
    assert_int_equal(good.set.n, rows);
    assert_int_equal(noted(&good, "nothing could be joined"), 1);
    end(&good);
    end(&other);
}

/* A sensor that is read every 2 s tells nothing of single layers of some ms. */
static void spans_too_short_are_left_out(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, net, "Some CPU", 2);
    pass(&f, root_name(&f), 4);
    int rc = finish(&f, NULL);
    assert_int_not_equal(rc, 0);
    assert_non_null(strstr(f.err.what, "not resolved"));
    assert_true(noted(&f, "not resolved") >= 3);
    end(&f);
}

static void devices_do_not_mix(void **state)
{
    struct fixture a, b;
    struct nrg_read_options named = {.idle = NRG_IDLE_NONE, .device = "both"};
    (void)state;
    for (int with_name = 0; with_name < 2; with_name++) {
        begin(&a, net, "Some CPU", 0.001);
        pass(&a, root_name(&a), 20);
        begin(&b, net, "Another CPU", 0.001);
        pass(&b, root_name(&b), 20);
        assert_int_equal(finish(&a, with_name ? &named : NULL), 0);
        nrg_dataset_release(&b.set);
        b.set = a.set; /* read on into the same */
        nrg_dataset_init(&a.set);
        int rc = finish(&b, with_name ? &named : NULL);
        if (with_name) {
            assert_int_equal(rc, 0);
            assert_string_equal(b.set.rows[0].device, "both");
        } else {
            assert_int_not_equal(rc, 0);
            assert_non_null(strstr(b.err.what, "different devices"));
        }
        end(&a);
        end(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_of_a_run),
        cmocka_unit_test(what_has_no_row_is_the_rest),
        cmocka_unit_test(unmeasured_products_keep_a_module_out),
        cmocka_unit_test(operators_in_modules),
        cmocka_unit_test(a_module_that_is_called_twice),
        cmocka_unit_test(rounds_of_a_measurement),
        cmocka_unit_test(refusals),
        cmocka_unit_test(one_without_rows_does_not_spoil_the_others),
        cmocka_unit_test(spans_too_short_are_left_out),
        cmocka_unit_test(devices_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
