/*
 * Heads and bodies of HTTP as the relay of nrg llm proxy reads them. A message that is taken must
 * be written so that the same reader takes it again with the same framing, and a body must end at
 * the same byte however it is cut.
 */
#include <stdlib.h>
#include <string.h>

#include "llm/proxy/api.h"
#include "llm/proxy/body.h"

static size_t end_of_body(const struct nrg_http_head *head, const char *at, size_t n, size_t step)
{
    struct nrg_http_body body;
    size_t i = 0;
    nrg_http_body_init(&body, head->framing, head->length);
    while (i < n && !body.done) {
        size_t left = n - i < step ? n - i : step;
        ssize_t taken = nrg_http_body_take(&body, at + i, left, NULL, NULL, NULL);
        if (taken < 0)
            return SIZE_MAX;
        if ((size_t)taken > left || (!taken && !body.at_end))
            abort();
        body.at_end = false;
        i += (size_t)taken;
    }
    return body.done ? i : n;
}

/* A short line of a method and words, nothing of a query in it. */
static void check_kind(const struct nrg_http_head *head)
{
    char kind[NRG_PATH_KIND_MAX];
    memset(kind, 1, sizeof kind);
    nrg_path_kind(head, kind);
    size_t n = strnlen(kind, sizeof kind);
    if (n == sizeof kind || strpbrk(kind, "?=&%\1"))
        abort();
    nrg_llm_api_of(head);
}

static void check_written(const struct nrg_http_head *head)
{
    static char text[NRG_HTTP_HEAD_MAX + 4096];
    struct nrg_http_out out = {text, sizeof text, 0};
    struct nrg_http_head again;
    const struct nrg_http_extra extra = {.close = true};
    if (!head->is_answer)
        check_kind(head);
    if (head->is_answer)
        nrg_http_write_answer(&out, head, &extra);
    else
        nrg_http_write_request(&out, head, "h", "/p", false);
    if (out.n > out.size)
        return;
    int rc = nrg_http_head_parse(&again, text, out.n, head->is_answer);
    if (rc == -7) /* too long with what was added */
        return;
    if (rc != (int)out.n || again.framing != head->framing || again.length != head->length)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_http_head head;
    const char *text = (const char *)data;
    for (int answer = 0; answer < 2; answer++) {
        int rc = nrg_http_head_parse(&head, text, size, answer);
        if (rc <= 0)
            continue;
        check_written(&head);
        size_t whole = end_of_body(&head, text + rc, size - (size_t)rc, SIZE_MAX / 2);
        if (whole != end_of_body(&head, text + rc, size - (size_t)rc, 1))
            abort();
    }
    return 0;
}
