/*
 * Each block of the one model (attribute/blocks), by a machine in closed form that has its
 * phenomenon: powers of all classes are right with the block, and would not be without it.
 *
 * A thread calls A and B in turn, with rests between steps. Power is made here as a function of
 * time, and a counter shows its integral at updates that the readings do not know.
 */
#include "support/cmocka.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/model/fit.h"

#define RUN_S     8.0
#define READ_S    0.01
#define UPDATE_S  1e-3
#define STEP_J    61e-6
#define MOST      20000
#define LONGEST_S 0.004

/* What is special about a machine; 0: nothing. */
struct machine {
    double per_call;    /* part of A's energy that goes by calls, not by seconds */
    double drift;       /* of A's power, from the begin of the run to its end */
    double idle_rise;   /* of idle power */
    double read_late_s; /* readings come up to so much late */
};

static const double idle_w = 5, power_w[2] = {10, 24};

struct world {
    struct nrg_fact_slice slices[MOST];
    double begin_s[MOST], power[MOST], energy_j[MOST]; /* stretches of constant power */
    size_t n_slices, n;
    double truth_j[2], truth_s[2];
};

static double next(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1u << 24);
}

static double idle_at(const struct machine *m, double t_s)
{
    return idle_w * (1 + m->idle_rise * (t_s / RUN_S - 0.5));
}

static void add_stretch(struct world *w, const struct machine *m, double begin_s, double end_s,
                        double above_w)
{
    size_t i = w->n++;
    double before_j = i ? w->energy_j[i - 1] + w->power[i - 1] * (begin_s - w->begin_s[i - 1]) : 0;
    w->begin_s[i] = begin_s;
    w->power[i] = above_w + idle_at(m, (begin_s + end_s) / 2);
    w->energy_j[i] = before_j;
}

static void add_call(struct world *w, const struct machine *m, uint32_t class_, double begin_s,
                     double length_s)
{
    double mean_s = LONGEST_S / 2, above_w = power_w[class_];
    if (!class_)
        above_w *= 1 - m->per_call + m->per_call * mean_s / length_s;
    if (!class_)
        above_w *= 1 + m->drift * (begin_s / RUN_S - 0.5);
    add_stretch(w, m, begin_s, begin_s + length_s, above_w);
    w->slices[w->n_slices++] = (struct nrg_fact_slice){
        .begin_s = begin_s, .end_s = begin_s + length_s, .class_ = class_, .rate = 1, .calls = 1};
    w->truth_j[class_] += above_w * length_s;
    w->truth_s[class_] += length_s;
}

static void make_world(struct world *w, const struct machine *m)
{
    unsigned seed = 5;
    double t_s = 0;
    memset(w, 0, sizeof *w);
    while (t_s < RUN_S) {
        for (uint32_t class_ = 0; class_ < 2; class_++) {
            double length_s = LONGEST_S * (0.2 + 0.6 * next(&seed));
            add_call(w, m, class_, t_s, length_s);
            t_s += length_s;
        }
        double rest_s = 0.003 * next(&seed);
        add_stretch(w, m, t_s, t_s + rest_s, 0);
        t_s += rest_s;
    }
}

static double energy_until(const struct world *w, double t_s)
{
    size_t low = 0, high = w->n;
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if (w->begin_s[middle] <= t_s)
            low = middle;
        else
            high = middle;
    }
    return w->energy_j[low] + w->power[low] * (t_s - w->begin_s[low]);
}

static void make_facts(const struct world *w, const struct machine *m, struct nrg_facts *f)
{
    size_t n = (size_t)(RUN_S / READ_S) - 1;
    unsigned seed = 9;
    *f = (struct nrg_facts){.update_s = UPDATE_S,
                            .period_s = READ_S,
                            .step = STEP_J,
                            .idle_w = NAN,
                            .n_classes = 2,
                            .others_class = SIZE_MAX,
                            .spans = 2};
    f->t_s = nrg_arena_array(&f->memory, n, sizeof *f->t_s);
    f->value = nrg_arena_array(&f->memory, n, sizeof *f->value);
    f->gap = nrg_arena_array(&f->memory, n, sizeof *f->gap);
    f->classes = nrg_arena_array(&f->memory, 2, sizeof *f->classes);
    f->slices = malloc(w->n_slices * sizeof *f->slices);
    assert_false(f->memory.failed || !f->slices);
    memcpy(f->slices, w->slices, w->n_slices * sizeof *f->slices);
    f->n_slices = w->n_slices;
    for (f->n = 0; f->n < n; f->n++) {
        double t_s = READ_S * (double)(f->n + 1) + m->read_late_s * next(&seed);
        double updated_s = 0.37e-3 + UPDATE_S * floor((t_s - 0.37e-3) / UPDATE_S);
        f->t_s[f->n] = t_s;
        f->value[f->n] = floor(energy_until(w, updated_s) / STEP_J) * STEP_J;
    }
    f->gap[n - 1] = true;
    f->begin_s = f->run_begin_s = f->t_s[0];
    f->end_s = f->run_end_s = f->t_s[n - 1];
    f->mean_w = (f->value[n - 1] - f->value[0]) / (f->end_s - f->begin_s);
    nrg_facts_finish(f);
}

/* Both classes are right to half a percent, and within intervals of a percent: what has no block
 * would be noise that widens them. */
static void judge(const struct machine *m)
{
    struct world *w = malloc(sizeof *w);
    struct nrg_facts facts;
    struct nrg_model_fit fit;
    assert_non_null(w);
    make_world(w, m);
    make_facts(w, m, &facts);
    assert_int_equal(nrg_model_fit_make(&fit, &facts), 0);
    for (uint32_t c = 0; c < 2; c++) {
        double *l = calloc(fit.k, sizeof *l), truth_w = w->truth_j[c] / w->truth_s[c];
        assert_non_null(l);
        l[fit.first[NRG_BLOCK_CLASSES] + c] = l[fit.first[NRG_BLOCK_COMMON]] = 1;
        double off = fabs(nrg_model_fit_mean(&fit, l) - truth_w);
        double half = 2 * sqrt(nrg_model_fit_variance(&fit, l)) + 0.0025 * truth_w;
        if (off > 0.005 * truth_w || off > half || half > 0.01 * truth_w)
            fail_msg("class %u: %.4f W, not %.4f +- %.4f", c, nrg_model_fit_mean(&fit, l), truth_w,
                     half);
        free(l);
    }
    nrg_model_fit_release(&fit);
    nrg_facts_release(&facts);
    free(w);
}

static void powers_above_idle(void **state)
{
    (void)state;
    judge(&(struct machine){.read_late_s = 1e-4});
}

static void energy_per_call(void **state)
{
    (void)state;
    judge(&(struct machine){.per_call = 1, .read_late_s = 1e-4});
}

static void power_that_drifts(void **state)
{
    (void)state;
    judge(&(struct machine){.drift = 0.3, .read_late_s = 1e-4});
}

static void idle_power_that_rises(void **state)
{
    (void)state;
    judge(&(struct machine){.idle_rise = 0.6, .read_late_s = 1e-4});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_above_idle),
        cmocka_unit_test(energy_per_call),
        cmocka_unit_test(power_that_drifts),
        cmocka_unit_test(idle_power_that_rises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
