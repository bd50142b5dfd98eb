/*
 * See meter/uri.h. One pass over a copy of the text: every part is cut out of the store and ended
 * with a NUL where its separator stood; decoding only shrinks, so it happens in place.
 *
 * The query begins at the last '?', because a command (exec:) may contain others; what follows it
 * must look like key=value, else the mark belongs to the command. Behind a host it begins at the
 * first: a key must not become a part of a topic because its value has a '?'.
 */
#include "sensors/meter/uri.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/secret.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define SCHEME  LETTERS "0123456789-"
#define KEY     LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

static int fail_at(const struct nrg_uri *uri, const char *at, const char *what,
                   struct nrg_error *err)
{
    return nrg_fail_at(err, -EINVAL, uri->text, at - uri->store + 1, "%s", what);
}

int nrg_hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

const char *nrg_next_item(const char **list, size_t *len)
{
    const char *item = *list;
    if (item) {
        *len = strcspn(item, ",");
        *list = item[*len] ? item + *len + 1 : NULL;
    }
    return item;
}

/* Decodes percent escapes in place. */
static int decode_part(const struct nrg_uri *uri, char *text, struct nrg_error *err)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (*from != '%') {
            *to++ = *from;
            continue;
        }
        int high = nrg_hex_digit(from[1]), low = high < 0 ? -1 : nrg_hex_digit(from[2]);
        if (low < 0 || high * 16 + low == 0)
            return fail_at(uri, from, "a '%' wants two hexadecimal digits, not 00", err);
        *to++ = (char)(high * 16 + low);
        from += 2;
    }
    *to = '\0';
    return 0;
}

/* Index of a key in the query, n_query: it is not given. */
static unsigned index_of(const struct nrg_uri *uri, const char *key)
{
    unsigned i = 0;
    while (i < uri->n_query && strcmp(uri->query[i].key, key))
        i++;
    return i;
}

static bool begins_with_key(const char *text)
{
    size_t len = strspn(text, KEY);
    return len && text[len] == '=';
}

static int parse_pair(struct nrg_uri *uri, char *pair, struct nrg_error *err)
{
    if (!begins_with_key(pair))
        return fail_at(uri, pair, "wants key=value here", err);
    size_t len = strcspn(pair, "=");
    pair[len] = '\0';
    if (index_of(uri, pair) < uri->n_query)
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

int nrg_uri_parse(struct nrg_uri *uri, const char *text, struct nrg_error *err)
{
    size_t len = strlen(text), scheme = strspn(text, SCHEME);
    memset(uri, 0, sizeof *uri);
    uri->scheme = uri->place = uri->store;
    nrg_mask_uri(uri->text, sizeof uri->text, text);
    if (len >= sizeof uri->store)
        return nrg_fail(err, -EINVAL, "--meter", "longer than %zu bytes: '%.40s...'",
                        sizeof uri->store - 1, uri->text);
    memcpy(uri->given, text, len + 1);
    memcpy(uri->store, text, len + 1);
    if (!scheme || text[scheme] != ':')
        return fail_at(uri, uri->store + scheme,
                       "wants KIND:PLACE, such as emonpi:/dev/ttyAMA0?node=5", err);
    uri->store[scheme] = '\0';
    char *place = uri->store + scheme + 1;
    char *query = strncmp(place, "//", 2) ? strrchr(place, '?') : strchr(place, '?');
    uri->place = place;
    if (query && !begins_with_key(query + 1)) {
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

int nrg_uri_join(struct nrg_uri *uri, const char *scheme, const char *rest, struct nrg_error *err)
{
    char text[NRG_URI_TEXT];
    if (snprintf(text, sizeof text, "%s:%s", scheme, rest ? rest : "") >= (int)sizeof text)
        return nrg_fail(err, -EINVAL, "--meter", "longer than %zu bytes", sizeof text - 1);
    return nrg_uri_parse(uri, text, err);
}

int nrg_uri_part(const struct nrg_uri *uri, const char *what, const char *part, size_t len,
                 char *to, size_t size, struct nrg_error *err)
{
    if (len >= size)
        return nrg_fail(err, -EINVAL, uri->text, "the %s is longer than %zu bytes", what, size - 1);
    memcpy(to, part, len);
    to[len] = '\0';
    return 0;
}

/* Adds a key to those that are understood, for nrg_uri_finish. */
static void remember_key(struct nrg_uri *uri, const char *key)
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
    remember_key(uri, key);
    unsigned i = index_of(uri, key);
    if (i == uri->n_query)
        return NULL;
    uri->query[i].asked = true;
    return uri->query[i].value;
}

static int read_number(const struct nrg_uri *uri, const struct nrg_uri_key *k, const char *text,
                       void *field, struct nrg_error *err)
{
    double number;
    bool whole = k->is == NRG_URI_IS_COUNT;
    if (nrg_parse_double(text, strlen(text), &number) ||
        !(number >= k->least && number <= k->most) || (whole && number != (double)(int)number))
        return nrg_fail(err, -EINVAL, uri->text, "%s= wants a %snumber from %g to %g, not '%s'",
                        k->key, whole ? "whole " : "", k->least, k->most, text);
    if (whole)
        *(int *)field = (int)number;
    else
        *(double *)field = number;
    return 0;
}

static int read_key(const struct nrg_uri *uri, const struct nrg_uri_key *k, const char *text,
                    void *field, struct nrg_error *err)
{
    int64_t ns;
    switch (k->is) {
    case NRG_URI_IS_DURATION:
        if (nrg_parse_duration_ns(text, &ns) || ns < 0)
            return nrg_fail(err, -EINVAL, uri->text,
                            "%s= wants a duration such as 200ms or 10s, not '%s'", k->key, text);
        *(int64_t *)field = ns;
        return 0;
    case NRG_URI_IS_TEXT:
        if (nrg_copy_whole(field, k->size, text))
            return nrg_fail(err, -EINVAL, uri->text, "%s= is longer than %zu bytes", k->key,
                            k->size - 1);
        return 0;
    case NRG_URI_IS_WORD:
        if (strcmp(text, k->no) && strcmp(text, k->yes))
            return nrg_fail(err, -EINVAL, uri->text, "%s= wants %s or %s, not '%.20s'", k->key,
                            k->no, k->yes, text);
        *(bool *)field = !strcmp(text, k->yes);
        return 0;
    default:
        return read_number(uri, k, text, field, err);
    }
}

int nrg_uri_read(struct nrg_uri *uri, const struct nrg_uri_key *keys, void *values,
                 struct nrg_error *err)
{
    int rc = 0;
    for (const struct nrg_uri_key *k = keys; !rc && k->key; k++) {
        const char *text = nrg_uri_text(uri, k->key);
        if (text)
            rc = read_key(uri, k, text, (char *)values + k->offset, err);
    }
    return rc;
}

int nrg_uri_finish(const struct nrg_uri *uri, struct nrg_error *err)
{
    for (unsigned i = 0; i < uri->n_query; i++) {
        const char *key = uri->query[i].key;
        if (uri->query[i].asked)
            continue;
        return nrg_fail(err, -EINVAL, uri->text, "%s has no key %s=%s; it understands %s",
                        uri->scheme, key,
                        nrg_is_secret_name(key, strlen(key))
                            ? ", and a URI, which ps shows to everybody, is no place for a secret"
                            : "",
                        uri->understood[0] ? uri->understood : "none");
    }
    return 0;
}
