/*
 * A GPU's energy said twice: its driver counts joules, and shows watts (a buffer of samples, and a
 * gauge), by ways of their own that can differ by a factor. Nothing here tells which is right, so
 * the domain's interval holds what both say, as far as edges and updates do not explain it.
 */
#include "energy/internal.h"

#include <math.h>
#include <string.h>

#define LEAST_COVERED 0.5 /* of the run, to be compared at all */

/* Whether a channel says what the domain of that name uses, under its name or as NAME.polled. */
static bool is_of(const struct nrg_channel *c, const char *domain)
{
    size_t len = strlen(domain);
    return !strncmp(c->name, domain, len) &&
           (!c->name[len] || !strcmp(c->name + len, NRG_POLLED_SUFFIX));
}

/* The next channel after `from` that measures the same part. */
static size_t find_second(const struct nrg_frame *frame, const struct nrg_recorded_channel *first,
                          size_t from)
{
    size_t i = from;
    for (; i < frame->n; i++) {
        const struct nrg_channel *c = &frame->channels[i].channel;
        if (&frame->channels[i] != first && is_of(c, first->channel.name) &&
            (c->quantity == NRG_ENERGY || c->quantity == NRG_POWER))
            break;
    }
    return i;
}

/*
 * What the second channel says of the time that the first one covers. Time that it did not see
 * counts with its own mean power, and is as uncertain.
 */
static bool read_second(struct nrg_frame *frame, size_t i, const struct nrg_summary *s,
                        const struct nrg_domain *d, struct nrg_domain *second)
{
    const struct nrg_timeline *tl = nrg_frame_timeline(frame, i);
    *second = (struct nrg_domain){.channel = &frame->channels[i]};
    if (!tl)
        return false;
    nrg_domain_energy(second, frame, tl, s);
    if (!(second->covered > LEAST_COVERED * d->covered) ||
        nrg_total_is_stuck(&second->channel->channel, second->energy_j, s->duration_s))
        return false;
    if (nrg_is_part_time(&second->channel->channel)) {
        struct nrg_doubt doubt =
            nrg_part_time_doubt(frame, &second->channel->channel, tl, s, second->mean_w);
        second->uncertainty_j += fmax(doubt.below_j, doubt.above_j);
    }
    double all_j = second->mean_w * d->covered * s->duration_s;
    second->uncertainty_j += fabs(all_j - second->energy_j);
    second->energy_j = all_j;
    return true;
}

static const char *word_for(const struct nrg_channel *c)
{
    if (c->quantity == NRG_ENERGY)
        return "counter";
    return nrg_channel_is_companion(c) ? "polled power" : "power";
}

/* Widens the interval to what the second channel says, and says so. */
static void widen_to(struct nrg_domain *d, const struct nrg_domain *second, struct nrg_summary *s)
{
    const struct nrg_channel *a = &d->channel->channel, *b = &second->channel->channel;
    double apart_j = fabs(second->energy_j - d->energy_j);
    if (apart_j <= d->uncertainty_j + second->uncertainty_j)
        return;
    d->disputed = true;
    d->low_j = fmax(0, fmin(d->low_j, second->energy_j - second->uncertainty_j));
    d->high_j = fmax(d->high_j, second->energy_j + second->uncertainty_j);
    nrg_summary_missing(s, a->name,
                        "its %s says %.4g J and its %s %.4g J: which is true can't be told, and "
                        "the interval holds both",
                        word_for(a), d->energy_j, word_for(b), second->energy_j);
}

void nrg_domain_compare(struct nrg_domain *d, struct nrg_frame *frame, struct nrg_summary *s)
{
    if (nrg_gpu_number(d->channel->channel.name) < 0)
        return;
    double apart_j = -1;
    for (size_t i = find_second(frame, d->channel, 0); i < frame->n;
         i = find_second(frame, d->channel, i + 1)) {
        struct nrg_domain second;
        if (read_second(frame, i, s, d, &second)) {
            widen_to(d, &second, s);
            if (fabs(second.energy_j - d->energy_j) > apart_j) {
                apart_j = fabs(second.energy_j - d->energy_j);
                d->second = second.channel;
                d->second_j = second.energy_j;
                d->second_uncertainty_j = second.uncertainty_j;
            }
        }
        nrg_frame_drop(frame, i);
    }
    d->uncertainty_j = fmax(d->energy_j - d->low_j, d->high_j - d->energy_j);
}
