/*
 * Traces of torch.profiler (Kineto) of all its generations, of the autograd profiler before it, and
 * of XLA (JAX, TensorFlow): the chrome trace format, as an object with "traceEvents" or as a bare
 * array.
 *
 *   - Threads are tracks; operators, annotations and runtime calls nest by time, as the trace
 *     format means it. "ProfilerStep#17" is step 17. Modules are spans called
 *     "nn.Module: Class|qualified.name" or, from Python's stack, "nn.Module: Class_3"; the rest of
 *     the Python stack is left out.
 *   - Streams of a GPU are tracks of kind "gpu" with its energy domain. Kernels, copies and fills
 *     belong below the operator that launched them (chrome_tie.c). Kineto's categories say what is
 *     of a GPU; in other traces the names of processes do (device.c). Where a name comes after the
 *     events that it is for, the file is read once more.
 *   - "distributedInfo" says which rank of a job it was: steps have that as their detail, as those
 *     of nrg run --torch have.
 *   - Times are in us, with or without a fraction; with "baseTimeNanoseconds" they count from
 * there. Times from 2001 to 2100 are dates; others count from some start of the program.
 *
 * Events without a duration (flows, instants, counters, memory) and the GPU's copies of
 * annotations are left out. A file that was cut off is used as far as it goes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"
#include "import/layers/internal.h"
#include "sensors/channel.h"

#define FIRST_DATE_NS INT64_C(978307200000000000)  /* 2001 */
#define LAST_DATE_NS  INT64_C(4102444800000000000) /* 2100 */

enum use { HOST, RUNTIME, GPU, PYTHON, LEAVE_OUT };

static const struct {
    const char *cat;
    enum use use;
    const char *kind, *detail;
} categories[] = {
    {"cpu_op", HOST, NRG_KIND_OPERATOR, ""},
    {"Operator", HOST, NRG_KIND_OPERATOR, ""},
    {"cpu_instant_event", LEAVE_OUT, "", ""},
    {"user_annotation", HOST, NRG_KIND_SPAN, ""},
    {"kernel", GPU, NRG_KIND_KERNEL, ""},
    {"Kernel", GPU, NRG_KIND_KERNEL, ""},
    {"gpu_memcpy", GPU, NRG_KIND_KERNEL, "memcpy"},
    {"Memcpy", GPU, NRG_KIND_KERNEL, "memcpy"},
    {"gpu_memset", GPU, NRG_KIND_KERNEL, "memset"},
    {"Memset", GPU, NRG_KIND_KERNEL, "memset"},
    {"cuda_runtime", RUNTIME, "runtime", ""},
    {"cuda_driver", RUNTIME, "runtime", ""},
    {"Runtime", RUNTIME, "runtime", ""},
    {"hip_runtime", RUNTIME, "runtime", ""},
    {"xpu_runtime", RUNTIME, "runtime", ""},
    {"xpu_driver", RUNTIME, "runtime", ""},
    {"hip_driver", RUNTIME, "runtime", ""},
    {"mtia_runtime", RUNTIME, "runtime", ""},
    {"glow_runtime", RUNTIME, "runtime", ""},
    {"privateuse1_runtime", RUNTIME, "runtime", ""},
    {"privateuse1_driver", RUNTIME, "runtime", ""},
    {"hpu_op", GPU, NRG_KIND_KERNEL, ""},
    {"mtia_ccp_events", GPU, NRG_KIND_KERNEL, ""},
    {"python_function", PYTHON, "", ""},
    {"gpu_user_annotation", LEAVE_OUT, "", ""},
    {"cuda_sync", LEAVE_OUT, "", ""},
    {"cuda_event", LEAVE_OUT, "", ""},
    {"cuda_profiler_range", LEAVE_OUT, "", ""},
    {"overhead", LEAVE_OUT, "", ""},
    {"Trace", LEAVE_OUT, "", ""},
};

struct open_begin {
    int64_t begin_ns, name, number;
    size_t track, below;
};

struct chrome {
    struct nrg_layer_import *im;
    struct nrg_chrome_event event;
    struct nrg_chrome_tracks tracks;
    struct open_begin *begins;
    size_t n_begins, cap_begins;
    struct nrg_chrome_ties ties;
    size_t last_host; /* record of the sink; SIZE_MAX: none yet */
    int64_t pending_flow;
    int64_t base_ns;
    char rank[48]; /* "rank 1 of 4"; "": not said */
    bool fraction, have_events;
    uint64_t python, backwards, untimed, unmatched_ends, repeated;
};

/* What an event is, and on which device. */
struct purpose {
    enum use use;
    const char *kind, *detail;
    struct nrg_chrome_place place; /* of GPU */
};

static const char *detail_of_work(const struct nrg_chrome_event *e)
{
    return !strncasecmp(e->name, "memcpy", 6)   ? "memcpy"
           : !strncasecmp(e->name, "memset", 6) ? "memset"
                                                : e->op_name;
}

/* A host's event that carries a correlation id is the call that launched something. */
static int by_names(struct chrome *c, struct purpose *p)
{
    const struct nrg_chrome_event *e = &c->event;
    int rc = nrg_chrome_place(&c->tracks, e, &p->place);
    if (rc)
        return rc;
    bool call = e->correlation != NRG_MISSING;
    p->use = call ? RUNTIME : HOST;
    p->kind = call ? "runtime" : strstr(e->name, "::") ? NRG_KIND_OPERATOR : NRG_KIND_SPAN;
    p->detail = "";
    if (!p->place.device.family[0])
        return 0;
    p->use = GPU;
    p->kind = p->place.line == NRG_LINE_STEPS     ? NRG_KIND_STEP
              : p->place.line == NRG_LINE_MODULES ? NRG_KIND_SPAN
                                                  : NRG_KIND_KERNEL;
    p->detail = p->place.line ? "" : detail_of_work(e);
    return 0;
}

/* Without args.device, Kineto's number of the device is that of the process. */
static void place_kineto(const struct nrg_chrome_event *e, struct nrg_chrome_place *place)
{
    const char *family = !strcmp(e->cat, "hpu_op")            ? "hpu"
                         : !strcmp(e->cat, "mtia_ccp_events") ? "mtia"
                                                              : "gpu";
    *place = (struct nrg_chrome_place){.device.number = nrg_chrome_small_number(e->pid)};
    nrg_copy(place->device.family, sizeof place->device.family, family);
}

/* 0 or -ENOMEM. */
static int purpose_of(struct chrome *c, struct purpose *p)
{
    const struct nrg_chrome_event *e = &c->event;
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++) {
        if (strcmp(e->cat, categories[i].cat) != 0)
            continue;
        *p = (struct purpose){
            .use = categories[i].use, .kind = categories[i].kind, .detail = categories[i].detail};
        if (p->use == GPU)
            place_kineto(e, &p->place);
        return 0;
    }
    return by_names(c, p);
}

/* `track` is an index. 1: added; 0: impossible, and counted; -errno. */
static int add_span(struct chrome *c, int64_t track, int64_t name, int64_t number, int64_t begin_ns,
                    int64_t end_ns)
{
    const struct nrg_sink_span span = {.begin_ns = begin_ns,
                                       .end_ns = end_ns,
                                       .track = track < 0 ? track : c->tracks.items[track].id,
                                       .name = name,
                                       .number = number,
                                       .path = NRG_MISSING};
    return nrg_layer_span(c->im, &span, &c->backwards);
}

static int host_span(struct chrome *c, const struct purpose *p)
{
    const struct nrg_chrome_event *e = &c->event;
    int64_t number,
        name = nrg_chrome_host_name(c->im->sink, &c->event, p->kind, p->detail, c->rank, &number);
    int rc = add_span(c, nrg_chrome_thread(&c->tracks, c->im->sink, &c->event), name, number,
                      e->ts_ns, nrg_chrome_event_end(e));
    if (rc <= 0)
        return rc;
    c->last_host = c->im->sink->n - 1;
    return p->use == RUNTIME
               ? nrg_chrome_mark(&c->ties, c->last_host, NRG_LINK_CORRELATION, e->correlation)
               : nrg_chrome_mark(&c->ties, c->last_host, NRG_LINK_EXTERNAL, e->external);
}

/* A step of XLA is called by its number. */
static int64_t work_name(struct chrome *c, const struct purpose *p, int64_t *number)
{
    const struct nrg_chrome_event *e = &c->event;
    *number = NRG_MISSING;
    if (p->place.line == NRG_LINE_STEPS && !nrg_parse_i64(e->name, e->name_len, number))
        return nrg_span_sink_name(c->im->sink, p->kind, "step", 4, c->rank);
    return nrg_span_sink_name(c->im->sink, p->kind, e->name, e->name_len, p->detail);
}

static int gpu_span(struct chrome *c, const struct purpose *p)
{
    const struct nrg_chrome_event *e = &c->event;
    int64_t number, name = work_name(c, p, &number);
    int rc = add_span(c, nrg_chrome_stream(&c->tracks, c->im->sink, e, &p->place), name, number,
                      e->ts_ns, nrg_chrome_event_end(e));
    int64_t external = e->external != NRG_MISSING ? e->external : c->pending_flow;
    c->pending_flow = NRG_MISSING;
    return rc <= 0 || p->place.line
               ? (rc < 0 ? rc : 0)
               : nrg_chrome_kernel(&c->ties, c->im->sink, e->correlation, external);
}

static int complete_event(struct chrome *c)
{
    struct purpose p;
    int rc = purpose_of(c, &p);
    if (rc)
        return rc;
    if (c->event.dur_ns == NRG_MISSING)
        c->event.dur_ns = 0;
    if (p.use == PYTHON && !strncmp(c->event.name, NRG_CHROME_MODULE, strlen(NRG_CHROME_MODULE)))
        return host_span(c, &(struct purpose){.kind = NRG_KIND_MODULE, .detail = ""});
    c->python += p.use == PYTHON;
    if (p.use == GPU)
        return gpu_span(c, &p);
    return p.use == HOST || p.use == RUNTIME ? host_span(c, &p) : 0;
}

static int64_t track_of(struct chrome *c, const struct purpose *p)
{
    return p->use == GPU ? nrg_chrome_stream(&c->tracks, c->im->sink, &c->event, &p->place)
                         : nrg_chrome_thread(&c->tracks, c->im->sink, &c->event);
}

static int begin_event(struct chrome *c)
{
    struct purpose p;
    int rc = purpose_of(c, &p);
    if (rc || p.use > GPU)
        return rc;
    int64_t track = track_of(c, &p), number,
            name = p.use == GPU ? work_name(c, &p, &number)
                                : nrg_chrome_host_name(c->im->sink, &c->event, p.kind, p.detail,
                                                       c->rank, &number);
    if (track < 0 || name < 0 ||
        nrg_reserve(&c->begins, &c->cap_begins, c->n_begins + 1, sizeof *c->begins))
        return -ENOMEM;
    struct nrg_chrome_track *t = &c->tracks.items[track];
    c->begins[c->n_begins] =
        (struct open_begin){c->event.ts_ns, name, number, (size_t)track, t->open};
    t->open = ++c->n_begins;
    return 0;
}

static int end_event(struct chrome *c)
{
    struct purpose p;
    int rc = purpose_of(c, &p);
    int64_t track = rc ? rc : track_of(c, &p);
    if (track < 0)
        return (int)track;
    struct nrg_chrome_track *t = &c->tracks.items[track];
    if (!t->open) {
        c->unmatched_ends++;
        return 0;
    }
    struct open_begin *b = &c->begins[t->open - 1];
    t->open = b->below;
    rc = add_span(c, track, b->name, b->number, b->begin_ns, c->event.ts_ns);
    b->track = SIZE_MAX;
    return rc < 0 ? rc : 0;
}

/* Adds the spans whose end is missing. */
static int close_begins(struct chrome *c)
{
    int rc = 0;
    for (size_t i = 0; rc >= 0 && i < c->n_begins; i++) {
        const struct open_begin *b = &c->begins[i];
        if (b->track == SIZE_MAX)
            continue;
        rc = add_span(c, (int64_t)b->track, b->name, b->number, b->begin_ns, NRG_MISSING);
    }
    return rc < 0 ? rc : 0;
}

/* The autograd profiler writes its flow events after the operator and before the kernel. */
static int flow_event(struct chrome *c)
{
    const struct nrg_chrome_event *e = &c->event;
    if (strcmp(e->cat, "cpu_to_cuda") != 0)
        return 0;
    if (e->ph == 'f')
        c->pending_flow = e->flow;
    return e->ph == 's' && c->last_host != SIZE_MAX
               ? nrg_chrome_mark(&c->ties, c->last_host, NRG_LINK_EXTERNAL, e->flow)
               : 0;
}

static int take_event(void *arg)
{
    struct chrome *c = arg;
    const struct nrg_chrome_event *e = &c->event;
    bool timed = e->ph == 'X' || e->ph == 'B' || e->ph == 'E';
    if (timed && e->ts_ns == NRG_MISSING) {
        c->untimed++;
        return 0;
    }
    c->fraction |= timed && e->fraction;
    switch (e->ph) {
    case 'X':
        return complete_event(c);
    case 'B':
        return begin_event(c);
    case 'E':
        return end_event(c);
    case 'M':
        return nrg_chrome_label(&c->tracks, c->im->sink, e);
    case 's':
    case 'f':
        return flow_event(c);
    default:
        return 0;
    }
}

static int read_events(struct chrome *c, struct nrg_error *err)
{
    c->have_events = true;
    return nrg_chrome_events_read(c->im, &c->event, take_event, c, err);
}

/* What does not fit stays unsaid. */
static int read_rank(struct chrome *c, struct nrg_error *err)
{
    struct nrg_json_stream *s = &c->im->json;
    int64_t rank = -1, size = -1;
    int token = nrg_json_next(s, err), rc = 0;
    if (token == NRG_JSON_NULL)
        return 0;
    if (token != NRG_JSON_OBJECT)
        return token < 0 ? token : nrg_json_fail(s, err, "distributedInfo is not an object");
    while (!rc && (token = nrg_json_next(s, err)) == NRG_JSON_KEY) {
        int64_t *into = nrg_json_is(s, "rank")         ? &rank
                        : nrg_json_is(s, "world_size") ? &size
                                                       : NULL;
        if (!into) {
            rc = nrg_json_skip_value(s, err);
            continue;
        }
        token = nrg_json_next(s, err);
        if (token != NRG_JSON_NUMBER || nrg_json_scaled(s, 0, into))
            return token < 0 ? token : nrg_json_fail(s, err, "a rank is not a number");
    }
    if (rank >= 0 && size > 1 && rank < size)
        snprintf(c->rank, sizeof c->rank, "rank %lld of %lld", (long long)rank, (long long)size);
    return rc ? rc : token < 0 ? token : 0;
}

static int read_object(struct chrome *c, struct nrg_error *err)
{
    struct nrg_json_stream *s = &c->im->json;
    int token, rc = 0;
    while (!rc && (token = nrg_json_next(s, err)) == NRG_JSON_KEY) {
        if (nrg_json_is(s, "traceEvents")) {
            if ((token = nrg_json_next(s, err)) != NRG_JSON_ARRAY)
                return token < 0 ? token : nrg_json_fail(s, err, "traceEvents is not a list");
            rc = read_events(c, err);
        } else if (nrg_json_is(s, "distributedInfo")) {
            rc = read_rank(c, err);
        } else if (nrg_json_is(s, "baseTimeNanoseconds")) {
            token = nrg_json_next(s, err);
            if (token != NRG_JSON_NUMBER || nrg_json_scaled(s, 0, &c->base_ns))
                return token < 0 ? token : nrg_json_fail(s, err, "the base time is not a number");
        } else {
            rc = nrg_json_skip_value(s, err);
        }
    }
    if (rc || token < 0)
        return rc ? rc : token;
    return c->have_events || s->truncated ? 0 : nrg_json_fail(s, err, "has no \"traceEvents\"");
}

static bool is_date(int64_t t_ns)
{
    return t_ns >= FIRST_DATE_NS && t_ns <= LAST_DATE_NS;
}

static void find_clock(struct chrome *c)
{
    int64_t first_ns, last_ns, based_ns;
    if (nrg_span_sink_extent(c->im->sink, &first_ns, &last_ns))
        return;
    if (!is_date(first_ns) && !__builtin_add_overflow(first_ns, c->base_ns, &based_ns) &&
        is_date(based_ns)) {
        c->im->base_ns = c->base_ns;
        first_ns = based_ns;
    }
    c->im->file->wall_clock = is_date(first_ns);
}

static void add_notes(struct chrome *c)
{
    struct nrg_layer_import *im = c->im;
    nrg_layer_count(im, c->untimed, "event", "events", "without a time left out");
    nrg_layer_count(im, c->backwards, "event", "events", "with an impossible time left out");
    nrg_layer_count(im, c->unmatched_ends, "end", "ends", "without a begin left out");
    nrg_layer_count(im, c->python, "call", "calls",
                    "of Python functions that are not modules left out");
    nrg_layer_count(im, c->repeated, "span", "spans",
                    "that repeat the work of a device by operator, module or step left out");
    if (c->ties.n_kernels)
        nrg_layer_note(im, "%zu %s of the GPU, %llu tied to the operator that launched them",
                       c->ties.n_kernels, c->ties.n_kernels == 1 ? "span" : "spans",
                       (unsigned long long)c->ties.tied);
    nrg_layer_count(im, c->ties.n_kernels - c->ties.tied, "span", "spans",
                    "of the GPU whose launch is not in the trace");
}

static void release_trace(struct chrome *c)
{
    nrg_chrome_tracks_release(&c->tracks);
    nrg_chrome_ties_release(&c->ties);
    free(c->begins);
}

static int read_document(struct chrome *c, struct nrg_error *err)
{
    int rc = nrg_json_next(&c->im->json, err);
    if (rc >= 0)
        rc = rc == NRG_JSON_OBJECT ? read_object(c, err) : read_events(c, err);
    if (!rc)
        rc = nrg_json_next(&c->im->json, err);
    return rc < 0 ? rc : 0;
}

/* With the names of all processes and threads known from the first time. */
static int read_again(struct chrome *c, struct nrg_error *err)
{
    struct nrg_layer_import *im = c->im;
    int rc = nrg_layer_restart(im, err);
    if (rc)
        return rc;
    struct nrg_chrome_tracks tracks = c->tracks;
    c->tracks = (struct nrg_chrome_tracks){0};
    release_trace(c);
    nrg_chrome_tracks_restart(&tracks);
    *c = (struct chrome){
        .im = im, .tracks = tracks, .pending_flow = NRG_MISSING, .last_host = SIZE_MAX};
    return read_document(c, err);
}

/* Takes out what would be there twice. */
static int drop_repeated(struct chrome *c)
{
    bool *repeated = nrg_chrome_repeated(&c->tracks, c->im->sink);
    if (!repeated)
        return -ENOMEM;
    c->repeated = nrg_chrome_drop(&c->ties, c->im->sink, repeated);
    free(repeated);
    return 0;
}

static int finish_trace(struct chrome *c, struct nrg_error *err)
{
    struct nrg_layer_import *im = c->im;
    /* With times in whole us, a child may seem to outlast its parent by one. */
    im->sink->slack_ns = c->fraction ? 2 : 1000;
    int rc = close_begins(c);
    if (!rc)
        rc = drop_repeated(c);
    if (!rc)
        rc = nrg_chrome_tie(&c->ties, im->sink);
    nrg_chrome_set_process(&c->tracks, im->sink);
    find_clock(c);
    add_notes(c);
    return rc ? nrg_layer_out_of_memory(im, err) : 0;
}

static int read_trace(struct nrg_layer_import *im, struct nrg_error *err)
{
    struct chrome c = {.im = im, .pending_flow = NRG_MISSING, .last_host = SIZE_MAX};
    int rc = read_document(&c, err);
    if (!rc && c.tracks.late)
        rc = read_again(&c, err);
    if (!rc)
        rc = finish_trace(&c, err);
    release_trace(&c);
    return rc;
}

static bool is_chrome_trace(const struct nrg_layer_head *head)
{
    static const char *const keys[] = {
        "traceEvents",     "schemaVersion",       "deviceProperties",
        "displayTimeUnit", "baseTimeNanoseconds", "distributedInfo",
        "otherData",       "traceName",           "systemTraceEvents"};
    if (nrg_layer_head_is(head, 0, NRG_JSON_ARRAY))
        return nrg_layer_head_is(head, 1, NRG_JSON_OBJECT) && nrg_layer_head_has(head, "ph");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (head->n > 1 && !strcmp(head->tokens[1].text, keys[i]))
            return true;
    return nrg_layer_head_has(head, "traceEvents") && nrg_layer_head_has(head, "ph");
}

const struct nrg_layer_format nrg_layers_chrome = {
    .name = "chrome-trace",
    .json_flags = NRG_JSON_MAY_BE_CUT,
    .match = is_chrome_trace,
    .read = read_trace,
};
