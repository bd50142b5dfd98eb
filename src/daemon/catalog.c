/*
 * See catalog.h. A file that everybody may read is not served: whoever can open it needs no daemon,
 * and the less is handed out the better.
 */
#include "daemon/catalog.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/mem.h"
#include "daemon/drivers.h"
#include "sensors/probe.h"

#define STALE_NS  (5 * NRG_NS_PER_S)
#define MAX_ALIVE 4

static bool is_open_to_all(const struct nrg_root *root, const char *source)
{
    struct stat st;
    char path[sizeof((struct nrg_channel *)NULL)->source];
    nrg_copy(path, sizeof path, source);
    path[strcspn(path, "*")] = '\0'; /* a product of two files: by the first */
    return path[0] == '/' && !nrg_root_stat(root, path, &st) && (st.st_mode & S_IROTH);
}

/* Which of a sensor's channels are served; how is found out by opening it once. */
static bool examine(const struct nrg_context *ctx, const struct nrg_found *found,
                    struct nrg_served *served)
{
    int fds[NRG_SHARE_MAX];
    enum nrg_share how;
    void *state;
    bool closed = false;
    *served = (struct nrg_served){.found = found};
    for (size_t c = 0; c < found->n_channels && served->n < NRG_WIRE_CHANNELS; c++) {
        if (!found->wanted[c])
            continue;
        served->number[served->n++] = c;
        closed |= !is_open_to_all(&ctx->root, found->channels[c].source);
    }
    if (!served->n || !closed || found->driver->open(ctx, found, &state, NULL))
        return false;
    served->how = NRG_HOW_ASK;
    if (found->driver->share && found->driver->share(state, &how, fds) == (int)served->n)
        served->how = how == NRG_SHARE_NUMBER ? NRG_HOW_NUMBER : NRG_HOW_COUNT;
    found->driver->close(state);
    return true;
}

static struct nrg_catalog *make_catalog(const struct nrg_context *ctx)
{
    struct nrg_catalog *catalog = nrg_calloc(1, sizeof *catalog);
    if (!catalog || nrg_probe_drivers(&catalog->probe, ctx, nrg_daemon_drivers, NULL)) {
        free(catalog);
        return NULL;
    }
    for (size_t f = 0; f < catalog->probe.n_found && catalog->n < NRG_WIRE_SENSORS; f++)
        if (!catalog->probe.found[f].hidden &&
            examine(ctx, &catalog->probe.found[f], &catalog->items[catalog->n]))
            catalog->n++;
    catalog->made_ns = nrg_now_ns();
    return catalog;
}

static void free_catalog(struct nrg_catalog *catalog)
{
    nrg_probe_release(&catalog->probe);
    free(catalog);
}

/* Unused ones go, except the newest. */
static size_t drop_unused(struct nrg_catalogs *catalogs)
{
    size_t alive = 0;
    for (struct nrg_catalog **at = &catalogs->newest; *at;) {
        struct nrg_catalog *catalog = *at;
        if (catalog->users || catalog == catalogs->newest) {
            alive++;
            at = &catalog->next;
        } else {
            *at = catalog->next;
            free_catalog(catalog);
        }
    }
    return alive;
}

static bool is_same_sensor(const struct nrg_served *a, const struct nrg_served *b)
{
    struct nrg_wire_channel x, y;
    bool same = a->found->driver == b->found->driver && a->how == b->how && a->n == b->n &&
                !strcmp(a->found->sensor, b->found->sensor) &&
                !strcmp(a->found->locator, b->found->locator);
    for (size_t i = 0; same && i < a->n; i++) {
        nrg_wire_put_channel(&x, &a->found->channels[a->number[i]]);
        nrg_wire_put_channel(&y, &b->found->channels[b->number[i]]);
        same = a->number[i] == b->number[i] && !memcmp(&x, &y, sizeof x);
    }
    return same;
}

/* Nothing has changed: no list of its own. Else who comes again and again would keep as many as
 * may be alive, and what comes later would be on none. */
static bool is_same_list(const struct nrg_catalog *a, const struct nrg_catalog *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = is_same_sensor(&a->items[i], &b->items[i]);
    return same;
}

struct nrg_catalog *nrg_catalog_get(struct nrg_catalogs *catalogs)
{
    size_t alive = drop_unused(catalogs);
    struct nrg_catalog *newest = catalogs->newest;
    if (!newest || (nrg_now_ns() - newest->made_ns >= STALE_NS && alive < MAX_ALIVE)) {
        struct nrg_catalog *made = make_catalog(catalogs->ctx);
        if (made && newest && is_same_list(made, newest)) {
            newest->made_ns = made->made_ns;
            free_catalog(made);
        } else if (made) {
            made->next = newest;
            catalogs->newest = newest = made;
            drop_unused(catalogs);
        }
    }
    if (newest)
        newest->users++;
    return newest;
}

void nrg_catalog_put(struct nrg_catalogs *catalogs, struct nrg_catalog *catalog)
{
    catalog->users--;
    drop_unused(catalogs);
}

void nrg_catalogs_release(struct nrg_catalogs *catalogs)
{
    drop_unused(catalogs);
    if (catalogs->newest && !catalogs->newest->users) {
        free_catalog(catalogs->newest);
        catalogs->newest = NULL;
    }
    nrg_readers_release(&catalogs->readers);
}

/* Volts and amperes are steps of the same watts. */
static bool is_shown(const struct nrg_channel *channel, enum nrg_wire_view view)
{
    return view == NRG_VIEW_FULL ||
           (channel->quantity == NRG_ENERGY && channel->kind == NRG_COUNTER) ||
           channel->quantity == NRG_POWER;
}

/* Numbers, among the served channels, of those that a view shows. */
static size_t shown_channels(const struct nrg_served *served, enum nrg_wire_view view,
                             size_t shown[NRG_WIRE_CHANNELS])
{
    size_t n = 0;
    for (size_t i = 0; i < served->n; i++)
        if (is_shown(&served->found->channels[served->number[i]], view))
            shown[n++] = i;
    return n;
}

bool nrg_served_describe(const struct nrg_served *served, enum nrg_wire_view view,
                         struct nrg_wire_sensor *out)
{
    size_t shown[NRG_WIRE_CHANNELS];
    size_t n = shown_channels(served, view, shown);
    nrg_copy(out->name, sizeof out->name, served->found->sensor);
    nrg_copy(out->driver, sizeof out->driver, served->found->driver->name);
    out->how = view == NRG_VIEW_FULL ? served->how : NRG_HOW_ASK;
    out->n_channels = (uint32_t)n;
    for (size_t i = 0; i < n; i++) {
        struct nrg_channel channel = served->found->channels[served->number[shown[i]]];
        channel.group = 0;
        if (view == NRG_VIEW_COARSE) {
            channel.scale = channel.resolution = NRG_COARSE_STEP;
            channel.wrap = 0;
            channel.update_ns = NRG_COARSE_PERIOD_NS;
        }
        nrg_wire_put_channel(&out->channels[i], &channel);
    }
    return n > 0;
}

int nrg_served_share(const struct nrg_context *ctx, const struct nrg_served *served,
                     uint32_t wanted, void **state, int fds[NRG_SHARE_MAX])
{
    bool some[NRG_WIRE_CHANNELS + NRG_POLL_MAX] = {false};
    struct nrg_found found = *served->found;
    enum nrg_share how;
    if (served->how == NRG_HOW_ASK || found.n_channels > sizeof some / sizeof *some)
        return -ENOTSUP;
    for (size_t i = 0; i < served->n; i++)
        some[served->number[i]] = wanted >> i & 1;
    found.wanted = some;
    int rc = found.driver->open(ctx, &found, state, NULL);
    if (rc)
        return rc;
    rc = found.driver->share(*state, &how, fds);
    if (rc < 0)
        found.driver->close(*state);
    return rc;
}

void nrg_served_close(const struct nrg_served *served, void *state)
{
    served->found->driver->close(state);
}

static bool is_same(const struct nrg_channel *a, const struct nrg_channel *b)
{
    return a->quantity == b->quantity && a->kind == b->kind && !strcmp(a->name, b->name) &&
           !memcmp(&a->scale, &b->scale, sizeof a->scale);
}

/* A newer list may have channels that the reader, which was opened before it, has not. */
static void find_places(struct nrg_served *served)
{
    const struct nrg_sensor_reader *r = served->reader;
    for (size_t i = 0; i < served->n; i++) {
        const struct nrg_channel *channel = &served->found->channels[served->number[i]];
        size_t place = 0;
        while (place < r->n && !is_same(channel, &r->found.channels[r->number[place]]))
            place++;
        served->place[i] = place < r->n ? place : NRG_WIRE_CHANNELS;
    }
}

int nrg_served_use(struct nrg_catalogs *catalogs, struct nrg_served *served,
                   enum nrg_wire_view view)
{
    int rc = nrg_reader_use(&catalogs->readers, catalogs->ctx, served->found, served->number,
                            served->n, view, &served->reader);
    if (!rc)
        find_places(served);
    return rc;
}

void nrg_served_leave(struct nrg_served *served, enum nrg_wire_view view)
{
    nrg_reader_leave(served->reader, view);
}

void nrg_served_row(struct nrg_served *served, enum nrg_wire_view view, uint32_t wanted,
                    struct nrg_wire_row *out)
{
    size_t shown[NRG_WIRE_CHANNELS];
    size_t n = shown_channels(served, view, shown);
    bool full = view == NRG_VIEW_FULL;
    if (full)
        nrg_reader_read(served->reader);
    const struct nrg_wire_row *row = full ? &served->reader->now : &served->reader->tick;
    out->t_ns = row->t_ns;
    out->width_ns = row->width_ns;
    out->epoch = row->epoch;
    for (size_t i = 0; i < NRG_WIRE_CHANNELS; i++) {
        size_t place = i < n && wanted >> i & 1 ? served->place[shown[i]] : NRG_WIRE_CHANNELS;
        bool given = place < NRG_WIRE_CHANNELS;
        out->raw[i] = given ? row->raw[place] : NRG_MISSING;
        out->error[i] = given ? row->error[place] : 0;
    }
}

bool nrg_catalogs_tick(struct nrg_catalogs *catalogs)
{
    bool any = false;
    for (struct nrg_sensor_reader *r = catalogs->readers.first; r; r = r->next) {
        if (!r->n_coarse)
            continue;
        nrg_reader_tick(r);
        any = true;
    }
    return any;
}
