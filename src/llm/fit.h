/*
 * What a language model's server charges for: joules per token of a prompt, per token of the
 * output, per second that a sequence is being worked on, per second that the server is busy at all,
 * and watts when it is not, from slots of time with the joules and the server's own counts of each.
 *
 *     joules of a slot = sum over terms of price * amount, none negative
 *
 * A step of a server that batches reads the model's weights once for all its sequences. That part
 * of a token's energy shrinks as the batch grows, and belongs to no token: it is the `busy` term.
 * What is left, the prices of tokens, is what one more of them costs in a batch that runs anyway.
 * They hold for the loads that the slots saw, and not for others.
 *
 * Intervals have 95 % confidence, and are of laws without a negative price: noise may differ from
 * slot to slot, follow the slot before, and grow with power; the sensor may be late against the
 * counts by less than a slot. Amounts that always go together, such as tokens and seconds of a
 * server that never changes its pace, can't be told apart: a term that others explain wholly is
 * part of them (`joined`), and one that they explain nearly has a wide interval, `resolved` is
 * false, and the sum of both is known all the same: output_with_time. Where nothing ever varies,
 * tokens go together with all time, and what is known is a token with all time that it takes:
 * output_all_in, prompt_all_in.
 *
 * Pure but for memory that it frees before it returns; thread-safe.
 */
#ifndef NRG_SERVING_FIT_H
#define NRG_SERVING_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of two terms that go together, the later one is given up. */
enum nrg_serving_term {
    NRG_SERVING_IDLE,     /* s: the time of the slot */
    NRG_SERVING_OUTPUT,   /* tokens */
    NRG_SERVING_PROMPT,   /* tokens, without those that a cache had */
    NRG_SERVING_SEQUENCE, /* s: integral of the number of sequences that run */
    NRG_SERVING_BUSY,     /* s in which at least one sequence runs */
    NRG_SERVING_OTHER,    /* s of requests that are not understood, which are no sequences */
    NRG_SERVING_TERMS
};

struct nrg_serving_slot {
    int64_t begin_ns, end_ns;
    double energy_j;
    double amount[NRG_SERVING_TERMS]; /* NRG_SERVING_IDLE is set from begin and end */
    /* Variance of sequence and busy seconds where these are sampled, and what they share; else 0.
     */
    double sequence_s2, busy_s2, both_s2;
    /* Tokens of a step, which may have been made before the slot began and are counted in it. */
    double output_step, prompt_step;
    double steps; /* that ended in it; 0: not counted */
};

/* Joules, or joules per something, or watts. */
struct nrg_serving_value {
    double value, low, high; /* NAN: not known */
};

struct nrg_serving_price {
    struct nrg_serving_value per; /* joules per unit of the amount; of seconds that is W */
    double amount, energy_j;      /* of all slots: energy_j = value * amount */
    bool used;                    /* the server counts it */
    bool joined;                  /* other terms explain its amounts wholly: it is part of them */
    bool resolved;                /* the interval is not wider than the value */
};

struct nrg_serving_fit {
    size_t slots, rows;
    double energy_j, time_s; /* of the slots */
    struct nrg_serving_price price[NRG_SERVING_TERMS];
    /* A token of the output and the seconds of sequences that there are per token. */
    struct nrg_serving_value output_with_time;
    /* All joules, as prices of tokens: with their part of the seconds of every kind (all_in.c). */
    struct nrg_serving_value output_all_in, prompt_all_in;
    /* Of the law without the bound: by the rows' mean square, and by the scatter of each. */
    double covariance[2][NRG_SERVING_TERMS][NRG_SERVING_TERMS];
    double unbound[NRG_SERVING_TERMS]; /* its solution */
    double half;                       /* Student's factor of the intervals */
    double freedom;                    /* rows that are as good as independent, columns apart */
    double scatter_w; /* standard deviation of what the law leaves, as power of a slot */
    double follows;   /* correlation of that with the slot before */
    const char *why;  /* nothing could be fitted: why; else NULL */
};

/*
 * Slots in order of time, without overlap, as short as the server is asked; those that touch are
 * neighbours. `group` of them, at least 3, are a row of the regression, which should be as long as
 * several updates of the sensor and ten steps of the server: 2 s or more. A sensor that is later
 * than a tenth of a row is for the caller to put right (delay.h). An amount that is 0 in all slots
 * is not counted by the server. 0 (also with fit->why) or -ENOMEM.
 */
int nrg_serving_prices(const struct nrg_serving_slot *slots, size_t n, size_t group,
                       struct nrg_serving_fit *fit);

/*
 * How long a run of the same load must be until a half width of `now` is `then`, in seconds of
 * steady state: it shrinks as the root of time, and Student's factor with it. NAN where the load
 * would have to last longer than anybody runs it: something else has to vary.
 */
double nrg_serving_time_for(const struct nrg_serving_fit *fit, double now, double then);

#endif
