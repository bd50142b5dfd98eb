/*
 * See encoders.h. The decoder of an encoder-decoder model is the config itself; its encoder becomes
 * `source`. T5's reads the prompt; Whisper's hears 30 s of sound, whose length is fixed, and the
 * prompt is the decoder's.
 */
#include "predict/llm/encoders.h"

#include <math.h>
#include <string.h>

double nrg_llm_stack_matrices(const struct nrg_llm_stack *s)
{
    return s->layers * s->hidden * (4 * s->heads * s->head_dim + s->mlp_matrices * s->intermediate);
}

double nrg_llm_stack_params(const struct nrg_llm_stack *s)
{
    return nrg_llm_stack_matrices(s) + s->layers * (2 * s->norm_params * s->hidden + s->biases);
}

double nrg_llm_stack_biases(const struct nrg_llm_stack *s)
{
    return 3 * s->heads * s->head_dim + s->hidden + (s->mlp_matrices - 1) * s->intermediate +
           s->hidden;
}

/* ---- encoders alone ---- */

/* As the Model class of transformers has it, with its pooler. */
void nrg_llm_finish_bert(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    nrg_llm_plain_layer_norm(r);
    c->encoder = c->embedding_norm = c->no_final_norm = c->pooler = c->tied = true;
    c->positions = nrg_llm_number(r, "max_position_embeddings", 512);
    c->token_types = nrg_llm_number(r, "type_vocab_size", 2);
}

void nrg_llm_finish_distilbert(struct nrg_llm_reading *r)
{
    nrg_llm_finish_bert(r);
    r->config->pooler = false;
    r->config->token_types = 0;
}

/* ---- an encoder before a decoder ---- */

static void set_source(struct nrg_llm_config *c, const struct nrg_llm_stack *s, double others)
{
    c->source.matrices = nrg_llm_stack_matrices(s);
    c->source.params = nrg_llm_stack_params(s) + others;
    c->source.pair_macs = s->layers * 2 * s->heads * s->head_dim;
    c->cross_layers = c->layers;
}

/* `biased_layers` of each stack have a table of relative positions; 0: all. */
static void finish_t5(struct nrg_llm_reading *r, const char *activation, double biased_layers)
{
    static const char *const layers[] = {"num_layers", NULL};
    struct nrg_llm_config *c = r->config;
    const char *act = json_string_value(json_object_get(r->root, "feed_forward_proj"));
    double buckets = nrg_llm_number(r, "relative_attention_num_buckets", 32);
    nrg_llm_gated_rms(r);
    c->mlp_matrices = !strncmp(act ? act : activation, "gated-", 6) ? 3 : 2;
    c->norms_per_layer = 3;
    c->kv_heads = c->heads;
    const struct nrg_llm_stack encoder = {.layers = nrg_llm_size(r, layers),
                                          .hidden = c->hidden,
                                          .heads = c->heads,
                                          .head_dim = c->head_dim,
                                          .intermediate = c->intermediate,
                                          .mlp_matrices = c->mlp_matrices,
                                          .norm_params = 1};
    double table = buckets * c->heads;
    set_source(c, &encoder,
               c->hidden + table * (biased_layers > 0 ? biased_layers : encoder.layers));
    c->other_params = table * (biased_layers > 0 ? biased_layers : c->layers);
}

void nrg_llm_finish_t5(struct nrg_llm_reading *r)
{
    finish_t5(r, "relu", 1);
}

void nrg_llm_finish_mt5(struct nrg_llm_reading *r)
{
    finish_t5(r, "gated-gelu", 1);
}

void nrg_llm_finish_umt5(struct nrg_llm_reading *r)
{
    finish_t5(r, "gated-gelu", 0);
}

/* Two convolutions of three taps, the second at every other position, then the layers. */
static void set_hearing(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    double mel = nrg_llm_number(r, "num_mel_bins", 80), h = c->hidden;
    double positions = nrg_llm_step(r, "max_source_positions", 1500);
    struct nrg_llm_stack s = {
        .layers = nrg_llm_size(r, (const char *const[]){"encoder_layers", 0}),
        .hidden = h,
        .heads = nrg_llm_size(r, (const char *const[]){"encoder_attention_heads", 0}),
        .intermediate = nrg_llm_size(r, (const char *const[]){"encoder_ffn_dim", 0}),
        .mlp_matrices = 2,
        .norm_params = 2};
    s.head_dim = s.heads > 0 ? h / s.heads : 0;
    s.biases = nrg_llm_stack_biases(&s) - h; /* keys have none */
    set_source(c, &s, 3 * h * (mel + h) + 2 * h + positions * h + 2 * h);
    c->source.positions = positions;
    c->source.once_macs = 3 * h * (2 * mel + h) * positions;
}

void nrg_llm_finish_whisper(struct nrg_llm_reading *r)
{
    struct nrg_llm_config *c = r->config;
    c->mlp_matrices = c->norm_params = 2;
    c->norms_per_layer = 3;
    c->mlp_bias = true;
    c->other_params = c->layers * 6 * c->hidden; /* of two attentions, keys excepted */
    c->positions = nrg_llm_number(r, "max_target_positions", 448);
    set_hearing(r);
}
