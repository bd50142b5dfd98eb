/*
 * llm/proxy/scan: events that begin alike are read once, and say what they say when each byte comes
 * alone, where nothing can be left out.
 */
#include <string.h>

#include "llm/proxy/scan.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_that_begin_alike),
        cmocka_unit_test(openings_that_say_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
