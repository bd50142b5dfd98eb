/*
 * Recordings of a language model's server (nrg run --llm, nrg llm proxy, docs/llm.md) as
 * measurements: one row with the joules of the steady state over the output's tokens, the mean
 * number of sequences as the batch, and mean lengths. What the model is, --config says; on how many
 * GPUs it ran, --gpus, or else the GPUs whose energy was recorded.
 *
 * Energy is that of the GPUs where there are any, as in ML.ENERGY's rows; of a proxy it is that of
 * the time in which requests ran. Tokens of requests that failed cost as well and are divided by;
 * lengths are of answered requests.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "energy/cursor.h"
#include "energy/frame.h"
#include "llm/serving.h"
#include "llm/share.h"
#include "predict/dataset/internal.h"
#include "predict/dataset/llm_row.h"

/* What a row is made of. */
struct served {
    double energy_j, time_s, running, gpus;
    double all_output;               /* tokens that all of that made */
    double prompt, output, requests; /* of requests that were answered */
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
                         .all_output = s->output_tokens,
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

/* A time in which requests ran without a pause. */
struct busy {
    int64_t begin_ns, end_ns;
};

/* Those that failed without a token are neither load nor work: refused ones above all. */
static bool is_no_work(const struct nrg_relayed_request *q)
{
    return nrg_request_failed(q) && !q->understood;
}

/* All such times, and the sum of the requests' own; items are in order of their begin. */
static size_t busy_times(const struct nrg_relayed_requests *q, struct busy *busy, double *all_s)
{
    size_t n = 0;
    *all_s = 0;
    for (size_t i = 0; i < q->n; i++) {
        const struct nrg_relayed_request *item = &q->items[i];
        if (is_no_work(item))
            continue;
        *all_s += (double)(item->end_ns - item->begin_ns) * 1e-9;
        if (!n || item->begin_ns > busy[n - 1].end_ns)
            busy[n++] = (struct busy){item->begin_ns, item->end_ns};
        else if (item->end_ns > busy[n - 1].end_ns)
            busy[n - 1].end_ns = item->end_ns;
    }
    return n;
}

static double energy_of(const struct nrg_timeline *timeline, const struct busy *busy, size_t n)
{
    struct nrg_energy_cursor cursor;
    double energy_j = 0;
    for (size_t i = 0; timeline && i < n; i++) {
        nrg_energy_cursor_init(&cursor, timeline, busy[i].begin_ns, 0);
        energy_j += nrg_energy_cursor_at(&cursor, busy[i].end_ns).energy_j;
    }
    return energy_j;
}

/* Joules while requests ran: the GPUs' where there are any, else all. */
static int add_energy(struct served *out, const struct nrg_summary *sum,
                      struct nrg_recording *recording, const struct busy *busy, size_t n)
{
    struct nrg_frame frame;
    int rc = nrg_frame_init(&frame, recording);
    for (size_t d = 0; d < sum->n_domains; d++)
        out->gpus += sum->domains[d].in_total && is_gpu(sum->domains[d].channel->channel.name);
    for (size_t d = 0; !rc && d < sum->n_domains; d++) {
        const struct nrg_domain *domain = &sum->domains[d];
        size_t channel = (size_t)(domain->channel - frame.channels);
        if (domain->in_total && (!(out->gpus > 0) || is_gpu(domain->channel->channel.name)))
            out->energy_j += energy_of(nrg_frame_timeline(&frame, channel), busy, n);
    }
    nrg_frame_release(&frame);
    return rc;
}

/* Tokens of all requests; lengths are of those that were answered. Returns how many were, of which
 * no token is known. */
static size_t add_requests(struct served *out, const struct nrg_relayed_requests *requests)
{
    size_t unknown = 0;
    for (size_t i = 0; i < requests->n; i++) {
        const struct nrg_relayed_request *q = &requests->items[i];
        double made = isnan(q->output_tokens) ? 0 : q->output_tokens;
        unknown += !q->understood && !is_no_work(q);
        out->all_output += made;
        if (nrg_request_failed(q))
            continue;
        out->output += made;
        out->prompt += q->input > 0 ? (double)(q->input - (q->cached > 0 ? q->cached : 0)) : 0;
        out->requests++;
    }
    return unknown;
}

static int from_share(const struct nrg_reading *r, const struct nrg_llm_share *share,
                      struct served *out)
{
    struct busy *busy = nrg_calloc(share->requests.n + 1, sizeof *busy);
    double all_s;
    *out = (struct served){.estimated = share->estimated > 0};
    size_t unknown = add_requests(out, &share->requests);
    if (!busy)
        return nrg_reading_no_memory(r);
    size_t n = busy_times(&share->requests, busy, &all_s);
    for (size_t i = 0; i < n; i++)
        out->time_s += (double)(busy[i].end_ns - busy[i].begin_ns) * 1e-9;
    out->running = out->time_s > 0 ? all_s / out->time_s : NAN;
    int rc = add_energy(out, &share->summary, r->recording, busy, n);
    free(busy);
    if (rc)
        return nrg_fail(r->err, rc, r->path, "can't be read");
    if (unknown)
        return nrg_fail(r->err, -ENODATA, r->path,
                        "%zu of its %zu requests have no counts of tokens: no row can be made",
                        unknown, share->requests.n);
    return 0;
}

static int from_requests(const struct nrg_reading *r, struct served *out)
{
    struct nrg_llm_share share;
    int rc = nrg_llm_share_make(&share, r->recording, r->err);
    if (rc)
        return rc;
    rc = from_share(r, &share, out);
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
                                    .energy_j = s->energy_j / s->all_output,
                                    .time_s = s->time_s / s->all_output,
                                    .params = shape.params,
                                    .repeats = s->all_output,
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
