/* See power_series.h. At most 65,536 values are kept: beyond that, neighbours are merged. */
#include "import/power_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/stats.h"
#include "energy/timeline.h"

#define MOST_VALUES 65536

/* Readings of a gauge stand for the time around them; the last half period is rounded up. */
static void fill_from_gauge(struct nrg_power_series *s, const struct nrg_timeline *tl)
{
    for (; s->n < tl->n; s->n++) {
        s->begin_ns[s->n] = nrg_point_ns(tl, s->n) - s->period_ns / 2;
        s->end_ns[s->n] = nrg_point_ns(tl, s->n) + (s->period_ns + 1) / 2;
        s->power_w[s->n] = nrg_point_gauge(tl, s->n);
    }
}

static void fill_from_counter(struct nrg_power_series *s, const struct nrg_timeline *tl)
{
    for (size_t i = 1; i < tl->n; i++) {
        if (nrg_point_gap(tl, i - 1))
            continue;
        s->begin_ns[s->n] = nrg_point_ns(tl, i - 1);
        s->end_ns[s->n] = nrg_point_ns(tl, i);
        s->power_w[s->n++] = (nrg_point_j(tl, i) - nrg_point_j(tl, i - 1)) /
                             ((double)(nrg_point_ns(tl, i) - nrg_point_ns(tl, i - 1)) / 1e9);
    }
}

static void merge_neighbours(struct nrg_power_series *s)
{
    size_t of = (s->n + MOST_VALUES - 1) / MOST_VALUES, n = 0;
    for (size_t i = 0; of > 1 && i < s->n; n++) {
        double energy_j = 0, time_s = 0;
        size_t first = i, next = i + of < s->n ? i + of : s->n;
        for (; i < next; i++) {
            double dt_s = (double)(s->end_ns[i] - s->begin_ns[i]) / 1e9;
            energy_j += s->power_w[i] * dt_s;
            time_s += dt_s;
        }
        s->begin_ns[n] = s->begin_ns[first];
        s->end_ns[n] = s->end_ns[i - 1];
        s->power_w[n] = energy_j / time_s;
    }
    s->n = of > 1 ? n : s->n;
    s->period_ns *= (int64_t)of;
}

static int rank_channel(const struct nrg_channel *c, const char *domain)
{
    if (c->quantity != NRG_ENERGY && c->quantity != NRG_POWER)
        return 0;
    if (domain && !strcmp(c->name, domain))
        return 6;
    int rank = c->covers_cpu && !c->wide ? 4 : c->parent[0] ? 1 : 2;
    return rank + (c->provenance != NRG_ESTIMATED);
}

static const struct nrg_recorded_channel *choose_channel(const struct nrg_recording *recording,
                                                         const char *domain)
{
    size_t n;
    const struct nrg_recorded_channel *c = nrg_recording_channels(recording, &n), *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (rank_channel(&c[i].channel, domain) > (best ? rank_channel(&best->channel, domain) : 0))
            best = &c[i];
    return best;
}

static int fill_series(struct nrg_power_series *s, const struct nrg_timeline *tl)
{
    s->begin_ns = nrg_calloc(tl->n, sizeof *s->begin_ns);
    s->end_ns = nrg_calloc(tl->n, sizeof *s->end_ns);
    s->power_w = nrg_calloc(tl->n, sizeof *s->power_w);
    if (!s->begin_ns || !s->end_ns || !s->power_w)
        return -ENOMEM;
    for (size_t i = 1; i < tl->n; i++)
        s->begin_ns[i - 1] =
            nrg_point_ns(tl, i) - nrg_point_ns(tl, i - 1); /* until the median is known */
    s->period_ns = nrg_median_i64(s->begin_ns, tl->n - 1);
    if (s->gauge)
        fill_from_gauge(s, tl);
    else
        fill_from_counter(s, tl);
    merge_neighbours(s);
    return 0;
}

int nrg_power_series_load(struct nrg_power_series *s, struct nrg_recording *recording,
                          const char *domain, struct nrg_error *err)
{
    const struct nrg_recorded_channel *channel = choose_channel(recording, domain);
    const char *path = nrg_recording_path(recording);
    struct nrg_timeline timeline;
    *s = (struct nrg_power_series){0};
    if (!channel)
        return nrg_fail(err, -ENODATA, path, "has no channel of energy or power");
    nrg_copy(s->name, sizeof s->name, channel->channel.name);
    s->lag_ns = channel->channel.lag_ns > 0 ? channel->channel.lag_ns : 0;
    s->gauge = channel->channel.kind == NRG_GAUGE;
    int rc = nrg_timeline_load(&timeline, recording, channel);
    if (!rc && timeline.n >= 2)
        rc = fill_series(s, &timeline);
    nrg_timeline_release(&timeline);
    if (rc)
        nrg_fail(err, rc, path, "cannot read the power: %s", strerror(-rc));
    else if (s->n < 2)
        rc = nrg_fail(err, -ENODATA, path, "has fewer than two readings of %s", s->name);
    if (rc)
        nrg_power_series_release(s);
    return rc;
}

void nrg_power_series_release(struct nrg_power_series *s)
{
    free(s->begin_ns);
    free(s->end_ns);
    free(s->power_w);
    *s = (struct nrg_power_series){0};
}
