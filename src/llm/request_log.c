/* See request_log.h. */
#include "llm/request_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "llm/requests.h"

#define TEXTS_NS     (20 * NRG_NS_PER_MS) /* pieces of text within this time are one row */
#define HAND_OVER_NS (200 * NRG_NS_PER_MS)

/* Ids of names that are always there; others follow. */
enum name {
    REQUEST = 1,
    PREFILL,
    DECODE,
    INPUT,
    CACHED,
    OUTPUT,
    REASONING,
    TEXTS,
    ANSWERED,
    CANCELLED,
    BROKEN,
    CHAT,
    COMPLETIONS,
    RESPONSES,
    EMBEDDINGS,
    GENERATE,
    MESSAGES,
    POOLING,
    CLASSIFY,
    RERANK,
    SCORE,
    OTHER,
    NAMES
};

static const struct {
    const char *kind, *text;
} names[NAMES] = {
    [REQUEST] = {NRG_REQUEST_KIND, "request"},
    [PREFILL] = {NRG_KIND_PHASE, NRG_REQUEST_PREFILL},
    [DECODE] = {NRG_KIND_PHASE, NRG_REQUEST_DECODE},
    [INPUT] = {NRG_KIND_COUNTER, NRG_REQUEST_INPUT},
    [CACHED] = {NRG_KIND_COUNTER, NRG_REQUEST_CACHED},
    [OUTPUT] = {NRG_KIND_COUNTER, NRG_REQUEST_OUTPUT},
    [REASONING] = {NRG_KIND_COUNTER, NRG_REQUEST_REASONING},
    [TEXTS] = {NRG_KIND_COUNTER, NRG_REQUEST_TEXTS},
    [ANSWERED] = {NRG_REQUEST_OUTCOME_KIND, "answered"},
    [CANCELLED] = {NRG_REQUEST_OUTCOME_KIND, "cancelled"},
    [BROKEN] = {NRG_REQUEST_OUTCOME_KIND, "broken"},
    [CHAT] = {NRG_REQUEST_API_KIND, "chat"},
    [COMPLETIONS] = {NRG_REQUEST_API_KIND, "completions"},
    [RESPONSES] = {NRG_REQUEST_API_KIND, "responses"},
    [EMBEDDINGS] = {NRG_REQUEST_API_KIND, "embeddings"},
    [GENERATE] = {NRG_REQUEST_API_KIND, "generate"},
    [MESSAGES] = {NRG_REQUEST_API_KIND, "messages"},
    [POOLING] = {NRG_REQUEST_API_KIND, "pooling"},
    [CLASSIFY] = {NRG_REQUEST_API_KIND, "classify"},
    [RERANK] = {NRG_REQUEST_API_KIND, "rerank"},
    [SCORE] = {NRG_REQUEST_API_KIND, "score"},
    [OTHER] = {NRG_REQUEST_API_KIND, NRG_REQUEST_OTHER},
};

static int names_init(struct nrg_log_names *n, const char *kind, const char *others, size_t most)
{
    *n = (struct nrg_log_names){.kind = kind, .others = others, .most = most};
    n->texts = nrg_calloc(most, sizeof *n->texts);
    n->ids = nrg_calloc(most, sizeof *n->ids);
    return n->texts && n->ids ? 0 : -1;
}

static void names_release(struct nrg_log_names *n)
{
    for (size_t i = 0; i < n->n; i++)
        free(n->texts[i]);
    free(n->texts);
    free(n->ids);
}

int nrg_request_log_init(struct nrg_request_log *log, struct nrg_recorder *recorder,
                         size_t connections)
{
    *log = (struct nrg_request_log){.recorder = recorder, .next_name = NAMES};
    nrg_rows_init(&log->rows, NRG_S_COLUMNS);
    log->slots = nrg_calloc(connections, sizeof *log->slots);
    log->n_slots = log->slots ? connections : 0;
    int rc = log->slots ? 0 : -1;
    rc |= names_init(&log->models, NRG_REQUEST_MODEL_KIND, "(other models)", NRG_LOG_MODELS);
    rc |= names_init(&log->paths, NRG_REQUEST_PATH_KIND, "(other paths)", NRG_LOG_PATHS);
    rc |= names_init(&log->statuses, NRG_REQUEST_STATUS_KIND, "(other statuses)", NRG_LOG_STATUSES);
    for (int i = 1; !rc && i < NAMES; i++)
        rc = nrg_recorder_span_name(recorder, i, names[i].kind, names[i].text);
    return rc;
}

void nrg_request_log_release(struct nrg_request_log *log)
{
    nrg_rows_release(&log->rows);
    names_release(&log->models);
    names_release(&log->paths);
    names_release(&log->statuses);
    free(log->slots);
}

static void add_to_slot(struct nrg_request_log *log, size_t slot, int64_t t_ns,
                        enum nrg_span_event event, int64_t name, int64_t value)
{
    int64_t values[NRG_S_COLUMNS] = {(int64_t)slot + 1, event, name, value, NRG_MISSING};
    nrg_rows_add(&log->rows, t_ns, 0, values);
    log->begins += event == NRG_SPAN_BEGIN;
}

static void add_row(struct nrg_request_log *log, const struct nrg_proxy_request *r, int64_t t_ns,
                    enum nrg_span_event event, int64_t name, int64_t value)
{
    add_to_slot(log, r->slot, t_ns, event, name, value);
}

static void begin(struct nrg_request_log *log, const struct nrg_proxy_request *r, int64_t t_ns,
                  enum name name)
{
    add_row(log, r, t_ns, NRG_SPAN_BEGIN, name, NRG_MISSING);
}

static void end(struct nrg_request_log *log, const struct nrg_proxy_request *r, int64_t t_ns)
{
    add_row(log, r, t_ns, NRG_SPAN_END, NRG_MISSING, NRG_MISSING);
}

static void count(struct nrg_request_log *log, const struct nrg_proxy_request *r, int64_t t_ns,
                  enum name name, int64_t amount)
{
    if (amount != NRG_MISSING)
        add_row(log, r, t_ns, NRG_SPAN_COUNT, name, amount);
}

static int64_t api_name(const struct nrg_llm_api *api)
{
    for (int i = CHAT; api && i < OTHER; i++)
        if (!strcmp(names[i].text, api->name))
            return i;
    return OTHER;
}

/* A name's id; 0: no memory. */
static int64_t name_id(struct nrg_request_log *log, struct nrg_log_names *n, const char *text)
{
    for (size_t i = 0; i < n->n; i++)
        if (!strcmp(n->texts[i], text) || i + 1 == n->most)
            return n->ids[i];
    text = n->n + 1 < n->most ? text : n->others;
    char *copy = strdup(text);
    if (!copy || nrg_recorder_span_name(log->recorder, log->next_name, n->kind, text)) {
        free(copy);
        return 0;
    }
    n->texts[n->n] = copy;
    n->ids[n->n++] = log->next_name;
    return log->next_name++;
}

static void mark(struct nrg_request_log *log, const struct nrg_proxy_request *r,
                 struct nrg_log_names *n, const char *text)
{
    int64_t id = *text ? name_id(log, n, text) : 0;
    if (id)
        add_row(log, r, r->end_ns, NRG_SPAN_MARK, id, NRG_MISSING);
}

void nrg_request_log_begin(struct nrg_request_log *log, const struct nrg_proxy_request *r)
{
    struct nrg_log_slot *slot = &log->slots[r->slot];
    char track[32];
    snprintf(track, sizeof track, "requests %zu", r->slot + 1);
    if (!slot->known)
        nrg_recorder_span_track(log->recorder, (int64_t)r->slot + 1, track);
    *slot = (struct nrg_log_slot){.known = true, .text_ns = r->begin_ns, .last_ns = r->begin_ns};
    add_row(log, r, r->begin_ns, NRG_SPAN_BEGIN, REQUEST, r->id);
    add_row(log, r, r->begin_ns, NRG_SPAN_MARK, api_name(r->api), NRG_MISSING);
    if (r->api)
        begin(log, r, r->begin_ns, PREFILL);
}

void nrg_request_log_first(struct nrg_request_log *log, const struct nrg_proxy_request *r)
{
    end(log, r, r->first_ns);
    begin(log, r, r->first_ns, DECODE);
}

/* Pieces of text that wait get their row. */
static void write_texts(struct nrg_request_log *log, size_t at)
{
    struct nrg_log_slot *slot = &log->slots[at];
    if (!slot->waiting)
        return;
    add_to_slot(log, at, slot->text_ns, NRG_SPAN_COUNT, TEXTS, slot->waiting);
    slot->waiting = 0;
    slot->last_ns = slot->text_ns;
}

/* A pause ends a row, so that it can be seen between two of them. */
void nrg_request_log_texts(struct nrg_request_log *log, const struct nrg_proxy_request *r,
                           uint64_t n, int64_t t_ns)
{
    struct nrg_log_slot *slot = &log->slots[r->slot];
    if (t_ns - slot->text_ns >= TEXTS_NS)
        write_texts(log, r->slot);
    slot->waiting += (int64_t)(n < INT32_MAX ? n : INT32_MAX);
    slot->text_ns = t_ns;
    if (t_ns - slot->last_ns >= TEXTS_NS)
        write_texts(log, r->slot);
}

static void mark_path(struct nrg_request_log *log, const struct nrg_proxy_request *r)
{
    char text[NRG_PATH_KIND_MAX + 16];
    size_t method = strcspn(r->path, " ");
    if (r->status == 404)
        snprintf(text, sizeof text, "%.*s (not found)", (int)method, r->path);
    mark(log, r, &log->paths, r->status == 404 && *r->path ? text : r->path);
}

static enum name outcome_of(const struct nrg_proxy_request *r)
{
    static const enum name outcomes[] = {[NRG_REQUEST_ANSWERED] = ANSWERED,
                                         [NRG_REQUEST_CANCELLED] = CANCELLED,
                                         [NRG_REQUEST_BROKEN] = BROKEN};
    bool refused = r->outcome == NRG_REQUEST_ANSWERED && r->status >= 400;
    return refused ? BROKEN : outcomes[r->outcome];
}

void nrg_request_log_end(struct nrg_request_log *log, const struct nrg_proxy_request *r)
{
    int64_t t_ns = r->end_ns;
    char status[16] = "";
    log->any |= !nrg_llm_is_no_work(r->path, t_ns - r->begin_ns);
    if (r->status)
        snprintf(status, sizeof status, "%d", r->status);
    write_texts(log, r->slot);
    if (r->api)
        end(log, r, t_ns); /* prefill or decode */
    count(log, r, t_ns, INPUT, r->seen.input);
    count(log, r, t_ns, CACHED, r->seen.cached);
    count(log, r, t_ns, OUTPUT, r->seen.output);
    count(log, r, t_ns, REASONING, r->seen.reasoning);
    mark(log, r, &log->models, r->seen.model);
    mark_path(log, r);
    mark(log, r, &log->statuses, status);
    add_row(log, r, t_ns, NRG_SPAN_MARK, outcome_of(r), NRG_MISSING);
    end(log, r, t_ns);
}

static int by_time(const void *a, const void *b, void *arg)
{
    const int64_t *t_ns = arg;
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    return t_ns[i] != t_ns[j] ? (t_ns[i] > t_ns[j] ? 1 : -1) : i > j ? 1 : -1;
}

/* Moves rows up to a time into `done`, in order of time, and keeps the others. */
static void take_until(struct nrg_request_log *log, int64_t until_ns, struct nrg_rows *done)
{
    struct nrg_rows all = log->rows;
    size_t *order = nrg_calloc(all.n + 1, sizeof *order);
    nrg_rows_init(&log->rows, all.n_columns);
    for (size_t i = 0; order && i < all.n; i++)
        order[i] = i;
    if (order)
        qsort_r(order, all.n, sizeof *order, by_time, all.t_ns);
    for (size_t i = 0; order && i < all.n; i++) {
        int64_t values[NRG_S_COLUMNS], t_ns = all.t_ns[order[i]];
        for (size_t c = 0; c < all.n_columns; c++)
            values[c] = nrg_rows_column(&all, c)[order[i]];
        nrg_rows_add(t_ns <= until_ns ? done : &log->rows, t_ns, 0, values);
    }
    free(order);
    nrg_rows_release(&all);
}

void nrg_request_log_hand_over(struct nrg_request_log *log, int64_t t_ns, bool now)
{
    struct nrg_rows done;
    if (!now && t_ns - log->handed_ns < HAND_OVER_NS)
        return;
    log->handed_ns = t_ns;
    for (size_t i = 0; i < log->n_slots; i++)
        if (now || t_ns - log->slots[i].text_ns >= TEXTS_NS)
            write_texts(log, i);
    nrg_rows_init(&done, NRG_S_COLUMNS);
    take_until(log, now ? INT64_MAX : t_ns - NRG_PROXY_LATE_NS, &done);
    nrg_recorder_span_rows(log->recorder, &done, log->begins);
    nrg_rows_release(&done);
    log->begins = 0;
}
