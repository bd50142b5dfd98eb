/*
 * See page.h. Recordings are shown one after the other, so that memory is that of the largest. The
 * page is made in a temporary file: when a recording can't be shown, what was there before stays.
 */
#include "cli/page/page.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/temp.h"
#include "cli/page/machine.h"
#include "cli/page/sides.h"
#include "report/page/page.h"

static const struct nrg_attribution_options how = {
    .idle_w = NAN, .by = NRG_BY_PATH, .confidence = 0.95, .buckets = NRG_PAGE_BUCKETS};

/* What all recordings of a page have in common. */
struct page {
    const struct nrg_cli *cli;
    const struct nrg_page_options *options;
    struct nrg_page_machine machine;
    json_t *comparison; /* NULL: there is one recording only, or it was shown */
    FILE *out;
};

static int add_attributed(struct page *p, struct nrg_attribute_source *source,
                          const struct nrg_report *report)
{
    struct nrg_attribution attribution;
    struct nrg_list no_graphs = {0};
    struct nrg_error err;
    if (nrg_attribution_make(&attribution, source->recording, &how, &err))
        return nrg_complain(&err, 1);
    nrg_attribute_source_notes(source, &attribution);
    int code = nrg_attribute_source_models(source, &no_graphs, &attribution, false);
    json_t *prediction = code ? NULL : nrg_page_machine_against(&p->machine, source, &attribution);
    const struct nrg_page_run run = {.recording = source->recording,
                                     .report = report,
                                     .attribution = &attribution,
                                     .redact = p->options->redact,
                                     .price = p->machine.path ? &p->machine.price : NULL,
                                     .prediction = prediction,
                                     .comparison = p->comparison};
    if (!code && nrg_page_add(p->out, &run, &err))
        code = nrg_complain(&err, 1);
    json_decref(prediction);
    nrg_attribution_release(&attribution);
    return code;
}

static int add_recording(struct page *p, const char *path)
{
    struct nrg_attribute_source source = {0};
    struct nrg_import_join_options no_logs = {0};
    struct nrg_report report;
    struct nrg_error err;
    int code = nrg_attribute_source_open(&source, p->cli, path, &no_logs);
    if (code)
        return code;
    if (nrg_report_make(&report, source.recording, &p->options->show, &err)) {
        code = nrg_complain(&err, 1);
    } else {
        code = add_attributed(p, &source, &report);
        if (!code)
            code = nrg_check_recording(source.recording);
        nrg_report_release(&report);
    }
    nrg_attribute_source_close(&source);
    return code;
}

static int add_all(struct page *p, char *const *recordings, int n)
{
    struct nrg_error err = {0};
    int code = nrg_page_machine_open(&p->machine, p->options->profile);
    if (!code && n > 1 && !(p->comparison = nrg_page_compare(recordings, n, &err)))
        code = nrg_complain(&err, 1);
    if (!code && nrg_page_begin(p->out, &err))
        code = nrg_complain(&err, 1);
    for (int i = 0; !code && i < n; i++) {
        code = add_recording(p, recordings[i]);
        json_decref(p->comparison); /* stands with the first one */
        p->comparison = NULL;
    }
    if (!code)
        nrg_page_end(p->out);
    json_decref(p->comparison);
    nrg_page_machine_close(&p->machine);
    return code;
}

static int make_page(struct page *p, char *const *recordings, int n)
{
    int code = add_all(p, recordings, n);
    if (!code && nrg_memory_is_lacking())
        code = nrg_out_of_memory();
    errno = 0;
    if (!code && (fflush(p->out) || ferror(p->out))) {
        nrg_say("%s: cannot write: %s", nrg_temp_dir(), strerror(errno ? errno : EIO));
        code = 1;
    }
    return code;
}

static int copy_page(FILE *made, const char *path)
{
    char bytes[65536];
    size_t n;
    int rc = 0;
    rewind(made);
    FILE *out = nrg_output_open(path);
    if (!out)
        return 1;
    while (!rc && (n = fread(bytes, 1, sizeof bytes, made)) > 0)
        if (fwrite(bytes, 1, n, out) < n)
            rc = -errno;
    return nrg_output_close(out, path, ferror(made) ? -EIO : rc);
}

int nrg_page_write(const struct nrg_cli *cli, const struct nrg_page_options *o,
                   char *const *recordings, int n, const char *path)
{
    struct page page = {.cli = cli, .options = o, .out = nrg_temp_file()};
    if (!page.out) {
        nrg_say("%s: cannot make a file there: %s", nrg_temp_dir(), strerror(errno));
        return 1;
    }
    int code = make_page(&page, recordings, n);
    if (!code)
        code = copy_page(page.out, path);
    fclose(page.out);
    return code;
}
