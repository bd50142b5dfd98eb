/* meter_uri: parts of a URI, escapes, keys that were not read, and the place of faults. */
#include "support/cmocka.h"

#include <errno.h>
#include <string.h>

#include "sensors/meter/uri.h"

struct values {
    double share;
    int node;
    int64_t period_ns, average_ns;
    char name[8];
    bool start;
};

static const struct nrg_uri_key keys[] = {
    NRG_URI_NUMBER("share", struct values, share, 0, 1),
    NRG_URI_COUNT("node", struct values, node, 0, 30),
    NRG_URI_DURATION("period", struct values, period_ns),
    NRG_URI_DURATION("average", struct values, average_ns),
    NRG_URI_COPY("name", struct values, name),
    NRG_URI_WORD("from", struct values, start, "end", "start"),
    {0},
};

static void parts(void **state)
{
    struct nrg_uri uri;
    struct values v = {.average_ns = 7};
    (void)state;
    assert_int_equal(
        nrg_uri_parse(&uri,
                      "emonpi:/dev/ttyAMA0?node=5&layout=power1,Vrms*0.01V&period=200ms"
                      "&from=start&name=plug&share=0.5",
                      NULL),
        0);
    assert_string_equal(uri.scheme, "emonpi");
    assert_string_equal(uri.place, "/dev/ttyAMA0");
    assert_string_equal(nrg_uri_text(&uri, "layout"), "power1,Vrms*0.01V");
    assert_null(nrg_uri_text(&uri, "covers"));
    assert_int_equal(nrg_uri_read(&uri, keys, &v, NULL), 0);
    assert_true(v.node == 5 && v.share == 0.5 && v.start);
    assert_int_equal(v.period_ns, 200000000);
    assert_int_equal(v.average_ns, 7); /* not given: kept */
    assert_string_equal(v.name, "plug");
    assert_int_equal(nrg_uri_finish(&uri, NULL), 0);
}

static void escapes(void **state)
{
    struct nrg_uri uri;
    (void)state;
    assert_int_equal(nrg_uri_parse(&uri, "mqtt://u%40x@host/a%2fb?value=%7Bpower%7D%26", NULL), 0);
    assert_string_equal(uri.place, "//u@x@host/a/b");
    assert_string_equal(nrg_uri_text(&uri, "value"), "{power}&");
    /* A path may hold a percent sign. */
    assert_int_equal(nrg_uri_parse(&uri, "emonpi:/tmp/100%25", NULL), 0);
    assert_string_equal(uri.place, "/tmp/100%25");
}

static void commands(void **state)
{
    struct nrg_uri uri;
    (void)state;
    assert_int_equal(nrg_uri_parse(&uri, "exec:grep a? f | my --watts?pattern=x", NULL), 0);
    assert_string_equal(uri.place, "grep a? f | my --watts");
    assert_string_equal(nrg_uri_text(&uri, "pattern"), "x");
    assert_int_equal(nrg_uri_parse(&uri, "exec:ls a?", NULL), 0);
    assert_string_equal(uri.place, "ls a?");
    assert_int_equal(uri.n_query, 0);
}

static void faults(void **state)
{
    static const struct {
        const char *text;
        int at;
    } wrong[] = {
        {"", 1},           {"emonpi", 7},        {"Emon:/dev/x", 1},
        {"emonpi:", 8},    {"emonpi:?a=1", 8},   {"a:/x?b", 6},
        {"a:/x?b=1&", 10}, {"a:/x?b=1&b=2", 10}, {"a:/x?b=%1", 8},
        {"a:/x?b=%00", 8}, {"a:/x?=1", 6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct nrg_uri uri;
        struct nrg_error err;
        assert_int_equal(nrg_uri_parse(&uri, wrong[i].text, &err), -EINVAL);
        assert_int_equal(err.offset, wrong[i].at);
    }
}

static void too_long(void **state)
{
    char text[NRG_URI_TEXT + 8];
    struct nrg_uri uri;
    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "emonpi:", 7);
    text[NRG_URI_TEXT] = '\0';
    assert_int_equal(nrg_uri_parse(&uri, text, NULL), -EINVAL);
    text[NRG_URI_TEXT - 1] = '\0';
    assert_int_equal(nrg_uri_parse(&uri, text, NULL), 0);
}

static void wrong_values(void **state)
{
    static const char *const wrong[] = {
        "a:/x?share=2",    "a:/x?share=nan", "a:/x?node=1.5",      "a:/x?node=31",
        "a:/x?period=-1s", "a:/x?period=",   "a:/x?name=12345678", "a:/x?from=START",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct nrg_uri uri;
        struct nrg_error err;
        struct values v = {0};
        const char *key = strchr(wrong[i], '?') + 1;
        assert_int_equal(nrg_uri_parse(&uri, wrong[i], NULL), 0);
        assert_int_equal(nrg_uri_read(&uri, keys, &v, &err), -EINVAL);
        assert_memory_equal(err.what, key, strcspn(key, "=") + 1);
    }
}

static void unknown_keys(void **state)
{
    struct nrg_uri uri;
    struct nrg_error err;
    struct values v = {0};
    (void)state;
    assert_int_equal(nrg_uri_parse(&uri, "a:/x?nod=5&baud=fast&share=1", NULL), 0);
    assert_int_equal(nrg_uri_read(&uri, keys, &v, NULL), 0);
    assert_string_equal(nrg_uri_text(&uri, "baud"), "fast");
    assert_int_equal(nrg_uri_finish(&uri, &err), -EINVAL);
    assert_non_null(strstr(err.what, "nod="));
    assert_non_null(strstr(err.what, "node, period, average, name, from, baud"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),        cmocka_unit_test(escapes),  cmocka_unit_test(commands),
        cmocka_unit_test(faults),       cmocka_unit_test(too_long), cmocka_unit_test(wrong_values),
        cmocka_unit_test(unknown_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
