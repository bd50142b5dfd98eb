/* nrg meter: bring an external meter up, see which there are, and calibrate one. */
#include "cli/meter/actions.h"

#include <string.h>

static const struct nrg_opt options[] = {
    {"raw", 0, NRG_OPT_FLAG, NULL, "watch: also everything that comes, as it comes",
     offsetof(struct nrg_meter_values, raw)},
    {"json", 'j', NRG_OPT_FLAG, NULL, "watch: one JSON object per line; calibrate: the result",
     offsetof(struct nrg_meter_values, json)},
    {"count", 'n', NRG_OPT_COUNT, "N", "watch: stop after N readings",
     offsetof(struct nrg_meter_values, count)},
    {"for", 't', NRG_OPT_DURATION, "TIME",
     "watch: stop after TIME; calibrate: how long the load lasts, 60s unless given",
     offsetof(struct nrg_meter_values, for_ns)},
    {"against", 'a', NRG_OPT_STRING, "DRIVERS",
     "calibrate: what to compare with, such as rapl+nvml; without it all that is measured here",
     offsetof(struct nrg_meter_values, against)},
    {"max-delay", 0, NRG_OPT_DURATION, "TIME",
     "calibrate: the meter is at most this late or early, 10s unless given",
     offsetof(struct nrg_meter_values, max_delay_ns)},
    {"output", 'o', NRG_OPT_STRING, "FILE", "calibrate: keep the recording",
     offsetof(struct nrg_meter_values, output)},
    {"from", 0, NRG_OPT_STRING, "FILE",
     "calibrate: from a recording that has the meter and its reference; nothing is run",
     offsetof(struct nrg_meter_values, from)},
    {"seed", 0, NRG_OPT_COUNT, "N", "calibrate: another pattern of load",
     offsetof(struct nrg_meter_values, seed)},
    {0},
};

static int run_meter(struct nrg_cli *cli, void *v, int argc, char **argv)
{
    struct nrg_meter_values *values = v;
    int code = 2;
    const char *uri = argc > 1 ? argv[1] : NULL;
    if (argc && !strcmp(argv[0], "list") && argc == 1)
        code = nrg_meter_cmd_list(cli, values);
    else if (argc && !strcmp(argv[0], "watch") && argc <= 2)
        code = nrg_meter_cmd_watch(cli, values, uri);
    else if (argc && !strcmp(argv[0], "calibrate") && argc <= 2)
        code = nrg_meter_cmd_calibrate(cli, values, uri);
    else
        nrg_usage(cli, "wants watch [URI], list, or calibrate [URI]");
    nrg_desk_release(&values->desk);
    return code;
}

const struct nrg_command nrg_cmd_meter = {
    .name = "meter",
    .summary = "external meters: watch one, list what is known, calibrate",
    .synopsis = "watch [OPTIONS] [URI] | list | calibrate [OPTIONS] [URI]",
    .about =
        "watch shows the readings of a meter as they are decoded, and lines that were not\n"
        "understood with the reason; that is how a meter is brought up. At the end it says how\n"
        "many came, how often, and between which values. Without URI: the first of nrg.conf.\n"
        "\n"
        "list shows the meters of nrg.conf, and every kind of meter with its keys and an example.\n"
        "\n"
        "calibrate makes the machine busy and idle in turns, records the meter beside sensors "
        "that\n"
        "are trusted, and finds scale, offset and delay of the meter, with their uncertainties,\n"
        "as keys for the URI. A plug sees more than the chips do: then only delay= is a fault of\n"
        "the meter; scale and offset are the supply's losses and the rest of the machine.",
    .examples = "  nrg meter watch 'emonpi:/dev/ttyAMA0?node=5'\n"
                "  nrg meter watch mqtt://broker/tele/plug/SENSOR --count 5\n"
                "  nrg meter watch 'exec:my-meter?pattern=P={power} W' --json --for 10s\n"
                "  nrg meter list\n"
                "  nrg meter calibrate 'mqtt://broker/plug/power' --against rapl+nvml\n",
    .actions = "watch list calibrate",
    .options = options,
    .values_size = sizeof(struct nrg_meter_values),
    .opens_sensors = true,
    .run = run_meter,
};
