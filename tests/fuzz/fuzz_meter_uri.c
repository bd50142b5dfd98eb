/*
 * Fuzz target: URIs of meters. What parses has parts inside its own store, keys that are found
 * again, and every key is either asked for or named by nrg_uri_finish.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/meter/uri.h"

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
