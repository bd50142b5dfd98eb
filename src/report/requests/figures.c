/* Sums and percentiles of requests. See report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "report/requests/report.h"

static struct nrg_model_use *find_model(struct nrg_model_use *uses, size_t *n, const char *model)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(uses[i].model, model))
            return &uses[i];
    uses[*n] = (struct nrg_model_use){.model = model};
    return &uses[(*n)++];
}

static int by_energy(const void *a, const void *b)
{
    const struct nrg_model_use *x = a, *y = b;
    return (x->energy_j < y->energy_j) - (x->energy_j > y->energy_j);
}

struct nrg_model_use *nrg_model_uses(const struct nrg_llm_share *share, size_t *n)
{
    const struct nrg_relayed_requests *requests = &share->requests;
    struct nrg_model_use *uses = nrg_calloc(requests->n + 1, sizeof *uses);
    *n = 0;
    for (size_t i = 0; uses && i < requests->n; i++) {
        const struct nrg_relayed_request *q = &requests->items[i];
        struct nrg_model_use *use = find_model(uses, n, q->model);
        use->requests++;
        use->input += q->input == NRG_MISSING ? 0 : (double)q->input;
        use->cached += q->cached == NRG_MISSING ? 0 : (double)q->cached;
        use->output += isnan(q->output_tokens) ? 0 : q->output_tokens;
        use->energy_j += share->energies[i].energy_j;
        use->low_j += share->energies[i].low_j;
        use->high_j += share->energies[i].high_j;
    }
    if (*n > 1)
        qsort(uses, *n, sizeof *uses, by_energy);
    return uses;
}

double nrg_request_first_s(const struct nrg_relayed_request *q)
{
    return q->first_ns == NRG_MISSING ? NAN : (double)(q->first_ns - q->begin_ns) * 1e-9;
}

static double figure_of(const struct nrg_llm_share *share, size_t i, enum nrg_request_figure figure)
{
    const struct nrg_relayed_request *q = &share->requests.items[i];
    if (figure == NRG_REQUEST_ENERGY)
        return share->energies[i].energy_j;
    if (figure == NRG_REQUEST_FIRST_S)
        return nrg_request_first_s(q);
    return (double)(q->end_ns - q->begin_ns) * 1e-9;
}

double nrg_request_percentile(const struct nrg_llm_share *share, enum nrg_request_figure figure,
                              double part)
{
    double *values = nrg_calloc(share->requests.n + 1, sizeof *values), result = NAN;
    size_t n = 0;
    for (size_t i = 0; values && i < share->requests.n; i++) {
        values[n] = figure_of(share, i, figure);
        if (!isnan(values[n]))
            n++;
    }
    if (n) {
        nrg_sort(values, n);
        size_t rank = (size_t)ceil(part * (double)n);
        result = values[rank ? rank - 1 : 0];
    }
    free(values);
    return result;
}
