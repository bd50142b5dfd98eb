/* See share.h. */
#include "llm/share.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "llm/internal.h"
#include "llm/slots.h"

#define LATE_PART   0.1 /* of a row: a sensor that is later is put right */
#define MOST_EXCESS 3   /* standard deviations of a slot that are still the requests' */
#define CONFIDENT   1.96

/* What the requests of a slot share. */
struct pot {
    double active_j; /* energy above idle */
    double law_j;    /* what the law says of all of them */
    double given_j;  /* what they get */
    double scatter_j;
};

struct divider {
    struct nrg_llm_share *share;
    struct nrg_llm_slots slots, before; /* of the requests; of the baseline, maybe none */
    struct pot *pots;
    struct nrg_llm_part *parts;
    bool law;
};

static void find_idle(struct nrg_llm_share *s, struct nrg_frame *frame)
{
    double rate_w = 0, doubt_w = 0;
    for (size_t d = 0; d < s->summary.n_domains; d++) {
        const struct nrg_domain *domain = &s->summary.domains[d];
        size_t channel = (size_t)(domain->channel - frame->channels);
        if (!domain->in_total)
            continue;
        rate_w += nrg_frame_baseline_rate(frame, channel);
        doubt_w += nrg_frame_baseline_doubt(frame, channel);
    }
    const struct nrg_serving_price *idle = &s->fit.price[NRG_SERVING_IDLE];
    s->idle_w = NAN;
    if (isfinite(rate_w) && rate_w >= 0) {
        s->idle_w = rate_w;
        s->idle_doubt_w = isfinite(doubt_w) ? doubt_w : 0;
        s->idle_method = "baseline";
    } else if (!s->fit.why && isfinite(idle->per.value) && idle->resolved) {
        s->idle_w = idle->per.value;
        s->idle_doubt_w = (idle->per.high - idle->per.low) / (2 * CONFIDENT);
        s->idle_method = "regression";
    }
}

/* Slots with gaps say nothing about prices. */
static size_t add_known(const struct nrg_llm_slots *slots, struct nrg_serving_slot *known)
{
    size_t n = 0;
    for (size_t i = 0; i < slots->n; i++)
        if (slots->known[i])
            known[n++] = slots->items[i];
    return n;
}

/* The baseline is part of what is fitted: where the server is never idle, nothing else tells what
 * the idle machine takes from what it takes per second and token. */
static int fit_known(struct divider *d)
{
    struct nrg_serving_slot *known = nrg_calloc(d->before.n + d->slots.n, sizeof *known);
    if (!known)
        return -ENOMEM;
    size_t n = add_known(&d->slots, known);
    /* A law needs rows enough of the requests alone. */
    if (n / NRG_LLM_GROUP >= NRG_SERVING_LEAST_ROWS) {
        n = add_known(&d->before, known);
        n += add_known(&d->slots, known + n);
    }
    int rc = nrg_serving_prices(known, n, NRG_LLM_GROUP, &d->share->fit);
    free(known);
    return rc;
}

static int fit_law(struct divider *d, struct nrg_frame *frame)
{
    struct nrg_llm_share *s = d->share;
    int rc = fit_known(d);
    double row_s = s->slot_s * NRG_LLM_GROUP;
    if (!rc && !s->fit.why && fabs(s->fit.late_s) > LATE_PART * row_s &&
        fabs(s->fit.late_s) < row_s) {
        nrg_llm_slots_energy(&d->slots, frame, &s->summary, (int64_t)(s->fit.late_s * 1e9));
        nrg_llm_slots_energy(&d->before, frame, &s->summary, (int64_t)(s->fit.late_s * 1e9));
        rc = fit_known(d);
        nrg_llm_slots_energy(&d->slots, frame, &s->summary, 0); /* what is shared out is as read */
    }
    d->law = !rc && !s->fit.why;
    return rc;
}

/* The part of a slot's price that a request has: its own amounts, and of the busy time as much as
 * any other one that runs. Without a law, its time. */
static double price_of(const struct divider *d, size_t slot, const struct nrg_llm_part *part,
                       double amount[NRG_SERVING_TERMS])
{
    const struct nrg_serving_slot *all = &d->slots.items[slot];
    double sequences_s = all->amount[NRG_SERVING_SEQUENCE], sum = 0;
    memset(amount, 0, NRG_SERVING_TERMS * sizeof *amount);
    amount[NRG_SERVING_PROMPT] = part->prompt;
    amount[NRG_SERVING_OUTPUT] = part->output;
    amount[NRG_SERVING_SEQUENCE] = part->sequence_s;
    if (sequences_s > 0)
        amount[NRG_SERVING_BUSY] = all->amount[NRG_SERVING_BUSY] * part->sequence_s / sequences_s;
    if (!d->law)
        return part->sequence_s;
    for (size_t t = NRG_SERVING_OUTPUT; t < NRG_SERVING_TERMS; t++)
        if (isfinite(d->share->fit.price[t].per.value))
            sum += d->share->fit.price[t].per.value * amount[t];
    return sum;
}

static void fill_pots(struct divider *d)
{
    struct nrg_llm_share *s = d->share;
    double amount[NRG_SERVING_TERMS];
    for (size_t r = 0; r < s->requests.n; r++) {
        size_t first, n = nrg_llm_slots_parts(&d->slots, r, d->parts, &first);
        for (size_t i = 0; i < n; i++)
            d->pots[first + i].law_j += price_of(d, first + i, &d->parts[i], amount);
    }
    double idle_w = isnan(s->idle_w) ? 0 : s->idle_w;
    for (size_t i = 0; i < d->slots.n; i++) {
        const struct nrg_serving_slot *slot = &d->slots.items[i];
        struct pot *pot = &d->pots[i];
        double length_s = slot->amount[NRG_SERVING_IDLE];
        double idle_j = idle_w * length_s < slot->energy_j ? idle_w * length_s : slot->energy_j;
        pot->active_j = slot->energy_j - idle_j;
        pot->scatter_j = d->law ? s->fit.scatter_w * length_s : 0;
        double most_j = pot->law_j + MOST_EXCESS * pot->scatter_j;
        double busy = fmin(1, slot->amount[NRG_SERVING_BUSY] / length_s);
        pot->given_j = !(pot->law_j > 0) ? 0
                       : !d->law         ? pot->active_j * busy
                                         : fmin(pot->active_j, most_j);
        if (!isnan(s->idle_w))
            s->idle_j += idle_j;
    }
}

/* What was used above idle while a request ran: it can't have used more. Its slots, and one more on
 * either side, or as many as the sensor is late; with their noise, and that of idle power. */
static double most_of(const struct divider *d, size_t first, size_t n)
{
    const struct nrg_llm_share *s = d->share;
    size_t around = 1 + (size_t)fmin(fabs(s->fit.late_s) / s->slot_s, NRG_LLM_GROUP);
    size_t from = first > around ? first - around : 0, to = first + n + around;
    double sum_j = 0, noise = 0, seconds = 0;
    for (size_t i = from; i < to && i < d->slots.n; i++) {
        sum_j += d->pots[i].active_j;
        noise += pow(d->pots[i].scatter_j, 2);
        seconds += d->slots.items[i].amount[NRG_SERVING_IDLE];
    }
    return sum_j + CONFIDENT * sqrt(noise + pow(s->idle_doubt_w * seconds, 2));
}

/* With the law's own interval, and what one slot's noise and the idle power may add. */
static void give_by_law(struct divider *d, size_t r)
{
    struct nrg_llm_share *s = d->share;
    struct nrg_llm_energy *e = &s->energies[r];
    double amount[NRG_SERVING_TERMS], all[NRG_SERVING_TERMS] = {0};
    double noise = 0, shared_s = 0, most_j = 0, alone_j = 0;
    size_t first, n = nrg_llm_slots_parts(&d->slots, r, d->parts, &first);
    for (size_t i = 0; i < n; i++) {
        const struct pot *pot = &d->pots[first + i];
        double price = price_of(d, first + i, &d->parts[i], amount);
        double share = pot->law_j > 0 ? price / pot->law_j : 0;
        double seconds = d->slots.items[first + i].amount[NRG_SERVING_IDLE];
        e->energy_j += share * pot->given_j;
        noise += pow(share * pot->scatter_j, 2);
        shared_s += share * seconds;
        most_j += d->parts[i].sequence_s > 0 ? pot->active_j : 0;
        alone_j += share > 1 - 1e-9 ? pot->given_j : 0;
        for (size_t t = 0; t < NRG_SERVING_TERMS; t++)
            all[t] += amount[t];
    }
    if (!d->law) {
        e->low_j = isnan(s->idle_w) ? 0 : alone_j;
        e->high_j = most_j;
        return;
    }
    struct nrg_serving_value law = nrg_serving_cost(&s->fit, all);
    double half = isfinite(law.high) ? fmax(law.high - law.value, law.value - law.low) : most_j;
    double price = s->fit.price[NRG_SERVING_PROMPT].per.value;
    double unsaid_j = isfinite(price) ? price * d->slots.prompts[r].spread : 0;
    noise += pow(s->idle_doubt_w * shared_s, 2) + unsaid_j * unsaid_j;
    half = sqrt(half * half + CONFIDENT * CONFIDENT * noise);
    e->low_j = fmax(0, e->energy_j - half);
    e->high_j = fmin(e->energy_j + half, fmax(e->energy_j, most_of(d, first, n)));
}

static void divide(struct divider *d)
{
    struct nrg_llm_share *s = d->share;
    const struct nrg_summary *sum = &s->summary;
    fill_pots(d);
    for (size_t r = 0; r < s->requests.n; r++) {
        struct nrg_llm_energy *e = &s->energies[r];
        const struct nrg_relayed_request *q = &s->requests.items[r];
        give_by_law(d, r);
        if (sum->total_j > 0 && isfinite(sum->total_low_j) && isfinite(sum->total_high_j)) {
            e->low_j *= fmin(1, sum->total_low_j / sum->total_j);
            e->high_j *= fmax(1, sum->total_high_j / sum->total_j);
        }
        s->requests_j += e->energy_j;
        s->estimated += q->output_estimated;
        s->unknown += q->input == NRG_MISSING && isnan(q->output_tokens);
    }
    s->total_j = sum->total_j;
    s->unattributed_j = s->total_j - s->requests_j - s->idle_j;
    if (isnan(s->idle_w))
        s->idle_j = NAN;
}

static int divide_run(struct nrg_llm_share *s, struct nrg_recording *recording,
                      const struct nrg_run *baseline)
{
    struct nrg_frame frame;
    struct divider d = {.share = s};
    int rc = nrg_frame_init(&frame, recording);
    if (!rc)
        rc = nrg_llm_slots_make(&d.slots, &frame, &s->summary, &s->requests);
    if (!rc && baseline)
        rc = nrg_llm_slots_make_idle(&d.before, &frame, &s->summary, baseline, d.slots.slot_ns);
    if (!rc) {
        s->slot_s = (double)d.slots.slot_ns * 1e-9;
        s->energies = nrg_calloc(s->requests.n, sizeof *s->energies);
        d.pots = nrg_calloc(d.slots.n, sizeof *d.pots);
        d.parts = nrg_calloc(d.slots.n, sizeof *d.parts);
        rc = s->energies && d.pots && d.parts ? fit_law(&d, &frame) : -ENOMEM;
    }
    if (!rc) {
        find_idle(s, &frame);
        divide(&d);
    }
    nrg_llm_slots_release(&d.slots);
    nrg_llm_slots_release(&d.before);
    free(d.pots);
    free(d.parts);
    nrg_frame_release(&frame);
    return rc;
}

int nrg_llm_share_make(struct nrg_llm_share *s, struct nrg_recording *recording,
                       struct nrg_error *err)
{
    size_t n, i = 0;
    const char *path = nrg_recording_path(recording);
    const struct nrg_run *runs = nrg_recording_runs(recording, &n);
    *s = (struct nrg_llm_share){0};
    int rc = nrg_llm_requests_load(&s->requests, recording, err);
    if (rc)
        return rc;
    while (i < n && !strcmp(runs[i].kind, "baseline"))
        i++;
    if (i == n)
        return nrg_fail(err, -ENODATA, path, "it holds no run");
    if (!s->requests.n)
        return nrg_fail(err, -ENODATA, path, "it holds no requests: nrg llm proxy records them");
    rc = nrg_summary_make(&s->summary, recording, &runs[i], NRG_SPLIT_ACTIVE, err);
    if (rc)
        return rc;
    s->has_summary = true;
    if (isnan(s->summary.total_j))
        return nrg_fail(err, -ENODATA, path, "it holds no energy");
    rc = divide_run(s, recording, i ? &runs[i - 1] : NULL);
    return rc ? nrg_fail(err, rc, path, "cannot share out its energy: %s", strerror(-rc)) : 0;
}

void nrg_llm_share_release(struct nrg_llm_share *s)
{
    if (s->has_summary)
        nrg_summary_release(&s->summary);
    nrg_llm_requests_release(&s->requests);
    free(s->energies);
    s->energies = NULL;
}
