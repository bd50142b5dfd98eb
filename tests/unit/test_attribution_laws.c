/*
 * attribute/attribution.c: the laws of attribution.h on random recordings: several domains, tracks
 * and processes, spans that nest, overlap, never end or lie outside, CPU times or none, with all
 * methods, views and ways to treat idle energy. What rows, rest, idle and others add up to is the
 * energy of the domain, which is taken from the timeline, not from the code under test.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/attribution.h"
#include "energy/timeline.h"
#include "support/made.h"

#define ROUNDS       60
#define SHORT_ROUNDS 10 /* where a sanitizer makes each of them slow */

struct dice {
    uint64_t state;
};

static double roll(struct dice *d) /* 0..1 */
{
    d->state ^= d->state << 13;
    d->state ^= d->state >> 7;
    d->state ^= d->state << 17;
    return (double)(d->state >> 11) / (double)(UINT64_C(1) << 53);
}

static size_t pick(struct dice *d, size_t n)
{
    return (size_t)(roll(d) * (double)n);
}

static void make_power(struct made *m, struct dice *d, const char *name, bool gauge)
{
    struct nrg_channel c = gauge ? made_gauge(name) : made_counter(name);
    double t_s[400];
    int64_t raw[400], sum = 0;
    size_t n = 2 + pick(d, 390);
    double at = -1 + roll(d), step = 12.0 / (double)n;
    c.lag_ns = gauge && roll(d) < 0.3 ? 300 * NRG_NS_PER_MS : 0;
    c.update_ns = roll(d) < 0.5 ? NRG_NS_PER_MS : 0;
    for (size_t i = 0; i < n; i++) {
        at += step * (0.2 + 1.6 * roll(d));
        int64_t power_mw = (int64_t)(5000 + 60000 * roll(d));
        sum += (int64_t)((double)power_mw * 1000 * step);
        t_s[i] = at;
        raw[i] = gauge ? power_mw : sum;
        if (roll(d) < 0.02)
            raw[i] = gauge ? NRG_MISSING : 0; /* a counter that was reset */
    }
    made_channel(m, &c, t_s, raw, n);
}

/* Events of a track: mostly nested, now and then something that no client writes. */
static void make_spans(struct made *m, struct dice *d, int64_t track, const int64_t *names,
                       size_t n_names, int64_t path)
{
    double t = -0.5 + roll(d);
    int depth = 0;
    size_t n = pick(d, 600);
    for (size_t i = 0; i < n; i++) {
        t += roll(d) < 0.1 ? 0 : 0.03 * roll(d);
        double what = roll(d);
        int64_t name = names[pick(d, n_names)];
        if (what < 0.02)
            made_event(m, t, track, NRG_SPAN_END, name, NRG_MISSING, NRG_MISSING);
        else if (what < 0.05)
            made_event(m, t, track, NRG_SPAN_COUNT, name, (int64_t)i, NRG_MISSING);
        else if (depth > 0 && (what < 0.5 || depth > 8)) {
            made_end(m, t, track);
            depth--;
        } else {
            made_event(m, t, track, NRG_SPAN_BEGIN, name, (int64_t)(i / 20),
                       roll(d) < 0.05 ? path : NRG_MISSING);
            depth++;
        }
    }
}

static void make_cpu(struct made *m, struct dice *d, const int64_t *tracks, size_t n_tracks)
{
    if (roll(d) < 0.7)
        made_busy(m, -1, 11, 4 * roll(d));
    for (int32_t pid = 1; pid <= 3; pid++)
        if (roll(d) < 0.7)
            made_process(m, pid, -1 + roll(d), 10 + roll(d), roll(d));
    for (size_t i = 0; i < n_tracks; i++)
        if (roll(d) < 0.6)
            made_thread(m, tracks[i], -1, 10, roll(d));
}

/* With the energy of a sensor, or of a model of CPU time. */
static bool make(struct made *m, struct dice *d)
{
    static const char *const kinds[] = {"step", "module", "operator", "cycle", "backward", "epoch"};
    static const char *const texts[] = {"a", "a.b", "a.b.c", "Net", "x.y", ""};
    int64_t names[6], tracks[4];
    size_t n_tracks = 1 + pick(d, 4);
    made_init(m);
    made_run(m, "baseline", -0.5, roll(d) < 0.3 ? -0.1 : -0.4);
    made_run(m, "run", 0, 4 + roll(d));
    made_run(m, "run", 5 + roll(d), 10);
    bool modelled = roll(d) < 0.3;
    if (modelled)
        made_estimate(m, -1 + roll(d), 9 + 2 * roll(d), 5 + 60 * roll(d), 5 * roll(d), 0.7, 1.5);
    else
        make_power(m, d, "package-0", false);
    if (roll(d) < 0.6)
        make_power(m, d, "gpu-0", true);
    if (roll(d) < 0.3)
        make_power(m, d, "dram-0", false);
    for (size_t i = 0; i < 6; i++)
        names[i] = made_name(m, kinds[i], texts[i]);
    int64_t path = made_path(m, made_path(m, 0, names[0]), names[2]);
    for (size_t i = 0; i < n_tracks; i++) {
        bool gpu = roll(d) < 0.25;
        tracks[i] = made_track(m, gpu ? "gpu" : "thread", 1 + (int32_t)pick(d, 3), (int32_t)i,
                               gpu ? "gpu-0" : "");
    }
    for (size_t i = 0; i < n_tracks; i++)
        make_spans(m, d, tracks[i], names, 6, path);
    make_cpu(m, d, tracks, n_tracks);
    made_open(m);
    return modelled;
}

static void close_to(double value, double expected, double off, const char *what, int round)
{
    if (!(fabs(value - expected) <= off))
        fail_msg("round %d, %s: %.12g, not %.12g", round, what, value, expected);
}

/* Energy of a domain from its timeline, over all runs but the baseline. */
static double total_of(struct made *m, const struct nrg_attribution_domain *d, int64_t only)
{
    struct nrg_timeline tl;
    size_t n;
    double sum = 0;
    const struct nrg_run *runs = nrg_recording_runs(m->recording, &n);
    assert_int_equal(nrg_timeline_load(&tl, m->recording, d->domain->channel), 0);
    for (size_t i = 0; i < n; i++)
        if (only ? runs[i].id == only : strcmp(runs[i].kind, "baseline") != 0)
            sum += nrg_timeline_between(&tl, runs[i].begin_ns, runs[i].end_ns, NULL);
    nrg_timeline_release(&tl);
    return sum;
}

static void check_row(const struct nrg_attribution *a, size_t i, int round)
{
    const struct nrg_attribution_row *row = &a->rows[i];
    double tiny = 1e-9 * (fabs(a->total_j) + 1);
    assert_true(row->parent == SIZE_MAX || row->parent < i);
    assert_true(row->time_s >= row->self_time_s - 1e-9);
    assert_true(row->merged_with == SIZE_MAX || row->merged_with < a->n_rows);
    if (isnan(row->energy_j)) {
        assert_true(isnan(row->low_j) && isnan(row->high_j));
        return;
    }
    assert_true(row->low_j <= row->energy_j + tiny && row->energy_j <= row->high_j + tiny);
    if (row->high_j - row->low_j > row->energy_j + tiny)
        assert_int_equal(row->flags & NRG_ROW_UNRESOLVED, NRG_ROW_UNRESOLVED);
    double sum = 0;
    for (size_t p = 0; p < a->n_domains; p++)
        sum += row->domain_j[p];
    close_to(sum, row->energy_j, tiny, "domains of a row", round);
}

static void check_tree(const struct nrg_attribution *a, int round)
{
    double *inside = calloc(a->n_rows + 1, sizeof *inside);
    double *time = calloc(a->n_rows + 1, sizeof *time);
    for (size_t i = a->n_rows; i-- > 0;) {
        const struct nrg_attribution_row *row = &a->rows[i];
        inside[i] += isnan(row->energy_self_j) ? 0 : row->energy_self_j;
        time[i] += row->self_time_s;
        if (!isnan(row->energy_j))
            close_to(row->energy_j, inside[i], 1e-9 * (a->total_j + 1), "inclusive", round);
        close_to(row->time_s, time[i], 1e-6, "inclusive time", round);
        if (row->parent != SIZE_MAX) {
            inside[row->parent] += inside[i];
            time[row->parent] += time[i];
        }
    }
    free(inside);
    free(time);
}

static void check(struct made *m, const struct nrg_attribution_options *o, int round)
{
    struct nrg_attribution a;
    struct nrg_error err = {0};
    double self = 0, total = 0, rest = 0;
    if (nrg_attribution_make(&a, m->recording, o, &err))
        fail_msg("round %d: %s: %s", round, err.where, err.what);
    for (size_t i = 0; i < a.n_rows; i++) {
        check_row(&a, i, round);
        self += isnan(a.rows[i].energy_self_j) ? 0 : a.rows[i].energy_self_j;
    }
    if (o->by != NRG_BY_NAME)
        check_tree(&a, round);
    for (size_t p = 0; p < a.n_domains; p++) {
        const struct nrg_attribution_domain *d = &a.domains[p];
        total += d->total_j;
        rest += d->unattributed_j + d->idle_j + d->other_processes_j;
        if (d->lag_s == 0)
            close_to(d->total_j, total_of(m, d, o->run), 1e-6, "total of a domain", round);
        /* Above a given idle power, what falls below it for a moment counts as less than nothing.
         */
        if (d->method == NRG_METHOD_INTEGRATE && d->lag_s == 0 && o->idle == NRG_IDLE_NONE)
            assert_true(d->unattributed_j >= -1e-7 * d->total_j); /* shares are floats */
        /* No thread has more than its process, no process more than there is. */
        if (d->method == NRG_METHOD_CPU_TIME)
            assert_true(d->unattributed_j >= -1e-6 * (d->total_j + 1));
        if (d->method == NRG_METHOD_INTEGRATE && d->lag_s == 0)
            assert_true(d->other_processes_j >= -1e-6 && d->idle_j >= -1e-6);
    }
    if (a.n_domains) {
        close_to(total, a.total_j, 1e-9 * (total + 1), "sum of the domains", round);
        close_to(self + rest, a.total_j, 1e-9 * (total + 1), "conservation", round);
    }
    nrg_attribution_release(&a);
}

static void laws_hold(void **state)
{
    static const enum nrg_method methods[] = {NRG_METHOD_AUTO,    NRG_METHOD_INTEGRATE,
                                              NRG_METHOD_NEAREST, NRG_METHOD_WINDOW,
                                              NRG_METHOD_REGRESS, NRG_METHOD_CPU_TIME};
    struct dice d = {88172645463325252u};
    (void)state;
    int rounds = getenv("NRG_TEST_SHORT") ? SHORT_ROUNDS : ROUNDS;
    for (int round = 0; round < rounds; round++) {
        struct made m;
        size_t n_methods = make(&m, &d) ? 6 : 5;
        for (int by = NRG_BY_PATH; by <= NRG_BY_CYCLE; by++) {
            struct nrg_attribution_options o = {.method = methods[pick(&d, n_methods)],
                                                .idle = (enum nrg_idle_mode)pick(&d, 3),
                                                .lag = (enum nrg_lag_mode)pick(&d, 3),
                                                .lag_s = 0.2,
                                                .idle_w = roll(&d) < 0.2 ? 7 : NAN,
                                                .by = (enum nrg_rows_by)by,
                                                .run = roll(&d) < 0.2 ? 2 : 0};
            check(&m, &o, round);
        }
        made_release(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(laws_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
