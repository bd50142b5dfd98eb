/* See pots.h. */
#include "llm/pots.h"

#include <math.h>

#define MOST_EXCESS 3 /* standard deviations of a slot that are still the requests' */
#define EXCHANGES   4
#define LEAST_CLEAN                                                                                \
    40 /* slots that tell the noise without requests that are not understood: to 12 % */

static double left_of(const struct nrg_llm_pot *pot)
{
    return pot->active_j - pot->law_j;
}

/*
 * Tokens are not quite where they are believed, nor joules, so that one of two neighbours has too
 * many of these and the other too few: what the one has too many fills half of what the other
 * lacks, a few times. What there is together stays the same, and what stands out alone still does.
 */
void nrg_llm_pots_exchange(struct nrg_llm_pot *pots, size_t n)
{
    for (int turn = 0; turn < EXCHANGES; turn++) {
        double last_j = 0; /* that the slot before gives to this one */
        for (size_t i = 0; i < n; i++) {
            double here_j = left_of(&pots[i]), give_j = 0;
            double next_j = i + 1 < n ? left_of(&pots[i + 1]) : 0;
            if (here_j * next_j < 0)
                give_j = copysign(0.5 * fmin(fabs(here_j), fabs(next_j)), here_j);
            pots[i].active_j += last_j - give_j;
            last_j = give_j;
        }
    }
}

/* Sums over slots of one sort: those with requests that are not understood, and those without. */
struct sums {
    double n, square_w2, square_j2, active_j, seconds, seconds2;
};

static void add(struct sums *s, const struct nrg_llm_pot *pot)
{
    double left_j = left_of(pot);
    s->n++;
    s->square_w2 += pow(left_j / pot->length_s, 2);
    s->square_j2 += left_j * left_j;
    s->active_j += fmax(pot->active_j, 0);
    s->seconds += pot->other_s;
    s->seconds2 += pot->other_s2;
}

struct nrg_llm_spread nrg_llm_pots_spread(const struct nrg_llm_pot *pots, size_t n, double requests,
                                          double price_w)
{
    struct sums clean = {0}, mixed = {0};
    struct nrg_llm_spread spread = {0, 1};
    double noise_j2 = 0;
    for (size_t i = 0; i < n; i++)
        add(pots[i].other_s > 0 ? &mixed : &clean, &pots[i]);
    if (!(mixed.n > 0))
        return spread;
    bool enough = clean.n >= LEAST_CLEAN;
    double all_w2 = (clean.square_w2 + mixed.square_w2) / (clean.n + mixed.n);
    if (enough && clean.square_w2 / clean.n < all_w2)
        spread.scatter_by = sqrt(clean.square_w2 / clean.n / all_w2);
    for (size_t i = 0; enough && i < n; i++)
        if (pots[i].other_s > 0)
            noise_j2 += clean.square_w2 / clean.n * pow(pots[i].length_s, 2);
    /* Their price was fitted to the same requests, which hides a part of what they differ by. */
    double hidden = requests >= 2 ? requests / (requests - 1) : 2;
    double learnt_w = sqrt(fmax(mixed.square_j2 - noise_j2, 0) / mixed.seconds2 * hidden);
    if (enough && isfinite(price_w))
        spread.w = fmax(learnt_w, price_w);
    else
        spread.w = mixed.active_j / mixed.seconds; /* each may have used nothing, or all */
    return spread;
}

/* What requests that are not understood can give back of their part of what all get, which grows by
 * that: they have nothing left then. */
static double most_back(const struct nrg_llm_pot *pot)
{
    double of_law = pot->law_j > 0 ? pot->other_law_j / pot->law_j : 0;
    return of_law < 1 ? fmax(pot->active_j, 0) * of_law / (1 - of_law) : fmax(pot->active_j, 0);
}

void nrg_llm_pots_give(struct nrg_llm_pot *pots, size_t n, double spread_w)
{
    for (size_t i = 0; i < n; i++) {
        struct nrg_llm_pot *pot = &pots[i];
        double own_j2 = spread_w * spread_w * pot->other_s2;
        double noise_j2 = pot->scatter_j * pot->scatter_j;
        pot->gain = own_j2 > 0 ? own_j2 / (own_j2 + noise_j2) : 0;
        pot->other_j = fmax(pot->gain * left_of(pot), -most_back(pot));
        double rest_j = pot->active_j - pot->other_j;
        double most_j = pot->law_j + MOST_EXCESS * pot->scatter_j;
        pot->given_j = pot->law_j > 0 ? fmin(rest_j, most_j) : 0;
    }
}
