/*
 * attribute/attribution.c: rows by module, name, step and cycle, over several runs, with counts.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/internal.h"
#include "support/attributed.h"

static void estimates_are_flagged(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("machine"), idle = made_counter("machine.idle"),
                       low = made_counter("machine.low"), high = made_counter("machine.high");
    struct nrg_attribution_options o = plain;
    (void)state;
    c.provenance = idle.provenance = low.provenance = high.provenance = NRG_ESTIMATED;
    o.idle = NRG_IDLE_APART;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 50);
    made_constant(&m, &idle, -1, 11, 0.1, 20);
    made_constant(&m, &low, -1, 11, 0.1, 40);
    made_constant(&m, &high, -1, 11, 0.1, 70);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    made_span(&m, 1, 5, track, made_name(&m, "span", "work"));
    attribute(&m, &o, &a);
    assert_int_equal(row(&a, "work")->provenance, NRG_ESTIMATED);
    assert_int_equal(row(&a, "work")->flags, 0);
    assert_int_equal(a.provenance, NRG_ESTIMATED);
    assert_string_equal(a.domains[0].idle_source, "estimate");
    close_to(row(&a, "work")->energy_j, 120, 0.01, "above idle");
    close_to(row(&a, "work")->low_j, 120, 0.5, "the band is no part of a row");
    close_to(row(&a, "work")->high_j, 120, 0.5, "the band is no part of a row");
    close_to(row(&a, "work")->scaled_high_j, 120 * 1.4, 0.5, "band");
    close_to(row(&a, "work")->scaled_low_j, 120 * 0.8, 0.5, "band");
    close_to(a.scale.low, 0.8, 1e-3, "scale");
    close_to(a.scale.high, 1.4, 1e-3, "scale");
    close_to(a.total_low_j, 400, 0.5, "the total has the band");
    close_to(a.total_high_j, 700, 0.5, "the total has the band");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* Two runs, with a pause that belongs to none. */
static void several_runs(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 3);
    made_run(&m, "run", 5, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t name = made_name(&m, "span", "work");
    made_span(&m, 1, 2, track, name);
    made_span(&m, 6, 8, track, name);
    attribute(&m, &o, &a);
    close_to(a.total_j, 80, 1e-4, "both runs");
    close_to(a.duration_s, 8, 1e-9, "both runs");
    close_to(row(&a, "work")->energy_j, 30, 1e-4, "both");
    nrg_attribution_release(&a);
    o.run = 2;
    attribute(&m, &o, &a);
    close_to(a.total_j, 50, 1e-4, "second run");
    close_to(row(&a, "work")->energy_j, 20, 1e-4, "in the second");
    close_to(row(&a, "work")->time_s, 2, 1e-9, "in the second");
    assert_int_equal(row(&a, "work")->calls, 1);
    nrg_attribution_release(&a);
    made_release(&m);
}

static void counts(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t step = made_name(&m, "step", "step"), inner = made_name(&m, "span", "inner"),
            tokens = made_name(&m, "counter", "tokens"),
            other = made_name(&m, "counter", "requests");
    made_begin(&m, 1, track, step);
    made_event(&m, 1.5, track, NRG_SPAN_COUNT, tokens, 3, NRG_MISSING);
    made_begin(&m, 2, track, inner);
    made_event(&m, 2.5, track, NRG_SPAN_COUNT, tokens, 4, NRG_MISSING);
    made_event(&m, 2.6, track, NRG_SPAN_COUNT, other, 1, NRG_MISSING);
    made_end(&m, 3, track);
    made_end(&m, 4, track);
    made_event(&m, 5, track, NRG_SPAN_COUNT, tokens, 100, NRG_MISSING);
    attribute(&m, &plain, &a);
    const struct nrg_attribution_row *outer = row(&a, "step"), *in = row(&a, "inner");
    assert_int_equal(in->n_counts, 2);
    assert_int_equal(outer->n_counts, 2);
    for (size_t i = 0; i < 2; i++) {
        bool is_tokens = !strcmp(outer->counts[i].name, "tokens");
        close_to(outer->counts[i].amount, is_tokens ? 7 : 1, 0, "step");
        is_tokens = !strcmp(in->counts[i].name, "tokens");
        close_to(in->counts[i].amount, is_tokens ? 4 : 1, 0, "inner");
    }
    nrg_attribution_release(&a);
    made_release(&m);
}

/* A model of two modules, twice forward and once backward, with operators. */
static void views(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, ""), step = made_name(&m, "step", "step"),
            net = made_name(&m, "module", "Net"), conv = made_name(&m, "module", "block.0.conv"),
            back = made_name(&m, "backward", "block.0.conv"), op = made_name(&m, "operator", "mm");
    for (int i = 0; i < 2; i++) {
        double t = 1 + 4 * i;
        made_event(&m, t, track, NRG_SPAN_BEGIN, step, 10 + i, NRG_MISSING);
        made_begin(&m, t + 0.5, track, net);
        made_begin(&m, t + 1, track, conv);
        made_span(&m, t + 1.25, t + 1.5, track, op);
        made_end(&m, t + 2, track);
        made_end(&m, t + 2.5, track);
        if (i)
            made_span(&m, t + 3, t + 3.5, track, back);
        made_end(&m, t + 4, track);
    }
    o.by = NRG_BY_MODULE;
    attribute(&m, &o, &a);
    const struct nrg_attribution_row *r = row(&a, "block.0.conv");
    assert_int_equal(r->calls, 2);
    close_to(r->time_s, 2.5, 1e-9, "forward and backward");
    close_to(r->energy_j, 25, 1e-3, "forward and backward");
    close_to(r->energy_self_j, 20, 1e-3, "without its operators");
    assert_string_equal(a.rows[r->parent].name, "block.0");
    assert_string_equal(a.rows[a.rows[r->parent].parent].name, "block");
    assert_string_equal(a.rows[a.rows[a.rows[r->parent].parent].parent].name, "Net");
    assert_string_equal(a.rows[row(&a, "mm")->parent].name, "block.0.conv");
    close_to(row(&a, "step")->energy_j, 80 - 45, 1e-3, "what is no module's");
    close_to(row(&a, "Net")->energy_j, 45, 1e-3, "the model, with its backward");
    nrg_attribution_release(&a);

    o.by = NRG_BY_NAME;
    attribute(&m, &o, &a);
    assert_int_equal(a.n_rows, 5);
    close_to(row(&a, "step")->energy_j, 80, 1e-3, "all inside");
    close_to(row(&a, "mm")->energy_j, 5, 1e-3, "mm");
    close_to(row(&a, "step")->time_s, 8, 1e-9, "all inside");
    nrg_attribution_release(&a);

    o.by = NRG_BY_STEP;
    attribute(&m, &o, &a);
    assert_int_equal(a.n_rows, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(a.rows[i].number, 10 + i);
        assert_int_equal(a.rows[i].calls, 1);
        close_to(a.rows[i].energy_j, 40, 1e-3, "a step");
        close_to(a.rows[i].energy_self_j, 40, 1e-3, "a step");
    }
    nrg_attribution_release(&a);
    made_release(&m);
}

static bool same_row(const struct nrg_attribution_row *x, const struct nrg_attribution_row *y)
{
    const double a[] = {x->energy_j, x->energy_self_j, x->low_j, x->high_j, x->time_s};
    const double b[] = {y->energy_j, y->energy_self_j, y->low_j, y->high_j, y->time_s};
    return !strcmp(x->name, y->name) && x->parent == y->parent && x->calls == y->calls &&
           !memcmp(a, b, sizeof a);
}

/* Views only read what the engine found: each is as if the engine had run for it alone. */
static void one_engine_many_views(void **state)
{
    static const enum nrg_rows_by views[] = {NRG_BY_NAME, NRG_BY_MODULE, NRG_BY_PATH, NRG_BY_NAME};
    struct made m;
    struct nrg_error err = {0};
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    struct nrg_rows_memory memory = {0};
    struct nrg_attribution all = {.memory = &memory}, alone;
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, ""), step = made_name(&m, "step", "step"),
            net = made_name(&m, "module", "Net"), op = made_name(&m, "operator", "mm");
    for (int i = 0; i < 3; i++) {
        made_begin(&m, 1 + 2 * i, track, step);
        made_begin(&m, 1.13 + 2 * i, track, net);
        made_span(&m, 1.37 + 2 * i, 1.91 + 2 * i, track, op);
        made_end(&m, 2.21 + 2 * i, track);
        made_end(&m, 2.5 + 2 * i, track);
    }
    made_open(&m);
    struct nrg_engine e = {.recording = m.recording, .options = &o, .out = &all, .err = &err};
    assert_int_equal(nrg_engine_open(&e), 0);
    assert_int_equal(nrg_engine_run(&e), 0);
    for (size_t i = 0; i < 4; i++) {
        struct nrg_view_rows rows;
        assert_int_equal(nrg_view_rows(&rows, &e, views[i], &memory.arena), 0);
        struct nrg_attribution_options how = o;
        how.by = views[i];
        attribute(&m, &how, &alone);
        assert_int_equal(rows.n, alone.n_rows);
        for (size_t r = 0; r < rows.n; r++)
            assert_true(same_row(&rows.rows[r], &alone.rows[r]));
        assert_int_equal(alone.n_units, 1);
        close_to(alone.units[0].energy_j, 45, 1e-3, "steps with what is inside, in every view");
        nrg_attribution_release(&alone);
    }
    nrg_engine_release(&e);
    nrg_arena_release(&memory.arena);
    nrg_span_catalog_release(&memory.catalog);
    free(all.domains);
    nrg_summary_release(&all.summary);
    made_release(&m);
}

/* Cycles show their layers. */
static void by_cycle(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    struct nrg_attribution_options o = plain;
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "log", 0, 0, ""), cycle = made_name(&m, "cycle", "cycle"),
            layer = made_name(&m, "layer", "conv");
    for (int i = 0; i < 3; i++) {
        made_event(&m, 1 + i, track, NRG_SPAN_BEGIN, cycle, 1 + i, NRG_MISSING);
        made_span(&m, 1.25 + i, 1.5 + i, track, layer);
        made_end(&m, 1.75 + i, track);
    }
    o.by = NRG_BY_CYCLE;
    attribute(&m, &o, &a);
    assert_int_equal(a.n_rows, 6);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(a.rows[2 * i].number, 1 + i);
        assert_int_equal(a.rows[2 * i + 1].parent, 2 * i);
        close_to(a.rows[2 * i].energy_j, 7.5, 1e-3, "cycle");
        close_to(a.rows[2 * i + 1].energy_j, 2.5, 1e-3, "layer");
    }
    nrg_attribution_release(&a);
    made_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(estimates_are_flagged),
        cmocka_unit_test(several_runs),
        cmocka_unit_test(counts),
        cmocka_unit_test(views),
        cmocka_unit_test(one_engine_many_views),
        cmocka_unit_test(by_cycle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
