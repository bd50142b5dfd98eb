/* See show.h. */
#include "cli/show.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "cli/internal.h"
#include "report/run/report.h"

const struct nrg_choice nrg_split_rules[] = {
    {"active", NRG_SPLIT_ACTIVE, "above idle, by CPU time; default"},
    {"busy-time", NRG_SPLIT_BUSY_TIME, NULL},
    {0},
};

const struct nrg_choice nrg_print_choices[] = {
    {"energy", NRG_PRINT_ENERGY, "joules of the program; with --repeat their mean; nan: not known"},
    {0},
};

bool nrg_show_fits(const struct nrg_show_options *o)
{
    return !o->print || !nrg_is_stdout(o->json);
}

/* Fixed digits: not every script reads exponents. */
static void print_energy(const struct nrg_report *report)
{
    double energy_j = nrg_report_spread(report, nrg_report_program_j).mean;
    if (isnan(energy_j))
        nrg_say("the program's energy is not known: %s", report->runs[0].program.why);
    printf("%.6f\n", energy_j);
}

static void release_runs(struct nrg_summary *runs, int n)
{
    for (int i = 0; i < n; i++)
        nrg_summary_release(&runs[i]);
    free(runs);
}

/* Summaries of all runs that are not the baseline. Returns how many, or -errno. */
static int summarise_runs(struct nrg_recording *recording, enum nrg_split split,
                          struct nrg_summary **out, struct nrg_error *err)
{
    size_t n, made = 0;
    int rc = 0;
    const struct nrg_run *runs = nrg_recording_runs(recording, &n);
    *out = nrg_calloc(n + 1, sizeof **out);
    if (!*out)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t i = 0; !rc && i < n; i++) {
        if (!strcmp(runs[i].kind, "baseline"))
            continue;
        rc = nrg_summary_make(&(*out)[made], recording, &runs[i], split, err);
        made += !rc;
    }
    if (!rc && !made)
        rc = nrg_recording_no_run(recording, "run", err);
    if (!rc)
        return (int)made;
    release_runs(*out, (int)made);
    return rc < 0 ? rc : -EIO; /* anything else would be a count */
}

/* As given now, or else when the recording was made. */
static double given_or_kept(const struct nrg_recording *recording, const char *option, double given)
{
    const char *kept = nrg_recording_text(recording, option);
    double number = 0;
    if (given > 0 || !kept || nrg_parse_double(kept, strlen(kept), &number))
        return given;
    return number;
}

int nrg_report_make(struct nrg_report *report, struct nrg_recording *recording,
                    const struct nrg_show_options *o, struct nrg_error *err)
{
    struct nrg_summary *runs;
    int n = summarise_runs(recording, (enum nrg_split)o->split, &runs, err);
    if (n < 0)
        return n;
    *report = (struct nrg_report){
        .recording = recording,
        .runs = runs,
        .n_runs = (size_t)n,
        .model = nrg_model_counts_of(recording),
        .options = {.all_processes = o->all_processes,
                    .carbon_g_per_kwh =
                        given_or_kept(recording, "option.carbon-intensity", o->carbon_g_per_kwh),
                    .price_per_kwh = given_or_kept(recording, "option.price", o->price_per_kwh)},
    };
    int rc = nrg_serving_make(&report->serving, recording, &runs[0], err);
    if (rc)
        nrg_report_release(report);
    return rc;
}

void nrg_report_release(struct nrg_report *report)
{
    nrg_serving_release(&report->serving);
    release_runs((struct nrg_summary *)(uintptr_t)report->runs, (int)report->n_runs);
}

int nrg_show(struct nrg_recording *recording, const struct nrg_show_options *o, FILE *text_out)
{
    struct nrg_error err;
    struct nrg_report report;
    if (nrg_report_make(&report, recording, o, &err))
        return nrg_complain(&err, 1);
    report.options.colour = text_out && nrg_use_colour(text_out);
    int code = 0;
    if (nrg_recording_check(recording, &err)) {
        nrg_report_release(&report);
        return nrg_complain(&err, 1);
    }
    if (text_out) {
        struct nrg_fitted text;
        FILE *out = nrg_fitted_begin(&text, text_out);
        if (out)
            nrg_report_text(&report, out);
        code = nrg_fitted_end(&text);
    }
    if (!code)
        code = nrg_check_recording(recording);
    if (o->json && !code)
        code = nrg_print_json(nrg_report_json(&report), o->json);
    if (o->print == NRG_PRINT_ENERGY)
        print_energy(&report);
    nrg_report_release(&report);
    return code;
}
