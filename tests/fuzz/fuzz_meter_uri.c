/*
 * Fuzz target: URIs of meters. What parses has parts inside its own store, keys that are found
 * again, and every key is either asked for or named by nrg_uri_finish. And with a password in it,
 * before the host or as a key, no URI is accepted, and no message, whatever else is wrong, has it.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/secret.h"
#include "sensors/meter/uri.h"
#include "sensors/mqtt/settings.h"
#include "sensors/redfish/settings.h"

#define SECRET "Zq7Xk9"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct values {
    double number;
    int64_t ns;
};

static const struct nrg_uri_key keys[] = {
    NRG_URI_NUMBER("baud", struct values, number, 0, 1e6),
    NRG_URI_DURATION("period", struct values, ns),
    {0},
};

/* As the drivers of MQTT and Redfish read theirs. Files are not opened here. */
static int read_settings(struct nrg_uri *uri, struct nrg_error *err)
{
    static struct nrg_mqtt_settings mqtt;
    struct nrg_redfish_settings redfish;
    if (!strcmp(uri->scheme, "redfish"))
        return nrg_redfish_settings_read(uri, &redfish, err);
    int rc = nrg_mqtt_settings_read(uri, &mqtt, err);
    nrg_uri_text(uri, "covers");
    return rc ? rc : nrg_uri_finish(uri, err);
}

static void try_secret(const char *before, const char *data, const char *after)
{
    char text[3 * NRG_URI_TEXT], shown[64];
    struct nrg_uri uri;
    struct nrg_error err = {0};
    snprintf(text, sizeof text, "%s%s%s", before, data, after);
    bool elsewhere = strpbrk(data, "@:/?[]") != NULL;
    if (strstr(data, SECRET) || strstr(text, "-file=") || (strstr(after, ":" SECRET) && elsewhere))
        return; /* it is not the secret; a file would be opened; the ':' stands behind a host */
    if (!nrg_uri_parse(&uri, text, &err) && !read_settings(&uri, &err))
        abort();
    if (strstr(err.where, SECRET) || strstr(err.what, SECRET) || strstr(uri.text, SECRET))
        abort();
    nrg_mask_uri(shown, sizeof shown, text);
    if (strstr(shown, SECRET))
        abort();
    nrg_mask_text(shown, sizeof shown, text);
}

/* The data is what stands behind the secret, and before it. */
static void try_secrets(const char *data)
{
    static const char *const places[][2] = {
        {"mqtt://me:" SECRET, "@host/t"},       {"redfish://me:" SECRET, "@host"},
        {"mqtt://host/t?password=" SECRET, ""}, {"redfish://host?token=" SECRET, "&period=1s"},
        {"mqtt://me", ":" SECRET "@host/t"},    {"redfish://host?", "&secret=" SECRET}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        try_secret(places[i][0], data, places[i][1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2 * NRG_URI_TEXT];
    struct nrg_uri uri;
    struct nrg_error err;
    struct values v = {1, 1};
    if (size >= sizeof text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    try_secrets(text);
    if (nrg_uri_parse(&uri, text, &err))
        return 0;
    if (!*uri.place || strlen(uri.place) > strlen(text))
        abort();
    if (uri.n_query && nrg_uri_finish(&uri, &err) == 0)
        abort();
    nrg_uri_read(&uri, keys, &v, &err);
    if (!(v.number >= 0 && v.number <= 1e6) || v.ns < 0)
        abort();
    for (unsigned i = 0; i < uri.n_query; i++)
        if (nrg_uri_text(&uri, uri.query[i].key) != uri.query[i].value)
            abort();
    if (nrg_uri_finish(&uri, &err))
        abort();
    return 0;
}
