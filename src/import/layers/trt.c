/*
 * Logs of TensorRT's IProfiler as the edge-vision-power-estimation project keeps them: an object
 * of layers, each with a list of its runs, one per cycle,
 *
 *     {"layer": [[0.17475, "20241030-15:06:45.910735"], ...], ...}    ms, and when it was reported
 *     {"layer": [0.0389, ...], ...}                                   ms only
 *
 * The time stamp is that of the callback, which TensorRT calls in a burst after the inference. The
 * window of a run is [stamp - ms, stamp] all the same: the project itself reads them so, and its
 * numbers must come out again. Both orders of the pair are accepted, because the project's
 * documents show one and its files have the other.
 *
 * Refuses runs of another form, and files in which only some runs have time stamps.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "import/internal.h"
#include "import/layers/log.h"
#include "sensors/channel.h"

struct trt_run {
    double ms;
    int64_t stamp_ns; /* NRG_MISSING */
};

static bool is_trt_log(const struct nrg_layer_head *head)
{
    if (!nrg_layer_head_is(head, 0, NRG_JSON_OBJECT) || !nrg_layer_head_is(head, 1, NRG_JSON_KEY) ||
        !nrg_layer_head_is(head, 2, NRG_JSON_ARRAY))
        return false;
    return nrg_layer_head_is(head, 3, NRG_JSON_ARRAY) ||
           nrg_layer_head_is(head, 3, NRG_JSON_NUMBER) ||
           nrg_layer_head_is(head, 3, NRG_JSON_ARRAY_END) ||
           nrg_layer_head_is(head, 3, NRG_JSON_NULL);
}

/* The current token: a number or a date. */
static int take_part(struct nrg_layer_import *im, int token, struct trt_run *run,
                     struct nrg_error *err)
{
    const struct nrg_json_stream *s = &im->json;
    if (token == NRG_JSON_NUMBER && !nrg_json_double(s, &run->ms))
        return 0;
    if (token == NRG_JSON_NULL)
        return 0;
    if (token == NRG_JSON_STRING && !nrg_import_compact_time(s->text, s->len, &run->stamp_ns)) {
        run->stamp_ns -= im->options->zone_offset_ns;
        return 0;
    }
    return nrg_json_fail(s, err,
                         "a run is neither milliseconds nor [milliseconds, "
                         "\"YYYYmmdd-HH:MM:SS.ffffff\"]");
}

static int read_pair(struct nrg_layer_import *im, struct trt_run *run, struct nrg_error *err)
{
    int rc = 0, token = 0, parts = 0;
    while (!rc && (token = nrg_json_next(&im->json, err)) > 0 && token != NRG_JSON_ARRAY_END) {
        if (++parts > 2)
            return nrg_json_fail(&im->json, err, "a run has more than two values");
        rc = take_part(im, token, run, err);
    }
    if (!rc && token < 0)
        rc = token;
    if (!rc && (parts != 2 || run->stamp_ns == NRG_MISSING))
        return nrg_json_fail(&im->json, err, "a run has no time stamp");
    return rc;
}

static int add_run(struct nrg_layer_log *log, size_t cycle, int64_t layer,
                   const struct trt_run *run)
{
    bool timed = run->stamp_ns != NRG_MISSING, good = run->ms >= 0 && run->ms < 1e12;
    int64_t begin_ns = timed && good ? run->stamp_ns - nrg_layer_window_ns(run->ms) : run->stamp_ns;
    return nrg_layer_log_run(log, cycle, layer, begin_ns, run->stamp_ns, run->ms);
}

/* The runs of one layer; *timed: 1 with time stamps, 0 without, -1 not known yet. */
static int read_runs(struct nrg_layer_log *log, int64_t layer, int *timed, size_t *n,
                     struct nrg_error *err)
{
    struct nrg_layer_import *im = log->im;
    int rc = 0, token;
    for (*n = 0; !rc; ++*n) {
        struct trt_run run = {.ms = NAN, .stamp_ns = NRG_MISSING};
        token = nrg_json_next(&im->json, err);
        nrg_layer_tick(im);
        if (token == NRG_JSON_ARRAY_END)
            return 0;
        if (token <= 0)
            return token;
        rc = token == NRG_JSON_ARRAY ? read_pair(im, &run, err) : take_part(im, token, &run, err);
        int has = run.stamp_ns != NRG_MISSING;
        if (!rc && *timed >= 0 && *timed != has)
            return nrg_json_fail(&im->json, err, "some runs have a time stamp and some have none");
        *timed = has;
        if (!rc && add_run(log, *n, layer, &run))
            return nrg_layer_out_of_memory(im, err);
    }
    return rc;
}

static int read_layers(struct nrg_layer_log *log, int *timed, struct nrg_error *err)
{
    struct nrg_json_stream *s = &log->im->json;
    size_t n, first = SIZE_MAX;
    int token, rc = 0;
    while (!rc && (token = nrg_json_next(s, err)) == NRG_JSON_KEY) {
        int64_t layer = nrg_layer_log_name(log, s->text, s->len);
        if (layer < 0)
            return nrg_layer_out_of_memory(log->im, err);
        if ((token = nrg_json_next(s, err)) != NRG_JSON_ARRAY)
            return token < 0 ? token : nrg_json_fail(s, err, "a layer has no list of runs");
        rc = read_runs(log, layer, timed, &n, err);
        log->uneven += first != SIZE_MAX && n != first;
        first = first == SIZE_MAX ? n : first;
    }
    return rc ? rc : token < 0 ? token : 0;
}

static int read_log(struct nrg_layer_import *im, struct nrg_error *err)
{
    struct nrg_layer_log log;
    int timed = -1;
    if (nrg_layer_log_init(&log, im))
        return nrg_layer_out_of_memory(im, err);
    log.burst = true;
    int rc = nrg_json_next(&im->json, err);
    rc = rc < 0 ? rc : read_layers(&log, &timed, err);
    if (!rc && (rc = nrg_json_next(&im->json, err)) > 0)
        rc = nrg_json_fail(&im->json, err, "something follows the end");
    if (!rc)
        rc = nrg_layer_log_finish(&log, timed > 0, err);
    if (!rc && timed > 0)
        nrg_layer_note(im, "time stamps of TensorRT's profiler are taken after the inference: "
                           "windows may be milliseconds off");
    nrg_layer_log_release(&log);
    return rc;
}

const struct nrg_layer_format nrg_layers_trt = {
    .name = "tensorrt-profiler",
    .match = is_trt_log,
    .read = read_log,
};
