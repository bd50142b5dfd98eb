/*
 * See fetch.h. The declarations below are those of libcurl 7 and 8, whose numbers never change.
 */
#include "net/fetch.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/secret.h"

typedef void CURL;
struct curl_slist;

enum {
    GLOBAL_ALL = 3,
    HTTP_AND_HTTPS = 3,
    HTTP_1_1 = 2,
    AUTH_BASIC = 1,
    OPT_WRITEDATA = 10001,
    OPT_URL = 10002,
    OPT_ERRORBUFFER = 10010,
    OPT_USERAGENT = 10018,
    OPT_HTTPHEADER = 10023,
    OPT_CAINFO = 10065,
    OPT_USERNAME = 10173,
    OPT_PASSWORD = 10174,
    OPT_NOPROXY = 10177,
    OPT_WRITEFUNCTION = 20011,
    OPT_FOLLOWLOCATION = 52,
    OPT_SSL_VERIFYPEER = 64,
    OPT_SSL_VERIFYHOST = 81,
    OPT_HTTP_VERSION = 84,
    OPT_NOSIGNAL = 99,
    OPT_HTTPAUTH = 107,
    OPT_TIMEOUT_MS = 155,
    OPT_CONNECTTIMEOUT_MS = 156,
    OPT_PROTOCOLS = 181,
    INFO_CONTENT_TYPE = 0x100012,
    INFO_RESPONSE_CODE = 0x200002,
    ERROR_BYTES = 256
};

enum {
    E_RESOLVE_HOST = 6,
    E_CONNECT = 7,
    E_WRITE = 23,
    E_TIMED_OUT = 28,
    E_SSL_CONNECT = 35,
    E_PEER_FAILED = 60,
    E_CA_FILE = 77
};

struct library {
    int (*global_init)(long);
    CURL *(*easy_init)(void);
    int (*easy_setopt)(CURL *, int, ...);
    int (*easy_perform)(CURL *);
    int (*easy_getinfo)(CURL *, int, ...);
    void (*easy_cleanup)(CURL *);
    const char *(*easy_strerror)(int);
    struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
    void (*slist_free_all)(struct curl_slist *);
};

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    {"curl_global_init", offsetof(struct library, global_init)},
    {"curl_easy_init", offsetof(struct library, easy_init)},
    {"curl_easy_setopt", offsetof(struct library, easy_setopt)},
    {"curl_easy_perform", offsetof(struct library, easy_perform)},
    {"curl_easy_getinfo", offsetof(struct library, easy_getinfo)},
    {"curl_easy_cleanup", offsetof(struct library, easy_cleanup)},
    {"curl_easy_strerror", offsetof(struct library, easy_strerror)},
    {"curl_slist_append", offsetof(struct library, slist_append)},
    {"curl_slist_free_all", offsetof(struct library, slist_free_all)},
};

struct nrg_fetch {
    struct library lib;
    CURL *curl;
    char *body;
    size_t len, max_bytes;
    char why[ERROR_BYTES];
};

/* Never unloaded: TLS libraries below it register clean-up functions of their own. */
static void *open_library(void)
{
    static const char *const usual[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
    const char *chosen = secure_getenv("NRG_CURL_LIBRARY");
    void *handle = NULL;
    if (chosen && *chosen)
        return dlopen(chosen, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; !handle && i < sizeof usual / sizeof *usual; i++)
        handle = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return handle;
}

static int load_library(struct library *lib, struct nrg_error *err)
{
    void *handle = open_library();
    if (!handle)
        return nrg_fail(err, -ENOENT, "libcurl.so.4",
                        "is not installed: apt install libcurl4 (Debian's name of it)");
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(handle, symbols[i].name);
        if (!found) {
            dlclose(handle);
            return nrg_fail(err, -ENOENT, "libcurl.so.4", "has no %s: another version is needed",
                            symbols[i].name);
        }
        memcpy((char *)lib + symbols[i].offset, &found, sizeof found);
    }
    dlclose(handle);
    return lib->global_init(GLOBAL_ALL)
               ? nrg_fail(err, -ENOMEM, "libcurl.so.4", "does not initialise")
               : 0;
}

static size_t take_body(char *data, size_t size, size_t n, void *arg)
{
    struct nrg_fetch *f = arg;
    size_t len = size * n;
    if (len > f->max_bytes - f->len)
        return 0; /* ends the exchange with E_WRITE */
    memcpy(f->body + f->len, data, len);
    f->len += len;
    return len;
}

static int set_options(struct nrg_fetch *f, const struct nrg_fetch_options *o)
{
    int (*set)(CURL *, int, ...) = f->lib.easy_setopt;
    CURL *c = f->curl;
    int rc = set(c, OPT_NOSIGNAL, 1L) | set(c, OPT_FOLLOWLOCATION, 0L) |
             set(c, OPT_PROTOCOLS, (long)HTTP_AND_HTTPS) | set(c, OPT_NOPROXY, "*") |
             set(c, OPT_SSL_VERIFYPEER, 1L) | set(c, OPT_SSL_VERIFYHOST, 2L) |
             set(c, OPT_HTTP_VERSION, (long)HTTP_1_1) | set(c, OPT_TIMEOUT_MS, o->timeout_ms) |
             set(c, OPT_CONNECTTIMEOUT_MS, o->connect_ms) | set(c, OPT_ERRORBUFFER, f->why) |
             set(c, OPT_WRITEFUNCTION, take_body) | set(c, OPT_WRITEDATA, f) |
             set(c, OPT_USERAGENT, o->agent ? o->agent : "nrg");
    if (o->ca_file)
        rc |= set(c, OPT_CAINFO, o->ca_file);
    if (o->user)
        rc |= set(c, OPT_HTTPAUTH, (long)AUTH_BASIC) | set(c, OPT_USERNAME, o->user) |
              set(c, OPT_PASSWORD, o->password ? o->password : "");
    return rc;
}

int nrg_fetch_new(const struct nrg_fetch_options *options, struct nrg_fetch **fetch,
                  struct nrg_error *err)
{
    struct nrg_fetch *f = *fetch = nrg_calloc(1, sizeof *f);
    if (!f)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    int rc = load_library(&f->lib, err);
    f->max_bytes = options->max_bytes;
    f->body = rc ? NULL : nrg_calloc(options->max_bytes + 1, 1);
    f->curl = f->body ? f->lib.easy_init() : NULL;
    if (!rc && (!f->curl || set_options(f, options)))
        rc = nrg_fail(err, -ENOMEM, "libcurl.so.4", "does not take its settings");
    if (rc) {
        nrg_fetch_free(f);
        *fetch = NULL;
    }
    return rc;
}

void nrg_fetch_free(struct nrg_fetch *f)
{
    if (!f)
        return;
    if (f->curl)
        f->lib.easy_cleanup(f->curl);
    free(f->body);
    free(f);
}

static int explain(struct nrg_fetch *f, int code, const char *url, struct nrg_error *err)
{
    const char *why = f->why[0] ? f->why : f->lib.easy_strerror(code);
    switch (code) {
    case E_RESOLVE_HOST:
        return nrg_fail(err, -EHOSTUNREACH, url, "%s", why);
    case E_CONNECT:
        return nrg_fail(err, -ECONNREFUSED, url, "%s", why);
    case E_TIMED_OUT:
        return nrg_fail(err, -ETIMEDOUT, url, "no whole answer in time");
    case E_WRITE:
        return nrg_fail(err, -EFBIG, url, "the answer has more than %zu bytes", f->max_bytes);
    case E_SSL_CONNECT:
    case E_PEER_FAILED:
    case E_CA_FILE:
        return nrg_fail(err, -EPERM, url, "TLS: %s", why);
    default:
        return nrg_fail(err, -EPROTO, url, "%s", why);
    }
}

static void describe(struct nrg_fetch *f, struct nrg_fetch_answer *a)
{
    const char *type = NULL;
    *a = (struct nrg_fetch_answer){.body = f->body, .len = f->len};
    f->lib.easy_getinfo(f->curl, INFO_RESPONSE_CODE, &a->status);
    f->lib.easy_getinfo(f->curl, INFO_CONTENT_TYPE, &type);
    for (size_t i = 0; type && type[i] && i + 1 < sizeof a->content_type; i++)
        a->content_type[i] = (char)tolower((unsigned char)type[i]);
}

int nrg_fetch_get(struct nrg_fetch *f, const char *url, const char *const *headers,
                  struct nrg_fetch_answer *answer, struct nrg_error *err)
{
    struct curl_slist *list = NULL;
    int rc = 0;
    for (size_t i = 0; headers && headers[i]; i++) {
        struct curl_slist *longer = f->lib.slist_append(list, headers[i]);
        if (!longer)
            rc = nrg_fail(err, -ENOMEM, url, "out of memory");
        else
            list = longer;
    }
    f->len = 0;
    f->why[0] = '\0';
    int code = rc ? 0
                  : f->lib.easy_setopt(f->curl, OPT_URL, url) |
                        f->lib.easy_setopt(f->curl, OPT_HTTPHEADER, list);
    if (!rc && !code)
        code = f->lib.easy_perform(f->curl);
    f->body[f->len] = '\0';
    f->lib.easy_setopt(f->curl, OPT_HTTPHEADER, NULL);
    f->lib.slist_free_all(list);
    if (!rc && code)
        rc = explain(f, code, url, err);
    if (!rc)
        describe(f, answer);
    return rc;
}

/* A host, or an address in brackets, and maybe a port. */
static bool is_place(const char *host, size_t len)
{
    const char *end = host + len;
    const char *close = *host == '[' ? memchr(host, ']', len) : NULL;
    if (*host == '[' && !close)
        return false;
    const char *p = close ? close + 1 : memchr(host, ':', len);
    if (!p || p == end)
        return true;
    char *rest;
    long port = *p == ':' && isdigit((unsigned char)p[1]) ? strtol(p + 1, &rest, 10) : 0;
    return port > 0 && port <= UINT16_MAX && rest == end;
}

int nrg_fetch_check_url(const char *url, const char *option, struct nrg_error *err)
{
    const char *host = !strncmp(url, "http://", 7)    ? url + 7
                       : !strncmp(url, "https://", 8) ? url + 8
                                                      : NULL;
    if (!host || !*host || strchr("/:?#", *host))
        return nrg_fail(err, -EINVAL, option, "wants http://HOST:PORT or https://HOST:PORT");
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || (unsigned char)*p == 127)
            return nrg_fail(err, -EINVAL, option, "the URL holds a blank or a control character");
    size_t len = strcspn(host, "/?#");
    if (memchr(host, '@', len) || nrg_has_password(url))
        return nrg_fail(err, -EINVAL, option,
                        "the URL must not hold a password: it would be kept in the recording");
    if (!is_place(host, len))
        return nrg_fail(err, -EINVAL, option, "the URL has no such port or address: '%.*s'",
                        (int)len, host);
    return 0;
}

void nrg_fetch_public_url(const char *url, char *to, size_t size)
{
    nrg_mask_text(to, size, url);
    char *host = strstr(to, "http://");
    if (!host)
        host = strstr(to, "https://");
    if (host)
        host[strcspn(host, "?#")] = '\0';
}
