/* See head.h. */
#include "llm/proxy/head.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool nrg_http_text_is(struct nrg_http_text text, const char *word)
{
    return strlen(word) == text.n && !strncasecmp(text.at, word, text.n);
}

bool nrg_http_is_token(struct nrg_http_text text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c <= ' ' || c >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", c))
            return false;
    }
    return text.n > 0;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static struct nrg_http_text trimmed(const char *from, const char *to)
{
    while (from < to && is_blank(*from))
        from++;
    while (to > from && is_blank(to[-1]))
        to--;
    return (struct nrg_http_text){from, (size_t)(to - from)};
}

bool nrg_http_list_has(struct nrg_http_text list, struct nrg_http_text word)
{
    const char *at = list.at, *end = list.at + list.n;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct nrg_http_text item = trimmed(at, comma ? comma : end);
        if (item.n == word.n && !strncasecmp(item.at, word.at, word.n))
            return true;
        at = comma ? comma + 1 : end;
    }
    return false;
}

static bool list_has(struct nrg_http_text list, const char *word)
{
    return list.n && nrg_http_list_has(list, (struct nrg_http_text){word, strlen(word)});
}

bool nrg_http_next_field(const struct nrg_http_head *head, const char **at,
                         struct nrg_http_field *field)
{
    const char *end = head->fields.at + head->fields.n;
    if (*at >= end)
        return false;
    const char *line = *at, *stop = memchr(line, '\r', (size_t)(end - line));
    stop = stop ? stop : end;
    const char *colon = memchr(line, ':', (size_t)(stop - line));
    *at = stop + 2;
    if (!colon)
        colon = stop;
    field->name = (struct nrg_http_text){line, (size_t)(colon - line)};
    field->value = trimmed(colon < stop ? colon + 1 : stop, stop);
    return true;
}

static int refuse(struct nrg_http_head *head, const char *why)
{
    head->why = why;
    return -EBADMSG;
}

#define NOT_CR_LF "a line end that is not CR LF"

/* Such a head would never end. */
static bool has_bare_line_feed(const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *lf = memchr(at + i, '\n', n - i);
        if (!lf)
            return false;
        i = (size_t)(lf - at);
        if (!i || at[i - 1] != '\r')
            return true;
    }
    return false;
}

/* Every line end is CR LF, and nothing else is a control character but tabs. */
static int check_bytes(struct nrg_http_head *head, const char *at, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)at[i];
        if (c == '\r' ? i + 1 >= n || at[i + 1] != '\n' : c == '\n' && (!i || at[i - 1] != '\r'))
            return refuse(head, NOT_CR_LF);
        if ((c < ' ' && c != '\t' && c != '\r' && c != '\n') || c == 0x7f)
            return refuse(head, "a control character in the head");
    }
    return 0;
}

static int parse_version(struct nrg_http_head *head, struct nrg_http_text text)
{
    if (text.n != 8 || memcmp(text.at, "HTTP/1.", 7) || (text.at[7] != '0' && text.at[7] != '1'))
        return refuse(head, "not HTTP/1.0 or HTTP/1.1");
    head->http_1_0 = text.at[7] == '0';
    return 0;
}

static int parse_request_line(struct nrg_http_head *head)
{
    const char *at = head->first.at, *end = at + head->first.n;
    const char *blank = memchr(at, ' ', head->first.n);
    const char *second = blank ? memchr(blank + 1, ' ', (size_t)(end - blank - 1)) : NULL;
    if (!second || memchr(second + 1, ' ', (size_t)(end - second - 1)) ||
        memchr(at, '\t', head->first.n)) /* some part words there, too */
        return refuse(head, "the first line is not 'METHOD PATH VERSION'");
    head->method = (struct nrg_http_text){at, (size_t)(blank - at)};
    head->target = (struct nrg_http_text){blank + 1, (size_t)(second - blank - 1)};
    if (!nrg_http_is_token(head->method))
        return refuse(head, "the method is no word");
    if (!head->target.n || (head->target.at[0] != '/' && !nrg_http_text_is(head->target, "*")))
        return refuse(head, "the path does not begin with '/'");
    return parse_version(head, (struct nrg_http_text){second + 1, (size_t)(end - second - 1)});
}

static int parse_status_line(struct nrg_http_head *head)
{
    const char *at = head->first.at;
    if (head->first.n < 12 || at[8] != ' ')
        return refuse(head, "the first line is not 'VERSION STATUS'");
    for (size_t i = 9; i < 12; i++) {
        if (at[i] < '0' || at[i] > '9')
            return refuse(head, "the status is no number");
        head->status = head->status * 10 + (at[i] - '0');
    }
    if (head->status < 100 || head->status > 999 || (head->first.n > 12 && at[12] != ' '))
        return refuse(head, "the status has not three digits");
    return parse_version(head, (struct nrg_http_text){at, 8});
}

static int parse_length(struct nrg_http_head *head, struct nrg_http_text value)
{
    if (head->framing == NRG_BODY_LENGTH)
        return refuse(head, "more than one Content-Length");
    if (!value.n || value.n > 18)
        return refuse(head, "a Content-Length that is no number");
    for (size_t i = 0; i < value.n; i++) {
        if (value.at[i] < '0' || value.at[i] > '9')
            return refuse(head, "a Content-Length that is no number");
        head->length = head->length * 10 + (uint64_t)(value.at[i] - '0');
    }
    if (head->framing == NRG_BODY_CHUNKED)
        return refuse(head, "both Content-Length and Transfer-Encoding");
    head->framing = NRG_BODY_LENGTH;
    return 0;
}

static int parse_coding(struct nrg_http_head *head, struct nrg_http_text value)
{
    if (head->framing == NRG_BODY_LENGTH)
        return refuse(head, "both Content-Length and Transfer-Encoding");
    if (head->framing == NRG_BODY_CHUNKED || !nrg_http_text_is(value, "chunked"))
        return refuse(head, "a Transfer-Encoding other than chunked");
    if (head->http_1_0)
        return refuse(head, "a Transfer-Encoding in HTTP/1.0");
    head->framing = NRG_BODY_CHUNKED;
    return 0;
}

static int take_field(struct nrg_http_head *head, const struct nrg_http_field *field)
{
    struct nrg_http_text name = field->name, value = field->value;
    if (nrg_http_text_is(name, "content-length"))
        return parse_length(head, value);
    if (nrg_http_text_is(name, "transfer-encoding"))
        return parse_coding(head, value);
    if (nrg_http_text_is(name, "host")) {
        if (head->host.at)
            return refuse(head, "more than one Host");
        head->host = value;
    } else if (nrg_http_text_is(name, "origin")) {
        if (head->origin.at)
            return refuse(head, "more than one Origin");
        head->origin = value;
    } else if (nrg_http_text_is(name, "connection")) {
        if (head->connection.at)
            return refuse(head, "more than one Connection");
        head->connection = value;
    } else if (nrg_http_text_is(name, "content-type")) {
        head->content_type = value;
    } else if (nrg_http_text_is(name, "content-encoding")) {
        head->encoded |= value.n && !nrg_http_text_is(value, "identity");
    } else if (nrg_http_text_is(name, "expect")) {
        head->expects = true;
    } else if (nrg_http_text_is(name, "upgrade")) {
        head->upgrade |= list_has(value, "websocket");
    } else if (nrg_http_text_is(name, "x-nrg-joules")) {
        head->wants_joules |= !nrg_http_text_is(value, "0");
    }
    return 0;
}

static int parse_fields(struct nrg_http_head *head)
{
    struct nrg_http_field field;
    for (const char *at = head->fields.at; nrg_http_next_field(head, &at, &field);) {
        if (!nrg_http_is_token(field.name) || field.name.at[field.name.n] != ':')
            return refuse(head, "a field that is not 'Name: value'");
        int rc = take_field(head, &field);
        if (rc)
            return rc;
    }
    head->last = list_has(head->connection, "close") ||
                 (head->http_1_0 && !list_has(head->connection, "keep-alive"));
    if (!head->is_answer && !head->http_1_0 && !head->host.at)
        return refuse(head, "no Host");
    return 0;
}

int nrg_http_head_parse(struct nrg_http_head *head, const char *at, size_t n, bool is_answer)
{
    *head = (struct nrg_http_head){.is_answer = is_answer};
    const char *end = n >= 4 ? memmem(at, n, "\r\n\r\n", 4) : NULL;
    size_t whole = end ? (size_t)(end - at) + 4 : n;
    if (whole > NRG_HTTP_HEAD_MAX) {
        head->why = "the head is too long";
        return -E2BIG;
    }
    if (!end)
        return has_bare_line_feed(at, n) ? refuse(head, NOT_CR_LF) : 0;
    head->size = whole;
    int rc = check_bytes(head, at, whole);
    if (rc)
        return rc;
    const char *line = memchr(at, '\r', whole);
    head->first = (struct nrg_http_text){at, (size_t)(line - at)};
    head->fields =
        (struct nrg_http_text){line + 2, whole - 4 > head->first.n ? whole - 4 - head->first.n : 0};
    rc = is_answer ? parse_status_line(head) : parse_request_line(head);
    if (!rc)
        rc = parse_fields(head);
    return rc ? rc : (int)whole;
}

enum nrg_http_framing nrg_http_answer_framing(const struct nrg_http_head *head, bool to_head)
{
    if (to_head || head->status < 200 || head->status == 204 || head->status == 304)
        return NRG_BODY_NONE;
    if (head->framing == NRG_BODY_NONE)
        return NRG_BODY_CLOSE;
    return head->framing == NRG_BODY_LENGTH && !head->length ? NRG_BODY_NONE : head->framing;
}

void nrg_http_add(struct nrg_http_out *out, const char *text, size_t n)
{
    if (out->n <= out->size && n <= out->size - out->n)
        memcpy(out->at + out->n, text, n);
    out->n += n;
}

void nrg_http_addf(struct nrg_http_out *out, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n > 0)
        nrg_http_add(out, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

static bool is_one_of(struct nrg_http_text name, const char *const *names)
{
    for (; *names; names++)
        if (nrg_http_text_is(name, *names))
            return true;
    return false;
}

static const char *const hop_fields[] = {
    "connection", "keep-alive",          "proxy-connection",   "te",
    "upgrade",    "proxy-authorization", "proxy-authenticate", NULL};
static const char *const framing_fields[] = {"content-length", "transfer-encoding", "trailer",
                                             NULL};

/* Of one connection only. What frames the message stays, whatever Connection names. */
static bool is_hop_field(const struct nrg_http_head *head, struct nrg_http_text name)
{
    static const char *const kept[] = {"authorization", "content-type", NULL};
    if (is_one_of(name, hop_fields))
        return true;
    if (is_one_of(name, framing_fields) || is_one_of(name, kept))
        return false;
    return head->connection.n && nrg_http_list_has(head->connection, name);
}

static bool frames(struct nrg_http_text name)
{
    return is_one_of(name, framing_fields);
}

bool nrg_http_head_only(struct nrg_http_text name)
{
    static const char *const others[] = {
        "host",       "expect",       "authorization",    "cookie",
        "set-cookie", "content-type", "content-encoding", "content-range",
        "location",   "max-forwards", "x-nrg-joules",     NULL};
    return is_one_of(name, hop_fields) || frames(name) || is_one_of(name, others);
}

static void add_field(struct nrg_http_out *out, const struct nrg_http_field *field)
{
    nrg_http_add(out, field->name.at, field->name.n);
    nrg_http_add(out, ": ", 2);
    nrg_http_add(out, field->value.at, field->value.n);
    nrg_http_add(out, "\r\n", 2);
}

void nrg_http_write_request(struct nrg_http_out *out, const struct nrg_http_head *head,
                            const char *host, const char *prefix, bool unframed)
{
    struct nrg_http_field field;
    nrg_http_add(out, head->method.at, head->method.n);
    nrg_http_add(out, " ", 1);
    if (head->target.at[0] == '/')
        nrg_http_add(out, prefix, strlen(prefix));
    nrg_http_add(out, head->target.at, head->target.n);
    nrg_http_add(out, " HTTP/1.1\r\nHost: ", 17);
    nrg_http_add(out, host, strlen(host));
    nrg_http_add(out, "\r\n", 2);
    for (const char *at = head->fields.at; nrg_http_next_field(head, &at, &field);)
        if (!is_hop_field(head, field.name) && !nrg_http_text_is(field.name, "host") &&
            !nrg_http_text_is(field.name, "accept-encoding") &&
            !nrg_http_text_is(field.name, "x-nrg-joules") && !(unframed && frames(field.name)))
            add_field(out, &field);
    nrg_http_addf(out, "Accept-Encoding: identity\r\n%s", unframed ? "" : "\r\n");
}

void nrg_http_write_answer(struct nrg_http_out *out, const struct nrg_http_head *head,
                           const struct nrg_http_extra *extra)
{
    struct nrg_http_field field;
    nrg_http_add(out, "HTTP/1.1", 8);
    nrg_http_add(out, head->first.at + 8, head->first.n - 8);
    nrg_http_add(out, "\r\n", 2);
    for (const char *at = head->fields.at; nrg_http_next_field(head, &at, &field);)
        if (!is_hop_field(head, field.name) && !nrg_http_text_is(field.name, "x-nrg-joules") &&
            !(extra->unframed && frames(field.name)))
            add_field(out, &field);
    if (extra->joules)
        nrg_http_addf(out, "x-nrg-joules: %s\r\n", extra->joules);
    if (extra->trailer)
        nrg_http_addf(out, "Trailer: x-nrg-joules\r\n");
    if (extra->close)
        nrg_http_addf(out, "Connection: close\r\n");
    nrg_http_add(out, "\r\n", 2);
}
