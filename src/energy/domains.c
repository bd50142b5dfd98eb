/*
 * Energy per domain and their total. What is a domain, and which domains a total adds, is decided
 * in sensors/total.h.
 *
 * Uncertainty of a measured energy: the counter's step, plus the energy of one update period
 * (when in it the run began and ended is not known) at the mean power, or that at the run's ends
 * where it is higher; for a gauge what the trapezoid may have missed between readings, what its
 * age and its window mean at the ends of the run, by how much the power varied what was before a
 * late reading, its rounding, and half of the correction for its own averaging; for one that looks
 * part of the time what it may have missed (updates/part_time.c). Time without readings has no
 * energy, but it is in the interval (unread.c). The sensor's own calibration is not in it:
 * docs/uncertainty.md.
 */
#include "energy/internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "energy/edges.h"
#include "energy/updates/running_mean.h"
#include "sensors/still.h"

#define PEAK_WINDOW_NS (100 * NRG_NS_PER_MS)
#define NOTED_MISSED   0.05 /* part of the spans' time */
#define RESERVE_DRIVER "estimate"

/* The run whose domains are sought: what nrg_total_is_domain asks about. */
struct candidates {
    struct nrg_frame *frame;
    const struct nrg_summary *summary;
};

static const struct nrg_channel *candidate_channel(void *arg, size_t i)
{
    return &((struct candidates *)arg)->frame->channels[i].channel;
}

static bool candidate_was_read(void *arg, size_t i)
{
    return nrg_frame_timeline(((struct candidates *)arg)->frame, i) != NULL;
}

static double candidate_step_j(void *arg, size_t i)
{
    const struct candidates *c = arg;
    const struct nrg_timeline *tl = nrg_frame_timeline(c->frame, i);
    size_t still = 0, moved = 0;
    double moved_j = 0;
    for (size_t k = 1; k < tl->n && nrg_point_ns(tl, k - 1) <= c->summary->end_ns; k++) {
        double step_j = nrg_point_j(tl, k) - nrg_point_j(tl, k - 1);
        if (nrg_point_ns(tl, k) < c->summary->begin_ns || nrg_point_gap(tl, k - 1))
            continue;
        *(step_j > 0 ? &moved : &still) += 1;
        moved_j += step_j;
    }
    return nrg_total_seen_step_j(still, moved, moved_j);
}

static double candidate_energy_j(void *arg, size_t i)
{
    const struct candidates *c = arg;
    return nrg_timeline_between(nrg_frame_timeline(c->frame, i), c->summary->begin_ns,
                                c->summary->end_ns, NULL);
}

/* Energy of an estimate's companion channel within the run, NAN without one. */
static double companion_j(struct nrg_frame *frame, const struct nrg_summary *s, const char *name,
                          const char *suffix)
{
    const struct nrg_timeline *tl =
        nrg_frame_timeline(frame, nrg_frame_companion(frame, name, suffix));
    return tl ? nrg_timeline_between(tl, s->begin_ns, s->end_ns, NULL) : NAN;
}

static void set_band(struct nrg_domain *d, struct nrg_frame *frame, const struct nrg_summary *s)
{
    const struct nrg_channel *c = &d->channel->channel;
    d->low_j = companion_j(frame, s, c->name, NRG_LOW_SUFFIX);
    d->high_j = companion_j(frame, s, c->name, NRG_HIGH_SUFFIX);
    if (isnan(d->low_j) || isnan(d->high_j)) {
        d->low_j = d->energy_j * (1 - c->error_low) - d->uncertainty_j;
        d->high_j = d->energy_j * (1 + c->error_high) + d->uncertainty_j;
    }
    double below = d->energy_j - d->low_j, above = d->high_j - d->energy_j;
    d->uncertainty_j = below > above ? below : above;
    if (d->low_j < 0)
        d->low_j = 0;
}

/* The mean power of a stretch of the run at its begin or its end, as far as it is known. */
static double power_at_end(const struct nrg_timeline *tl, int64_t begin_ns, int64_t end_ns)
{
    int64_t covered_ns;
    double energy_j = nrg_timeline_between(tl, begin_ns, end_ns, &covered_ns);
    return covered_ns > 0 ? energy_j * 1e9 / (double)covered_ns : 0;
}

/* What a counter's age at the two ends of the run is worth: in one it may be new, in the other as
 * old as an update; at the begin that is time before the run. */
static double edge_power_w(const struct nrg_domain *d, const struct nrg_timeline *tl,
                           const struct nrg_summary *s)
{
    int64_t stretch_ns = tl->period_ns + tl->update_ns;
    double before_w = power_at_end(tl, s->begin_ns - stretch_ns, s->begin_ns);
    double most_w = fmax(fabs(d->mean_w), before_w); /* a mean that is not known is none */
    if (stretch_ns > (s->end_ns - s->begin_ns) / 2 || isnan(d->mean_w))
        return isnan(d->mean_w) ? 0 : most_w;
    return fmax(most_w, fmax(power_at_end(tl, s->begin_ns, s->begin_ns + stretch_ns),
                             power_at_end(tl, s->end_ns - stretch_ns, s->end_ns)));
}

/*
 * What a gauge's running mean does at the run's ends. True where its driver says that it is one.
 * Where nobody says what a gauge shows, it may be one: then that is in the interval only. How long
 * after an update a reading showed it is known to a reading.
 */
static bool add_mean_ends(struct nrg_domain *d, const struct nrg_timeline *tl,
                          const struct nrg_summary *s)
{
    struct nrg_mean_ends ends = nrg_running_mean_ends(tl, s->begin_ns, s->end_ns);
    bool said = nrg_channel_is_running_mean(&d->channel->channel);
    if (!tl->mean_ns || isnan(ends.more_j))
        return false;
    d->uncertainty_j += ends.doubt_j + (said ? 0 : fabs(ends.more_j)) +
                        fabs(d->mean_w) * (double)d->channel->period_ns / 1e9;
    if (!said)
        return false;
    d->method = "trapezoid, lag-corrected";
    d->energy_j += ends.more_j;
    d->mean_w = d->energy_j / (d->covered * s->duration_s);
    return true;
}

void nrg_domain_energy(struct nrg_domain *d, struct nrg_frame *frame, const struct nrg_timeline *tl,
                       const struct nrg_summary *s)
{
    const struct nrg_channel *c = &d->channel->channel;
    int64_t covered_ns;
    d->energy_j = nrg_timeline_between(tl, s->begin_ns, s->end_ns, &covered_ns);
    d->covered = (double)covered_ns / (double)(s->end_ns - s->begin_ns);
    d->mean_w = covered_ns > 0 ? d->energy_j * 1e9 / (double)covered_ns : NAN;
    double update_s = (double)tl->update_ns / 1e9;
    if (c->kind == NRG_COUNTER) {
        d->method = c->provenance == NRG_ESTIMATED ? "model of utilisation" : "counter difference";
        /* An estimate has a band of its own, and no update period that would matter. */
        if (c->provenance != NRG_ESTIMATED)
            d->uncertainty_j = c->resolution + edge_power_w(d, tl, s) * update_s;
        return;
    }
    d->method = "trapezoid";
    d->uncertainty_j = sqrt(tl->noise_j2) + nrg_sampling_doubt_j(frame, c, tl, s) +
                       c->resolution / sqrt(12) * s->duration_s;
    if (add_mean_ends(d, tl, s))
        return;
    d->uncertainty_j += nrg_timeline_gauge_ends_j(tl, s->begin_ns, s->end_ns, c->window_ns);
    double correction = nrg_total_lag_j(c, nrg_timeline_gauge_line(tl, s->begin_ns),
                                        nrg_timeline_gauge_line(tl, s->end_ns));
    if (!isnan(correction)) {
        d->method = "trapezoid, lag-corrected";
        d->energy_j += correction;
        d->uncertainty_j += fabs(correction) / 2;
        d->mean_w = d->energy_j * 1e9 / (double)covered_ns;
    }
}

static void set_peak(struct nrg_domain *d, const struct nrg_timeline *tl,
                     const struct nrg_summary *s)
{
    int64_t window = PEAK_WINDOW_NS;
    if (window < tl->period_ns)
        window = tl->period_ns;
    if (window < 10 * d->channel->channel.update_ns)
        window = 10 * d->channel->channel.update_ns;
    d->peak_w = nrg_timeline_peak(tl, s->begin_ns, s->end_ns, window);
    if (d->peak_w < 0 || d->peak_w < d->mean_w)
        d->peak_w = d->mean_w;
}

void nrg_domain_widen(struct nrg_domain *d, double below_j, double above_j)
{
    d->low_j = fmax(0, d->low_j - below_j);
    d->high_j += above_j;
    d->uncertainty_j = fmax(d->energy_j - d->low_j, d->high_j - d->energy_j);
}

/* The band of an estimate is wider by far. */
static void add_edges(struct nrg_domain *d, const struct nrg_timeline *tl,
                      const struct nrg_summary *s)
{
    if (d->channel->channel.provenance == NRG_ESTIMATED)
        return;
    struct nrg_edge_doubt doubt =
        nrg_timeline_edges(tl, s->begin_ns, s->end_ns, fmax(d->peak_w, d->mean_w));
    d->edges_below_j = doubt.below_j;
    d->edges_above_j = doubt.above_j;
    nrg_domain_widen(d, doubt.below_j, doubt.above_j);
}

/* Of a sensor that looks part of the time. Says what the interval rests on. */
static void add_doubt(struct nrg_domain *d, struct nrg_frame *frame, const struct nrg_timeline *tl,
                      struct nrg_summary *s)
{
    const struct nrg_channel *c = &d->channel->channel;
    if (!nrg_is_part_time(c))
        return;
    struct nrg_doubt doubt = nrg_part_time_doubt(frame, c, tl, s, d->mean_w);
    double window_ms = (double)c->window_ns / 1e6, update_ms = (double)c->update_ns / 1e6;
    nrg_domain_widen(d, doubt.below_j, doubt.above_j);
    if (doubt.missed > NOTED_MISSED) {
        d->missed_below_w = doubt.below_j / (doubt.missed * s->duration_s);
        d->missed_above_w = doubt.above_j / (doubt.missed * s->duration_s);
        nrg_summary_missing(s, c->name,
                            "the sensor sees %.3g of every %.3g ms and was in step with the load: "
                            "%.0f %% of the spans' time is missing in what it saw",
                            window_ms, update_ms, 100 * doubt.missed);
    } else if (doubt.creeping)
        nrg_summary_missing(s, c->name,
                            "the sensor sees %.3g of every %.3g ms; readings creep, as those of a "
                            "load in step with it: the rest may have had any power between them",
                            window_ms, update_ms);
    else
        nrg_summary_missing(s, c->name,
                            "the sensor sees %.3g of every %.3g ms: the rest is taken to be alike",
                            window_ms, update_ms);
}

static void note_faults(struct nrg_summary *s, const struct nrg_domain *d,
                        const struct nrg_timeline *tl)
{
    const char *name = d->channel->channel.name;
    if (tl->backwards)
        nrg_summary_missing(s, name,
                            "the counter jumped %zu times without a wrap: those intervals "
                            "are left out",
                            tl->backwards);
    if (tl->ambiguous)
        nrg_summary_missing(s, name,
                            "ambiguous: it may have wrapped more than once between %zu "
                            "pairs of readings; those intervals are left out",
                            tl->ambiguous);
    if (tl->damaged)
        nrg_summary_missing(s, name, "%zu damaged chunks of the recording are left out",
                            tl->damaged);
    if (d->covered < 0.999 && (1 - d->covered) * s->duration_s > 0.002)
        nrg_summary_missing(
            s, name,
            "no readings for %.3g s of %.3g s: energy and mean are those of the rest, and "
            "the interval has what it may have been",
            (1 - d->covered) * s->duration_s, s->duration_s);
}

static int make_domain(struct nrg_summary *s, struct nrg_frame *frame, size_t i)
{
    const struct nrg_timeline *tl = nrg_frame_timeline(frame, i);
    struct nrg_domain d = {.channel = &frame->channels[i]};
    const char *name = d.channel->channel.name;
    if (!tl)
        return nrg_summary_missing(s, name, "no reading succeeded");
    nrg_domain_energy(&d, frame, tl, s);
    bool stood_still = nrg_unread_note_still(s, frame, &d);
    if (!(d.covered > 0))
        return stood_still ? 0 : nrg_summary_missing(s, name, "no readings during the run");
    if (nrg_total_is_stuck(&d.channel->channel, d.energy_j, s->duration_s))
        return nrg_summary_missing(s, name,
                                   d.channel->channel.resolution > s->duration_s
                                       ? "less was used than one step of the counter"
                                       : "the counter stood still: it does not measure here");
    /* Where it is not known what should have moved it; a watt would have. */
    if (d.channel->channel.kind == NRG_COUNTER && !(nrg_least_w(&d.channel->channel) > 0) &&
        tl->stuck_ns > 4 * NRG_STUCK_NS &&
        (double)tl->stuck_ns / 1e9 > d.channel->channel.resolution)
        nrg_summary_missing(s, name,
                            "the counter stood still for %.3g s: energy of that time may be "
                            "missing",
                            (double)tl->stuck_ns / 1e9);
    set_peak(&d, tl, s);
    note_faults(s, &d, tl);
    set_band(&d, frame, s);
    add_edges(&d, tl, s);
    add_doubt(&d, frame, tl, s);
    nrg_domain_compare(&d, frame, s);
    nrg_unread_add(&d, tl, s);
    s->domains[s->n_domains++] = d;
    return 0;
}

/* Puts the domains in order, each before its parts, and gives their items in that order.
 * `unordered` is room for as many. */
static int order_domains(struct nrg_summary *s, struct nrg_total_item *unordered,
                         struct nrg_total_item *items)
{
    struct nrg_domain *out = nrg_calloc(s->n_domains + 1, sizeof *out);
    if (!out)
        return -ENOMEM;
    for (size_t i = 0; i < s->n_domains; i++) {
        const struct nrg_domain *d = &s->domains[i];
        unordered[i] = (struct nrg_total_item){.channel = &d->channel->channel,
                                               .driver = d->channel->driver,
                                               .sensor = d->channel->sensor,
                                               .energy_j = d->energy_j,
                                               .index = i};
    }
    nrg_total_order(unordered, s->n_domains, items);
    for (size_t i = 0; i < s->n_domains; i++)
        out[i] = s->domains[items[i].index];
    free(s->domains);
    s->domains = out;
    return 0;
}

static void add_to_total(struct nrg_summary *s, struct nrg_domain *d)
{
    enum nrg_provenance provenance = d->channel->channel.provenance;
    d->in_total = true;
    s->total_j = nrg_sum_known(s->total_j, d->energy_j);
    s->total_low_j += d->low_j;
    s->total_high_j += d->high_j;
    s->total_uncertainty_j += d->uncertainty_j;
    s->total_mean_w += d->mean_w;
    s->total_covered = fmin(s->total_covered, d->covered);
    *(provenance == NRG_ESTIMATED ? &s->estimated_j : &s->measured_j) += d->energy_j;
    if (provenance > s->total_provenance)
        s->total_provenance = provenance;
}

static bool covers_cpu(const struct nrg_domain *d, bool estimated)
{
    const struct nrg_channel *c = &d->channel->channel;
    return c->covers_cpu && (c->provenance == NRG_ESTIMATED) == estimated &&
           (estimated || !c->wide);
}

/*
 * An estimate that the recorder kept ready, because what measures the processors might have no
 * reading in a short run. It is shown only where that is so, and then said.
 */
static int settle_reserve(struct nrg_summary *s, const struct nrg_frame *frame)
{
    size_t n = 0;
    bool measured = false, estimated = false;
    if (!nrg_recording_text(frame->recording, NRG_META_RESERVE))
        return 0;
    for (size_t i = 0; i < s->n_domains; i++) {
        measured |= covers_cpu(&s->domains[i], false);
        estimated |= covers_cpu(&s->domains[i], true);
    }
    if (!estimated)
        return 0;
    if (!measured)
        return nrg_summary_missing(s, "processors",
                                   "no sensor had readings of this run: they are estimated");
    for (size_t i = 0; i < s->n_domains; i++)
        if (strcmp(s->domains[i].channel->driver, RESERVE_DRIVER) != 0)
            s->domains[n++] = s->domains[i];
    s->n_domains = n;
    return 0;
}

static int find_domains(struct nrg_summary *s, struct nrg_frame *frame)
{
    struct candidates candidates = {frame, s};
    const struct nrg_total_source source = {&candidates,       frame->n,
                                            candidate_channel, candidate_was_read,
                                            candidate_step_j,  candidate_energy_j};
    int rc = 0;
    for (size_t i = 0; !rc && i < frame->n; i++) {
        if (!nrg_total_is_domain(&source, i))
            continue;
        rc = make_domain(s, frame, i);
        nrg_frame_drop(frame, i); /* long ones one at a time */
    }
    return rc ? rc : settle_reserve(s, frame);
}

int nrg_domains_make(struct nrg_summary *s, struct nrg_frame *frame)
{
    struct nrg_total_item *items = nrg_calloc(2 * (frame->n + 1), sizeof *items);
    s->n_domains = 0;
    s->domains = nrg_calloc(frame->n + 1, sizeof *s->domains);
    int rc = s->domains && items ? find_domains(s, frame) : -ENOMEM;
    nrg_unread_alike(s);
    if (!rc)
        rc = order_domains(s, items + frame->n + 1, items);
    if (!rc) {
        size_t widest = nrg_total_choose(items, s->n_domains);
        s->total_j = NAN;
        s->total_covered = 1;
        s->widest = widest < s->n_domains ? &s->domains[widest] : NULL;
        for (size_t i = 0; i < s->n_domains; i++)
            if (items[i].in_total)
                add_to_total(s, &s->domains[i]);
        nrg_unread_absent(s, frame);
        nrg_wall_make(s, items);
    }
    free(items);
    return rc;
}
