/*
 * See meter_uri.h. One pass over a copy of the text: every part is cut out of the store and ended
 * with a NUL where its separator stood; decoding only shrinks, so it happens in place.
 *
 * The query begins at the last '?', because a command (exec:) may contain others; what follows it
 * must look like key=value, else the mark belongs to the command.
 */
#include "sensors/meter/uri.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define SCHEME  LETTERS "0123456789-"
#define KEY     LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

static int fail_at(const struct nrg_uri *uri, const char *at, const char *what,
                   struct nrg_error *err)
{
    return nrg_fail_at(err, -EINVAL, uri->text, at - uri->store + 1, "%s", what);
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* In place. The end of the decoded text, or NULL with *at where an escape is wrong. */
static char *decode(char *text, const char **at)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = hex_digit(from[1]), low = high < 0 ? -1 : hex_digit(from[2]);
        *at = from;
        if (low < 0 || high * 16 + low == 0)
            return NULL;
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return to;
}

static int decode_part(const struct nrg_uri *uri, char *text, struct nrg_error *err)
{
    const char *at = text;
    return decode(text, &at) ? 0
                             : fail_at(uri, at, "a '%' wants two hexadecimal digits, not 00", err);
}

static bool given(const struct nrg_uri *uri, const char *key)
{
    for (unsigned i = 0; i < uri->n_query; i++)
        if (!strcmp(uri->query[i].key, key))
            return true;
    return false;
}

static int parse_pair(struct nrg_uri *uri, char *pair, struct nrg_error *err)
{
    size_t len = strspn(pair, KEY);
    if (!len || pair[len] != '=')
        return fail_at(uri, pair, "wants key=value here", err);
    pair[len] = '\0';
    if (given(uri, pair))
        return fail_at(uri, pair, "this key is given twice", err);
    if (uri->n_query == NRG_URI_KEYS)
        return fail_at(uri, pair, "too many keys", err);
    int rc = decode_part(uri, pair + len + 1, err);
    uri->query[uri->n_query].key = pair;
    uri->query[uri->n_query].asked = false;
    uri->query[uri->n_query++].value = pair + len + 1;
    return rc;
}

static int parse_query(struct nrg_uri *uri, char *query, struct nrg_error *err)
{
    int rc = 0;
    while (!rc && query) {
        char *next = strchr(query, '&');
        if (next)
            *next++ = '\0';
        rc = parse_pair(uri, query, err);
        query = next;
    }
    return rc;
}

static bool looks_like_query(const char *text)
{
    size_t len = strspn(text, KEY);
    return len && text[len] == '=';
}

int nrg_uri_parse(struct nrg_uri *uri, const char *text, struct nrg_error *err)
{
    size_t len = strlen(text), scheme = strspn(text, SCHEME);
    memset(uri, 0, sizeof *uri);
    uri->scheme = uri->place = uri->store;
    nrg_copy(uri->text, sizeof uri->text, text);
    if (len >= sizeof uri->store)
        return nrg_fail(err, -EINVAL, "--meter", "longer than %zu bytes: '%.40s...'",
                        sizeof uri->store - 1, text);
    memcpy(uri->store, text, len + 1);
    if (!scheme || text[scheme] != ':')
        return fail_at(uri, uri->store + scheme,
                       "wants KIND:PLACE, such as emonpi:/dev/ttyAMA0?node=5", err);
    uri->store[scheme] = '\0';
    char *place = uri->store + scheme + 1, *query = strrchr(place, '?');
    uri->place = place;
    if (query && !looks_like_query(query + 1)) {
        if (strcmp(uri->scheme, "exec"))
            return fail_at(uri, query + 1, "wants key=value after '?'", err);
        query = NULL;
    }
    if (query)
        *query++ = '\0';
    if (!*place)
        return fail_at(uri, place, "nothing is named after the colon", err);
    int rc = strncmp(place, "//", 2) ? 0 : decode_part(uri, place, err);
    return rc ? rc : parse_query(uri, query, err);
}

/* What would have been understood, for nrg_uri_finish. */
static void remember(struct nrg_uri *uri, const char *key)
{
    size_t used = strlen(uri->understood), len = strlen(key);
    for (const char *p = uri->understood; (p = strstr(p, key)); p += len)
        if ((p == uri->understood || p[-1] == ' ') && (!p[len] || p[len] == ','))
            return;
    if (used + len + 3 < sizeof uri->understood)
        snprintf(uri->understood + used, sizeof uri->understood - used, "%s%s", used ? ", " : "",
                 key);
}

const char *nrg_uri_text(struct nrg_uri *uri, const char *key)
{
    remember(uri, key);
    for (unsigned i = 0; i < uri->n_query; i++) {
        if (strcmp(uri->query[i].key, key))
            continue;
        uri->query[i].asked = true;
        return uri->query[i].value;
    }
    return NULL;
}

int nrg_uri_number(struct nrg_uri *uri, const char *key, double least, double most, double *value,
                   struct nrg_error *err)
{
    const char *text = nrg_uri_text(uri, key);
    double number;
    if (!text)
        return 0;
    if (nrg_parse_double(text, strlen(text), &number) || !(number >= least && number <= most))
        return nrg_fail(err, -EINVAL, uri->text, "%s= wants a number from %g to %g, not '%s'", key,
                        least, most, text);
    *value = number;
    return 0;
}

int nrg_uri_duration(struct nrg_uri *uri, const char *key, int64_t *value_ns, struct nrg_error *err)
{
    const char *text = nrg_uri_text(uri, key);
    int64_t ns;
    if (!text)
        return 0;
    if (nrg_parse_duration_ns(text, &ns) || ns < 0)
        return nrg_fail(err, -EINVAL, uri->text,
                        "%s= wants a duration such as 200ms or 10s, not '%s'", key, text);
    *value_ns = ns;
    return 0;
}

int nrg_uri_finish(const struct nrg_uri *uri, struct nrg_error *err)
{
    for (unsigned i = 0; i < uri->n_query; i++)
        if (!uri->query[i].asked)
            return nrg_fail(err, -EINVAL, uri->text, "%s has no key %s=; it understands %s",
                            uri->scheme, uri->query[i].key,
                            uri->understood[0] ? uri->understood : "none");
    return 0;
}
