/* See slots.h. */
#include "llm/slots.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "energy/cursor.h"

#define LONGEST_NS   (500 * NRG_NS_PER_MS)
#define SHORTEST_NS  (50 * NRG_NS_PER_MS)
#define MOST_SLOTS   100000
#define ROWS         48 /* of the regression, where there is time for them */
#define LEAST_PROMPT 16 /* tokens of a prompt that shows how fast prompts are read */
#define LEAST_READ   10 /* such requests */

static size_t slot_at(const struct nrg_llm_slots *s, int64_t t_ns)
{
    if (t_ns <= s->begin_ns)
        return 0;
    size_t i = (size_t)((t_ns - s->begin_ns) / s->slot_ns);
    return i < s->n ? i : s->n - 1;
}

static int64_t begin_of(const struct nrg_llm_slots *s, size_t i)
{
    return s->begin_ns + (int64_t)i * s->slot_ns;
}

static int64_t end_of(const struct nrg_llm_slots *s, size_t i)
{
    return i + 1 < s->n ? begin_of(s, i + 1) : s->end_ns;
}

static const struct nrg_timeline *domain_timeline(struct nrg_frame *frame,
                                                  const struct nrg_domain *domain)
{
    return nrg_frame_timeline(frame, (size_t)(domain->channel - frame->channels));
}

/* Two updates of the slowest sensor, so that a slot's joules are its own. */
static int64_t choose_length(struct nrg_frame *frame, const struct nrg_summary *summary)
{
    int64_t run_ns = summary->end_ns - summary->begin_ns, least_ns = SHORTEST_NS;
    for (size_t d = 0; d < summary->n_domains; d++) {
        const struct nrg_domain *domain = &summary->domains[d];
        const struct nrg_timeline *tl = domain->in_total ? domain_timeline(frame, domain) : NULL;
        int64_t width_ns = tl ? 2 * nrg_timeline_width_ns(tl, domain->channel) : 0;
        least_ns = width_ns > least_ns ? width_ns : least_ns;
    }
    int64_t slot_ns = run_ns / (ROWS * NRG_LLM_GROUP);
    slot_ns = slot_ns > LONGEST_NS ? LONGEST_NS : slot_ns;
    slot_ns = slot_ns < least_ns ? least_ns : slot_ns;
    return run_ns / slot_ns > MOST_SLOTS ? run_ns / MOST_SLOTS : slot_ns;
}

void nrg_llm_slots_domain(struct nrg_llm_slots *s, struct nrg_frame *frame,
                          const struct nrg_domain *domain, double late_s)
{
    const struct nrg_timeline *tl = domain_timeline(frame, domain);
    struct nrg_energy_cursor cursor;
    struct nrg_energy_at before = {0, 0};
    int64_t late_ns = (int64_t)(late_s * 1e9);
    if (tl)
        nrg_energy_cursor_init(&cursor, tl, s->begin_ns + late_ns, 0);
    for (size_t i = 0; i < s->n; i++) {
        struct nrg_energy_at at = before;
        double length_ns = (double)(end_of(s, i) - begin_of(s, i));
        if (tl)
            at = nrg_energy_cursor_at(&cursor, end_of(s, i) + late_ns);
        s->domain_j[i] = at.energy_j - before.energy_j;
        s->domain_known[i] = !tl || at.covered_ns - before.covered_ns > 0.99 * length_ns;
        before = at;
    }
}

void nrg_llm_slots_energy(struct nrg_llm_slots *s, struct nrg_frame *frame,
                          const struct nrg_summary *summary, const double *late_s)
{
    for (size_t i = 0; i < s->n; i++) {
        s->items[i].energy_j = 0;
        s->known[i] = true;
    }
    for (size_t d = 0; d < summary->n_domains; d++) {
        if (!summary->domains[d].in_total)
            continue;
        nrg_llm_slots_domain(s, frame, &summary->domains[d], late_s ? late_s[d] : 0);
        for (size_t i = 0; i < s->n; i++) {
            s->items[i].energy_j += s->domain_j[i];
            s->known[i] &= s->domain_known[i];
        }
    }
}

/* Adds an amount to the slots between two times, by time; parts[0] is slot `first`. */
static void spread(const struct nrg_llm_slots *s, struct nrg_llm_part *parts, size_t first,
                   size_t field, int64_t from_ns, int64_t to_ns, double amount)
{
    size_t i = slot_at(s, from_ns), last = slot_at(s, to_ns);
    double length_ns = (double)(to_ns - from_ns);
    for (; i <= last; i++) {
        int64_t begin = begin_of(s, i) > from_ns ? begin_of(s, i) : from_ns;
        int64_t end = i == last || end_of(s, i) > to_ns ? to_ns : end_of(s, i);
        double share = length_ns > 0 ? (double)(end - begin) / length_ns : 1;
        double *to[] = {&parts[i - first].prompt, &parts[i - first].output,
                        &parts[i - first].sequence_s, &parts[i - first].other_s};
        *to[field] += amount * (i == slot_at(s, from_ns) && i == last ? 1 : share);
    }
}

enum { PROMPT, OUTPUT, SEQUENCE, OTHER };

static int64_t within(const struct nrg_llm_slots *s, int64_t t_ns)
{
    return t_ns < s->begin_ns ? s->begin_ns : t_ns > s->end_ns ? s->end_ns : t_ns;
}

static void spread_texts(const struct nrg_llm_slots *s, const struct nrg_relayed_request *q,
                         struct nrg_llm_part *parts, size_t first)
{
    double each = q->output_tokens / (double)q->n_texts;
    int64_t before_ns = within(s, q->first_ns);
    for (size_t t = q->texts; t < q->texts_end; t++) {
        const struct nrg_llm_texts *piece = &s->requests->texts[t];
        int64_t t_ns = within(s, piece->t_ns > q->end_ns ? q->end_ns : piece->t_ns);
        t_ns = t_ns < before_ns ? before_ns : t_ns;
        spread(s, parts, first, OUTPUT, before_ns, t_ns, each * (double)piece->n);
        before_ns = t_ns;
    }
}

/*
 * Nanoseconds that a token of a prompt takes: until the first text at least that, and requests
 * wait, too, so it is the tenth of the requests that are fastest. Where all of them wait, none is
 * fast, but the server reads no slower than all prompts take over the busy time.
 */
static int find_reading(struct nrg_llm_slots *s)
{
    double *values = nrg_calloc(s->requests->n + 1, sizeof *values);
    double tokens = 0, busy_ns = 0;
    size_t n = 0;
    if (!values)
        return -ENOMEM;
    for (size_t i = 0; i < s->requests->n; i++) {
        const struct nrg_relayed_request *q = &s->requests->items[i];
        const struct nrg_llm_prompt *prompt = &s->prompts[i];
        tokens += prompt->tokens;
        if (nrg_llm_is_streamed(q) && !(prompt->spread > 0) && prompt->tokens >= LEAST_PROMPT)
            values[n++] = (double)(q->first_ns - q->begin_ns) / prompt->tokens;
    }
    for (size_t i = 0; i < s->n; i++)
        busy_ns += s->items[i].amount[NRG_SERVING_BUSY] * 1e9;
    nrg_sort(values, n);
    s->read_ns = n >= LEAST_READ ? fmin(values[n / 10], busy_ns / tokens) : 0;
    free(values);
    return 0;
}

/*
 * When the server read the prompt. Of a stream, until the first text, and it may have waited
 * before. Of a whole answer nobody knows; where it is known how fast prompts are read, as soon as
 * it came.
 */
static void find_read(const struct nrg_llm_slots *s, const struct nrg_relayed_request *q,
                      double prompt, int64_t *from_ns, int64_t *to_ns)
{
    int64_t takes_ns = (int64_t)(s->read_ns * prompt);
    *from_ns = q->begin_ns;
    *to_ns = nrg_llm_is_streamed(q) ? q->first_ns : q->end_ns;
    if (takes_ns > 0 && takes_ns < *to_ns - *from_ns)
        *(nrg_llm_is_streamed(q) ? from_ns : to_ns) =
            nrg_llm_is_streamed(q) ? q->first_ns - takes_ns : q->begin_ns + takes_ns;
    *to_ns = *to_ns < *from_ns ? *from_ns : *to_ns > q->end_ns ? q->end_ns : *to_ns;
    *from_ns = within(s, *from_ns);
    *to_ns = within(s, *to_ns);
}

/* Adds tokens to the slots between two times, by time and pace. */
static void spread_whole(const struct nrg_llm_slots *s, struct nrg_llm_part *parts, size_t first,
                         int64_t from_ns, int64_t to_ns, double tokens)
{
    size_t begin = slot_at(s, from_ns), last = slot_at(s, to_ns);
    double sum = 0;
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = begin; i <= last; i++) {
            int64_t from = begin_of(s, i) > from_ns ? begin_of(s, i) : from_ns;
            int64_t to = i < last && end_of(s, i) < to_ns ? end_of(s, i) : to_ns;
            double part = (double)(to - from) * s->pace[i];
            sum += turn ? 0 : part;
            if (turn)
                parts[i - first].output += sum > 0 ? tokens * part / sum : i == last ? tokens : 0;
        }
}

size_t nrg_llm_slots_parts(const struct nrg_llm_slots *s, size_t request,
                           struct nrg_llm_part *parts, size_t *first)
{
    const struct nrg_relayed_request *q = &s->requests->items[request];
    int64_t begin_ns = within(s, q->begin_ns), end_ns = within(s, q->end_ns), from_ns, to_ns;
    if (end_ns < begin_ns || q->begin_ns > s->end_ns || q->end_ns < s->begin_ns)
        return 0;
    double prompt = s->prompts[request].tokens;
    find_read(s, q, prompt, &from_ns, &to_ns);
    *first = slot_at(s, begin_ns);
    size_t n = slot_at(s, end_ns) - *first + 1;
    memset(parts, 0, n * sizeof *parts);
    spread(s, parts, *first, q->understood ? SEQUENCE : OTHER, begin_ns, end_ns,
           (double)(end_ns - begin_ns) * 1e-9);
    if (!q->understood)
        return n;
    if (prompt > 0)
        spread(s, parts, *first, PROMPT, from_ns, to_ns, prompt);
    if (nrg_llm_is_streamed(q))
        spread_texts(s, q, parts, *first);
    else if (q->output_tokens > 0)
        spread_whole(s, parts, *first, to_ns < end_ns ? to_ns : begin_ns, end_ns, q->output_tokens);
    return n;
}

/* Adds the part of each slot between two times. */
static void add_time(const struct nrg_llm_slots *s, int64_t from_ns, int64_t to_ns, double *seconds)
{
    for (size_t i = slot_at(s, from_ns); from_ns < to_ns && i < s->n; i++) {
        int64_t end_ns = end_of(s, i) < to_ns ? end_of(s, i) : to_ns;
        seconds[i] += (double)(end_ns - from_ns) * 1e-9;
        from_ns = end_ns;
    }
}

/* Time in which at least one request runs, of all or of those that are understood; they come in
 * order of their begin. */
static void add_running(const struct nrg_llm_slots *s, bool all, double *seconds)
{
    int64_t done_ns = s->begin_ns;
    for (size_t r = 0; r < s->requests->n; r++) {
        const struct nrg_relayed_request *q = &s->requests->items[r];
        int64_t from_ns = within(s, q->begin_ns), to_ns = within(s, q->end_ns);
        if (!all && !q->understood)
            continue;
        add_time(s, from_ns < done_ns ? done_ns : from_ns, to_ns, seconds);
        done_ns = to_ns > done_ns ? to_ns : done_ns;
    }
}

static void add_busy(struct nrg_llm_slots *s)
{
    add_running(s, false, s->running_s);
    for (size_t i = 0; i < s->n; i++) {
        s->items[i].amount[NRG_SERVING_BUSY] = s->running_s[i];
        s->running_s[i] = 0;
    }
    add_running(s, true, s->running_s);
}

/*
 * Tokens and seconds of all streams between their first text and their end; where few run, their
 * mean over the run counts as much as one of them.
 */
static void set_pace(struct nrg_llm_slots *s, struct nrg_llm_part *parts, double *seconds)
{
    double all = 0, all_s = 0;
    for (size_t r = 0; r < s->requests->n; r++) {
        const struct nrg_relayed_request *q = &s->requests->items[r];
        size_t first, n = nrg_llm_is_streamed(q) ? nrg_llm_slots_parts(s, r, parts, &first) : 0;
        if (n)
            add_time(s, within(s, q->first_ns), within(s, q->end_ns), seconds);
        for (size_t i = 0; i < n; i++)
            s->pace[first + i] += parts[i].output;
    }
    for (size_t i = 0; i < s->n; i++) {
        all += s->pace[i];
        all_s += seconds[i];
    }
    double mean = all > 0 && all_s > 0 ? all / all_s : 0;
    for (size_t i = 0; i < s->n; i++) {
        double one_s = s->items[i].amount[NRG_SERVING_IDLE];
        s->pace[i] = mean > 0 ? (s->pace[i] + mean * one_s) / (seconds[i] + one_s) : 1;
    }
}

static int find_pace(struct nrg_llm_slots *s)
{
    struct nrg_llm_part *parts = nrg_calloc(s->n, sizeof *parts);
    double *seconds = nrg_calloc(s->n, sizeof *seconds);
    if (parts && seconds)
        set_pace(s, parts, seconds);
    int rc = parts && seconds ? 0 : -ENOMEM;
    free(parts);
    free(seconds);
    return rc;
}

static int add_requests(struct nrg_llm_slots *s)
{
    struct nrg_llm_part *parts = nrg_calloc(s->n, sizeof *parts);
    if (!parts)
        return -ENOMEM;
    for (size_t r = 0; r < s->requests->n; r++) {
        size_t first, n = nrg_llm_slots_parts(s, r, parts, &first);
        for (size_t i = 0; i < n; i++) {
            double *amount = s->items[first + i].amount;
            amount[NRG_SERVING_PROMPT] += parts[i].prompt;
            amount[NRG_SERVING_OUTPUT] += parts[i].output;
            amount[NRG_SERVING_SEQUENCE] += parts[i].sequence_s;
            amount[NRG_SERVING_OTHER] += parts[i].other_s;
        }
    }
    free(parts);
    return 0;
}

/* Slots with their joules, without requests; begin, end and length are set. */
static int make_empty(struct nrg_llm_slots *s, struct nrg_frame *frame,
                      const struct nrg_summary *summary)
{
    if (s->end_ns <= s->begin_ns)
        return -ENODATA;
    s->n = (size_t)((s->end_ns - s->begin_ns) / s->slot_ns);
    s->n = s->n ? s->n : 1; /* the last one takes the rest */
    s->items = nrg_calloc(s->n, sizeof *s->items);
    s->known = nrg_calloc(s->n, sizeof *s->known);
    s->running_s = nrg_calloc(s->n, sizeof *s->running_s);
    s->pace = nrg_calloc(s->n, sizeof *s->pace);
    s->domain_j = nrg_calloc(s->n, sizeof *s->domain_j);
    s->domain_known = nrg_calloc(s->n, sizeof *s->domain_known);
    if (!s->items || !s->known || !s->running_s || !s->pace || !s->domain_j || !s->domain_known)
        return -ENOMEM;
    for (size_t i = 0; i < s->n; i++) {
        s->items[i].begin_ns = begin_of(s, i);
        s->items[i].end_ns = end_of(s, i);
        s->items[i].amount[NRG_SERVING_IDLE] = (double)(end_of(s, i) - begin_of(s, i)) * 1e-9;
    }
    nrg_llm_slots_energy(s, frame, summary, NULL);
    return 0;
}

int nrg_llm_slots_make(struct nrg_llm_slots *s, struct nrg_frame *frame,
                       const struct nrg_summary *summary,
                       const struct nrg_relayed_requests *requests)
{
    *s = (struct nrg_llm_slots){.requests = requests,
                                .begin_ns = summary->begin_ns,
                                .end_ns = summary->end_ns,
                                .slot_ns = choose_length(frame, summary)};
    int rc = make_empty(s, frame, summary);
    if (!rc && !(s->prompts = nrg_llm_prompts_make(requests)))
        rc = -ENOMEM;
    if (rc)
        return rc;
    add_busy(s);
    rc = find_reading(s);
    if (!rc)
        rc = find_pace(s);
    return rc ? rc : add_requests(s);
}

int nrg_llm_slots_make_idle(struct nrg_llm_slots *s, struct nrg_frame *frame,
                            const struct nrg_summary *summary, const struct nrg_run *run,
                            int64_t slot_ns)
{
    *s = (struct nrg_llm_slots){
        .begin_ns = run->begin_ns, .end_ns = run->end_ns, .slot_ns = slot_ns};
    return s->end_ns - s->begin_ns < slot_ns ? 0 : make_empty(s, frame, summary);
}

void nrg_llm_slots_release(struct nrg_llm_slots *s)
{
    free(s->prompts);
    free(s->items);
    free(s->known);
    free(s->running_s);
    free(s->pace);
    free(s->domain_j);
    free(s->domain_known);
    *s = (struct nrg_llm_slots){0};
}
