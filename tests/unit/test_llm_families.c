/*
 * Language models of other kinds than a plain decoder: states of fixed size, encoders, parts for
 * pictures, sizes by hand; and what is said of those that are not known.
 */
#include <string.h>

#include "predict/llm/forecast.h"
#include "support/cmocka.h"

static int parse(const char *text, struct nrg_llm_config *c, struct nrg_error *err)
{
    *err = (struct nrg_error){0};
    return nrg_llm_config_read_bytes(c, (const uint8_t *)text, strlen(text), "config.json", false,
                                     err);
}

static struct nrg_llm_work work_of(const char *text, double prompt, double output)
{
    struct nrg_llm_config c;
    struct nrg_llm_work w = {0};
    struct nrg_error err;
    const struct nrg_llm_load load = {
        .batch = 2, .prompt = prompt, .output = output, .gpus = 1, .tp = 1};
    if (parse(text, &c, &err) || nrg_llm_work_make(&w, &c, &load, &err))
        fail_msg("%s", err.what);
    return w;
}

/* Mamba: an inner width of 8, 3 states and 4 taps for each of its elements, in 32 bits. */
static void a_state_is_as_large_at_any_length(void **state)
{
    static const char mamba[] =
        "{\"model_type\":\"mamba\",\"hidden_size\":4,\"num_hidden_layers\":2,\"state_size\":3,"
        "\"conv_kernel\":4,\"expand\":2,\"time_step_rank\":1,\"vocab_size\":10}";
    struct nrg_llm_work a = work_of(mamba, 5, 1), b = work_of(mamba, 5000, 1000);
    (void)state;
    assert_true(a.cache_bytes == 2 * 4.0 * 2 * 8 * (3 + 4));
    assert_true(a.cache_bytes == b.cache_bytes && a.token_macs == b.token_macs);
    assert_true(a.cache_token_bytes == 0 && a.attention_macs == 0);
    assert_true(a.state_bytes == a.cache_bytes / 2);
    assert_true(a.terms[NRG_LLM_CACHE_BYTES] == 2 * a.cache_bytes); /* read and written */
    double weights = 3 * 4 * 8 + 8 * (1 + 6) + 8;
    assert_true(a.token_macs == 2 * (weights + 8 * (2 * 3 + 4)) + 40);
    assert_true(b.prompt_macs == 5000 * (a.token_macs - 40) + 40);
}

/* T5: the encoder reads the prompt, each token of the decoder looks at all of it. */
static void an_encoder_reads_the_prompt(void **state)
{
    static const char t5[] = "{\"model_type\":\"t5\",\"d_model\":8,\"d_kv\":3,\"d_ff\":5,"
                             "\"num_layers\":2,\"num_decoder_layers\":3,\"num_heads\":2,"
                             "\"vocab_size\":10}";
    struct nrg_llm_work w = work_of(t5, 7, 2);
    double attention = 4 * 8 * 6, block = 2 * 8 * 5, pair = 2 * 6;
    (void)state;
    assert_true(w.prompt_macs ==
                7 * 2 * (attention + block) + 49 * 2 * pair + 7 * 3 * attention / 2);
    assert_true(w.token_macs == 3 * (attention + attention / 2 + block + pair * (1.5 + 7)) + 80);
    /* Keys and values of 2 tokens of the output and 7 of the prompt, 3 layers, 16 bits. */
    assert_true(w.cache_bytes == 2 * 3 * 2 * 12 * (2 + 7.0));
}

static void sizes_by_hand(void **state)
{
    static const char *const bad[] = {"params=x",
                                      "params=1e9,width=3",
                                      "params=1e9,active=2e9",
                                      "params=1e9,layers=900,hidden=9000",
                                      "params=0",
                                      "params=",
                                      "params=1e9,"};
    struct nrg_llm_config c;
    struct nrg_llm_shape s;
    struct nrg_error err;
    (void)state;
    assert_int_equal(nrg_llm_config_read(&c, "params=7.6e9,layers=28,hidden=3584", &err), 0);
    nrg_llm_shape_make(&s, &c);
    assert_true(c.guessed && c.layers == 28 && c.hidden == 3584);
    assert_true(s.params > 7.5e9 && s.params < 7.7e9);
    assert_int_equal(nrg_llm_config_read(&c, "params=30e9,active=3e9", &err), 0);
    nrg_llm_shape_make(&s, &c);
    assert_true(s.active_params > 2.5e9 && s.active_params < 3.5e9 && s.params > 28e9);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(nrg_llm_config_read(&c, bad[i], &err) < 0 && err.what[0]);
}

static void parts_are_counted_or_named(void **state)
{
    static const char other[] =
        "{\"model_type\":\"other_vl\",\"text_config\":{\"model_type\":\"llama\",\"hidden_size\":8,"
        "\"num_hidden_layers\":1,\"num_attention_heads\":1,\"intermediate_size\":8,\"vocab_size\":"
        "9},\"vision_config\":{\"hidden_size\":4},\"audio_config\":{}}";
    static const char llava[] =
        "{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"llama\",\"vocab_size\":32064},"
        "\"vision_config\":{\"model_type\":\"clip_vision_model\"}}";
    struct nrg_llm_config c;
    struct nrg_error err;
    (void)state;
    assert_int_equal(parse(other, &c, &err), 0);
    assert_string_equal(c.parts[0].what, "vision");
    assert_string_equal(c.parts[1].what, "audio");
    assert_true(c.parts[0].params == 0 && c.parts[1].params == 0 && !c.parts[2].what[0]);
    assert_int_equal(parse(llava, &c, &err), 0);
    assert_true(c.layers == 32 && c.parts[0].params > 8e7);
}

static void unknown_families_get_help(void **state)
{
    struct nrg_llm_config c;
    struct nrg_error err;
    (void)state;
    assert_true(parse("{\"model_type\":\"qwen3.5\"}", &c, &err) < 0);
    assert_non_null(strstr(err.what, "did you mean 'qwen3'"));
    assert_true(parse("{\"model_type\":\"zzzzzzzz\"}", &c, &err) < 0);
    assert_null(strstr(err.what, "did you mean"));
    assert_non_null(strstr(err.what, " mamba ") && strstr(err.what, " distilbert. ")
                        ? strstr(err.what, "params=")
                        : NULL);
    assert_non_null(strstr(err.what, "GGUF"));
}

static void lies_are_refused(void **state)
{
    static const char *const bad[] = {
        "{\"model_type\":\"mamba\",\"hidden_size\":4,\"num_hidden_layers\":2,\"vocab_size\":9,"
        "\"state_size\":0}",
        "{\"model_type\":\"mamba\",\"hidden_size\":4,\"num_hidden_layers\":2,\"vocab_size\":9,"
        "\"state_size\":1e9}",
        "{\"model_type\":\"jamba\",\"hidden_size\":64,\"num_hidden_layers\":4,\"vocab_size\":9,"
        "\"num_attention_heads\":4,\"intermediate_size\":8,\"num_experts\":2,"
        "\"num_experts_per_tok\":1,\"attn_layer_offset\":9}",
        "{\"model_type\":\"llama\",\"hidden_size\":64,\"num_hidden_layers\":1,\"vocab_size\":9,"
        "\"num_attention_heads\":4,\"intermediate_size\":8,"
        "\"layer_types\":[\"linear_attention\"]}",
        "{\"model_type\":\"llava\",\"text_config\":{\"model_type\":\"llama\"},\"vision_config\":"
        "{\"model_type\":\"clip_vision_model\",\"hidden_size\":1e14}}",
    };
    struct nrg_llm_config c;
    struct nrg_error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(parse(bad[i], &c, &err) < 0 && err.what[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_is_as_large_at_any_length),
        cmocka_unit_test(an_encoder_reads_the_prompt),
        cmocka_unit_test(sizes_by_hand),
        cmocka_unit_test(parts_are_counted_or_named),
        cmocka_unit_test(unknown_families_get_help),
        cmocka_unit_test(lies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
