/* See show.h. */
#include "cli/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/run/report.h"

int nrg_show_check(const struct nrg_cli *cli, const struct nrg_show_options *o)
{
    if (o->split && strcmp(o->split, "active") && strcmp(o->split, "busy-time")) {
        fprintf(stderr, "nrg %s: --split is active or busy-time, not '%s'\n", cli->command->name,
                o->split);
        return 2;
    }
    if (o->carbon_g_per_kwh < 0) {
        fprintf(stderr, "nrg %s: --carbon-intensity can't be negative\n", cli->command->name);
        return 2;
    }
    return 0;
}

/* Summaries of all runs that are not the baseline. Returns how many, or -errno. */
static int summarise(struct nrg_recording *recording, enum nrg_split split,
                     struct nrg_summary **out, struct nrg_error *err)
{
    size_t n, made = 0;
    int rc = 0;
    const struct nrg_run *runs = nrg_recording_runs(recording, &n);
    *out = calloc(n + 1, sizeof **out);
    if (!*out)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t i = 0; !rc && i < n; i++) {
        if (!strcmp(runs[i].kind, "baseline"))
            continue;
        rc = nrg_summary_make(&(*out)[made], recording, &runs[i], split, err);
        made += !rc;
    }
    if (!rc && !made)
        rc = nrg_fail(err, -ENODATA, nrg_recording_path(recording), "holds no run");
    if (!rc)
        return (int)made;
    for (size_t i = 0; i < made; i++)
        nrg_summary_release(&(*out)[i]);
    free(*out);
    return rc < 0 ? rc : -EIO; /* a caller takes anything else for a count */
}

int nrg_show(struct nrg_recording *recording, const struct nrg_show_options *o, FILE *text_out)
{
    struct nrg_error err;
    struct nrg_summary *runs;
    bool busy_time = o->split && !strcmp(o->split, "busy-time");
    int n = summarise(recording, busy_time ? NRG_SPLIT_BUSY_TIME : NRG_SPLIT_ACTIVE, &runs, &err);
    if (n < 0)
        return nrg_complain(&err, 1);
    struct nrg_report report = {
        .recording = recording,
        .runs = runs,
        .n_runs = (size_t)n,
        .model = nrg_model_counts_of(recording),
        .options = {.colour = text_out && nrg_use_colour(text_out),
                    .all_processes = o->all_processes,
                    .carbon_g_per_kwh = o->carbon_g_per_kwh},
    };
    int code = 0;
    if (text_out)
        nrg_report_text(&report, text_out);
    if (o->json)
        code = nrg_print_json(nrg_report_json(&report), o->json);
    for (int i = 0; i < n; i++)
        nrg_summary_release(&runs[i]);
    free(runs);
    return code;
}
