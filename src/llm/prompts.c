/* See prompts.h. */
#include "llm/prompts.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

#define MODELS 64 /* that have a line; requests of further ones are expected to read nothing */
#define ENOUGH 10 /* requests that make a line */

/* Sums of a model's streamed requests, for a line through tokens over the time until the first
 * text. */
struct line {
    const char *model;
    double n, tokens, tokens2, s, s2, both;
};

struct lines {
    struct line of[MODELS];
    size_t n;
};

static struct line *find_line(struct lines *l, const char *model)
{
    for (size_t i = 0; i < l->n; i++)
        if (!strcmp(l->of[i].model, model))
            return &l->of[i];
    if (l->n == MODELS)
        return NULL;
    l->of[l->n] = (struct line){.model = model};
    return &l->of[l->n++];
}

static bool is_said(const struct nrg_relayed_request *q)
{
    return q->input != NRG_MISSING;
}

static double said(const struct nrg_relayed_request *q)
{
    return (double)q->input - (q->cached == NRG_MISSING ? 0 : (double)q->cached);
}

static double until_text_s(const struct nrg_relayed_request *q)
{
    return q->first_ns != NRG_MISSING && q->n_texts > 0 ? (double)(q->first_ns - q->begin_ns) / 1e9
                                                        : NAN;
}

static void add(struct lines *lines, const struct nrg_relayed_request *q)
{
    double s = until_text_s(q), tokens = said(q);
    struct line *l = isnan(s) ? NULL : find_line(lines, q->model);
    if (!l)
        return;
    l->n++;
    l->tokens += tokens;
    l->tokens2 += tokens * tokens;
    l->s += s;
    l->s2 += s * s;
    l->both += s * tokens;
}

static struct nrg_llm_prompt expect(struct lines *lines, const struct nrg_relayed_request *q)
{
    double s = until_text_s(q);
    const struct line *l = isnan(s) ? NULL : find_line(lines, q->model);
    if (!l || l->n < ENOUGH)
        return (struct nrg_llm_prompt){0, 0};
    double mean = l->tokens / l->n, mean_s = l->s / l->n;
    double variance = l->tokens2 / l->n - mean * mean, variance_s = l->s2 / l->n - mean_s * mean_s;
    double slope = variance_s > 0 ? (l->both / l->n - mean * mean_s) / variance_s : 0;
    return (struct nrg_llm_prompt){fmax(mean + slope * (s - mean_s), 0),
                                   sqrt(fmax(variance - slope * slope * variance_s, 0))};
}

struct nrg_llm_prompt *nrg_llm_prompts_make(const struct nrg_relayed_requests *requests)
{
    struct nrg_llm_prompt *prompts = nrg_calloc(requests->n + 1, sizeof *prompts);
    struct lines lines = {0};
    if (!prompts)
        return NULL;
    for (size_t i = 0; i < requests->n; i++)
        if (is_said(&requests->items[i]))
            add(&lines, &requests->items[i]);
    for (size_t i = 0; i < requests->n; i++) {
        const struct nrg_relayed_request *q = &requests->items[i];
        prompts[i] = is_said(q) ? (struct nrg_llm_prompt){said(q), 0} : expect(&lines, q);
    }
    return prompts;
}
