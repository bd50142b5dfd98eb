/* See usage.h. Positions are sought in a document that jansson has found to be valid. */
#include "llm/proxy/usage.h"

#include <jansson.h>
#include <string.h>

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static size_t after_spaces(const char *at, size_t i, size_t n)
{
    while (i < n && is_space(at[i]))
        i++;
    return i;
}

/* From a quote to behind the one that ends the string. */
static size_t after_string(const char *at, size_t i, size_t n)
{
    for (i++; i < n && at[i] != '"'; i++)
        i += at[i] == '\\';
    return i < n ? i + 1 : n;
}

/* From the begin of a value to its end. */
static size_t after_value(const char *at, size_t i, size_t n)
{
    size_t depth = 0;
    while (i < n) {
        char c = at[i];
        if (!depth && (c == ',' || c == '}' || c == ']'))
            return i;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        i = c == '"' ? after_string(at, i, n) : i + 1;
    }
    return n;
}

/* The value of a key of an object, without blanks around it; at NULL: it has none. */
static struct nrg_http_text value_of(const char *at, size_t n, const char *key)
{
    size_t length = strlen(key), i = after_spaces(at, 0, n) + 1;
    while ((i = after_spaces(at, i, n)) < n && at[i] == '"') {
        size_t name = i + 1, end = after_string(at, i, n);
        i = after_spaces(at, end, n);
        if (i >= n || at[i] != ':')
            break;
        size_t from = after_spaces(at, i + 1, n), to = after_value(at, from, n);
        i = to + (to < n && at[to] == ',');
        while (to > from && is_space(at[to - 1]))
            to--;
        if (end - name == length + 1 && !memcmp(at + name, key, length))
            return (struct nrg_http_text){at + from, to - from};
    }
    return (struct nrg_http_text){NULL, 0};
}

#define OPTIONS "stream_options"
#define INCLUDE "include_usage"

static bool replace(struct nrg_usage_patch *patch, const char *body, struct nrg_http_text value,
                    const char *text)
{
    if (!value.at)
        return false;
    *patch = (struct nrg_usage_patch){(size_t)(value.at - body), value.n, text};
    return true;
}

/* Into the client's own options. */
static bool change_options(const char *body, const json_t *options, struct nrg_http_text value,
                           struct nrg_usage_patch *patch)
{
    const json_t *include = json_object_get(options, INCLUDE);
    if (!value.at || json_is_true(include) ||
        json_is_true(json_object_get(options, "continuous_usage_stats")))
        return false;
    if (include)
        return replace(patch, body, value_of(value.at, value.n, INCLUDE), "true");
    *patch = (struct nrg_usage_patch){(size_t)(value.at - body) + 1, 0,
                                      json_object_size(options) ? "\"" INCLUDE "\":true,"
                                                                : "\"" INCLUDE "\":true"};
    return true;
}

static bool find_patch(const char *body, size_t n, const json_t *doc, struct nrg_usage_patch *patch)
{
    const json_t *options = json_object_get(doc, OPTIONS);
    struct nrg_http_text value = value_of(body, n, OPTIONS);
    if (!json_is_true(json_object_get(doc, "stream")))
        return false;
    if (json_is_object(options))
        return change_options(body, options, value, patch);
    if (json_is_null(options))
        return replace(patch, body, value, "{\"" INCLUDE "\":true}");
    if (options)
        return false;
    while (is_space(body[n - 1]))
        n--;
    *patch = (struct nrg_usage_patch){n - 1, 0, ",\"" OPTIONS "\":{\"" INCLUDE "\":true}"};
    return true;
}

bool nrg_usage_ask(const char *body, size_t n, struct nrg_usage_patch *patch)
{
    json_error_t error;
    json_t *doc = json_loadb(body, n, JSON_REJECT_DUPLICATES, &error);
    bool asks = json_is_object(doc) && find_patch(body, n, doc, patch);
    json_decref(doc);
    return asks;
}

static bool is_usage_alone(const char *at, size_t n)
{
    static const char data[] = "data:";
    const char *end = at + n;
    if (!memmem(at, n, "\"usage\"", 7))
        return false;
    while (at < end && ((size_t)(end - at) < sizeof data || memcmp(at, data, sizeof data - 1))) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        at = line ? line + 1 : end;
    }
    if (at >= end)
        return false;
    at += sizeof data - 1;
    struct nrg_http_text choices = value_of(at, (size_t)(end - at), "choices");
    struct nrg_http_text usage = value_of(at, (size_t)(end - at), "usage");
    bool empty = choices.at && choices.n >= 2 && choices.at[0] == '[' &&
                 after_spaces(choices.at, 1, choices.n) == choices.n - 1;
    return empty && usage.at && usage.at[0] == '{';
}

static void end_event(struct nrg_usage_filter *f, struct nrg_http_out *out)
{
    if (f->passes || !is_usage_alone(f->held, f->n))
        nrg_http_add(out, f->held, f->n);
    f->n = 0;
    f->passes = false;
}

void nrg_usage_filter_feed(struct nrg_usage_filter *f, const char *at, size_t n,
                           struct nrg_http_out *out)
{
    for (size_t i = 0; i < n; i++) {
        if (f->n == sizeof f->held) {
            nrg_http_add(out, f->held, f->n);
            f->n = 0;
            f->passes = true;
        }
        f->held[f->n++] = at[i];
        bool ends = at[i] == '\n' && !f->line; /* an empty line */
        f->line = at[i] == '\n' ? 0 : f->line + (at[i] != '\r');
        if (ends)
            end_event(f, out);
    }
}

void nrg_usage_filter_end(struct nrg_usage_filter *f, struct nrg_http_out *out)
{
    nrg_http_add(out, f->held, f->n);
    f->n = 0;
}
