/*
 * Recordings of a language model's server (nrg run --llm, nrg llm proxy, docs/llm.md) as
 * measurements: one row with the joules of the steady state over the output's tokens, the mean
 * number of sequences as the batch, and mean lengths. What the model is, --config says; on how many
 * GPUs it ran, --gpus, or else the GPUs whose energy was recorded.
 *
 * Of a server's own counts, energy is that of the GPUs where there are any, as in ML.ENERGY's rows;
 * of a proxy it is that of all requests and of the idle machine while any ran.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "llm/serving.h"
#include "llm/share.h"
#include "predict/dataset/internal.h"
#include "predict/dataset/llm_row.h"

/* What a row is made of. */
struct served {
    double energy_j, time_s, prompt, output, requests, running, gpus;
    bool estimated;
};

static bool is_gpu(const char *domain)
{
    return !strncmp(domain, "gpu-", 4);
}

static struct served sum_up(const struct nrg_serving *s)
{
    struct served out = {.time_s = s->end_s - s->begin_s,
                         .prompt = s->prompt_tokens,
                         .output = s->output_tokens,
                         .requests = s->requests,
                         .running = s->running,
                         .estimated = s->estimated};
    for (size_t d = 0; d < s->n_domains; d++)
        out.gpus += is_gpu(s->domains[d].name);
    for (size_t d = 0; d < s->n_domains; d++)
        if (!(out.gpus > 0) || is_gpu(s->domains[d].name))
            out.energy_j += s->domains[d].energy_j;
    return out;
}

/* The first run that is no baseline; NULL: there is none. */
static const struct nrg_run *find_run(const struct nrg_reading *r)
{
    size_t n;
    const struct nrg_run *runs = nrg_recording_runs(r->recording, &n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(runs[i].kind, "baseline") != 0)
            return &runs[i];
    return NULL;
}

static int from_counts(const struct nrg_reading *r, struct served *out, bool *found)
{
    const struct nrg_run *run = find_run(r);
    struct nrg_summary summary;
    struct nrg_serving serving;
    *found = false;
    int rc = run ? nrg_summary_make(&summary, r->recording, run, NRG_SPLIT_ACTIVE, r->err) : 0;
    if (rc || !run)
        return rc;
    rc = nrg_serving_make(&serving, r->recording, &summary, r->err);
    *found = !rc && serving.asked;
    if (*found && serving.why)
        rc = nrg_fail(r->err, -ENODATA, r->path, "has no row of its server: %s", serving.why);
    else if (*found)
        *out = sum_up(&serving);
    nrg_serving_release(&serving);
    nrg_summary_release(&summary);
    return rc;
}

/* Time in which any request ran, and the sum of their times; items are in order of their begin. */
static void busy_time(const struct nrg_relayed_requests *q, double *busy_s, double *all_s)
{
    int64_t until = INT64_MIN;
    *busy_s = *all_s = 0;
    for (size_t i = 0; i < q->n; i++) {
        const struct nrg_relayed_request *item = &q->items[i];
        int64_t from = item->begin_ns > until ? item->begin_ns : until;
        *all_s += (double)(item->end_ns - item->begin_ns) * 1e-9;
        *busy_s += item->end_ns > from ? (double)(item->end_ns - from) * 1e-9 : 0;
        until = item->end_ns > until ? item->end_ns : until;
    }
}

static int from_requests(const struct nrg_reading *r, struct served *out)
{
    struct nrg_llm_share share;
    double busy_s, all_s;
    int rc = nrg_llm_share_make(&share, r->recording, r->err);
    if (rc)
        return rc;
    *out = (struct served){.estimated = share.estimated > 0};
    for (size_t i = 0; i < share.requests.n; i++) {
        const struct nrg_relayed_request *q = &share.requests.items[i];
        out->output += isnan(q->output_tokens) ? 0 : q->output_tokens;
        out->prompt += q->input > 0 ? (double)(q->input - (q->cached > 0 ? q->cached : 0)) : 0;
        out->requests++;
    }
    busy_time(&share.requests, &busy_s, &all_s);
    out->time_s = busy_s;
    out->running = busy_s > 0 ? all_s / busy_s : NAN;
    out->energy_j = share.requests_j + (share.idle_w > 0 ? share.idle_w * busy_s : 0);
    if (share.unknown)
        rc = nrg_fail(r->err, -ENODATA, r->path,
                      "%zu of its %zu requests have no counts of tokens: no row can be made",
                      share.unknown, share.requests.n);
    nrg_llm_share_release(&share);
    return rc;
}

static int add_row(const struct nrg_reading *r, const struct served *s, const char *device)
{
    struct nrg_llm_config config;
    struct nrg_llm_shape shape;
    char model[80];
    const char *file = nrg_llm_row_config(r->options, "");
    int rc = nrg_llm_config_read(&config, file, r->err);
    if (rc)
        return rc;
    if (!(s->energy_j > 0) || !(s->output > 0) || !(s->requests > 0) || !(s->running > 0))
        return nrg_fail(r->err, -ENODATA, r->path,
                        "counts no output, no finished request or no energy: no row can be made");
    nrg_llm_shape_make(&shape, &config);
    snprintf(model, sizeof model, "%s-%.3gB", config.family, shape.params * 1e-9);
    double gpus = r->options->gpus > 0 ? r->options->gpus : fmax(s->gpus, 1);
    const struct nrg_llm_row row = {.device = device,
                                    .model = model,
                                    .node = r->path,
                                    .kind = "serving",
                                    .provenance = s->estimated ? "estimated" : "measured",
                                    .energy_j = s->energy_j / s->output,
                                    .time_s = s->time_s / s->output,
                                    .params = shape.params,
                                    .repeats = s->output,
                                    .load = {.batch = s->running,
                                             .prompt = s->prompt / s->requests,
                                             .output = s->output / s->requests,
                                             .gpus = gpus,
                                             .tp = nrg_llm_default_tp(&config, gpus)}};
    rc = nrg_llm_row_add(r->set, &config, &row);
    if (rc == -EINVAL)
        rc = nrg_fail(r->err, rc, r->path, "has a load that no server has");
    if (!rc)
        rc = nrg_dataset_counted_by(r->set, "nrg", r->path, r->err);
    return rc == -ENOMEM ? nrg_reading_no_memory(r) : rc;
}

bool nrg_reading_is_relay(const struct nrg_reading *r)
{
    for (size_t i = 0; i < r->a.n_rows; i++)
        if (!strcmp(r->a.rows[i].kind, NRG_REQUEST_KIND))
            return true;
    return false;
}

int nrg_reading_serving(struct nrg_reading *r, const char *device, bool relay, bool *found)
{
    struct served served;
    int rc = 0;
    *found = relay;
    if (!relay)
        rc = from_counts(r, &served, found);
    if (rc || !*found)
        return rc;
    if (!r->options->configs || !r->options->configs[0])
        return nrg_fail(r->err, -ENODATA, r->path,
                        "is of a language model's server: --config config.json says which model");
    if (relay)
        rc = from_requests(r, &served);
    return rc ? rc : add_row(r, &served, device);
}
