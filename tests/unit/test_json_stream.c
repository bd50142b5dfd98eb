/* JSON from a stream: tokens, places of errors, deviations, limits; and compressed input. */
#include "support/cmocka.h"
#include "support/tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/input.h"
#include "base/json/stream.h"
#include "base/parse.h"

/* All tokens as text: brackets as they are, k:KEY s:STRING n:NUMBER, ! and the message. */
static void tokens(const char *text, size_t len, unsigned flags, char *out, size_t size)
{
    static const char *const marks[] = {
        "", "{", "}", "[", "]", "k:", "s:", "n:", "true", "false", "null"};
    struct nrg_json_stream s;
    struct nrg_error err = {0};
    FILE *in = fmemopen((void *)(uintptr_t)text, len, "r");
    int token;
    size_t n = 0;
    assert_non_null(in);
    assert_int_equal(nrg_json_init(&s, in, "doc", flags), 0);
    out[0] = '\0';
    while ((token = nrg_json_next(&s, &err)) > 0) {
        bool texts = token >= NRG_JSON_KEY && token <= NRG_JSON_NUMBER;
        n += (size_t)snprintf(out + n, size - n, "%s%s%s", n ? " " : "", marks[token],
                              texts ? s.text : "");
        assert_true(n < size);
    }
    if (token < 0)
        snprintf(out + n, size - n, " !%lld %s", err.offset, err.what);
    else if (s.truncated)
        snprintf(out + n, size - n, " cut");
    if (token == 0)
        assert_int_equal(nrg_json_next(&s, &err), NRG_JSON_END);
    nrg_json_release(&s);
    fclose(in);
}

static void check(const char *text, unsigned flags, const char *expected)
{
    char out[2000];
    tokens(text, strlen(text), flags, out, sizeof out);
    assert_string_equal(out, expected);
}

static void good_documents(void **state)
{
    (void)state;
    check(" {\"a\": [1, -2.5e3, true,false , null], \"b\":{}, \"c\":[]}\n", 0,
          "{ k:a [ n:1 n:-2.5e3 true false null ] k:b { } k:c [ ] }");
    check("\xef\xbb\xbf[\"\\u00e9\\ud83d\\ude00\\n\\\"\\\\\\/\"]", 0,
          "[ s:\xc3\xa9\xf0\x9f\x98\x80\n\"\\/ ]");
    check("[\"\\ud800x\", \"\\udc00\", \"\\u12\"]", 0, "[ s:?x s:? s:?12 ]");
    check("[NaN, Infinity, -Infinity, inf]", 0, "[ n:NaN n:Infinity n:-Infinity n:inf ]");
    check("12", 0, "n:12");
    check("", 0, "");
    check("   ", 0, "");
}

static void bad_documents(void **state)
{
    (void)state;
    check("[1 2]", 0, "[ n:1 !3 ',' or a closing bracket is missing");
    check("[1,]", 0, "[ n:1 !3 a value is missing");
    check("[1}", 0, "[ n:1 !2 '}' closes what '[' opened");
    check("{\"a\" 1}", 0, "{ !5 ':' is missing behind a name");
    check("{a: 1}", 0, "{ !1 a name in quotes is missing");
    check("{\"a\": 1,}", 0, "{ k:a n:1 !8 a name in quotes is missing");
    check("[tru]", 0, "[ !4 'tru' is not a value");
    check("[1] x", 0, "[ n:1 ] !4 something follows the end");
    check("[[1", 0, "[ [ !3 the file ends inside of a value: was it cut off?");
    check("{\"a\": \"b", 0, "{ k:a !8 the file ends inside of a value: was it cut off?");
}

static void cut_documents(void **state)
{
    (void)state;
    check("[{\"a\": 1}, {\"b\": 12", NRG_JSON_MAY_BE_CUT, "[ { k:a n:1 } { k:b cut");
    check("[{\"a\": 1},\n", NRG_JSON_MAY_BE_CUT, "[ { k:a n:1 } cut");
    check("[{\"a\": 1},\n]", NRG_JSON_MAY_BE_CUT, "[ { k:a n:1 } ]");
    check("[{\"a", NRG_JSON_MAY_BE_CUT, "[ { cut");
    check("[1 2", NRG_JSON_MAY_BE_CUT, "[ n:1 !3 ',' or a closing bracket is missing");
}

static void texts_without_escapes(void **state)
{
    (void)state;
    check("[{\"name\" :\"a \"quoted\" C:\\new\", \"x\":1},{\"name\":\"}\"},{\"n\":\"a\",\"b\":[]}]",
          NRG_JSON_RAW_TEXTS,
          "[ { k:name s:a \"quoted\" C:\\new k:x n:1 } { k:name s:} } { k:n s:a k:b [ ] } ]");
    check("[\"ends with a backslash\\\", 1]", NRG_JSON_RAW_TEXTS,
          "[ s:ends with a backslash\\ n:1 ]");
    check("[\"line\nend\"]", NRG_JSON_RAW_TEXTS, "[ s:line\nend ]");
}

static void depth_is_limited(void **state)
{
    char text[NRG_JSON_DEPTH + 2], out[600];
    (void)state;
    memset(text, '[', sizeof text);
    tokens(text, sizeof text, 0, out, sizeof out);
    assert_non_null(strstr(out, "brackets are open"));
}

/* Texts across the buffer's edge, and longer than may be kept. */
static void long_texts(void **state)
{
    enum { LENGTH = 400000 };
    char *text = malloc(LENGTH + 64);
    (void)state;
    assert_non_null(text);
    for (size_t len = 131060; len < 131090; len++) {
        struct nrg_json_stream s;
        struct nrg_error err;
        text[0] = '[';
        text[1] = '"';
        memset(text + 2, 'x', len);
        strcpy(text + 2 + len, "\\n\", \"next\", 17]");
        FILE *in = fmemopen(text, strlen(text), "r");
        assert_int_equal(nrg_json_init(&s, in, "doc", 0), 0);
        assert_int_equal(nrg_json_next(&s, &err), NRG_JSON_ARRAY);
        assert_int_equal(nrg_json_next(&s, &err), NRG_JSON_STRING);
        assert_true(s.cut);
        assert_int_equal(s.len, NRG_JSON_TEXT_MAX);
        assert_int_equal(nrg_json_next(&s, &err), NRG_JSON_STRING);
        assert_string_equal(s.text, "next");
        assert_false(s.cut);
        assert_int_equal(nrg_json_next(&s, &err), NRG_JSON_NUMBER);
        assert_string_equal(s.text, "17");
        nrg_json_release(&s);
        fclose(in);
    }
    free(text);
}

static void skipping(void **state)
{
    static const char text[] = "{\"a\": [[{\"x\": \"]}\\\"\"}]], \"b\": 3, \"c\": {\"d\": [1, 2]}, "
                               "\"e\": \"f\", \"g\": [7]}";
    struct nrg_json_stream s;
    struct nrg_error err;
    FILE *in = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
    (void)state;
    assert_int_equal(nrg_json_init(&s, in, "doc", 0), 0);
    assert_int_equal(nrg_json_next(&s, &err), NRG_JSON_OBJECT);
    for (const char *key = "abce"; *key; key++) {
        assert_int_equal(nrg_json_next(&s, &err), NRG_JSON_KEY);
        assert_int_equal(s.text[0], *key);
        assert_int_equal(nrg_json_skip_value(&s, &err), 0);
    }
    assert_int_equal(nrg_json_next(&s, &err), NRG_JSON_KEY);
    assert_int_equal(nrg_json_next(&s, &err), NRG_JSON_ARRAY);
    assert_int_equal(nrg_json_skip_rest(&s, &err), 0);
    assert_int_equal(nrg_json_next(&s, &err), NRG_JSON_OBJECT_END);
    assert_int_equal(nrg_json_next(&s, &err), NRG_JSON_END);
    nrg_json_release(&s);
    fclose(in);
}

static void scaled_numbers(void **state)
{
    static const struct {
        const char *text;
        int power, code;
        int64_t value;
    } cases[] = {
        {"1700000000123456.789", 3, 0, INT64_C(1700000000123456789)},
        {"0.0687040016055107", 6, 0, 68704},
        {"1.5e-05", 6, 0, 15},
        {"1e3", 0, 0, 1000},
        {"2.5", 0, 0, 3},
        {"-2.4", 0, 0, -2},
        {"0.0000000000000000000000000000004", 9, 0, 0},
        {"123456789012345678901234567890", 0, -ERANGE, 0},
        {"123456789012345678901234567890e-20", 0, 0, INT64_C(1234567890)},
        {"9223372036854775807", 0, 0, INT64_MAX},
        {"9223372036854775808", 0, -ERANGE, 0},
        {"1e2000000000", 0, -ERANGE, 0},
        {"1e", 0, -EINVAL, 0},
        {"", 0, -EINVAL, 0},
        {".", 0, -EINVAL, 0},
        {"1.2.3", 0, -EINVAL, 0},
        {"NaN", 0, -EINVAL, 0},
        {"--1", 0, -EINVAL, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 0;
        int rc = nrg_parse_scaled(cases[i].text, strlen(cases[i].text), cases[i].power, &value);
        if (rc != cases[i].code || value != cases[i].value)
            print_message("# %s: %d, %lld\n", cases[i].text, rc, (long long)value);
        assert_int_equal(rc, cases[i].code);
        assert_int_equal(value, cases[i].value);
    }
}

/* gzip itself packs; two members; cut off; damaged. */
static void compressed_input(void **state)
{
    struct tree t;
    struct nrg_input input;
    struct nrg_error err;
    char command[700], path[200], line[64];
    (void)state;
    if (system("command -v gzip >/dev/null"))
        skip();
    tree_init(&t);
    snprintf(path, sizeof path, "%s/both.gz", t.path);
    snprintf(command, sizeof command,
             "cd %s && seq 1 60000 | gzip > both.gz && seq 60001 100000 | gzip >> both.gz && "
             "head -c 9000 both.gz > cut.gz && "
             "{ head -c 3000 both.gz; printf damaged; tail -c +3008 both.gz; } > bad.gz",
             t.path);
    assert_int_equal(system(command), 0);
    assert_int_equal(nrg_input_open(&input, path, &err), 0);
    for (int round = 0; round < 2; round++) {
        long expected = 0;
        while (fgets(line, sizeof line, input.in))
            assert_int_equal(atol(line), ++expected);
        assert_int_equal(expected, 100000);
        assert_int_equal(nrg_input_done_bytes(&input), input.size_bytes);
        rewind(input.in);
    }
    nrg_input_close(&input);

    snprintf(path, sizeof path, "%s/cut.gz", t.path);
    assert_int_equal(nrg_input_open(&input, path, &err), 0);
    long n = 0;
    while (fgets(line, sizeof line, input.in))
        n++;
    assert_true(n > 100 && n < 60000);
    assert_false(ferror(input.in));
    nrg_input_close(&input);

    snprintf(path, sizeof path, "%s/bad.gz", t.path);
    assert_int_equal(nrg_input_open(&input, path, &err), 0);
    while (fgets(line, sizeof line, input.in))
        ;
    assert_true(ferror(input.in));
    nrg_input_close(&input);
    assert_int_equal(nrg_input_open(&input, t.path, &err), -EINVAL);
    snprintf(path, sizeof path, "%s/none", t.path);
    assert_int_equal(nrg_input_open(&input, path, &err), -ENOENT);
    tree_release(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_documents),   cmocka_unit_test(bad_documents),
        cmocka_unit_test(cut_documents),    cmocka_unit_test(texts_without_escapes),
        cmocka_unit_test(depth_is_limited), cmocka_unit_test(long_texts),
        cmocka_unit_test(skipping),         cmocka_unit_test(scaled_numbers),
        cmocka_unit_test(compressed_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
