/* llm/fit: prices of a server by closed forms; noise and coverage are tests/truth's. */
#include <math.h>
#include <string.h>

#include "llm/fit.h"
#include "support/cmocka.h"

#define SLOTS 400

static const double law[NRG_SERVING_TERMS] = {
    [NRG_SERVING_IDLE] = 80,    [NRG_SERVING_OUTPUT] = 0.5, [NRG_SERVING_PROMPT] = 0.02,
    [NRG_SERVING_SEQUENCE] = 2, [NRG_SERVING_BUSY] = 40,    [NRG_SERVING_OTHER] = 30,
};

/* A load without a pattern: every amount goes its own way. */
static void make_slots(struct nrg_serving_slot *slots, const double *price)
{
    uint32_t state = 7;
    for (size_t i = 0; i < SLOTS; i++) {
        struct nrg_serving_slot *s = &slots[i];
        double random[5];
        for (size_t k = 0; k < 5; k++) {
            state = state * 1664525u + 1013904223u;
            random[k] = (state >> 8) / 16777216.0;
        }
        bool busy = random[0] > 0.3;
        *s = (struct nrg_serving_slot){.begin_ns = (int64_t)i * 500000000,
                                       .end_ns = (int64_t)(i + 1) * 500000000};
        s->amount[NRG_SERVING_IDLE] = 0.5;
        s->amount[NRG_SERVING_OUTPUT] = busy ? floor(400 * random[1]) : 0;
        s->amount[NRG_SERVING_PROMPT] = busy ? floor(9000 * random[2]) : 0;
        s->amount[NRG_SERVING_SEQUENCE] = busy ? 0.5 + 8 * random[3] : 0;
        s->amount[NRG_SERVING_BUSY] = busy ? 0.5 : 0;
        s->amount[NRG_SERVING_OTHER] = price[NRG_SERVING_OTHER] > 0 ? 3 * random[4] : 0;
        for (size_t c = 0; c < NRG_SERVING_TERMS; c++)
            s->energy_j += price[c] * s->amount[c];
    }
}

static void finds_an_exact_law(void **state)
{
    static struct nrg_serving_slot slots[SLOTS];
    struct nrg_serving_fit fit;
    (void)state;
    make_slots(slots, law);
    assert_int_equal(nrg_serving_prices(slots, SLOTS, 4, &fit), 0);
    assert_null(fit.why);
    for (size_t c = 0; c < NRG_SERVING_TERMS; c++) {
        assert_true(fabs(fit.price[c].per.value / law[c] - 1) < 1e-6);
        assert_true(fit.price[c].resolved);
        assert_true(fit.price[c].per.high - fit.price[c].per.low < 1e-6 * law[c]);
    }
    const struct nrg_serving_price *price = fit.price;
    double together_j = price[NRG_SERVING_OUTPUT].energy_j + price[NRG_SERVING_SEQUENCE].energy_j;
    double each_j = together_j / price[NRG_SERVING_OUTPUT].amount;
    assert_true(fabs(fit.output_with_time.value / each_j - 1) < 1e-6);
}

/* One token every 10 ms of every sequence, always: what of it is time, nobody can tell. */
static void joins_what_goes_together(void **state)
{
    static struct nrg_serving_slot slots[SLOTS];
    struct nrg_serving_fit fit;
    (void)state;
    make_slots(slots, law);
    for (size_t i = 0; i < SLOTS; i++) {
        double change =
            slots[i].amount[NRG_SERVING_OUTPUT] / 100 - slots[i].amount[NRG_SERVING_SEQUENCE];
        slots[i].amount[NRG_SERVING_SEQUENCE] += change;
        slots[i].energy_j += law[NRG_SERVING_SEQUENCE] * change;
    }
    assert_int_equal(nrg_serving_prices(slots, SLOTS, 4, &fit), 0);
    assert_true(fit.price[NRG_SERVING_SEQUENCE].joined);
    assert_true(isnan(fit.price[NRG_SERVING_SEQUENCE].per.value));
    double both = law[NRG_SERVING_OUTPUT] + law[NRG_SERVING_SEQUENCE] / 100;
    assert_true(fabs(fit.price[NRG_SERVING_OUTPUT].per.value / both - 1) < 1e-6);
}

/*
 * Tokens at a pace that hardly changes, with noise: what of it is time is nearly unknown. More than
 * all of it can't be the tokens', and both together are known well.
 */
static void bounds_what_nearly_goes_together(void **state)
{
    static struct nrg_serving_slot slots[SLOTS];
    struct nrg_serving_fit fit;
    double price[NRG_SERVING_TERMS];
    uint32_t random = 3;
    (void)state;
    memcpy(price, law, sizeof law);
    price[NRG_SERVING_SEQUENCE] = price[NRG_SERVING_BUSY] = 0;
    make_slots(slots, price);
    for (size_t i = 0; i < SLOTS; i++) {
        double *amount = slots[i].amount;
        random = random * 1664525u + 1013904223u;
        double noise = (random >> 8) / 16777216.0 - 0.5;
        amount[NRG_SERVING_SEQUENCE] =
            amount[NRG_SERVING_OUTPUT] / 100 * (1 + 0.02 * sin((double)i / 9));
        amount[NRG_SERVING_BUSY] = 0;
        slots[i].energy_j += 20 * noise;
    }
    assert_int_equal(nrg_serving_prices(slots, SLOTS, 4, &fit), 0);
    const struct nrg_serving_value *output = &fit.price[NRG_SERVING_OUTPUT].per;
    double alone = output->high - output->low;
    double both = fit.output_with_time.high - fit.output_with_time.low;
    assert_true(output->low <= law[NRG_SERVING_OUTPUT] && law[NRG_SERVING_OUTPUT] <= output->high);
    assert_true(output->high < 1.1 * law[NRG_SERVING_OUTPUT]);
    assert_true(both < alone / 4);
    assert_true(fabs(fit.output_with_time.value / law[NRG_SERVING_OUTPUT] - 1) < 0.02);
}

/* A term that does nothing gets nothing, and none is negative. */
static void keeps_prices_from_below_zero(void **state)
{
    static struct nrg_serving_slot slots[SLOTS];
    struct nrg_serving_fit fit;
    double price[NRG_SERVING_TERMS];
    (void)state;
    memcpy(price, law, sizeof law);
    price[NRG_SERVING_PROMPT] = -0.001;
    price[NRG_SERVING_SEQUENCE] = 0;
    make_slots(slots, price);
    assert_int_equal(nrg_serving_prices(slots, SLOTS, 4, &fit), 0);
    assert_true(fit.price[NRG_SERVING_PROMPT].per.value == 0);
    assert_true(fit.price[NRG_SERVING_PROMPT].per.low == 0);
    assert_false(fit.price[NRG_SERVING_PROMPT].resolved);
    assert_true(fabs(fit.price[NRG_SERVING_SEQUENCE].per.value) < 0.01);
}

/*
 * A server that is never idle after 14 s of baseline, in which power was 4 W too high all the
 * while, as it is at other times, too: 14 s do not know that.
 */
static void doubts_a_baseline_that_drifts(void **state)
{
    enum { BASELINE = 28 };
    static struct nrg_serving_slot slots[SLOTS];
    struct nrg_serving_fit fit;
    double price[NRG_SERVING_TERMS], drift_w = 0;
    uint32_t random = 5;
    (void)state;
    memcpy(price, law, sizeof law);
    price[NRG_SERVING_SEQUENCE] = price[NRG_SERVING_BUSY] = 0;
    make_slots(slots, price);
    for (size_t i = 0; i < SLOTS; i++) {
        struct nrg_serving_slot *s = &slots[i];
        random = random * 1664525u + 1013904223u;
        double noise = (random >> 8) / 16777216.0 - 0.5;
        drift_w = 0.94 * drift_w + 5 * noise;
        if (i < BASELINE) {
            memset(s->amount + NRG_SERVING_OUTPUT, 0,
                   (NRG_SERVING_TERMS - NRG_SERVING_OUTPUT) * sizeof *s->amount);
            s->energy_j = 0.5 * (law[NRG_SERVING_IDLE] + 4 + 0.2 * noise);
        } else {
            double tokens = 200 + 60 * sin((double)i / 5);
            s->energy_j += price[NRG_SERVING_OUTPUT] * (tokens - s->amount[NRG_SERVING_OUTPUT]);
            s->amount[NRG_SERVING_OUTPUT] = tokens;
            s->amount[NRG_SERVING_SEQUENCE] = 2;
            s->amount[NRG_SERVING_BUSY] = 0.5;
            s->energy_j += 0.5 * drift_w;
        }
    }
    assert_int_equal(nrg_serving_prices(slots, SLOTS, 4, &fit), 0);
    const struct nrg_serving_value *idle = &fit.price[NRG_SERVING_IDLE].per;
    assert_true(idle->low <= law[NRG_SERVING_IDLE] && idle->high >= law[NRG_SERVING_IDLE]);
    assert_true(idle->low > 0.8 * law[NRG_SERVING_IDLE]);
}

static void says_why_not(void **state)
{
    static struct nrg_serving_slot slots[SLOTS];
    struct nrg_serving_fit fit;
    (void)state;
    make_slots(slots, law);
    assert_int_equal(nrg_serving_prices(slots, 20, 4, &fit), 0);
    assert_non_null(strstr(fit.why, "too short"));
    for (size_t i = 0; i < SLOTS; i++)
        memset(slots[i].amount, 0, sizeof slots[i].amount);
    assert_int_equal(nrg_serving_prices(slots, SLOTS, 4, &fit), 0);
    assert_non_null(strstr(fit.why, "no tokens"));
    assert_int_equal(nrg_serving_prices(NULL, 0, 4, &fit), 0);
    assert_non_null(fit.why);
}

/* A server that is never idle: seconds are those that its tokens take, 2 ms and 0.1 ms. */
static void prices_tokens_with_their_time(void **state)
{
    static struct nrg_serving_slot slots[SLOTS];
    const double watts = law[NRG_SERVING_IDLE];
    struct nrg_serving_fit fit;
    int64_t t_ns = 0;
    (void)state;
    make_slots(slots, law);
    for (size_t i = 0; i < SLOTS; i++) {
        struct nrg_serving_slot *s = &slots[i];
        double output = s->amount[NRG_SERVING_OUTPUT] + 1, prompt = s->amount[NRG_SERVING_PROMPT];
        int64_t length_ns = (int64_t)(output * 2e6 + prompt * 1e5);
        *s = (struct nrg_serving_slot){.begin_ns = t_ns, .end_ns = t_ns + length_ns};
        t_ns += length_ns;
        s->amount[NRG_SERVING_IDLE] = (double)length_ns / 1e9;
        s->amount[NRG_SERVING_OUTPUT] = output;
        s->amount[NRG_SERVING_PROMPT] = prompt;
        s->energy_j = law[NRG_SERVING_OUTPUT] * output + law[NRG_SERVING_PROMPT] * prompt +
                      watts * s->amount[NRG_SERVING_IDLE];
    }
    assert_int_equal(nrg_serving_prices(slots, SLOTS, 4, &fit), 0);
    double output = law[NRG_SERVING_OUTPUT] + 2e-3 * watts;
    double prompt = law[NRG_SERVING_PROMPT] + 1e-4 * watts;
    assert_true(fabs(fit.output_all_in.value / output - 1) < 1e-6);
    assert_true(fabs(fit.prompt_all_in.value / prompt - 1) < 1e-6);
}

static void narrows_as_the_root_of_time(void **state)
{
    struct nrg_serving_fit fit = {.time_s = 100, .freedom = 1e9, .half = 1.959964};
    (void)state;
    assert_true(fabs(nrg_serving_time_for(&fit, 0.1, 0.05) / 400 - 1) < 1e-3);
    assert_true(isnan(nrg_serving_time_for(&fit, 0.04, 0.05)));  /* it is that narrow */
    assert_true(isnan(nrg_serving_time_for(&fit, 0.5, 0.0001))); /* nobody runs it for years */
    fit = (struct nrg_serving_fit){.time_s = 100, .freedom = 10, .half = 1.4 * 2.228139};
    assert_true(nrg_serving_time_for(&fit, 0.1, 0.05) < 300); /* noise is known better, too */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_an_exact_law),
        cmocka_unit_test(joins_what_goes_together),
        cmocka_unit_test(bounds_what_nearly_goes_together),
        cmocka_unit_test(keeps_prices_from_below_zero),
        cmocka_unit_test(doubts_a_baseline_that_drifts),
        cmocka_unit_test(says_why_not),
        cmocka_unit_test(prices_tokens_with_their_time),
        cmocka_unit_test(narrows_as_the_root_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
