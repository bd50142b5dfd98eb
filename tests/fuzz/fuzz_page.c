/*
 * Fuzz target: a whole recording up to the page, and to the profiles of other programs and
 * pictures. No matter what it holds, they are made or refused; the page holds no character that
 * could end the element its data is in, and the profiles are JSON.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/fuzz_recording.h"
#include "report/export/formats.h"
#include "report/page/page.h"
#include "report/picture/picture.h"

static void check(const char *page, size_t size)
{
    const char *data = memmem(page, size, "nrg-run\">", 9);
    const char *end = data ? memchr(data + 9, '<', size - (size_t)(data + 9 - page)) : NULL;
    if (!end || strncmp(end, "</script>\n", 10) || page[size - 1] != '\n')
        abort();
}

static void show(struct nrg_recording *recording, const struct nrg_attribution *attribution)
{
    struct nrg_report report = {.recording = recording, .runs = &attribution->summary, .n_runs = 1};
    struct nrg_page_run run = {
        .recording = recording, .report = &report, .attribution = attribution};
    struct nrg_error err;
    char *page = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&page, &size);
    if (!out)
        return;
    int rc = nrg_page_add(out, &run, &err);
    fclose(out);
    if (!rc)
        check(page, size);
    free(page);
}

static void export(struct nrg_recording *recording, const struct nrg_attribution *attribution,
                   bool firefox)
{
    struct nrg_error err;
    uint64_t left_out;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    int rc = firefox ? nrg_export_firefox(recording, attribution, out, &left_out, &err)
                     : nrg_export_speedscope(recording, attribution, out, &left_out, &err);
    fclose(out);
    json_t *doc = rc ? NULL : json_loadb(text, size, JSON_ALLOW_NUL, NULL);
    if (!rc && !doc)
        abort();
    json_decref(doc);
    free(text);
}

static void draw(struct nrg_recording *recording, const struct nrg_attribution *attribution,
                 nrg_picture_fn picture)
{
    const struct nrg_picture what = {recording, attribution, NULL};
    struct nrg_error err;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return;
    int rc = picture(&what, out, &err);
    fclose(out);
    if (!rc && (size < 7 || memcmp(text + size - 7, "</svg>\n", 7)))
        abort();
    free(text);
}

static void make_page(struct nrg_recording *recording)
{
    struct nrg_attribution_options how = {.idle_w = NAN, .buckets = 50};
    struct nrg_attribution attribution;
    struct nrg_error err;
    if (nrg_attribution_make(&attribution, recording, &how, &err))
        return;
    show(recording, &attribution);
    export(recording, &attribution, true);
    export(recording, &attribution, false);
    draw(recording, &attribution, nrg_picture_timeline);
    draw(recording, &attribution, nrg_picture_flame);
    draw(recording, &attribution, nrg_picture_roofline);
    nrg_attribution_release(&attribution);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_recording(data, size, make_page);
}
