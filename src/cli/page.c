/*
 * See page.h. Recordings are shown one after the other, so that memory is that of the largest. The
 * page is made in a temporary file: when a recording can't be shown, what was there before stays.
 */
#include "cli/page.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/temp.h"
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
        if (!code)
            code = nrg_check_recording(source.recording);
        nrg_report_release(&report);
    }
    nrg_attribute_source_close(&source);
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

static int make_page(FILE *out, const struct nrg_cli *cli, const struct nrg_page_options *o,
                     char *const *recordings, int n)
{
    struct nrg_error err;
    int code = nrg_page_begin(out, &err) ? nrg_complain(&err, 1) : 0;
    for (int i = 0; !code && i < n; i++)
        code = add_recording(out, cli, o, recordings[i]);
    if (!code)
        nrg_page_end(out);
    if (!code && nrg_memory_is_lacking())
        code = nrg_out_of_memory();
    errno = 0;
    if (!code && (fflush(out) || ferror(out))) {
        nrg_say("%s: cannot write: %s", nrg_temp_dir(), strerror(errno ? errno : EIO));
        code = 1;
    }
    return code;
}

int nrg_page_write(const struct nrg_cli *cli, const struct nrg_page_options *o,
                   char *const *recordings, int n, const char *path)
{
    FILE *made = nrg_temp_file();
    if (!made) {
        nrg_say("%s: cannot make a file there: %s", nrg_temp_dir(), strerror(errno));
        return 1;
    }
    int code = make_page(made, cli, o, recordings, n);
    if (!code)
        code = copy_page(made, path);
    fclose(made);
    return code;
}
