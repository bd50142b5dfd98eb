/* See live.h. */
#include "record/live.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void nrg_live_init(struct nrg_live *live)
{
    *live = (struct nrg_live){0};
    pthread_mutex_init(&live->lock, NULL);
}

void nrg_live_release(struct nrg_live *live)
{
    free(live->channels);
    live->channels = NULL;
    live->n = live->cap = 0;
    pthread_mutex_destroy(&live->lock);
}

/* .low, .high and .idle accompany an estimate. */
static bool is_companion(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot && (!strcmp(dot, ".low") || !strcmp(dot, ".high") || !strcmp(dot, ".idle"));
}

int nrg_live_add(struct nrg_live *live, const struct nrg_found *found)
{
    for (size_t c = 0; c < found->n_channels; c++) {
        const struct nrg_channel *channel = &found->channels[c];
        unsigned column = 0;
        for (size_t k = 0; k < c; k++)
            column += found->channels[k].group == channel->group;
        if (!found->wanted[c] || is_companion(channel->name) ||
            (channel->quantity != NRG_ENERGY && channel->quantity != NRG_POWER))
            continue;
        if (nrg_reserve(&live->channels, &live->cap, live->n + 1, sizeof *live->channels))
            return -ENOMEM;
        live->channels[live->n++] = (struct nrg_live_channel){
            .found = found, .channel = channel, .column = column, .t_ns = NRG_MISSING};
    }
    return 0;
}

static const struct nrg_channel *find(const struct nrg_live *live, const char *name)
{
    for (size_t i = 0; name[0] && i < live->n; i++)
        if (!strcmp(live->channels[i].channel->name, name))
            return live->channels[i].channel;
    return NULL;
}

static bool contained(const struct nrg_live *live, const struct nrg_channel *c)
{
    const struct nrg_channel *above = find(live, c->parent);
    for (int depth = 0; above && depth < 16; depth++) {
        if (!above->wide)
            return true;
        above = find(live, above->parent);
    }
    return false;
}

static bool has_counter(const struct nrg_live *live, const char *name)
{
    for (size_t i = 0; i < live->n; i++)
        if (live->channels[i].channel->quantity == NRG_ENERGY &&
            !strcmp(live->channels[i].channel->name, name))
            return true;
    return false;
}

static struct nrg_live_channel *widest(const struct nrg_live *live)
{
    static const char *const order[] = {"wall", "machine", "battery", "psys"};
    struct nrg_live_channel *found = NULL;
    size_t best = 0;
    for (size_t i = 0; i < live->n; i++) {
        struct nrg_live_channel *c = &live->channels[i];
        bool second = c->channel->quantity == NRG_POWER && has_counter(live, c->channel->name);
        if (!c->channel->wide || second)
            continue;
        size_t rank = 0;
        while (rank < sizeof order / sizeof *order && strcmp(c->channel->name, order[rank]) != 0)
            rank++;
        if (!found || rank < best) {
            found = c;
            best = rank;
        }
    }
    return found;
}

void nrg_live_choose(struct nrg_live *live)
{
    bool any = false, processors = false;
    for (size_t i = 0; i < live->n; i++) {
        struct nrg_live_channel *c = &live->channels[i];
        bool second = c->channel->quantity == NRG_POWER && has_counter(live, c->channel->name);
        c->counted = !c->channel->wide && !second && !contained(live, c->channel);
        any |= c->counted;
        processors |= c->counted && c->channel->covers_cpu;
    }
    struct nrg_live_channel *wide = widest(live);
    if (!wide || (any && (processors || !wide->channel->covers_cpu)))
        return;
    for (size_t i = 0; i < live->n; i++)
        live->channels[i].counted = &live->channels[i] == wide;
}

static void add_reading(struct nrg_live_channel *c, int64_t t_ns, int64_t raw)
{
    const struct nrg_channel *channel = c->channel;
    if (raw == NRG_MISSING || (c->t_ns != NRG_MISSING && t_ns < c->t_ns))
        return;
    if (c->t_ns != NRG_MISSING && channel->kind == NRG_COUNTER) {
        uint64_t step = (uint64_t)raw - (uint64_t)c->raw;
        bool wrapped = raw < c->raw && channel->wrap;
        if (raw >= c->raw || wrapped)
            c->energy_j += (double)(wrapped ? step + channel->wrap : step) * channel->scale;
    } else if (c->t_ns != NRG_MISSING) {
        double mean_w = ((double)raw + (double)c->raw) / 2 * channel->scale;
        c->energy_j += mean_w * (double)(t_ns - c->t_ns) * 1e-9;
    }
    c->raw = raw;
    c->t_ns = t_ns;
}

void nrg_live_row(struct nrg_live *live, const struct nrg_found *found, unsigned group,
                  int64_t t_ns, const int64_t *raw)
{
    pthread_mutex_lock(&live->lock);
    for (size_t i = 0; i < live->n; i++) {
        struct nrg_live_channel *c = &live->channels[i];
        if (c->counted && c->found == found && c->channel->group == group)
            add_reading(c, t_ns, raw[c->column]);
    }
    pthread_mutex_unlock(&live->lock);
}

int nrg_live_energy(struct nrg_live *live, struct nrg_live_sum *sum)
{
    *sum = (struct nrg_live_sum){.t_ns = NRG_MISSING};
    pthread_mutex_lock(&live->lock);
    for (size_t i = 0; i < live->n; i++) {
        const struct nrg_live_channel *c = &live->channels[i];
        if (!c->counted || c->t_ns == NRG_MISSING)
            continue;
        sum->energy_j += c->energy_j;
        if (c->t_ns > sum->t_ns)
            sum->t_ns = c->t_ns;
        if (c->channel->provenance > sum->provenance)
            sum->provenance = c->channel->provenance;
    }
    pthread_mutex_unlock(&live->lock);
    return sum->t_ns != NRG_MISSING ? 0 : -ENODATA;
}
