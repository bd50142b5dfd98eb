/*
 * See serving.h. A sensor is late against the counts, each domain's by its own time (delay.h), and
 * its energy is taken that much later. The domains' energies are added with their own delays.
 *
 * Rows are as long as ROW_S, ten updates of the slowest sensor and four slots, as far as the run is
 * long enough for ENOUGH_ROWS of them.
 */
#include "llm/serving.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "energy/frame.h"
#include "llm/counts.h"
#include "llm/delay.h"
#include "llm/internal.h"

#define WARM_UP_PART   0.1
#define WARM_UP_MOST_S 10
#define ROW_S          2.0
#define ROW_UPDATES    10
#define LEAST_GROUP    4
#define ENOUGH_ROWS    40
#define COVERED        0.99

struct work {
    struct nrg_serving *serving;
    struct nrg_server_counts counts;
    struct nrg_serving_slot *slots, *trial; /* trial: those whose energy is known */
    double *sum_j; /* per slot, over domains; NAN: of one it is not known */
    size_t n, first;
    int64_t update_ns;
};

/* The reading at which the first token after the first reading shows; counts->n: never. */
static size_t first_token(const struct nrg_server_counts *c)
{
    size_t i = 1;
    while (i < c->n && !(c->readings[i].value[NRG_SERVER_OUTPUT_TOKENS] >
                         c->readings[i - 1].value[NRG_SERVER_OUTPUT_TOKENS]))
        i++;
    return i;
}

static const char *find_steady(struct work *w, const struct nrg_summary *run)
{
    struct nrg_serving *s = w->serving;
    const struct nrg_server_counts *c = &w->counts;
    if (!c->n)
        return c->family[0] ? "the server did not answer while the run was measured"
                            : "no page of metrics that is understood came from there";
    size_t token = first_token(c);
    if (token >= c->n)
        return "the server counted no token";
    int64_t begin_ns = c->readings[token - 1].t_ns, end_ns = c->readings[c->n - 1].t_ns;
    double counted_s = (double)(end_ns - begin_ns) / 1e9;
    s->warm_up_s = fmin(WARM_UP_PART * counted_s, WARM_UP_MOST_S);
    w->first = token - 1;
    while (w->first + 1 < c->n &&
           (double)(c->readings[w->first].t_ns - begin_ns) / 1e9 < s->warm_up_s)
        w->first++;
    if (w->first + 1 >= c->n)
        return "the server answered too seldom to tell a steady state";
    s->begin_s = (double)(c->readings[w->first].t_ns - run->begin_ns) / 1e9;
    s->end_s = (double)(end_ns - run->begin_ns) / 1e9;
    return NULL;
}

static double sum_growth(const struct work *w, enum nrg_server_count count)
{
    double sum = NAN;
    for (size_t i = w->first + 1; i < w->counts.n; i++) {
        double more = nrg_server_growth(&w->counts, i - 1, i, count);
        sum = nrg_sum_known(sum, more);
    }
    return sum;
}

static void set_amounts(struct work *w)
{
    struct nrg_serving *s = w->serving;
    double sequence_s = 0, busy_s = 0;
    s->prompt_tokens = sum_growth(w, NRG_SERVER_PROMPT_TOKENS);
    s->cached_tokens = sum_growth(w, NRG_SERVER_CACHED_TOKENS);
    s->output_tokens = sum_growth(w, NRG_SERVER_OUTPUT_TOKENS);
    s->requests = sum_growth(w, NRG_SERVER_FINISHED);
    for (size_t i = 0; i < w->n; i++) {
        sequence_s += w->slots[i].amount[NRG_SERVING_SEQUENCE];
        busy_s += w->slots[i].amount[NRG_SERVING_BUSY];
    }
    s->running = busy_s > 0 ? sequence_s / busy_s : NAN;
}

static int make_slots(struct work *w)
{
    struct nrg_serving *s = w->serving;
    w->slots = nrg_calloc(w->counts.n + 1, sizeof *w->slots);
    w->trial = nrg_calloc(w->counts.n + 1, sizeof *w->trial);
    w->sum_j = nrg_calloc(w->counts.n + 1, sizeof *w->sum_j);
    if (!w->slots || !w->trial || !w->sum_j)
        return -ENOMEM;
    s->lump_s = nrg_server_lump_s(&w->counts, w->first);
    w->n = nrg_server_slots(&w->counts, w->first, s->lump_s, w->slots);
    set_amounts(w);
    return 0;
}

double nrg_serving_row_s(int64_t update_ns)
{
    return fmax(ROW_S, ROW_UPDATES * (double)update_ns / 1e9);
}

static void choose_group(struct work *w)
{
    struct nrg_serving *s = w->serving;
    double sum_s = 0;
    for (size_t i = 0; i < w->n; i++)
        sum_s += w->slots[i].amount[NRG_SERVING_IDLE];
    s->slot_s = w->n ? sum_s / (double)w->n : 0;
    double row_s = nrg_serving_row_s(w->update_ns);
    double most = (double)w->n / ENOUGH_ROWS;
    double group = s->slot_s > 0 ? fmin(ceil(row_s / s->slot_s), floor(most)) : 0;
    s->group = group > LEAST_GROUP ? (size_t)group : LEAST_GROUP;
    s->row_s = (double)s->group * s->slot_s;
}

/* Energy of a slot, taken late_s later; NAN when it is not known. */
static double slot_energy(const struct nrg_timeline *tl, const struct nrg_serving_slot *slot,
                          double late_s)
{
    int64_t covered_ns, by_ns = (int64_t)(late_s * 1e9);
    double energy_j =
        nrg_timeline_between(tl, slot->begin_ns + by_ns, slot->end_ns + by_ns, &covered_ns);
    bool known = (double)covered_ns >= COVERED * (double)(slot->end_ns - slot->begin_ns);
    return known ? energy_j : NAN;
}

static int fit_known(struct work *w, const double *energy_j, struct nrg_serving_fit *fit)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n; i++) {
        if (isnan(energy_j[i]))
            continue;
        w->trial[n] = w->slots[i];
        w->trial[n++].energy_j = energy_j[i];
    }
    return nrg_serving_prices(w->trial, n, w->serving->group, fit);
}

struct delayed {
    struct work *w;
    const struct nrg_timeline *tl;
};

static void set_energies(void *arg, double late_s, double *energy_j)
{
    const struct delayed *d = arg;
    for (size_t i = 0; i < d->w->n; i++)
        energy_j[i] = slot_energy(d->tl, &d->w->slots[i], late_s);
}

static int fit_delayed(void *arg, const double *energy_j, struct nrg_serving_fit *fit)
{
    return fit_known(((struct delayed *)arg)->w, energy_j, fit);
}

static int fit_domain(struct work *w, const struct nrg_timeline *tl, double *energy_j,
                      struct nrg_serving_domain *d)
{
    struct delayed delayed = {w, tl};
    struct nrg_delay_search search = {w->slots, w->n, &delayed, set_energies, fit_delayed};
    int rc = nrg_delay_find(&search, energy_j, &d->late_s);
    set_energies(&delayed, d->late_s, energy_j);
    return rc ? rc : fit_known(w, energy_j, &d->fit);
}

/*
 * All joules of the steady state. Slots are cut where tokens are known, and may leave out its end:
 * of a server that counts when requests end as much as ten requests' time.
 */
static double steady_energy(const struct work *w, const struct nrg_timeline *tl, double late_s)
{
    const struct nrg_server_counts *c = &w->counts;
    int64_t begin_ns = c->readings[w->first].t_ns, end_ns = c->readings[c->n - 1].t_ns;
    int64_t covered_ns, by_ns = (int64_t)(late_s * 1e9);
    double energy_j = nrg_timeline_between(tl, begin_ns + by_ns, end_ns + by_ns, &covered_ns);
    if ((double)covered_ns < COVERED * (double)(end_ns - begin_ns))
        energy_j = nrg_timeline_between(tl, begin_ns, end_ns, NULL); /* the recording ended */
    return energy_j;
}

/* The interval of a domain's energy, as a report of the steady state alone has it. */
static void set_band(struct nrg_serving_domain *d, const struct nrg_summary *steady,
                     const struct nrg_recorded_channel *channel)
{
    d->low_j = d->energy_j * d->least;
    d->high_j = d->energy_j * d->most;
    for (size_t i = 0; i < steady->n_domains; i++)
        if (steady->domains[i].channel == channel) {
            const struct nrg_domain *there = &steady->domains[i];
            d->low_j = fmax(0, d->energy_j - (there->energy_j - there->low_j));
            d->high_j = d->energy_j + there->high_j - there->energy_j;
        }
}

static int add_domain(struct work *w, struct nrg_frame *frame, const struct nrg_domain *domain,
                      const struct nrg_summary *steady, double *energy_j)
{
    struct nrg_serving *s = w->serving;
    const struct nrg_channel *c = &domain->channel->channel;
    const struct nrg_timeline *tl =
        nrg_frame_timeline(frame, (size_t)(domain->channel - frame->channels));
    struct nrg_serving_domain *d = &s->domains[s->n_domains++];
    nrg_copy(d->name, sizeof d->name, c->name);
    d->least = 1 - c->error_low;
    d->most = 1 + c->error_high;
    for (size_t i = 0; !tl && i < w->n; i++)
        energy_j[i] = NAN;
    int rc = tl ? fit_domain(w, tl, energy_j, d) : fit_known(w, energy_j, &d->fit);
    for (size_t i = 0; i < w->n; i++)
        w->sum_j[i] += energy_j[i];
    d->energy_j = tl ? steady_energy(w, tl, d->late_s) : 0;
    set_band(d, steady, domain->channel);
    return rc;
}

/* The whole has the parts' bands as far as they weigh. */
static void set_total_band(struct nrg_serving *s, const struct nrg_summary *run)
{
    double low_j = 0, high_j = 0;
    for (size_t i = 0; i < s->n_domains; i++) {
        s->total.energy_j += s->domains[i].energy_j;
        s->total.low_j += s->domains[i].low_j;
        s->total.high_j += s->domains[i].high_j;
        low_j += s->domains[i].energy_j * s->domains[i].least;
        high_j += s->domains[i].energy_j * s->domains[i].most;
    }
    s->total.least = s->total.energy_j > 0 ? low_j / s->total.energy_j : 1;
    s->total.most = s->total.energy_j > 0 ? high_j / s->total.energy_j : 1;
    s->estimated = run->total_provenance == NRG_ESTIMATED;
    if (s->estimated && run->total_j > 0) { /* its band is not in the channel */
        s->total.least = run->total_low_j / run->total_j;
        s->total.most = run->total_high_j / run->total_j;
    }
}

static int summarise(struct work *w, struct nrg_frame *frame, const struct nrg_summary *run,
                     struct nrg_summary *steady)
{
    const struct nrg_server_counts *c = &w->counts;
    struct nrg_error err;
    const struct nrg_run part = {.begin_ns = c->readings[w->first].t_ns,
                                 .end_ns = c->readings[c->n - 1].t_ns,
                                 .exit_code = run->exit_code};
    return nrg_summary_of(steady, frame, &part, run->split, &err);
}

static int fit_domains(struct work *w, struct nrg_recording *recording,
                       const struct nrg_summary *run)
{
    struct nrg_serving *s = w->serving;
    struct nrg_frame frame;
    struct nrg_summary steady = {0};
    double *energy_j = nrg_calloc(w->n + 1, sizeof *energy_j);
    int rc = energy_j ? nrg_frame_init(&frame, recording) : -ENOMEM;
    if (rc) {
        free(energy_j);
        return rc;
    }
    s->domains = nrg_calloc(run->n_domains + 1, sizeof *s->domains);
    rc = s->domains ? summarise(w, &frame, run, &steady) : -ENOMEM;
    for (size_t i = 0; i < run->n_domains; i++) {
        int64_t update_ns = run->domains[i].channel->channel.update_ns;
        if (run->domains[i].in_total && update_ns > w->update_ns)
            w->update_ns = update_ns;
    }
    choose_group(w);
    for (size_t i = 0; !rc && i < run->n_domains; i++)
        if (run->domains[i].in_total)
            rc = add_domain(w, &frame, &run->domains[i], &steady, energy_j);
    if (!rc && !s->n_domains)
        s->why = "no energy was measured";
    if (!rc && s->n_domains)
        rc = fit_known(w, w->sum_j, &s->total.fit);
    if (!rc) {
        set_total_band(s, run);
        nrg_serving_set_ratios(s);
    }
    nrg_summary_release(&steady);
    free(energy_j);
    nrg_frame_release(&frame);
    return rc;
}

int nrg_serving_make(struct nrg_serving *serving, struct nrg_recording *recording,
                     const struct nrg_summary *run, struct nrg_error *err)
{
    struct work w = {.serving = serving};
    *serving = (struct nrg_serving){.total.name = "total"};
    int rc = nrg_server_counts_read(&w.counts, recording, run->begin_ns, run->end_ns);
    serving->asked = w.counts.asked;
    serving->url = w.counts.url;
    nrg_copy(serving->server, sizeof serving->server, w.counts.family);
    if (!rc && serving->asked && !(serving->why = find_steady(&w, run))) {
        rc = make_slots(&w);
        if (!rc)
            rc = fit_domains(&w, recording, run);
    }
    free(w.slots);
    free(w.trial);
    free(w.sum_j);
    nrg_server_counts_release(&w.counts);
    if (rc) {
        nrg_serving_release(serving);
        return nrg_fail(err, rc, nrg_recording_path(recording), "%s", strerror(-rc));
    }
    return 0;
}

void nrg_serving_release(struct nrg_serving *serving)
{
    free(serving->domains);
    *serving = (struct nrg_serving){0};
}
