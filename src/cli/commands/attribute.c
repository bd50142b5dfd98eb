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
#include "cli/import/layers.h"

/* Values of --by beside the engine's own: rows by name, operators only; and the default. */
enum { BY_OPERATOR = 100, BY_INPUT };

struct values {
    struct nrg_attribution_options how;
    int by;
    const char *idle_power;
    struct nrg_import_join_options logs;
    struct nrg_given_ns offset, align;
    struct nrg_list domains, layers, graphs, per;
    struct nrg_attribute_outputs outputs;
    double confidence_percent, min_share_percent;
    double from_s, to_s; /* below 0: not given */
    int run, skip;
};

static const struct values defaults = {.by = BY_INPUT,
                                       .skip = -1,
                                       .confidence_percent = 95,
                                       .min_share_percent = -1,
                                       .from_s = -1,
                                       .to_s = -1,
                                       .outputs = {.top = 40}};

#ifdef NRG_DEVELOPER
/* For those who compare the two: it is no option of a build for users. */
static const struct nrg_choice engines[] = {
    {"terms", NRG_ENGINE_TERMS, "the terms of src/attribute/regress"},
    {"model", NRG_ENGINE_MODEL, "the one model of src/attribute/model"},
    {0},
};
#endif

static const struct nrg_choice methods[] = {
    {"auto", NRG_METHOD_AUTO, "default"},
    {"integrate", NRG_METHOD_INTEGRATE, NULL},
    {"nearest", NRG_METHOD_NEAREST, NULL},
    {"window", NRG_METHOD_WINDOW, NULL},
    {"regress", NRG_METHOD_REGRESS, NULL},
    {"cpu-time", NRG_METHOD_CPU_TIME, NULL},
    {0},
};

static const struct nrg_choice rows[] = {
    {"path", NRG_BY_PATH, "default"}, {"module", NRG_BY_MODULE, NULL},
    {"name", NRG_BY_NAME, NULL},      {"operator", BY_OPERATOR, NULL},
    {"step", NRG_BY_STEP, NULL},      {"epoch", NRG_BY_EPOCH, NULL},
    {"cycle", NRG_BY_CYCLE, NULL},    {0},
};

static const struct nrg_choice idle_rules[] = {
    {"apart", NRG_IDLE_APART, "a row of its own; default"},
    {"share", NRG_IDLE_SHARE, "to the spans that are open"},
    {"none", NRG_IDLE_NONE, "not separated"},
    {0},
};

static const struct nrg_choice layouts[] = {
    {"recorded", NRG_LAYOUT_RECORDED, "as the file tells; default"},
    {"packed", NRG_LAYOUT_PACKED, "one after the other"},
    {0},
};

static int store_lag(const struct nrg_opt_type *type, void *field, const char *value)
{
    struct nrg_attribution_options *how = field;
    how->lag = !strcmp(value, "auto")   ? NRG_LAG_AUTO
               : !strcmp(value, "none") ? NRG_LAG_NONE
                                        : NRG_LAG_GIVEN;
    if (how->lag != NRG_LAG_GIVEN)
        return 0;
    int rc = nrg_parse_double(value, strlen(value), &how->lag_s);
    return rc ? rc : how->lag_s >= 0 && how->lag_s <= 3600 ? 0 : -ERANGE;
}

static int store_top(const struct nrg_opt_type *type, void *field, const char *value)
{
    double number = 0;
    if (strcmp(value, "all") && (nrg_parse_double(value, strlen(value), &number) ||
                                 !(number >= 0 && number <= 1e9) || number != floor(number)))
        return -EINVAL;
    *(size_t *)field = (size_t)number;
    return 0;
}

#define OUTPUT(field)                                                                              \
    (offsetof(struct values, outputs) + offsetof(struct nrg_attribute_outputs, field))

static const struct nrg_opt options[] = {
    {"method", 'm', NRG_OPT_CHOICE(methods), "NAME", "", offsetof(struct values, how.method)},
#ifdef NRG_DEVELOPER
    {"engine", 0, NRG_OPT_CHOICE(engines), "NAME", "", offsetof(struct values, how.engine)},
#endif
    {"by", 'b', NRG_OPT_CHOICE(rows), "WHAT", "rows: ", offsetof(struct values, by)},
    {"idle", 0, NRG_OPT_CHOICE(idle_rules), "RULE",
     "idle energy: ", offsetof(struct values, how.idle)},
    {"idle-power", 0, NRG_OPT_STRING, "FILE|WATTS",
     "idle power: a number, or a Jetson's idling_power.json (default: found out)",
     offsetof(struct values, idle_power)},
    {"lag", 0, NRG_OPT_OWN(store_lag, "auto, none or seconds"), "SECONDS",
     "time constant of the sensor's averaging: auto (default), none or seconds",
     offsetof(struct values, how)},
    {"domain", 'd', NRG_OPT_LIST, "NAME", "only this energy domain; may be repeated",
     offsetof(struct values, domains)},
    {"run", 0, NRG_OPT_COUNT, "N", "only this run of a repeated one", offsetof(struct values, run)},
    {"from", 0, NRG_OPT_NUMBER_IN(0, 1e9, "seconds from the start, 0 or more"), "SECONDS",
     "only what was used from here on, in seconds from the start of the run; restricts the sums, "
     "not the fit",
     offsetof(struct values, from_s)},
    {"to", 0, NRG_OPT_NUMBER_IN(0, 1e9, "seconds from the start, 0 or more"), "SECONDS",
     "only what was used up to here", offsetof(struct values, to_s)},
    {"skip", 0, NRG_OPT_COUNT, "N",
     "so many first steps are apart from the joules per step (default: those that last more than "
     "twice the median, from the first on)",
     offsetof(struct values, skip)},
    {"per", 0, NRG_OPT_LIST, "COUNTER[/SPAN]",
     "joules per what was counted anywhere inside of spans of that name, or in the whole program "
     "(default: per what was counted directly in a span); may be repeated",
     offsetof(struct values, per)},
    {"graph", 'g', NRG_OPT_LIST, "FILE",
     "a model's file, for MACs and types of layers; may be repeated (default: those in the "
     "recording)",
     offsetof(struct values, graphs)},
    {"top", 'n', NRG_OPT_OWN(store_top, "a whole number or all"), "N",
     "rows of the table, largest first (default 40; 0 or all)", OUTPUT(top)},
    {"min-share", 0, NRG_OPT_NUMBER_IN(0, 100, "a percentage"), "PERCENT",
     "fold rows below this part of what the spans have (default 0.1)",
     offsetof(struct values, min_share_percent)},
    {"confidence", 0, NRG_OPT_NUMBER_IN(50, 99.9999999, "a percentage from 50 to below 100"),
     "PERCENT", "how sure the intervals are to hold the truth (default 95)",
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
     offsetof(struct values, logs.power)},
    {"layers", 'l', NRG_OPT_LIST, "FILE",
     "layer times beside --power-log (what nrg import reads); may be repeated",
     offsetof(struct values, layers)},
    {"times", 0, NRG_OPT_STRING, "FILE", "trtexec --exportTimes that belongs to an --exportProfile",
     offsetof(struct values, logs.times)},
    {"layout", 0, NRG_OPT_CHOICE(layouts), "HOW",
     "windows of layers: ", offsetof(struct values, logs.layout)},
    {"layer-domain", 0, NRG_OPT_STRING, "NAME", "energy domain that the layers use, such as gpu-0",
     offsetof(struct values, logs.domain)},
    {"timezone-offset", 0, NRG_OPT_ZONE, "HH:MM",
     "local time minus UTC of dates without a zone, such as +02:00 (default: they are UTC)",
     offsetof(struct values, logs.zone_offset_ns)},
    {"offset", 0, NRG_OPT_SECONDS, "SECONDS", "added to the times of the layer files",
     offsetof(struct values, offset)},
    {"align", 0, NRG_OPT_RANGE, "RANGE",
     "find that offset by correlating the layers' activity with the power, at most so far away "
     "(default: 10s, and everywhere for files without dates)",
     offsetof(struct values, align)},
    {0},
};

/* What would be passed over without such files. */
static int check_layer_options(const struct nrg_cli *cli, const struct values *v)
{
    const char *option = v->logs.times                           ? "times"
                         : v->logs.domain                        ? "layer-domain"
                         : v->offset.given                       ? "offset"
                         : v->align.given                        ? "align"
                         : v->logs.layout != NRG_LAYOUT_RECORDED ? "layout"
                         : v->logs.zone_offset_ns                ? "timezone-offset"
                                                                 : NULL;
    return option
               ? nrg_usage(cli,
                           "--%s goes with --power-log and --layers; nrg import --into RECORDING "
                           "adds layer times to a recording",
                           option)
               : 0;
}

static int check_operands(const struct nrg_cli *cli, const struct values *v, int argc)
{
    bool logs = v->logs.power && v->layers.n && argc == 0;
    if (logs)
        return 0;
    if (!v->logs.power && !v->layers.n && argc == 1)
        return check_layer_options(cli, v);
    return nrg_usage(cli, "wants one recording (nrg attribute run.nrg), or both --power-log LOG "
                          "and --layers FILE");
}

/* A part of the run. Cycles are made of whole readings, so they have none. */
static int set_range(const struct nrg_cli *cli, struct values *v)
{
    struct nrg_attribution_options *how = &v->how;
    how->has_range = v->from_s >= 0 || v->to_s >= 0;
    how->from_s = fmax(0, v->from_s);
    how->to_s = v->to_s >= 0 ? v->to_s : INFINITY;
    if (!how->has_range)
        return 0;
    if (v->per.n)
        return nrg_usage(cli, "--per does not go with --from and --to: what was counted is known "
                              "for the whole run only");
    if (how->by == NRG_BY_CYCLE)
        return nrg_usage(cli, "--from and --to do not go with rows per cycle");
    if (how->from_s >= how->to_s)
        return nrg_usage(cli, "--from %g is not before --to %g", how->from_s, how->to_s);
    return 0;
}

/* What follows from several options together. */
static int complete_options(const struct nrg_cli *cli, struct values *v)
{
    v->how.by = v->by == BY_OPERATOR ? NRG_BY_NAME
                : v->by != BY_INPUT  ? (enum nrg_rows_by)v->by
                : v->logs.power      ? NRG_BY_CYCLE
                                     : NRG_BY_PATH;
    v->how.run = v->run;
    v->how.domains = v->domains.items;
    v->how.per = v->per.items;
    v->how.confidence = v->confidence_percent / 100;
    /* All rows were asked for: none is folded unless that was asked for, too. */
    double fold_percent = v->outputs.top ? 0.1 : 0;
    v->outputs.min_share = (v->min_share_percent < 0 ? fold_percent : v->min_share_percent) / 100;
    v->logs.layers = v->layers.items;
    v->logs.n_layers = v->layers.n;
    nrg_join_place(&v->logs, &v->offset, &v->align);
    int code = set_range(cli, v);
    if (!code)
        code = nrg_attribute_check_outputs(cli, &v->outputs);
    if (!code)
        code = nrg_read_idle_power(cli, v->idle_power, &v->how.idle_w);
    v->logs.idle_w = v->how.idle_w;
    return code;
}

/* ---- the work ---- */

struct job {
    struct nrg_cli *cli;
    const struct values *v;
    struct nrg_attribution_options how;
    struct nrg_attribute_source source;
    struct nrg_attribution attribution;
    struct nrg_cycles cycles;
    bool has_cycles;
    struct nrg_waiting waiting;
};

static int no_spans(const struct job *job)
{
    nrg_say(
        "%s: holds no spans, so there is nothing to attribute energy to. Mark them with "
        "nrg run --torch -- python train.py (unchanged PyTorch programs), with nrg_span_begin() "
        "of nrg.h or nrg.span() of Python, or add layer times: nrg import",
        nrg_recording_path(job->source.recording));
    return 1;
}

/* As given, or as nrg import kept it. */
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
    int rc = nrg_cycles_make(&job->cycles, a, job->source.recording, job->how.method,
                             idle_power(job), &err);
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

static int attribute_energy(struct job *job)
{
    struct nrg_error err;
    struct nrg_attribution *a = &job->attribution;
    int rc = nrg_attribution_make(a, job->source.recording, &job->how, &err);
    /* The joined recording is a temporary file: the error names the log instead. */
    if (rc && job->source.from_logs)
        nrg_copy(err.where, sizeof err.where, job->v->logs.power);
    if (!rc && !job->how.has_range && job->how.by != NRG_BY_CYCLE)
        rc = nrg_waiting_make(&job->waiting, job->source.recording, &job->how, a, &err);
    if (!rc)
        rc = nrg_attribution_spread(a, job->source.recording, &job->how, job->v->skip, &err);
    if (rc)
        return nrg_complain(&err, 1);
    /* Joules of some seconds are an answer without any span. */
    int code = a->spans || job->how.has_range ? make_cycles(job) : no_spans(job);
    nrg_attribute_source_notes(&job->source, a);
    if (!code)
        code = nrg_attribute_source_models(&job->source, &job->v->graphs, a,
                                           job->how.by == NRG_BY_MODULE);
    if (!code && job->how.by == NRG_BY_NAME && nrg_attribution_list(a, job->v->by == BY_OPERATOR))
        code = nrg_out_of_memory();
    const struct nrg_attribution_report report = {.recording = job->source.recording,
                                                  .attribution = a,
                                                  .cycles = job->has_cycles ? &job->cycles : NULL,
                                                  .waiting = &job->waiting,
                                                  .confidence = job->how.confidence};
    if (!code)
        code = nrg_attribute_show(job->cli, &report, &job->v->outputs, job->has_cycles);
    if (!code)
        code = nrg_check_recording(job->source.recording);
    nrg_waiting_release(&job->waiting);
    nrg_cycles_release(&job->cycles);
    nrg_attribution_release(a);
    return code;
}

static int run_attribute(struct nrg_cli *cli, void *values, int argc, char **argv)
{
    struct values *v = values;
    struct job job = {.cli = cli, .v = v};
    int code = check_operands(cli, v, argc);
    if (!code)
        code = complete_options(cli, v);
    job.how = v->how;
    if (!code)
        code = nrg_attribute_source_open(&job.source, cli, argc ? argv[0] : NULL, &v->logs);
    if (code)
        return code;
    code = attribute_energy(&job);
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
        "over all readings), window (mean of the readings inside), nearest (reading closest to "
        "the\n"
        "end), cpu-time (for an estimate: its law, applied to the CPU time of the spans). auto "
        "takes\n"
        "cpu-time for an estimate, regress for spans that come often enough, else integrate, and "
        "says\n"
        "why.\n"
        "\n"
        "With --power-log and --layers, two logs of other programs are joined first. Rows are "
        "then\n"
        "per cycle, and --method window gives the power of the earlier Jetson tool's\n"
        "compute_layer_metrics_by_cycle.",
    .examples = "  nrg attribute run.nrg\n"
                "  nrg attribute --by step --top all run.nrg\n"
                "  nrg attribute --per tokens/epoch run.nrg         # tokens counted in epochs\n"
                "  nrg attribute --from 1.5 --to 4 run.nrg          # only these seconds\n"
                "  nrg attribute --json run.nrg | jq '.rows[] | select(.kind == \"module\")'\n"
                "  nrg attribute --folded=energy.folded --trace=trace.json run.nrg\n"
                "  nrg attribute --power-log lenet_power_log.log \\\n"
                "      --layers lenet_layerwise_latency.json \\\n"
                "      --idle-power idling_power.json --method window --lag 0.42\n",
    .options = options,
    .values_size = sizeof(struct values),
    .defaults = &defaults,
    .run = run_attribute,
};
