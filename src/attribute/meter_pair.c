/*
 * A meter and its reference out of a recording, for meter_fit.c. The reference is the sum of the
 * parts that the wall is compared with (wall.c); its power between two instants is exact for
 * counters. A power gauge of the meter is preferred to its counter, which is coarse.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "energy/frame.h"
#include "energy/meter_fit.h"

struct pair {
    struct nrg_timeline meter;
    struct nrg_timeline *parts;
    size_t n_parts;
};

static double parts_mean_w(void *arg, int64_t begin_ns, int64_t end_ns)
{
    const struct pair *p = arg;
    double sum_w = 0;
    for (size_t i = 0; i < p->n_parts; i++) {
        int64_t covered_ns;
        double energy_j = nrg_timeline_between(&p->parts[i], begin_ns, end_ns, &covered_ns);
        if (covered_ns < (end_ns - begin_ns) / 2 || covered_ns <= 0)
            return NAN;
        sum_w += energy_j * 1e9 / (double)covered_ns;
    }
    return sum_w;
}

static int load_parts(struct pair *p, struct nrg_recording *recording, const struct nrg_summary *s,
                      struct nrg_meter_reference *ref, struct nrg_error *err)
{
    p->parts = calloc(s->n_domains + 1, sizeof *p->parts);
    if (!p->parts)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    *ref = (struct nrg_meter_reference){.mean_w = parts_mean_w,
                                        .arg = p,
                                        .first_ns = INT64_MIN,
                                        .last_ns = INT64_MAX,
                                        .period_ns = NRG_NS_PER_MS};
    for (size_t i = 0; i < s->n_domains; i++) {
        struct nrg_timeline *tl = &p->parts[p->n_parts];
        if (!s->domains[i].wall_part)
            continue;
        int rc = nrg_timeline_load(tl, recording, s->domains[i].channel);
        if (rc)
            return nrg_fail(err, rc, nrg_recording_path(recording), "%s", strerror(-rc));
        p->n_parts++;
        if (tl->n && tl->t_ns[0] > ref->first_ns)
            ref->first_ns = tl->t_ns[0];
        if (tl->n && tl->t_ns[tl->n - 1] < ref->last_ns)
            ref->last_ns = tl->t_ns[tl->n - 1];
        if (tl->period_ns > ref->period_ns)
            ref->period_ns = tl->period_ns;
    }
    return p->n_parts ? 0
                      : nrg_fail(err, -ENODATA, nrg_recording_path(recording),
                                 "has nothing to compare the meter with: nrg sensors says what "
                                 "can be measured here");
}

static int load_meter(struct pair *p, struct nrg_recording *recording, struct nrg_error *err)
{
    size_t n, best;
    const struct nrg_recorded_channel *channels = nrg_recording_channels(recording, &n);
    best = n;
    for (size_t i = 0; i < n; i++)
        if (!strcmp(channels[i].channel.name, "wall") &&
            (channels[i].channel.quantity == NRG_POWER ||
             (best == n && channels[i].channel.quantity == NRG_ENERGY)))
            best = i;
    if (best == n)
        return nrg_fail(err, -ENODATA, nrg_recording_path(recording),
                        "has no meter of the machine, a channel called wall: covers=NAME:machine "
                        "says which power of the meter it is");
    int rc = nrg_timeline_load(&p->meter, recording, &channels[best]);
    return rc ? nrg_fail(err, rc, nrg_recording_path(recording), "%s", strerror(-rc)) : 0;
}

/* A counter's readings are means from one to the next. */
static size_t make_points(const struct nrg_timeline *tl, struct nrg_meter_point *points)
{
    size_t n = 0;
    for (size_t i = 0; i < tl->n; i++) {
        if (tl->gauge)
            points[n++] = (struct nrg_meter_point){tl->t_ns[i], tl->t_ns[i], tl->gauge[i]};
        else if (i && !tl->gap[i - 1] && tl->t_ns[i] > tl->t_ns[i - 1])
            points[n++] = (struct nrg_meter_point){tl->t_ns[i - 1], tl->t_ns[i],
                                                   (tl->sum_j[i] - tl->sum_j[i - 1]) * 1e9 /
                                                       (double)(tl->t_ns[i] - tl->t_ns[i - 1])};
    }
    return n;
}

static int fit_pair(struct pair *p, const struct nrg_meter_reference *ref, int64_t max_delay_ns,
                    struct nrg_meter_fit *fit, struct nrg_error *err)
{
    struct nrg_meter_point *points = calloc(p->meter.n + 1, sizeof *points);
    if (!points)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    int rc = nrg_meter_fit(points, make_points(&p->meter, points), ref, max_delay_ns, fit, err);
    free(points);
    return rc;
}

int nrg_meter_fit_recording(struct nrg_recording *recording, int64_t max_delay_ns,
                            struct nrg_meter_fit *fit, struct nrg_error *err)
{
    struct pair p = {0};
    struct nrg_meter_reference ref;
    struct nrg_summary summary;
    size_t n_runs;
    const struct nrg_run *runs = nrg_recording_runs(recording, &n_runs);
    if (!n_runs)
        return nrg_fail(err, -ENODATA, nrg_recording_path(recording), "holds no run");
    int rc = nrg_summary_make(&summary, recording, &runs[n_runs - 1], NRG_SPLIT_ACTIVE, err);
    if (rc)
        return rc;
    rc = load_meter(&p, recording, err);
    if (!rc)
        rc = load_parts(&p, recording, &summary, &ref, err);
    if (!rc)
        rc = fit_pair(&p, &ref, max_delay_ns, fit, err);
    nrg_timeline_release(&p.meter);
    for (size_t i = 0; i < p.n_parts; i++)
        nrg_timeline_release(&p.parts[i]);
    free(p.parts);
    nrg_summary_release(&summary);
    return rc;
}
