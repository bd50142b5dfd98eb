/*
 * A model by the header of its GGUF file. Keys begin with the architecture ("llama.block_count");
 * sizes are those of config.json under other names. Norms and biases are not in the keys: the
 * tensors are counted instead, so that parameters and bytes are exact.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "graph/weights/gguf.h"
#include "predict/llm/file.h"
#include "predict/llm/shape.h"

#define MOST_APART 0.05 /* what keys and tensors of one model may differ by */

enum key {
    BLOCKS,
    WIDTH,
    FEED_FORWARD,
    HEADS,
    KV_HEADS,
    KEY_LENGTH,
    VALUE_LENGTH,
    MLA_KEY,
    MLA_VALUE,
    WINDOW,
    EXPERTS,
    EXPERTS_USED,
    EXPERT_WIDTH,
    SHARED_WIDTH,
    SHARED_EXPERTS,
    DENSE_BLOCKS,
    Q_RANK,
    KV_RANK,
    ROPE,
    VOCAB,
    STATE_INNER,
    STATE_SIZE,
    KEYS
};

static const char *const keys[KEYS] = {"block_count",
                                       "embedding_length",
                                       "feed_forward_length",
                                       "attention.head_count",
                                       "attention.head_count_kv",
                                       "attention.key_length",
                                       "attention.value_length",
                                       "attention.key_length_mla",
                                       "attention.value_length_mla",
                                       "attention.sliding_window",
                                       "expert_count",
                                       "expert_used_count",
                                       "expert_feed_forward_length",
                                       "expert_shared_feed_forward_length",
                                       "expert_shared_count",
                                       "leading_dense_block_count",
                                       "attention.q_lora_rank",
                                       "attention.kv_lora_rank",
                                       "rope.dimension_count",
                                       "vocab_size",
                                       "ssm.inner_size",
                                       "ssm.state_size"};

/* Every period-th layer of these sees everything; others with a window have it everywhere. */
static const struct {
    const char *architecture;
    double period;
} periods[] = {{"gemma2", 2}, {"gemma3", 6}, {"gpt-oss", 2}, {"llama4", 4}};

struct pairs {
    const char *name; /* of the file */
    struct nrg_error *err;
    double files; /* that the model is cut into; NAN: one */
    char architecture[40];
    double values[KEYS];     /* NAN: absent */
    double attention_layers; /* by head counts per layer; NAN: all */
    double tokens;           /* of the tokenizer */
};

static int take_pair(void *arg, const struct nrg_gguf_value *v)
{
    struct pairs *p = arg;
    size_t n = strlen(p->architecture);
    if (v->text && v->key_len == 20 && !memcmp(v->key, "general.architecture", 20))
        nrg_copy_clean(p->architecture, sizeof p->architecture, v->text, v->text_len);
    if (v->key_len == 21 && !memcmp(v->key, "tokenizer.ggml.tokens", 21))
        p->tokens = (double)v->n;
    if (v->key_len == 11 && !memcmp(v->key, "split.count", 11))
        p->files = v->number;
    if (!n || v->key_len <= n + 1 || memcmp(v->key, p->architecture, n) != 0 || v->key[n] != '.')
        return 0;
    for (int k = 0; k < KEYS; k++) {
        size_t len = strlen(keys[k]);
        if (v->key_len - n - 1 != len || memcmp(v->key + n + 1, keys[k], len) != 0)
            continue;
        if (!isnan(p->values[k]))
            return nrg_fail(p->err, -EBADMSG, p->name, "has %s.%s twice", p->architecture, keys[k]);
        p->values[k] = v->number;
        if (k == KV_HEADS && v->n > 1)
            p->attention_layers = (double)v->nonzero;
    }
    return 0;
}

static double or_else(double value, double otherwise)
{
    return isnan(value) ? otherwise : value;
}

static void set_attention(struct nrg_llm_config *c, const struct pairs *p)
{
    const double *v = p->values;
    c->heads = or_else(v[HEADS], 0);
    c->kv_heads = or_else(v[KV_HEADS], c->heads);
    c->head_dim = or_else(v[KEY_LENGTH], c->heads > 0 ? floor(c->hidden / c->heads) : 0);
    c->attention_layers = or_else(p->attention_layers, c->layers);
    c->window = or_else(v[WINDOW], 0);
    double period = 0;
    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++)
        if (!strcmp(p->architecture, periods[i].architecture))
            period = periods[i].period;
    if (c->window > 0)
        c->window_layers = period > 0 ? c->layers - floor(c->layers / period) : c->layers;
    c->kv_rank = or_else(v[KV_RANK], 0);
    if (!(c->kv_rank > 0))
        return;
    c->q_rank = or_else(v[Q_RANK], 0);
    c->rope_dim = or_else(v[ROPE], 64);
    c->nope_dim = fmax(or_else(v[MLA_KEY], or_else(v[KEY_LENGTH], 192)) - c->rope_dim, 0);
    c->v_dim = or_else(v[MLA_VALUE], or_else(v[VALUE_LENGTH], 128));
    c->kv_heads = c->heads;
}

/* How many blocks have a tensor whose name ends so. */
static double count_tensors(const struct nrg_model *model, const char *ending)
{
    double n = 0;
    for (size_t i = 0; i < model->n_params; i++)
        n += nrg_ends_with(model->params[i].name, ending);
    return n;
}

/* Elements of the first tensor whose name ends so, per `width` of them; 0: there is none. */
static double rows_of(const struct nrg_model *model, const char *ending, double width)
{
    for (size_t i = 0; i < model->n_params; i++) {
        int64_t numel = nrg_type_numel(model->params[i].type);
        if (nrg_ends_with(model->params[i].name, ending))
            return numel > 0 && width > 0 ? floor((double)numel / width) : 0;
    }
    return 0;
}

/* A gate of its own, also of each expert in older files, or in one matrix with `up` (Phi 3). */
static bool is_gated(const struct nrg_model *model, const struct nrg_llm_config *c)
{
    return count_tensors(model, ".ffn_gate.weight") > 0 ||
           count_tensors(model, ".ffn_gate_exps.weight") > 0 ||
           count_tensors(model, ".ffn_gate.0.weight") > 0 ||
           (c->intermediate > 0 &&
            rows_of(model, ".ffn_up.weight", c->hidden) == 2 * c->intermediate);
}

/* Which layers have experts, and how wide the shared one is, the tensors say better than keys. */
static void set_experts(struct nrg_llm_config *c, const struct pairs *p,
                        const struct nrg_model *model)
{
    const double *v = p->values;
    double layers =
        count_tensors(model, ".ffn_up_exps.weight") + count_tensors(model, ".ffn_up.0.weight");
    double shared = rows_of(model, ".ffn_up_shexp.weight", c->hidden);
    c->experts = v[EXPERTS];
    c->experts_per_token = or_else(v[EXPERTS_USED], 0);
    c->expert_intermediate = or_else(v[EXPERT_WIDTH], c->intermediate);
    c->expert_layers =
        layers > 0 && !(p->files > 1) ? layers : c->layers - or_else(v[DENSE_BLOCKS], 0);
    c->dense_layers = c->layers - c->expert_layers;
    c->shared_intermediate =
        shared > 0
            ? shared
            : or_else(v[SHARED_WIDTH], or_else(v[SHARED_EXPERTS], 0) * c->expert_intermediate);
}

static void set_feed_forward(struct nrg_llm_config *c, const struct pairs *p,
                             const struct nrg_model *model)
{
    c->intermediate = or_else(p->values[FEED_FORWARD], 0);
    c->mlp_matrices = is_gated(model, c) ? 3 : 2;
    c->dense_layers = c->layers;
    if (p->values[EXPERTS] > 0)
        set_experts(c, p, model);
}

/* Elements of all tensors whose name ends so. */
static double sum_tensors(const struct nrg_model *model, const char *ending)
{
    double sum = 0;
    for (size_t i = 0; i < model->n_params; i++) {
        int64_t numel = nrg_type_numel(model->params[i].type);
        sum += numel > 0 && nrg_ends_with(model->params[i].name, ending) ? (double)numel : 0;
    }
    return sum;
}

/* Layers with a state (Mamba 1 and 2): what they have, the tensors say; how large it is, the keys.
 */
static void set_states(struct nrg_llm_config *c, const struct pairs *p,
                       const struct nrg_model *model)
{
    static const char *const matrices[] = {".ssm_in.weight", ".ssm_out.weight", ".ssm_x.weight",
                                           ".ssm_dt.weight"};
    static const char *const small[] = {".ssm_a", ".ssm_d", ".ssm_dt.bias", ".ssm_norm.weight",
                                        ".ssm_conv1d.bias"};
    struct nrg_llm_recurrence *r = &c->recurrent;
    double layers = count_tensors(model, ".ssm_out.weight");
    double inner = or_else(p->values[STATE_INNER], 0), size = or_else(p->values[STATE_SIZE], 0);
    if (!(layers > 0) || p->files > 1)
        return;
    r->layers = layers;
    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++)
        r->matrices += floor(sum_tensors(model, matrices[i]) / layers);
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        r->small += sum_tensors(model, small[i]) / layers;
    r->kernels = floor(sum_tensors(model, ".ssm_conv1d.weight") / layers);
    r->values = inner * size + r->kernels;
    r->macs = 2 * inner * size + r->kernels;
    c->attention_layers = fmin(or_else(p->attention_layers, c->layers - layers), c->layers);
    c->attention_layers = c->heads > 0 ? c->attention_layers : 0;
    c->dense_layers = fmin(c->dense_layers, count_tensors(model, ".ffn_up.weight"));
    c->norms_per_layer = c->dense_layers + c->expert_layers > 0 ? 2 : 1;
}

static bool has_tensor(const struct nrg_model *model, const char *name)
{
    for (size_t i = 0; i < model->n_params; i++)
        if (!strcmp(model->params[i].name, name))
            return true;
    return false;
}

/* Keys and tensors must tell of one model; norms and biases, which keys leave out, are small. */
static int compare_stored(const struct nrg_llm_config *c, const struct pairs *p)
{
    struct nrg_llm_shape shape;
    nrg_llm_shape_make(&shape, c);
    if (!(c->stored_params > 0) || p->files > 1 ||
        fabs(shape.params / c->stored_params - 1) <= MOST_APART)
        return 0;
    return nrg_fail(p->err, -EBADMSG, p->name,
                    "its keys make %.4g parameters, its tensors have %.4g: one of them is wrong, "
                    "or the architecture '%s' is not known well enough",
                    shape.params, c->stored_params, p->architecture);
}

int nrg_llm_config_gguf(struct nrg_llm_config *c, const struct nrg_source *source,
                        struct nrg_error *err)
{
    struct pairs p = {
        .name = source->name, .err = err, .attention_layers = NAN, .tokens = NAN, .files = NAN};
    struct nrg_model model;
    for (int k = 0; k < KEYS; k++)
        p.values[k] = NAN;
    *c = (struct nrg_llm_config){0};
    int rc = nrg_gguf_metadata(source, take_pair, &p, err);
    if (!rc && !p.architecture[0])
        rc = nrg_fail(err, -EBADMSG, source->name, "has no general.architecture");
    if (!rc && (isnan(p.values[BLOCKS]) || isnan(p.values[WIDTH])))
        rc = nrg_fail(err, -ENOTSUP, source->name,
                      "has no %s.block_count and embedding_length: not a language model?",
                      p.architecture);
    if (!rc)
        rc = nrg_model_read_bytes(source, "gguf", &model, err);
    if (rc)
        return rc;
    nrg_copy(c->family, sizeof c->family, p.architecture);
    c->layers = p.values[BLOCKS];
    c->hidden = p.values[WIDTH];
    c->vocab = or_else(p.values[VOCAB], or_else(p.tokens, 0));
    c->norm_params = 1;
    c->norms_per_layer = 2;
    c->dtype = NRG_LLM_F16;
    c->encoder = strstr(p.architecture, "bert") != NULL;
    c->tied = c->encoder || !has_tensor(&model, "output.weight");
    c->positions = rows_of(&model, "position_embd.weight", c->hidden);
    c->token_types = rows_of(&model, "token_types.weight", c->hidden);
    set_attention(c, &p);
    set_feed_forward(c, &p, &model);
    set_states(c, &p, &model);
    nrg_llm_count_stored(c, &model);
    nrg_model_release(&model);
    rc = nrg_llm_config_check(c, source->name, err);
    return rc ? rc : compare_stored(c, &p);
}
