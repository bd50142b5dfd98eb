/*
 * nrg attribute: joules per module, layer, operator, step. Reads a recording, or joins a power log
 * with layer times first; the numbers are made in attribute/, the outputs in report/.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "cli/attribute/show.h"
#include "cli/attribute/source.h"
#include "import/log.h"

#define DEFAULT_TOP       40
#define DEFAULT_MIN_SHARE 0.1 /* percent */

struct values {
    const char *method, *idle, *idle_power, *lag, *by, *top, *min_share, *offset, *zone, *layout;
    const char *power_log, *times, *domain_of_layers, *align;
    struct nrg_list domains, layers, graphs;
    struct nrg_attribute_outputs outputs;
    double confidence_percent;
    int run;
};

#define OUTPUT(field)                                                                              \
    (offsetof(struct values, outputs) + offsetof(struct nrg_attribute_outputs, field))

static const struct nrg_opt options[] = {
    {"method", 'm', NRG_OPT_STRING, "NAME", "auto (default), integrate, nearest, window or regress",
     offsetof(struct values, method)},
    {"by", 'b', NRG_OPT_STRING, "WHAT",
     "rows: path (default), module, name, operator, step, epoch or cycle",
     offsetof(struct values, by)},
    {"idle", 0, NRG_OPT_STRING, "RULE",
     "idle energy: apart (a row of its own; default), share (to the spans that are open) or none "
     "(not told apart)",
     offsetof(struct values, idle)},
    {"idle-power", 0, NRG_OPT_STRING, "FILE|WATTS",
     "idle power: a number, or a Jetson's idling_power.json (default: found out)",
     offsetof(struct values, idle_power)},
    {"lag", 0, NRG_OPT_STRING, "SECONDS",
     "time constant of the sensor's averaging: auto (default), none or seconds",
     offsetof(struct values, lag)},
    {"domain", 'd', NRG_OPT_LIST, "NAME", "only this energy domain; may be repeated",
     offsetof(struct values, domains)},
    {"run", 0, NRG_OPT_COUNT, "N", "only this run of a repeated one", offsetof(struct values, run)},
    {"graph", 'g', NRG_OPT_LIST, "FILE",
     "a model's file, for MACs and types of layers; may be repeated (default: those in the "
     "recording)",
     offsetof(struct values, graphs)},
    {"top", 'n', NRG_OPT_STRING, "N", "rows of the table, largest first (default 40; 0 or all)",
     offsetof(struct values, top)},
    {"min-share", 0, NRG_OPT_STRING, "PERCENT",
     "fold rows below this part of what the spans have (default 0.1)",
     offsetof(struct values, min_share)},
    {"confidence", 0, NRG_OPT_NUMBER, "PERCENT",
     "how sure the intervals are to hold the truth (default 95)",
     offsetof(struct values, confidence_percent)},
    {"json", 'j', NRG_OPT_FILE, "FILE", "everything as JSON, to stdout or FILE", OUTPUT(json)},
    {"csv", 0, NRG_OPT_FILE, "FILE",
     "all rows as CSV, to stdout or FILE; with --power-log the earlier Jetson tool's columns",
     OUTPUT(csv)},
    {"folded", 0, NRG_OPT_FILE, "FILE", "folded stacks in microjoules, for flame graphs",
     OUTPUT(folded)},
    {"trace", 0, NRG_OPT_FILE, "FILE", "spans and power for Perfetto and chrome://tracing",
     OUTPUT(trace)},
    {"trace-limit", 0, NRG_OPT_COUNT, "N", "at most so many spans in the trace (default: all)",
     OUTPUT(trace_limit)},
    {"power-log", 'p', NRG_OPT_STRING, "LOG",
     "instead of a recording: a Jetson power log, a CSV with a header, or a recording",
     offsetof(struct values, power_log)},
    {"layers", 'l', NRG_OPT_LIST, "FILE",
     "layer times beside --power-log (what nrg import reads); may be repeated",
     offsetof(struct values, layers)},
    {"times", 0, NRG_OPT_STRING, "FILE", "trtexec --exportTimes that belongs to an --exportProfile",
     offsetof(struct values, times)},
    {"layout", 0, NRG_OPT_STRING, "HOW",
     "windows of layers: recorded (as the file tells; default) or packed (one after the other)",
     offsetof(struct values, layout)},
    {"layer-domain", 0, NRG_OPT_STRING, "NAME", "energy domain that the layers use, such as gpu-0",
     offsetof(struct values, domain_of_layers)},
    {"timezone-offset", 0, NRG_OPT_STRING, "HH:MM",
     "local time minus UTC of dates without a zone, such as +02:00 (default: they are UTC)",
     offsetof(struct values, zone)},
    {"offset", 0, NRG_OPT_STRING, "SECONDS", "added to the times of the layer files",
     offsetof(struct values, offset)},
    {"align", 0, NRG_OPT_FILE, "RANGE",
     "find that offset by correlating the layers' activity with the power, at most so far away "
     "(default: 10s, and everywhere for files without dates)",
     offsetof(struct values, align)},
    {0},
};

static int wrong(const char *option, const char *wants, const char *given)
{
    fprintf(stderr, "nrg attribute: --%s wants %s, not '%s'\n", option, wants, given);
    return 2;
}

/* Place of a word in a list that ends with NULL; -1. */
static int word_of(const char *const *words, const char *given)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(words[i], given))
            return i;
    return -1;
}

static bool is_number(const char *text, double least, double most, double *out)
{
    return !nrg_parse_double(text, strlen(text), out) && *out >= least && *out <= most;
}

static int read_how(const struct values *v, struct nrg_attribution_options *o)
{
    static const char *const idle_words[] = {"apart", "share", "none", NULL};
    int method = v->method ? nrg_method_from_name(v->method) : NRG_METHOD_AUTO;
    int idle = v->idle ? word_of(idle_words, v->idle) : NRG_IDLE_APART;
    if (method < 0)
        return wrong("method", "auto, integrate, nearest, window or regress", v->method);
    if (idle < 0)
        return wrong("idle", "apart, share or none", v->idle);
    o->method = (enum nrg_method)method;
    o->idle = (enum nrg_idle_mode)idle;
    o->lag = NRG_LAG_AUTO;
    if (v->lag && !strcmp(v->lag, "none"))
        o->lag = NRG_LAG_NONE;
    else if (v->lag && strcmp(v->lag, "auto")) {
        o->lag = NRG_LAG_GIVEN;
        if (!is_number(v->lag, 0, 3600, &o->lag_s))
            return wrong("lag", "auto, none or seconds", v->lag);
    }
    return 0;
}

static int read_what(const struct values *v, struct nrg_attribution_options *o, bool *operators)
{
    static const char *const words[] = {"path",  "name",  "module",   "step",
                                        "epoch", "cycle", "operator", NULL};
    static const enum nrg_rows_by by[] = {NRG_BY_PATH,  NRG_BY_NAME,  NRG_BY_MODULE, NRG_BY_STEP,
                                          NRG_BY_EPOCH, NRG_BY_CYCLE, NRG_BY_NAME};
    int word = v->by ? word_of(words, v->by) : v->power_log ? 5 : 0;
    if (word < 0)
        return wrong("by", "path, module, name, operator, step, epoch or cycle", v->by);
    o->by = by[word];
    *operators = word == 6;
    o->run = v->run;
    o->domains = v->domains.n ? v->domains.items : NULL;
    o->confidence = v->confidence_percent / 100;
    if (v->confidence_percent < 0 || v->confidence_percent >= 100 ||
        (v->confidence_percent > 0 && v->confidence_percent < 50)) {
        fprintf(stderr, "nrg attribute: --confidence wants a percentage from 50 to below 100\n");
        return 2;
    }
    return 0;
}

static int read_view(struct values *v)
{
    double number;
    v->outputs.top = DEFAULT_TOP;
    v->outputs.min_share = DEFAULT_MIN_SHARE / 100;
    if (v->top) {
        bool all = !strcmp(v->top, "all");
        if (!all && (!is_number(v->top, 0, 1e9, &number) || number != floor(number)))
            return wrong("top", "a whole number or all", v->top);
        v->outputs.top = all ? 0 : (size_t)number;
        if (!v->outputs.top)
            v->outputs.min_share = 0;
    }
    if (v->min_share) {
        if (!is_number(v->min_share, 0, 100, &number))
            return wrong("min-share", "a percentage", v->min_share);
        v->outputs.min_share = number / 100;
    }
    return nrg_attribute_check_outputs(&v->outputs);
}

static int read_idle_power(const struct values *v, double *idle_w)
{
    struct nrg_error err;
    *idle_w = NAN;
    if (!v->idle_power)
        return 0;
    if (!nrg_parse_double(v->idle_power, strlen(v->idle_power), idle_w))
        return *idle_w >= 0 ? 0 : wrong("idle-power", "watts or a file", v->idle_power);
    return nrg_import_idle_power(v->idle_power, idle_w, &err) ? nrg_complain(&err, 1) : 0;
}

static int read_align(const char *text, struct nrg_import_join_options *o)
{
    int64_t range_ns;
    o->align = text != NULL;
    if (!text || !strcmp(text, "-"))
        return 0;
    if (nrg_parse_duration_ns(text, &range_ns) || range_ns <= 0)
        return wrong("align", "how far to look, such as 5s", text);
    o->align_range_s = (double)range_ns / 1e9;
    return 0;
}

static int read_logs(const struct values *v, struct nrg_import_join_options *o)
{
    static const char *const layouts[] = {"recorded", "packed", NULL};
    int layout = v->layout ? word_of(layouts, v->layout) : NRG_LAYOUT_RECORDED;
    if (layout < 0)
        return wrong("layout", "recorded or packed", v->layout);
    o->power = v->power_log;
    o->layers = v->layers.items;
    o->n_layers = v->layers.n;
    o->times = v->times;
    o->domain = v->domain_of_layers;
    o->layout = (enum nrg_layer_layout)layout;
    if (v->zone && nrg_parse_zone(v->zone, &o->zone_offset_ns))
        return wrong("timezone-offset", "hours and minutes such as +02:00", v->zone);
    o->has_offset = v->offset != NULL;
    if (v->offset && nrg_parse_scaled(v->offset, strlen(v->offset), 9, &o->offset_ns))
        return wrong("offset", "seconds, such as -0.25", v->offset);
    return read_align(v->align, o);
}

static int check_operands(const struct values *v, int argc)
{
    if (!v->power_log && !v->layers.n && argc == 1)
        return 0;
    if (v->power_log && v->layers.n && argc == 0)
        return 0;
    fprintf(stderr, "nrg attribute: wants one recording (nrg attribute run.nrg), or both "
                    "--power-log LOG and --layers FILE\n");
    return 2;
}

/* ---- the work ---- */

struct job {
    struct nrg_cli *cli;
    const struct values *v;
    struct nrg_attribution_options how;
    struct nrg_import_join_options logs;
    bool operators;
    struct nrg_attribute_source source;
    struct nrg_attribution attribution, paths;
    struct nrg_cycles cycles;
    bool has_cycles;
};

static int no_spans(const struct job *job)
{
    fprintf(
        stderr,
        "nrg: %s: holds no spans, so there is nothing to attribute energy to. Mark them with "
        "nrg run --torch -- python train.py (unchanged PyTorch programs), with nrg_span_begin() "
        "of nrg.h or nrg.span() of Python, or add layer times: nrg import\n",
        nrg_recording_path(job->source.recording));
    return 1;
}

/* Given, or what nrg import kept. */
static double idle_power(const struct job *job)
{
    const char *kept = nrg_recording_text(job->source.recording, "idle_w");
    double idle_w = NAN;
    if (!isnan(job->how.idle_w))
        return job->how.idle_w;
    return kept && !nrg_parse_double(kept, strlen(kept), &idle_w) ? idle_w : NAN;
}

static int make_cycles(struct job *job)
{
    struct nrg_error err;
    struct nrg_attribution *a = &job->attribution;
    if (job->how.by != NRG_BY_CYCLE)
        return 0;
    int rc =
        nrg_cycles_make(&job->cycles, a, job->source.recording, &job->how, idle_power(job), &err);
    if (rc == -ENODATA)
        return 0;
    if (rc)
        return nrg_complain(&err, 1);
    job->has_cycles = true;
    if (job->cycles.left_out)
        nrg_attribution_note(a, "layers",
                             "%llu executions after the last reading of power are left out, as "
                             "the rule of --method window is",
                             (unsigned long long)job->cycles.left_out);
    return 0;
}

/* The joined recording is a file that nobody has seen: what is wrong is wrong in the log. */
static int complain(const struct job *job, struct nrg_error *err)
{
    if (job->source.from_logs)
        nrg_copy(err->where, sizeof err->where, job->v->power_log);
    return nrg_complain(err, 1);
}

/* Joules per step need what the modules inside the steps used: see attribution_report.h. */
static int make_paths(struct job *job, struct nrg_error *err)
{
    struct nrg_attribution_options how = job->how;
    if (how.by != NRG_BY_MODULE && how.by != NRG_BY_NAME)
        return 0;
    how.by = NRG_BY_PATH;
    return nrg_attribution_make(&job->paths, job->source.recording, &how, err);
}

static int attribute(struct job *job)
{
    struct nrg_error err;
    struct nrg_attribution *a = &job->attribution;
    int rc = nrg_attribution_make(a, job->source.recording, &job->how, &err);
    if (!rc && (rc = make_paths(job, &err)))
        nrg_attribution_release(a);
    if (rc)
        return complain(job, &err);
    int code = a->spans ? make_cycles(job) : no_spans(job);
    nrg_attribute_source_notes(&job->source, a);
    if (!code)
        code = nrg_attribute_source_models(&job->source, &job->v->graphs, a,
                                           job->how.by == NRG_BY_MODULE);
    if (!code && job->operators)
        nrg_attribution_only_operators(a);
    if (!code && job->how.by == NRG_BY_NAME && nrg_attribution_sort(a)) {
        fprintf(stderr, "nrg: out of memory\n");
        code = 1;
    }
    const struct nrg_attribution_report report = {
        .recording = job->source.recording,
        .attribution = a,
        .paths = job->paths.n_rows ? &job->paths : NULL,
        .cycles = job->has_cycles ? &job->cycles : NULL,
        .confidence = job->how.confidence > 0 ? job->how.confidence : 0.95};
    if (!code)
        code = nrg_attribute_show(job->cli, &report, &job->v->outputs, job->has_cycles);
    nrg_cycles_release(&job->cycles);
    nrg_attribution_release(a);
    nrg_attribution_release(&job->paths);
    return code;
}

static int run(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct values *v = values;
    struct job job = {.cli = cli, .v = v};
    int code = check_operands(v, argc);
    if (!code)
        code = read_how(v, &job.how);
    if (!code)
        code = read_what(v, &job.how, &job.operators);
    if (!code)
        code = read_view(v);
    if (!code)
        code = read_logs(v, &job.logs);
    if (!code)
        code = read_idle_power(v, &job.how.idle_w);
    if (code)
        return code;
    job.logs.idle_w = job.how.idle_w;
    code = nrg_attribute_source_open(&job.source, cli, argc ? argv[0] : NULL, &job.logs);
    if (code)
        return code;
    code = attribute(&job);
    nrg_attribute_source_close(&job.source);
    return code;
}

const struct nrg_command nrg_cmd_attribute = {
    .name = "attribute",
    .summary = "joules per module, layer, operator and step",
    .synopsis = "[OPTIONS] FILE.nrg | --power-log LOG --layers FILE",
    .about =
        "Shares the energy of a recording out to the spans that its program marked: modules,\n"
        "layers, operators, steps, with calls, time, joules of their own and inclusive, and an\n"
        "interval. What belongs to no span is the last row; all rows add up to the total.\n"
        "\n"
        "Methods: integrate (energy between begin and end), regress (power per kind of span, "
        "fitted\n"
        "over all readings: for spans shorter than the sensor's period), window (mean of the\n"
        "readings inside), nearest (reading closest to the end). auto takes integrate or regress "
        "by\n"
        "how many updates of the sensor fall into a span, and says why.\n"
        "\n"
        "With --power-log and --layers, two logs of other programs are joined first. Rows are "
        "then\n"
        "per cycle, and --method window gives the power of the earlier Jetson tool's\n"
        "compute_layer_metrics_by_cycle.",
    .examples =
        "  nrg attribute run.nrg\n"
        "  nrg attribute --by step --top all run.nrg\n"
        "  nrg attribute --json run.nrg | jq '.rows[] | select(.kind == \"module\")'\n"
        "  nrg attribute --folded=energy.folded --trace=trace.json run.nrg\n"
        "  nrg attribute --power-log lenet_power_log.log --layers lenet_layerwise_latency.json \\\n"
        "      --idle-power idling_power.json --method window --lag 0.42\n",
    .options = options,
    .values_size = sizeof(struct values),
    .run = run,
};
