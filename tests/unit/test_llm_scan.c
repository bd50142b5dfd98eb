/*
 * llm/proxy/scan: events that begin alike are read once, and say what they say when each byte comes
 * alone, where nothing can be left out.
 */
#include <string.h>

#include "llm/proxy/scan.h"
#include "sensors/channel.h" /* NRG_MISSING */
#include "support/cmocka.h"

#define CHAT(model, text, rest)                                                                    \
    "data: {\"model\":\"" model "\",\"choices\":[{\"delta\":{\"content\":\"" text "\"}}]" rest     \
    "}\n\n"
#define USAGE ",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3}"

static struct nrg_llm_seen read_in_parts(const char *text, enum nrg_scan_form form, size_t part)
{
    struct nrg_llm_scan scan;
    size_t n = strlen(text);
    nrg_llm_scan_init(&scan, form);
    for (size_t i = 0; i < n; i += part)
        nrg_llm_scan_feed(&scan, text + i, n - i < part ? n - i : part);
    return scan.seen;
}

static void check(const char *text, enum nrg_scan_form form, uint64_t texts, uint64_t lies,
                  const char *model, int64_t input)
{
    for (size_t part = 1; part <= strlen(text); part++) {
        struct nrg_llm_seen seen = read_in_parts(text, form, part);
        assert_int_equal(seen.texts, texts);
        assert_int_equal(seen.lies, lies);
        assert_string_equal(seen.model, model);
        assert_int_equal(seen.input, input);
    }
}

static void events_that_begin_alike(void **state)
{
    (void)state;
    check(CHAT("m", "a", "") CHAT("m", "", "") CHAT("m", "\\\"", "") CHAT("m", "b", USAGE),
          NRG_SCAN_EVENTS, 3, 0, "m", 7);
    /* Another model in between, and one behind the text. */
    check(CHAT("m", "a", USAGE) CHAT("n", "b", "") CHAT("m", "c", ""), NRG_SCAN_EVENTS, 3, 0, "m",
          7);
    check(CHAT("m", "a", USAGE) CHAT("m", "b", ",\"model\":\"n\"") CHAT("m", "c", ""),
          NRG_SCAN_EVENTS, 3, 0, "m", 7);
}

static void openings_that_say_something(void **state)
{
    (void)state;
    check("{\"prompt_eval_count\":5,\"response\":\"a\"}\n{\"prompt_eval_count\":6,\"response\":"
          "\"b\"}\n"
          "{\"prompt_eval_count\":5,\"response\":\"c\"}\n",
          NRG_SCAN_LINES, 3, 0, "", 5);
    check("{\"prompt_eval_count\":5}\n{\"eval_count\":-1,\"response\":\"b\"}\n"
          "{\"eval_count\":-1,\"response\":\"c\"}\n",
          NRG_SCAN_LINES, 2, 2, "", 5);
    /* The type before the text says whether it is one. */
    check("{\"type\":\"response.x.delta\",\"delta\":\"a\"}\n{\"type\":\"response.x.done\","
          "\"delta\":\"a\"}\n"
          "{\"type\":\"response.x.done\",\"delta\":\"b\"}\n{\"type\":\"response.x.delta\","
          "\"delta\":\"b\"}\n"
          "{\"type\":\"response.x.delta\",\"delta\":\"c\",\"prompt_eval_count\":5}\n",
          NRG_SCAN_LINES, 3, 0, "", 5);
}

#define SGLANG(index, input, output)                                                               \
    "{\"text\":\"a\",\"meta_info\":{\"prompt_tokens\":" #input ",\"completion_tokens\":" #output   \
    "},\"index\":" #index "}"

/* Several prompts in a request: SGLang's and llama.cpp's answers are lists. */
static void lists_of_answers(void **state)
{
    (void)state;
    check("[" SGLANG(0, 7, 3) ", " SGLANG(1, 5, 4) "," SGLANG(2, 1, 1) "]", NRG_SCAN_JSON, 1, 0, "",
          13);
    assert_int_equal(
        read_in_parts("[" SGLANG(0, 7, 3) "," SGLANG(1, 5, 4) "]", NRG_SCAN_JSON, 9).output, 7);
    check("[{\"tokens_evaluated\":7,\"x\":[{}]},{\"index\":1},{\"tokens_evaluated\":2}]",
          NRG_SCAN_JSON, 0, 0, "", 9);
    /* A stream of one is known by its last event, of several by its texts alone. */
    check("data: " SGLANG(0, 7, 3) "\n\ndata: " SGLANG(0, 7, 4) "\n\n", NRG_SCAN_EVENTS, 2, 0, "",
          7);
    check("data: " SGLANG(0, 7, 3) "\n\ndata: " SGLANG(1, 5, 4) "\n\ndata: " SGLANG(1, 5, 5) "\n\n",
          NRG_SCAN_EVENTS, 3, 0, "", NRG_MISSING);
    /* TGI's index is the token's. */
    check("data: {\"index\":1,\"token\":{\"text\":\"a\"},\"details\":null}\n\n"
          "data: {\"index\":2,\"token\":{\"text\":\"b\"},\"details\":{\"input_length\":6}}\n\n",
          NRG_SCAN_EVENTS, 2, 0, "", 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_that_begin_alike),
        cmocka_unit_test(openings_that_say_something),
        cmocka_unit_test(lists_of_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
