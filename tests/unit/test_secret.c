/* secret: what is hidden of URIs and sentences, what is shown, and that nothing is cut before it is
 * hidden. */
#include "support/cmocka.h"

#include <string.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/secret.h"

static void names(void **state)
{
    static const char *const secret[] = {"password", "Password",      "passwd",  "pwd",    "pass",
                                         "token",    "access_token",  "api-key", "apikey", "key",
                                         "secret",   "client_secret", "auth",    "X-Auth", "sig"};
    static const char *const open[] = {"password-file", "keyfile",    "keepalive",  "qos",
                                       "period",        "cafile",     "columns",    "author",
                                       "keys",          "token-path", "max_tokens", "tokenizer",
                                       "output-tokens"};
    (void)state;
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++)
        assert_true(nrg_is_secret_name(secret[i], strlen(secret[i])));
    for (size_t i = 0; i < sizeof open / sizeof *open; i++)
        assert_false(nrg_is_secret_name(open[i], strlen(open[i])));
}

static void uris(void **state)
{
    static const struct {
        const char *uri, *shown;
        bool password;
    } cases[] = {
        {"mqtt://me:pw@host:1883/t", "mqtt://me:***@host:1883/t", true},
        {"mqtt://me@host:1883/t", "mqtt://me@host:1883/t", false},
        {"redfish://me:p@w:x@host", "redfish://me:***@host", true},
        {"redfish://me:p/w@host/x", "redfish://me:***@host/x", true},
        {"redfish://me%3apw@host", "redfish://me%3a***@host", true},
        {"redfish://me%3apw%40host/x", "redfish://me%3a***%40host/x", true},
        {"redfish://me:p%40w%40host", "redfish://me:***%40host", true},
        {"mqtt://host:1883/a%40b", "mqtt://host:1883/a%40b", false},
        {"redfish://me@[::1]:8443/x", "redfish://me@[::1]:8443/x", false},
        {"redfish://[::1]:8443/x", "redfish://[::1]:8443/x", false},
        {"redfish://me:pw@[::1]:8443", "redfish://me:***@[::1]:8443", true},
        {"redfish://a b:c d@host", "redfish://a b:***@host", true},
        {"mqtt:me:pw@host/t", "mqtt:me:***@host/t", true},
        {"mqtt://host:1883/a@b", "mqtt://host:***@b", false},
        {"mqtt://h/t?qos=1&token=a b&x=1", "mqtt://h/t?qos=1&token=***", false},
        {"mqtt://h/t?password=a:b@c", "mqtt://h/t?password=***", true},
        {"mqtt://h/t?password-file=/etc/x", "mqtt://h/t?password-file=/etc/x", false},
        {"exec:my-meter --watts?pattern=x", "exec:my-meter --watts?pattern=x", false},
        {"exec:API_TOKEN=x my-meter", "exec:API_TOKEN=***", false},
        {"emonpi:/dev/ttyAMA0?node=5", "emonpi:/dev/ttyAMA0?node=5", false},
        {"", "", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char shown[128];
        nrg_mask_uri(shown, sizeof shown, cases[i].uri);
        assert_string_equal(shown, cases[i].shown);
        assert_int_equal(nrg_has_password(cases[i].uri), cases[i].password);
    }
}

static void sentences(void **state)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"'http://me:pw@h/x' is no file", "'http://me:***@h/x' is no file"},
        {"wants key=value after '?'", "wants key=value after '?'"},
        {"http://h:80/ asks me@home", "http://h:80/ asks me@home"},
        {"x --token=abc y ?a=1&key=2 z", "x --token=*** y ?a=1&key=*** z"},
        {"mqtt://h/t?password=***: no key", "mqtt://h/t?password=***: no key"},
    };
    char shown[128];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        nrg_mask_text(shown, sizeof shown, cases[i].text);
        assert_string_equal(shown, cases[i].shown);
    }
}

/* The '@' stands behind what fits. */
static void long_ones(void **state)
{
    char uri[2000], shown[64];
    struct nrg_error err;
    (void)state;
    memset(uri, 'S', sizeof uri);
    memcpy(uri, "http://me:", 10);
    strcpy(uri + sizeof uri - 4, "@ho");
    nrg_mask_uri(shown, sizeof shown, uri);
    assert_string_equal(shown, "http://me:***@ho");
    nrg_fail(&err, -1, uri, "is wrong");
    assert_string_equal(err.where, "http://me:***@ho");
    assert_true(nrg_has_password(uri));
    for (size_t size = 1; size < 20; size++) {
        nrg_mask_uri(shown, size, uri);
        assert_true(strlen(shown) < size && !strchr(shown, 'S'));
    }
}

static void whole_copies(void **state)
{
    char to[4];
    (void)state;
    assert_int_equal(nrg_copy_whole(to, sizeof to, "abc"), 0);
    assert_string_equal(to, "abc");
    assert_true(nrg_copy_whole(to, sizeof to, "abcd") < 0);
    assert_string_equal(to, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),     cmocka_unit_test(uris),         cmocka_unit_test(sentences),
        cmocka_unit_test(long_ones), cmocka_unit_test(whole_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
