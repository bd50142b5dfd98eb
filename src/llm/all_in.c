/*
 * All joules as prices of tokens. A server that is never idle and keeps its batch makes tokens as
 * time passes: a step takes its time for the batch, and more for what it reads of prompts. Then
 * tokens of prompts, of the output and seconds are bound by one equation, and no regression tells a
 * token's price from that of the seconds that it takes. Both together it does tell: the seconds
 * that one more token of a prompt takes follow from that same equation, by least squares over the
 * rows (with the number of steps, where it is counted), and with them a token's price is known,
 * however its joules are divided.
 *
 * Prompts get that part of all seconds, idle ones too, and the output the rest; so the two prices
 * times their tokens are all joules of the law. What the part is uncertain by is in the intervals.
 */
#include "llm/internal.h"

#include <math.h>
#include <string.h>

/* Of the time that tokens take, that of prompts; and its standard deviation. */
struct part {
    double prompt, sd;
};

enum { OUTPUT, PROMPT, STEPS, COLUMNS };

/* Seconds in which something runs, where the server says so. */
static enum nrg_serving_term seconds(const struct nrg_serving_fit *fit)
{
    return fit->price[NRG_SERVING_BUSY].amount > 0 ? NRG_SERVING_BUSY : NRG_SERVING_IDLE;
}

/* Part and deviation from seconds per token of a prompt. */
static struct part of_all(const struct nrg_serving_fit *fit, double per, double sd)
{
    double prompts = fit->price[NRG_SERVING_PROMPT].amount, all_s = fit->price[seconds(fit)].amount;
    return (struct part){fmin(fmax(per * prompts / all_s, 0), 1), sd * prompts / all_s};
}

static int find_part(const struct nrg_serving_work *w, const struct nrg_serving_fit *fit,
                     struct part *part)
{
    struct nrg_gram gram = {0};
    struct nrg_scaled s;
    double per[COLUMNS] = {0}, inverse[COLUMNS * (COLUMNS + 1) / 2];
    int rc = nrg_gram_grow(&gram, COLUMNS);
    for (size_t i = 0; !rc && i < w->n; i++) {
        const struct nrg_serving_row *r = &w->rows[i];
        double x[COLUMNS] = {r->x[NRG_SERVING_OUTPUT], r->x[NRG_SERVING_PROMPT], r->steps};
        nrg_gram_add(&gram, x, NULL, 0, r->x[seconds(fit)], 1);
    }
    if (!rc)
        rc = nrg_scaled_init(&s, &gram, NULL, 0);
    if (!rc) {
        nrg_gram_factor(s.a, s.m, NULL, NULL, true);
        memcpy(s.x, s.b, s.m * sizeof *s.x);
        nrg_gram_solve(s.a, s.m, s.x, true);
        nrg_scaled_solution(&s, per);
        nrg_gram_invert(s.a, s.m, inverse);
        double left = nrg_gram_residual(&gram, per) / fmax((double)(w->n - s.m), 1), sd = 0;
        for (size_t p = 0; p < s.m; p++)
            if (s.index[p] == PROMPT)
                sd = s.scale[p] * sqrt(fmax(left, 0) * inverse[nrg_packed(p, p)]);
        *part = of_all(fit, per[PROMPT], sd);
        nrg_scaled_release(&s);
    }
    nrg_gram_release(&gram);
    return rc;
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
    struct part part = {0};
    int rc = find_part(w, fit, &part);
    if (!rc)
        rc = price_all(fit, NRG_SERVING_OUTPUT, 1 - part.prompt, part.sd, &fit->output_all_in);
    if (!rc)
        rc = price_all(fit, NRG_SERVING_PROMPT, part.prompt, part.sd, &fit->prompt_all_in);
    return rc;
}
