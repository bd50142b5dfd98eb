/*
 * See prompts.h. A plane through tokens over two things: the time until the first text, and what
 * the server read of other prompts meanwhile. Without the latter a request that waited for others
 * would be believed to have read much itself, just when much was read anyway; and the price of a
 * token would be too small.
 */
#include "llm/prompts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MODELS   64   /* that have a plane; requests of further ones are expected to read nothing */
#define ENOUGH   10   /* requests that make a plane */
#define TOGETHER 1e-9 /* of both variances' product: the two are the same thing */

/* What a request shows: tokens of its prompt, seconds until its first text, tokens of others. */
struct seen {
    double tokens, s, others;
};

struct plane {
    const char *model;
    double n;
    struct seen sum;
    double tokens2, s2, others2, s_tokens, others_tokens, s_others;
};

/* When a prompt was read, and tokens that were until then. */
struct read {
    int64_t t_ns;
    double tokens, until;
};

struct planes {
    struct plane of[MODELS];
    size_t n;
    const struct nrg_relayed_requests *requests;
    struct read *reads;
    size_t n_reads;
};

static struct plane *find_plane(struct planes *p, const char *model)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->of[i].model, model))
            return &p->of[i];
    if (p->n == MODELS)
        return NULL;
    p->of[p->n] = (struct plane){.model = model};
    return &p->of[p->n++];
}

static bool is_said(const struct nrg_relayed_request *q)
{
    return q->input != NRG_MISSING;
}

static double said(const struct nrg_relayed_request *q)
{
    return (double)q->input - (q->cached == NRG_MISSING ? 0 : (double)q->cached);
}

static bool has_text(const struct nrg_relayed_request *q)
{
    return q->first_ns != NRG_MISSING && q->n_texts > 0;
}

static int by_time(const void *a, const void *b)
{
    const struct read *x = a, *y = b;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

/* Of prompts that were not said, the mean of the others. */
static void set_reads(struct planes *p)
{
    double sum = 0, n = 0;
    for (size_t i = 0; i < p->requests->n; i++) {
        const struct nrg_relayed_request *q = &p->requests->items[i];
        if (!has_text(q))
            continue;
        p->reads[p->n_reads++] = (struct read){q->first_ns, is_said(q) ? said(q) : NAN, 0};
        sum += is_said(q) ? said(q) : 0;
        n += is_said(q);
    }
    if (p->n_reads)
        qsort(p->reads, p->n_reads, sizeof *p->reads, by_time);
    double until = 0;
    for (size_t i = 0; i < p->n_reads; i++) {
        struct read *r = &p->reads[i];
        r->tokens = isnan(r->tokens) ? n > 0 ? sum / n : 0 : r->tokens;
        r->until = until += r->tokens;
    }
}

/* Tokens of all prompts that were read until then, those at that very time included. */
static double read_until(const struct planes *p, int64_t t_ns)
{
    size_t from = 0, to = p->n_reads;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (p->reads[middle].t_ns <= t_ns)
            from = middle + 1;
        else
            to = middle;
    }
    return from ? p->reads[from - 1].until : 0;
}

/* Its own prompt is among what was read: it goes out where it is known, and else on average. */
static struct seen see(const struct planes *p, const struct nrg_relayed_request *q, double own)
{
    double others = read_until(p, q->first_ns) - read_until(p, q->begin_ns) - own;
    return (struct seen){own, (double)(q->first_ns - q->begin_ns) / 1e9, fmax(others, 0)};
}

static void add(struct plane *l, struct seen v)
{
    l->n++;
    l->sum.tokens += v.tokens;
    l->sum.s += v.s;
    l->sum.others += v.others;
    l->tokens2 += v.tokens * v.tokens;
    l->s2 += v.s * v.s;
    l->others2 += v.others * v.others;
    l->s_tokens += v.s * v.tokens;
    l->others_tokens += v.others * v.tokens;
    l->s_others += v.s * v.others;
}

static struct nrg_llm_prompt on_plane(const struct plane *l, double s, double others)
{
    double mean = l->sum.tokens / l->n, mean_s = l->sum.s / l->n, mean_o = l->sum.others / l->n;
    double vs = l->s2 / l->n - mean_s * mean_s, vo = l->others2 / l->n - mean_o * mean_o;
    double so = l->s_others / l->n - mean_s * mean_o;
    double st = l->s_tokens / l->n - mean_s * mean, ot = l->others_tokens / l->n - mean_o * mean;
    double both = vs * vo - so * so;
    bool apart = both > TOGETHER * vs * vo;
    double per_s = apart ? (st * vo - ot * so) / both : vs > 0 ? st / vs : 0;
    double per_other = apart ? (ot * vs - st * so) / both : 0;
    double left = l->tokens2 / l->n - mean * mean - per_s * st - per_other * ot;
    double expected = mean + per_s * (s - mean_s) + per_other * (others - mean_o);
    return (struct nrg_llm_prompt){fmax(expected, 0), sqrt(fmax(left, 0))};
}

static struct nrg_llm_prompt expect(struct planes *p, const struct nrg_relayed_request *q)
{
    const struct plane *l = has_text(q) ? find_plane(p, q->model) : NULL;
    if (!l || l->n < ENOUGH)
        return (struct nrg_llm_prompt){0, 0};
    struct seen v = see(p, q, l->sum.tokens / l->n);
    return on_plane(l, v.s, v.others);
}

struct nrg_llm_prompt *nrg_llm_prompts_make(const struct nrg_relayed_requests *requests)
{
    struct nrg_llm_prompt *prompts = nrg_calloc(requests->n + 1, sizeof *prompts);
    struct planes p = {.requests = requests, .reads = nrg_calloc(requests->n + 1, sizeof *p.reads)};
    if (!prompts || !p.reads) {
        free(prompts);
        free(p.reads);
        return NULL;
    }
    set_reads(&p);
    for (size_t i = 0; i < requests->n; i++) {
        const struct nrg_relayed_request *q = &requests->items[i];
        struct plane *l = is_said(q) && has_text(q) ? find_plane(&p, q->model) : NULL;
        if (l)
            add(l, see(&p, q, said(q)));
    }
    for (size_t i = 0; i < requests->n; i++) {
        const struct nrg_relayed_request *q = &requests->items[i];
        prompts[i] = is_said(q) ? (struct nrg_llm_prompt){said(q), 0} : expect(&p, q);
    }
    free(p.reads);
    return prompts;
}
