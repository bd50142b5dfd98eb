/* See show.h. */
#include "cli/attribute/show.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int count_on_stdout(const struct nrg_attribute_outputs *o)
{
    return nrg_is_stdout(o->json) + nrg_is_stdout(o->csv) + nrg_is_stdout(o->folded) +
           nrg_is_stdout(o->trace);
}

int nrg_attribute_check_outputs(const struct nrg_cli *cli, const struct nrg_attribute_outputs *o)
{
    if (count_on_stdout(o) < 2)
        return 0;
    return nrg_usage(cli, "only one of --json, --csv, --folded and --trace can go to stdout: name "
                          "a file for the others (--csv=FILE)");
}

/* ---- the terminal ---- */

static int show_text(const struct nrg_attribution_report *report,
                     const struct nrg_attribute_outputs *o)
{
    struct nrg_fitted text;
    FILE *out = nrg_fitted_begin(&text, stdout);
    text.any_width = true; /* wide on purpose where nobody reads it on a terminal */
    const struct nrg_attribution_view view = {.colour = nrg_use_colour(stdout),
                                              .unicode = nrg_use_utf8(),
                                              .width = nrg_terminal_width(stdout),
                                              .top = o->top,
                                              .min_share = o->min_share};
    if (out)
        nrg_attribution_text(report, &view, out);
    return nrg_fitted_end(&text);
}

/* ---- files ---- */

typedef int write_fn(const struct nrg_attribution_report *report, FILE *out);

static int write_one(const struct nrg_attribution_report *report, const char *path, write_fn *write)
{
    if (!path)
        return 0;
    FILE *out = nrg_output_open(path);
    return out ? nrg_output_close(out, path, write(report, out)) : 1;
}

static int write_trace(const struct nrg_cli *cli, const struct nrg_attribution_report *report,
                       const struct nrg_attribute_outputs *o)
{
    const struct nrg_attribution *a = report->attribution;
    struct nrg_trace_options options = {.begin_ns = a->summary.begin_ns,
                                        .end_ns = a->summary.end_ns,
                                        .limit = (uint64_t)o->trace_limit};
    struct nrg_trace_result result;
    struct nrg_error err;
    if (!o->trace)
        return 0;
    if (!isnan(a->from_s)) { /* only that part of the run */
        options.end_ns = options.begin_ns + (int64_t)llround(a->to_s * 1e9);
        options.begin_ns += (int64_t)llround(a->from_s * 1e9);
    }
    FILE *out = nrg_output_open(o->trace);
    if (!out)
        return 1;
    if (nrg_attribution_trace(report->recording, &options, out, &result, &err)) {
        if (out != stdout)
            fclose(out);
        return nrg_complain(&err, 1);
    }
    if (result.left_out && !cli->quiet)
        nrg_say("%s: %llu spans, %llu more are left out (--trace-limit)",
                nrg_is_stdout(o->trace) ? "stdout" : o->trace, (unsigned long long)result.spans,
                (unsigned long long)result.left_out);
    return nrg_output_close(out, o->trace, 0);
}

int nrg_attribute_show(const struct nrg_cli *cli, const struct nrg_attribution_report *report,
                       const struct nrg_attribute_outputs *o, bool earlier_columns)
{
    bool text = !count_on_stdout(o) && !cli->quiet;
    int code = text ? show_text(report, o) : 0;
    code |= write_one(report, o->json, nrg_attribution_json);
    code |= write_one(report, o->csv,
                      earlier_columns ? nrg_attribution_csv_cycles : nrg_attribution_csv);
    code |= write_one(report, o->folded, nrg_attribution_folded);
    code |= write_trace(cli, report, o);
    if (text)
        code |= nrg_output_close(stdout, "-", 0);
    return code;
}
