/* Events of a chrome trace (internal.h): a table of fields; everything else is skipped. */
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "import/layers/internal.h"
#include "sensors/channel.h"

#define KEY(text) text, sizeof text - 1
#define E(field)  offsetof(struct nrg_chrome_event, field)

enum form { TEXT, TIME, NUMBER, NAME, PHASE, ARGS };

struct field {
    const char *key;
    size_t len;
    enum form form;
    size_t at, size;
};

static const struct field fields[] = {
    {KEY("ph"), PHASE, E(ph), 0},
    {KEY("cat"), TEXT, E(cat), sizeof((struct nrg_chrome_event *)0)->cat},
    {KEY("name"), NAME, E(name), 0},
    {KEY("pid"), TEXT, E(pid), sizeof((struct nrg_chrome_event *)0)->pid},
    {KEY("tid"), TEXT, E(tid), sizeof((struct nrg_chrome_event *)0)->tid},
    {KEY("ts"), TIME, E(ts_ns), 0},
    {KEY("dur"), TIME, E(dur_ns), 0},
    {KEY("id"), NUMBER, E(flow), 0},
    {KEY("args"), ARGS, 0, 0},
};

static const struct field args[] = {
    {KEY("External id"), NUMBER, E(external), 0},
    {KEY("external id"), NUMBER, E(external), 0},
    {KEY("correlation"), NUMBER, E(correlation), 0},
    {KEY("correlation_id"), NUMBER, E(correlation), 0},
    {KEY("device"), NUMBER, E(device), 0},
    {KEY("stream"), NUMBER, E(stream), 0},
    {KEY("op_name"), TEXT, E(op_name), sizeof((struct nrg_chrome_event *)0)->op_name},
    {KEY("hlo_op"), TEXT, E(op_name), sizeof((struct nrg_chrome_event *)0)->op_name},
    {KEY("name"), TEXT, E(label), sizeof((struct nrg_chrome_event *)0)->label},
};

static const struct field *find_field(const struct field *table, size_t n,
                                      const struct nrg_json_stream *s)
{
    for (size_t i = 0; i < n; i++)
        if (s->len == table[i].len && !memcmp(s->text, table[i].key, s->len))
            return &table[i];
    return NULL;
}

static void take_name(struct nrg_chrome_event *e, const struct nrg_json_stream *s)
{
    e->name_len = s->len > NRG_SPAN_NAME_MAX ? NRG_SPAN_NAME_MAX : s->len;
    memcpy(e->name, s->text, e->name_len);
    e->name[e->name_len] = '\0';
}

/* The current value. Numbers may be quoted; what does not fit stays missing. */
static void take_value(struct nrg_chrome_event *e, const struct nrg_json_stream *s,
                       const struct field *field)
{
    char *at = (char *)e + field->at;
    int64_t number;
    if (field->form == TEXT)
        nrg_copy(at, field->size, s->text);
    else if (field->form == NAME)
        take_name(e, s);
    else if (field->form == PHASE)
        e->ph = s->len == 1 ? s->text[0] : '?';
    else if (!nrg_json_scaled(s, field->form == TIME ? 3 : 0, &number))
        memcpy(at, &number, sizeof number);
    if (field->form == TIME && field->at == E(ts_ns))
        e->fraction = memchr(s->text, '.', s->len) != NULL;
}

static int read_members(struct nrg_json_stream *s, struct nrg_chrome_event *e,
                        const struct field *table, size_t n, struct nrg_error *err)
{
    int token;
    while ((token = nrg_json_next(s, err)) == NRG_JSON_KEY) {
        const struct field *field = find_field(table, n, s);
        if (!field) {
            token = nrg_json_skip_value(s, err);
            if (token < 0)
                return token;
            continue;
        }
        token = nrg_json_next(s, err);
        if (token <= 0)
            return token;
        if (token == NRG_JSON_OBJECT && field->form == ARGS)
            token = read_members(s, e, args, sizeof args / sizeof *args, err);
        else if (token == NRG_JSON_OBJECT || token == NRG_JSON_ARRAY)
            token = nrg_json_skip_rest(s, err);
        else if (token == NRG_JSON_STRING || token == NRG_JSON_NUMBER)
            take_value(e, s, field);
        if (token < 0)
            return token;
    }
    return token == NRG_JSON_OBJECT_END ? 1 : token;
}

/* The members of an object whose bracket was just read. 1, 0 at a cut end, -errno. */
static int read_event(struct nrg_json_stream *s, struct nrg_chrome_event *e, struct nrg_error *err)
{
    e->ph = '\0';
    e->cat[0] = e->pid[0] = e->tid[0] = e->label[0] = e->op_name[0] = e->name[0] = '\0';
    e->name_len = 0;
    e->fraction = false;
    e->ts_ns = e->dur_ns = NRG_MISSING;
    e->correlation = e->external = e->device = e->stream = e->flow = NRG_MISSING;
    int rc = read_members(s, e, fields, sizeof fields / sizeof *fields, err);
    return rc > 0 && s->truncated ? 0 : rc;
}

int nrg_chrome_events_read(struct nrg_layer_import *im, struct nrg_chrome_event *event,
                           int (*take)(void *arg), void *arg, struct nrg_error *err)
{
    struct nrg_json_stream *s = &im->json;
    int token;
    while ((token = nrg_json_next(s, err)) == NRG_JSON_OBJECT) {
        int rc = read_event(s, event, err);
        if (rc <= 0)
            return rc;
        nrg_layer_tick(im);
        if (take(arg))
            return nrg_layer_out_of_memory(im, err);
    }
    if (token <= 0 || token == NRG_JSON_ARRAY_END)
        return token < 0 ? token : 0;
    return nrg_json_fail(s, err, "an event is not an object");
}

int64_t nrg_chrome_event_end(const struct nrg_chrome_event *event)
{
    int64_t end_ns;
    return __builtin_add_overflow(event->ts_ns, event->dur_ns, &end_ns) ? INT64_MAX - 1 : end_ns;
}
