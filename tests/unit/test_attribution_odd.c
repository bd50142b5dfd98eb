/*
 * attribute/attribution.c: spans that do not nest or end, have no readings, or nothing at all.
 */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/attributed.h"

static void domains_that_overlap_are_refused(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_error err = {0};
    struct nrg_channel package = made_counter("package-0"), core = made_counter("core-0");
    static const char *const both[] = {"package-0", "core-0", NULL}, *const none[] = {"x", NULL};
    struct nrg_attribution_options o = plain;
    (void)state;
    strcpy(core.parent, "package-0");
    made_init(&m);
    made_constant(&m, &package, -1, 11, 0.1, 20);
    made_constant(&m, &core, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    made_open(&m);
    o.domains = both;
    assert_int_equal(nrg_attribution_make(&a, m.recording, &o, &err), -EINVAL);
    assert_non_null(strstr(err.what, "twice"));
    o.domains = none;
    assert_int_equal(nrg_attribution_make(&a, m.recording, &o, &err), -ENOENT);
    o = plain;
    o.run = 17;
    assert_int_equal(nrg_attribution_make(&a, m.recording, &o, &err), -ENOENT);
    made_release(&m);
}

static void unclosed_and_unmatched(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, ""), other = made_track(&m, "thread", 8, 8, "");
    int64_t open = made_name(&m, "span", "open"), lost = made_name(&m, "span", "lost");
    struct nrg_process_info ended = {
        .id = 5, .pid = 8, .first_ns = made_ns(0), .last_ns = made_ns(4), .ended = 1, .uid = -1};
    assert_int_equal(nrg_store_process(m.store, &ended), 0);
    made_end(&m, 1, track);
    made_begin(&m, 2, other, lost);
    made_begin(&m, 6, track, open);
    attribute(&m, &plain, &a);
    assert_int_equal(a.unclosed, 2);
    assert_int_equal(a.unmatched_ends, 1);
    close_to(row(&a, "open")->energy_j, 40, 1e-4, "up to the end of the run");
    close_to(row(&a, "lost")->energy_j, 20, 1e-4, "up to the end of its process");
    assert_int_equal(row(&a, "open")->flags & NRG_ROW_UNCLOSED, NRG_ROW_UNCLOSED);
    assert_true(a.n_notes >= 2);
    nrg_attribution_release(&a);
    made_release(&m);
}

/* a: 1..5, b: 3..7 on one track: an end that names the outer one closes the inner one too. */
static void overlap_is_cut(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    int64_t first = made_name(&m, "span", "a"), second = made_name(&m, "span", "b");
    made_begin(&m, 1, track, first);
    made_begin(&m, 3, track, second);
    made_event(&m, 5, track, NRG_SPAN_END, first, NRG_MISSING, NRG_MISSING);
    made_event(&m, 7, track, NRG_SPAN_END, second, NRG_MISSING, NRG_MISSING);
    attribute(&m, &plain, &a);
    assert_int_equal(a.cut, 1);
    assert_int_equal(a.unmatched_ends, 1);
    close_to(row(&a, "a")->energy_j, 40, 1e-4, "a");
    close_to(row(&a, "b")->energy_j, 20, 1e-4, "b");
    assert_int_equal(row(&a, "b")->flags & NRG_ROW_CLOCK, NRG_ROW_CLOCK);
    nrg_attribution_release(&a);
    made_release(&m);
}

static void zero_length_and_odd_names(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    char *name = malloc(10001);
    (void)state;
    memset(name, 'x', 10000);
    memcpy(name, "<b>\"'\n,", 7);
    name[10000] = 0;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    made_span(&m, 2, 2, track, made_name(&m, "span", "nothing"));
    made_span(&m, 3, 4, track, made_name(&m, "span", name));
    made_begin(&m, 5, track, 4711); /* a name that is not in the catalog */
    made_end(&m, 6, track);
    made_span(&m, 7, 8, 4712, 1); /* a track that is not */
    attribute(&m, &plain, &a);
    assert_int_equal(a.n_rows, 3);
    close_to(row(&a, "nothing")->energy_j, 0, 0, "nothing");
    assert_int_equal(row(&a, "nothing")->calls, 1);
    assert_int_equal(strlen(a.rows[1].name), 10000);
    close_to(a.rows[1].energy_j, 10, 1e-4, "long name");
    close_to(row(&a, "(unknown name)")->energy_j, 10, 1e-4, "unknown name");
    nrg_attribution_release(&a);
    made_release(&m);
    free(name);
}

/* Spans before the first reading and after the last: nothing is made up. */
static void outside_the_readings(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, 2, 8, 0.1, 10);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    made_span(&m, 0.5, 1, track, made_name(&m, "span", "before"));
    made_span(&m, 1, 3, track, made_name(&m, "span", "into"));
    made_span(&m, 7, 12, track, made_name(&m, "span", "out"));
    attribute(&m, &plain, &a);
    assert_true(isnan(row(&a, "before")->energy_j));
    assert_true(isnan(row(&a, "before")->high_j));
    close_to(row(&a, "into")->energy_j, 10, 1e-4, "into");
    close_to(row(&a, "out")->energy_j, 10, 1e-4, "out");
    close_to(row(&a, "out")->time_s, 5, 1e-9, "time of out");
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(a.rows[i].flags & NRG_ROW_UNCOVERED, NRG_ROW_UNCOVERED);
    close_to(a.unattributed_j, 40, 1e-4, "unattributed");
    nrg_attribution_release(&a);
    made_release(&m);
}

static void nothing_to_attribute(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_run(&m, "run", 0, 10);
    attribute(&m, &plain, &a);
    assert_int_equal(a.n_rows, 0);
    close_to(a.unattributed_j, 100, 1e-4, "no spans");
    nrg_attribution_release(&a);
    made_release(&m);

    made_init(&m);
    made_busy(&m, -1, 11, 1);
    made_run(&m, "run", 0, 10);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    made_span(&m, 1, 3, track, made_name(&m, "span", "work"));
    attribute(&m, &plain, &a);
    assert_int_equal(a.n_domains, 0);
    assert_true(isnan(a.total_j) && isnan(row(&a, "work")->energy_j));
    close_to(row(&a, "work")->time_s, 2, 1e-9, "time without energy");
    nrg_attribution_release(&a);
    made_release(&m);
}

/* A captured machine's joules are nobody's here: --root with a /proc of its own. */
static void sensors_of_another_machine(void **state)
{
    struct made m;
    struct nrg_attribution a;
    struct nrg_channel c = made_counter("package-0");
    bool said = false;
    (void)state;
    made_init(&m);
    made_constant(&m, &c, -1, 11, 0.1, 10);
    made_busy(&m, -1, 11, 1);
    made_run(&m, "run", 0, 10);
    assert_int_equal(nrg_store_text(m.store, NRG_META_PROCESS_MACHINE, "another"), 0);
    int64_t track = made_track(&m, "thread", 7, 7, "");
    made_span(&m, 1, 3, track, made_name(&m, "span", "work"));
    attribute(&m, &plain, &a);
    assert_int_equal(a.n_domains, 0);
    assert_true(isnan(row(&a, "work")->energy_j));
    close_to(row(&a, "work")->time_s, 2, 1e-9, "time without energy");
    for (size_t i = 0; i < a.n_notes; i++)
        said |= strstr(a.notes[i].why, "captured machine") != NULL;
    assert_true(said);
    nrg_attribution_release(&a);
    made_release(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(domains_that_overlap_are_refused),
        cmocka_unit_test(unclosed_and_unmatched),
        cmocka_unit_test(overlap_is_cut),
        cmocka_unit_test(zero_length_and_odd_names),
        cmocka_unit_test(outside_the_readings),
        cmocka_unit_test(nothing_to_attribute),
        cmocka_unit_test(sensors_of_another_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
