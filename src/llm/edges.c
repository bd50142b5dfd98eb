/*
 * Tokens are counted when a step ends, so at the edges of a row a step's tokens may be on the wrong
 * side. Instruments (fit.c) take that out, but for what they explain of it by chance: of n rows as
 * many as there are columns. Where tokens hardly vary against time that is most of what varies, and
 * prices are too small by an amount that no residual shows.
 *
 * With G the products of the amounts and E what those errors add to them, prices that were fitted
 * by G should be (G - E)^-1 G times as large. That factor is a series in G^-1 E; where errors are
 * all that varies it has no limit, and what is kept of it is large enough to say that nothing is
 * known. The truth lies between both laws, so the difference is added to the intervals. The law is
 * the one that was chosen: sequences and busy time have a part in it where they have a price.
 */
#include "llm/internal.h"

#include <errno.h>
#include <string.h>

#define TERMS_OF_SERIES 6

/* What errors at edges add to the sums of squares of whitened rows; neighbours share an edge. */
static void sum_errors(const struct nrg_serving_work *w, double error[NRG_SERVING_COLUMNS])
{
    double chance = (double)w->m / (double)w->n;
    for (size_t i = 0; i < w->n; i++) {
        const struct nrg_serving_row *r = &w->rows[i];
        double by = 1 / r->sd, from = r->follows ? w->phi / r[-1].sd : 0;
        double weight = chance * (by * by + from * from + (by + from) * (by + from)) / 2;
        error[NRG_SERVING_OUTPUT] += weight * r->output_edge2;
        error[NRG_SERVING_PROMPT] += weight * r->prompt_edge2;
    }
}

static size_t pick_chosen(const struct nrg_serving_work *w, const double *value, size_t *index)
{
    size_t m = 0;
    for (size_t p = 0; p < w->m; p++) {
        size_t c = w->index[p];
        bool optional = c == NRG_SERVING_SEQUENCE || c == NRG_SERVING_BUSY;
        if (!optional || value[c] > 0)
            index[m++] = c;
    }
    return m;
}

int nrg_serving_edges(const struct nrg_serving_work *w, const double *value,
                      double more[NRG_SERVING_TERMS])
{
    double error[NRG_SERVING_COLUMNS] = {0}, law[NRG_SERVING_COLUMNS] = {0};
    size_t index[NRG_SERVING_COLUMNS], m = pick_chosen(w, value, index);
    struct nrg_scaled s;
    memset(more, 0, NRG_SERVING_TERMS * sizeof *more);
    if (nrg_scaled_init(&s, &w->gram, index, m))
        return -ENOMEM;
    sum_errors(w, error);
    nrg_gram_factor(s.a, s.m, NULL, NULL, true);
    memcpy(s.x, s.b, s.m * sizeof *s.x);
    for (int k = 0; k <= TERMS_OF_SERIES; k++) {
        nrg_gram_solve(s.a, s.m, s.x, true);
        nrg_scaled_solution(&s, law);
        for (size_t c = 0; k && c < NRG_SERVING_TERMS; c++)
            more[c] += law[c];
        for (size_t p = 0; p < s.m; p++)
            s.x[p] = s.scale[p] * error[s.index[p]] * law[s.index[p]];
    }
    nrg_scaled_release(&s);
    return 0;
}
