/*
 * What trtexec exports:
 *
 *   --exportProfile   [{"count": 14590}, {"name": ..., "timeMs": ..., "averageMs": ...}, ...]
 *   --exportTimes     [{"startEnqMs": ..., "startComputeMs": ..., "endComputeMs": ..., ...}, ...]
 *
 * The profile has run times but no time stamps: it is one cycle of mean run times, laid end to end.
 * With the times as well (--times FILE), every inference is a cycle, and the layers are laid into
 * it in proportion to their mean run times, because the profile is of another run, whose sum does
 * not fit. Notes say so, and each span's own duration is the profile's. Times alone are cycles (the
 * time on the GPU) and copies to and from it, on tracks of their own because they overlap.
 *
 * Times count from the start of trtexec's measurement: --offset or --align place them.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "import/layers/read.h"
#include "sensors/channel.h"

struct part {
    int64_t name;
    double average_ms;
};

/* An inference: begin and end of its copies and of its time on the GPU. */
enum { IN, COMPUTE, OUT, PARTS };
struct inference {
    int64_t begin_ns[PARTS], end_ns[PARTS]; /* NRG_MISSING */
    int64_t compute_ns;
};

struct trtexec {
    struct nrg_layer_import *im;
    struct part *layers;
    size_t n_layers, cap_layers;
    struct inference *inferences;
    size_t n_inferences, cap_inferences;
    uint64_t bad;
    double sum_ms;
};

static bool in_list(const struct nrg_layer_head *head)
{
    return nrg_layer_head_is(head, 0, NRG_JSON_ARRAY) &&
           nrg_layer_head_is(head, 1, NRG_JSON_OBJECT);
}

static bool is_profile(const struct nrg_layer_head *head)
{
    bool count = nrg_layer_head_is(head, 2, NRG_JSON_KEY) && !strcmp(head->tokens[2].text, "count");
    return in_list(head) &&
           (count || (nrg_layer_head_has(head, "averageMs") && nrg_layer_head_has(head, "timeMs")));
}

static bool is_times(const struct nrg_layer_head *head)
{
    return in_list(head) && nrg_layer_head_has(head, "startComputeMs");
}

/* The value of a key as a double; NAN for other types. */
static int next_double(struct nrg_json_stream *s, double *value, struct nrg_error *err)
{
    *value = NAN;
    int token = nrg_json_next(s, err);
    if (token == NRG_JSON_NUMBER)
        nrg_json_double(s, value);
    else if (token == NRG_JSON_OBJECT || token == NRG_JSON_ARRAY)
        return nrg_json_skip_rest(s, err);
    return token < 0 ? token : 0;
}

static int next_ms(struct nrg_json_stream *s, int64_t *ns, struct nrg_error *err)
{
    double ignored;
    *ns = NRG_MISSING;
    int rc = next_double(s, &ignored, err);
    if (!rc && isfinite(ignored) && nrg_json_scaled(s, 6, ns))
        *ns = NRG_MISSING;
    return rc;
}

static int read_layer(struct trtexec *t, struct nrg_error *err)
{
    struct nrg_json_stream *s = &t->im->json;
    struct part part = {0, NAN};
    double value;
    int token, rc = 0;
    while (!rc && (token = nrg_json_next(s, err)) == NRG_JSON_KEY) {
        bool name = nrg_json_is(s, "name"), average = nrg_json_is(s, "averageMs");
        if (name && (token = nrg_json_next(s, err)) == NRG_JSON_STRING) {
            part.name = nrg_span_sink_name(t->im->sink, NRG_KIND_LAYER, s->text, s->len, "");
            if (part.name < 0)
                return nrg_layer_out_of_memory(t->im, err);
        } else if (name) {
            return token < 0 ? token : nrg_json_fail(s, err, "a name is not a text");
        } else {
            rc = next_double(s, &value, err);
            part.average_ms = average ? value : part.average_ms;
        }
    }
    if (rc || token < 0)
        return rc ? rc : token;
    if (!part.name) /* {"count": n} */
        return 0;
    if (!(part.average_ms >= 0 && part.average_ms < 1e9)) {
        t->bad++;
        return 0;
    }
    if (nrg_append(&t->layers, &t->n_layers, &t->cap_layers, &part, sizeof *t->layers))
        return nrg_layer_out_of_memory(t->im, err);
    t->sum_ms += part.average_ms;
    return 0;
}

static int read_inference(struct trtexec *t, struct nrg_json_stream *s, struct nrg_error *err)
{
    /* Names changed with TensorRT 8. */
    static const char *const names[2][2 * PARTS] = {
        {"startH2dMs", "endH2dMs", "startComputeMs", "endComputeMs", "startD2hMs", "endD2hMs"},
        {"startInMs", "endInMs", "startComputeMs", "endComputeMs", "startOutMs", "endOutMs"}};
    struct inference inference = {.compute_ns = NRG_MISSING};
    int64_t *into[2 * PARTS], ignored = 0;
    int token, rc = 0;
    for (size_t i = 0; i < 2 * PARTS; i++) {
        into[i] = i % 2 ? &inference.end_ns[i / 2] : &inference.begin_ns[i / 2];
        *into[i] = NRG_MISSING;
    }
    while (!rc && (token = nrg_json_next(s, err)) == NRG_JSON_KEY) {
        int64_t *target = nrg_json_is(s, "computeMs") ? &inference.compute_ns : &ignored;
        for (size_t i = 0; i < 2 * PARTS; i++)
            if (nrg_json_is(s, names[0][i]) || nrg_json_is(s, names[1][i]))
                target = into[i];
        rc = next_ms(s, target, err);
    }
    if (rc || token < 0)
        return rc ? rc : token;
    if (inference.begin_ns[COMPUTE] == NRG_MISSING ||
        inference.end_ns[COMPUTE] < inference.begin_ns[COMPUTE]) {
        t->bad++;
        return 0;
    }
    rc = nrg_append(&t->inferences, &t->n_inferences, &t->cap_inferences, &inference,
                    sizeof *t->inferences);
    return rc ? nrg_layer_out_of_memory(t->im, err) : 0;
}

static int read_list(struct trtexec *t, struct nrg_json_stream *s, bool times,
                     struct nrg_error *err)
{
    int token = nrg_json_next(s, err), rc = 0;
    if (token != NRG_JSON_ARRAY)
        return token < 0 ? token : nrg_json_fail(s, err, "is not a list");
    while (!rc && (token = nrg_json_next(s, err)) == NRG_JSON_OBJECT) {
        nrg_layer_tick(t->im);
        rc = times ? read_inference(t, s, err) : read_layer(t, err);
    }
    if (rc || token < 0)
        return rc ? rc : token;
    if (token != NRG_JSON_ARRAY_END)
        return nrg_json_fail(s, err, "the list holds something other than objects");
    token = nrg_json_next(s, err);
    return token < 0 ? token : 0;
}

static int read_times_file(struct trtexec *t, const char *path, struct nrg_error *err)
{
    struct nrg_input input;
    struct nrg_json_stream s = {0};
    int rc = nrg_input_open(&input, path, err);
    if (rc)
        return rc;
    rc = nrg_json_init(&s, input.in, path, 0);
    rc = rc ? nrg_layer_out_of_memory(t->im, err) : read_list(t, &s, true, err);
    if (!rc && !t->n_inferences)
        rc = nrg_fail(err, -ENODATA, path, "holds no inference (startComputeMs, endComputeMs)");
    nrg_json_release(&s);
    nrg_input_close(&input);
    return rc;
}

static int add_span(struct trtexec *t, int64_t track, int64_t name, size_t cycle, int64_t begin_ns,
                    int64_t end_ns, int64_t duration_ns)
{
    const struct nrg_sink_span span = {.begin_ns = begin_ns,
                                       .end_ns = end_ns,
                                       .track = track,
                                       .name = name,
                                       .number = (int64_t)cycle,
                                       .path = NRG_MISSING,
                                       .duration_ns = duration_ns};
    int rc = nrg_layer_span(t->im, &span, &t->bad);
    return rc < 0 ? rc : 0;
}

/* A cycle and its layers, in proportion to their mean run times. */
static int lay_cycle(struct trtexec *t, int64_t track, size_t cycle, int64_t begin_ns,
                     int64_t end_ns, int64_t duration_ns)
{
    int64_t name = nrg_span_sink_name(t->im->sink, NRG_KIND_CYCLE, "cycle", 5, "");
    int64_t at_ns = begin_ns;
    double so_far = 0;
    int rc = add_span(t, track, name, cycle, begin_ns, end_ns, duration_ns);
    for (size_t i = 0; !rc && i < t->n_layers; i++) {
        so_far += t->layers[i].average_ms;
        double share = t->sum_ms > 0 ? so_far / t->sum_ms : 0;
        int64_t next_ns = begin_ns + llround(share * (double)(end_ns - begin_ns));
        rc = add_span(t, track, t->layers[i].name, cycle, at_ns, next_ns,
                      llround(t->layers[i].average_ms * 1e6));
        at_ns = next_ns;
    }
    return rc;
}

static int lay_inferences(struct trtexec *t)
{
    static const char *const labels[] = {"copies to the GPU", "inferences", "copies from the GPU"};
    static const char *const copies[] = {"copy to the GPU", NULL, "copy from the GPU"};
    int64_t tracks[PARTS] = {0, nrg_layer_track(t->im, labels[COMPUTE]), 0}, name;
    int rc = 0;
    for (size_t i = 0; !rc && i < t->n_inferences; i++) {
        const struct inference *f = &t->inferences[i];
        rc = lay_cycle(t, tracks[COMPUTE], i + 1, f->begin_ns[COMPUTE], f->end_ns[COMPUTE],
                       f->compute_ns == NRG_MISSING ? 0 : f->compute_ns);
        for (size_t k = 0; !rc && k < PARTS; k++) {
            if (!copies[k] || f->begin_ns[k] == NRG_MISSING || f->end_ns[k] <= f->begin_ns[k])
                continue;
            tracks[k] = tracks[k] ? tracks[k] : nrg_layer_track(t->im, labels[k]);
            name = nrg_span_sink_name(t->im->sink, NRG_KIND_LAYER, copies[k], strlen(copies[k]),
                                      "copy");
            rc = add_span(t, tracks[k], name, i + 1, f->begin_ns[k], f->end_ns[k], 0);
        }
    }
    t->im->file->cycles = t->n_inferences;
    return rc;
}

static void add_notes(struct trtexec *t, bool profile)
{
    struct nrg_layer_import *im = t->im;
    nrg_layer_count(im, t->bad, "entry", "entries", "without usable times left out");
    if (profile && !t->n_inferences)
        nrg_layer_note(im, "a profile has no times: one cycle of mean run times, laid end to end "
                           "from 0 (--times FILE: as many as trtexec timed)");
    else if (profile)
        nrg_layer_note(im,
                       "layers are laid into each of %zu inferences in proportion to their mean "
                       "run times: their order and shares are the profile's, not measured one by "
                       "one",
                       t->n_inferences);
}

static int read_export(struct nrg_layer_import *im, bool times, struct nrg_error *err)
{
    struct trtexec t = {.im = im};
    int rc = read_list(&t, &im->json, times, err);
    if (!rc && !times && im->options->times)
        rc = read_times_file(&t, im->options->times, err);
    if (!rc && (times || (t.n_layers && t.n_inferences))) {
        rc = lay_inferences(&t);
    } else if (!rc && t.n_layers) {
        rc = lay_cycle(&t, nrg_layer_track(im, "layers"), 1, 0, llround(t.sum_ms * 1e6), 0);
        im->file->cycles = 1;
    }
    add_notes(&t, !times);
    free(t.layers);
    free(t.inferences);
    return rc == -ENOMEM ? nrg_layer_out_of_memory(im, err) : rc;
}

static int read_profile(struct nrg_layer_import *im, struct nrg_error *err)
{
    return read_export(im, false, err);
}

static int read_times(struct nrg_layer_import *im, struct nrg_error *err)
{
    return read_export(im, true, err);
}

const struct nrg_layer_format nrg_layers_trtexec_profile = {
    .name = "trtexec-profile",
    .match = is_profile,
    .read = read_profile,
};

const struct nrg_layer_format nrg_layers_trtexec_times = {
    .name = "trtexec-times",
    .match = is_times,
    .read = read_times,
};
