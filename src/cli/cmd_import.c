/* nrg import: a file of another program as a recording. See import/log.h. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "cli/common.h"
#include "cli/import_layers.h"
#include "import/log.h"

struct values {
    const char *output, *zone, *idle_power, *integrate;
    bool force, per_segment;
    struct nrg_import_layer_values layers;
};

static const struct nrg_opt options[] = {
    {"output", 'o', NRG_OPT_STRING, "FILE", "the recording (default: the input's name with .nrg)",
     offsetof(struct values, output)},
    {"force", 'f', NRG_OPT_FLAG, NULL, "overwrite the recording", offsetof(struct values, force)},
    {"timezone-offset", 0, NRG_OPT_STRING, "HH:MM",
     "local time minus UTC of dates without a zone, such as +02:00 (default: they are UTC)",
     offsetof(struct values, zone)},
    {"integrate", 0, NRG_OPT_STRING, "RULE",
     "power of AIPowerMeter's records: trapezoid between dates (default), or held: the mean over "
     "the interval that ends at the date",
     offsetof(struct values, integrate)},
    {"per-segment", 0, NRG_OPT_FLAG, NULL, "each recording segment is a run of its own",
     offsetof(struct values, per_segment)},
    {"idle-power", 0, NRG_OPT_STRING, "FILE|WATTS",
     "idle power to keep in the recording: a number, or a Jetson's idling_power.json",
     offsetof(struct values, idle_power)},
    {"into", 0, NRG_OPT_STRING, "FILE.nrg",
     "layer times: join them with this recording; the result is a copy of it with spans",
     offsetof(struct values, layers.into)},
    {"power-log", 0, NRG_OPT_STRING, "FILE",
     "layer times: join them with this power log (Jetson log, CSV, AIPowerMeter's records)",
     offsetof(struct values, layers.power_log)},
    {"offset", 0, NRG_OPT_STRING, "SECONDS",
     "added to the times of layers; files without dates count from the beginning of the recording",
     offsetof(struct values, layers.offset)},
    {"align", 0, NRG_OPT_FILE, "RANGE",
     "find the offset of layers by correlating their activity with power, at most so far from "
     "where they are (default: 10s, and everywhere for files without dates)",
     offsetof(struct values, layers.align)},
    {"layout", 0, NRG_OPT_STRING, "RULE",
     "windows of TensorRT's profiler: recorded (default), or packed: end to end before the "
     "cycle's first time stamp",
     offsetof(struct values, layers.layout)},
    {"times", 0, NRG_OPT_STRING, "FILE",
     "trtexec --exportTimes, for the layers of an --exportProfile",
     offsetof(struct values, layers.times)},
    {"domain", 0, NRG_OPT_STRING, "NAME",
     "energy domain that the layers' work uses, such as gpu-0 (default: what the file tells)",
     offsetof(struct values, layers.domain)},
    {0},
};

static int wrong(const char *option, const char *wants, const char *given)
{
    fprintf(stderr, "nrg import: --%s wants %s, not '%s'\n", option, wants, given);
    return 2;
}

static int read_options(const struct values *v, struct nrg_import_options *o)
{
    struct nrg_error err;
    o->held = v->integrate && !strcmp(v->integrate, "held");
    if (v->integrate && !o->held && strcmp(v->integrate, "trapezoid"))
        return wrong("integrate", "trapezoid or held", v->integrate);
    if (v->zone && nrg_parse_zone(v->zone, &o->zone_offset_ns))
        return wrong("timezone-offset", "hours and minutes such as +02:00", v->zone);
    if (!v->idle_power)
        return 0;
    if (!nrg_parse_double(v->idle_power, strlen(v->idle_power), &o->idle_w))
        return o->idle_w >= 0 ? 0 : wrong("idle-power", "watts or a file", v->idle_power);
    return nrg_import_idle_power(v->idle_power, &o->idle_w, &err) ? nrg_complain(&err, 1) : 0;
}

static void say(const struct nrg_cli *cli, const struct nrg_import_options *o,
                const struct nrg_import_result *r)
{
    if (r->unfinished_line)
        fprintf(stderr, "nrg: %s:%lld: the last line is cut off and was left out\n", o->path,
                r->unfinished_line);
    if (!cli->quiet)
        fprintf(stderr,
                "nrg: %s: %llu records in %llu segments, %.3f s, %llu channels, %llu processes\n"
                "recording: %s   (nrg report, nrg export)\n",
                r->format, (unsigned long long)r->records, (unsigned long long)r->segments,
                (double)(r->end_ns - r->begin_ns) / 1e9, (unsigned long long)r->channels,
                (unsigned long long)r->processes, o->output);
}

static int run_log(struct nrg_cli *cli, const struct values *values, struct nrg_import_options *o,
                   const char *path)
{
    struct nrg_import_result result;
    struct nrg_error err;
    char output[4096];
    nrg_import_default_output(path, output, sizeof output);
    o->path = path;
    o->output = values->output ? values->output : output;
    o->overwrite = values->force;
    o->segments_are_runs = values->per_segment;
    if (nrg_import(o, &result, &err))
        return nrg_complain(&err, 1);
    say(cli, o, &result);
    return 0;
}

static int run(struct nrg_cli *cli, void *v, int argc, char **argv)
{
    struct values *values = v;
    struct nrg_import_options o = {.idle_w = NAN};
    if (argc < 1) {
        fprintf(stderr, "nrg import: wants a file: nrg import power_metrics.json -o run.nrg\n");
        return 2;
    }
    int code = read_options(values, &o);
    if (code)
        return code;
    const struct nrg_import_layer_call call = {.values = &values->layers,
                                               .output = values->output,
                                               .force = values->force,
                                               .zone_offset_ns = o.zone_offset_ns,
                                               .idle_w = o.idle_w,
                                               .files = argv,
                                               .n_files = argc};
    return nrg_import_wants_layers(&call) ? nrg_import_run_layers(cli, &call)
                                          : run_log(cli, values, &o, argv[0]);
}

const struct nrg_command nrg_cmd_import = {
    .name = "import",
    .summary = "a recording from a file of another program",
    .synopsis = "[OPTIONS] FILE...",
    .about =
        "Reads AIPowerMeter's power_metrics.json (or its folder), power logs of Jetson boards\n"
        "(20250128-13:38:25.941535,mV,mA) and CSV logs (time_s,package-0:energy_j) into a\n"
        "recording, for nrg report, nrg export and --sensor replay:FILE. What the file is, its\n"
        "first line tells. The first line that can't be understood is an error, and nothing is\n"
        "written; a last line that was cut off is left out with a warning.\n"
        "\n"
        "Power of AIPowerMeter's records is integrated by the trapezoid rule between their dates,\n"
        "segment by segment, as AIPowerMeter does. Files that nrg export made tell the interval\n"
        "of each record and are taken exactly.\n"
        "\n"
        "Layer times become spans: logs of TensorRT's profiler ({layer: [[ms, date], ...]} or "
        "plain\n"
        "ms), layerwise_latency.json of the PyTorch phase of the same project, trtexec's\n"
        "--exportProfile and --exportTimes, traces of torch.profiler, profiles of ONNX Runtime; "
        "all\n"
        "of them also compressed (.gz). With --into or --power-log they are joined with the power\n"
        "that was recorded meanwhile, for nrg attribute: files with dates by the wall clock, "
        "others\n"
        "with --offset or --align.",
    .examples = "  nrg import power_metrics.json -o run.nrg\n"
                "  nrg import --timezone-offset +02:00 experiment/    # dates are local time\n"
                "  nrg import --idle-power idling_power.json lenet_power_log.log\n"
                "  nrg import --into run.nrg -o joined.nrg trace.json.gz    # torch.profiler's\n"
                "  nrg import --power-log power.log trt_layer_latency.json -o layers.nrg\n"
                "  nrg import --into run.nrg --align onnxruntime_profile.json -o joined.nrg\n",
    .options = options,
    .values_size = sizeof(struct values),
    .run = run,
};
