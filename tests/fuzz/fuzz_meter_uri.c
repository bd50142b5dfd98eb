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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[2 * NRG_URI_TEXT];
    struct nrg_uri uri;
    struct nrg_error err;
    double number = 1;
    int64_t ns = 1;
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
    nrg_uri_number(&uri, "baud", 0, 1e6, &number, &err);
    nrg_uri_duration(&uri, "period", &ns, &err);
    if (!(number >= 0 && number <= 1e6) || ns < 0)
        abort();
    for (unsigned i = 0; i < uri.n_query; i++)
        if (nrg_uri_text(&uri, uri.query[i].key) != uri.query[i].value)
            abort();
    if (nrg_uri_finish(&uri, &err))
        abort();
    return 0;
}
