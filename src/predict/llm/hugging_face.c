/*
 * Hugging Face's config.json. Sizes have several names (hidden_size, n_embd, dim); models with
 * pictures or speech hold the language model as text_config or thinker_config, which is what is
 * read. What the file leaves out is filled in as transformers would (families.c).
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "predict/llm/families.h"
#include "predict/llm/parts.h"

void nrg_llm_refuse(struct nrg_llm_reading *r, const char *key, const char *why)
{
    if (!r->rc)
        r->rc = nrg_fail(r->err, -EBADMSG, r->name, "%s %s", key, why);
}

double nrg_llm_number(struct nrg_llm_reading *r, const char *key, double otherwise)
{
    const json_t *value = json_object_get(r->root, key);
    if (!value || json_is_null(value))
        return otherwise;
    double number = json_number_value(value);
    if (!json_is_number(value))
        nrg_llm_refuse(r, key, "is not a number");
    else if (!(number >= 0 && number <= 1e15))
        nrg_llm_refuse(r, key, number < 0 ? "is negative" : "is beyond any model's size");
    else
        return number;
    return otherwise;
}

/* The first of several names of one size; `otherwise`: none is there. */
static double size_if_any(struct nrg_llm_reading *r, const char *const *keys, double otherwise)
{
    for (const char *const *key = keys; *key; key++) {
        double size = nrg_llm_number(r, *key, NAN);
        if (!isnan(size))
            return size;
    }
    return otherwise;
}

double nrg_llm_size(struct nrg_llm_reading *r, const char *const *keys)
{
    double size = size_if_any(r, keys, NAN);
    if (!isnan(size))
        return size;
    nrg_llm_refuse(r, keys[0], "is missing: is this the config.json of a language model?");
    return 0;
}

bool nrg_llm_flag(struct nrg_llm_reading *r, const char *key, bool otherwise)
{
    const json_t *value = json_object_get(r->root, key);
    if (value && !json_is_boolean(value) && !json_is_null(value))
        nrg_llm_refuse(r, key, "is neither true nor false");
    return json_is_boolean(value) ? json_is_true(value) : otherwise;
}

double nrg_llm_step(struct nrg_llm_reading *r, const char *key, double otherwise)
{
    double step = nrg_llm_number(r, key, otherwise);
    if (step >= 1 && step == floor(step))
        return step;
    nrg_llm_refuse(r, key, "is not a whole number from 1 on");
    return otherwise;
}

/* A size that must be there, unless the family fills it in. */
static double size_or(struct nrg_llm_reading *r, const char *const *keys, double otherwise)
{
    return otherwise > 0 ? size_if_any(r, keys, otherwise) : nrg_llm_size(r, keys);
}

static void read_heads(struct nrg_llm_reading *r, const struct nrg_llm_family *family,
                       const double *inside)
{
    static const char *const heads[] = {
        "decoder_attention_heads", "num_attention_heads", "n_head", "n_heads", "num_heads", NULL};
    static const char *const head_dim[] = {"head_dim", "d_kv", NULL};
    struct nrg_llm_config *c = r->config;
    c->heads = size_or(r, heads, family->heads > 0 ? family->heads : inside[NRG_LLM_HEADS]);
    double kv_heads = family->kv_heads > 0 ? family->kv_heads : inside[NRG_LLM_KV_HEADS];
    c->kv_heads = nrg_llm_number(r, "num_key_value_heads", kv_heads > 0 ? kv_heads : c->heads);
    double each = c->heads > 0 ? c->hidden / c->heads : 0; /* not whole: refused by its range */
    each = family->head_dim > 0 ? family->head_dim : each;
    c->head_dim = size_if_any(r, head_dim, each);
}

static void read_sizes(struct nrg_llm_reading *r, const struct nrg_llm_family *family,
                       const double *inside)
{
    static const char *const hidden[] = {"hidden_size", "n_embd",  "n_embed",
                                         "dim",         "d_model", NULL};
    static const char *const layers[] = {"decoder_layers",
                                         "num_decoder_layers",
                                         "num_hidden_layers",
                                         "n_layer",
                                         "n_layers",
                                         "num_layers",
                                         NULL};
    static const char *const vocab[] = {"vocab_size", NULL};
    static const char *const wide[] = {
        "decoder_ffn_dim", "intermediate_size", "n_inner", "hidden_dim", "d_ff", NULL};
    struct nrg_llm_config *c = r->config;
    c->hidden = size_or(r, hidden, inside[NRG_LLM_HIDDEN]);
    size_t listed = json_array_size(json_object_get(r->root, "layers_block_type"));
    c->layers = listed ? (double)listed : size_or(r, layers, inside[NRG_LLM_LAYERS]);
    c->vocab = size_or(r, vocab, family->vocab > 0 ? family->vocab : inside[NRG_LLM_VOCAB]);
    c->intermediate = size_if_any(r, wide, inside[NRG_LLM_INTERMEDIATE]);
    if (!family->no_attention)
        read_heads(r, family, inside);
    c->attention_layers = c->dense_layers = c->layers;
    c->tied = nrg_llm_flag(r, "tie_word_embeddings", family->tied);
}

/* One kind of attention for each layer, or none at all. */
static void check_layer_types(struct nrg_llm_reading *r)
{
    static const char *const known[] = {"full_attention", "sliding_attention", "chunked_attention",
                                        "linear_attention"};
    double linear = 0;
    const json_t *types = json_object_get(r->root, "layer_types");
    size_t n = json_array_size(types);
    if (!json_is_array(types))
        return;
    if ((double)n != r->config->layers)
        nrg_llm_refuse(r, "layer_types", "has not as many entries as there are layers");
    for (size_t i = 0; i < n; i++) {
        const char *type = json_string_value(json_array_get(types, i));
        bool found = false;
        for (size_t k = 0; type && k < sizeof known / sizeof *known; k++)
            found |= !strcmp(type, known[k]);
        linear += type && !strcmp(type, "linear_attention");
        if (!found)
            nrg_llm_refuse(r, "layer_types", "names a kind of layer that is not known");
    }
    if (linear != r->config->recurrent.layers)
        nrg_llm_refuse(r, "layer_types", "names layers that this family does not have");
}

/* Bits of the first group of compressed-tensors' config_groups; NULL: it has none. */
static const json_t *group_bits(const json_t *groups)
{
    const char *key;
    json_t *group;
    json_object_foreach((json_t *)groups, key, group)
    {
        const json_t *bits = json_object_get(json_object_get(group, "weights"), "num_bits");
        if (bits)
            return bits;
    }
    return NULL;
}

/* 0: the file says nothing of them. */
static double stated_bits(struct nrg_llm_reading *r, const json_t *q)
{
    static const char *const keys[] = {"bits", "w_bit", "nbits", "num_bits"};
    const json_t *bits = NULL;
    for (size_t i = 0; !bits && i < sizeof keys / sizeof *keys; i++)
        bits = json_object_get(q, keys[i]);
    bits = bits ? bits : group_bits(json_object_get(q, "config_groups"));
    if (!bits || json_is_null(bits))
        return json_is_true(json_object_get(q, "load_in_4bit"))   ? 4
               : json_is_true(json_object_get(q, "load_in_8bit")) ? 8
                                                                  : 0;
    double number = json_number_value(bits);
    if (!(number >= 1 && number <= 32))
        nrg_llm_refuse(r, "quantization_config", "has bits that no weight has");
    return number;
}

/* Weights that share a scale and a zero point; 0: a whole channel does. */
static double group_size(struct nrg_llm_reading *r, const json_t *q)
{
    const json_t *value = json_object_get(q, "group_size");
    double size = json_number_value(value);
    if (!value || json_is_null(value) || size == -1)
        return 0;
    if (!(size >= 1 && size <= 1e6) || size != floor(size))
        nrg_llm_refuse(r, "quantization_config", "has a group_size that no weights have");
    return size;
}

static void read_quantisation(struct nrg_llm_reading *r, const json_t *root)
{
    struct nrg_llm_config *c = r->config;
    const json_t *q = json_object_get(root, "quantization_config");
    if (!q || json_is_null(q))
        q = json_object_get(r->root, "quantization_config");
    if (!q || json_is_null(q))
        return;
    if (!json_is_object(q))
        nrg_llm_refuse(r, "quantization_config", "is no object");
    const char *method = json_string_value(json_object_get(q, "quant_method"));
    double bits = stated_bits(r, q), group = group_size(r, q);
    int dtype = method ? nrg_llm_dtype_find(method) : -1;
    if (bits > 0)
        dtype = bits <= 4 ? NRG_LLM_INT4 : dtype == NRG_LLM_FP8 ? dtype : NRG_LLM_INT8;
    if (dtype <= 0) {
        c->unknown_bits = true;
        return;
    }
    c->quantised = (enum nrg_llm_dtype)dtype;
    /* Scales and zero points of each group of weights. */
    if (bits > 0 && dtype != NRG_LLM_FP8)
        c->quantised_bits = bits + (group > 0 ? (16 + bits) / group : 0);
}

/* The type of weights: what neither part says is bfloat16. */
static void read_dtype(struct nrg_llm_reading *r, const json_t *root)
{
    static const char *const keys[] = {"torch_dtype", "dtype"};
    r->config->dtype = NRG_LLM_BF16;
    for (int i = 0; i < 4; i++) {
        const json_t *value = json_object_get(i < 2 ? r->root : root, keys[i % 2]);
        const char *text = json_string_value(value);
        if (!value || json_is_null(value) || (text && !strcmp(text, "auto")))
            continue;
        int dtype = text ? nrg_llm_dtype_find(text) : -1;
        r->config->unknown_bits = dtype <= 0;
        r->config->dtype = dtype > 0 ? (enum nrg_llm_dtype)dtype : NRG_LLM_BF16;
        return;
    }
}

/* The language model's part; the file itself when it has no parts. */
static const json_t *text_part(const json_t *root)
{
    const json_t *thinker = json_object_get(root, "thinker_config");
    if (json_is_object(thinker))
        root = thinker;
    static const char *const keys[] = {"text_config", "llm_config", "language_config"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_is_object(json_object_get(root, keys[i])))
            return json_object_get(root, keys[i]);
    return root;
}

/* What can be done about a model_type that has no row: the list, and what is like it. */
static int refuse_type(const char *type, const char *near, const char *name, struct nrg_error *err)
{
    char known[600];
    return nrg_fail(err, -ENOTSUP, name,
                    "model_type '%s' is not known%s%s%s; known are %s. Else give its GGUF or "
                    "safetensors file, or sizes by hand: --llm "
                    "params=7.6e9,active=1e9,layers=32,hidden=4096",
                    type, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "",
                    nrg_llm_family_names(known, sizeof known));
}

static void read_rest(struct nrg_llm_reading *r, const struct nrg_llm_family *family,
                      const json_t *root)
{
    static const double none[NRG_LLM_DEFAULTS];
    read_sizes(r, family, r->root == root ? none : family->inside);
    if (r->root != root && json_is_boolean(json_object_get(root, "tie_word_embeddings")))
        r->config->tied = json_is_true(json_object_get(root, "tie_word_embeddings"));
    family->finish(r);
    check_layer_types(r);
    nrg_llm_read_parts(r, root);
    read_dtype(r, root);
    read_quantisation(r, root);
}

int nrg_llm_config_parse(struct nrg_llm_config *c, const json_t *root, const char *name,
                         struct nrg_error *err)
{
    struct nrg_llm_reading r = {.config = c, .name = name, .err = err};
    const char *near = NULL;
    *c = (struct nrg_llm_config){0};
    if (!json_is_object(root))
        return nrg_fail(err, -EBADMSG, name, "is not a config.json: no JSON object");
    r.root = text_part(root);
    const char *type = json_string_value(json_object_get(r.root, "model_type"));
    if (!type)
        type = json_string_value(json_object_get(root, "model_type"));
    if (!type)
        return nrg_fail(err, -EBADMSG, name,
                        "has no model_type: is this the config.json of a language model?");
    nrg_copy_clean(c->family, sizeof c->family, type, strlen(type));
    const struct nrg_llm_family *family = nrg_llm_family_find(c->family, &near);
    if (!family)
        return refuse_type(c->family, near, name, err);
    read_rest(&r, family, root);
    return r.rc ? r.rc : nrg_llm_config_check(c, name, err);
}
