/* See secret.h. */
#include "base/secret.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NAME   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
#define BLANKS " \t\r\n"
#define HIDDEN "***"

static bool ends_with(const char *name, size_t len, const char *word)
{
    size_t n = strlen(word);
    return len >= n && !strncasecmp(name + len - n, word, n);
}

static bool has_word(const char *name, size_t len, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= len; i++)
        if (!strncasecmp(name + i, word, n))
            return true;
    return false;
}

bool nrg_is_secret_name(const char *name, size_t len)
{
    static const char *const inside[] = {"passw",  "passphrase", "pwd",      "token",
                                         "secret", "credential", "signature"};
    static const char *const at_end[] = {"key", "auth", "pass", "authorization", "sig"};
    if (ends_with(name, len, "file") || ends_with(name, len, "path"))
        return false;
    if (ends_with(name, len, "tokens") || has_word(name, len, "tokeniz"))
        return false; /* of a language model */
    for (size_t i = 0; i < sizeof inside / sizeof *inside; i++)
        if (has_word(name, len, inside[i]))
            return true;
    for (size_t i = 0; i < sizeof at_end / sizeof *at_end; i++)
        if (ends_with(name, len, at_end[i]))
            return true;
    return false;
}

/* Where user and password are parted between `at` and `end`, and how wide that is; NULL: nowhere.
 * The colons of an IPv6 address in brackets do not count. */
static const char *find_colon(const char *at, const char *end, size_t *width)
{
    bool may_open = true;
    for (const char *p = at; p < end; p++) {
        const char *close = may_open && *p == '[' ? memchr(p, ']', (size_t)(end - p)) : NULL;
        if (close)
            p = close;
        may_open = *p == '@';
        *width = *p == ':' ? 1 : 3;
        if (*p == ':' || (end - p >= 3 && !strncasecmp(p, "%3a", 3)))
            return p;
    }
    return NULL;
}

/* The last '@', or in front of a path one that is decoded later. */
static const char *find_at_sign(const char *at, const char *end)
{
    const char *found = memrchr(at, '@', (size_t)(end - at));
    bool plain = found != NULL;
    for (const char *p = at; !plain && end - p >= 3 && !strchr("/?#", *p); p++)
        found = strncmp(p, "%40", 3) ? found : p;
    return found;
}

/* The same for a text from `at` to `end` that may be user:password@host. */
static const char *find_password(const char *at, const char *end, const char **password_end)
{
    size_t width;
    *password_end = find_at_sign(at, end);
    const char *colon = *password_end ? find_colon(at, *password_end, &width) : NULL;
    return colon ? colon + width : NULL;
}

static bool is_port(const char *text)
{
    size_t n = strspn(text, "0123456789");
    return n && n <= 5 && strchr("/?#", text[n]); /* the end of the text, too */
}

/* What stands behind "scheme:" and "//", where there are such. */
static const char *skip_scheme(const char *uri)
{
    const char *p = uri;
    while (isalnum((unsigned char)*p) || (*p && strchr("+-.", *p)))
        p++;
    bool has_scheme = p > uri && *p == ':' && (!strncmp(p + 1, "//", 2) || !is_port(p + 1));
    const char *at = has_scheme ? p + 1 : uri;
    return strncmp(at, "//", 2) ? at : at + 2;
}

bool nrg_has_password(const char *uri)
{
    const char *at = skip_scheme(uri), *end;
    const char *password = find_password(at, at + strlen(at), &end);
    return password && !is_port(password);
}

struct mask {
    char *to;
    size_t left; /* one of it is for the NUL */
};

static void put(struct mask *m, const char *text, size_t n)
{
    if (n > m->left)
        n = m->left;
    memcpy(m->to, text, n);
    m->to += n;
    m->left -= n;
}

/*
 * Behind name=, where a name begins at `at` and is that of a secret; else NULL. In a sentence only
 * behind '?' and '&', or as an option: "wants key=value" tells no secret.
 */
static const char *after_secret_name(const char *text, const char *at, bool is_uri)
{
    size_t n = strspn(at, NAME);
    bool begins = is_uri ? at == text || !strchr(NAME, at[-1])
                         : *at == '-' || (at > text && strchr("?&", at[-1]));
    return begins && n && at[n] == '=' && nrg_is_secret_name(at, n) ? at + n + 1 : NULL;
}

/* A URI's authority stands at `at`: behind the scheme, or "//" in a sentence. */
static bool begins_authority(const char *text, const char *at, bool is_uri)
{
    if (is_uri)
        return at == skip_scheme(text);
    return !strncmp(at, "//", 2) &&
           (at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '/'));
}

/* The secret that begins behind some bytes at `at`, up to *secret_end; NULL: none does. */
static const char *find_secret(const char *text, const char *at, bool is_uri,
                               const char **secret_end)
{
    const char *end = at + (is_uri ? strlen(at) : strcspn(at, BLANKS));
    const char *secret = after_secret_name(text, at, is_uri);
    if (secret || !begins_authority(text, at, is_uri)) {
        *secret_end = end;
        return secret;
    }
    secret = find_password(at + (strncmp(at, "//", 2) ? 0 : 2), end, secret_end);
    for (const char *p = at; secret && p < secret; p++)
        if (after_secret_name(text, p, is_uri))
            return NULL; /* that comes first, and hides more */
    return secret;
}

static void mask(char *to, size_t size, const char *text, bool is_uri)
{
    struct mask m = {.to = to, .left = size - 1};
    for (const char *p = text, *end; *p && m.left;) {
        const char *secret = find_secret(text, p, is_uri, &end);
        if (secret && !strncmp(secret, HIDDEN, strlen(HIDDEN)))
            end = secret + strlen(HIDDEN); /* by an earlier look */
        put(&m, p, secret ? (size_t)(secret - p) : 1);
        if (secret)
            put(&m, HIDDEN, strlen(HIDDEN));
        p = secret ? end : p + 1;
    }
    *m.to = '\0';
}

void nrg_mask_text(char *to, size_t size, const char *text)
{
    mask(to, size, text, false);
}

void nrg_mask_uri(char *to, size_t size, const char *uri)
{
    mask(to, size, uri, true);
}
