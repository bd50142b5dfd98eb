/*
 * See known.h. Sizes are those of the published config.json of each model. A name must contain all
 * words of its row; the number of parameters, where it is given, must agree to a fifth, so
 * that a distillate that carries its teacher's name is not taken for it.
 */
#include "predict/llm/known.h"

#include <ctype.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "predict/llm/recurrent.h"
#include "predict/llm/shape.h"

#define AGREE_LN 0.2

enum kind { PLAIN, GEMMA3, LLAMA4, LATENT, OSS, HYBRID };

enum size { LAYERS, HIDDEN, HEADS, KV_HEADS, HEAD_DIM, INTERMEDIATE, VOCAB, SIZES };
/* SHARED: width of shared experts, or recurrent layers; FIRST: dense layers, or with attention. */
enum more { EXPERTS, PER_TOKEN, SHARED, FIRST, MORE };

struct known {
    const char *name;
    const char *words[2]; /* lower case; "" matches any name */
    enum kind kind;
    double size[SIZES];
    double more[MORE];
    bool tied;
};

static const struct known models[] = {
    {"Qwen3-0.6B", {"qwen3", "-0.6b"}, PLAIN, {28, 1024, 16, 8, 128, 3072, 151936}, {0}, true},
    {"Qwen3-1.7B", {"qwen3", "-1.7b"}, PLAIN, {28, 2048, 16, 8, 128, 6144, 151936}, {0}, true},
    {"Qwen3-4B", {"qwen3", "-4b"}, PLAIN, {36, 2560, 32, 8, 128, 9728, 151936}, {0}, true},
    {"Qwen3-8B", {"qwen3", "-8b"}, PLAIN, {36, 4096, 32, 8, 128, 12288, 151936}, {0}, false},
    {"Qwen3-14B", {"qwen3", "-14b"}, PLAIN, {40, 5120, 40, 8, 128, 17408, 151936}, {0}, false},
    {"Qwen3-32B", {"qwen3", "-32b"}, PLAIN, {64, 5120, 64, 8, 128, 25600, 151936}, {0}, false},
    {"Qwen3-30B-A3B",
     {"qwen3", "30b-a3b"},
     PLAIN,
     {48, 2048, 32, 4, 128, 768, 151936},
     {128, 8, 0, 0},
     false},
    {"Qwen3-235B-A22B",
     {"qwen3", "235b"},
     PLAIN,
     {94, 4096, 64, 4, 128, 1536, 151936},
     {128, 8, 0, 0},
     false},
    {"Qwen3-480B-A35B",
     {"qwen3", "480b"},
     PLAIN,
     {62, 6144, 96, 8, 128, 2560, 151936},
     {160, 8, 0, 0},
     false},
    {"Qwen2.5-7B", {"qwen2.5", "-7b"}, PLAIN, {28, 3584, 28, 4, 128, 18944, 152064}, {0}, false},
    {"Qwen2.5-14B", {"qwen2.5", "-14b"}, PLAIN, {48, 5120, 40, 8, 128, 13824, 152064}, {0}, false},
    {"Qwen2.5-32B", {"qwen2.5", "-32b"}, PLAIN, {64, 5120, 40, 8, 128, 27648, 152064}, {0}, false},
    {"Qwen2.5-72B", {"qwen2.5", "-72b"}, PLAIN, {80, 8192, 64, 8, 128, 29568, 152064}, {0}, false},
    {"gemma-3-4b", {"gemma-3", "-4b"}, GEMMA3, {34, 2560, 8, 4, 256, 10240, 262208}, {0}, true},
    {"gemma-3-12b", {"gemma-3", "12b"}, GEMMA3, {48, 3840, 16, 8, 256, 15360, 262208}, {0}, true},
    {"gemma-3-27b", {"gemma-3", "27b"}, GEMMA3, {62, 5376, 32, 16, 128, 21504, 262208}, {0}, true},
    {"Llama-3-1B", {"llama-3", "-1b"}, PLAIN, {16, 2048, 32, 8, 64, 8192, 128256}, {0}, true},
    {"Llama-3-3B", {"llama-3", "-3b"}, PLAIN, {28, 3072, 24, 8, 128, 8192, 128256}, {0}, true},
    {"Llama-3-8B", {"llama-3", "-8b"}, PLAIN, {32, 4096, 32, 8, 128, 14336, 128256}, {0}, false},
    {"Llama-3-70B", {"llama-3", "70b"}, PLAIN, {80, 8192, 64, 8, 128, 28672, 128256}, {0}, false},
    {"Llama-3-405B",
     {"llama-3", "405b"},
     PLAIN,
     {126, 16384, 128, 8, 128, 53248, 128256},
     {0},
     false},
    {"Llama-4-Scout",
     {"llama-4", "scout"},
     LLAMA4,
     {48, 5120, 40, 8, 128, 8192, 202048},
     {16, 1, 8192, 0},
     false},
    {"Llama-4-Maverick",
     {"llama-4", "maverick"},
     LLAMA4,
     {48, 5120, 40, 8, 128, 8192, 202048},
     {128, 1, 8192, 24},
     false},
    {"Mistral-7B", {"mistral", "7b"}, PLAIN, {32, 4096, 32, 8, 128, 14336, 32000}, {0}, false},
    {"Mixtral-8x7B",
     {"mixtral", "8x7b"},
     PLAIN,
     {32, 4096, 32, 8, 128, 14336, 32000},
     {8, 2, 0, 0},
     false},
    {"Mixtral-8x22B",
     {"mixtral", "8x22b"},
     PLAIN,
     {56, 6144, 48, 8, 128, 16384, 32768},
     {8, 2, 0, 0},
     false},
    {"DeepSeek-V3",
     {"deepseek", "v3"},
     LATENT,
     {61, 7168, 128, 128, 0, 2048, 129280},
     {256, 8, 2048, 3},
     false},
    {"DeepSeek-V3",
     {"deepseek", "r1"},
     LATENT,
     {61, 7168, 128, 128, 0, 2048, 129280},
     {256, 8, 2048, 3},
     false},
    {"Kimi-K2",
     {"kimi", "k2"},
     LATENT,
     {61, 7168, 64, 64, 0, 2048, 163840},
     {384, 8, 2048, 1},
     false},
    {"gpt-oss-20b",
     {"gpt-oss", "20b"},
     OSS,
     {24, 2880, 64, 8, 64, 2880, 201088},
     {32, 4, 0, 0},
     false},
    {"gpt-oss-120b",
     {"gpt-oss", "120b"},
     OSS,
     {36, 2880, 64, 8, 64, 2880, 201088},
     {128, 4, 0, 0},
     false},
    {"Nemotron-Nano-9B-v2",
     {"nemotron-nano", "9b"},
     HYBRID,
     {56, 4480, 40, 8, 128, 15680, 131072},
     {0, 0, 27, 4},
     false},
    {"Nemotron-Nano-12B-v2",
     {"nemotron-nano", "12b"},
     HYBRID,
     {62, 5120, 40, 8, 128, 20480, 131072},
     {0, 0, 28, 6},
     false},
};

static void set_experts(struct nrg_llm_config *c, const struct known *k)
{
    c->experts = k->more[EXPERTS];
    c->experts_per_token = k->more[PER_TOKEN];
    c->expert_intermediate = k->size[INTERMEDIATE];
    c->dense_layers = k->kind == LLAMA4 || k->kind == LATENT ? k->more[FIRST] : 0;
    c->expert_layers = c->layers - c->dense_layers;
    c->shared_intermediate = k->more[SHARED];
}

/* Recurrent layers of Mamba 2: 128 heads of 80, eight groups of 128 states. */
static void set_hybrid(struct nrg_llm_config *c, const struct known *k)
{
    c->attention_layers = k->more[FIRST];
    c->dense_layers = c->layers - k->more[FIRST] - k->more[SHARED];
    c->mlp_matrices = 2;
    c->norms_per_layer = 1;
    c->recurrent = nrg_llm_mamba2(&(struct nrg_llm_mamba){.hidden = c->hidden,
                                                          .inner = 128 * 80,
                                                          .heads = 128,
                                                          .groups = 8,
                                                          .size = 128,
                                                          .kernel = 4,
                                                          .kernel_bias = true});
    c->recurrent.layers = k->more[SHARED];
}

static void set_kind(struct nrg_llm_config *c, const struct known *k)
{
    if (k->more[EXPERTS] > 0)
        set_experts(c, k);
    if (k->kind == GEMMA3 || !strncmp(k->name, "Qwen3", 5))
        c->qk_norm_params = 2 * c->head_dim;
    c->qkv_bias = !strncmp(k->name, "Qwen2", 5);
    if (k->kind == GEMMA3) {
        c->norms_per_layer = 4;
        c->window = 1024;
        c->window_layers = c->layers - floor(c->layers / 6);
    } else if (k->kind == LLAMA4) {
        c->intermediate = 16384;
        c->window = 8192;
        c->window_layers = c->layers - floor(c->layers / 4);
    } else if (k->kind == LATENT) {
        c->intermediate = 18432;
        c->q_rank = 1536;
        c->kv_rank = 512;
        c->rope_dim = 64;
        c->nope_dim = c->v_dim = c->head_dim = 128;
    } else if (k->kind == OSS) {
        c->qkv_bias = c->out_bias = c->sinks = c->expert_bias = true;
        c->window = 128;
        c->window_layers = c->layers / 2;
    } else if (k->kind == HYBRID) {
        set_hybrid(c, k);
    }
}

static void fill(struct nrg_llm_config *c, const struct known *k)
{
    *c = (struct nrg_llm_config){.layers = k->size[LAYERS],
                                 .hidden = k->size[HIDDEN],
                                 .vocab = k->size[VOCAB],
                                 .heads = k->size[HEADS],
                                 .kv_heads = k->size[KV_HEADS],
                                 .head_dim = k->size[HEAD_DIM],
                                 .attention_layers = k->size[LAYERS],
                                 .intermediate = k->size[INTERMEDIATE],
                                 .mlp_matrices = 3,
                                 .dense_layers = k->size[LAYERS],
                                 .norm_params = 1,
                                 .norms_per_layer = 2,
                                 .tied = k->tied,
                                 .dtype = NRG_LLM_BF16};
    nrg_copy(c->family, sizeof c->family, k->name);
    set_kind(c, k);
}

static bool has_word(const char *name, const char *word)
{
    return !*word || strcasestr(name, word) != NULL;
}

const char *nrg_llm_known(struct nrg_llm_config *config, const char *name, double params)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct nrg_llm_shape shape;
        if (!has_word(name, models[i].words[0]) || !has_word(name, models[i].words[1]))
            continue;
        fill(config, &models[i]);
        nrg_llm_shape_make(&shape, config);
        if (isnan(params) || fabs(log(shape.params / params)) <= AGREE_LN)
            return models[i].name;
    }
    return NULL;
}

/*
 * Models that were built are about 128 times as wide as deep: 12 weights per layer and square of
 * the width make 12 * 128^2 * layers^3 parameters. A model of experts is as deep as a dense one of
 * the geometric mean of its active and all parameters, and a third of what is active is not
 * experts.
 */
void nrg_llm_guess(struct nrg_llm_config *c, double active, double params)
{
    nrg_llm_guess_sized(c, active, params, 0, 0);
}

void nrg_llm_guess_sized(struct nrg_llm_config *c, double active, double params, double layers,
                         double width)
{
    bool has_experts = active < 0.9 * params;
    double like = has_experts ? sqrt(active * params) : params;
    if (!(layers > 0))
        layers = fmin(fmax(round(cbrt(like / (12 * 128 * 128))), 1), 1e4);
    if (!(width > 0))
        width = 128 * fmin(layers, 100);
    *c = (struct nrg_llm_config){.layers = layers,
                                 .hidden = width,
                                 .vocab = 128000,
                                 .heads = fmax(round(width / 128), 1),
                                 .head_dim = 128,
                                 .attention_layers = layers,
                                 .mlp_matrices = 3,
                                 .norm_params = 1,
                                 .norms_per_layer = 2,
                                 .tied = true,
                                 .dtype = NRG_LLM_BF16,
                                 .guessed = true};
    c->heads = c->heads >= 8 ? 8 * round(c->heads / 8) : c->heads;
    c->kv_heads = fmin(8, c->heads);
    nrg_copy(c->family, sizeof c->family, "guessed");
    double attention = c->hidden * c->head_dim * (2 * c->heads + 2 * c->kv_heads) * layers;
    double rest = fmax((has_experts ? active / 3 : params) - attention - c->vocab * c->hidden, 0);
    double block = 3 * c->hidden * layers;
    c->dense_layers = layers;
    c->intermediate = fmax(round(rest / block), 1);
    if (!has_experts)
        return;
    c->dense_layers = 0;
    c->expert_layers = layers;
    c->shared_intermediate = c->intermediate;
    c->experts = 128;
    c->experts_per_token = fmax(round(128 * (2.0 / 3 * active) / (params - active / 3)), 1);
    c->expert_intermediate = fmax(round((params - active / 3) / (block * c->experts)), 1);
}

/* Words that do not change what a model is made of. */
static bool is_variant(const char *word, size_t len)
{
    static const char *const words[] = {"instruct", "thinking", "chat", "it",    "base",   "fp8",
                                        "bf16",     "fp16",     "awq",  "gptq",  "fp4",    "nvfp4",
                                        "mxfp4",    "int4",     "int8", "mxfp8", "dynamic"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == len && !strncasecmp(words[i], word, len))
            return true;
    size_t digits = 0;
    while (digits < len && isdigit((unsigned char)word[digits]))
        digits++;
    return digits == len && len == 4; /* a date: 2507 */
}

const char *nrg_llm_base_name(const char *name, char *buf, size_t size)
{
    const char *slash = strrchr(name, '/');
    size_t at = 0;
    if (slash && slash[1])
        name = slash + 1;
    while (*name) {
        size_t len = strcspn(name, "-_");
        if (len && !is_variant(name, len) && at + len + 2 < size) {
            if (at)
                buf[at++] = '-';
            memcpy(buf + at, name, len);
            at += len;
        }
        name += len + (name[len] != 0);
    }
    buf[at] = 0;
    return buf;
}
