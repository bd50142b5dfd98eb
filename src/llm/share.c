/* See share.h. */
#include "llm/share.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "llm/delay.h"
#include "llm/internal.h"
#include "llm/pots.h"
#include "llm/slots.h"

#define CONFIDENT 1.96

struct divider {
    struct nrg_llm_share *share;
    struct nrg_llm_slots slots, before; /* of the requests; of the baseline, maybe none */
    struct nrg_llm_pot *pots;
    struct nrg_llm_part *parts;
    bool law;
    double spread_w;  /* of requests that are not understood */
    double follows;   /* correlation of what the law leaves of a slot with the one before */
    double scatter_w; /* of a slot */
};

/* Joules of noise, added slot by slot; neighbours have some in common. */
struct noise {
    double square, before;
};

struct idle {
    double w, doubt_w; /* w NAN: not known */
    const char *method;
};

/* Of processors whose energy is estimated the estimate itself says what they take idle, and a
 * baseline could not know it better. */
static struct idle by_baseline(const struct nrg_llm_share *s, struct nrg_frame *frame)
{
    const struct nrg_summary *sum = &s->summary;
    bool estimate = sum->idle_method && !strcmp(sum->idle_method, "estimate");
    struct idle idle = {estimate ? sum->idle_found.power_w : 0, 0,
                        estimate ? "estimate" : "baseline"};
    for (size_t d = 0; d < sum->n_domains; d++) {
        const struct nrg_domain *domain = &sum->domains[d];
        size_t channel = (size_t)(domain->channel - frame->channels);
        if (!domain->in_total || (estimate && nrg_is_cpu_domain(domain)))
            continue;
        idle.w += nrg_frame_baseline_rate(frame, channel);
        idle.doubt_w += nrg_frame_baseline_doubt(frame, channel);
    }
    idle.w = isfinite(idle.w) && idle.w >= 0 ? idle.w : NAN;
    idle.doubt_w = isfinite(idle.doubt_w) ? idle.doubt_w : 0;
    return idle;
}

static struct idle by_regression(const struct nrg_serving_fit *fit)
{
    const struct nrg_serving_price *p = &fit->price[NRG_SERVING_IDLE];
    bool known = !fit->why && isfinite(p->per.value) && p->resolved;
    return (struct idle){known ? p->per.value : NAN, (p->per.high - p->per.low) / (2 * CONFIDENT),
                         "regression"};
}

/* Of the two the one that is known better: the regression has the baseline's slots as well, and all
 * pauses, but nothing else than the law tells them from slots in which requests run. Where both
 * contradict each other, that law is wrong. */
static void find_idle(struct nrg_llm_share *s, struct nrg_frame *frame)
{
    struct idle a = by_baseline(s, frame), b = by_regression(&s->fit);
    bool better = b.doubt_w < a.doubt_w && fabs(b.w - a.w) <= hypot(a.doubt_w, b.doubt_w);
    struct idle best = !isnan(b.w) && (isnan(a.w) || better) ? b : a;
    s->idle_w = best.w;
    s->idle_doubt_w = isnan(best.w) ? 0 : best.doubt_w;
    s->idle_method = isnan(best.w) ? NULL : best.method;
}

/*
 * The slots that are fitted: those of the baseline before those of the requests. Where the server
 * is never idle, nothing else tells what the idle machine takes from what it takes per second and
 * token.
 */
struct fitted {
    struct divider *d;
    struct nrg_frame *frame;
    const struct nrg_domain *domain; /* whose delay is sought */
    size_t n;
    struct nrg_serving_slot *all, *known; /* known: those without gaps, which say nothing */
};

static int fit_known(void *arg, const double *energy_j, struct nrg_serving_fit *fit)
{
    struct fitted *f = arg;
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        if (!isnan(energy_j[i])) {
            f->known[n] = f->all[i];
            f->known[n++].energy_j = energy_j[i];
        }
    return nrg_serving_prices(f->known, n, NRG_LLM_GROUP, fit);
}

static size_t add_energies(const struct nrg_llm_slots *s, double *energy_j)
{
    for (size_t i = 0; i < s->n; i++)
        energy_j[i] = s->domain_known[i] ? s->domain_j[i] : NAN;
    return s->n;
}

static void set_energies(void *arg, double late_s, double *energy_j)
{
    struct fitted *f = arg;
    size_t n = 0;
    nrg_llm_slots_domain(&f->d->slots, f->frame, f->domain, late_s);
    if (f->n > f->d->slots.n) {
        nrg_llm_slots_domain(&f->d->before, f->frame, f->domain, late_s);
        n = add_energies(&f->d->before, energy_j);
    }
    add_energies(&f->d->slots, energy_j + n);
}

static size_t add_slots(const struct nrg_llm_slots *s, struct nrg_serving_slot *all,
                        double *energy_j)
{
    for (size_t i = 0; i < s->n; i++) {
        all[i] = s->items[i];
        energy_j[i] = s->known[i] ? s->items[i].energy_j : NAN;
    }
    return s->n;
}

/* A law needs rows enough of the requests alone. */
static bool has_rows(const struct nrg_llm_slots *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        n += s->known[i];
    return n / NRG_LLM_GROUP >= NRG_SERVING_LEAST_ROWS;
}

static int find_delays(struct fitted *f, double *energy_j, double *late_s)
{
    const struct nrg_summary *sum = &f->d->share->summary;
    struct nrg_delay_search search = {f->all, f->n, f, set_energies, fit_known};
    int rc = 0;
    for (size_t i = 0; !rc && i < sum->n_domains; i++) {
        f->domain = &sum->domains[i];
        if (f->domain->in_total)
            rc = nrg_delay_find(&search, energy_j, &late_s[i]);
    }
    return rc;
}

/* Each sensor's energy is taken as much later as it is late, for the law and for what is shared. */
static int fit_all(struct fitted *f, double *energy_j, double *late_s)
{
    struct divider *d = f->d;
    bool has_law = has_rows(&d->slots);
    size_t n = has_law ? add_slots(&d->before, f->all, energy_j) : 0;
    f->n = n + add_slots(&d->slots, f->all + n, energy_j + n);
    int rc = has_law ? find_delays(f, energy_j, late_s) : 0;
    nrg_llm_slots_energy(&d->slots, f->frame, &d->share->summary, late_s);
    nrg_llm_slots_energy(&d->before, f->frame, &d->share->summary, late_s);
    n = has_law ? add_slots(&d->before, f->all, energy_j) : 0;
    add_slots(&d->slots, f->all + n, energy_j + n);
    return rc ? rc : fit_known(f, energy_j, &d->share->fit);
}

static int fit_law(struct divider *d, struct nrg_frame *frame)
{
    size_t n = d->before.n + d->slots.n;
    struct fitted f = {.d = d, .frame = frame};
    double *energy_j = nrg_calloc(n + 1, sizeof *energy_j);
    double *late_s = nrg_calloc(d->share->summary.n_domains + 1, sizeof *late_s);
    f.all = nrg_calloc(n + 1, sizeof *f.all);
    f.known = nrg_calloc(n + 1, sizeof *f.known);
    int rc = energy_j && late_s && f.all && f.known ? fit_all(&f, energy_j, late_s) : -ENOMEM;
    free(energy_j);
    free(late_s);
    free(f.all);
    free(f.known);
    d->law = !rc && !d->share->fit.why;
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
    amount[NRG_SERVING_OTHER] = part->other_s;
    if (sequences_s > 0)
        amount[NRG_SERVING_BUSY] = all->amount[NRG_SERVING_BUSY] * part->sequence_s / sequences_s;
    if (!d->law)
        return part->sequence_s + part->other_s;
    for (size_t t = NRG_SERVING_OUTPUT; t < NRG_SERVING_TERMS; t++)
        if (isfinite(d->share->fit.price[t].per.value))
            sum += d->share->fit.price[t].per.value * amount[t];
    return sum;
}

/* The regression's rows are NRG_LLM_GROUP slots: what scatters a row scatters a slot by more, the
 * less neighbours have in common. */
static void set_scatter(struct divider *d)
{
    double common = 0;
    d->follows = pow(fmax(d->share->fit.follows, 0), 1.0 / NRG_LLM_GROUP);
    for (int a = 0; a < NRG_LLM_GROUP; a++)
        for (int b = 0; b < NRG_LLM_GROUP; b++)
            common += pow(d->follows, abs(a - b)) / (NRG_LLM_GROUP * NRG_LLM_GROUP);
    d->scatter_w = d->share->fit.scatter_w / sqrt(common);
}

static void add_noise(const struct divider *d, struct noise *n, double joules)
{
    n->square += joules * joules + 2 * joules * d->follows * n->before;
    n->before = d->follows * n->before + joules;
}

/* Of requests that are not understood as many as there would be if all took as long. */
static double fill_law(struct divider *d)
{
    double amount[NRG_SERVING_TERMS], sum_s = 0, sum_s2 = 0;
    for (size_t r = 0; r < d->share->requests.n; r++) {
        size_t first, n = nrg_llm_slots_parts(&d->slots, r, d->parts, &first);
        double other_s = 0;
        for (size_t i = 0; i < n; i++) {
            struct nrg_llm_pot *pot = &d->pots[first + i];
            double price = price_of(d, first + i, &d->parts[i], amount), s = d->parts[i].other_s;
            pot->law_j += price;
            pot->other_law_j += s > 0 ? price : 0;
            pot->other_s += s;
            pot->other_s2 += s * s;
            other_s += s;
        }
        sum_s += other_s;
        sum_s2 += other_s * other_s;
    }
    return sum_s2 > 0 ? sum_s * sum_s / sum_s2 : 0;
}

/* Idle energy, and what is above. */
static void fill_active(struct divider *d)
{
    struct nrg_llm_share *s = d->share;
    double idle_w = isnan(s->idle_w) ? 0 : s->idle_w;
    for (size_t i = 0; i < d->slots.n; i++) {
        const struct nrg_serving_slot *slot = &d->slots.items[i];
        struct nrg_llm_pot *pot = &d->pots[i];
        pot->length_s = slot->amount[NRG_SERVING_IDLE];
        double idle_j = fmin(idle_w * pot->length_s, slot->energy_j);
        pot->active_j = slot->energy_j - idle_j;
        s->idle_j += isnan(s->idle_w) ? 0 : idle_j;
    }
}

/* Their price is part of others': nothing tells what they used from what these did. */
static bool others_are_joined(const struct divider *d)
{
    return d->law && d->share->fit.price[NRG_SERVING_OTHER].joined;
}

static void fill_pots(struct divider *d)
{
    double others = fill_law(d);
    fill_active(d);
    if (!d->law) {
        for (size_t i = 0; i < d->slots.n; i++) {
            struct nrg_llm_pot *pot = &d->pots[i];
            double busy = fmin(1, d->slots.running_s[i] / pot->length_s);
            pot->given_j = pot->law_j > 0 ? pot->active_j * busy : 0;
        }
        return;
    }
    nrg_llm_pots_exchange(d->pots, d->slots.n);
    struct nrg_llm_spread spread = nrg_llm_pots_spread(
        d->pots, d->slots.n, others, d->share->fit.price[NRG_SERVING_OTHER].per.value);
    d->spread_w = spread.w;
    d->scatter_w *= spread.scatter_by;
    for (size_t i = 0; i < d->slots.n; i++)
        d->pots[i].scatter_j = d->scatter_w * d->pots[i].length_s;
    nrg_llm_pots_give(d->pots, d->slots.n, d->spread_w);
}

/* What was used above idle while a request ran: it can't have used more. Its slots, and one more on
 * either side; with their noise, and that of idle power. */
static double most_of(const struct divider *d, size_t first, size_t n)
{
    const struct nrg_llm_share *s = d->share;
    size_t from = first > 1 ? first - 1 : 0, to = first + n + 1;
    struct noise noise = {0, 0};
    double sum_j = 0, seconds = 0;
    for (size_t i = from; i < to && i < d->slots.n; i++) {
        sum_j += d->pots[i].active_j;
        add_noise(d, &noise, d->pots[i].scatter_j);
        seconds += d->slots.items[i].amount[NRG_SERVING_IDLE];
    }
    return sum_j + CONFIDENT * sqrt(noise.square + pow(s->idle_doubt_w * seconds, 2));
}

/* The law's doubt about a request's share: a price that is too high is too high for all that run,
 * and nothing goes wrong where one runs alone. `beyond` is what a request did beyond its share of
 * what all did. */
static double law_doubt(const struct divider *d, const double beyond[NRG_SERVING_TERMS])
{
    const struct nrg_serving_fit *fit = &d->share->fit;
    double chosen = 0;
    for (size_t t = NRG_SERVING_OUTPUT; t < NRG_SERVING_TERMS; t++)
        if (isfinite(fit->price[t].per.value))
            chosen += (fit->price[t].per.value - fit->unbound[t]) * beyond[t];
    return hypot(chosen, fit->half * sqrt(nrg_serving_variance(fit, beyond)));
}

/* A request's energy, and what makes it uncertain, slot by slot. */
struct claim {
    double beyond[NRG_SERVING_TERMS]; /* what it did beyond its share of what all did */
    double shared_s;                  /* of idle power */
    double own_s, others_s; /* of power that differs from the law's: its own, and that of others */
    double unsure_j;        /* that may be of requests that are not understood */
    struct noise noise;
};

/*
 * In a slot the request gets its share of what all get and, where it is not understood, its part of
 * what is left to such. Power of its own that the law does not have is known as far as that part
 * shows it; power of others of that sort hides in it.
 */
static void claim_slot(struct divider *d, size_t slot, const struct nrg_llm_part *part,
                       struct nrg_llm_energy *e, struct claim *c)
{
    const struct nrg_llm_pot *pot = &d->pots[slot];
    const double *all = d->slots.items[slot].amount;
    double amount[NRG_SERVING_TERMS], price = price_of(d, slot, part, amount);
    double share = pot->law_j > 0 ? price / pot->law_j : 0;
    double of_others = part->other_s > 0 ? part->other_s / pot->other_s : 0;
    double takes = of_others * pot->gain + share * (1 - pot->gain); /* of what the law leaves */
    e->energy_j += share * pot->given_j + of_others * pot->other_j;
    add_noise(d, &c->noise, takes * pot->scatter_j);
    c->shared_s += takes * pot->length_s;
    c->own_s += part->other_s * (1 - takes);
    c->others_s += takes * sqrt(fmax(pot->other_s2 - part->other_s * part->other_s, 0));
    c->unsure_j += pot->other_s > 0 && part->other_s <= 0 ? share * fmax(pot->given_j, 0) : 0;
    for (size_t t = NRG_SERVING_OUTPUT; (share > 0 || of_others > 0) && t < NRG_SERVING_TERMS; t++)
        c->beyond[t] += amount[t] - takes * all[t];
}

/* With the law's doubt, and what the slots' noise and the idle power may add. */
static void give_by_law(struct divider *d, size_t r)
{
    struct nrg_llm_share *s = d->share;
    struct nrg_llm_energy *e = &s->energies[r];
    struct claim c = {0};
    size_t first = 0, n = nrg_llm_slots_parts(&d->slots, r, d->parts, &first);
    for (size_t i = 0; i < n; i++)
        claim_slot(d, first + i, &d->parts[i], e, &c);
    double price = s->fit.price[NRG_SERVING_PROMPT].per.value;
    double unsaid_j = isfinite(price) ? price * d->slots.prompts[r].spread : 0;
    double square = c.noise.square + pow(s->idle_doubt_w * c.shared_s, 2) + unsaid_j * unsaid_j +
                    pow(d->spread_w * c.own_s, 2) + pow(d->spread_w * c.others_s, 2);
    double half = hypot(law_doubt(d, c.beyond), CONFIDENT * sqrt(square));
    e->low_j = fmax(0, e->energy_j - half - (others_are_joined(d) ? c.unsure_j : 0));
    e->high_j = fmin(e->energy_j + half, fmax(e->energy_j, most_of(d, first, n)));
}

/* From what it used while it was alone to all that was used while it ran. */
static void give_equally(struct divider *d, size_t r)
{
    struct nrg_llm_energy *e = &d->share->energies[r];
    size_t first, n = nrg_llm_slots_parts(&d->slots, r, d->parts, &first);
    for (size_t i = 0; i < n; i++) {
        const struct nrg_llm_pot *pot = &d->pots[first + i];
        double runs_s = d->parts[i].sequence_s + d->parts[i].other_s;
        double share = pot->law_j > 0 ? runs_s / pot->law_j : 0;
        e->energy_j += share * pot->given_j;
        e->high_j += runs_s > 0 ? pot->active_j : 0;
        e->low_j += share > 1 - 1e-9 && !isnan(d->share->idle_w) ? pot->given_j : 0;
    }
}

static void divide(struct divider *d)
{
    struct nrg_llm_share *s = d->share;
    const struct nrg_summary *sum = &s->summary;
    if (d->law)
        set_scatter(d);
    fill_pots(d);
    for (size_t r = 0; r < s->requests.n; r++) {
        struct nrg_llm_energy *e = &s->energies[r];
        const struct nrg_relayed_request *q = &s->requests.items[r];
        (d->law ? give_by_law : give_equally)(d, r);
        if (sum->total_j > 0 && isfinite(sum->total_low_j) && isfinite(sum->total_high_j)) {
            e->low_j *= fmin(1, sum->total_low_j / sum->total_j);
            e->high_j *= fmax(1, sum->total_high_j / sum->total_j);
        }
        s->requests_j += e->energy_j;
        s->estimated += q->output_estimated;
        s->unknown += !q->understood;
        s->unknown_j += q->understood ? 0 : e->energy_j;
    }
    s->total_j = sum->total_j;
    s->unattributed_j = s->total_j - s->requests_j - s->idle_j;
    if (isnan(s->idle_w)) {
        s->idle_j = NAN;
        return;
    }
    /* Ends that the slots of a late sensor don't reach were idle as far as there is energy left. */
    double missing_j = fmax(s->idle_w * sum->duration_s - s->idle_j, 0);
    double more_j = fmin(missing_j, fmax(s->unattributed_j, 0));
    s->idle_j += more_j;
    s->unattributed_j -= more_j;
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
