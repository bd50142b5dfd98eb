/* See reader.h. A sensor that went away is looked for once a second, and one whose counters are
 * dead is opened anew, as its clients can't: whoever comes while others are there gets the same
 * one. */
#include "daemon/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

#define RETRY_NS NRG_NS_PER_S

static void free_reader(struct nrg_sensor_reader *r)
{
    nrg_pulse_release(&r->pulse);
    free(r->found.channels);
    free(r->found.wanted);
    free(r);
}

static struct nrg_sensor_reader *new_reader(const struct nrg_context *ctx,
                                            const struct nrg_found *found, const size_t *number,
                                            size_t n)
{
    struct nrg_sensor_reader *r = nrg_calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->ctx = ctx;
    r->found = *found;
    r->found.channels = nrg_calloc(found->n_channels + 1, sizeof *found->channels);
    r->found.wanted = nrg_calloc(found->n_channels + 1, sizeof *found->wanted);
    if (!r->found.channels || !r->found.wanted || nrg_pulse_init(&r->pulse, found)) {
        free_reader(r);
        return NULL;
    }
    memcpy(r->found.channels, found->channels, found->n_channels * sizeof *found->channels);
    memcpy(r->found.wanted, found->wanted, found->n_channels * sizeof *found->wanted);
    r->n = n;
    memcpy(r->number, number, n * sizeof *number);
    return r;
}

static bool is_used(const struct nrg_sensor_reader *r)
{
    return r->n_full || r->n_coarse;
}

/* What has no user stays for the second that it had a coarse reading in. */
static void drop_old(struct nrg_readers *readers, int64_t second)
{
    for (struct nrg_sensor_reader **at = &readers->first; *at;) {
        struct nrg_sensor_reader *r = *at;
        if (is_used(r) || r->tick.t_ns / NRG_COARSE_PERIOD_NS == second) {
            at = &r->next;
        } else {
            *at = r->next;
            free_reader(r);
        }
    }
}

void nrg_readers_release(struct nrg_readers *readers)
{
    drop_old(readers, -1);
}

static struct nrg_sensor_reader *find_reader(const struct nrg_readers *readers,
                                             const struct nrg_found *found)
{
    struct nrg_sensor_reader *r = readers->first;
    while (r && (r->found.driver != found->driver || strcmp(r->found.sensor, found->sensor) != 0))
        r = r->next;
    return r;
}

int nrg_reader_use(struct nrg_readers *readers, const struct nrg_context *ctx,
                   const struct nrg_found *found, const size_t *number, size_t n,
                   enum nrg_wire_view view, struct nrg_sensor_reader **out)
{
    drop_old(readers, nrg_now_ns() / NRG_COARSE_PERIOD_NS);
    struct nrg_sensor_reader *r = find_reader(readers, found);
    if (!r) {
        r = new_reader(ctx, found, number, n);
        if (!r)
            return -ENOMEM;
        r->next = readers->first;
        readers->first = r;
    }
    if (!is_used(r)) {
        int rc = r->found.driver->open(ctx, &r->found, &r->state, NULL);
        if (rc) {
            r->state = NULL;
            return rc;
        }
        r->now.t_ns = 0;
    }
    if (view == NRG_VIEW_COARSE && !r->n_coarse)
        nrg_reader_begin_coarse(r);
    ++*(view == NRG_VIEW_FULL ? &r->n_full : &r->n_coarse);
    *out = r;
    return 0;
}

static void close_sensor(struct nrg_sensor_reader *r)
{
    if (r->state)
        r->found.driver->close(r->state);
    r->state = NULL;
}

void nrg_reader_leave(struct nrg_sensor_reader *r, enum nrg_wire_view view)
{
    --*(view == NRG_VIEW_FULL ? &r->n_full : &r->n_coarse);
    if (!is_used(r))
        close_sensor(r);
}

/* Rows of a driver, by group, become one row of all channels. */
struct catcher {
    struct nrg_sink sink;
    struct nrg_sensor_reader *reader;
    int64_t first_ns, last_ns;
};

static void on_row(struct nrg_sink *sink, unsigned group, int64_t t_ns, int64_t width_ns,
                   const int64_t *raw)
{
    struct catcher *c = (struct catcher *)sink;
    const struct nrg_found *found = &c->reader->found;
    size_t first = 0;
    while (first < found->n_channels && found->channels[first].group != group)
        first++;
    nrg_pulse_row(&c->reader->pulse, found, group, t_ns, raw);
    for (size_t i = 0; i < c->reader->n; i++) {
        size_t number = c->reader->number[i];
        if (found->channels[number].group == group)
            c->reader->now.raw[i] = raw[number - first];
    }
    if (!c->first_ns || t_ns - width_ns / 2 < c->first_ns)
        c->first_ns = t_ns - width_ns / 2;
    if (t_ns + width_ns / 2 > c->last_ns)
        c->last_ns = t_ns + width_ns / 2;
}

static void on_fault(struct nrg_sink *sink, unsigned channel, int error)
{
    struct catcher *c = (struct catcher *)sink;
    for (size_t i = 0; i < c->reader->n; i++)
        if (c->reader->number[i] == channel)
            c->reader->now.error[i] = error;
}

static void on_epoch(struct nrg_sink *sink, int64_t epoch)
{
    struct catcher *c = (struct catcher *)sink;
    c->reader->now.epoch = epoch;
}

/* 0, or -ENODEV: it went away and is not back. */
static int open_again(struct nrg_sensor_reader *r)
{
    int64_t now_ns = nrg_now_ns();
    if (r->state)
        return 0;
    if (now_ns < r->retry_ns)
        return -ENODEV;
    r->retry_ns = now_ns + RETRY_NS;
    if (r->found.driver->open(r->ctx, &r->found, &r->state, NULL))
        r->state = NULL;
    return r->state ? 0 : -ENODEV;
}

/* A dead one is read until another is open: it may come to life by itself. */
static void open_anew(struct nrg_sensor_reader *r)
{
    void *state;
    if (!nrg_pulse_lacks(&r->pulse, &r->found, nrg_now_ns()) ||
        r->found.driver->open(r->ctx, &r->found, &state, NULL))
        return;
    close_sensor(r);
    r->state = state;
    r->pulse.opened = true;
}

void nrg_reader_read(struct nrg_sensor_reader *r)
{
    struct catcher c = {.sink = {.row = on_row, .fault = on_fault, .epoch = on_epoch}, .reader = r};
    if (nrg_now_ns() - r->now.t_ns < NRG_FULL_PERIOD_NS)
        return;
    for (size_t i = 0; i < NRG_WIRE_CHANNELS; i++) {
        r->now.raw[i] = NRG_MISSING;
        r->now.error[i] = 0;
    }
    int rc = open_again(r);
    if (!rc)
        rc = r->found.driver->read(r->state, &c.sink);
    if (rc == -ENODEV && r->state) {
        close_sensor(r);
        r->retry_ns = nrg_now_ns() + RETRY_NS;
    }
    if (!rc)
        open_anew(r);
    int64_t now_ns = nrg_now_ns();
    for (size_t i = 0; rc && i < r->n; i++)
        r->now.error[i] = rc;
    r->now.t_ns = c.first_ns ? c.first_ns + (c.last_ns - c.first_ns) / 2 : now_ns;
    r->now.width_ns = c.first_ns ? c.last_ns - c.first_ns : 0;
}
