/* See requests.h. Nothing in the file is trusted: an event that fits no request is left out. */
#include "llm/requests.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "record/read/spans.h"

#define MOST_TRACKS 16385         /* as many connections as a proxy may have */
#define MOST_TOKENS 1000000000000 /* of a request; what is above is damage */

/* A slot as the events of its track leave it. */
struct track {
    size_t request; /* index + 1; 0: none is open */
    unsigned depth;
};

struct loader {
    struct nrg_relayed_requests *r;
    struct track *tracks;
    size_t n_tracks;
};

static struct track *track_of(struct loader *l, int64_t id)
{
    if (id < 0 || id >= MOST_TRACKS)
        return NULL;
    size_t had = l->n_tracks;
    if (nrg_reserve(&l->tracks, &l->n_tracks, (size_t)id + 1, sizeof *l->tracks))
        return NULL;
    if (l->n_tracks > had)
        memset(l->tracks + had, 0, (l->n_tracks - had) * sizeof *l->tracks);
    return &l->tracks[id];
}

static int begin_request(struct loader *l, struct track *track, const struct nrg_span_row *row)
{
    struct nrg_relayed_request request = {.id = row->value,
                                          .model = "",
                                          .api = "",
                                          .outcome = "",
                                          .path = "",
                                          .begin_ns = row->t_ns,
                                          .first_ns = NRG_MISSING,
                                          .end_ns = NRG_MISSING,
                                          .open = true,
                                          .input = NRG_MISSING,
                                          .cached = NRG_MISSING,
                                          .output = NRG_MISSING,
                                          .reasoning = NRG_MISSING};
    if (track->request) { /* its end is missing; it can't have run longer than this */
        l->r->items[track->request - 1].end_ns = row->t_ns;
        l->r->items[track->request - 1].open = false;
    }
    int rc = nrg_append(&l->r->items, &l->r->n, &l->r->cap, &request, sizeof request);
    if (rc)
        return rc;
    *track = (struct track){l->r->n, 1};
    return 0;
}

static int take_count(struct loader *l, struct track *track, const struct nrg_span_row *row,
                      const char *name)
{
    struct nrg_relayed_request *q = &l->r->items[track->request - 1];
    struct nrg_llm_texts texts = {row->t_ns, row->value, track->request - 1};
    if (row->value < 0 || row->value > MOST_TOKENS)
        return 0;
    if (!strcmp(name, NRG_REQUEST_INPUT))
        q->input = row->value;
    else if (!strcmp(name, NRG_REQUEST_CACHED))
        q->cached = row->value;
    else if (!strcmp(name, NRG_REQUEST_OUTPUT))
        q->output = row->value;
    else if (!strcmp(name, NRG_REQUEST_REASONING))
        q->reasoning = row->value;
    else if (!strcmp(name, NRG_REQUEST_TEXTS))
        return nrg_append(&l->r->texts, &l->r->n_texts, &l->r->cap_texts, &texts, sizeof texts);
    return 0;
}

static int status_of(const char *text)
{
    int64_t status;
    return !nrg_parse_i64(text, strlen(text), &status) && status >= 100 && status <= 999
               ? (int)status
               : 0;
}

static void take_mark(struct loader *l, struct track *track, const struct nrg_span_name *name)
{
    struct nrg_relayed_request *q = &l->r->items[track->request - 1];
    if (!strcmp(name->kind, NRG_REQUEST_MODEL_KIND))
        q->model = name->text;
    else if (!strcmp(name->kind, NRG_REQUEST_API_KIND))
        q->api = name->text;
    else if (!strcmp(name->kind, NRG_REQUEST_OUTCOME_KIND))
        q->outcome = name->text;
    else if (!strcmp(name->kind, NRG_REQUEST_PATH_KIND))
        q->path = name->text;
    else if (!strcmp(name->kind, NRG_REQUEST_STATUS_KIND))
        q->status = status_of(name->text);
}

static void take_end(struct loader *l, struct track *track, int64_t t_ns)
{
    struct nrg_relayed_request *q = &l->r->items[track->request - 1];
    if (--track->depth)
        return;
    q->end_ns = t_ns;
    q->open = false;
    track->request = 0;
}

static int take_row(struct loader *l, const struct nrg_span_row *row)
{
    const struct nrg_span_name *name =
        row->name > 0 ? nrg_span_catalog_name(&l->r->names, row->name) : NULL;
    struct track *track = track_of(l, row->track);
    if (!track)
        return row->track >= 0 && row->track < MOST_TRACKS ? -ENOMEM : 0;
    if (row->event == NRG_SPAN_BEGIN && name && !strcmp(name->kind, NRG_REQUEST_KIND))
        return begin_request(l, track, row);
    if (!track->request)
        return 0;
    if (row->event == NRG_SPAN_BEGIN) {
        track->depth++;
        if (name && !strcmp(name->text, NRG_REQUEST_DECODE))
            l->r->items[track->request - 1].first_ns = row->t_ns;
    } else if (row->event == NRG_SPAN_END) {
        take_end(l, track, row->t_ns);
    } else if (row->event == NRG_SPAN_COUNT && name) {
        return take_count(l, track, row, name->text);
    } else if (row->event == NRG_SPAN_MARK && name) {
        take_mark(l, track, name);
    }
    return 0;
}

bool nrg_llm_is_streamed(const struct nrg_relayed_request *q)
{
    return q->first_ns != NRG_MISSING && q->n_texts > 0;
}

bool nrg_llm_is_no_work(const char *path, int64_t length_ns)
{
    static const char *const asking[] = {"GET ", "HEAD ", "OPTIONS "};
    bool only_asks = false;
    for (size_t i = 0; i < sizeof asking / sizeof *asking; i++)
        only_asks |= !strncmp(path, asking[i], strlen(asking[i]));
    return only_asks && length_ns < NRG_REQUEST_QUICK_NS;
}

/* After the texts have found theirs: these know requests by their index. */
static void leave_out_no_work(struct nrg_relayed_requests *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct nrg_relayed_request *q = &r->items[i];
        if (q->open || !nrg_llm_is_no_work(q->path, q->end_ns - q->begin_ns))
            r->items[n++] = *q;
    }
    r->left_out = r->n - n;
    r->n = n;
}

static int by_request(const void *a, const void *b)
{
    const struct nrg_llm_texts *x = a, *y = b;
    if (x->request != y->request)
        return x->request < y->request ? -1 : 1;
    return (x->t_ns > y->t_ns) - (x->t_ns < y->t_ns);
}

/* Texts of one request stand together; tokens are what the server said, or else these. */
static void finish(struct nrg_relayed_requests *r, int64_t last_ns)
{
    if (r->n_texts)
        qsort(r->texts, r->n_texts, sizeof *r->texts, by_request);
    size_t t = 0;
    for (size_t i = 0; i < r->n; i++) {
        struct nrg_relayed_request *q = &r->items[i];
        q->texts = t;
        for (; t < r->n_texts && r->texts[t].request == i; t++)
            q->n_texts += r->texts[t].n;
        q->texts_end = t;
        if (q->open)
            q->end_ns = last_ns > q->begin_ns ? last_ns : q->begin_ns;
        q->output_estimated = q->output == NRG_MISSING && q->n_texts > 0;
        q->output_tokens = q->output != NRG_MISSING ? (double)q->output
                           : q->output_estimated    ? (double)q->n_texts
                                                    : NAN;
        q->understood = q->input != NRG_MISSING || !isnan(q->output_tokens);
    }
    leave_out_no_work(r);
}

int nrg_llm_requests_load(struct nrg_relayed_requests *r, struct nrg_recording *recording,
                          struct nrg_error *err)
{
    struct nrg_span_reader *reader = NULL;
    struct nrg_span_row row;
    struct loader l = {.r = r};
    int64_t first_ns, last_ns = 0;
    *r = (struct nrg_relayed_requests){0};
    int rc = nrg_span_catalog_load(&r->names, recording, err);
    if (rc)
        return rc;
    rc = nrg_span_reader_new(recording, &reader);
    while (!rc && (rc = nrg_span_reader_next(reader, &row)) > 0)
        rc = take_row(&l, &row);
    nrg_span_reader_free(reader);
    free(l.tracks);
    if (rc)
        return nrg_fail(err, rc, nrg_recording_path(recording), "cannot read the requests: %s",
                        strerror(-rc));
    nrg_recording_extent(recording, &first_ns, &last_ns);
    finish(r, last_ns);
    return 0;
}

void nrg_llm_requests_release(struct nrg_relayed_requests *r)
{
    free(r->items);
    free(r->texts);
    nrg_span_catalog_release(&r->names);
    *r = (struct nrg_relayed_requests){0};
}

bool nrg_request_failed(const struct nrg_relayed_request *q)
{
    return !q->open && strcmp(q->outcome, "answered") != 0;
}
