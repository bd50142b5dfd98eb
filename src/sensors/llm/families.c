/*
 * See families.h. Of several names of one count the first that is on the page is taken: names
 * changed over the years, and where a server has a count that is made at every step and one that is
 * made when a request ends, the former is better. Names end as the pages have them; of histograms
 * the sum is the count.
 *
 * SGLang's ranks of tensor and pipeline parallelism may each show the same requests and tokens: of
 * those that share a rank of data parallelism the first one is taken.
 *
 * Known from the projects' documents and sources, not from servers that ran here.
 */
#include "sensors/llm/families.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "sensors/llm/exposition.h"

#define NAMES 4
#define RANKS 256
#define HUGE  9e15 /* beyond that, a double does not count by one */

struct metric {
    const char *name;
    const char *label, *value; /* how the label's value begins; NULL: samples with any are added */
};

struct family {
    const char *name;
    struct metric metrics[NRG_SERVER_COUNTS][NAMES];
};

/* clang-format off */
#define LIKE_VLLM(prefix)                                                                          \
    {                                                                                              \
        [NRG_SERVER_PROMPT_TOKENS] = {{prefix "prompt_tokens_total", 0, 0}},                       \
        [NRG_SERVER_CACHED_TOKENS] = {{prefix "prompt_tokens_cached_total", 0, 0},                 \
                                      {prefix "prompt_cached_tokens_total", 0, 0},                 \
                                      {prefix "prefix_cache_hits_total", 0, 0},                    \
                                      {prefix "gpu_prefix_cache_hits_total", 0, 0}},               \
        [NRG_SERVER_OUTPUT_TOKENS] = {{prefix "generation_tokens_total", 0, 0}},                   \
        [NRG_SERVER_FINISHED] = {{prefix "request_success_total", 0, 0}},                          \
        [NRG_SERVER_STEPS] = {{prefix "iteration_tokens_total_count", 0, 0}},                      \
        [NRG_SERVER_RUNNING] = {{prefix "num_requests_running", 0, 0}},                            \
        [NRG_SERVER_WAITING] = {{prefix "num_requests_waiting", 0, 0}},                            \
    }

static const struct family families[] = {
    {"vLLM", LIKE_VLLM("vllm:")},
    {"SGLang",
     {[NRG_SERVER_PROMPT_TOKENS] = {{"sglang:realtime_tokens_total", "mode", "prefill_"},
                                    {"sglang:prompt_tokens_total", 0, 0}},
      [NRG_SERVER_CACHED_TOKENS] = {{"sglang:realtime_tokens_total", "mode", "prefill_cache"},
                                    {"sglang:cached_tokens_total", 0, 0}},
      [NRG_SERVER_OUTPUT_TOKENS] = {{"sglang:realtime_tokens_total", "mode", "decode"},
                                    {"sglang:generation_tokens_total", 0, 0}},
      [NRG_SERVER_FINISHED] = {{"sglang:num_requests_total", 0, 0}},
      [NRG_SERVER_RUNNING] = {{"sglang:num_running_reqs", 0, 0}},
      [NRG_SERVER_WAITING] = {{"sglang:num_queue_reqs", 0, 0}}}},
    {"llama.cpp",
     {[NRG_SERVER_PROMPT_TOKENS] = {{"llamacpp:prompt_tokens_total", 0, 0}},
      [NRG_SERVER_OUTPUT_TOKENS] = {{"llamacpp:tokens_predicted_total", 0, 0}},
      [NRG_SERVER_STEPS] = {{"llamacpp:n_decode_total", 0, 0}},
      [NRG_SERVER_RUNNING] = {{"llamacpp:requests_processing", 0, 0}},
      [NRG_SERVER_WAITING] = {{"llamacpp:requests_deferred", 0, 0}}}},
    {"TGI",
     {[NRG_SERVER_PROMPT_TOKENS] = {{"tgi_request_input_length_sum", 0, 0}},
      [NRG_SERVER_OUTPUT_TOKENS] = {{"tgi_request_generated_tokens_sum", 0, 0}},
      [NRG_SERVER_FINISHED] = {{"tgi_request_success", 0, 0}, {"tgi_request_success_total", 0, 0}},
      [NRG_SERVER_STEPS] = {{"tgi_batch_inference_count", 0, 0}},
      [NRG_SERVER_RUNNING] = {{"tgi_batch_current_size", 0, 0}},
      [NRG_SERVER_WAITING] = {{"tgi_queue_size", 0, 0}}}},
    {"TensorRT-LLM", LIKE_VLLM("trtllm_")},
    {"TensorRT-LLM", LIKE_VLLM("trtllm:")},
    {"TensorRT-LLM on Triton",
     {[NRG_SERVER_PROMPT_TOKENS] = {{"nv_llm_input_token_len_sum", 0, 0}},
      [NRG_SERVER_OUTPUT_TOKENS] = {{"nv_llm_output_token_len_sum", 0, 0}},
      [NRG_SERVER_FINISHED] = {{"nv_inference_request_success", 0, 0}},
      [NRG_SERVER_RUNNING] = {{"nv_trt_llm_request_metrics", "request_type", "scheduled"}},
      [NRG_SERVER_WAITING] = {{"nv_trt_llm_request_metrics", "request_type", "waiting"}}}},
};
/* clang-format on */
#define FAMILIES (sizeof families / sizeof *families)

/* The rank whose samples of a metric stand for all of its group. */
struct rank {
    const struct metric *metric;
    int64_t group, tensor, pipe;
};

struct sums {
    struct rank ranks[RANKS];
    size_t n_ranks;
    double value[FAMILIES][NRG_SERVER_COUNTS][NAMES];
    bool seen[FAMILIES][NRG_SERVER_COUNTS][NAMES];
    const char *wrong[FAMILIES];
};

static bool is_called(const struct nrg_exposition_sample *s, const struct metric *m)
{
    size_t len;
    if (!m->name || strlen(m->name) != s->name_len || memcmp(m->name, s->name, s->name_len))
        return false;
    const char *value = m->label ? nrg_exposition_label(s, m->label, &len) : NULL;
    return !m->label ||
           (value && len >= strlen(m->value) && !memcmp(value, m->value, strlen(m->value)));
}

/* -1: the sample has no such label, or it is no number. */
static int64_t rank_of(const struct nrg_exposition_sample *s, const char *label)
{
    size_t len;
    int64_t rank;
    const char *value = nrg_exposition_label(s, label, &len);
    return value && !nrg_parse_i64(value, len, &rank) ? rank : -1;
}

static bool is_repeated(struct sums *sums, const struct metric *m,
                        const struct nrg_exposition_sample *s)
{
    int64_t tensor = rank_of(s, "tp_rank"), pipe = rank_of(s, "pp_rank");
    if (tensor < 0 && pipe < 0)
        return false;
    struct rank rank = {m, rank_of(s, "dp_rank"), tensor, pipe};
    for (size_t i = 0; i < sums->n_ranks; i++)
        if (sums->ranks[i].metric == m && sums->ranks[i].group == rank.group)
            return sums->ranks[i].tensor != tensor || sums->ranks[i].pipe != pipe;
    if (sums->n_ranks < RANKS)
        sums->ranks[sums->n_ranks++] = rank;
    return false;
}

static void add_sample(struct sums *sums, size_t f, const struct nrg_exposition_sample *s)
{
    for (size_t c = 0; c < NRG_SERVER_COUNTS; c++)
        for (size_t n = 0; n < NAMES; n++) {
            const struct metric *m = &families[f].metrics[c][n];
            if (!is_called(s, m) || is_repeated(sums, m, s))
                continue;
            if (s->value >= 0 && s->value < HUGE) {
                sums->value[f][c][n] += s->value;
            } else {
                sums->wrong[f] = m->name;
                sums->value[f][c][n] = NAN; /* a sum without it would look like a reset */
            }
            sums->seen[f][c][n] = true;
        }
}

static double pick(const struct sums *sums, size_t f, size_t c)
{
    for (size_t n = 0; n < NAMES; n++)
        if (sums->seen[f][c][n])
            return sums->value[f][c][n] < HUGE ? sums->value[f][c][n] : NAN;
    return NAN;
}

static bool counts_output(const struct sums *sums, size_t f)
{
    bool seen = false;
    for (size_t n = 0; n < NAMES; n++)
        seen |= sums->seen[f][NRG_SERVER_OUTPUT_TOKENS][n];
    return seen;
}

void nrg_server_page_read(char *page, size_t len, struct nrg_server_page *out)
{
    struct nrg_exposition e;
    struct nrg_exposition_sample s;
    struct sums sums = {0};
    nrg_exposition_init(&e, page, len);
    while (nrg_exposition_next(&e, &s))
        for (size_t f = 0; f < FAMILIES; f++)
            add_sample(&sums, f, &s);
    *out = (struct nrg_server_page){.samples = e.samples, .refused = e.refused};
    for (size_t c = 0; c < NRG_SERVER_COUNTS; c++)
        out->value[c] = NAN;
    for (size_t f = 0; f < FAMILIES && !out->family; f++) {
        if (!counts_output(&sums, f))
            continue;
        out->family = families[f].name;
        out->wrong = sums.wrong[f];
        for (size_t c = 0; c < NRG_SERVER_COUNTS; c++)
            out->value[c] = pick(&sums, f, c);
    }
}

const char *nrg_server_channel(enum nrg_server_count count)
{
    static const char *const names[NRG_SERVER_COUNTS] = {
        [NRG_SERVER_PROMPT_TOKENS] = "llm.prompt_tokens",
        [NRG_SERVER_CACHED_TOKENS] = "llm.cached_tokens",
        [NRG_SERVER_OUTPUT_TOKENS] = "llm.output_tokens",
        [NRG_SERVER_FINISHED] = "llm.finished",
        [NRG_SERVER_STEPS] = "llm.steps",
        [NRG_SERVER_RUNNING] = "llm.running",
        [NRG_SERVER_WAITING] = "llm.waiting",
    };
    return names[count];
}

void nrg_server_families_say(char *text, size_t size)
{
    size_t len = 0;
    text[0] = '\0';
    for (size_t f = 0; f < FAMILIES && len + 1 < size; f++)
        len += (size_t)snprintf(text + len, size - len, "%s%s (%s)", f ? ", " : "",
                                families[f].metrics[NRG_SERVER_OUTPUT_TOKENS][0].name,
                                families[f].name);
}
