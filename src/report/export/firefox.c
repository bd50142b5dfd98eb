/*
 * The Firefox Profiler's processed format, version 48: newer profilers upgrade it when they load
 * it.
 *
 *   counters   power of each domain, as energy since the sample before in picowatt hours
 *   thread 0   the energy: a sample per row and bucket of time, whose weight is microjoules, so
 *              that a range which is selected there has its own flame graph
 *   threads    one per track, its spans as markers
 *
 * The format has no gaps: time without readings has no sample, so the viewer spreads the next one
 * over it.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "report/attribution/report.h"
#include "report/export/formats.h"
#include "report/export/stacks.h"
#include "report/json_text.h"

#define LEAST_UJ     1e-3 /* less is rounding */
#define MOST_UJ      1e30 /* more is no energy */
#define PWH_PER_J    (1e12 / 3600)
#define ENERGY_PID   "nrg"
#define VERSION_TEXT "48"

struct firefox {
    struct nrg_recording *recording;
    const struct nrg_stacks *stacks;
    const struct nrg_attribution_buckets *buckets;
    FILE *out;
};

static void put_ms(FILE *out, int64_t ns)
{
    fprintf(out, "%" PRId64 ".%06" PRId64, ns / 1000000, ns % 1000000);
}

static void put_meta(const struct firefox *f)
{
    const struct nrg_attribution_buckets *b = f->buckets;
    char command[NRG_EXPORT_NAME];
    int64_t began_ns =
        nrg_recording_realtime_ns(f->recording, f->stacks->attribution->summary.begin_ns);
    fputs("\"meta\":{\"version\":29,\"preprocessedProfileVersion\":" VERSION_TEXT
          ",\"processType\":0,\"stackwalk\":0,\"debug\":false,\"symbolicated\":true,\"interval\":",
          f->out);
    put_ms(f->out, b->edges_ns[b->n > 1 ? 1 : b->n]);
    fputs(",\"startTime\":", f->out);
    put_ms(f->out, began_ns > 0 ? began_ns : 0);
    fputs(",\"product\":", f->out);
    nrg_export_name(f->recording, command);
    nrg_json_put_text(f->out, command);
    fputs(",\n\"importedFrom\":\"nrg " NRG_VERSION
          "\",\"categories\":[{\"name\":\"Other\",\"color\":"
          "\"grey\",\"subcategories\":[\"Other\"]},{\"name\":\"Span\",\"color\":\"orange\","
          "\"subcategories\":[\"Other\"]}],\n\"markerSchema\":[{\"name\":\"span\",\"display\":["
          "\"marker-chart\",\"marker-table\"],\"tooltipLabel\":\"{marker.name}\","
          "\"tableLabel\":\"{marker.name}\",\"chartLabel\":\"{marker.name}\",\"data\":[{\"key\":"
          "\"kind\",\"label\":\"kind\",\"format\":\"string\",\"searchable\":true}]}]},\n",
          f->out);
}

/* ---- power ---- */

/* True where the bucket has an energy that JSON can hold. */
static bool has_energy(const struct nrg_time_bucket *bucket)
{
    return bucket->covered_s > 0 && isfinite(bucket->total_j * PWH_PER_J);
}

static void put_counter(const struct firefox *f, size_t domain)
{
    const struct nrg_attribution_buckets *b = f->buckets;
    const struct nrg_attribution_domain *d = &f->stacks->attribution->domains[domain];
    size_t n = 1;
    fputs("{\"name\":", f->out);
    nrg_json_put_text(f->out, nrg_attribution_domain_name(d));
    fprintf(f->out,
            ",\"category\":\"power\",\"description\":\"%s by nrg\",\"pid\":\"" ENERGY_PID
            "\",\"mainThreadIndex\":0,\"samples\":{\"time\":[0",
            nrg_provenance_name(d->domain->channel->channel.provenance));
    for (size_t k = 0; k < b->n; k++)
        if (has_energy(&b->domain[domain * b->n + k])) {
            fputc(',', f->out);
            put_ms(f->out, b->edges_ns[k + 1]);
            n++;
        }
    fputs("],\"count\":[0", f->out);
    for (size_t k = 0; k < b->n; k++)
        if (has_energy(&b->domain[domain * b->n + k]))
            fprintf(f->out, ",%.9g", b->domain[domain * b->n + k].total_j * PWH_PER_J);
    fprintf(f->out, "],\"length\":%zu}}", n);
}

/* ---- a thread ---- */

/* A column of n times the same. */
static void put_column(const struct firefox *f, const char *name, const char *value, size_t n)
{
    fprintf(f->out, ",\"%s\":[", name);
    for (size_t i = 0; i < n; i++)
        fprintf(f->out, "%s%s", i ? "," : "", value);
    fputc(']', f->out);
}

static void put_thread_head(const struct firefox *f, const char *name, const char *pid, int64_t tid,
                            bool is_main)
{
    fputs("{\"processType\":\"default\",\"processName\":", f->out);
    nrg_json_put_text(f->out, is_main ? name : pid);
    fprintf(f->out,
            ",\"processStartupTime\":0,\"processShutdownTime\":null,\"registerTime\":0,"
            "\"unregisterTime\":null,\"pausedRanges\":[],\"pid\":\"%s\",\"tid\":%" PRId64
            ",\"isMainThread\":%s,\"name\":",
            pid, tid, is_main ? "true" : "false");
    nrg_json_put_text(f->out, name);
    fputs(",\n", f->out);
}

/* One function and one frame per name. */
static void put_functions(const struct firefox *f, size_t n)
{
    fprintf(f->out, ",\n\"funcTable\":{\"length\":%zu,\"name\":[", n);
    for (size_t i = 0; i < n; i++)
        fprintf(f->out, "%s%zu", i ? "," : "", i);
    fputc(']', f->out);
    put_column(f, "isJS", "false", n);
    put_column(f, "relevantForJS", "false", n);
    put_column(f, "resource", "-1", n);
    put_column(f, "fileName", "null", n);
    put_column(f, "lineNumber", "null", n);
    put_column(f, "columnNumber", "null", n);
    fprintf(f->out, "},\n\"frameTable\":{\"length\":%zu,\"func\":[", n);
    for (size_t i = 0; i < n; i++)
        fprintf(f->out, "%s%zu", i ? "," : "", i);
    fputc(']', f->out);
    put_column(f, "address", "-1", n);
    put_column(f, "inlineDepth", "0", n);
    put_column(f, "category", "1", n);
    put_column(f, "subcategory", "0", n);
    put_column(f, "nativeSymbol", "null", n);
    put_column(f, "innerWindowID", "0", n);
    put_column(f, "implementation", "null", n);
    put_column(f, "line", "null", n);
    put_column(f, "column", "null", n);
    fputs("},\n\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},"
          "\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],"
          "\"functionSize\":[]}",
          f->out);
}

/* A stack per row, numbered as the rows are, and one for each of the rest. */
static void put_stacks(const struct firefox *f)
{
    const struct nrg_stacks *s = f->stacks;
    const struct nrg_attribution *a = s->attribution;
    size_t n = a->n_rows + NRG_RESTS;
    fprintf(f->out, ",\n\"stackTable\":{\"length\":%zu,\"frame\":[", n);
    for (size_t i = 0; i < n; i++)
        fprintf(f->out, "%s%" PRIu32, i ? "," : "",
                (i < a->n_rows ? s->frame_of_row[i] : s->frame_of_rest[i - a->n_rows]) - 1);
    fputs("],\"prefix\":[", f->out);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? "," : "", f->out);
        if (i < a->n_rows && a->rows[i].parent < i)
            fprintf(f->out, "%zu", a->rows[i].parent);
        else
            fputs("null", f->out);
    }
    fputc(']', f->out);
    put_column(f, "category", "1", n);
    put_column(f, "subcategory", "0", n);
    fputc('}', f->out);
}

enum sample_column { SAMPLE_STACK, SAMPLE_TIME, SAMPLE_WEIGHT };

/* One column of a sample. */
static void put_sample(const struct firefox *f, enum sample_column column, size_t stack,
                       int64_t t_ns, double uj)
{
    if (column == SAMPLE_STACK)
        fprintf(f->out, "%zu", stack);
    else if (column == SAMPLE_TIME)
        put_ms(f->out, t_ns);
    else
        fprintf(f->out, "%.9g", uj);
}

/*
 * One column of the energy's samples; how many there are. A weight can't be negative, but what is
 * unattributed may be for a while: it is carried on, so that the sum stays that of the machine.
 */
static size_t put_samples(const struct firefox *f, enum sample_column column)
{
    const struct nrg_attribution_buckets *b = f->buckets;
    size_t n_rows = f->stacks->attribution->n_rows, n = 0;
    double carried_uj = 0;
    for (size_t k = 0; k < b->n; k++)
        for (size_t i = 0; i < n_rows + NRG_RESTS; i++) {
            bool last = i == n_rows + NRG_REST_UNATTRIBUTED;
            double uj =
                1e6 * (i < n_rows
                           ? nrg_stacks_row_j(f->stacks, i, k)
                           : nrg_stacks_rest_j(f->stacks, (enum nrg_stack_rest)(i - n_rows), k));
            uj += last ? carried_uj : 0;
            bool kept = uj > LEAST_UJ && uj < MOST_UJ;
            carried_uj = last ? (kept || !(fabs(uj) < MOST_UJ) ? 0 : uj) : carried_uj;
            if (!kept)
                continue;
            fputs(n++ ? "," : "", f->out);
            put_sample(f, column, i, b->edges_ns[k], uj);
        }
    return n;
}

static void put_energy_thread(const struct firefox *f)
{
    put_thread_head(f, "energy: a sample is 1 uJ", ENERGY_PID, 0, true);
    fputs("\"stringArray\":[", f->out);
    nrg_stacks_put_frames(f->stacks, "", "", f->out);
    fputs("],\n\"samples\":{\"weightType\":\"samples\",\"stack\":[", f->out);
    put_samples(f, SAMPLE_STACK);
    fputs("],\"time\":[", f->out);
    put_samples(f, SAMPLE_TIME);
    fputs("],\"weight\":[", f->out);
    size_t n = put_samples(f, SAMPLE_WEIGHT);
    fprintf(
        f->out,
        "],\"length\":%zu},\n\"markers\":{\"length\":0,\"data\":[],\"name\":[],\"startTime\":[],"
        "\"endTime\":[],\"phase\":[],\"category\":[]}",
        n);
    put_stacks(f);
    put_functions(f, f->stacks->frames.n);
    fputc('}', f->out);
}

static void put_markers(const struct firefox *f, size_t first, size_t last)
{
    const struct nrg_stacks *s = f->stacks;
    fprintf(f->out, "\"markers\":{\"length\":%zu,\"name\":[", last - first);
    for (size_t i = first; i < last; i++)
        fprintf(f->out, "%s%" PRIu32, i > first ? "," : "", s->frame_of_row[s->spans[i].row] - 1);
    fputs("],\"startTime\":[", f->out);
    for (size_t i = first; i < last; i++) {
        fputs(i > first ? "," : "", f->out);
        put_ms(f->out, s->spans[i].begin_ns);
    }
    fputs("],\"endTime\":[", f->out);
    for (size_t i = first; i < last; i++) {
        fputs(i > first ? "," : "", f->out);
        put_ms(f->out, s->spans[i].end_ns);
    }
    fputs("],\"data\":[", f->out);
    for (size_t i = first; i < last; i++) {
        fputs(i > first ? ",{\"type\":\"span\",\"kind\":" : "{\"type\":\"span\",\"kind\":", f->out);
        nrg_json_put_text(f->out, s->attribution->rows[s->spans[i].row].kind);
        fputc('}', f->out);
    }
    fputc(']', f->out);
    put_column(f, "phase", "1", last - first); /* an interval */
    put_column(f, "category", "1", last - first);
    fputs("}", f->out);
}

static int put_track(const struct firefox *f, size_t first, size_t last)
{
    const struct nrg_span_track *track = &f->stacks->catalog.tracks[f->stacks->spans[first].track];
    struct nrg_str name = {0};
    char pid[24];
    int rc = nrg_stacks_track_name(f->stacks, f->stacks->spans[first].track, &name);
    if (rc)
        return rc;
    snprintf(pid, sizeof pid, "%d", (int)track->pid);
    fputs(",\n", f->out);
    put_thread_head(f, name.text, pid, track->tid, track->tid == track->pid);
    fputs("\"stringArray\":[", f->out);
    nrg_stacks_put_frames(f->stacks, "", "", f->out);
    fputs("],\n\"samples\":{\"weightType\":\"samples\",\"weight\":null,\"stack\":[],\"time\":[],"
          "\"length\":0},\n",
          f->out);
    put_markers(f, first, last);
    fputs(",\n\"stackTable\":{\"length\":0,\"frame\":[],\"prefix\":[],\"category\":[],"
          "\"subcategory\":[]}",
          f->out);
    put_functions(f, 0);
    fputc('}', f->out);
    nrg_str_release(&name);
    return 0;
}

static int put_profile(const struct firefox *f)
{
    const struct nrg_stacks *s = f->stacks;
    int rc = 0;
    fputs("{", f->out);
    put_meta(f);
    fputs("\"libs\":[],\"pages\":[],\"profilerOverhead\":[],\"counters\":[", f->out);
    for (size_t d = 0; d < f->buckets->n_domains; d++) {
        fputs(d ? ",\n" : "\n", f->out);
        put_counter(f, d);
    }
    fputs("],\n\"threads\":[\n", f->out);
    put_energy_thread(f);
    for (size_t first = 0, last; !rc && first < s->n_spans; first = last) {
        last = nrg_stacks_track_end(s, first);
        rc = put_track(f, first, last);
    }
    fputs("]}\n", f->out);
    return rc;
}

int nrg_export_firefox(struct nrg_recording *recording, const struct nrg_attribution *a, FILE *out,
                       uint64_t *left_out, struct nrg_error *err)
{
    struct nrg_stacks s;
    int rc = nrg_stacks_load(&s, recording, a, err);
    const struct firefox f = {recording, &s, a->buckets, out};
    if (!rc && (rc = put_profile(&f)))
        nrg_fail(err, rc, nrg_recording_path(recording), "%s", strerror(-rc));
    *left_out = s.left_out;
    nrg_stacks_release(&s);
    return rc;
}
