/*
 * The counts of a language model's server, from its page of metrics: tokens of prompts and output,
 * requests that run, wait and have finished. Only when asked for (nrg run --llm URL), on a thread
 * of its own.
 *
 * A page costs the server time, of a Python server some milliseconds: it is asked five times a
 * second, or so seldom that answering takes it 2 % of a thread; an answer that waited for a busy
 * machine took longer, so the quicker of the last two counts. While there is no answer it is
 * asked twice a second; a server that loads its model for minutes is nothing to talk about. A page
 * that is not understood is, once.
 *
 * Times are the middle of before and after a question, with the difference as width. A count that
 * is NaN, negative or beyond 9e15 is missing.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/fetch.h"
#include "sensors/drivers.h"
#include "sensors/llm/families.h"

#define PERIOD_NS  (200 * NRG_NS_PER_MS)
#define MOST_NS    (2 * NRG_NS_PER_S)
#define RETRY_NS   (500 * NRG_NS_PER_MS)
#define LEAST_REST 50 /* times as long as the answer took */
#define TIMEOUT_MS 2500
#define CONNECT_MS 1000
#define MAX_BYTES  (8u << 20)
#define CANDIDATES 3
#define URL_BYTES  768
#define REASON     512
#define MOST_NOTES 3
#define HTTP_OK    200

struct server {
    struct nrg_fetch *fetch;
    char urls[CANDIDATES][URL_BYTES];
    size_t n_urls, at;
    int64_t next_ns, took_ns;
    const char *family; /* that was seen last */
    char told[REASON];  /* the last note */
    unsigned notes;
};

/* The page itself where the URL names one, else where the families have theirs. */
static void set_urls(struct server *s, const char *url)
{
    const char *host = strstr(url, "://") + 3;
    int origin = (int)(host - url + (long)strcspn(host, "/?#"));
    const char *path = url + origin;
    size_t len = strlen(path);
    bool page = len >= 7 && !strcmp(path + len - 7, "metrics");
    if (len > 1 || page)
        nrg_copy(s->urls[s->n_urls++], URL_BYTES, url);
    if (!page) {
        snprintf(s->urls[s->n_urls++], URL_BYTES, "%.*s/metrics", origin, url);
        snprintf(s->urls[s->n_urls++], URL_BYTES, "%.*s/prometheus/metrics", origin, url);
    }
}

static int probe_server(struct nrg_probe *probe, struct nrg_error *err)
{
    const char *url = probe->argument;
    if (!url || !*url)
        return nrg_fail(err, -EINVAL, "--llm", "wants the server's URL: http://127.0.0.1:8000");
    if (strlen(url) > URL_BYTES - 32)
        return nrg_fail(err, -EINVAL, "--llm", "the URL is too long");
    int rc = nrg_fetch_check_url(url, "--llm", err);
    if (rc)
        return rc;
    struct nrg_found *found = nrg_probe_found(probe, "llm");
    if (!found)
        return -ENOMEM;
    nrg_copy(found->locator, sizeof found->locator, url);
    for (size_t c = 0; c < NRG_SERVER_COUNTS; c++) {
        bool gauge = c == NRG_SERVER_RUNNING || c == NRG_SERVER_WAITING;
        struct nrg_channel *channel =
            nrg_found_channel(found, nrg_server_channel((enum nrg_server_count)c), NRG_COUNT,
                              gauge ? NRG_GAUGE : NRG_COUNTER);
        if (!channel)
            return -ENOMEM;
        nrg_fetch_public_url(url, channel->source, sizeof channel->source);
        channel->scale = channel->resolution = 1;
        channel->update_ns = PERIOD_NS;
    }
    return 0;
}

static void close_server(void *state)
{
    struct server *s = state;
    nrg_fetch_free(s->fetch);
    free(s);
}

static int open_server(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                       struct nrg_error *err)
{
    const struct nrg_fetch_options options = {
        .max_bytes = MAX_BYTES, .timeout_ms = TIMEOUT_MS, .connect_ms = CONNECT_MS};
    struct server *s = nrg_calloc(1, sizeof *s);
    (void)ctx;
    if (!s)
        return nrg_fail(err, -ENOMEM, found->sensor, "out of memory");
    int rc = nrg_fetch_new(&options, &s->fetch, err);
    if (rc) {
        free(s);
        return rc;
    }
    set_urls(s, found->locator);
    *state = s;
    return 0;
}

/* Once for each reason, and never endlessly. */
static void tell(struct server *s, struct nrg_sink *sink, const char *kind, const char *text)
{
    if (s->notes >= MOST_NOTES || !strcmp(s->told, text))
        return;
    s->notes++;
    nrg_copy(s->told, sizeof s->told, text);
    nrg_sink_note(sink, kind, text);
}

/* Why a page is none; NULL when it may be one. */
static const char *refuse(const struct nrg_fetch_answer *a, char *text, size_t size)
{
    if (a->status >= 300 && a->status < 400)
        snprintf(text, size, "a redirect (HTTP %ld), which is not followed", a->status);
    else if (a->status != HTTP_OK)
        snprintf(text, size, "HTTP %ld", a->status);
    else if (strstr(a->content_type, "html") || (a->len && a->body[0] == '<'))
        snprintf(text, size, "HTML instead of metrics");
    else if (a->len > 2 && !memcmp(a->body, "\x1f\x8b", 2))
        snprintf(text, size, "a compressed answer, which was not asked for");
    else
        return NULL;
    return text;
}

static void say(char *why, size_t size, const char *url, const char *text)
{
    char shown[200];
    nrg_fetch_public_url(url, shown, sizeof shown);
    snprintf(why, size, "%s: %.300s", shown, text);
}

static void emit(struct nrg_sink *sink, const struct nrg_server_page *page, int64_t before_ns,
                 int64_t after_ns)
{
    int64_t raw[NRG_SERVER_COUNTS];
    for (size_t c = 0; c < NRG_SERVER_COUNTS; c++)
        raw[c] = isnan(page->value[c]) ? NRG_MISSING : (int64_t)llround(page->value[c]);
    nrg_sink_row(sink, 0, before_ns + (after_ns - before_ns) / 2, after_ns - before_ns, raw);
}

static int64_t quicker(struct server *s, int64_t took_ns)
{
    int64_t last_ns = s->took_ns;
    s->took_ns = took_ns;
    return last_ns && last_ns < took_ns ? last_ns : took_ns;
}

/* One question. 0 when the page was understood; else the reason, "" when nobody answers. */
static int ask(struct server *s, struct nrg_sink *sink, char *why, size_t size)
{
    struct nrg_fetch_answer answer;
    struct nrg_server_page page;
    struct nrg_error err;
    char text[REASON];
    const char *url = s->urls[s->at];
    int64_t before = nrg_now_ns();
    int rc = nrg_fetch_get(s->fetch, url, NULL, &answer, &err);
    int64_t after = nrg_now_ns(), rest = LEAST_REST * quicker(s, after - before);
    s->next_ns = before + (rest < PERIOD_NS ? PERIOD_NS : rest > MOST_NS ? MOST_NS : rest);
    why[0] = '\0';
    if (rc == -ECONNREFUSED || rc == -EHOSTUNREACH)
        return rc;
    if (rc) {
        say(why, size, url, err.what);
        return rc;
    }
    if (refuse(&answer, text, sizeof text)) {
        say(why, size, url, text);
        return -EPROTO;
    }
    nrg_server_page_read(answer.body, answer.len, &page);
    if (!page.family) {
        nrg_server_families_say(text, sizeof text);
        char looked[REASON];
        snprintf(looked, sizeof looked, "%s; looked for %.250s",
                 page.samples ? "no count of tokens among its metrics" : "no metrics", text);
        say(why, size, url, looked);
        return -ENOENT;
    }
    if (page.wrong) {
        snprintf(text, sizeof text, "%.200s is NaN, negative or huge", page.wrong);
        say(why, size, url, text);
        tell(s, sink, "garbage", why);
    }
    if (s->family != page.family)
        nrg_sink_note(sink, "server", page.family);
    s->family = page.family;
    emit(sink, &page, before, after);
    return 0;
}

static int read_server(void *state, struct nrg_sink *sink)
{
    struct server *s = state;
    char why[REASON], first[REASON] = "";
    if (nrg_now_ns() + PERIOD_NS / 4 < s->next_ns) /* deadlines are not exact */
        return 0;
    for (size_t tries = s->family ? 1 : s->n_urls; tries; tries--) {
        int rc = ask(s, sink, why, sizeof why);
        if (!rc)
            return 0;
        if (!first[0])
            nrg_copy(first, sizeof first, why);
        if (rc == -ECONNREFUSED || rc == -EHOSTUNREACH)
            break; /* the others are on the same host */
        if (!s->family)
            s->at = (s->at + 1) % s->n_urls;
        if (rc == -ETIMEDOUT)
            break; /* the next page next time: the run's end waits for this */
    }
    if (first[0])
        tell(s, sink, "garbage", first);
    s->next_ns = nrg_now_ns() + RETRY_NS;
    return 0;
}

const struct nrg_driver nrg_driver_llm = {
    .name = "llm",
    .summary = "tokens and requests that a language model's server counts (nrg run --llm URL)",
    .flags = NRG_MAY_BLOCK | NRG_ON_REQUEST,
    .probe = probe_server,
    .open = open_server,
    .read = read_server,
    .close = close_server,
};
