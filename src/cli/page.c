/* See page.h. Recordings are shown one after the other, so that memory is that of the largest. */
#include "cli/page.h"

#include <math.h>
#include <stdio.h>

#include "cli/attribute/source.h"
#include "report/page/page.h"

static const struct nrg_attribution_options how = {
    .idle_w = NAN, .by = NRG_BY_PATH, .confidence = 0.95, .buckets = NRG_PAGE_BUCKETS};

static int add_attributed(FILE *out, struct nrg_attribute_source *source,
                          const struct nrg_report *report, bool redact)
{
    struct nrg_attribution attribution;
    struct nrg_list no_graphs = {0};
    struct nrg_error err;
    if (nrg_attribution_make(&attribution, source->recording, &how, &err))
        return nrg_complain(&err, 1);
    nrg_attribute_source_notes(source, &attribution);
    int code = nrg_attribute_source_models(source, &no_graphs, &attribution, false);
    const struct nrg_page_run run = {source->recording, report, &attribution, redact};
    if (!code && nrg_page_add(out, &run, &err))
        code = nrg_complain(&err, 1);
    nrg_attribution_release(&attribution);
    return code;
}

static int add_recording(FILE *out, const struct nrg_cli *cli, const struct nrg_page_options *o,
                         const char *path)
{
    struct nrg_attribute_source source = {0};
    struct nrg_import_join_options no_logs = {0};
    struct nrg_report report;
    struct nrg_error err;
    int code = nrg_attribute_source_open(&source, cli, path, &no_logs);
    if (code)
        return code;
    if (nrg_report_make(&report, source.recording, &o->show, &err)) {
        code = nrg_complain(&err, 1);
    } else {
        code = add_attributed(out, &source, &report, o->redact);
        nrg_report_release(&report);
    }
    nrg_attribute_source_close(&source);
    return code;
}

int nrg_page_write(const struct nrg_cli *cli, const struct nrg_page_options *o,
                   char *const *recordings, int n, const char *path)
{
    struct nrg_error err;
    FILE *out = nrg_output_open(path);
    if (!out)
        return 1;
    int code = nrg_page_begin(out, &err) ? nrg_complain(&err, 1) : 0;
    for (int i = 0; !code && i < n; i++)
        code = add_recording(out, cli, o, recordings[i]);
    if (!code)
        nrg_page_end(out);
    int closed = nrg_output_close(out, path, 0);
    if (code && !nrg_is_stdout(path))
        remove(path); /* half a page is none */
    return code ? code : closed;
}
