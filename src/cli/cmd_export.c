/* nrg export: a recording in forms that other programs read. See report/export/formats.h. */
#include <errno.h>
#include <string.h>

#include "cli/common.h"
#include "report/export/formats.h"

struct values {
    const char *format, *output;
    int64_t wide_ns, period_ns;
    bool processes, force;
};

static const struct nrg_opt options[] = {
    {"format", 'F', NRG_OPT_STRING, "NAME", "csv (default), json or aipowermeter",
     offsetof(struct values, format)},
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

static int to_stream(struct nrg_recording *recording, const struct values *v, FILE *out,
                     struct nrg_error *err)
{
    if (!strcmp(v->format, "json"))
        return nrg_export_json(recording, out, err);
    if (v->processes)
        return nrg_export_csv_processes(recording, out, err);
    return v->wide_ns ? nrg_export_csv_wide(recording, v->wide_ns, out, err)
                      : nrg_export_csv_long(recording, out, err);
}

static int to_file(struct nrg_recording *recording, const struct values *v, struct nrg_error *err)
{
    FILE *out = fopen(v->output, v->force ? "we" : "wex");
    if (!out)
        return nrg_fail(err, -errno, v->output, "cannot write: %s%s", strerror(errno),
                        errno == EEXIST ? " (--force overwrites)" : "");
    int rc = to_stream(recording, v, out, err);
    if (fclose(out) && !rc)
        rc = nrg_fail(err, -EIO, v->output, "cannot write: %s", strerror(errno));
    return rc;
}

/* "runs/a.nrg" -> "a-aipowermeter" */
static void default_folder(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    size_t n = dot && dot > name ? (size_t)(dot - name) : strlen(name);
    snprintf(out, size, "%.*s-aipowermeter", (int)n, name);
}

static int to_folder(struct nrg_recording *recording, const struct values *v, const char *path,
                     const struct nrg_cli *cli, struct nrg_error *err)
{
    char folder[4096];
    default_folder(path, folder, sizeof folder);
    const char *to = v->output ? v->output : folder;
    int rc = nrg_export_aipowermeter(recording, v->period_ns, to, v->force, err);
    if (!rc && !cli->quiet)
        fprintf(stderr, "nrg: written: %s/power_metrics.json\n", to);
    return rc;
}

static int check(struct values *v, int argc)
{
    if (argc != 1) {
        fprintf(stderr, "nrg export: wants one recording: nrg export --format csv FILE.nrg\n");
        return 2;
    }
    if (!v->format)
        v->format = "csv";
    bool csv = !strcmp(v->format, "csv"), aipowermeter = !strcmp(v->format, "aipowermeter");
    if (!csv && !aipowermeter && strcmp(v->format, "json")) {
        fprintf(stderr, "nrg export: --format is csv, json or aipowermeter, not '%s'\n", v->format);
        return 2;
    }
    if ((v->wide_ns || v->processes) && (!csv || (v->wide_ns && v->processes))) {
        fprintf(stderr, "nrg export: --wide and --processes are two forms of csv\n");
        return 2;
    }
    if ((v->period_ns && (v->period_ns < MIN_PERIOD_NS || !aipowermeter)) ||
        (v->wide_ns && v->wide_ns < MIN_PERIOD_NS)) {
        fprintf(stderr, "nrg export: %s\n",
                v->period_ns && !aipowermeter ? "--period is for aipowermeter; csv has --wide"
                                              : "the shortest period is 1us");
        return 2;
    }
    if (!v->period_ns)
        v->period_ns = NRG_NS_PER_S;
    return 0;
}

static int run(struct nrg_cli *cli, void *v, int argc, char **argv)
{
    struct values *values = v;
    struct nrg_recording *recording;
    struct nrg_error err = {0};
    int code = check(values, argc);
    if (code)
        return code;
    if (nrg_recording_open(argv[0], &recording, &err))
        return nrg_complain(&err, 1);
    int rc;
    if (!strcmp(values->format, "aipowermeter"))
        rc = to_folder(recording, values, argv[0], cli, &err);
    else if (values->output && strcmp(values->output, "-"))
        rc = to_file(recording, values, &err);
    else
        rc = to_stream(recording, values, stdout, &err);
    nrg_recording_close(recording);
    return rc ? nrg_complain(&err, 1) : 0;
}

const struct nrg_command nrg_cmd_export = {
    .name = "export",
    .summary = "a recording as CSV, JSON or AIPowerMeter's files",
    .synopsis = "[--format csv|json|aipowermeter] [OPTIONS] FILE.nrg",
    .about =
        "csv            one row per reading: time_s, unix_time_s, channel, quantity, unit, value,\n"
        "               provenance. Energy counters are unwrapped and count from their first\n"
        "               reading. --wide 1s: means over seconds, one column per channel.\n"
        "               --processes: CPU time and memory of each process over time.\n"
        "json           everything, schema nrg.recording/1.\n"
        "aipowermeter   a folder with power_metrics.json and metadata.json, a record per second;\n"
        "               parts of the machine that were not measured have no key.",
    .examples = "  nrg export run.nrg > run.csv\n"
                "  nrg export --wide 1s run.nrg > seconds.csv      # pandas.read_csv\n"
                "  nrg export --format json run.nrg | jq '.channels[].name'\n"
                "  nrg export --format aipowermeter -o power_measure run.nrg\n",
    .options = options,
    .values_size = sizeof(struct values),
    .run = run,
};
