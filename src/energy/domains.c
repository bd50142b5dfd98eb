/*
 * Energy per domain, and the one place that decides what a total adds up.
 *
 * A domain is an energy counter, or a power gauge where there is no counter of that name or only a
 * coarse one (a plug's watt-hours).
 * The total takes every domain that is not wide and that no other domain of the total contains;
 * only when there is none of those, or none with the processors in it, the widest. The widest
 * measured one stands beside it as a check: it may see fans and disks, and must never be added.
 *
 * Uncertainty of a measured energy: the counter's step, plus the energy of one update period
 * (when in it the run began and ended is not known); for a gauge what the trapezoid may have
 * missed between readings and, by how much the power varied, at the edges, its rounding, and
 * half of what its own averaging made necessary to correct. The sensor's own calibration is not in
 * it: docs/uncertainty.md.
 */
#include "energy/frame.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A counter of a powered part that never moves for this long is not measuring. */
#define STUCK_NS       (500 * NRG_NS_PER_MS)
#define PEAK_WINDOW_NS (100 * NRG_NS_PER_MS)
#define COARSE         0.005 /* a counter's step, as part of the energy, from which the gauge is better */
#define COARSE_LEAST_J 1.0 /* chips count finer, and better than their gauges */

static bool has_suffix(const char *name, const char *suffix)
{
    size_t n = strlen(name), m = strlen(suffix);
    return n > m && !strcmp(name + n - m, suffix);
}

/* .low, .high and .idle accompany an estimate; they are not domains. */
static bool is_companion(const char *name)
{
    return has_suffix(name, ".low") || has_suffix(name, ".high") || has_suffix(name, ".idle");
}

/*
 * The step of a counter that stands still from one reading to the next more often than not, as
 * the readings show it: drivers can't always know. 0: it moves with every reading or so.
 */
static double seen_step_j(const struct nrg_timeline *tl, const struct nrg_summary *s)
{
    size_t still = 0, moved = 0;
    double sum_j = 0;
    for (size_t i = 1; i < tl->n && tl->t_ns[i - 1] <= s->end_ns; i++) {
        double step_j = tl->sum_j[i] - tl->sum_j[i - 1];
        if (tl->t_ns[i] < s->begin_ns || tl->gap[i - 1])
            continue;
        *(step_j > 0 ? &moved : &still) += 1;
        sum_j += step_j;
    }
    return still <= moved ? 0 : moved ? sum_j / (double)moved : INFINITY;
}

/*
 * A plug counts whole watt-hours: over a short run that says less than its power. A counter
 * leaves the domain to the gauge of its name when its step is a good part of the energy, or when
 * it has never been read.
 */
static bool leaves_to_gauge(struct nrg_frame *frame, const struct nrg_summary *s, size_t counter,
                            size_t gauge)
{
    double step_j = frame->channels[counter].channel.resolution;
    const struct nrg_timeline *count = gauge < frame->n ? nrg_frame_timeline(frame, counter) : NULL;
    if (gauge == frame->n || (count && step_j < COARSE_LEAST_J))
        return false;
    const struct nrg_timeline *power = nrg_frame_timeline(frame, gauge);
    if (!power || !count)
        return power != NULL;
    if (seen_step_j(count, s) > step_j)
        step_j = seen_step_j(count, s);
    return step_j > COARSE * nrg_timeline_between(power, s->begin_ns, s->end_ns, NULL);
}

static bool is_domain(struct nrg_frame *frame, const struct nrg_summary *s, size_t i)
{
    const struct nrg_channel *c = &frame->channels[i].channel;
    if (is_companion(c->name))
        return false;
    if (c->quantity == NRG_ENERGY)
        return !leaves_to_gauge(frame, s, i, nrg_frame_find(frame, c->name, NRG_POWER));
    size_t counter = nrg_frame_find(frame, c->name, NRG_ENERGY);
    return c->quantity == NRG_POWER &&
           (counter == frame->n || leaves_to_gauge(frame, s, counter, i));
}

/* Energy of an estimate's companion channel within the run, NAN without one. */
static double companion_j(struct nrg_frame *frame, const struct nrg_summary *s, const char *name,
                          const char *suffix)
{
    char full[64];
    snprintf(full, sizeof full, "%.48s%s", name, suffix);
    const struct nrg_timeline *tl =
        nrg_frame_timeline(frame, nrg_frame_find(frame, full, NRG_ENERGY));
    return tl ? nrg_timeline_between(tl, s->begin_ns, s->end_ns, NULL) : NAN;
}

static void set_band(struct nrg_domain *d, struct nrg_frame *frame, const struct nrg_summary *s)
{
    const struct nrg_channel *c = &d->channel->channel;
    d->low_j = companion_j(frame, s, c->name, ".low");
    d->high_j = companion_j(frame, s, c->name, ".high");
    if (isnan(d->low_j) || isnan(d->high_j)) {
        d->low_j = d->energy_j * (1 - c->error_low) - d->uncertainty_j;
        d->high_j = d->energy_j * (1 + c->error_high) + d->uncertainty_j;
    }
    double below = d->energy_j - d->low_j, above = d->high_j - d->energy_j;
    d->uncertainty_j = below > above ? below : above;
    if (d->low_j < 0)
        d->low_j = 0;
}

static void set_energy(struct nrg_domain *d, const struct nrg_timeline *tl,
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
        /* An estimate's band says it all; when in an update it was made says nothing. */
        if (c->provenance != NRG_ESTIMATED)
            d->uncertainty_j = c->resolution + (isnan(d->mean_w) ? 0 : fabs(d->mean_w) * update_s);
        return;
    }
    d->method = "trapezoid";
    d->uncertainty_j = sqrt(tl->noise_j2) +
                       nrg_timeline_gauge_sd(tl, s->begin_ns, s->end_ns) * update_s +
                       c->resolution / sqrt(12) * s->duration_s;
    double first = nrg_timeline_gauge_at(tl, s->begin_ns),
           last = nrg_timeline_gauge_at(tl, s->end_ns);
    if (c->lag_ns > 0 && !isnan(first) && !isnan(last)) {
        double correction = (double)c->lag_ns / 1e9 * (last - first);
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
        nrg_summary_missing(s, name,
                            "no readings for %.3g s of %.3g s: energy covers the rest only",
                            (1 - d->covered) * s->duration_s, s->duration_s);
}

static int make_domain(struct nrg_summary *s, struct nrg_frame *frame, size_t i)
{
    const struct nrg_timeline *tl = nrg_frame_timeline(frame, i);
    struct nrg_domain d = {.channel = &frame->channels[i]};
    const char *name = d.channel->channel.name;
    if (!tl)
        return nrg_summary_missing(s, name, "no reading succeeded");
    set_energy(&d, tl, s);
    if (!(d.covered > 0))
        return nrg_summary_missing(s, name, "no readings during the run");
    if (d.channel->channel.kind == NRG_COUNTER && d.energy_j <= 0 && s->duration_s * 1e9 > STUCK_NS)
        return nrg_summary_missing(s, name,
                                   d.channel->channel.resolution > s->duration_s
                                       ? "less was used than one step of the counter"
                                       : "the counter stood still: it does not measure here");
    /* A watt must have moved it. */
    if (d.channel->channel.kind == NRG_COUNTER && tl->stuck_ns > 4 * STUCK_NS &&
        (double)tl->stuck_ns / 1e9 > d.channel->channel.resolution)
        nrg_summary_missing(s, name,
                            "the counter stood still for %.3g s: energy of that time may be "
                            "missing",
                            (double)tl->stuck_ns / 1e9);
    set_peak(&d, tl, s);
    note_faults(s, &d, tl);
    set_band(&d, frame, s);
    s->domains[s->n_domains++] = d;
    return 0;
}

static struct nrg_domain *find_domain(const struct nrg_summary *s, const char *name)
{
    for (size_t i = 0; i < s->n_domains; i++)
        if (!strcmp(s->domains[i].channel->channel.name, name))
            return &s->domains[i];
    return NULL;
}

/* True when a domain that is not wide contains this one, directly or further up. */
static bool contained(const struct nrg_summary *s, const struct nrg_domain *d)
{
    const char *parent = d->channel->channel.parent;
    for (int depth = 0; parent[0] && depth < 16; depth++) {
        const struct nrg_domain *above = find_domain(s, parent);
        if (!above)
            return false;
        if (!above->channel->channel.wide)
            return true;
        parent = above->channel->channel.parent;
    }
    return false;
}

bool nrg_domains_is_part(const struct nrg_summary *s, const struct nrg_domain *d)
{
    return !d->channel->channel.wide && !contained(s, d);
}

/* Moves the domains below `parent` ("" for the top) to `out`, each followed by its own parts. */
static size_t order_below(struct nrg_summary *s, const char *parent, struct nrg_domain *out,
                          size_t n, bool *moved, int depth)
{
    for (size_t i = 0; depth < 16 && i < s->n_domains; i++) {
        const struct nrg_channel *c = &s->domains[i].channel->channel;
        bool top = !c->parent[0] || !find_domain(s, c->parent);
        if (moved[i] || (parent[0] ? strcmp(c->parent, parent) != 0 : !top))
            continue;
        moved[i] = true;
        out[n++] = s->domains[i];
        n = order_below(s, c->name, out, n, moved, depth + 1);
    }
    return n;
}

/* A domain comes before its parts; one in a circle of parents, which no driver makes, is last. */
static int order_domains(struct nrg_summary *s)
{
    struct nrg_domain *out = calloc(s->n_domains + 1, sizeof *out);
    bool *moved = calloc(s->n_domains + 1, sizeof *moved);
    if (!out || !moved) {
        free(out);
        free(moved);
        return -ENOMEM;
    }
    size_t n = order_below(s, "", out, 0, moved, 0);
    for (size_t i = 0; i < s->n_domains; i++)
        if (!moved[i])
            out[n++] = s->domains[i];
    free(s->domains);
    free(moved);
    s->domains = out;
    return 0;
}

static void add_to_total(struct nrg_summary *s, struct nrg_domain *d)
{
    enum nrg_provenance provenance = d->channel->channel.provenance;
    d->in_total = true;
    s->total_j = (isnan(s->total_j) ? 0 : s->total_j) + d->energy_j;
    s->total_low_j += d->low_j;
    s->total_high_j += d->high_j;
    s->total_uncertainty_j += d->uncertainty_j;
    *(provenance == NRG_ESTIMATED ? &s->estimated_j : &s->measured_j) += d->energy_j;
    if (provenance > s->total_provenance)
        s->total_provenance = provenance;
}

/* The parts have no processor (GPUs alone, say) and the widest meter has: it says more. */
static bool widest_knows_better(const struct nrg_summary *s)
{
    if (!s->widest || !s->widest->channel->channel.covers_cpu)
        return false;
    for (size_t i = 0; i < s->n_domains; i++)
        if (s->domains[i].in_total && s->domains[i].channel->channel.covers_cpu)
            return false;
    return isnan(s->total_j) || s->total_j <= s->widest->energy_j;
}

static void total_is_widest(struct nrg_summary *s)
{
    for (size_t i = 0; i < s->n_domains; i++)
        s->domains[i].in_total = false;
    s->total_j = NAN;
    s->total_low_j = s->total_high_j = s->total_uncertainty_j = 0;
    s->measured_j = s->estimated_j = 0;
    s->total_provenance = NRG_MEASURED;
    for (size_t i = 0; i < s->n_domains; i++)
        if (nrg_domains_same_wall(s->widest, &s->domains[i]))
            add_to_total(s, &s->domains[i]);
    s->widest = NULL;
}

int nrg_domains_make(struct nrg_summary *s, struct nrg_frame *frame)
{
    s->n_domains = 0;
    s->domains = calloc(frame->n + 1, sizeof *s->domains);
    int rc = s->domains ? 0 : -ENOMEM;
    for (size_t i = 0; !rc && i < frame->n; i++) {
        if (!is_domain(frame, s, i))
            continue;
        rc = make_domain(s, frame, i);
        nrg_frame_drop(frame, i); /* an hour at 1 kHz is 60 MB: one at a time */
    }
    if (!rc)
        rc = order_domains(s);
    if (rc)
        return rc;
    s->total_j = NAN;
    s->widest = nrg_domains_widest(s, NULL);
    for (size_t i = 0; i < s->n_domains; i++)
        if (nrg_domains_is_part(s, &s->domains[i]))
            add_to_total(s, &s->domains[i]);
    if (s->widest && (isnan(s->total_j) || widest_knows_better(s)))
        total_is_widest(s);
    nrg_wall_make(s);
    return 0;
}
