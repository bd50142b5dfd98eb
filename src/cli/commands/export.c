/* nrg export: a recording in forms that other programs read. See report/export/formats.h. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/output_file.h"
#include "cli/internal.h"
#include "report/export/formats.h"

enum format { FORMAT_CSV, FORMAT_JSON, FORMAT_AIPOWERMETER, FORMAT_FIREFOX, FORMAT_SPEEDSCOPE };

struct values {
    int format;
    const char *output;
    int64_t wide_ns, period_ns;
    bool processes, force;
};

static const struct nrg_choice formats[] = {
    {"csv", FORMAT_CSV, "default"},
    {"json", FORMAT_JSON, NULL},
    {"aipowermeter", FORMAT_AIPOWERMETER, NULL},
    {"firefox", FORMAT_FIREFOX, NULL},
    {"speedscope", FORMAT_SPEEDSCOPE, NULL},
    {0},
};

static const struct nrg_opt options[] = {
    {"format", 'F', NRG_OPT_CHOICE(formats), "NAME", "", offsetof(struct values, format)},
    {"output", 'o', NRG_OPT_STRING, "FILE|DIR",
     "default: stdout; for aipowermeter a folder called after the recording",
     offsetof(struct values, output)},
    {"wide", 'w', NRG_OPT_DURATION, "TIME",
     "csv: one row per TIME with means of all channels, instead of one row per reading",
     offsetof(struct values, wide_ns)},
    {"processes", 'p', NRG_OPT_FLAG, NULL, "csv: the readings of processes instead of sensors",
     offsetof(struct values, processes)},
    {"period", 0, NRG_OPT_DURATION, "TIME", "aipowermeter: time between records (default: 1s)",
     offsetof(struct values, period_ns)},
    {"force", 'f', NRG_OPT_FLAG, NULL, "overwrite the output", offsetof(struct values, force)},
    {0},
};

enum { MIN_PERIOD_NS = 1000 };

/* For profilers, which show where energy went: attributed first. */
static int to_profiler(struct nrg_recording *recording, const struct values *v, FILE *out,
                       struct nrg_error *err)
{
    const struct nrg_attribution_options how = {
        .idle_w = NAN, .by = NRG_BY_PATH, .buckets = NRG_EXPORT_BUCKETS};
    struct nrg_attribution attribution;
    uint64_t left_out = 0;
    int rc = nrg_attribution_make(&attribution, recording, &how, err);
    if (rc)
        return rc;
    rc = v->format == FORMAT_FIREFOX
             ? nrg_export_firefox(recording, &attribution, out, &left_out, err)
             : nrg_export_speedscope(recording, &attribution, out, &left_out, err);
    if (left_out)
        nrg_say("%llu spans are left out: such a page can't hold more",
                (unsigned long long)left_out);
    nrg_attribution_release(&attribution);
    return rc;
}

static int to_stream(struct nrg_recording *recording, const struct values *v, FILE *out,
                     struct nrg_error *err)
{
    if (v->format == FORMAT_JSON)
        return nrg_export_json(recording, out, err);
    if (v->format == FORMAT_FIREFOX || v->format == FORMAT_SPEEDSCOPE)
        return to_profiler(recording, v, out, err);
    if (v->processes)
        return nrg_export_csv_processes(recording, out, err);
    return v->wide_ns ? nrg_export_csv_wide(recording, v->wide_ns, out, err)
                      : nrg_export_csv_long(recording, out, err);
}

static int to_file(struct nrg_recording *recording, const struct values *v, struct nrg_error *err)
{
    FILE *out = nrg_output_file(v->output, v->force, err);
    if (!out)
        return err->code;
    int rc = to_stream(recording, v, out, err);
    if (fclose(out) && !rc)
        rc = nrg_fail(err, -EIO, v->output, "cannot write: %s", strerror(errno));
    return rc;
}

static int to_folder(struct nrg_recording *recording, const struct values *v, const char *path,
                     const struct nrg_cli *cli, struct nrg_error *err)
{
    char folder[4096];
    nrg_default_output(path, "-aipowermeter", folder, sizeof folder);
    const char *to = v->output ? v->output : folder;
    int rc = nrg_export_aipowermeter(recording, v->period_ns, to, v->force, err);
    if (!rc && !cli->quiet)
        nrg_say("written: %s/power_metrics.json", to);
    return rc;
}

static int check_usage(const struct nrg_cli *cli, struct values *v, int argc)
{
    bool folder = v->format == FORMAT_AIPOWERMETER;
    if (argc != 1)
        return nrg_usage(cli, "wants one recording: nrg export --format csv FILE.nrg");
    if ((v->wide_ns || v->processes) && (v->format != FORMAT_CSV || (v->wide_ns && v->processes)))
        return nrg_usage(cli, "--wide and --processes are two forms of csv");
    if (v->period_ns && !folder)
        return nrg_usage(cli, "--period is for aipowermeter; csv has --wide");
    if (!v->period_ns)
        v->period_ns = NRG_NS_PER_S;
    if (v->period_ns < MIN_PERIOD_NS || (v->wide_ns && v->wide_ns < MIN_PERIOD_NS))
        return nrg_usage(cli, "the shortest period is 1us");
    return 0;
}

static int run_export(struct nrg_cli *cli, void *v, int argc, char **argv)
{
    struct values *values = v;
    struct nrg_recording *recording;
    struct nrg_error err = {0};
    int code = check_usage(cli, values, argc);
    if (code)
        return code;
    if (nrg_recording_open(argv[0], &recording, &err))
        return nrg_complain(&err, 1);
    int rc;
    if (values->format == FORMAT_AIPOWERMETER)
        rc = to_folder(recording, values, argv[0], cli, &err);
    else if (values->output && !nrg_is_stdout(values->output))
        rc = to_file(recording, values, &err);
    else
        rc = to_stream(recording, values, stdout, &err);
    code = rc ? nrg_complain(&err, 1) : nrg_check_recording(recording);
    nrg_recording_close(recording);
    return code;
}

const struct nrg_command nrg_cmd_export = {
    .name = "export",
    .summary = "a recording as CSV, JSON, or for other profilers",
    .synopsis = "[--format csv|json|aipowermeter|firefox|speedscope] [OPTIONS] FILE.nrg",
    .about =
        "csv            one row per reading: time_s, unix_time_s, channel, quantity, unit, value,\n"
        "               provenance. Energy counters are unwrapped and count from their first\n"
        "               reading. --wide 1s: means over seconds, one column per channel.\n"
        "               --processes: CPU time and memory of each process over time.\n"
        "json           everything, schema nrg.recording/1.\n"
        "aipowermeter   a folder with power_metrics.json and metadata.json, a record per second;\n"
        "               parts of the machine that were not measured have no key.\n"
        "firefox        for profiler.firefox.com: power as counters, energy as samples, spans as\n"
        "               markers.\n"
        "speedscope     for speedscope.app: a flame graph of microjoules, and the spans.\n"
        "\n"
        "A trace for Perfetto: nrg attribute --trace FILE.nrg",
    .examples = "  nrg export run.nrg > run.csv\n"
                "  nrg export --wide 1s run.nrg > seconds.csv      # pandas.read_csv\n"
                "  nrg export --format json run.nrg | jq '.channels[].name'\n"
                "  nrg export --format aipowermeter -o power_measure run.nrg\n"
                "  nrg export --format speedscope -o run.speedscope.json run.nrg\n",
    .options = options,
    .values_size = sizeof(struct values),
    .run = run_export,
};
