/*
 * See tls.h. The functions have declarations of their own here, so that no header of OpenSSL is
 * needed to build; they are those of its documented API, which version 3 keeps.
 */
#include "llm/proxy/tls.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Numbers of OpenSSL's headers. */
enum {
    SSL_VERIFY_PEER_ = 1,
    SSL_ERROR_SSL_ = 1,
    SSL_ERROR_WANT_READ_ = 2,
    SSL_ERROR_WANT_WRITE_ = 3,
    SSL_ERROR_SYSCALL_ = 5,
    SSL_ERROR_ZERO_RETURN_ = 6,
    SSL_CTRL_MODE_ = 33,
    SSL_CTRL_SET_TLSEXT_HOSTNAME_ = 55,
    SSL_CTRL_SET_MIN_PROTO_VERSION_ = 123,
    TLSEXT_NAMETYPE_host_name_ = 0,
    TLS1_2_VERSION_ = 0x0303,
    SSL_OP_IGNORE_UNEXPECTED_EOF_ = 1 << 7,
    SSL_MODE_ENABLE_PARTIAL_WRITE_ = 1,
    SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER_ = 2,
};

struct nrg_tls {
    void *library;
    void *ctx;
    char host[256];
    bool is_address;
    const void *(*client_method)(void);
    void *(*ctx_new)(const void *method);
    void (*ctx_free)(void *ctx);
    int (*default_paths)(void *ctx);
    void (*ctx_verify)(void *ctx, int mode, void *callback);
    long (*ctx_ctrl)(void *ctx, int cmd, long larg, void *parg);
    uint64_t (*ctx_clear)(void *ctx, uint64_t options);
    void *(*ssl_new)(void *ctx);
    void (*ssl_free)(void *ssl);
    int (*set_fd)(void *ssl, int fd);
    long (*ssl_ctrl)(void *ssl, int cmd, long larg, void *parg);
    int (*set_host)(void *ssl, const char *name);
    void *(*get_param)(void *ssl);
    int (*set_ip)(void *param, const char *address);
    int (*connect)(void *ssl);
    int (*read)(void *ssl, void *to, int n);
    int (*write)(void *ssl, const void *from, int n);
    int (*error)(const void *ssl, int rc);
    long (*verify_result)(const void *ssl);
    const char *(*verify_text)(long code);
    void (*clear_errors)(void);
    unsigned long (*first_error)(void);
    const char *(*error_text)(unsigned long code);
};

struct nrg_tls_session {
    void *ssl;
};

static bool find(struct nrg_tls *t, const char *name, void *function)
{
    void *symbol = dlsym(t->library, name); /* also of libcrypto, which it needs */
    memcpy(function, &symbol, sizeof symbol);
    return symbol;
}

static bool find_all(struct nrg_tls *t)
{
    return find(t, "TLS_client_method", &t->client_method) && find(t, "SSL_CTX_new", &t->ctx_new) &&
           find(t, "SSL_CTX_free", &t->ctx_free) &&
           find(t, "SSL_CTX_set_default_verify_paths", &t->default_paths) &&
           find(t, "SSL_CTX_set_verify", &t->ctx_verify) && find(t, "SSL_CTX_ctrl", &t->ctx_ctrl) &&
           find(t, "SSL_CTX_clear_options", &t->ctx_clear) && find(t, "SSL_new", &t->ssl_new) &&
           find(t, "SSL_free", &t->ssl_free) && find(t, "SSL_set_fd", &t->set_fd) &&
           find(t, "SSL_ctrl", &t->ssl_ctrl) && find(t, "SSL_set1_host", &t->set_host) &&
           find(t, "SSL_get0_param", &t->get_param) &&
           find(t, "X509_VERIFY_PARAM_set1_ip_asc", &t->set_ip) &&
           find(t, "SSL_connect", &t->connect) && find(t, "SSL_read", &t->read) &&
           find(t, "SSL_write", &t->write) && find(t, "SSL_get_error", &t->error) &&
           find(t, "SSL_get_verify_result", &t->verify_result) &&
           find(t, "X509_verify_cert_error_string", &t->verify_text) &&
           find(t, "ERR_clear_error", &t->clear_errors) &&
           find(t, "ERR_peek_error", &t->first_error) &&
           find(t, "ERR_reason_error_string", &t->error_text);
}

static bool is_address(const char *host)
{
    unsigned char to[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, to) == 1 || inet_pton(AF_INET6, host, to) == 1;
}

static int make_context(struct nrg_tls *t, struct nrg_error *err)
{
    t->ctx = t->ctx_new(t->client_method());
    if (!t->ctx)
        return nrg_fail(err, -ENOMEM, NULL, "OpenSSL gives no context");
    if (t->default_paths(t->ctx) != 1)
        return nrg_fail(err, -ENOENT, NULL, "OpenSSL finds no certificate authorities");
    t->ctx_verify(t->ctx, SSL_VERIFY_PEER_, NULL);
    /* Whatever openssl.cnf says: else a body that was cut would look whole. */
    t->ctx_clear(t->ctx, SSL_OP_IGNORE_UNEXPECTED_EOF_);
    if (t->ctx_ctrl(t->ctx, SSL_CTRL_SET_MIN_PROTO_VERSION_, TLS1_2_VERSION_, NULL) != 1)
        return nrg_fail(err, -ENOTSUP, NULL, "OpenSSL does not know TLS 1.2");
    t->ctx_ctrl(t->ctx, SSL_CTRL_MODE_,
                SSL_MODE_ENABLE_PARTIAL_WRITE_ | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER_, NULL);
    return 0;
}

int nrg_tls_new(struct nrg_tls **tls, const char *host, struct nrg_error *err)
{
    struct nrg_tls *t = nrg_calloc(1, sizeof *t);
    if (!t)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    nrg_copy(t->host, sizeof t->host, host);
    t->is_address = is_address(host);
    t->library = dlopen("libssl.so.3", RTLD_NOW | RTLD_LOCAL);
    int rc = t->library && find_all(t)
                 ? make_context(t, err)
                 : nrg_fail(err, -ELIBACC, NULL,
                            "an https:// upstream needs OpenSSL 3 (Debian: apt install libssl3)");
    if (rc)
        nrg_tls_free(t);
    else
        *tls = t;
    return rc;
}

void nrg_tls_free(struct nrg_tls *t)
{
    if (!t)
        return;
    if (t->ctx)
        t->ctx_free(t->ctx);
    if (t->library)
        dlclose(t->library);
    free(t);
}

/* The name that the certificate must have, and the one that the server is asked for. */
static bool set_peer(struct nrg_tls *t, void *ssl)
{
    char name[sizeof t->host];
    if (t->is_address)
        return t->set_ip(t->get_param(ssl), t->host) == 1;
    memcpy(name, t->host, sizeof name);
    return t->set_host(ssl, t->host) == 1 &&
           t->ssl_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME_, TLSEXT_NAMETYPE_host_name_, name) == 1;
}

struct nrg_tls_session *nrg_tls_open(struct nrg_tls *t, int fd)
{
    struct nrg_tls_session *session = nrg_calloc(1, sizeof *session);
    if (!session)
        return NULL;
    session->ssl = t->ssl_new(t->ctx);
    if (session->ssl && t->set_fd(session->ssl, fd) == 1 && set_peer(t, session->ssl))
        return session;
    nrg_tls_close(t, session);
    return NULL;
}

void nrg_tls_close(struct nrg_tls *t, struct nrg_tls_session *session)
{
    if (!session)
        return;
    if (session->ssl)
        t->ssl_free(session->ssl);
    free(session);
}

/* What a call that did not succeed means: 0 an end, or -errno. */
static int outcome(struct nrg_tls *t, struct nrg_tls_session *session, int rc, bool *want_write)
{
    int saved = errno;
    int code = t->error(session->ssl, rc);
    *want_write = code == SSL_ERROR_WANT_WRITE_;
    if (code == SSL_ERROR_WANT_READ_ || code == SSL_ERROR_WANT_WRITE_)
        return -EAGAIN;
    if (code == SSL_ERROR_ZERO_RETURN_)
        return 0;
    return code == SSL_ERROR_SYSCALL_ && saved ? -saved : -EPROTO;
}

void nrg_tls_explain(struct nrg_tls *t, const struct nrg_tls_session *session, char *why,
                     size_t size)
{
    long verified = t->verify_result(session->ssl);
    unsigned long code = t->first_error();
    const char *text = verified ? t->verify_text(verified) : code ? t->error_text(code) : NULL;
    nrg_copy(why, size, "TLS: ");
    nrg_copy(why + 5, size - 5, text ? text : "the connection was closed");
}

int nrg_tls_handshake(struct nrg_tls *t, struct nrg_tls_session *session, bool *want_write)
{
    t->clear_errors();
    int rc = t->connect(session->ssl);
    if (rc == 1) {
        *want_write = false;
        return 0;
    }
    return outcome(t, session, rc, want_write) == -EAGAIN ? -EAGAIN : -EPROTO;
}

ssize_t nrg_tls_read(struct nrg_tls *t, struct nrg_tls_session *session, void *to, size_t n,
                     bool *want_write)
{
    t->clear_errors();
    errno = 0;
    int rc = t->read(session->ssl, to, n > INT_MAX ? INT_MAX : (int)n);
    *want_write = false;
    return rc > 0 ? rc : outcome(t, session, rc, want_write);
}

ssize_t nrg_tls_write(struct nrg_tls *t, struct nrg_tls_session *session, const void *from,
                      size_t n, bool *want_write)
{
    t->clear_errors();
    errno = 0;
    int rc = t->write(session->ssl, from, n > INT_MAX ? INT_MAX : (int)n);
    *want_write = false;
    if (rc > 0)
        return rc;
    rc = outcome(t, session, rc, want_write);
    return rc ? rc : -EPIPE;
}
