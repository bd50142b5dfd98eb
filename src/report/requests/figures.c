/* Sums and percentiles of requests. See report.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "report/requests/report.h"

static struct nrg_request_use *find_use(struct nrg_request_use *uses, size_t *n, const char *name)
{
    for (size_t i = 0; i < *n; i++)
        if (!strcmp(uses[i].name, name))
            return &uses[i];
    uses[*n] = (struct nrg_request_use){.name = name};
    return &uses[(*n)++];
}

static int by_energy(const void *a, const void *b)
{
    const struct nrg_request_use *x = a, *y = b;
    return (x->energy_j < y->energy_j) - (x->energy_j > y->energy_j);
}

static void add_use(struct nrg_request_use *use, const struct nrg_relayed_request *q,
                    const struct nrg_llm_energy *e)
{
    double output = isnan(q->output_tokens) ? 0 : q->output_tokens;
    use->requests++;
    use->seconds += (double)(q->end_ns - q->begin_ns) * 1e-9;
    use->input += q->input == NRG_MISSING ? 0 : (double)q->input;
    use->cached += q->cached == NRG_MISSING ? 0 : (double)q->cached;
    use->output += output;
    use->energy_j += e->energy_j;
    use->low_j += e->low_j;
    use->high_j += e->high_j;
    if (!isnan(q->output_tokens)) {
        use->made_j += e->energy_j;
        use->made_low_j += e->low_j;
        use->made_high_j += e->high_j;
    }
    if (!nrg_request_failed(q))
        return;
    use->failed++;
    use->failed_output += output;
    use->failed_j += e->energy_j;
}

const char *nrg_request_kind(const struct nrg_relayed_request *q)
{
    return *q->path ? q->path : q->api;
}

struct nrg_request_use *nrg_request_uses(const struct nrg_llm_share *share, bool other, size_t *n)
{
    const struct nrg_relayed_requests *requests = &share->requests;
    struct nrg_request_use *uses = nrg_calloc(requests->n + 1, sizeof *uses);
    *n = 0;
    for (size_t i = 0; uses && i < requests->n; i++) {
        const struct nrg_relayed_request *q = &requests->items[i];
        if (other ? q->understood : *q->path != 0)
            continue;
        struct nrg_request_use *use = find_use(uses, n, other ? nrg_request_kind(q) : q->model);
        add_use(use, q, &share->energies[i]);
    }
    for (size_t i = 0; i < *n; i++) { /* together they are not more than all */
        uses[i].high_j = fmin(uses[i].high_j, fmax(share->summary.total_high_j, uses[i].energy_j));
        uses[i].made_high_j =
            fmin(uses[i].made_high_j, fmax(share->summary.total_high_j, uses[i].made_j));
    }
    if (*n > 1)
        qsort(uses, *n, sizeof *uses, by_energy);
    return uses;
}

double nrg_request_first_s(const struct nrg_relayed_request *q)
{
    return nrg_llm_is_streamed(q) ? (double)(q->first_ns - q->begin_ns) * 1e-9 : NAN;
}

double nrg_request_token_s(const struct nrg_llm_share *share, const struct nrg_relayed_request *q)
{
    if (!nrg_llm_is_streamed(q) || !(q->output_tokens > 1))
        return NAN;
    int64_t last_ns = share->requests.texts[q->texts_end - 1].t_ns;
    return fmax((double)(last_ns - q->first_ns) * 1e-9, 0) / (q->output_tokens - 1);
}

static double figure_of(const struct nrg_llm_share *share, size_t i, enum nrg_request_figure figure)
{
    const struct nrg_relayed_request *q = &share->requests.items[i];
    switch (figure) {
    case NRG_REQUEST_ENERGY:
        return share->energies[i].energy_j;
    case NRG_REQUEST_FIRST_S:
        return nrg_request_first_s(q);
    case NRG_REQUEST_TOKEN_S:
        return nrg_request_token_s(share, q);
    default:
        return (double)(q->end_ns - q->begin_ns) * 1e-9;
    }
}

/* A figure, and how often it stands for. */
struct weighted {
    double value, times;
};

static int by_value(const void *a, const void *b)
{
    const struct weighted *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/* Between two texts of a stream; several that came together were as far apart as their mean. */
static size_t add_gaps(const struct nrg_llm_share *share, const struct nrg_relayed_request *q,
                       struct weighted *to)
{
    size_t n = 0;
    int64_t before_ns = q->first_ns;
    if (!nrg_llm_is_streamed(q))
        return 0;
    for (size_t t = q->texts; t < q->texts_end; t++) {
        const struct nrg_llm_texts *piece = &share->requests.texts[t];
        double times = (double)(piece->n - (t == q->texts)); /* the first has none before it */
        if (times > 0)
            to[n++] =
                (struct weighted){fmax((double)(piece->t_ns - before_ns) * 1e-9, 0) / times, times};
        before_ns = piece->t_ns;
    }
    return n;
}

static size_t collect(const struct nrg_llm_share *share, const char *model,
                      enum nrg_request_figure figure, struct weighted *to)
{
    size_t n = 0;
    for (size_t i = 0; i < share->requests.n; i++) {
        const struct nrg_relayed_request *q = &share->requests.items[i];
        if (*q->path || nrg_request_failed(q) || (model && strcmp(q->model, model) != 0))
            continue;
        if (figure == NRG_REQUEST_GAP_S) {
            n += add_gaps(share, q, to + n);
            continue;
        }
        to[n] = (struct weighted){figure_of(share, i, figure), 1};
        n += isnan(to[n].value) ? 0 : 1;
    }
    return n;
}

struct nrg_request_percentiles nrg_request_percentiles(const struct nrg_llm_share *share,
                                                       const char *model,
                                                       enum nrg_request_figure figure)
{
    static const double parts[NRG_REQUEST_PARTS] = {0.5, 0.9, 0.99};
    struct nrg_request_percentiles p = {{NAN, NAN, NAN}};
    struct weighted *values =
        nrg_calloc(share->requests.n + share->requests.n_texts + 1, sizeof *values);
    size_t n = values ? collect(share, model, figure, values) : 0, at = 0;
    double all = 0, until = 0;
    if (n)
        qsort(values, n, sizeof *values, by_value);
    for (size_t i = 0; i < n; i++)
        all += values[i].times;
    for (size_t i = 0; i < NRG_REQUEST_PARTS && n; i++) {
        while (at + 1 < n && until + values[at].times < parts[i] * all)
            until += values[at++].times;
        p.part[i] = values[at].value;
    }
    free(values);
    return p;
}
