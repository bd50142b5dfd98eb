/*
 * All joules as prices of tokens. A server that is never idle and keeps its batch makes tokens as
 * time passes: a step takes its time for the batch, and more for what it reads of prompts. Then
 * tokens of prompts, of the output and seconds are bound by one equation, and no regression tells a
 * token's price from that of the seconds that it takes. Both together it does tell: the seconds
 * that tokens of either kind take follow from that same equation, by least squares over the rows,
 * and with them a token's price is known, however its joules are divided.
 *
 * Both kinds share all seconds, idle ones too, in that proportion; so the two prices times their
 * tokens are all joules of the law. What the proportion is uncertain by is in the intervals.
 */
#include "llm/internal.h"

#include <math.h>

/* Of the time that tokens take, that of the output; and its standard deviation. */
struct part {
    double output, sd;
};

/* Sums over rows of products of the output's tokens, the prompts', and seconds. */
struct sums {
    double oo, op, pp, os, ps, ss;
    double output, prompt;
};

/* Seconds in which something runs, where the server says so. */
static double seconds(const struct nrg_serving_fit *fit, const double *x)
{
    bool known = fit->price[NRG_SERVING_BUSY].amount > 0;
    return x[known ? NRG_SERVING_BUSY : NRG_SERVING_IDLE];
}

static struct sums sum_rows(const struct nrg_serving_work *w, const struct nrg_serving_fit *fit)
{
    struct sums s = {0};
    for (size_t i = 0; i < w->n; i++) {
        const double *x = w->rows[i].x;
        double o = x[NRG_SERVING_OUTPUT], p = x[NRG_SERVING_PROMPT], t = seconds(fit, x);
        s.oo += o * o;
        s.op += o * p;
        s.pp += p * p;
        s.os += o * t;
        s.ps += p * t;
        s.ss += t * t;
        s.output += o;
        s.prompt += p;
    }
    return s;
}

static struct part find_part(const struct nrg_serving_work *w, const struct nrg_serving_fit *fit)
{
    struct sums s = sum_rows(w, fit);
    if (!(s.prompt > 0) || !(s.output > 0))
        return (struct part){s.output > 0, 0};
    double both = s.oo * s.pp - s.op * s.op;
    double per_o = (s.os * s.pp - s.ps * s.op) / both, per_p = (s.ps * s.oo - s.os * s.op) / both;
    double left = (s.ss - per_o * s.os - per_p * s.ps) / fmax((double)w->n - 2, 1);
    if (!(both > 0) || !(per_o + per_p > 0))
        return (struct part){0.5, 0.25}; /* nothing is known of it: anything between none and all */
    double o = fmax(per_o, 0) * s.output, p = fmax(per_p, 0) * s.prompt, all = o + p;
    /* Of o / (o + p), to first order, by the covariance of both: left * inverse of the products. */
    double by_o = p / all * s.output / all, by_p = -o / all * s.prompt / all;
    double variance = fmax(left, 0) / both *
                      (by_o * by_o * s.pp + by_p * by_p * s.oo - 2 * by_o * by_p * s.op);
    return (struct part){o / all, sqrt(fmax(variance, 0))};
}

static int price_all(const struct nrg_serving_fit *fit, enum nrg_serving_term term, double part,
                     double sd, struct nrg_serving_value *price)
{
    static const enum nrg_serving_term of_time[] = {NRG_SERVING_IDLE, NRG_SERVING_SEQUENCE,
                                                    NRG_SERVING_BUSY};
    double amount[NRG_SERVING_TERMS] = {0}, time_j = 0, tokens = fit->price[term].amount;
    *price = (struct nrg_serving_value){NAN, NAN, NAN};
    if (!(tokens > 0))
        return 0;
    amount[term] = 1;
    for (size_t i = 0; i < sizeof of_time / sizeof *of_time; i++) {
        const struct nrg_serving_price *p = &fit->price[of_time[i]];
        amount[of_time[i]] = part * p->amount / tokens;
        time_j += p->energy_j;
    }
    int rc = nrg_serving_bound(fit, amount, price);
    double more = fit->half * sd * time_j / tokens;
    price->low = fmax(price->low - more, 0);
    price->high += more;
    return rc;
}

int nrg_serving_all_in(const struct nrg_serving_work *w, struct nrg_serving_fit *fit)
{
    struct part part = find_part(w, fit);
    int rc = price_all(fit, NRG_SERVING_OUTPUT, part.output, part.sd, &fit->output_all_in);
    return rc ? rc
              : price_all(fit, NRG_SERVING_PROMPT, 1 - part.output, part.sd, &fit->prompt_all_in);
}
