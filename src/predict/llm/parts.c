/*
 * See parts.h. A function per kind of tower counts its parameters as transformers builds them, with
 * what joins it to the language model; sizes that a file leaves out are the class's own.
 */
#include "predict/llm/parts.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "predict/llm/encoders.h"

/* A tower's config, and the model that it belongs to. */
struct tower {
    struct nrg_llm_reading r; /* root is the tower's part */
    const json_t *whole;
    double text; /* width of the language model */
};

static double size_of(struct tower *t, const char *key, double otherwise)
{
    return nrg_llm_number(&t->r, key, otherwise);
}

/* Layers with two norms; `biased`: every matrix has one. */
static double layers_of(struct tower *t, const char *depth, double layers, double hidden,
                        double intermediate, double mlp_matrices, double norm_params, bool biased)
{
    struct nrg_llm_stack s = {.layers = size_of(t, depth, layers),
                              .hidden = hidden,
                              .heads = 1,
                              .head_dim = hidden,
                              .intermediate = intermediate,
                              .mlp_matrices = mlp_matrices,
                              .norm_params = norm_params};
    s.biases = biased ? nrg_llm_stack_biases(&s) : 0;
    return nrg_llm_stack_params(&s);
}

static double linear(double in, double out, bool bias)
{
    return out * (in + (bias ? 1 : 0));
}

/* ---- Qwen ---- */

/* Values of a patch over two frames. */
static double qwen_patch(struct tower *t, double side)
{
    side = size_of(t, "patch_size", side);
    return size_of(t, "in_channels", size_of(t, "in_chans", 3)) * side * side *
           size_of(t, "temporal_patch_size", 2);
}

/* Neighbouring patches become one token. */
static double qwen_merger(struct tower *t, double hidden, double out)
{
    double side = size_of(t, "spatial_merge_size", 2), merged = hidden * side * side;
    return linear(merged, merged, true) + linear(merged, out, true);
}

static double qwen2_vision(struct tower *t)
{
    double e = size_of(t, "embed_dim", 1280);
    return qwen_patch(t, 14) * e +
           layers_of(t, "depth", 32, e, size_of(t, "mlp_ratio", 4) * e, 2, 2, true) + 2 * e +
           qwen_merger(t, e, size_of(t, "hidden_size", 3584));
}

static double qwen2_5_vision(struct tower *t)
{
    double h = size_of(t, "hidden_size", 3584);
    return qwen_patch(t, 14) * h +
           layers_of(t, "depth", 32, h, size_of(t, "intermediate_size", 3420), 3, 1, true) + h +
           qwen_merger(t, h, size_of(t, "out_hidden_size", 3584));
}

/* Features of some layers join the first layers of the language model, each by a merger. */
static double qwen3_vision(struct tower *t)
{
    const json_t *deep = json_object_get(t->r.root, "deepstack_visual_indexes");
    double n = json_is_array(deep) ? (double)json_array_size(deep) : 3;
    double h = size_of(t, "hidden_size", 1152), side = size_of(t, "spatial_merge_size", 2);
    double merger = qwen_merger(t, h, size_of(t, "out_hidden_size", 3584));
    return (qwen_patch(t, 16) + 1 + size_of(t, "num_position_embeddings", 2304)) * h +
           layers_of(t, "depth", 27, h, size_of(t, "intermediate_size", 4304), 2, 2, true) +
           merger + 2 * h + n * (merger + 2 * h * side * side);
}

/* ---- towers that several models use ---- */

static double patches(struct tower *t, double image, double side)
{
    double across =
        floor(size_of(t, "image_size", image) / fmax(size_of(t, "patch_size", side), 1));
    return across * across;
}

static double patch_values(struct tower *t, double side)
{
    side = size_of(t, "patch_size", side);
    return size_of(t, "num_channels", 3) * side * side;
}

static double clip_vision(struct tower *t)
{
    double h = size_of(t, "hidden_size", 768);
    return h * (1 + patch_values(t, 32) + patches(t, 224, 32) + 1) + 4 * h +
           layers_of(t, "num_hidden_layers", 12, h, size_of(t, "intermediate_size", 3072), 2, 2,
                     true);
}

/* With a head that pools the patches, unless the file says that there is none. */
static double siglip_vision(struct tower *t)
{
    double h = size_of(t, "hidden_size", 768), wide = size_of(t, "intermediate_size", 3072);
    double head =
        h + 4 * linear(h, h, true) + 2 * h + linear(h, wide, true) + linear(wide, h, true);
    return h * (patch_values(t, 16) + 1 + patches(t, 224, 16)) + 2 * h +
           layers_of(t, "num_hidden_layers", 12, h, wide, 2, 2, true) +
           (nrg_llm_flag(&t->r, "vision_use_head", true) ? head : 0);
}

static double pixtral_vision(struct tower *t)
{
    double h = size_of(t, "hidden_size", 1024);
    return h * patch_values(t, 16) + h +
           layers_of(t, "num_hidden_layers", 24, h, size_of(t, "intermediate_size", 4096), 3, 1,
                     false);
}

static double shared_tower(struct tower *t)
{
    const char *type = json_string_value(json_object_get(t->r.root, "model_type"));
    return !type                                  ? 0
           : !strcmp(type, "clip_vision_model")   ? clip_vision(t)
           : !strcmp(type, "siglip_vision_model") ? siglip_vision(t)
           : !strcmp(type, "pixtral")             ? pixtral_vision(t)
                                                  : 0;
}

static double two_layers(struct tower *t, bool bias)
{
    struct nrg_llm_reading whole = t->r;
    whole.root = t->whole;
    bias = nrg_llm_flag(&whole, "multimodal_projector_bias", bias);
    t->r.rc = whole.rc;
    return linear(size_of(t, "hidden_size", 768), t->text, bias) + linear(t->text, t->text, bias);
}

static double llava_vision(struct tower *t)
{
    double tower = shared_tower(t);
    bool several = json_is_array(json_object_get(t->whole, "vision_feature_layer"));
    return tower > 0 && !several ? tower + two_layers(t, true) : 0;
}

static double mistral3_vision(struct tower *t)
{
    double tower = shared_tower(t), h = size_of(t, "hidden_size", 1024);
    double side = json_number_value(json_object_get(t->whole, "spatial_merge_size"));
    side = side >= 1 && side <= 1e3 ? side : 2;
    return tower > 0 ? tower + h + h * h * side * side + two_layers(t, false) : 0;
}

static double gemma3_vision(struct tower *t)
{
    double h = size_of(t, "hidden_size", 768);
    return siglip_vision(t) + h * t->text + h;
}

static const struct {
    const char *type; /* model_type of the whole */
    double (*count)(struct tower *t);
} towers[] = {{"qwen2_vl", qwen2_vision},   {"qwen2_5_vl", qwen2_5_vision},
              {"qwen3_vl", qwen3_vision},   {"qwen3_vl_moe", qwen3_vision},
              {"llava", llava_vision},      {"gemma3", gemma3_vision},
              {"mistral3", mistral3_vision}};

static double count_tower(struct nrg_llm_reading *r, const json_t *whole, const json_t *part)
{
    const char *type = json_string_value(json_object_get(whole, "model_type"));
    struct tower t = {.r = *r, .whole = whole, .text = r->config->hidden};
    double params = 0;
    t.r.root = part;
    for (size_t i = 0; type && i < sizeof towers / sizeof *towers; i++)
        if (!strcmp(type, towers[i].type) && json_is_object(part))
            params = towers[i].count(&t);
    r->rc = t.r.rc;
    return params;
}

/* ---- what a file has ---- */

/* Keys that tell of a part, and what it is. */
static const char *const keys[][2] = {
    {"vision_config", "vision"},       {"vision_tower", "vision"},  {"mm_vision_tower", "vision"},
    {"vision_lora", "vision"},         {"visual", "vision"},        {"audio_config", "audio"},
    {"audio_tower", "audio"},          {"sound_config", "audio"},   {"speech_lora", "audio"},
    {"audio_encoder_config", "audio"}, {"talker_config", "speech"}, {"token2wav_config", "speech"},
};

static void add_part(struct nrg_llm_config *c, const char *what, double params)
{
    for (int i = 0; i < NRG_LLM_PARTS; i++) {
        struct nrg_llm_tower *part = &c->parts[i];
        if (part->what[0] && strcmp(part->what, what) != 0)
            continue;
        if (!part->what[0])
            part->params = params;
        nrg_copy(part->what, sizeof part->what, what);
        return;
    }
}

static void read_parts_of(struct nrg_llm_reading *r, const json_t *whole)
{
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *part = json_object_get(whole, keys[i][0]);
        if (part && !json_is_null(part) && !json_is_false(part))
            add_part(r->config, keys[i][1],
                     !strcmp(keys[i][0], "vision_config") ? count_tower(r, whole, part) : 0);
    }
}

void nrg_llm_read_parts(struct nrg_llm_reading *r, const json_t *whole)
{
    const json_t *thinker = json_object_get(whole, "thinker_config");
    read_parts_of(r, whole);
    if (json_is_object(thinker))
        read_parts_of(r, thinker);
}
