/* See forecast.h. */
#include "predict/llm/forecast.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

/* Operators that a layer starts: seven products, attention, two norms, an activation, two sums. */
#define LAYER_CALLS 13
/* Half to twice: other code than that which was calibrated may be better or worse. */
#define OPERATORS_LN 0.6931471805599453

int nrg_llm_law_of(struct nrg_llm_law *law, const struct nrg_profile *p, struct nrg_error *err)
{
    bool known;
    *law = p->llm;
    if (p->is_llm)
        return 0;
    if (p->is_layer || p->physical.features == NRG_SET_ALL)
        return nrg_fail(err, -ENODATA, NULL,
                        "the profile knows neither language models nor matrix products: see nrg "
                        "train and nrg calibrate");
    const struct nrg_group *g = nrg_physical_group(&p->physical, "aten::linear", true, &known);
    *law = (struct nrg_llm_law){.rows = g->rows, .seen = (1u << NRG_LLM_TERMS) - 1};
    law->joules[NRG_LLM_LAUNCHES] = LAYER_CALLS * g->joules[NRG_PER_CALL];
    law->joules[NRG_LLM_DENSE_BYTES] = law->joules[NRG_LLM_EXPERT_BYTES] =
        law->joules[NRG_LLM_CACHE_BYTES] = g->joules[NRG_PER_BYTE];
    law->joules[NRG_LLM_MACS] = law->joules[NRG_LLM_PROMPT_MACS] = g->joules[NRG_PER_MAC];
    law->joules[NRG_LLM_ACTIVATION_BYTES] = LAYER_CALLS * g->joules[NRG_PER_BYTE];
    for (int l = 0; l < NRG_LLM_LIMITS; l++)
        law->limits[l] = NRG_NO_RANGE;
    law->width = nrg_llm_width_even(fmax(isnan(g->q) ? 0 : g->q, OPERATORS_LN));
    law->time_q = law->time_error = NAN;
    law->expected_error = NAN;
    return 0;
}

static void add_reason(struct nrg_llm_forecast *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add_reason(struct nrg_llm_forecast *f, const char *format, ...)
{
    va_list args;
    if (f->n_reasons == NRG_LLM_REASONS)
        return;
    va_start(args, format);
    vsnprintf(f->reasons[f->n_reasons], sizeof f->reasons[0], format, args);
    va_end(args);
    f->n_reasons++;
}

static void find_reasons(struct nrg_llm_forecast *f, const struct nrg_llm_law *law,
                         const struct nrg_llm_point *point, const struct nrg_profile *profile)
{
    static const char *const what[NRG_LLM_LIMITS] = {"a batch", "a number of GPUs", "a context",
                                                     "a model (MACs per token)"};
    const struct nrg_llm_estimate *e = &f->estimate;
    for (int l = 0; l < NRG_LLM_LIMITS; l++)
        if (e->beyond[l] > 0)
            add_reason(f, "%s of %.4g is outside of what was measured (%.4g to %.4g)", what[l],
                       point->limits[l], law->limits[l].low, law->limits[l].high);
    if (e->stand_in)
        add_reason(f, "no model with experts was measured: theirs are priced as other weights");
    if (!profile->is_llm)
        add_reason(f, "by prices of single operators: what a server does beside them is not in it");
    if (point->guessed)
        add_reason(f, "the architecture is made up from the number of parameters");
}

static struct nrg_llm_amount around(double value, double half)
{
    return (struct nrg_llm_amount){value, value * exp(-half), value * exp(half)};
}

static void set_energies(struct nrg_llm_forecast *f, const struct nrg_llm_load *load)
{
    const struct nrg_llm_estimate *e = &f->estimate;
    double times = load->output > 0 ? load->output : 1;
    double rest_j = load->output > 0 ? e->energy_j - e->prompt_j : NAN;
    double prompt_j = load->output > 0 ? times * e->prompt_j : e->energy_j;
    f->request_j = around(times * e->energy_j, e->half);
    f->input_token_j = around(load->prompt > 0 ? prompt_j / load->prompt : NAN, e->half);
    f->output_token_j = around(rest_j, e->half);
    f->tokens_per_j =
        around(load->output > 0 ? 1 / e->energy_j : load->prompt / e->energy_j, e->half);
}

static void set_times(struct nrg_llm_forecast *f, const struct nrg_llm_load *load)
{
    const struct nrg_llm_estimate *e = &f->estimate;
    double steps = load->output > 0 ? load->output : 1;
    f->step_s = (struct nrg_llm_amount){e->time_s * load->batch, e->time_low_s * load->batch,
                                        e->time_high_s * load->batch};
    f->request_s = (struct nrg_llm_amount){steps * f->step_s.value, steps * f->step_s.low,
                                           steps * f->step_s.high};
    f->tokens_per_s = (load->output > 0 ? 1 : load->prompt) / e->time_s;
    f->power_w = e->energy_j / e->time_s;
}

/* What the law says of the load: energies, times and why they may be off. */
static int set_prices(struct nrg_llm_forecast *f, const struct nrg_llm_config *c,
                      const struct nrg_llm_load *load, const struct nrg_llm_law *law,
                      const struct nrg_profile *profile, struct nrg_error *err)
{
    struct nrg_llm_point point = {
        .gpus = load->gpus, .guessed = c->guessed, .weight_bits = f->work.weight_bits};
    for (int t = 0; t < NRG_LLM_TERMS; t++)
        point.terms[t] = f->work.terms[t] / load->batch;
    point.limits[NRG_LLM_BATCH] = load->batch;
    point.limits[NRG_LLM_GPUS] = load->gpus;
    point.limits[NRG_LLM_CONTEXT] = load->prompt + load->output / 2;
    point.limits[NRG_LLM_TOKEN_MACS] = load->output > 0 ? f->work.token_macs : NAN;
    nrg_llm_law_estimate(law, &point, &f->estimate);
    if (!(f->estimate.energy_j > 0))
        return nrg_fail(err, -ENODATA, NULL, "the profile has no price for any work of this model");
    find_reasons(f, law, &point, profile);
    set_energies(f, load);
    set_times(f, load);
    return 0;
}

/* Of one GPU; NAN: not known. What a datasheet says of the profile's own GPU comes last. */
static double memory_of(const struct nrg_profile *profile, const struct nrg_llm_forecast_options *o)
{
    const struct nrg_gpu *known = o->gpu ? o->gpu : nrg_gpu_find(profile->device, NULL);
    if (o->memory_bytes > 0)
        return o->memory_bytes;
    if (!o->gpu && profile->memory_bytes > 0)
        return profile->memory_bytes;
    return known ? known->memory_bytes : NAN;
}

/* No load that can't run has a price. */
static void set_nothing(struct nrg_llm_forecast *f)
{
    const struct nrg_llm_amount none = {NAN, NAN, NAN};
    f->request_j = f->input_token_j = f->output_token_j = f->tokens_per_j = none;
    f->step_s = f->request_s = none;
    f->tokens_per_s = f->power_w = NAN;
}

int nrg_llm_forecast(struct nrg_llm_forecast *f, const struct nrg_llm_config *c,
                     const struct nrg_llm_load *load, const struct nrg_profile *profile,
                     const struct nrg_llm_forecast_options *o, struct nrg_error *err)
{
    struct nrg_llm_law law;
    *f = (struct nrg_llm_forecast){0};
    int rc = nrg_llm_law_of(&law, profile, err);
    if (!rc && c->encoder && load->output > 0)
        rc = nrg_fail(err, -EINVAL, NULL, "an encoder makes no output tokens: leave --output out");
    if (!rc)
        rc = nrg_llm_work_make(&f->work, c, load, err);
    if (!rc && o->gpu)
        rc = nrg_llm_law_transfer(&law, profile->device, o->gpu, f->work.weight_bits, err);
    if (rc)
        return rc;
    nrg_llm_shape_make(&f->shape, c);
    f->memory_bytes = memory_of(profile, o);
    f->fits = isnan(f->memory_bytes) ? -1 : f->work.gpu_bytes <= f->memory_bytes;
    f->priced = f->fits != 0 || o->force;
    if (!f->fits)
        nrg_llm_fit_find(&f->fit, c, load, f->memory_bytes);
    if (o->gpu)
        add_reason(f,
                   "carried over from %s to %s by bandwidth, FLOPs and power of datasheets: no "
                   "row was measured there",
                   profile->device, o->gpu->name);
    if (f->priced)
        return set_prices(f, c, load, &law, profile, err);
    set_nothing(f);
    return 0;
}
