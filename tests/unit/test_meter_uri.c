/* meter_uri: parts of a URI, escapes, keys that nobody asked for, and the place of faults. */
#include "support/cmocka.h"

#include <errno.h>
#include <string.h>

#include "sensors/meter/uri.h"

static void parts(void **state)
{
    struct nrg_uri uri;
    double node = 0;
    int64_t period_ns = 7;
    (void)state;
    assert_int_equal(
        nrg_uri_parse(&uri, "emonpi:/dev/ttyAMA0?node=5&layout=power1,Vrms*0.01V&period=200ms",
                      NULL),
        0);
    assert_string_equal(uri.scheme, "emonpi");
    assert_string_equal(uri.place, "/dev/ttyAMA0");
    assert_string_equal(nrg_uri_text(&uri, "layout"), "power1,Vrms*0.01V");
    assert_null(nrg_uri_text(&uri, "covers"));
    assert_int_equal(nrg_uri_number(&uri, "node", 0, 30, &node, NULL), 0);
    assert_true(node == 5);
    assert_int_equal(nrg_uri_duration(&uri, "period", &period_ns, NULL), 0);
    assert_int_equal(period_ns, 200000000);
    assert_int_equal(nrg_uri_duration(&uri, "average", &period_ns, NULL), 0);
    assert_int_equal(period_ns, 200000000); /* not given: kept */
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

static void unknown_keys(void **state)
{
    struct nrg_uri uri;
    struct nrg_error err;
    double number = 3;
    (void)state;
    assert_int_equal(nrg_uri_parse(&uri, "a:/x?nod=5&baud=fast", NULL), 0);
    assert_null(nrg_uri_text(&uri, "node"));
    assert_int_equal(nrg_uri_number(&uri, "baud", 1, 9, &number, &err), -EINVAL);
    assert_non_null(strstr(err.what, "fast"));
    assert_int_equal(nrg_uri_finish(&uri, &err), -EINVAL);
    assert_non_null(strstr(err.what, "nod="));
    assert_non_null(strstr(err.what, "node, baud"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts),  cmocka_unit_test(escapes),  cmocka_unit_test(commands),
        cmocka_unit_test(faults), cmocka_unit_test(too_long), cmocka_unit_test(unknown_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
