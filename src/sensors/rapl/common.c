/*
 * See rapl/common.h. The counter steps about every millisecond. No socket draws a kilowatt, which
 * bounds how often a 32-bit counter can have wrapped between two reads; psys covers a whole
 * board.
 */
#include "sensors/rapl/common.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/files.h"

struct nrg_channel *nrg_rapl_channel(struct nrg_found *found, const char *domain,
                                     const char *suffix)
{
    char name[48];
    bool psys = !strcmp(domain, "psys");
    bool package = !strcmp(domain, "package");
    if (psys)
        nrg_copy(name, sizeof name, "psys");
    else
        snprintf(name, sizeof name, "%.20s-%.20s", domain, suffix);
    struct nrg_channel *channel = nrg_found_channel(found, name, NRG_ENERGY, NRG_COUNTER);
    if (!channel)
        return NULL;
    channel->update_ns = NRG_NS_PER_MS;
    channel->limit_w = psys ? 4000 : 1000;
    channel->wide = psys;
    channel->covers_cpu = psys || package || !strcmp(domain, "core");
    if (package || !strcmp(domain, "dram"))
        nrg_copy(channel->parent, sizeof channel->parent, "psys");
    else if (!psys)
        snprintf(channel->parent, sizeof channel->parent, "package-%.20s", suffix);
    return channel;
}

void nrg_rapl_fix_parents(struct nrg_probe *probe, size_t first_found)
{
    for (size_t f = first_found; f < probe->n_found; f++) {
        struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; c < found->n_channels; c++)
            if (!nrg_find_channel(probe, found->channels[c].parent, NRG_QUANTITIES))
                found->channels[c].parent[0] = '\0';
    }
}
