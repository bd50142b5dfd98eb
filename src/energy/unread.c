/*
 * What readings did not show. Time without readings, and time that a counter stood still in though
 * its domain can't (record/read/still.h), has no energy in the sum, but the device went on: at most
 * with the highest power that was seen, of it or of its like (the other package, the other modules
 * of memory), or for a gauge half as far beyond as it varied. Least is nothing. A part that was not
 * read at all, in a total of others, is in that total's interval.
 */
#include <math.h>
#include <string.h>

#include "energy/internal.h"
#include "record/read/still.h"
#include "sensors/still.h"

#define BEYOND         0.5
#define PEAK_WINDOW_NS (100 * NRG_NS_PER_MS)
#define MOST_NOTED     3

/* The highest power in the recording, of times in which the run may show none. */
static double seen_w(const struct nrg_timeline *tl)
{
    int64_t window_ns = tl->period_ns > PEAK_WINDOW_NS ? tl->period_ns : PEAK_WINDOW_NS;
    return tl->n
               ? nrg_timeline_peak(tl, nrg_point_ns(tl, 0), nrg_point_ns(tl, tl->n - 1), window_ns)
               : 0;
}

/*
 * Before a late reading the power may have been any that others showed (and readings are late when
 * the machine is busy: such errors do not cancel). A counter's readings on both sides of a gap are
 * up to one update old.
 */
void nrg_unread_add(struct nrg_domain *d, const struct nrg_timeline *tl,
                    const struct nrg_summary *s)
{
    struct nrg_power_range range = nrg_timeline_gauge_range(tl, s->begin_ns, s->end_ns);
    double most_w = tl->is_gauge ? range.high_w + BEYOND * (range.high_w - range.low_w) : d->peak_w;
    double unread_s = (1 - d->covered) * s->duration_s;
    int64_t late_ns;
    double late_j = nrg_timeline_late(tl, s->begin_ns, s->end_ns, &late_ns);
    if (late_ns > 0)
        nrg_domain_widen(d, fmax(0, late_j - range.low_w * (double)late_ns / 1e9),
                         fmax(0, range.high_w * (double)late_ns / 1e9 - late_j));
    d->covered_uncertainty_j = d->uncertainty_j;
    if (!(unread_s > 0))
        return;
    most_w = fmax(most_w, fmax(0, d->mean_w));
    if (!tl->is_gauge)
        most_w = fmax(most_w, seen_w(tl));
    double update_s = (double)d->channel->channel.update_ns * 1e-9;
    double sides_j = (double)(tl->backwards + tl->stood) * update_s * most_w;
    d->unread_w = most_w;
    nrg_domain_widen(d, sides_j, unread_s * most_w + sides_j);
}

bool nrg_unread_note_still(struct nrg_summary *s, struct nrg_frame *frame,
                           const struct nrg_domain *d)
{
    size_t n, noted = 0;
    const struct nrg_still *stills = nrg_stills_of(frame->recording, d->channel, &n);
    const char *name = d->channel->channel.name;
    for (size_t i = 0; i < n; i++) {
        const struct nrg_still *still = &stills[i];
        if (!still->gap || still->to_ns <= s->begin_ns || still->from_ns >= s->end_ns)
            continue;
        double from_s = fmax(0, (double)(still->from_ns - s->begin_ns) * 1e-9);
        double to_s = fmin(s->duration_s, ((double)still->to_ns - (double)s->begin_ns) * 1e-9);
        if (!(d->covered > 0)) {
            nrg_summary_missing(s, name, "the counter stood still: it does not measure here");
            return true;
        }
        if (noted++ < MOST_NOTED)
            nrg_summary_missing(s, name,
                                "the counter stood still from %.3g to %.3g s of the run, while "
                                "its domain drew power: that time is left out",
                                from_s, to_s);
    }
    if (noted > MOST_NOTED)
        nrg_summary_missing(s, name, "and %zu times more", noted - MOST_NOTED);
    return false;
}

/* "package-1" and "package-0" of one driver. */
static bool are_alike(const struct nrg_recorded_channel *a, const struct nrg_recorded_channel *b)
{
    const char *x = a->channel.name, *y = b->channel.name, *end = strrchr(x, '-');
    return a != b && end && !strcmp(a->driver, b->driver) &&
           !strncmp(x, y, (size_t)(end - x) + 1) && a->channel.quantity == b->channel.quantity &&
           strcmp(x, y) != 0;
}

/* The highest power of all that are like it; 0: there are none. */
static double most_alike_w(const struct nrg_summary *s, const struct nrg_recorded_channel *channel)
{
    double most_w = 0;
    for (size_t i = 0; i < s->n_domains; i++)
        if (are_alike(channel, s->domains[i].channel))
            most_w = fmax(most_w, s->domains[i].peak_w);
    return most_w;
}

void nrg_unread_alike(struct nrg_summary *s)
{
    for (size_t i = 0; i < s->n_domains; i++) {
        struct nrg_domain *d = &s->domains[i];
        bool gaps = d->covered < 1 && d->channel->channel.kind == NRG_COUNTER;
        double more_w = gaps ? most_alike_w(s, d->channel) - d->unread_w : 0;
        if (!(more_w > 0))
            continue;
        d->unread_w += more_w;
        nrg_domain_widen(d, 0, (1 - d->covered) * s->duration_s * more_w);
    }
}

/* Whether a domain of the total is of what the channel measures, too: a meter of the machine, or a
 * model of the processors, which has their memory in it. */
static bool has_it_too(const struct nrg_domain *d, const struct nrg_channel *c)
{
    const struct nrg_channel *of = &d->channel->channel;
    bool model = of->covers_cpu && of->provenance == NRG_ESTIMATED;
    return d->in_total && (of->wide || (model && (c->covers_cpu || !strncmp(c->name, "dram", 4))));
}

/* A counter that can't have been still, and is no domain of the run. */
static bool is_absent(const struct nrg_summary *s, const struct nrg_frame *frame, size_t i)
{
    const struct nrg_recorded_channel *c = &frame->channels[i];
    size_t n, contained = nrg_frame_find(frame, c->channel.parent, NRG_ENERGY);
    if (c->channel.quantity != NRG_ENERGY || c->channel.kind != NRG_COUNTER || c->channel.wide ||
        (contained < frame->n && !frame->channels[contained].channel.wide))
        return false;
    for (size_t k = 0; k < s->n_domains; k++)
        if (!strcmp(s->domains[k].channel->channel.name, c->channel.name) ||
            has_it_too(&s->domains[k], &c->channel))
            return false;
    nrg_stills_of(frame->recording, c, &n);
    return n > 0 || nrg_least_w(&c->channel) > 0;
}

void nrg_unread_absent(struct nrg_summary *s, struct nrg_frame *frame)
{
    for (size_t i = 0; !isnan(s->total_j) && i < frame->n; i++) {
        if (!is_absent(s, frame, i))
            continue;
        const struct nrg_timeline *tl = nrg_frame_timeline(frame, i);
        double most_w = fmax(most_alike_w(s, &frame->channels[i]), tl ? seen_w(tl) : 0);
        double most_j = most_w * s->duration_s;
        nrg_frame_drop(frame, i);
        if (!(most_w > 0))
            continue;
        s->absent_j += most_j;
        s->total_high_j += most_j;
        s->total_uncertainty_j = fmax(s->total_uncertainty_j, s->total_high_j - s->total_j);
        s->total_covered = 0;
        nrg_summary_missing(s, frame->channels[i].channel.name,
                            "nothing is known of it in the run: the total lacks it, and its "
                            "interval has up to %.3g W for it",
                            most_w);
    }
}
