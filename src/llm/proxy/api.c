/* See api.h. */
#include "llm/proxy/api.h"

#include <ctype.h>
#include <string.h>

#define LONGEST_WORD 24 /* "transcriptions" has 14 */
#define MOST_PARTS   5

/* Audio and images are not here: their tokens are not those of a text, nor are their prices. */
static const struct nrg_llm_api apis[] = {
    {.end = "/chat/completions", .name = "chat", .may_ask = true},
    {.end = "/completions", .name = "completions", .may_ask = true},
    {.end = "/responses", .name = "responses"},
    {.end = "/v1/messages", .name = "messages", .prompt_apart = true},
    {.end = "/embeddings", .name = "embeddings", .no_text = true},
    {.end = "/api/embed", .name = "embeddings", .no_text = true},
    {.end = "/pooling", .name = "pooling", .no_text = true},
    {.end = "/classify", .name = "classify", .no_text = true},
    {.end = "/rerank", .name = "rerank", .no_text = true},
    {.end = "/score", .name = "score", .no_text = true},
    {.end = "/api/chat", .name = "chat"},
    {.end = "/generate", .name = "generate"},
    {.end = "/generate_stream", .name = "generate"},
    {.end = "/completion", .name = "completions"},
    {.end = "/infill", .name = "completions"},
};

static struct nrg_http_text path_of(const struct nrg_http_head *head)
{
    const char *query = memchr(head->target.at, '?', head->target.n);
    return (struct nrg_http_text){head->target.at,
                                  query ? (size_t)(query - head->target.at) : head->target.n};
}

const struct nrg_llm_api *nrg_llm_api_of(const struct nrg_http_head *head)
{
    struct nrg_http_text path = path_of(head);
    if (!nrg_http_text_is(head->method, "POST"))
        return NULL;
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++) {
        size_t length = strlen(apis[i].end);
        if (path.n >= length && !memcmp(path.at + path.n - length, apis[i].end, length))
            return &apis[i];
    }
    return NULL;
}

static bool is_version(const char *at, size_t n)
{
    size_t digits = 1;
    while (digits < n && digits < 3 && isdigit((unsigned char)at[digits]))
        digits++;
    bool beta = n - digits == 4 && !memcmp(at + digits, "beta", 4);
    return n > 1 && at[0] == 'v' && digits > 1 && (digits == n || beta);
}

static bool is_word(const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isalpha((unsigned char)at[i]) && !strchr("_-.", at[i]))
            return false;
    return n <= LONGEST_WORD;
}

void nrg_path_kind(const struct nrg_http_head *head, char kind[NRG_PATH_KIND_MAX])
{
    /* A method, and parts of a word with its '/' each; what does not fit is not there. */
    struct nrg_http_out out = {kind, NRG_PATH_KIND_MAX - sizeof "/...", 0};
    struct nrg_http_text path = path_of(head);
    const char *at = path.at, *end = path.at + path.n;
    bool known = is_word(head->method.at, head->method.n);
    nrg_http_addf(&out, "%.*s ", known ? (int)head->method.n : 1, known ? head->method.at : "*");
    for (size_t parts = 0; at < end && out.n <= out.size; parts++) {
        at += *at == '/';
        const char *stop = memchr(at, '/', (size_t)(end - at));
        size_t n = (size_t)((stop ? stop : end) - at);
        bool shown = is_word(at, n) || is_version(at, n);
        at = shown ? at : "*";
        n = shown ? n : 1;
        if (parts == MOST_PARTS || 1 + n > out.size - out.n) {
            out.size = NRG_PATH_KIND_MAX - 1;
            nrg_http_add(&out, "/...", 4);
            break;
        }
        nrg_http_addf(&out, "/%.*s", (int)n, at);
        at = stop ? stop : end;
    }
    kind[out.n] = 0;
}
