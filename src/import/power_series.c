/* See power_series.h. At most 65,536 values are kept: neighbours are put together beyond that. */
#include "import/power_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define MOST_VALUES 65536

struct reader {
    const struct nrg_recorded_channel *channel;
    int64_t *t_ns;
    double *values; /* raw * scale */
    size_t n, cap_t, cap_values;
};

static int take_rows(void *arg, const struct nrg_rows *rows)
{
    struct reader *r = arg;
    if (r->channel->column >= rows->n_columns)
        return 0;
    const int64_t *raw = nrg_rows_column(rows, r->channel->column);
    if (nrg_reserve(&r->t_ns, &r->cap_t, r->n + rows->n, sizeof *r->t_ns) ||
        nrg_reserve(&r->values, &r->cap_values, r->n + rows->n, sizeof *r->values))
        return -ENOMEM;
    for (size_t i = 0; i < rows->n; i++) {
        if (raw[i] == NRG_MISSING || (r->n && rows->t_ns[i] <= r->t_ns[r->n - 1]))
            continue;
        r->t_ns[r->n] = rows->t_ns[i];
        r->values[r->n++] = (double)raw[i] * r->channel->channel.scale;
    }
    return 0;
}

static int add(struct nrg_power_series *s, int64_t begin_ns, int64_t end_ns, double power_w)
{
    size_t cap_begin = s->cap, cap_end = s->cap;
    if (nrg_reserve(&s->begin_ns, &cap_begin, s->n + 1, sizeof *s->begin_ns) ||
        nrg_reserve(&s->end_ns, &cap_end, s->n + 1, sizeof *s->end_ns) ||
        nrg_reserve(&s->power_w, &s->cap, s->n + 1, sizeof *s->power_w))
        return -ENOMEM;
    s->begin_ns[s->n] = begin_ns;
    s->end_ns[s->n] = end_ns;
    s->power_w[s->n++] = power_w;
    return 0;
}

/* Energy between two readings; a counter that went back without a known range tells nothing. */
static int add_steps(struct nrg_power_series *s, const struct reader *r)
{
    const struct nrg_channel *c = &r->channel->channel;
    int rc = 0;
    for (size_t i = 1; !rc && i < r->n; i++) {
        double step_j = r->values[i] - r->values[i - 1];
        if (step_j < 0 && c->wrap)
            step_j += (double)c->wrap * c->scale;
        if (step_j >= 0)
            rc = add(s, r->t_ns[i - 1], r->t_ns[i],
                     step_j / ((double)(r->t_ns[i] - r->t_ns[i - 1]) / 1e9));
    }
    return rc;
}

static int add_readings(struct nrg_power_series *s, const struct reader *r)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < r->n; i++)
        rc = add(s, r->t_ns[i] - s->period_ns / 2, r->t_ns[i] + (s->period_ns + 1) / 2,
                 r->values[i]);
    return rc;
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t median_spacing(const struct reader *r)
{
    int64_t *spacings = calloc(r->n, sizeof *spacings);
    if (!spacings)
        return -ENOMEM;
    for (size_t i = 1; i < r->n; i++)
        spacings[i - 1] = r->t_ns[i] - r->t_ns[i - 1];
    qsort(spacings, r->n - 1, sizeof *spacings, by_value);
    int64_t median = spacings[(r->n - 1) / 2];
    free(spacings);
    return median;
}

static void put_together(struct nrg_power_series *s)
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

static int rank(const struct nrg_channel *c, const char *domain)
{
    if (c->quantity != NRG_ENERGY && c->quantity != NRG_POWER)
        return 0;
    if (domain && !strcmp(c->name, domain))
        return 6;
    int rank = c->covers_cpu && !c->wide ? 4 : c->parent[0] ? 1 : 2;
    return rank + (c->provenance != NRG_ESTIMATED);
}

static const struct nrg_recorded_channel *choose(const struct nrg_recording *recording,
                                                 const char *domain)
{
    size_t n;
    const struct nrg_recorded_channel *c = nrg_recording_channels(recording, &n), *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (rank(&c[i].channel, domain) > (best ? rank(&best->channel, domain) : 0))
            best = &c[i];
    return best;
}

static int fill(struct nrg_power_series *s, const struct reader *r)
{
    const struct nrg_channel *c = &r->channel->channel;
    s->period_ns = median_spacing(r);
    if (s->period_ns < 0)
        return (int)s->period_ns;
    s->lag_ns = c->lag_ns > 0 ? c->lag_ns : 0;
    s->gauge = c->kind == NRG_GAUGE;
    int rc = s->gauge ? add_readings(s, r) : add_steps(s, r);
    if (!rc)
        put_together(s);
    return rc;
}

int nrg_power_series_load(struct nrg_power_series *s, struct nrg_recording *recording,
                          const char *domain, struct nrg_error *err)
{
    struct reader r = {.channel = choose(recording, domain)};
    const char *path = nrg_recording_path(recording);
    *s = (struct nrg_power_series){0};
    if (!r.channel)
        return nrg_fail(err, -ENODATA, path, "has no channel of energy or power");
    nrg_copy(s->name, sizeof s->name, r.channel->channel.name);
    int rc = nrg_recording_read_series(recording, r.channel->series, take_rows, &r, NULL);
    if (!rc && r.n >= 2)
        rc = fill(s, &r);
    if (rc)
        nrg_fail(err, rc, path, "cannot read the power: %s", strerror(-rc));
    else if (s->n < 2)
        rc = nrg_fail(err, -ENODATA, path, "has fewer than two readings of %s", s->name);
    free(r.t_ns);
    free(r.values);
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
