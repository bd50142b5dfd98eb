/*
 * Layer latencies of the edge-vision-power-estimation project's PyTorch phase
 * (MODEL_layerwise_latency.json): a list of cycles, each an object of layers,
 *
 *     [{"conv1": {"elapsed_time": 0.5506, "start_time": 1738071506.0033267}, ...}, ...]
 *
 * ms and seconds since 1970. Starts are rounded to the microsecond, as Python rounds them where
 * that project compares them with its power log. Refuses documents of another structure.
 */
#include <errno.h>
#include <math.h>

#include "import/layers/log.h"
#include "sensors/channel.h"

static bool is_torch_log(const struct nrg_layer_head *head)
{
    return nrg_layer_head_is(head, 0, NRG_JSON_ARRAY) &&
           nrg_layer_head_is(head, 1, NRG_JSON_OBJECT) &&
           (nrg_layer_head_has(head, "elapsed_time") || nrg_layer_head_has(head, "start_time") ||
            nrg_layer_head_is(head, 2, NRG_JSON_OBJECT_END));
}

static int64_t date_ns(double seconds)
{
    double whole, part = modf(seconds, &whole);
    return ((int64_t)whole * 1000000 + (int64_t)rint(part * 1e6)) * 1000;
}

static int read_run(struct nrg_layer_log *log, size_t cycle, int64_t layer, struct nrg_error *err)
{
    struct nrg_json_stream *s = &log->im->json;
    double elapsed_ms = NAN, start_s = NAN;
    int token, rc = 0;
    while (!rc && (token = nrg_json_next(s, err)) == NRG_JSON_KEY) {
        double *into = nrg_json_is(s, "elapsed_time") ? &elapsed_ms
                       : nrg_json_is(s, "start_time") ? &start_s
                                                      : NULL;
        if (!into) {
            rc = nrg_json_skip_value(s, err);
            continue;
        }
        if ((token = nrg_json_next(s, err)) < 0)
            return token;
        if (token != NRG_JSON_NULL && (token != NRG_JSON_NUMBER || nrg_json_double(s, into)))
            return nrg_json_fail(s, err, "a time is not a number");
    }
    if (rc || token < 0)
        return rc ? rc : token;
    bool good = start_s > 0 && start_s < 4e9 && elapsed_ms >= 0 && elapsed_ms < 1e12;
    int64_t begin_ns = good ? date_ns(start_s) : 0;
    int64_t end_ns = good ? begin_ns + nrg_layer_window_ns(elapsed_ms) : 0;
    rc = nrg_layer_log_run(log, cycle, layer, begin_ns, end_ns, good ? elapsed_ms : NAN);
    return rc ? nrg_layer_out_of_memory(log->im, err) : 0;
}

static int read_cycle(struct nrg_layer_log *log, size_t cycle, struct nrg_error *err)
{
    struct nrg_json_stream *s = &log->im->json;
    int token, rc = 0;
    while (!rc && (token = nrg_json_next(s, err)) == NRG_JSON_KEY) {
        nrg_layer_tick(log->im);
        int64_t layer = nrg_layer_log_name(log, s->text, s->len);
        if (layer < 0)
            return nrg_layer_out_of_memory(log->im, err);
        if ((token = nrg_json_next(s, err)) != NRG_JSON_OBJECT)
            return token < 0 ? token
                             : nrg_json_fail(s, err,
                                             "a layer is not {\"elapsed_time\": ms, "
                                             "\"start_time\": s}");
        rc = read_run(log, cycle, layer, err);
    }
    return rc ? rc : token < 0 ? token : 0;
}

static int read_cycles(struct nrg_layer_log *log, struct nrg_error *err)
{
    struct nrg_json_stream *s = &log->im->json;
    int token = nrg_json_next(s, err), rc = 0;
    for (size_t cycle = 0; !rc && (token = nrg_json_next(s, err)) == NRG_JSON_OBJECT; cycle++)
        rc = read_cycle(log, cycle, err);
    if (rc || token < 0)
        return rc ? rc : token;
    if (token != NRG_JSON_ARRAY_END)
        return nrg_json_fail(s, err, "a cycle is not an object of layers");
    token = nrg_json_next(s, err);
    return token < 0 ? token : 0;
}

static int read_log(struct nrg_layer_import *im, struct nrg_error *err)
{
    struct nrg_layer_log log;
    if (nrg_layer_log_init(&log, im))
        return nrg_layer_out_of_memory(im, err);
    int rc = read_cycles(&log, err);
    if (!rc)
        rc = nrg_layer_log_finish(&log, true, err);
    nrg_layer_log_release(&log);
    return rc;
}

const struct nrg_layer_format nrg_layers_torch_phase = {
    .name = "torch-layerwise",
    .match = is_torch_log,
    .read = read_log,
};
