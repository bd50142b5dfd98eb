/* Scenarios: what parses, what is refused on which line, and the closed forms of the truth. */
#include "support/cmocka.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/virtual/scenario_truth.h"

#define S INT64_C(1000000000)

#define assert_near(got, want, slack)                                                              \
    do {                                                                                           \
        double got_ = (got), want_ = (want);                                                       \
        if (!(fabs(got_ - want_) <= (slack)))                                                      \
            fail_msg("%s is %.17g, not %.17g", #got, got_, want_);                                 \
    } while (0)

static void parse(struct nrg_scenario *scenario, const char *text)
{
    struct nrg_error err = {0};
    if (nrg_scenario_parse(scenario, "test", text, strlen(text), &err))
        fail_msg("line %lld: %s", err.offset, err.what);
}

static void everything_parses(void **state)
{
    struct nrg_scenario s;
    (void)state;
    parse(&s, "# a machine\n"
              "seed 42\r\n"
              "\n"
              "domain psys   # the board\n"
              "  power 120W\n"
              "  wide\n"
              "domain package-0\n"
              "  power 0s:20 5s:80 10s:20\n"
              "  per-busy-cpu 12\n"
              "  kind counter\n  update 2ms\n  quantum 61uJ\n  noise 1%\n"
              "  wrap 262143.3J\n  start 262140J\n  limit 400\n  parent psys\n  covers-cpu\n"
              "  fault 2s EIO 500ms\n  fault 3s stuck 1s\n  fault 4s backwards 5J\n"
              "  fault 5s gone\n  fault 6s ENODATA\n"
              "domain gpu-0\n"
              "  quantum 40mW\n  kind gauge\n  lag 0.4s\n"
              "  burst period=100ms duty=30% low=10 high=90\n"
              "domain gpu-0\n"
              "  ramp 0s:20 10s:80 10s:5"); /* no newline at the end */
    assert_int_equal(s.seed, 42);
    assert_int_equal(s.n_domains, 4);
    const struct nrg_scenario_domain *d = &s.domains[1];
    assert_string_equal(d->name, "package-0");
    assert_string_equal(d->parent, "psys");
    assert_int_equal(d->n_points, 3);
    assert_int_equal(d->points[1].t_ns, 5 * S);
    assert_near(d->quantum, 61e-6, 0);
    assert_near(d->noise, 0.01, 1e-15);
    assert_int_equal(d->update_ns, 2000000);
    assert_int_equal(d->n_faults, 5);
    assert_int_equal(d->faults[0].error, -EIO);
    assert_int_equal(d->faults[0].end_ns, 5 * S / 2);
    assert_near(d->faults[2].energy_j, 5, 0);
    assert_int_equal(d->faults[4].end_ns, INT64_MAX);
    assert_true(d->covers_cpu && s.domains[0].wide && s.domains[2].gauge);
    assert_near(s.domains[2].quantum, 0.04, 1e-15);
    assert_int_equal(s.domains[2].burst_on_ns, 30000000);
    assert_int_equal(s.domains[2].update_ns, 1000000); /* the default */
    assert_true(nrg_scenario_needs_busy_cpu(&s));
    nrg_scenario_release(&s);
}

#define D "domain a\n"
#define P D "power 1\n"

static const struct {
    const char *text;
    int line;
    const char *says;
} refused[] = {
    {"", 1, "no domain"},
    {"# nothing\n\n", 1, "no domain"},
    {"power 5\n", 1, "before the first domain"},
    {P "powr 5\n", 3, "did you mean 'power'?"},
    {P "fualt 5\n", 3, "did you mean 'fault'?"},
    {P "xylophone\n", 3, "unknown word 'xylophone'"},
    {P "\xff\xfe\n", 3, "unknown word '\?\?'"},
    {P "seed 3\n", 3, "before the first domain"},
    {"seed x\n", 1, "whole number"},
    {"seed\n", 1, "missing"},
    {"domain\n", 1, "missing"},
    {"domain a/b\n", 1, "not a domain name"},
    {"domain a b\n", 1, "more than"},
    {"domain abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\n", 1, "not a domain name"},
    {D, 1, "no power"},
    {"\n" P "\n" D "power 2\n", 5, "already, on line 2"},
    {P "power 2\n", 3, "already"},
    {D "power\n", 2, "missing"},
    {D "power -5\n", 2, "not a number"},
    {D "power nan\n", 2, "not a number"},
    {D "power inf\n", 2, "not a number"},
    {D "power 0x10\n", 2, "not a number"},
    {D "power 1e400\n", 2, "not a number"},
    {D "power 5J\n", 2, "unit W"},
    {D "power 5 6\n", 2, "more than"},
    {D "power 0s:1 0s:2\n", 2, "not later"},
    {D "power 2s:1 1s:2\n", 2, "not later"},
    {D "power 0s:1 5\n", 2, "TIME:WATTS"},
    {D "power -1s:1\n", 2, "a time"},
    {D "power 1x:1\n", 2, "a time"},
    {D "power 20000d:1\n", 2, "ten years"},
    {D "ramp 2s:1 1s:2\n", 2, "not later"},
    {D "ramp\n", 2, "missing"},
    {D "burst period=1s duty=2 high=3\n", 2, "duty"},
    {D "burst period=1s high=3\n", 2, "needs"},
    {D "burst period=1ns duty=0.5 high=3\n", 2, "needs"},
    {D "burst phase=1s\n", 2, "not 'phase=1s'"},
    {D "burst 5\n", 2, "not '5'"},
    {P "kind meter\n", 3, "not 'meter'"},
    {P "update 1ns\n", 3, "1us or more"},
    {P "noise 200%\n", 3, "noise"},
    {P "quantum 0\n", 3, "quantum"},
    {P "quantum 5mW\n", 1, "in J for counters"},
    {P "kind gauge\nquantum 5mJ\n", 1, "in W for gauges"},
    {P "lag 1s\n", 1, "lag is for gauges"},
    {P "kind gauge\nwrap 5J\n", 1, "for counters"},
    {P "kind gauge\nfault 1s backwards 5J\n", 1, "only counters"},
    {P "wrap 5J\nstart 5J\n", 1, "beyond its wrap"},
    {P "wrap 1e15J\nquantum 1nJ\n", 1, "too small"},
    {P "wrap 1mJ\nquantum 1mJ\n", 1, "two quanta"},
    {P "parent b\n", 3, "not a domain of this file"},
    {P "parent a\n", 3, "contains itself"},
    {P "parent b\ndomain b\npower 1\nparent a\n", 3, "contains itself"},
    {P "fault\n", 3, "missing"},
    {P "fault 1s\n", 3, "missing"},
    {P "fault 1s EFOO\n", 3, "'EFOO' is not a fault"},
    {P "fault 1s EIO soon\n", 3, "not 'soon'"},
    {P "fault 1s backwards\n", 3, "missing"},
    {P "fault 1s gone 5s\n", 3, "more than"},
};

static void refuses_with_the_line(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct nrg_scenario s;
        struct nrg_error err = {0};
        const char *text = refused[i].text;
        int rc = nrg_scenario_parse(&s, "some.file", text, strlen(text), &err);
        if (rc != -EINVAL)
            fail_msg("'%s' gave %d", text, rc);
        if (err.offset != refused[i].line || !strstr(err.what, refused[i].says))
            fail_msg("'%s' gave line %lld: %s", text, err.offset, err.what);
        assert_string_equal(err.where, "some.file");
        assert_null(s.domains);
        assert_int_equal(nrg_scenario_parse(&s, "some.file", text, strlen(text), NULL), -EINVAL);
    }
}

static void repeat(struct nrg_str *out, const char *head, const char *format, int n)
{
    *out = (struct nrg_str){0};
    assert_int_equal(nrg_str_add(out, head, strlen(head)), 0);
    for (int i = 0; i < n; i++) {
        char part[64];
        snprintf(part, sizeof part, "%s%d%s", format, i,
                 strstr(head, "power ") ? "s:1" : "\npower 1\n");
        assert_int_equal(nrg_str_add(out, part, strlen(part)), 0);
    }
}

static void limits_hold(void **state)
{
    struct nrg_scenario s;
    struct nrg_error err;
    struct nrg_str text;
    (void)state;
    repeat(&text, "", "domain d", NRG_SCENARIO_DOMAINS);
    assert_int_equal(nrg_scenario_parse(&s, "", text.text, text.len, &err), 0);
    nrg_scenario_release(&s);
    nrg_str_release(&text);
    repeat(&text, "", "domain d", NRG_SCENARIO_DOMAINS + 1);
    assert_int_equal(nrg_scenario_parse(&s, "", text.text, text.len, &err), -EINVAL);
    assert_int_equal(err.offset, 2 * NRG_SCENARIO_DOMAINS + 1);
    nrg_str_release(&text);
    repeat(&text, "domain d\npower ", " ", NRG_SCENARIO_POINTS);
    assert_int_equal(nrg_scenario_parse(&s, "", text.text, text.len, &err), 0);
    nrg_scenario_release(&s);
    nrg_str_release(&text);
    repeat(&text, "domain d\npower ", " ", NRG_SCENARIO_POINTS + 1);
    assert_int_equal(nrg_scenario_parse(&s, "", text.text, text.len, &err), -EINVAL);
    assert_int_equal(err.offset, 2);
    nrg_str_release(&text);
    char *huge = calloc(1, NRG_SCENARIO_BYTES + 1);
    assert_non_null(huge);
    assert_int_equal(nrg_scenario_parse(&s, "", huge, NRG_SCENARIO_BYTES + 1, &err), -EFBIG);
    free(huge);
    assert_int_equal(nrg_scenario_load(&s, "/nonexistent/file", &err), -ENOENT);
    assert_int_equal(nrg_scenario_load(&s, "/", &err), -EINVAL);
}

static void closed_forms(void **state)
{
    struct nrg_scenario s;
    (void)state;
    parse(&s, "domain constant\npower 50\n"
              "domain steps\npower 1s:20 5s:80 10s:20\n"
              "domain ramp\nramp 2s:20 12s:80 12s:10\n"
              "domain burst\nburst period=100ms duty=0.3 low=10 high=90\n"
              "domain always\nburst period=1s duty=1 high=7\n"
              "domain never\nburst period=1s duty=0 low=2 high=7\n");
    const struct nrg_scenario_domain *d = s.domains;
    assert_near(nrg_scenario_true_j(&d[0], 0, 3 * S), 150, 0);
    assert_near(nrg_scenario_true_j(&d[0], -5 * S, S), 50, 0); /* nothing before time 0 */
    assert_near(nrg_scenario_true_j(&d[0], 2 * S, S), 0, 0);
    assert_near(nrg_scenario_true_j(&d[1], 0, 12 * S), 20 * 5 + 80 * 5 + 20 * 2, 1e-12);
    assert_near(nrg_scenario_true_j(&d[1], 4 * S, 6 * S), 100, 1e-12);
    assert_near(nrg_scenario_true_w(&d[1], 5 * S), 80, 0);
    assert_near(nrg_scenario_true_w(&d[1], 5 * S - 1), 20, 0);
    /* ramp: 20 W for 2 s, mean 50 W for 10 s, then 10 W */
    assert_near(nrg_scenario_true_j(&d[2], 0, 13 * S), 40 + 500 + 10, 1e-9);
    assert_near(nrg_scenario_true_j(&d[2], 7 * S, 8 * S), 53, 1e-9);
    assert_near(nrg_scenario_true_w(&d[2], 7 * S), 50, 1e-12);
    assert_near(nrg_scenario_true_w(&d[2], 12 * S), 10, 0);
    assert_near(nrg_scenario_true_j(&d[3], 0, S), 34, 1e-12);
    assert_near(nrg_scenario_true_j(&d[3], 20000000, 110000000), 90 * 0.02 + 10 * 0.07, 1e-12);
    assert_near(nrg_scenario_true_j(&d[4], S / 3, 2 * S + S / 3), 14, 1e-12);
    assert_near(nrg_scenario_true_j(&d[5], 0, 3 * S), 6, 1e-12);
    /* A year into it, a second still has all its digits. */
    int64_t year = 365 * 86400 * S;
    assert_near(nrg_scenario_true_j(&d[0], year, year + S), 50, 0);
    assert_near(nrg_scenario_true_j(&d[3], year, year + S), 34, 1e-12);
    nrg_scenario_release(&s);
}

/* Energy of any interval is the sum of its parts, and matches a sum over small steps. */
static void energy_adds_up(void **state)
{
    struct nrg_scenario s;
    (void)state;
    parse(&s, "domain a\npower 0.1s:20 0.25s:80 0.31s:0\n"
              "domain b\nramp 0.05s:1 0.2s:9 0.2s:3 0.4s:4\n"
              "domain c\nburst period=7ms duty=0.41 low=3 high=11\n");
    for (size_t i = 0; i < s.n_domains; i++) {
        const struct nrg_scenario_domain *d = &s.domains[i];
        double parts_j = 0, riemann_j = 0;
        for (int64_t t = 0; t < S / 2; t += 1234567) {
            int64_t end = t + 1234567 < S / 2 ? t + 1234567 : S / 2;
            parts_j += nrg_scenario_true_j(d, t, end);
        }
        for (int64_t t = 5000; t < S / 2; t += 10000)
            riemann_j += nrg_scenario_true_w(d, t) * 10e-6;
        assert_near(parts_j, nrg_scenario_true_j(d, 0, S / 2), 1e-11);
        assert_near(riemann_j, parts_j, 0.01);
    }
    nrg_scenario_release(&s);
}

static void lag_is_analytic(void **state)
{
    struct nrg_scenario s;
    (void)state;
    parse(&s, "domain step\nkind gauge\nlag 0.4s\npower 0s:20 1s:80\n"
              "domain ramp\nkind gauge\nlag 0.5s\nramp 0s:0 100s:1000\n"
              "domain burst\nkind gauge\nlag 2s\nburst period=100ms duty=0.3 low=10 high=90\n");
    const struct nrg_scenario_domain *step = &s.domains[0], *ramp = &s.domains[1],
                                     *burst = &s.domains[2];
    for (int i = 0; i <= 20; i++) {
        int64_t t_ns = S + i * S / 10;
        double want_w = 80 - 60 * exp(-(double)i * 0.1 / 0.4);
        assert_near(nrg_scenario_lagged_w(step, 0, 20, t_ns), want_w, 1e-10);
    }
    /* A ramp is followed with slope * tau of distance once settled. */
    assert_near(nrg_scenario_lagged_w(ramp, 0, 0, 20 * S), 200 - 5, 1e-10);
    assert_near(nrg_scenario_lagged_w(ramp, 0, 0, S), 10 - 5 * (1 - exp(-2)), 1e-10);
    /* One jump over many periods equals many small steps through them. */
    double small_w = 10;
    for (int64_t t = 0; t < 13 * S + 57000000; t += 13000000) {
        int64_t end = t + 13000000 < 13 * S + 57000000 ? t + 13000000 : 13 * S + 57000000;
        small_w = nrg_scenario_lagged_w(burst, t, small_w, end);
    }
    assert_near(nrg_scenario_lagged_w(burst, 0, 10, 13 * S + 57000000), small_w, 1e-9);
    assert_near(small_w, 34, 2); /* near the mean, as it should */
    nrg_scenario_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_parses), cmocka_unit_test(refuses_with_the_line),
        cmocka_unit_test(limits_hold),       cmocka_unit_test(closed_forms),
        cmocka_unit_test(energy_adds_up),    cmocka_unit_test(lag_is_analytic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
