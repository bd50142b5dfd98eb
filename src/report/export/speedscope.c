/*
 * speedscope's file format: one sampled profile whose weights are microjoules, and one evented
 * profile of times per track. The format knows units of time and bytes alone, so energy has the
 * unit "none" and the profile's name says what it is.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/export/formats.h"
#include "report/export/stacks.h"
#include "report/json_text.h"

#define SCHEMA   "https://www.speedscope.app/file-format-schema.json"
#define LEAST_UJ 1e-3 /* less is rounding */
#define MOST_UJ  1e30 /* more is no energy */

/* Frames of a row from the outermost to itself. */
static void put_stack(const struct nrg_stacks *s, size_t row, FILE *out)
{
    const struct nrg_attribution_row *rows = s->attribution->rows;
    if (rows[row].parent < row) {
        put_stack(s, rows[row].parent, out);
        fputc(',', out);
    }
    fprintf(out, "%" PRIu32, s->frame_of_row[row] - 1);
}

/* The rest's energy of the whole run, in the order of enum nrg_stack_rest. */
static double rest_uj(const struct nrg_attribution *a, size_t rest)
{
    const double rests_j[NRG_RESTS] = {a->idle_j, a->other_processes_j, a->unattributed_j};
    return rests_j[rest] * 1e6;
}

/* Stacks or weights of all that has energy: rows, then what belongs to none. Their sum. */
static double put_samples(const struct nrg_stacks *s, bool weights, FILE *out)
{
    const struct nrg_attribution *a = s->attribution;
    const char *comma = "";
    double sum_uj = 0;
    for (size_t i = 0; i < a->n_rows + NRG_RESTS; i++) {
        bool is_row = i < a->n_rows;
        double uj = is_row ? a->rows[i].energy_self_j * 1e6 : rest_uj(a, i - a->n_rows);
        if (!(uj > LEAST_UJ && uj < MOST_UJ))
            continue;
        sum_uj += uj;
        fputs(comma, out);
        comma = ",";
        if (weights) {
            fprintf(out, "%.12g", uj);
            continue;
        }
        fputc('[', out);
        if (is_row)
            put_stack(s, i, out);
        else
            fprintf(out, "%" PRIu32, s->frame_of_rest[i - a->n_rows] - 1);
        fputc(']', out);
    }
    return sum_uj;
}

static void put_energy(const struct nrg_stacks *s, FILE *out)
{
    const struct nrg_attribution *a = s->attribution;
    fprintf(out,
            "{\"type\":\"sampled\",\"name\":\"energy in microjoules (%s)\",\"unit\":\"none\","
            "\"startValue\":0,\n\"samples\":[",
            nrg_provenance_name(a->provenance));
    double sum_uj = put_samples(s, false, out);
    fputs("],\n\"weights\":[", out);
    put_samples(s, true, out);
    fprintf(out, "],\n\"endValue\":%.12g}", sum_uj);
}

/* ---- spans of a track ---- */

struct open_spans {
    const struct nrg_stacks *stacks;
    const struct nrg_stack_span **items;
    size_t n, cap;
    int64_t now_ns;
    const char *comma;
    FILE *out;
};

static void put_event(struct open_spans *o, char type, const struct nrg_stack_span *span,
                      int64_t t_ns)
{
    o->now_ns = t_ns > o->now_ns ? t_ns : o->now_ns;
    fprintf(o->out, "%s\n{\"type\":\"%c\",\"frame\":%" PRIu32 ",\"at\":%" PRId64 "}", o->comma,
            type, o->stacks->frame_of_row[span->row] - 1, o->now_ns);
    o->comma = ",";
}

/* Closes what does not hold a span of that depth. */
static void close_down_to(struct open_spans *o, uint32_t depth)
{
    while (o->n && o->items[o->n - 1]->depth >= depth) {
        o->n--;
        put_event(o, 'C', o->items[o->n], o->items[o->n]->end_ns);
    }
}

static int put_track(const struct nrg_stacks *s, size_t first, size_t last, FILE *out)
{
    struct open_spans o = {.stacks = s, .comma = "", .out = out};
    struct nrg_str name = {0};
    int rc = nrg_stacks_track_name(s, s->spans[first].track, &name);
    fputs(",\n{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"startValue\":0,\"name\":", out);
    nrg_json_put_text(out, rc ? "track" : name.text);
    fputs(",\"events\":[", out);
    for (size_t i = first; !rc && i < last; i++) {
        const struct nrg_stack_span *span = &s->spans[i];
        close_down_to(&o, span->depth);
        put_event(&o, 'O', span, span->begin_ns);
        rc = nrg_append(&o.items, &o.n, &o.cap, &span, sizeof span);
    }
    close_down_to(&o, 0);
    fprintf(out, "],\"endValue\":%" PRId64 "}", o.now_ns);
    free(o.items);
    nrg_str_release(&name);
    return rc;
}

static int put_tracks(const struct nrg_stacks *s, FILE *out)
{
    int rc = 0;
    for (size_t first = 0, last; !rc && first < s->n_spans; first = last) {
        last = nrg_stacks_track_end(s, first);
        rc = put_track(s, first, last, out);
    }
    return rc;
}

int nrg_export_speedscope(struct nrg_recording *recording, const struct nrg_attribution *a,
                          FILE *out, uint64_t *left_out, struct nrg_error *err)
{
    struct nrg_stacks s;
    char command[NRG_EXPORT_NAME];
    int rc = nrg_stacks_load(&s, recording, a, err);
    if (!rc) {
        fputs("{\"$schema\":\"" SCHEMA "\",\"exporter\":\"nrg " NRG_VERSION "\",\"name\":", out);
        nrg_export_name(recording, command);
        nrg_json_put_text(out, command);
        fputs(",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[", out);
        nrg_stacks_put_frames(&s, "{\"name\":", "}", out);
        fputs("]},\n\"profiles\":[\n", out);
        put_energy(&s, out);
        rc = put_tracks(&s, out);
        fputs("]}\n", out);
        if (rc)
            nrg_fail(err, rc, nrg_recording_path(recording), "%s", strerror(-rc));
    }
    *left_out = s.left_out;
    nrg_stacks_release(&s);
    return rc;
}
