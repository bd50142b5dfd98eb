/* sensors/llm: pages of metrics, sound and broken, and the counts that are made of them. */
#include <math.h>
#include <string.h>

#include "sensors/llm/exposition.h"
#include "sensors/llm/families.h"
#include "support/cmocka.h"

static struct nrg_server_page read_page(const char *text)
{
    static char copy[8192];
    struct nrg_server_page page;
    size_t len = strlen(text);
    assert_true(len < sizeof copy);
    memcpy(copy, text, len);
    nrg_server_page_read(copy, len, &page);
    return page;
}

static void sums_over_labels(void **state)
{
    (void)state;
    struct nrg_server_page p =
        read_page("# TYPE vllm:prompt_tokens_total counter\r\n"
                  "vllm:prompt_tokens_total{engine=\"0\",m=\"a}\\\"\"} 1.5e3 171234\r\n"
                  "vllm:prompt_tokens_total{engine=\"1\"} 500 # {id=\"x\"} 1\n"
                  "vllm:prompt_tokens_created{engine=\"1\"} 1.7e9\n"
                  "vllm:generation_tokens_total 42\n"
                  "vllm:gpu_prefix_cache_hits_total 7\n"
                  "vllm:prefix_cache_hits_total 9\n"
                  "vllm:iteration_tokens_total_count 11\n"
                  "  vllm:num_requests_running{engine=\"0\"}\t2\n"
                  "vllm:num_requests_running{engine=\"1\"} 3");
    assert_string_equal(p.family, "vLLM");
    assert_true(p.value[NRG_SERVER_PROMPT_TOKENS] == 2000);
    assert_true(p.value[NRG_SERVER_OUTPUT_TOKENS] == 42);
    assert_true(p.value[NRG_SERVER_CACHED_TOKENS] == 9); /* the newer name */
    assert_true(p.value[NRG_SERVER_STEPS] == 11);
    assert_true(p.value[NRG_SERVER_RUNNING] == 5);
    assert_true(isnan(p.value[NRG_SERVER_WAITING]));
    assert_int_equal(p.refused, 0);
    assert_null(p.wrong);
}

/* Without the bad one, the sum would look like a server that began anew. */
static void a_bad_sample_spoils_its_sum(void **state)
{
    (void)state;
    struct nrg_server_page p = read_page("vllm:generation_tokens_total{engine=\"0\"} 42\n"
                                         "vllm:generation_tokens_total{engine=\"1\"} NaN\n"
                                         "vllm:prompt_tokens_total 7\n");
    assert_string_equal(p.family, "vLLM");
    assert_string_equal(p.wrong, "vllm:generation_tokens_total");
    assert_true(isnan(p.value[NRG_SERVER_OUTPUT_TOKENS]));
    assert_true(p.value[NRG_SERVER_PROMPT_TOKENS] == 7);
}

static void picks_samples_by_label(void **state)
{
    (void)state;
    struct nrg_server_page p =
        read_page("sglang:realtime_tokens_total{model=\"m\",mode=\"prefill_compute\"} 90\n"
                  "sglang:realtime_tokens_total{model=\"m\",mode=\"decode\"} 8\n"
                  "sglang:realtime_tokens_total{model=\"m\",mode=\"prefill_cache\"} 30\n"
                  "sglang:prompt_tokens_total 70\n" /* when requests end, the others at once */
                  "sglang:cached_tokens_total{cache_source=\"device\"} 20\n"
                  "sglang:generation_tokens_total 5\n");
    assert_string_equal(p.family, "SGLang");
    assert_true(p.value[NRG_SERVER_OUTPUT_TOKENS] == 8);
    assert_true(p.value[NRG_SERVER_PROMPT_TOKENS] == 120);
    assert_true(p.value[NRG_SERVER_CACHED_TOKENS] == 30);
}

/* Two groups of two: each rank of a group shows what the group does. */
static void counts_a_group_of_ranks_once(void **state)
{
    (void)state;
    struct nrg_server_page p =
        read_page("sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\",pp_rank=\"0\"} 3\n"
                  "sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"1\",pp_rank=\"0\"} 3\n"
                  "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"2\",pp_rank=\"0\"} 5\n"
                  "sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"3\",pp_rank=\"0\"} 5\n"
                  "sglang:realtime_tokens_total{mode=\"decode\",tp_rank=\"0\"} 8\n"
                  "sglang:realtime_tokens_total{mode=\"decode\",tp_rank=\"1\"} 8\n"
                  "sglang:realtime_tokens_total{mode=\"prefill_compute\",tp_rank=\"0\"} 90\n"
                  "sglang:realtime_tokens_total{mode=\"prefill_cache\",tp_rank=\"0\"} 10\n"
                  "sglang:realtime_tokens_total{mode=\"prefill_compute\",tp_rank=\"1\"} 90\n");
    assert_true(p.value[NRG_SERVER_RUNNING] == 8);
    assert_true(p.value[NRG_SERVER_OUTPUT_TOKENS] == 8);
    assert_true(p.value[NRG_SERVER_PROMPT_TOKENS] == 100);
}

static void knows_what_tensorrt_calls_cached(void **state)
{
    (void)state;
    struct nrg_server_page p = read_page("trtllm_prompt_tokens_total{model_name=\"m\"} 90\n"
                                         "trtllm_prompt_cached_tokens_total{model_name=\"m\"} 40\n"
                                         "trtllm_generation_tokens_total{model_name=\"m\"} 8\n");
    assert_string_equal(p.family, "TensorRT-LLM");
    assert_true(p.value[NRG_SERVER_CACHED_TOKENS] == 40);
}

/* One build of llama.cpp sent its page as a JSON text. */
static void reads_a_quoted_page(void **state)
{
    (void)state;
    struct nrg_server_page p = read_page("\"# HELP x\\nllamacpp:prompt_tokens_total 7\\n"
                                         "llamacpp:tokens_predicted_total 3\\n\"");
    assert_string_equal(p.family, "llama.cpp");
    assert_true(p.value[NRG_SERVER_PROMPT_TOKENS] == 7);
    assert_true(p.value[NRG_SERVER_OUTPUT_TOKENS] == 3);
}

static void refuses_what_is_no_count(void **state)
{
    (void)state;
    static const char *const lies[] = {"NaN", "-1", "1e300", "+Inf", "-Inf"};
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        char text[200];
        snprintf(text, sizeof text, "vllm:prompt_tokens_total %s\nvllm:generation_tokens_total 4\n",
                 lies[i]);
        struct nrg_server_page p = read_page(text);
        assert_string_equal(p.wrong, "vllm:prompt_tokens_total");
        assert_true(p.value[NRG_SERVER_OUTPUT_TOKENS] == 4);
    }
}

static void knows_what_is_no_page(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "\n\n",
                                        "<html><body>1</body></html>",
                                        "{\"a\": [1, 2]}",
                                        "vllm:generation_tokens_total",
                                        "vllm:generation_tokens_total{a=\"",
                                        "vllm:generation_tokens_total 0x10",
                                        "\"",
                                        "\\",
                                        "{\"",
                                        "{}"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_null(read_page(texts[i]).family);
    struct nrg_server_page p =
        read_page("python_gc_objects_collected_total{generation=\"0\"} 12\n");
    assert_null(p.family);
    assert_int_equal(p.samples, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_over_labels),
        cmocka_unit_test(a_bad_sample_spoils_its_sum),
        cmocka_unit_test(counts_a_group_of_ranks_once),
        cmocka_unit_test(knows_what_tensorrt_calls_cached),
        cmocka_unit_test(picks_samples_by_label),
        cmocka_unit_test(reads_a_quoted_page),
        cmocka_unit_test(refuses_what_is_no_count),
        cmocka_unit_test(knows_what_is_no_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
