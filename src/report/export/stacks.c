/* See stacks.h. */
#include "report/export/stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "attribute/walk.h"
#include "base/mem.h"
#include "report/attribution/report.h"
#include "report/json_text.h"

struct collect {
    struct nrg_stacks *stacks;
    int64_t begin_ns;
};

static uint32_t intern(struct nrg_stacks *s, const char *text)
{
    int64_t number = nrg_map_intern(&s->frames, text[0] ? text : "?", text[0] ? strlen(text) : 1);
    return number > 0 ? (uint32_t)number : 0;
}

static int name_frames(struct nrg_stacks *s)
{
    static const char *const rests[NRG_RESTS] = {"(idle)", "(other processes)", "(unattributed)"};
    const struct nrg_attribution *a = s->attribution;
    struct nrg_str label = {0};
    int rc = 0;
    for (size_t i = 0; !rc && i < a->n_rows; i++) {
        rc = nrg_attribution_label(a, i, false, &label);
        if (!rc && !(s->frame_of_row[i] = intern(s, label.text)))
            rc = -ENOMEM;
    }
    for (size_t i = 0; !rc && i < NRG_RESTS; i++)
        if (!(s->frame_of_rest[i] = intern(s, rests[i])))
            rc = -ENOMEM;
    nrg_str_release(&label);
    return rc;
}

static uint32_t row_of(const struct nrg_stacks *s, const struct nrg_open_span *span)
{
    const struct nrg_attribution_buckets *b = s->attribution->buckets;
    return span->row < b->n_places && !span->folded ? b->row_of_place[span->row] : UINT32_MAX;
}

static int on_event(void *arg, const struct nrg_span_walk_event *ev)
{
    struct collect *c = arg;
    struct nrg_stacks *s = c->stacks;
    uint32_t row = ev->what == NRG_WALK_CLOSE ? row_of(s, ev->span) : UINT32_MAX;
    if (row == UINT32_MAX)
        return 0;
    if (s->n_spans == NRG_STACKS_MOST_SPANS) {
        s->left_out++;
        return 0;
    }
    int64_t from_ns = ev->span->begin_ns - c->begin_ns, to_ns = ev->t_ns - c->begin_ns;
    struct nrg_stack_span span = {.begin_ns = from_ns > 0 ? from_ns : 0,
                                  .end_ns = to_ns > 0 ? to_ns : 0,
                                  .row = row,
                                  .track = (uint32_t)ev->track,
                                  .depth = (uint32_t)ev->depth};
    return nrg_append(&s->spans, &s->n_spans, &s->cap_spans, &span, sizeof span);
}

static int compare_spans(const void *x, const void *y)
{
    const struct nrg_stack_span *a = x, *b = y;
    if (a->track != b->track)
        return a->track < b->track ? -1 : 1;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    return a->depth < b->depth ? -1 : a->depth > b->depth;
}

static int collect_spans(struct nrg_stacks *s, struct nrg_recording *recording,
                         struct nrg_error *err)
{
    const struct nrg_attribution *a = s->attribution;
    struct collect c = {s, a->summary.begin_ns};
    struct nrg_span_walk walk = {0};
    int rc = nrg_span_catalog_load(&s->catalog, recording, err);
    if (rc)
        return rc;
    rc = nrg_span_walk_init(&walk, recording, NULL, &s->catalog, NRG_BY_PATH);
    if (!rc)
        rc = nrg_span_walk_run(&walk, c.begin_ns + a->buckets->edges_ns[a->buckets->n], on_event,
                               &c);
    nrg_span_walk_release(&walk);
    if (!rc && s->n_spans)
        qsort(s->spans, s->n_spans, sizeof *s->spans, compare_spans);
    return rc ? nrg_fail(err, rc, nrg_recording_path(recording), "spans cannot be read: %s",
                         strerror(-rc))
              : 0;
}

void nrg_export_name(const struct nrg_recording *recording, char name[NRG_EXPORT_NAME])
{
    const char *command = nrg_recording_text(recording, "command_line");
    const char *text = command && command[0] ? command : "nrg recording";
    nrg_copy_clean(name, NRG_EXPORT_NAME, text, strlen(text));
}

int nrg_stacks_load(struct nrg_stacks *s, struct nrg_recording *recording,
                    const struct nrg_attribution *a, struct nrg_error *err)
{
    *s = (struct nrg_stacks){.attribution = a};
    s->frame_of_row = nrg_calloc(a->n_rows + 1, sizeof *s->frame_of_row);
    int rc = s->frame_of_row ? name_frames(s) : -ENOMEM;
    if (rc)
        return nrg_fail(err, rc, nrg_recording_path(recording), "%s", strerror(-rc));
    return collect_spans(s, recording, err);
}

void nrg_stacks_release(struct nrg_stacks *s)
{
    nrg_map_release(&s->frames);
    nrg_span_catalog_release(&s->catalog);
    free(s->frame_of_row);
    free(s->spans);
    *s = (struct nrg_stacks){0};
}

double nrg_stacks_row_j(const struct nrg_stacks *s, size_t row, size_t bucket)
{
    const struct nrg_attribution_buckets *b = s->attribution->buckets;
    double sum_j = 0;
    for (size_t d = 0; d < b->n_domains; d++)
        sum_j += b->row_j[(row * b->n_domains + d) * b->n + bucket];
    return sum_j;
}

double nrg_stacks_rest_j(const struct nrg_stacks *s, enum nrg_stack_rest rest, size_t bucket)
{
    const struct nrg_attribution_buckets *b = s->attribution->buckets;
    double total_j = 0, idle_j = 0, others_j = 0, rows_j = 0;
    for (size_t d = 0; d < b->n_domains; d++) {
        const struct nrg_time_bucket *part = &b->domain[d * b->n + bucket];
        total_j += part->total_j;
        idle_j += part->idle_j;
        others_j += part->other_processes_j;
    }
    if (rest != NRG_REST_UNATTRIBUTED)
        return rest == NRG_REST_IDLE ? idle_j : others_j;
    for (size_t i = 0; i < s->attribution->n_rows; i++)
        rows_j += nrg_stacks_row_j(s, i, bucket);
    return total_j - idle_j - others_j - rows_j;
}

void nrg_stacks_put_frames(const struct nrg_stacks *s, const char *before, const char *after,
                           FILE *out)
{
    for (size_t i = 1; i <= s->frames.n; i++) {
        fputs(i > 1 ? ",\n" : "\n", out);
        fputs(before, out);
        nrg_json_put_text(out, nrg_map_text(&s->frames, (int64_t)i, NULL));
        fputs(after, out);
    }
}

size_t nrg_stacks_track_end(const struct nrg_stacks *s, size_t first)
{
    size_t last = first;
    while (last < s->n_spans && s->spans[last].track == s->spans[first].track)
        last++;
    return last;
}

int nrg_stacks_track_name(const struct nrg_stacks *s, size_t track, struct nrg_str *name)
{
    const struct nrg_span_track *t = &s->catalog.tracks[track];
    name->len = 0;
    return t->name[0] ? nrg_str_add(name, t->name, strlen(t->name))
                      : nrg_str_addf(name, "%s %d", t->kind[0] ? t->kind : "track", (int)t->tid);
}
