/*
 * See span_sink.h. Records are kept in the order of collection, 40 bytes each; sorting and nesting
 * happen when they are written (span_write.c).
 */
#include "import/span_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sensors/channel.h"

struct nrg_span_sink *nrg_span_sink_new(void)
{
    return nrg_calloc(1, sizeof(struct nrg_span_sink));
}

void nrg_span_sink_free(struct nrg_span_sink *sink)
{
    if (!sink)
        return;
    free(sink->records);
    free(sink->descriptions);
    nrg_map_release(&sink->names);
    nrg_map_release(&sink->tracks);
    nrg_map_release(&sink->paths);
    free(sink);
}

/* Texts are cleaned here, so that two names that look the same in the recording are one. */
int64_t nrg_span_sink_name(struct nrg_span_sink *sink, const char *kind, const char *text,
                           size_t len, const char *detail)
{
    char key[16 + 128 + NRG_SPAN_NAME_MAX + 8];
    char *p = key;
    nrg_copy_clean(p, sizeof(((struct nrg_span_name *)NULL)->kind), kind, strlen(kind));
    p += strlen(p) + 1;
    nrg_copy_clean(p, sizeof(((struct nrg_span_name *)NULL)->detail), detail ? detail : "",
                   detail ? strlen(detail) : 0);
    p += strlen(p) + 1;
    nrg_copy_clean(p, NRG_SPAN_NAME_MAX + 1, text, len);
    p += strlen(p);
    return nrg_map_intern(&sink->names, key, (size_t)(p - key));
}

struct nrg_span_name nrg_span_sink_name_of(const struct nrg_span_sink *sink, int64_t id)
{
    struct nrg_span_name name = {.id = id};
    const char *p = nrg_map_text(&sink->names, id, NULL);
    nrg_copy(name.kind, sizeof name.kind, p);
    p += strlen(p) + 1;
    nrg_copy(name.detail, sizeof name.detail, p);
    name.text = (char *)(uintptr_t)(p + strlen(p) + 1);
    return name;
}

/* Padding and bytes after the end of a text must not make two tracks differ. */
static struct nrg_span_track canonical_track(const struct nrg_span_track *track)
{
    struct nrg_span_track t;
    memset(&t, 0, sizeof t);
    t.pid = track->pid;
    t.tid = track->tid;
    t.start_ticks = track->start_ticks;
    nrg_copy(t.kind, sizeof t.kind, track->kind);
    nrg_copy(t.domain, sizeof t.domain, track->domain);
    nrg_copy(t.name, sizeof t.name, track->name);
    return t;
}

int64_t nrg_span_sink_track(struct nrg_span_sink *sink, const struct nrg_span_track *track)
{
    struct nrg_span_track t = canonical_track(track);
    int rc = nrg_reserve(&sink->descriptions, &sink->cap_descriptions, sink->n_descriptions + 1,
                         sizeof *sink->descriptions);
    int64_t id = rc ? rc : nrg_map_intern(&sink->tracks, &t, sizeof t);
    if (id > (int64_t)sink->n_descriptions) {
        t.id = id;
        sink->descriptions[sink->n_descriptions++] = t;
    }
    return id;
}

void nrg_span_sink_set_track(struct nrg_span_sink *sink, int64_t id,
                             const struct nrg_span_track *track)
{
    if (id < 1 || (uint64_t)id > sink->n_descriptions)
        return;
    sink->descriptions[id - 1] = canonical_track(track);
    sink->descriptions[id - 1].id = id;
}

int64_t nrg_span_sink_path(struct nrg_span_sink *sink, int64_t parent, int64_t name)
{
    const int64_t key[] = {parent, name};
    if (parent < 0 || (uint64_t)parent > sink->paths.n || name < 1 ||
        (uint64_t)name > sink->names.n)
        return -EINVAL;
    return nrg_map_intern(&sink->paths, key, sizeof key);
}

/* Half of the range, so that differences fit. */
static bool in_range(int64_t t_ns)
{
    return t_ns >= -NRG_MAX_TIME_NS && t_ns <= NRG_MAX_TIME_NS;
}

static uint32_t small_id(int64_t id)
{
    return id > 0 && id < UINT32_MAX ? (uint32_t)id : id == 0 || id == NRG_MISSING ? 0 : UINT32_MAX;
}

static int to_record(const struct nrg_span_sink *sink, const struct nrg_sink_span *span,
                     struct nrg_span_record *record)
{
    bool closed = span->end_ns != NRG_MISSING;
    if (!in_range(span->begin_ns) || (closed && !in_range(span->end_ns)))
        return -ERANGE;
    if (closed && span->end_ns < span->begin_ns)
        return -EINVAL;
    *record = (struct nrg_span_record){
        .begin_ns = span->begin_ns,
        .end_ns = closed ? span->end_ns : NRG_RECORD_OPEN,
        .number = span->number,
        .track = small_id(span->track),
        .name = small_id(span->name),
        .path = small_id(span->path),
        .duration_ns = span->duration_ns > 0 && span->duration_ns < UINT32_MAX
                           ? (uint32_t)span->duration_ns
                           : 0,
    };
    bool known = record->track && record->track <= sink->n_descriptions && record->name &&
                 record->name <= sink->names.n && record->path <= sink->paths.n;
    return known ? 0 : -EINVAL;
}

int nrg_span_sink_span(struct nrg_span_sink *sink, const struct nrg_sink_span *span)
{
    struct nrg_span_record record;
    int rc = to_record(sink, span, &record);
    if (!rc && sink->n >= UINT32_MAX - 1)
        rc = -E2BIG;
    return rc ? rc
              : nrg_append(&sink->records, &sink->n, &sink->cap, &record, sizeof *sink->records);
}

int nrg_span_sink_extent(const struct nrg_span_sink *sink, int64_t *first_ns, int64_t *last_ns)
{
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (size_t i = 0; i < sink->n; i++) {
        const struct nrg_span_record *r = &sink->records[i];
        int64_t end = r->end_ns == NRG_RECORD_OPEN ? r->begin_ns : r->end_ns;
        first = r->begin_ns < first ? r->begin_ns : first;
        last = end > last ? end : last;
    }
    if (!sink->n)
        return -ENODATA;
    *first_ns = first;
    *last_ns = last;
    return 0;
}

int64_t nrg_span_sink_overlaps(const struct nrg_span_sink *sink, int64_t track)
{
    struct nrg_span_order order;
    struct nrg_span_nesting walk;
    struct nrg_span_nesting_event event;
    if (track < 1 || (uint64_t)track > sink->n_descriptions)
        return -EINVAL;
    int rc = nrg_span_order_make(&order, sink->records, sink->n, sink->n_descriptions);
    if (rc)
        return rc;
    nrg_span_nesting_init(&walk, sink->records, &order, (uint32_t)track, sink->slack_ns);
    while ((rc = nrg_span_nesting_next(&walk, &event)) > 0)
        ;
    nrg_span_nesting_release(&walk);
    nrg_span_order_release(&order);
    return rc < 0 ? rc : (int64_t)walk.cut;
}

int nrg_span_sink_edit(struct nrg_span_sink *sink,
                       int (*edit)(void *arg, struct nrg_sink_span *span), void *arg)
{
    int rc = 0;
    for (size_t i = 0; !rc && i < sink->n; i++) {
        struct nrg_span_record *r = &sink->records[i], changed = {0};
        struct nrg_sink_span span = {
            r->begin_ns,   r->end_ns == NRG_RECORD_OPEN ? NRG_MISSING : r->end_ns,
            r->track,      r->name,
            r->number,     r->path,
            r->duration_ns};
        rc = edit(arg, &span);
        if (!rc)
            rc = to_record(sink, &span, &changed);
        if (!rc)
            *r = changed;
    }
    return rc;
}
