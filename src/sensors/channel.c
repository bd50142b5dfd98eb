/* See channel.h. */
#include "sensors/channel.h"

#include <string.h>

static const char *const quantity_names[] = {"energy",      "power",    "voltage", "current",
                                             "utilisation", "bytes",    "clock",   "temperature",
                                             "seconds",     "apparent", "count"};
static const char *const quantity_units[] = {"J",  "W",  "V", "A",  "", "B",
                                             "Hz", "°C", "s", "VA", ""};
static const char *const kind_names[] = {"counter", "gauge"};
static const char *const provenance_names[] = {"measured", "derived", "estimated"};

#define COUNT(a) (sizeof(a) / sizeof *(a))
_Static_assert(COUNT(quantity_names) == NRG_QUANTITIES, "a name for every quantity");
_Static_assert(COUNT(quantity_units) == NRG_QUANTITIES, "a unit for every quantity");

static int find_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return (int)i;
    return -1;
}

bool nrg_channel_is_running_mean(const struct nrg_channel *c)
{
    return c->kind == NRG_GAUGE && c->quantity == NRG_POWER && c->update_ns > 0 &&
           c->window_ns > c->update_ns;
}

bool nrg_channel_is_companion(const struct nrg_channel *channel)
{
    const char *dot = strrchr(channel->name, '.');
    return dot && (!strcmp(dot, NRG_LOW_SUFFIX) || !strcmp(dot, NRG_HIGH_SUFFIX) ||
                   !strcmp(dot, NRG_IDLE_SUFFIX) || !strcmp(dot, NRG_POLLED_SUFFIX));
}

const char *nrg_quantity_name(enum nrg_quantity q)
{
    return quantity_names[q];
}

const char *nrg_quantity_unit(enum nrg_quantity q)
{
    return quantity_units[q];
}

const char *nrg_kind_name(enum nrg_kind kind)
{
    return kind_names[kind];
}

const char *nrg_provenance_name(enum nrg_provenance provenance)
{
    return provenance_names[provenance];
}

int nrg_quantity_from_name(const char *name)
{
    return find_name(quantity_names, COUNT(quantity_names), name);
}

int nrg_kind_from_name(const char *name)
{
    return find_name(kind_names, COUNT(kind_names), name);
}

int nrg_provenance_from_name(const char *name)
{
    return find_name(provenance_names, COUNT(provenance_names), name);
}
