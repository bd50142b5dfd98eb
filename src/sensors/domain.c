/* See domain.h. A table, because the rules are exceptions rather than logic. */
#include "sensors/domain.h"

#include <stdio.h>
#include <string.h>

static const struct rule {
    const char *name; /* ends in '-': a prefix, the rest is the package's suffix */
    bool wide, covers_cpu;
    const char *parent; /* ends in '-': the suffix is appended */
} rules[] = {
    {"wall", true, true, ""},
    {"machine", true, true, "wall"},
    {"battery", true, true, ""},
    {"psys", true, true, "machine"},
    {"package-", false, true, "psys"},
    {"core-", false, true, "package-"},
    {"uncore-", false, false, "package-"},
    {"dram-", false, false, "psys"},
};

static bool ends_in_dash(const char *text)
{
    size_t len = strlen(text);
    return len && text[len - 1] == '-';
}

void nrg_domain_describe(struct nrg_channel *channel)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        const struct rule *rule = &rules[i];
        size_t len = strlen(rule->name);
        bool prefix = ends_in_dash(rule->name);
        if (prefix ? strncmp(channel->name, rule->name, len) : strcmp(channel->name, rule->name))
            continue;
        channel->wide |= rule->wide;
        channel->covers_cpu |= rule->covers_cpu;
        if (!channel->parent[0])
            snprintf(channel->parent, sizeof channel->parent, "%s%.30s", rule->parent,
                     ends_in_dash(rule->parent) ? channel->name + len : "");
        return;
    }
}
