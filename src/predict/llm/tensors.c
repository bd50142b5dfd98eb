/*
 * A model by names and shapes of its tensors, for a safetensors file without a config.json. The
 * usual names of transformers give layers, widths and the size of the cache. How many heads share
 * the query's width makes no difference to any count. How many experts a token uses, and windows,
 * are not in the shapes: a model with experts is refused, and the window is taken as none.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "predict/llm/file.h"
#include "predict/llm/shape.h"

#define MOST_APART 0.05 /* norms and biases, which names leave open, are less */

void nrg_llm_count_stored(struct nrg_llm_config *c, const struct nrg_model *model)
{
    double params = 0, bytes = 0;
    for (size_t i = 0; i < model->n_params; i++) {
        const struct nrg_param *p = &model->params[i];
        int64_t numel = nrg_type_numel(p->type);
        if (p->is_buffer)
            continue;
        if (numel < 0 || p->bytes < 0) /* not all are known: say nothing of the whole */
            return;
        params += (double)numel;
        bytes += (double)p->bytes;
    }
    c->stored_params = params;
    c->stored_bytes = bytes;
}

/* Dimension `at` of a tensor; 0: it has none. */
static double dim_of(const struct nrg_param *p, int at)
{
    return p->type && p->type->rank > at && p->type->dims[at] > 0 ? (double)p->type->dims[at] : 0;
}

/* The number after ".layers." or ".h.", plus one; 0: no such name. */
static double layer_of(const char *name)
{
    static const char *const words[] = {"layers.", "h.", "layer."};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const char *at = strstr(name, words[i]);
        if (at && (at == name || at[-1] == '.') && at[strlen(words[i])] >= '0' &&
            at[strlen(words[i])] <= '9')
            return strtod(at + strlen(words[i]), NULL) + 1;
    }
    return 0;
}

static void take_tensor(struct nrg_llm_config *c, const struct nrg_param *p, bool *has_experts)
{
    const char *name = p->name;
    double layer = layer_of(name);
    c->layers = layer > c->layers ? layer : c->layers;
    *has_experts |= strstr(name, ".experts.") != NULL;
    if (nrg_ends_with(name, "embed_tokens.weight")) {
        c->vocab = dim_of(p, 0);
        c->hidden = dim_of(p, 1);
    } else if (nrg_ends_with(name, "q_proj.weight")) {
        c->heads = dim_of(p, 0);
    } else if (nrg_ends_with(name, "k_proj.weight")) {
        c->kv_heads = dim_of(p, 0);
    } else if (nrg_ends_with(name, "up_proj.weight")) {
        c->intermediate = dim_of(p, 0);
    } else if (nrg_ends_with(name, "gate_proj.weight")) {
        c->mlp_matrices = 3;
    } else if (!strcmp(name, "lm_head.weight")) {
        c->tied = false;
    }
}

/* Heads of 64 or 128 where these divide both widths, else one wide one. */
static void cut_heads(struct nrg_llm_config *c)
{
    int64_t q = (int64_t)c->heads, kv = (int64_t)c->kv_heads;
    int64_t size = q % 128 == 0 && kv % 128 == 0 ? 128 : q % 64 == 0 && kv % 64 == 0 ? 64 : kv;
    if (size < 1)
        return;
    c->head_dim = (double)size;
    c->heads = (double)(q / size);
    c->kv_heads = (double)(kv / size);
}

/* Tensors of other names would be left out of the work: layers that are not of attention… */
static int compare_stored(const struct nrg_llm_config *c, const char *name, struct nrg_error *err)
{
    struct nrg_llm_shape shape;
    nrg_llm_shape_make(&shape, c);
    if (!(c->stored_params > 0) || fabs(shape.params / c->stored_params - 1) <= MOST_APART)
        return 0;
    return nrg_fail(err, -ENOTSUP, name,
                    "has %.4g parameters, of which its tensors of usual names explain %.4g: put "
                    "its config.json beside it",
                    c->stored_params, shape.params);
}

int nrg_llm_config_tensors(struct nrg_llm_config *c, const struct nrg_model *model,
                           const char *name, struct nrg_error *err)
{
    bool has_experts = false;
    *c = (struct nrg_llm_config){.mlp_matrices = 2,
                                 .norm_params = 1,
                                 .norms_per_layer = 2,
                                 .tied = true,
                                 .dtype = NRG_LLM_BF16};
    nrg_copy(c->family, sizeof c->family, "by its tensors");
    for (size_t i = 0; i < model->n_params; i++)
        take_tensor(c, &model->params[i], &has_experts);
    if (has_experts)
        return nrg_fail(
            err, -ENOTSUP, name,
            "does not say how many experts a token uses: put its config.json beside it");
    if (!(c->hidden > 0 && c->heads > 0 && c->kv_heads > 0 && c->intermediate > 0))
        return nrg_fail(err, -ENOTSUP, name,
                        "has no tensors of a language model's usual names: put its config.json "
                        "beside it");
    cut_heads(c);
    c->attention_layers = c->dense_layers = c->layers;
    nrg_llm_count_stored(c, model);
    int rc = nrg_llm_config_check(c, name, err);
    return rc ? rc : compare_stored(c, name, err);
}
