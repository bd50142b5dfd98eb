/* See attribute_show.h. */
#include "cli/attribute/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/parse.h"

static bool is_stdout(const char *path)
{
    return path && !strcmp(path, "-");
}

int nrg_attribute_check_outputs(const struct nrg_attribute_outputs *o)
{
    if (is_stdout(o->json) + is_stdout(o->csv) + is_stdout(o->folded) + is_stdout(o->trace) < 2)
        return 0;
    fprintf(stderr, "nrg attribute: only one of --json, --csv, --folded and --trace can go to "
                    "stdout: name a file for the others (--csv=FILE)\n");
    return 2;
}

/* ---- the terminal ---- */

/* Of stdout, or what COLUMNS says; 0: it is no terminal. */
static unsigned terminal_width(void)
{
    struct winsize size;
    uint64_t given = 0;
    const char *columns = getenv("COLUMNS");
    if (columns && !nrg_parse_u64(columns, strlen(columns), &given) && given >= 40 &&
        given <= 10000)
        return (unsigned)given;
    if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_col < 40)
        return 0;
    return size.ws_col;
}

static bool utf8_wanted(void)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < 3; i++) {
        const char *value = getenv(variables[i]);
        if (value && value[0])
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

static void show_text(const struct nrg_attribution_report *report,
                      const struct nrg_attribute_outputs *o)
{
    const struct nrg_attribution_view view = {.colour = nrg_use_colour(stdout),
                                              .unicode = utf8_wanted(),
                                              .width = terminal_width(),
                                              .top = o->top,
                                              .min_share = o->min_share};
    nrg_attribution_text(report, &view, stdout);
}

/* ---- files ---- */

typedef int write_fn(const struct nrg_attribution_report *report, FILE *out);

static FILE *open_output(const char *path)
{
    FILE *out = is_stdout(path) ? stdout : fopen(path, "we");
    if (!out)
        fprintf(stderr, "nrg: %s: %s\n", path, strerror(errno));
    return out;
}

static int close_output(FILE *out, const char *path, int rc)
{
    int failed = fflush(out) || ferror(out), why = errno;
    if (out != stdout && fclose(out)) {
        failed = 1;
        why = errno;
    }
    if (rc || failed)
        fprintf(stderr, "nrg: %s: cannot write: %s\n", is_stdout(path) ? "stdout" : path,
                strerror(rc == -ENOMEM ? ENOMEM : why));
    return rc || failed ? 1 : 0;
}

static int write_one(const struct nrg_attribution_report *report, const char *path, write_fn *write)
{
    FILE *out = path ? open_output(path) : NULL;
    if (!path)
        return 0;
    return out ? close_output(out, path, write(report, out)) : 1;
}

static int write_trace(const struct nrg_cli *cli, const struct nrg_attribution_report *report,
                       const struct nrg_attribute_outputs *o)
{
    const struct nrg_summary *s = &report->attribution->summary;
    const struct nrg_trace_options options = {
        .begin_ns = s->begin_ns, .end_ns = s->end_ns, .limit = (uint64_t)o->trace_limit};
    struct nrg_trace_result result;
    struct nrg_error err;
    FILE *out = o->trace ? open_output(o->trace) : NULL;
    if (!o->trace || !out)
        return o->trace ? 1 : 0;
    if (nrg_attribution_trace(report->recording, &options, out, &result, &err)) {
        if (out != stdout)
            fclose(out);
        return nrg_complain(&err, 1);
    }
    if (result.left_out && !cli->quiet)
        fprintf(stderr, "nrg: %s: %llu spans, %llu more are left out (--trace-limit)\n",
                is_stdout(o->trace) ? "stdout" : o->trace, (unsigned long long)result.spans,
                (unsigned long long)result.left_out);
    return close_output(out, o->trace, 0);
}

int nrg_attribute_show(const struct nrg_cli *cli, const struct nrg_attribution_report *report,
                       const struct nrg_attribute_outputs *o, bool earlier_columns)
{
    bool taken =
        is_stdout(o->json) || is_stdout(o->csv) || is_stdout(o->folded) || is_stdout(o->trace);
    if (!taken && !cli->quiet)
        show_text(report, o);
    int code = write_one(report, o->json, nrg_attribution_json);
    code |= write_one(report, o->csv,
                      earlier_columns ? nrg_attribution_csv_cycles : nrg_attribution_csv);
    code |= write_one(report, o->folded, nrg_attribution_folded);
    code |= write_trace(cli, report, o);
    if (!taken && !cli->quiet && (fflush(stdout) || ferror(stdout))) {
        fprintf(stderr, "nrg: stdout: cannot write: %s\n", strerror(errno));
        code = 1;
    }
    return code;
}
