/* nrg import: a file of another program as a recording. See import/log.h. */
#include "cli/import/layers.h"
#include "import/log.h"

struct values {
    struct nrg_import_options log;
    int held;
    const char *idle_power;
    struct nrg_import_layer_values layers;
};

static const struct values defaults = {.layers = {.layout = -1}};

static const struct nrg_choice integrals[] = {
    {"trapezoid", false, "between dates; default"},
    {"held", true, "the mean over the interval that ends at the date"},
    {0},
};

static const struct nrg_choice layouts[] = {
    {"recorded", NRG_LAYOUT_RECORDED, "default"},
    {"packed", NRG_LAYOUT_PACKED, "end to end before the cycle's first time stamp"},
    {0},
};

static const struct nrg_opt options[] = {
    {"output", 'o', NRG_OPT_STRING, "FILE", "the recording (default: the input's name with .nrg)",
     offsetof(struct values, log.output)},
    {"force", 'f', NRG_OPT_FLAG, NULL, "overwrite the recording",
     offsetof(struct values, log.overwrite)},
    {"timezone-offset", 0, NRG_OPT_ZONE, "HH:MM",
     "local time minus UTC of dates without a zone, such as +02:00 (default: they are UTC)",
     offsetof(struct values, log.zone_offset_ns)},
    {"integrate", 0, NRG_OPT_CHOICE(integrals), "RULE",
     "power of AIPowerMeter's records: ", offsetof(struct values, held)},
    {"period", 0, NRG_OPT_DURATION, "DURATION",
     "logs without times: from line to line (tegrastats; default: 1s), or of the whole (perf stat "
     "without -I)",
     offsetof(struct values, log.period_ns)},
    {"per-segment", 0, NRG_OPT_FLAG, NULL, "each recording segment is a run of its own",
     offsetof(struct values, log.segments_are_runs)},
    {"idle-power", 0, NRG_OPT_STRING, "FILE|WATTS",
     "idle power to keep in the recording: a number, or a Jetson's idling_power.json",
     offsetof(struct values, idle_power)},
    {"into", 0, NRG_OPT_STRING, "FILE.nrg",
     "layer times: join them with this recording; the result is a copy of it with spans",
     offsetof(struct values, layers.into)},
    {"power-log", 0, NRG_OPT_STRING, "FILE",
     "layer times: join them with this power log (any that nrg import reads)",
     offsetof(struct values, layers.power_log)},
    {"offset", 0, NRG_OPT_SECONDS, "SECONDS",
     "added to the times of layers; files without dates count from the beginning of the recording",
     offsetof(struct values, layers.offset)},
    {"align", 0, NRG_OPT_RANGE, "RANGE",
     "find the offset of layers by correlating their activity with power, at most so far from "
     "where they are (default: 10s, and everywhere for files without dates)",
     offsetof(struct values, layers.align)},
    {"layout", 0, NRG_OPT_CHOICE(layouts), "RULE",
     "windows of TensorRT's profiler: ", offsetof(struct values, layers.layout)},
    {"times", 0, NRG_OPT_STRING, "FILE",
     "trtexec --exportTimes, for the layers of an --exportProfile",
     offsetof(struct values, layers.join.times)},
    {"domain", 0, NRG_OPT_STRING, "NAME",
     "energy domain that the layers' work uses, such as gpu-0 (default: what the file tells)",
     offsetof(struct values, layers.join.domain)},
    {0},
};

static void say_imported(const struct nrg_cli *cli, const struct nrg_import_options *o,
                         const struct nrg_import_result *r)
{
    if (r->unfinished_line)
        nrg_say("%s:%lld: the last line is cut off and was left out", o->path, r->unfinished_line);
    if (r->note[0] && !cli->quiet)
        nrg_say("%s: %s", o->path, r->note);
    if (!cli->quiet)
        fprintf(stderr,
                "nrg: %s: %llu records in %llu segments, %.3f s, %llu channels, %llu processes\n"
                "recording: %s   (nrg report, nrg export)\n",
                r->format, (unsigned long long)r->records, (unsigned long long)r->segments,
                (double)(r->end_ns - r->begin_ns) / 1e9, (unsigned long long)r->channels,
                (unsigned long long)r->processes, o->output);
}

static int import_log(struct nrg_cli *cli, struct nrg_import_options *o, const char *path)
{
    struct nrg_import_result result;
    struct nrg_error err;
    o->path = path;
    if (nrg_import(o, &result, &err))
        return nrg_complain(&err, 1);
    say_imported(cli, o, &result);
    return 0;
}

static int run_import(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct values *v = values;
    struct nrg_import_join_options *join = &v->layers.join;
    if (argc < 1)
        return nrg_usage(cli, "wants a file: nrg import power_metrics.json -o run.nrg");
    int code = nrg_read_idle_power(cli, v->idle_power, &v->log.idle_w);
    if (code)
        return code;
    char output[4096];
    nrg_default_output(argv[0], ".nrg", output, sizeof output);
    if (!v->log.output)
        v->log.output = output;
    v->log.held = v->held;
    join->layers = (const char *const *)argv;
    join->n_layers = (size_t)argc;
    join->output = v->log.output;
    join->overwrite = v->log.overwrite;
    join->zone_offset_ns = v->log.zone_offset_ns;
    join->idle_w = v->log.idle_w;
    return nrg_import_wants_layers(&v->layers) ? nrg_import_run_layers(cli, &v->layers)
                                               : import_log(cli, &v->log, argv[0]);
}

const struct nrg_command nrg_cmd_import = {
    .name = "import",
    .summary = "a recording from a file of another program",
    .synopsis = "[OPTIONS] FILE...",
    .about =
        "Reads power and energy that another program logged into a recording, for nrg report,\n"
        "nrg export and --sensor replay:FILE:\n"
        "  nvidia-smi    --query-gpu=timestamp,index,power.draw,... --format=csv -l 1\n"
        "  tegrastats    of all Jetson boards and releases\n"
        "  perf stat     -I 1000 -x, -e power/energy-pkg/,...\n"
        "  CodeCarbon    emissions.csv\n"
        "  Zeus          ZeusMonitor(log_file=...), and its log of power\n"
        "  AIPowerMeter  power_metrics.json, or its folder\n"
        "  Jetson logs   20250128-13:38:25.941535,mV,mA\n"
        "  CSV           time_s,package-0:energy_j,... (docs/simulate.md)\n"
        "What the file is, its first line tells. The first line that can't be understood is an\n"
        "error, and nothing is written; a last line that was cut off is left out with a warning.\n"
        "\n"
        "Power of AIPowerMeter's records is integrated by the trapezoid rule between their dates,\n"
        "segment by segment, as AIPowerMeter does. Files that nrg export made tell the interval\n"
        "of each record and are taken exactly.\n"
        "\n"
        "Layer times become spans: logs of TensorRT's profiler ({layer: [[ms, date], ...]} or "
        "plain\n"
        "ms), layerwise_latency.json of the PyTorch phase of the same project, trtexec's\n"
        "--exportProfile and --exportTimes, traces of torch.profiler, JAX and TensorFlow, "
        "profiles\n"
        "of ONNX Runtime, what nsys export --type sqlite and nsys stats --report cuda_gpu_trace\n"
        "--format csv make of a report, rocprofv3's CSV; all but databases also compressed (.gz).\n"
        "With --into or --power-log they are joined with the power that was recorded meanwhile,\n"
        "for nrg attribute: files with dates by the wall clock, others with --offset or --align.",
    .examples = "  nrg import power_metrics.json -o run.nrg\n"
                "  nrg import --timezone-offset +02:00 nvidia-smi.csv\n"
                "  nrg import --period 100ms tegrastats.log           # tegrastats --interval 100\n"
                "  nrg import --timezone-offset +02:00 experiment/    # dates are local time\n"
                "  nrg import --idle-power idling_power.json lenet_power_log.log\n"
                "  nrg import --into run.nrg -o joined.nrg trace.json.gz    # torch.profiler's\n"
                "  nrg import --power-log power.log trt_layer_latency.json -o layers.nrg\n"
                "  nrg import --into run.nrg --align onnxruntime_profile.json -o joined.nrg\n",
    .options = options,
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .run = run_import,
};
