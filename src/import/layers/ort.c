/*
 * Profiles of ONNX Runtime: a bare array of events, one per line, in us since the profiler began.
 * Names are written without escapes, and the end of the file may be missing; the JSON reader has
 * modes for both.
 *
 *     {"cat" : "Node","pid" :1,"tid" :2,"dur" :79,"ts" :2155,"ph" : "X",
 *      "name" :"/conv1/Conv_kernel_time","args" : {"op_name" : "Conv", ...}},
 *
 * Nodes are operators named as in the model, with their type as detail. "model_run" is a cycle, so
 * that runs can be distinguished. Other events of the session keep their names. Fences, which old
 * versions write around each node, are left out. Kernels of a GPU are on tracks of its
 * streams.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "import/layers/internal.h"
#include "sensors/channel.h"

struct ort {
    struct nrg_layer_import *im;
    struct nrg_chrome_event event;
    struct nrg_chrome_tracks tracks; /* of GPUs */
    uint64_t bad;
};

static bool is_ort_profile(const struct nrg_layer_head *head)
{
    static const char *const cats[] = {"Session", "Node", "Api", "Kernel"};
    if (!nrg_layer_head_is(head, 0, NRG_JSON_ARRAY) || !nrg_layer_head_is(head, 1, NRG_JSON_OBJECT))
        return false;
    for (size_t i = 2; i + 1 < head->n && head->tokens[i].token != NRG_JSON_OBJECT_END; i++) {
        if (head->tokens[i].token != NRG_JSON_KEY || strcmp(head->tokens[i].text, "cat") != 0)
            continue;
        for (size_t k = 0; k < sizeof cats / sizeof *cats; k++)
            if (!strcmp(head->tokens[i + 1].text, cats[k]))
                return true;
        return false;
    }
    return false;
}

static bool strip_suffix(struct nrg_chrome_event *e, const char *suffix)
{
    size_t len = strlen(suffix);
    if (e->name_len < len || memcmp(e->name + e->name_len - len, suffix, len) != 0)
        return false;
    e->name_len -= len;
    e->name[e->name_len] = '\0';
    return true;
}

/* Streams of a GPU are tracks of their own: they overlap. Without args.device there is one GPU. */
static int64_t gpu_track(struct ort *o)
{
    static const struct nrg_chrome_place gpu = {.device = {.family = "gpu"}};
    const char *domain = o->im->options->domain;
    int64_t index = nrg_chrome_stream(&o->tracks, o->im->sink, &o->event, &gpu);
    if (index < 0)
        return index;
    struct nrg_chrome_track *track = &o->tracks.items[index];
    if (domain) {
        nrg_copy(track->track.domain, sizeof track->track.domain, domain);
        nrg_span_sink_set_track(o->im->sink, track->id, &track->track);
    }
    return track->id;
}

static int64_t thread_track(struct ort *o)
{
    const struct nrg_chrome_event *e = &o->event;
    const char *domain = o->im->options->domain;
    struct nrg_span_track track = {.kind = "thread",
                                   .pid = nrg_chrome_small_number(e->pid),
                                   .tid = nrg_chrome_small_number(e->tid)};
    nrg_copy(track.domain, sizeof track.domain, domain ? domain : "");
    snprintf(track.name, sizeof track.name, "%.40s thread %.40s", e->pid, e->tid);
    return nrg_span_sink_track(o->im->sink, &track);
}

static int add_span(struct ort *o, int64_t track, int64_t name, int64_t number)
{
    const struct nrg_sink_span span = {.begin_ns = o->event.ts_ns,
                                       .end_ns = nrg_chrome_event_end(&o->event),
                                       .track = track,
                                       .name = name,
                                       .number = number,
                                       .path = NRG_MISSING};
    int rc = nrg_layer_span(o->im, &span, &o->bad);
    return rc < 0 ? rc : 0;
}

/* Nodes of old models may have no name: then their type is used. */
static int add_node(struct ort *o)
{
    struct nrg_chrome_event *e = &o->event;
    if (strip_suffix(e, "_fence_before") || strip_suffix(e, "_fence_after"))
        return 0;
    strip_suffix(e, "_kernel_time");
    const char *text = e->name_len ? e->name : e->op_name[0] ? e->op_name : "(node)";
    int64_t name =
        nrg_span_sink_name(o->im->sink, NRG_KIND_OPERATOR, text, strlen(text), e->op_name);
    return add_span(o, thread_track(o), name, NRG_MISSING);
}

static int take_event(void *arg)
{
    struct ort *o = arg;
    struct nrg_chrome_event *e = &o->event;
    struct nrg_span_sink *sink = o->im->sink;
    if (e->ph != 'X')
        return 0;
    if (e->ts_ns == NRG_MISSING || e->dur_ns == NRG_MISSING) {
        o->bad++;
        return 0;
    }
    if (!strcmp(e->cat, "Node"))
        return add_node(o);
    if (!strcmp(e->cat, "Kernel"))
        return add_span(o, gpu_track(o),
                        nrg_span_sink_name(sink, NRG_KIND_KERNEL, e->name, e->name_len, e->op_name),
                        NRG_MISSING);
    bool cycle = !strcmp(e->name, "model_run");
    o->im->file->cycles += cycle;
    return add_span(
        o, thread_track(o),
        nrg_span_sink_name(sink, cycle ? NRG_KIND_CYCLE : NRG_KIND_SPAN, e->name, e->name_len, ""),
        cycle ? (int64_t)o->im->file->cycles : NRG_MISSING);
}

static int read_profile(struct nrg_layer_import *im, struct nrg_error *err)
{
    struct ort o = {.im = im};
    im->sink->slack_ns = 1000;
    int rc = nrg_json_next(&im->json, err);
    if (rc >= 0)
        rc = nrg_chrome_events_read(im, &o.event, take_event, &o, err);
    if (!rc)
        rc = nrg_json_next(&im->json, err);
    nrg_layer_count(im, o.bad, "event", "events", "without usable times left out");
    nrg_chrome_tracks_release(&o.tracks);
    return rc < 0 ? rc : 0;
}

const struct nrg_layer_format nrg_layers_ort = {
    .name = "onnxruntime-profile",
    .json_flags = NRG_JSON_RAW_TEXTS | NRG_JSON_MAY_BE_CUT,
    .match = is_ort_profile,
    .read = read_profile,
};
