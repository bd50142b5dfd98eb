/*
 * Recordings of text generation (nrg run --torch of transformers' generate(), docs/torch.md) as
 * measurements of a language model: all calls of a recording are one row, with the joules of
 * generate() over the tokens made. What the model is, the recording does not say: --config does.
 * Requests of one call are a batch; prompts and outputs count as their mean.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "attribute/module_path.h"
#include "predict/dataset/internal.h"
#include "predict/dataset/llm_row.h"

static const struct nrg_unit_use *find_counted(const struct nrg_reading *r, const char *name)
{
    return nrg_attribution_counted(&r->a, name, NRG_GENERATE, NRG_KIND_SPAN);
}

bool nrg_reading_is_generation(const struct nrg_reading *r)
{
    return r->options->configs && r->options->configs[0] && find_counted(r, NRG_UNIT_REQUESTS) &&
           find_counted(r, NRG_UNIT_GENERATED);
}

/* Calls of generate(), the class of its model, and how certain the sources are. */
struct calls {
    double n, time_s;
    const char *model;
    enum nrg_provenance provenance;
    const char *unusable;
};

static struct calls find_calls(const struct nrg_reading *r)
{
    struct calls c = {.model = "", .provenance = r->a.provenance};
    for (size_t i = 0; i < r->a.n_rows; i++) {
        const struct nrg_attribution_row *row = &r->a.rows[i];
        if (strcmp(row->name, NRG_GENERATE) != 0 || !nrg_row_is(row, NRG_KIND_SPAN))
            continue;
        c.n += (double)row->calls;
        c.time_s += row->time_s;
        c.model = row->detail;
        c.provenance = row->provenance > c.provenance ? row->provenance : c.provenance;
        if (!c.unusable)
            c.unusable = nrg_reading_unusable(row);
    }
    return c;
}

int nrg_reading_generation(struct nrg_reading *r, const char *device)
{
    const struct nrg_unit_use *requests = find_counted(r, NRG_UNIT_REQUESTS);
    const struct nrg_unit_use *made = find_counted(r, NRG_UNIT_GENERATED);
    const struct nrg_unit_use *input =
        nrg_attribution_counted(&r->a, NRG_UNIT_INPUT, NRG_PREFILL, NRG_KIND_PHASE);
    struct calls calls = find_calls(r);
    struct nrg_llm_config config;
    const char *file = nrg_llm_row_config(r->options, calls.model);
    if (!file)
        return nrg_fail(r->err, -ENODATA, r->path,
                        "no --config is for its model '%s': what it is made of is not known",
                        calls.model);
    if (calls.unusable || !(calls.n > 0) || !(made->energy_j > 0))
        return nrg_reading_note(r,
                                calls.unusable ? calls.unusable : "no energy above idle: left out");
    int rc = nrg_llm_config_read(&config, file, r->err);
    if (rc)
        return rc;
    const struct nrg_llm_row row = {
        .device = device,
        .model = *calls.model ? calls.model : config.family,
        .node = r->path,
        .kind = "generate",
        .provenance = nrg_provenance_name(calls.provenance),
        .energy_j = made->energy_j / made->amount,
        .time_s = calls.time_s > 0 ? calls.time_s / made->amount : NAN,
        .params = NAN,
        .repeats = made->amount,
        .load = {.batch = requests->amount / calls.n,
                 .prompt = input ? input->amount / requests->amount : 0,
                 .output = made->amount / requests->amount,
                 .gpus = 1,
                 .tp = 1},
    };
    rc = nrg_llm_row_add(r->set, &config, &row);
    if (!rc)
        rc = nrg_dataset_counted_by(r->set, "nrg", r->path, r->err);
    return rc == -ENOMEM ? nrg_reading_no_memory(r) : rc;
}
