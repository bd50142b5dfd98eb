/*
 * The folder of AIPowerMeter from a recording: export/formats.h, docs/export.md. Every run (but not
 * the baseline) is a segment; a record is the mean over one period, dated at its end in local time,
 * as AIPowerMeter dates it. Wall-clock time is taken once per run and then goes with the
 * monotonic clock, so that a clock that was set in between does not turn the dates back.
 *
 * Refuses to write over a power_metrics.json that is there.
 */
#include "report/export/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <nrg/nrg.h>

#include "base/json/memory.h"
#include "base/mem.h"
#include "base/output_file.h"
#include "energy/summary.h"
#include "report/export/formats.h"

struct writer {
    struct nrg_recording *recording;
    struct nrg_aipm aipm;
    struct nrg_span_ns *spans;
    size_t n_spans;
    struct nrg_aipm_idle *idle; /* per span */
    FILE *out;
    size_t span; /* being written */
    bool any;
};

/* As Python's str(datetime): local time, microseconds, no zone. */
static void date_text(int64_t real_ns, char *buf, size_t size)
{
    char seconds[32];
    struct tm tm;
    time_t s = (time_t)(real_ns / NRG_NS_PER_S);
    localtime_r(&s, &tm);
    strftime(seconds, sizeof seconds, "%Y-%m-%d %H:%M:%S", &tm);
    snprintf(buf, size, "%s.%06d", seconds, (int)(real_ns % NRG_NS_PER_S / 1000));
}

static int64_t real_at(const struct writer *w, size_t span, int64_t t_ns)
{
    int64_t begin_ns = w->spans[span].begin_ns;
    int64_t real_ns = nrg_recording_realtime_ns(w->recording, begin_ns);
    return (real_ns > 0 ? real_ns : begin_ns) + (t_ns - begin_ns);
}

static void end_segment(struct writer *w)
{
    if (w->any)
        fputs("\"END OF RECORDING SEGMENT\"\n", w->out);
}

static int write_record(void *arg, const struct nrg_bin *bin)
{
    struct writer *w = arg;
    char date[64];
    int64_t real_ns = real_at(w, bin->span, bin->end_ns);
    if (bin->span != w->span)
        end_segment(w);
    w->span = bin->span;
    w->any = true;
    date_text(real_ns, date, sizeof date);
    json_t *metrics = nrg_aipm_metrics(&w->aipm, bin, real_ns);
    json_t *record = nrg_json_whole(json_pack("{s:s, s:o}", "date", date, "metrics", metrics));
    int rc = record ? 0 : -ENOMEM;
    if (record && (json_dumpf(record, w->out, JSON_REAL_PRECISION(15)) || fputc('\n', w->out) < 0))
        rc = -EIO;
    json_decref(record);
    return rc;
}

static int by_begin(const void *a, const void *b)
{
    const struct nrg_span_ns *x = a, *y = b;
    return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

/* Runs as spans, apart from each other; the whole recording when it knows of no run. */
static int make_spans(struct writer *w, struct nrg_error *err)
{
    size_t n, made = 0;
    int64_t first_ns, last_ns;
    const struct nrg_run *runs = nrg_recording_runs(w->recording, &n);
    if (nrg_recording_extent(w->recording, &first_ns, &last_ns))
        return nrg_fail(err, -ENODATA, nrg_recording_path(w->recording), "holds no readings");
    w->spans = nrg_calloc(n + 1, sizeof *w->spans);
    if (!w->spans)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < n; i++) {
        /* A recorder that was killed could not note the end. */
        int64_t end = runs[i].end_ns > runs[i].begin_ns ? runs[i].end_ns : last_ns;
        if (strcmp(runs[i].kind, "baseline") && end > runs[i].begin_ns)
            w->spans[made++] = (struct nrg_span_ns){runs[i].begin_ns, end};
    }
    if (!made)
        w->spans[made++] = (struct nrg_span_ns){first_ns, last_ns};
    qsort(w->spans, made, sizeof *w->spans, by_begin);
    w->n_spans = 1;
    for (size_t i = 1; i < made; i++)
        if (w->spans[i].begin_ns >= w->spans[w->n_spans - 1].end_ns)
            w->spans[w->n_spans++] = w->spans[i];
    return 0;
}

/* The baseline is not exported, and AIPowerMeter has no key for what it showed. */
static int find_idle(struct writer *w, struct nrg_error *err)
{
    int rc = 0;
    w->idle = nrg_calloc(w->n_spans + 1, sizeof *w->idle);
    if (!w->idle)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t i = 0; !rc && i < w->n_spans; i++) {
        const struct nrg_run run = {
            .begin_ns = w->spans[i].begin_ns, .end_ns = w->spans[i].end_ns, .exit_code = -1};
        struct nrg_summary s;
        rc = nrg_summary_make(&s, w->recording, &run, NRG_SPLIT_ACTIVE, err);
        if (rc)
            break;
        w->idle[i] = (struct nrg_aipm_idle){s.idle_found, s.idle_method};
        nrg_summary_release(&s);
    }
    w->aipm.idle = w->idle;
    return rc;
}

static FILE *create_file(const char *folder, const char *name, bool overwrite,
                         struct nrg_error *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%.4000s/%s", folder, name);
    return nrg_output_file(path, overwrite, err);
}

static int close_file(FILE *out, const char *folder, int rc, struct nrg_error *err)
{
    bool failed = ferror(out);
    if (fclose(out))
        failed = true;
    return rc ? rc : failed ? nrg_fail(err, -EIO, folder, "cannot write: %s", strerror(errno)) : 0;
}

static int write_metadata(struct writer *w, const char *folder, struct nrg_error *err)
{
    const char *text = nrg_recording_text(w->recording, "note.description");
    char date[64];
    FILE *out = create_file(folder, "metadata.json", true, err);
    if (!out)
        return err ? err->code : -EIO;
    if (!text)
        text = nrg_recording_text(w->recording, "command_line");
    date_text(real_at(w, 0, w->spans[0].begin_ns), date, sizeof date);
    json_t *doc = json_pack("{s:s, s:s, s:s}", "description", text ? text : "", "date", date,
                            "exported_by", "nrg " NRG_VERSION);
    int rc = doc && !json_dumpf(doc, out, 0) && fputc('\n', out) >= 0
                 ? 0
                 : nrg_fail(err, -EIO, folder, "cannot write metadata.json");
    json_decref(doc);
    return close_file(out, folder, rc, err);
}

static int write_records(struct writer *w, int64_t period_ns, const char *folder, bool overwrite,
                         struct nrg_error *err)
{
    const struct nrg_bins_options options = {
        .spans = w->spans, .n_spans = w->n_spans, .period_ns = period_ns, .processes = true};
    w->out = create_file(folder, "power_metrics.json", overwrite, err);
    if (!w->out)
        return err ? err->code : -EIO;
    int rc = nrg_bins_make(w->recording, &options, write_record, w, err);
    end_segment(w);
    return close_file(w->out, folder, rc, err);
}

int nrg_export_aipowermeter(struct nrg_recording *recording, int64_t period_ns, const char *folder,
                            bool overwrite, struct nrg_error *err)
{
    struct writer w = {.recording = recording};
    w.aipm.channels = nrg_recording_channels(recording, &w.aipm.n);
    struct nrg_aipm_channel *what = nrg_calloc(w.aipm.n + 1, sizeof *what);
    if (!what)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    for (size_t i = 0; i < w.aipm.n; i++)
        what[i] = nrg_aipm_what(w.aipm.channels, w.aipm.n, i);
    w.aipm.what = what;
    int rc = make_spans(&w, err);
    if (!rc)
        rc = find_idle(&w, err);
    if (!rc && mkdir(folder, 0777) && errno != EEXIST)
        rc = nrg_fail(err, -errno, folder, "cannot make the folder: %s", strerror(errno));
    if (!rc)
        rc = write_records(&w, period_ns, folder, overwrite, err);
    if (!rc)
        rc = write_metadata(&w, folder, err);
    free(w.spans);
    free(w.idle);
    free(what);
    return rc;
}
