/*
 * --ask-usage of nrg llm proxy: a body that is changed is still JSON and asks for usage, and events
 * are the same however they are cut, and never more than came.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "llm/proxy/usage.h"

static void check_asked(const char *body, size_t n)
{
    struct nrg_usage_patch patch;
    json_error_t error;
    if (!nrg_usage_ask(body, n, &patch))
        return;
    if (patch.at > n || patch.cut > n - patch.at)
        abort();
    size_t more = strlen(patch.text), rest = patch.at + patch.cut, size = n - patch.cut + more;
    char *text = malloc(size);
    if (!text)
        return;
    memcpy(text, body, patch.at);
    memcpy(text + patch.at, patch.text, more);
    memcpy(text + patch.at + more, body + rest, n - rest);
    json_t *doc = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    const json_t *options = json_object_get(doc, "stream_options");
    if (!json_is_true(json_object_get(options, "include_usage")) ||
        nrg_usage_ask(text, size, &patch))
        abort();
    json_decref(doc);
    free(text);
}

static void filter(const char *at, size_t n, size_t step, struct nrg_http_out *out)
{
    static struct nrg_usage_filter f;
    f = (struct nrg_usage_filter){.n = 0};
    for (size_t i = 0; i < n; i += step)
        nrg_usage_filter_feed(&f, at + i, n - i < step ? n - i : step, out);
    nrg_usage_filter_end(&f, out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct nrg_http_out whole = {malloc(size + 1), size, 0}, cut = {malloc(size + 1), size, 0};
    if (whole.at && cut.at) {
        filter(text, size, size + 1, &whole);
        filter(text, size, 1, &cut);
        if (whole.n > size || whole.n != cut.n || memcmp(whole.at, cut.at, whole.n) != 0)
            abort();
    }
    free(whole.at);
    free(cut.at);
    check_asked(text, size);
    return 0;
}
