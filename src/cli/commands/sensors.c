/*
 * nrg sensors: what can be measured here, and how to get the rest. It never fails: on a machine
 * without sensors it says what will be estimated and how wrong that may be.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json/set.h"
#include "cli/desk.h"
#include "cli/internal.h"
#include "sensors/registry.h"

struct values {
    const char *json;
    struct nrg_list sensors;
    struct nrg_desk desk;
    bool all;
};

static const struct nrg_opt options[] = {
    {"json", 'j', NRG_OPT_FILE, "FILE", "machine-readable, to stdout or FILE",
     offsetof(struct values, json)},
    {"sensor", 's', NRG_OPT_LIST, "DRIVER[:ARG]", "only this driver; may be repeated",
     offsetof(struct values, sensors)},
    NRG_DESK_OPTIONS(struct values, desk),
    {"all", 'a', NRG_OPT_FLAG, NULL, "also channels that another driver already serves",
     offsetof(struct values, all)},
    {0},
};

static void format_period(char *buf, size_t size, int64_t ns)
{
    if (!ns)
        snprintf(buf, size, "-");
    else if (ns < 1000000000)
        snprintf(buf, size, "%g ms", (double)ns / 1e6);
    else
        snprintf(buf, size, "%g s", (double)ns / 1e9);
}

static void print_channel(const struct nrg_found *found, const struct nrg_channel *c, bool wanted,
                          int width)
{
    char period[32], resolution[32] = "-";
    format_period(period, sizeof period, c->update_ns);
    if (c->resolution > 0)
        snprintf(resolution, sizeof resolution, "%.3g %s", c->resolution,
                 nrg_quantity_unit(c->quantity));
    printf("%-*s %-12s %-5s %-8s %-10s %-9s %-10s %-14s %s%s\n", width, c->name,
           nrg_quantity_name(c->quantity), nrg_quantity_unit(c->quantity), nrg_kind_name(c->kind),
           nrg_provenance_name(c->provenance), period, resolution, found->driver->name,
           found->sensor, wanted ? "" : "  (not used: served by another)");
}

/* The bounds of an estimate are shown in its own line, not as channels. */
static bool is_band(const struct nrg_channel *c)
{
    return c->provenance == NRG_ESTIMATED && nrg_channel_is_companion(c);
}

static int name_width(const struct nrg_probe *probe)
{
    size_t width = 22;
    for (size_t f = 0; f < probe->n_found; f++)
        for (size_t c = 0; c < probe->found[f].n_channels; c++)
            if (strlen(probe->found[f].channels[c].name) > width)
                width = strlen(probe->found[f].channels[c].name);
    return (int)width;
}

/* Returns how many it printed, and in *unwanted how many another driver serves. */
static size_t print_channels(const struct nrg_probe *probe, bool all, size_t *unwanted)
{
    size_t shown = 0;
    int width = name_width(probe);
    for (size_t f = 0; f < probe->n_found; f++) {
        const struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; c < found->n_channels; c++) {
            *unwanted += !found->wanted[c];
            if (!all && (!found->wanted[c] || is_band(&found->channels[c])))
                continue;
            if (!shown++)
                printf("%-*s %-12s %-5s %-8s %-10s %-9s %-10s %-14s %s\n", width, "CHANNEL",
                       "QUANTITY", "UNIT", "KIND", "PROVENANCE", "UPDATE", "RESOLUTION", "DRIVER",
                       "SENSOR");
            print_channel(found, &found->channels[c], found->wanted[c], width);
        }
    }
    return shown;
}

/* What an estimate is made of and how wrong it may be. */
static void print_estimates(const struct nrg_probe *probe)
{
    bool any = false;
    for (size_t f = 0; f < probe->n_found; f++) {
        const struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; c < found->n_channels; c++) {
            const struct nrg_channel *channel = &found->channels[c];
            if (!found->wanted[c] || channel->provenance != NRG_ESTIMATED || is_band(channel))
                continue;
            printf("%s  %s: %s",
                   any ? ""
                       : "\nNo power sensor covers the processors, so these are "
                         "estimated from utilisation:\n",
                   channel->name, channel->source);
            if (channel->error_low > 0 || channel->error_high > 0)
                printf("; the truth may be %.0f %% lower or %.0f %% higher (at full load)",
                       100 * channel->error_low, 100 * channel->error_high);
            putchar('\n');
            any = true;
        }
    }
    if (any)
        printf("  Better: --cpu-watts IDLE:FULL with this machine's own watts, or a meter at the "
               "plug.\n");
}

/* Rails of which nobody knows what they measure: see sensors/covers.h. */
static void print_unplaced(const struct nrg_probe *probe)
{
    const char *last = NULL;
    for (size_t f = 0; f < probe->n_found; f++) {
        const struct nrg_found *found = &probe->found[f];
        for (size_t c = 0; c < found->n_channels; c++) {
            const struct nrg_channel *channel = &found->channels[c];
            if (!found->wanted[c] || !channel->wide || channel->covers_cpu ||
                (found->driver->flags & NRG_ON_REQUEST))
                continue;
            printf("%s%s",
                   last ? ", " : "\nShown but not added, as nothing says what they measure: ",
                   channel->name);
            last = channel->name;
        }
    }
    if (last)
        printf("\n  --covers %s=machine (or cpu, part, none) says it, here and in nrg run.\n",
               last);
}

static void print_unavailable(const struct nrg_probe *probe)
{
    for (size_t u = 0; u < probe->n_unavailable; u++) {
        const struct nrg_unavailable *no = &probe->unavailable[u];
        printf("%s%s: %s\n", u ? "" : "\nNot available:\n", no->what, no->why);
        bool next_same = u + 1 < probe->n_unavailable && no->fix[0] &&
                         !strcmp(no->fix, probe->unavailable[u + 1].fix);
        if (next_same) /* five zones with one remedy: it is printed below the last */
            continue;
        for (const char *line = no->fix; *line;) {
            size_t len = strcspn(line, "\n");
            printf("    %.*s\n", (int)len, line);
            line += len + (line[len] == '\n');
        }
    }
}

static void print_text(const struct nrg_probe *probe, bool all)
{
    size_t unwanted = 0;
    if (!print_channels(probe, all, &unwanted))
        printf("Nothing can be measured here.\n");
    if (!all && unwanted)
        printf("%zu more channels are served twice: --all lists them, --sensor DRIVER uses them\n",
               unwanted);
    print_estimates(probe);
    print_unplaced(probe);
    print_unavailable(probe);
}

static json_t *channel_json(const struct nrg_found *found, const struct nrg_channel *c, bool wanted)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "name", c->name, "driver",
                          found->driver->name, "sensor", found->sensor, "quantity",
                          nrg_quantity_name(c->quantity), "kind", nrg_kind_name(c->kind),
                          "provenance", nrg_provenance_name(c->provenance), "used", (int)wanted);
    nrg_json_real(o, "update_period_s", c->update_ns ? (double)c->update_ns / 1e9 : NAN);
    nrg_json_real(o, "resolution", c->resolution > 0 ? c->resolution : NAN);
    nrg_json_text(o, "unit", nrg_quantity_unit(c->quantity));
    nrg_json_text(o, "parent", c->parent);
    nrg_json_real(o, "wrap_range", c->wrap ? (double)c->wrap * c->scale : NAN);
    nrg_json_real(o, "window_s", c->window_ns ? (double)c->window_ns / 1e9 : NAN);
    nrg_json_real(o, "lag_s", c->lag_ns ? (double)c->lag_ns / 1e9 : NAN);
    if (c->error_low > 0 || c->error_high > 0)
        NRG_JSON_REALS(o, {"error_low_percent", c->error_low * 100},
                       {"error_high_percent", c->error_high * 100});
    nrg_json_text(o, "source", c->source);
    return o;
}

static json_t *to_json(const struct nrg_probe *probe)
{
    json_t *doc =
        json_pack("{s:s, s:[], s:[]}", "schema", "nrg.sensors/1", "channels", "unavailable");
    for (size_t f = 0; f < probe->n_found; f++)
        for (size_t c = 0; c < probe->found[f].n_channels; c++)
            json_array_append_new(json_object_get(doc, "channels"),
                                  channel_json(&probe->found[f], &probe->found[f].channels[c],
                                               probe->found[f].wanted[c]));
    for (size_t u = 0; u < probe->n_unavailable; u++) {
        const struct nrg_unavailable *no = &probe->unavailable[u];
        json_t *o = json_pack("{s:s, s:s, s:s}", "what", no->what, "why", no->why, "driver",
                              no->driver->name);
        nrg_json_text(o, "fix", no->fix);
        json_array_append_new(json_object_get(doc, "unavailable"), o);
    }
    return doc;
}

static int run_sensors(struct nrg_cli *cli, void *v, int argc, char **argv)
{
    struct values *values = v;
    struct nrg_sensor_options opts = {.only = values->sensors.items};
    struct nrg_probe probe;
    struct nrg_error err;
    int code = 0;
    if (argc)
        return nrg_usage(cli, "takes no arguments, but was given '%s'", argv[0]);
    if (nrg_desk_read(&values->desk, cli, &opts, &err))
        return nrg_complain(&err, 2);
    if (nrg_probe_all(&probe, &cli->ctx, &opts, &err)) {
        code = nrg_complain(&err, 2);
    } else {
        if (values->json)
            code = nrg_print_json(to_json(&probe), values->json);
        else
            print_text(&probe, values->all);
        nrg_probe_release(&probe);
    }
    nrg_desk_release(&values->desk);
    return code;
}

const struct nrg_command nrg_cmd_sensors = {
    .name = "sensors",
    .summary = "what can be measured here, and how to get the rest",
    .synopsis = "[--json] [--sensor DRIVER] [--meter URI] [--all]",
    .about =
        "Lists every channel that can be read on this machine, with its provenance (measured,\n"
        "derived or estimated), update period and resolution; and for everything that can't\n"
        "be read: why, and the exact commands or files that would make it readable.",
    .examples = "  nrg sensors                      # this machine\n"
                "  nrg sensors --json | jq .channels\n"
                "  nrg sensors --root captured/     # a captured /sys and /proc\n",
    .options = options,
    .values_size = sizeof(struct values),
    .opens_sensors = true,
    .run = run_sensors,
};
