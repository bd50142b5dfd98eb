/* See covers.h. The command line's rules go before those of nrg.conf. */
#include "sensors/covers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sensors/meter/config.h"

enum cover { MACHINE, CPU, PART, NONE, COVERS };

static const char *const words[COVERS] = {"machine", "cpu", "part", "none"};

struct rule {
    char rail[48];
    const char *what, *where; /* where: "--covers", or file and line */
};

static bool is_energy(const struct nrg_channel *c)
{
    return (c->quantity == NRG_POWER || c->quantity == NRG_ENERGY) && !nrg_channel_is_companion(c);
}

static int given_rule(const char *text, struct rule *rule, struct nrg_error *err)
{
    const char *equals = strrchr(text, '=');
    if (!equals || equals == text || equals - text >= (ptrdiff_t)sizeof rule->rail)
        return nrg_fail(err, -EINVAL, "--covers", "wants RAIL=machine, cpu, part or none, not '%s'",
                        text);
    snprintf(rule->rail, sizeof rule->rail, "%.*s", (int)(equals - text), text);
    rule->what = equals + 1;
    rule->where = "--covers";
    return 0;
}

/* The k-th rule. 1: there is one, 0: no more, -errno. */
static int rule_at(const struct nrg_sensor_options *o, size_t k, struct rule *rule,
                   struct nrg_error *err)
{
    size_t given = 0;
    while (o->covers && o->covers[given])
        given++;
    if (k < given) {
        int rc = given_rule(o->covers[k], rule, err);
        return rc ? rc : 1;
    }
    if (!o->config || k - given >= o->config->n_covers)
        return 0;
    const struct nrg_meter_entry *entry = &o->config->covers[k - given];
    snprintf(rule->rail, sizeof rule->rail, "%.47s", entry->name);
    rule->what = entry->text;
    rule->where = entry->where;
    return 1;
}

static int cover_of(const struct rule *rule, enum cover *cover, struct nrg_error *err)
{
    for (*cover = 0; *cover < COVERS; ++*cover)
        if (!strcmp(words[*cover], rule->what))
            return 0;
    return nrg_fail(err, -EINVAL, rule->where, "%s: covers machine, cpu, part or none, not '%.40s'",
                    rule->rail, rule->what);
}

/* The channel of another name that is measured and has the processors in it; NULL. */
static const struct nrg_channel *other_with_cpu(const struct nrg_probe *probe, const char *rail,
                                                bool wide)
{
    for (size_t f = 0; f < probe->n_found; f++) {
        const struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; !found->hidden && c < found->n_channels; c++) {
            const struct nrg_channel *channel = &found->channels[c];
            if (channel->covers_cpu && channel->wide == wide && strcmp(channel->name, rail) != 0 &&
                channel->provenance != NRG_ESTIMATED)
                return channel;
        }
    }
    return NULL;
}

static int set_cover(struct nrg_probe *probe, struct nrg_channel *c, const struct rule *rule,
                     struct nrg_error *err)
{
    enum cover cover;
    int rc = cover_of(rule, &cover, err);
    const struct nrg_channel *other =
        !rc && cover == CPU ? other_with_cpu(probe, c->name, false) : NULL;
    if (rc)
        return rc;
    if (other)
        return nrg_fail(err, -EINVAL, rule->where,
                        "%s=cpu: %s measures the processors already, and both would be added",
                        rule->rail, other->name);
    c->wide = cover == MACHINE || cover == NONE;
    c->covers_cpu = cover == MACHINE || cover == CPU;
    c->parent[0] = '\0';
    return 0;
}

/* The first rule for a channel. */
static int apply_rules(struct nrg_probe *probe, struct nrg_channel *c, struct nrg_error *err)
{
    struct rule rule;
    int rc = 0;
    for (size_t k = 0; (rc = rule_at(probe->options, k, &rule, err)) > 0; k++)
        if (!strcmp(rule.rail, c->name))
            return set_cover(probe, c, &rule, err);
    return rc;
}

int nrg_covers_apply(struct nrg_probe *probe, size_t first, struct nrg_error *err)
{
    int rc = 0;
    for (size_t f = first; !rc && f < probe->n_found; f++) {
        struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; !rc && c < found->n_channels; c++)
            if (is_energy(&found->channels[c]))
                rc = apply_rules(probe, &found->channels[c], err);
    }
    return rc;
}

static bool has_rail(const struct nrg_probe *probe, const char *rail)
{
    for (size_t f = 0; f < probe->n_found; f++)
        for (size_t c = 0; c < probe->found[f].n_channels; c++)
            if (is_energy(&probe->found[f].channels[c]) &&
                !strcmp(probe->found[f].channels[c].name, rail))
                return true;
    return false;
}

int nrg_covers_check(struct nrg_probe *probe, struct nrg_error *err)
{
    struct rule rule;
    enum cover cover;
    int rc = 0, checked = 0;
    for (size_t k = 0; !checked && (rc = rule_at(probe->options, k, &rule, err)) > 0; k++) {
        checked = cover_of(&rule, &cover, err);
        if (checked || has_rail(probe, rule.rail))
            continue;
        checked =
            !strcmp(rule.where, "--covers")
                ? nrg_fail(err, -EINVAL, rule.where,
                           "nothing that measures power is called '%s': see nrg sensors", rule.rail)
                : nrg_probe_unavailable(probe, rule.rail, NULL,
                                        "%s: nothing that measures power is called so", rule.where);
    }
    return checked ? checked : rc;
}
