/*
 * Language models: parameters of public configs against what their model cards and checkpoints
 * have, work of a step against closed forms, the law against data made by one, and configs that
 * lie.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "predict/llm/forecast.h"
#include "predict/llm/known.h"
#include "support/cmocka.h"

static int parse(const char *text, struct nrg_llm_config *c, struct nrg_error *err)
{
    *err = (struct nrg_error){0};
    return nrg_llm_config_read_bytes(c, (const uint8_t *)text, strlen(text), "config.json", false,
                                     err);
}

/* The sizes of published configs, and the parameters that their checkpoints have. */
static const struct {
    const char *name, *config;
    double params;
} public[] = {
    {"Llama-3.1-8B",
     "{\"model_type\":\"llama\",\"hidden_size\":4096,\"num_hidden_layers\":32,\"num_attention_"
     "heads\":"
     "32,\"num_key_value_heads\":8,\"intermediate_size\":14336,\"vocab_size\":128256,"
     "\"tie_word_embeddings\":false}",
     8030261248},
    {"Llama-3.1-70B",
     "{\"model_type\":\"llama\",\"hidden_size\":8192,\"num_hidden_layers\":80,\"num_attention_"
     "heads\":"
     "64,\"num_key_value_heads\":8,\"intermediate_size\":28672,\"vocab_size\":128256}",
     70553706496},
    {"Llama-3.1-405B",
     "{\"model_type\":\"llama\",\"hidden_size\":16384,\"num_hidden_layers\":126,"
     "\"num_attention_heads\":128,\"num_key_value_heads\":8,\"intermediate_size\":53248,"
     "\"vocab_size\":128256}",
     405853388800},
    {"Gemma-3-4B, whose file leaves out what transformers fills in",
     "{\"model_type\":\"gemma3\",\"text_config\":{\"model_type\":\"gemma3_text\",\"hid"
     "den_size\":2560,\"intermediate_size\":10240,\"num_hidden_layers\":34,\"sliding_w"
     "indow\":1024},\"vision_config\":{\"hidden_size\":1152,\"image_size\":896,\"inter"
     "mediate_size\":4304,\"model_type\":\"siglip_vision_model\",\"num_attention_heads"
     "\":16,\"num_hidden_layers\":27,\"patch_size\":14,\"vision_use_head\":false}}",
     4300079472},
    {"Qwen2-VL-7B, its text and its vision",
     "{\"model_type\":\"qwen2_vl\",\"hidden_size\":3584,\"intermediate_size\":18944,\""
     "num_attention_heads\":28,\"num_hidden_layers\":28,\"num_key_value_heads\":4,\"vo"
     "cab_size\":152064,\"tie_word_embeddings\":false,\"vision_config\":{\"depth\":32,"
     "\"embed_dim\":1280,\"mlp_ratio\":4,\"num_heads\":16,\"in_chans\":3,\"hidden_size"
     "\":3584,\"patch_size\":14,\"spatial_merge_size\":2,\"temporal_patch_size\":2}}",
     8291375616},
    {"LLaVA-1.5-7B, whose text_config leaves out Llama's defaults",
     "{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"llama\",\"max_positi"
     "on_embeddings\":4096,\"vocab_size\":32064},\"vision_config\":{\"hidden_size\":10"
     "24,\"image_size\":336,\"intermediate_size\":4096,\"model_type\":\"clip_vision_mo"
     "del\",\"num_attention_heads\":16,\"num_hidden_layers\":24,\"patch_size\":14,\"pr"
     "ojection_dim\":768}}",
     7063427072},
    {"Mamba-130M",
     "{\"model_type\":\"mamba\",\"hidden_size\":768,\"num_hidden_layers\":24,\"state_s"
     "ize\":16,\"expand\":2,\"conv_kernel\":4,\"time_step_rank\":48,\"use_bias\":false"
     ",\"use_conv_bias\":true,\"vocab_size\":50280}",
     129135360},
    {"Falcon-Mamba-7B",
     "{\"model_type\":\"falcon_mamba\",\"hidden_size\":4096,\"num_hidden_layers\":64,\""
     "state_size\":16,\"expand\":2,\"conv_kernel\":4,\"time_step_rank\":256,\"vocab_si"
     "ze\":65024,\"tie_word_embeddings\":false}",
     7272665088},
    {"Jamba-v0.1",
     "{\"model_type\":\"jamba\",\"hidden_size\":4096,\"intermediate_size\":14336,\"num"
     "_hidden_layers\":32,\"num_attention_heads\":32,\"num_key_value_heads\":8,\"num_e"
     "xperts\":16,\"num_experts_per_tok\":2,\"attn_layer_period\":8,\"attn_layer_offse"
     "t\":4,\"expert_layer_period\":2,\"expert_layer_offset\":1,\"mamba_d_state\":16,\""
     "mamba_d_conv\":4,\"mamba_expand\":2,\"mamba_dt_rank\":256,\"vocab_size\":65536}",
     51570323328},
    {"OLMo-2-7B",
     "{\"model_type\":\"olmo2\",\"hidden_size\":4096,\"intermediate_size\":11008,\"num"
     "_hidden_layers\":32,\"num_attention_heads\":32,\"vocab_size\":100352}",
     7298617344},
    {"Falcon-7B",
     "{\"model_type\":\"falcon\",\"hidden_size\":4544,\"num_hidden_layers\":32,\"num_a"
     "ttention_heads\":71,\"multi_query\":true,\"parallel_attn\":true,\"vocab_size\":6"
     "5024}",
     6921720704},
    {"T5-small",
     "{\"model_type\":\"t5\",\"d_model\":512,\"d_kv\":64,\"d_ff\":2048,\"num_layers\":"
     "6,\"num_heads\":8,\"vocab_size\":32128}",
     60506624},
    {"Flan-T5-small, whose output is not tied",
     "{\"model_type\":\"t5\",\"d_model\":512,\"d_kv\":64,\"d_ff\":1024,\"num_layers\":"
     "8,\"num_decoder_layers\":8,\"num_heads\":6,\"feed_forward_proj\":\"gated-gelu\","
     "\"tie_word_embeddings\":false,\"vocab_size\":32128}",
     76961152},
    {"Whisper-tiny",
     "{\"model_type\":\"whisper\",\"d_model\":384,\"encoder_layers\":4,\"decoder_layer"
     "s\":4,\"encoder_attention_heads\":6,\"decoder_attention_heads\":6,\"encoder_ffn_"
     "dim\":1536,\"decoder_ffn_dim\":1536,\"num_mel_bins\":80,\"max_source_positions\""
     ":1500,\"max_target_positions\":448,\"vocab_size\":51865,\"num_hidden_layers\":4}",
     37760640},
    {"Mistral-7B-v0.1",
     "{\"model_type\":\"mistral\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
     "\"vocab_size\":32000,\"sliding_window\":4096}",
     7241732096},
    {"Mixtral-8x7B",
     "{\"model_type\":\"mixtral\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"intermediate_size\":14336,"
     "\"vocab_size\":32000,\"num_local_experts\":8,\"num_experts_per_tok\":2,\"sliding_window\":"
     "null}",
     46702792704},
    {"Qwen2.5-7B",
     "{\"model_type\":\"qwen2\",\"hidden_size\":3584,\"num_hidden_layers\":28,\"num_attention_"
     "heads\":"
     "28,\"num_key_value_heads\":4,\"intermediate_size\":18944,\"vocab_size\":152064,"
     "\"tie_word_embeddings\":false}",
     7615616512},
    {"Qwen3-8B",
     "{\"model_type\":\"qwen3\",\"hidden_size\":4096,\"num_hidden_layers\":36,\"num_attention_"
     "heads\":"
     "32,\"num_key_value_heads\":8,\"head_dim\":128,\"intermediate_size\":12288,\"vocab_size\":"
     "151936,"
     "\"tie_word_embeddings\":false}",
     8190735360},
    {"Qwen3-30B-A3B",
     "{\"model_type\":\"qwen3_moe\",\"hidden_size\":2048,\"num_hidden_layers\":48,"
     "\"num_attention_heads\":32,\"num_key_value_heads\":4,\"head_dim\":128,\"intermediate_size\":"
     "6144,"
     "\"moe_intermediate_size\":768,\"num_experts\":128,\"num_experts_per_tok\":8,"
     "\"decoder_sparse_step\":1,\"mlp_only_layers\":[],\"vocab_size\":151936,"
     "\"tie_word_embeddings\":false}",
     30532122624},
    {"Qwen3-235B-A22B",
     "{\"model_type\":\"qwen3_moe\",\"hidden_size\":4096,\"num_hidden_layers\":94,"
     "\"num_attention_heads\":64,\"num_key_value_heads\":4,\"head_dim\":128,"
     "\"intermediate_size\":12288,\"moe_intermediate_size\":1536,\"num_experts\":128,"
     "\"num_experts_per_tok\":8,\"vocab_size\":151936,\"tie_word_embeddings\":false}",
     235093634560},
    {"gemma-7b",
     "{\"model_type\":\"gemma\",\"hidden_size\":3072,\"num_hidden_layers\":28,\"num_attention_"
     "heads\":"
     "16,\"num_key_value_heads\":16,\"head_dim\":256,\"intermediate_size\":24576,\"vocab_size\":"
     "256000}",
     8537680896},
    {"gemma-2-9b",
     "{\"model_type\":\"gemma2\",\"hidden_size\":3584,\"num_hidden_layers\":42,\"num_attention_"
     "heads\":"
     "16,\"num_key_value_heads\":8,\"head_dim\":256,\"intermediate_size\":14336,\"vocab_size\":"
     "256000,"
     "\"sliding_window\":4096}",
     9241705984},
    {"gpt-oss-20b",
     "{\"model_type\":\"gpt_oss\",\"hidden_size\":2880,\"num_hidden_layers\":24,"
     "\"num_attention_heads\":64,\"num_key_value_heads\":8,\"head_dim\":64,\"intermediate_size\":"
     "2880,"
     "\"num_local_experts\":32,\"num_experts_per_tok\":4,\"vocab_size\":201088,\"sliding_window\":"
     "128,"
     "\"tie_word_embeddings\":false,\"quantization_config\":{\"quant_method\":\"mxfp4\"}}",
     20914757184},
    {"gpt-oss-120b",
     "{\"model_type\":\"gpt_oss\",\"hidden_size\":2880,\"num_hidden_layers\":36,"
     "\"num_attention_heads\":64,\"num_key_value_heads\":8,\"head_dim\":64,\"intermediate_size\":"
     "2880,"
     "\"num_local_experts\":128,\"num_experts_per_tok\":4,\"vocab_size\":201088,"
     "\"tie_word_embeddings\":false}",
     116829156672},
    {"phi-2",
     "{\"model_type\":\"phi\",\"hidden_size\":2560,\"num_hidden_layers\":32,\"num_attention_"
     "heads\":32,"
     "\"intermediate_size\":10240,\"vocab_size\":51200,\"tie_word_embeddings\":false}",
     2779683840},
    {"Phi-3-mini",
     "{\"model_type\":\"phi3\",\"hidden_size\":3072,\"num_hidden_layers\":32,\"num_attention_"
     "heads\":"
     "32,\"num_key_value_heads\":32,\"intermediate_size\":8192,\"vocab_size\":32064,"
     "\"sliding_window\":2047,\"tie_word_embeddings\":false}",
     3821079552},
    {"gpt2",
     "{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_layer\":12,\"n_head\":12,\"n_positions\":1024,"
     "\"vocab_size\":50257}",
     124439808},
    {"pythia-6.9b",
     "{\"model_type\":\"gpt_neox\",\"hidden_size\":4096,\"num_hidden_layers\":32,"
     "\"num_attention_heads\":32,\"intermediate_size\":16384,\"vocab_size\":50432,"
     "\"tie_word_embeddings\":false}",
     6857302016},
    {"bert-base-uncased",
     "{\"model_type\":\"bert\",\"hidden_size\":768,\"num_hidden_layers\":12,\"num_attention_"
     "heads\":12,"
     "\"intermediate_size\":3072,\"max_position_embeddings\":512,\"type_vocab_size\":2,"
     "\"vocab_size\":30522}",
     109482240},
};

static void parameters_of_public_configs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof public / sizeof *public; i++) {
        struct nrg_llm_config c;
        struct nrg_llm_shape s;
        struct nrg_error err;
        if (parse(public[i].config, &c, &err))
            fail_msg("%s: %s", public[i].name, err.what);
        nrg_llm_shape_make(&s, &c);
        if (s.params != public[i].params)
            fail_msg("%s has %.0f parameters, not %.0f", public[i].name, public[i].params,
                     s.params);
    }
}

/* A tiny model whose work fits on a line: 2 layers, width 8, 4 heads of 2, 2 of them kv. */
static const struct nrg_llm_config tiny = {.layers = 2,
                                           .hidden = 8,
                                           .vocab = 10,
                                           .heads = 4,
                                           .kv_heads = 2,
                                           .head_dim = 2,
                                           .attention_layers = 2,
                                           .intermediate = 16,
                                           .mlp_matrices = 3,
                                           .dense_layers = 2,
                                           .norm_params = 1,
                                           .norms_per_layer = 2,
                                           .dtype = NRG_LLM_BF16};

static void work_of_a_step(void **state)
{
    struct nrg_llm_work w;
    struct nrg_llm_load load = {.batch = 3, .prompt = 4, .output = 2, .gpus = 1, .tp = 1};
    (void)state;
    assert_int_equal(nrg_llm_work_make(&w, &tiny, &load, NULL), 0);
    double layer = 8 * (8 + 4 + 4 + 8) + 3 * 8 * 16, linear = 2 * layer;
    /* Positions 5 and 6 see 5 and 6 tokens: scores and sum are 2 x 8 MACs a pair, 2 layers. */
    assert_true(w.token_macs == linear + 80 + 2 * 16 * 5.5);
    assert_true(w.prompt_macs == 4 * linear + 2 * 16 * (1 + 2 + 3 + 4) + 80);
    assert_true(w.cache_token_bytes == 2 * 2 * (2 * 2 * 2));
    double small = 5 * 8;
    assert_true(w.terms[NRG_LLM_DENSE_BYTES] == 2 * (linear + small + 80));
    assert_true(w.terms[NRG_LLM_CACHE_BYTES] == 3 * 2 * 8 * 2 * 5.5);
    assert_true(w.weight_bytes == 2 * (linear + small + 2 * 80));
    assert_true(w.gpu_bytes == w.weight_bytes + 3 * 6 * w.cache_token_bytes);
    assert_true(w.terms[NRG_LLM_PROMPT_MACS] == 3 * w.prompt_macs / 2);

    load.gpus = 8; /* two key/value heads over eight GPUs: each lies on four */
    load.tp = 8;
    assert_int_equal(nrg_llm_work_make(&w, &tiny, &load, NULL), 0);
    assert_true(w.terms[NRG_LLM_CACHE_BYTES] == 4 * 3 * 2 * 8 * 2 * 5.5);
    load.tp = 3;
    assert_true(nrg_llm_work_make(&w, &tiny, &load, NULL) != 0);
    load.gpus = 3; /* four heads */
    assert_true(nrg_llm_work_make(&w, &tiny, &load, NULL) != 0);
}

/* Experts that are touched, against counting all choices of two experts by three tokens. */
static void touched_experts(void **state)
{
    struct nrg_llm_config c = tiny;
    struct nrg_llm_work w;
    struct nrg_llm_load load = {.batch = 3, .prompt = 4, .output = 2, .gpus = 1, .tp = 1};
    double sum = 0;
    (void)state;
    c.dense_layers = 0;
    c.expert_layers = 2;
    c.experts = 4;
    c.experts_per_token = 1;
    c.expert_intermediate = 16;
    for (int choice = 0; choice < 64; choice++) {
        unsigned seen = 1u << choice % 4 | 1u << choice / 4 % 4 | 1u << choice / 16;
        sum += __builtin_popcount(seen);
    }
    assert_int_equal(nrg_llm_work_make(&w, &c, &load, NULL), 0);
    assert_true(fabs(w.touched_experts - sum / 64) < 1e-12);
    double expert = 3 * 8 * 16 * 2;
    assert_true(fabs(w.terms[NRG_LLM_EXPERT_BYTES] - 2 * expert * sum / 64) < 1e-9);
    load.weights = NRG_LLM_FP8;
    assert_int_equal(nrg_llm_work_make(&w, &c, &load, NULL), 0);
    assert_true(fabs(w.terms[NRG_LLM_EXPERT_BYTES] - expert * sum / 64) < 1e-9);
    assert_true(w.terms[NRG_LLM_UNPACKED] == 2);
}

/* The mean over positions, against adding up. */
static void context_with_a_window(void **state)
{
    (void)state;
    for (int first = 1; first < 12; first++)
        for (int last = first; last < 14; last++)
            for (int window = 0; window < 15; window++) {
                double sum = 0;
                for (int i = first; i <= last; i++)
                    sum += window && i > window ? window : i;
                double mean = nrg_llm_mean_context(first, last, window);
                assert_true(fabs(mean - sum / (last - first + 1)) < 1e-9);
            }
}

/* Published sizes by name, and names that only look like them. */
static void public_names(void **state)
{
    struct nrg_llm_config c;
    struct nrg_error err;
    char base[64];
    (void)state;
    const char *a = nrg_llm_known(&c, "Qwen/Qwen3-Coder-30B-A3B-Instruct", 30e9);
    assert_string_equal(a, nrg_llm_known(&c, "Qwen/Qwen3-30B-A3B-Thinking-2507", NAN));
    assert_string_equal(nrg_llm_known(&c, "meta-llama/Llama-3.1-70B-Instruct", 70e9),
                        nrg_llm_known(&c, "meta-llama/Llama-3.3-70B-Instruct", 70e9));
    assert_string_equal(nrg_llm_known(&c, "deepseek-ai/DeepSeek-R1-0528", 671e9),
                        nrg_llm_known(&c, "deepseek-ai/DeepSeek-V3.1", 671e9));
    assert_null(nrg_llm_known(&c, "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", 32e9));
    assert_null(nrg_llm_known(&c, "nobody/anything", 8e9));
    assert_string_equal(nrg_llm_base_name("a/New-9B-Instruct-2507-FP8", base, sizeof base),
                        "New-9B");
    for (double params = 1e6; params < 1e13; params *= 3)
        for (double part = 1; part > 0.01; part /= 4) {
            nrg_llm_guess(&c, part * params, params);
            if (nrg_llm_config_check(&c, "guess", &err))
                fail_msg("%g of %g: %s", part, params, err.what);
        }
}

/* Each gets one line that names the file and the key, and no number comes of it. */
static void configs_that_lie(void **state)
{
    static const struct {
        const char *config, *says;
    } lies[] = {
        {"", "empty"},
        {"<!doctype html><html>", "HTML"},
        {"[1,2]", "no config.json"},
        {"{\"model_type\":\"llama\"}", "hidden_size is missing"},
        {"{\"hidden_size\":1}", "model_type"},
        {"{\"model_type\":\"unheard_of\"}", "not known"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":-768,\"n_layer\":12,\"n_head\":12,\"n_positions\":1,"
         "\"vocab_size\":5}",
         "n_embd is negative"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_layer\":1e14,\"n_head\":12,\"n_positions\":1,"
         "\"vocab_size\":5}",
         "layers"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":768,\"n_layer\":2.5,\"n_head\":12,\"n_positions\":1,"
         "\"vocab_size\":5}",
         "whole number"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":\"768\",\"n_layer\":2,\"n_head\":12,\"n_positions\":"
         "1,"
         "\"vocab_size\":5}",
         "not a number"},
        {"{\"model_type\":\"gpt2\",\"n_embd\":1000000,\"n_layer\":10000,\"n_head\":10,\"n_"
         "positions\":"
         "1,\"vocab_size\":5}",
         "parameters"},
        {"{\"model_type\":\"llama\",\"hidden_size\":60,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":6,\"num_key_value_heads\":4,\"vocab_size\":9,"
         "\"intermediate_size\":8}",
         "do not divide"},
        {"{\"model_type\":\"mixtral\",\"hidden_size\":64,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":4,\"vocab_size\":9,\"intermediate_size\":8,\"num_local_experts\":"
         "2,"
         "\"num_experts_per_tok\":3}",
         "experts per token"},
        {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":4,\"vocab_size\":9,\"intermediate_size\":8,\"quantization_"
         "config\":{"
         "\"bits\":77}}",
         "quantization_config"},
        {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":6,\"vocab_size\":9,\"intermediate_size\":8}",
         "head dimension is 10.6667"},
        {"{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":4,\"vocab_size\":9}",
         "intermediate size is 0"},
        {"{\"model_type\":\"qwen3\",\"hidden_size\":64,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":4,\"vocab_size\":9,\"intermediate_size\":8,"
         "\"layer_types\":[\"full_attention\"]}",
         "layer_types has not as many"},
        {"{\"model_type\":\"qwen3\",\"hidden_size\":64,\"num_hidden_layers\":2,"
         "\"num_attention_heads\":4,\"vocab_size\":9,\"intermediate_size\":8,"
         "\"layer_types\":[\"full_attention\",7]}",
         "layer_types names"},
        {"{\"model_type\":\"llama\",\"hidden_size\":NaN}", "hidden_size is missing"},
        {"{\"model_type\":\"llama\",\"hidden_size\":-Infinity}", "hidden_size is missing"},
        {"{\"model_type\":\"llama\",\"x\\\":\":NaNa}", "not JSON"},
        {"GGUF\x03", "GGUF"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct nrg_llm_config c;
        struct nrg_error err;
        if (!parse(lies[i].config, &c, &err))
            fail_msg("taken: %s", lies[i].config);
        if (!strstr(err.what, lies[i].says) || strchr(err.what, '\n'))
            fail_msg("%s: %s", lies[i].config, err.what);
        assert_string_equal(err.where, "config.json");
    }
}

/* ---- the law ---- */

/* Rows of six models whose energies and times follow a law of known prices exactly. */
static void fill(struct nrg_dataset *set, bool with_time, double twist)
{
    static const double seconds[NRG_LLM_TERMS] = {6e-5, 4e-13, 4e-13, 2e-13, 4e-15, 6e-15};
    static const double joules[NRG_LLM_TERMS] = {0, 1e-10, 1.2e-10, 1.3e-10, 2e-12, 4e-12};
    struct nrg_draft draft = {0};
    uint32_t at;
    nrg_dataset_init(set);
    for (int row = 0; row < 120; row++) {
        char name[8] = {'m', (char)('a' + row % 6), 0};
        struct nrg_llm_config c;
        struct nrg_llm_work w;
        nrg_llm_guess(&c, 2e9 * (1 + row % 6), 2e9 * (1 + row % 6) * (row % 2 ? 4 : 1));
        struct nrg_llm_load load = {.batch = 1 << (row % 8),
                                    .prompt = 50 * (1 + row % 7),
                                    .output = 100 * (1 + row % 5),
                                    .gpus = 1 << (row % 3),
                                    .tp = 1 << (row % 3)};
        assert_int_equal(nrg_llm_work_make(&w, &c, &load, NULL), 0);
        nrg_draft_clear(&draft);
        double time_s = 0, energy_j = 0;
        for (int t = 0; t < NRG_LLM_COUNTED; t++) {
            double amount = w.terms[t] / load.batch;
            draft.features[nrg_llm_term_columns[t]] = amount;
            time_s += seconds[t] * amount / load.gpus;
            energy_j += joules[t] * amount;
        }
        draft.features[NRG_F_GPUS] = load.gpus;
        draft.features[NRG_F_BATCH] = load.batch;
        draft.features[NRG_F_SEQ] = load.prompt;
        draft.features[NRG_F_TIME_S] = with_time ? time_s : NAN;
        draft.row.model = nrg_dataset_text(set, name, strlen(name));
        draft.row.device = draft.row.kind = draft.row.node = nrg_dataset_text(set, "x", 1);
        draft.row.provenance = nrg_dataset_text(set, "measured", 8);
        draft.row.level = NRG_NODE_MODEL;
        draft.row.energy_j = (energy_j + 150 * load.gpus * time_s) * (name[1] == 'a' ? twist : 1);
        assert_int_equal(nrg_dataset_add(set, &draft, &at), 0);
    }
    nrg_draft_release(&draft);
    assert_int_equal(nrg_dataset_finish(set, NULL), 0);
}

static void finds_a_known_law(void **state)
{
    (void)state;
    for (int with_time = 0; with_time < 2; with_time++) {
        struct nrg_dataset set;
        struct nrg_llm_law law;
        bool mask[200];
        memset(mask, true, sizeof mask);
        fill(&set, with_time, 1);
        assert_int_equal(nrg_llm_law_fit(&law, &set, mask, 0.95, NULL), 0);
        assert_int_equal(law.models, 6);
        assert_true(law.expected_error < 1e-3);
        if (with_time) {
            assert_true(fabs(law.static_w - 150) < 2);
            assert_true(fabs(law.seconds[NRG_LLM_LAUNCHES] / 6e-5 - 1) < 0.02);
            assert_true(fabs(law.joules[NRG_LLM_DENSE_BYTES] / 1e-10 - 1) < 0.05);
        } else {
            assert_true(law.static_w == 0 && law.timed_rows == 0);
        }
        nrg_dataset_release(&set);
    }
}

/* A row outside of the mask may say anything: the law is the same to the last bit. */
static void nothing_of_a_held_out_model(void **state)
{
    struct nrg_dataset one, other;
    struct nrg_llm_law a, b;
    bool mask[200];
    (void)state;
    fill(&one, true, 1);
    fill(&other, true, 7);
    for (size_t i = 0; i < one.n; i++)
        mask[i] = strcmp(one.rows[i].model, "ma") != 0;
    assert_int_equal(nrg_llm_law_fit(&a, &one, mask, 0.95, NULL), 0);
    assert_int_equal(nrg_llm_law_fit(&b, &other, mask, 0.95, NULL), 0);
    assert_memory_equal(a.joules, b.joules, sizeof a.joules);
    assert_memory_equal(&a.width, &b.width, sizeof a.width);
    nrg_dataset_release(&one);
    nrg_dataset_release(&other);
}

/* ---- widths, defaults, other GPUs ---- */

/* Misses of `models` models, four rows each; those of small batches are `small` times as large. */
static size_t make_misses(struct nrg_llm_miss *out, uint32_t models, double small, double bits)
{
    size_t n = 0;
    for (uint32_t m = 0; m < models; m++)
        for (int row = 0; row < 4; row++) {
            double batch = row < 2 ? 8 : 512;
            out[n++] = (struct nrg_llm_miss){
                .error = 0.02 * (1 + (m * 7 + (unsigned)row * 3) % 10) * (row < 2 ? small : 1),
                .group = nrg_llm_group(false, bits, false, 500, batch),
                .model = m};
        }
    return n;
}

static void widths_follow_the_group(void **state)
{
    struct nrg_llm_miss misses[200];
    struct nrg_llm_width even, uneven, few;
    struct nrg_llm_group small = nrg_llm_group(false, 16, false, 500, 8);
    struct nrg_llm_group large = nrg_llm_group(false, 16, false, 500, 512);
    struct nrg_llm_group fp8 = nrg_llm_group(false, 8, false, 500, 512);
    (void)state;
    assert_int_equal(nrg_llm_width_fit(&even, misses, make_misses(misses, 40, 1, 16), 0.15, 0.95),
                     0);
    assert_int_equal(nrg_llm_width_fit(&uneven, misses, make_misses(misses, 40, 4, 16), 0.15, 0.95),
                     0);
    assert_int_equal(nrg_llm_width_fit(&few, misses, make_misses(misses, 3, 1, 16), 0.15, 0.95), 0);
    /* Alike where errors are, else in proportion to them. */
    assert_true(fabs(nrg_llm_width_half(&even, small) / nrg_llm_width_half(&even, large) - 1) <
                0.25);
    assert_true(nrg_llm_width_half(&uneven, small) > 3 * nrg_llm_width_half(&uneven, large));
    /* Many models: nearly the quantile of what was seen, 0.2. Few: wider. */
    assert_true(nrg_llm_width_half(&even, large) > 0.17 && nrg_llm_width_half(&even, large) < 0.3);
    assert_true(nrg_llm_width_half(&few, large) > 1.1 * nrg_llm_width_half(&even, large));
    /* What no model had is twice as wide. */
    assert_true(nrg_llm_width_half(&even, fp8) > 1.8 * nrg_llm_width_half(&even, large));
}

/* Each of 60 models in turn: at least nine tenths of 95 % intervals hold, small batches or large.
 */
static void widths_hold(void **state)
{
    struct nrg_llm_miss all[240], rest[240];
    double held[2] = {0, 0};
    size_t n = make_misses(all, 60, 3, 16);
    (void)state;
    for (uint32_t out = 0; out < 60; out++) {
        struct nrg_llm_width w;
        size_t kept = 0;
        for (size_t i = 0; i < n; i++)
            if (all[i].model != out)
                rest[kept++] = all[i];
        assert_int_equal(nrg_llm_width_fit(&w, rest, kept, 0.15, 0.95), 0);
        for (size_t i = 0; i < n; i++)
            if (all[i].model == out)
                held[all[i].group.level[NRG_LLM_BATCHES] > 0] +=
                    all[i].error <= nrg_llm_width_half(&w, all[i].group);
    }
    assert_true(held[0] >= 0.9 * 120 && held[1] >= 0.9 * 120);
}

static void default_tensor_parallelism(void **state)
{
    struct nrg_llm_config dense, experts;
    (void)state;
    nrg_llm_guess(&dense, 8e9, 8e9);
    nrg_llm_guess(&experts, 3e9, 30e9);
    dense.heads = 32;
    assert_true(nrg_llm_default_tp(&dense, 1) == 1);
    assert_true(nrg_llm_default_tp(&dense, 8) == 8);
    assert_true(nrg_llm_default_tp(&dense, 6) == 2); /* 32 heads are cut into 2, not into 3 or 6 */
    assert_true(nrg_llm_default_tp(&experts, 8) == 1);
}

static void other_gpus(void **state)
{
    struct nrg_error err;
    struct nrg_llm_law law = {.static_w = 100, .timed_rows = 1};
    (void)state;
    const struct nrg_gpu *h100 = nrg_gpu_find("NVIDIA H100 80GB HBM3", &err);
    const struct nrg_gpu *b200 = nrg_gpu_find("b200", &err);
    assert_non_null(h100);
    assert_non_null(b200);
    assert_string_equal(nrg_gpu_find("h100-nvl", &err)->name, "H100 NVL");
    assert_null(nrg_gpu_find("A10G", &err));
    assert_true(nrg_gpu_find("NVIDIA A100 80GB PCIe", &err)->limit_w ==
                300); /* not the SXM's 400 */
    assert_true(nrg_gpu_find("NVIDIA A100-SXM4-80GB", &err)->limit_w == 400);
    assert_non_null(strstr(err.what, "V100"));
    for (int t = 0; t < NRG_LLM_TERMS; t++)
        law.joules[t] = law.seconds[t] = 1;
    assert_int_equal(nrg_llm_law_transfer(&law, "H100", b200, 16, &err), 0);
    assert_true(fabs(law.seconds[NRG_LLM_DENSE_BYTES] - 3.35 / 8) < 1e-12);
    assert_true(fabs(law.seconds[NRG_LLM_MACS] - 989.0 / 2250) < 1e-12);
    assert_true(fabs(law.joules[NRG_LLM_MACS] - 989.0 / 2250 / 0.7) < 1e-12);
    assert_true(law.joules[NRG_LLM_DENSE_BYTES] == 1 && law.seconds[NRG_LLM_LAUNCHES] == 1);
    assert_true(fabs(law.static_w - 100 / 0.7) < 1e-9 && law.carried_ln > 0);
    assert_int_equal(nrg_llm_law_transfer(&law, "Z9", b200, 16, &err), -ENODEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_of_public_configs),
        cmocka_unit_test(work_of_a_step),
        cmocka_unit_test(touched_experts),
        cmocka_unit_test(context_with_a_window),
        cmocka_unit_test(public_names),
        cmocka_unit_test(configs_that_lie),
        cmocka_unit_test(finds_a_known_law),
        cmocka_unit_test(nothing_of_a_held_out_model),
        cmocka_unit_test(widths_follow_the_group),
        cmocka_unit_test(widths_hold),
        cmocka_unit_test(default_tensor_parallelism),
        cmocka_unit_test(other_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
