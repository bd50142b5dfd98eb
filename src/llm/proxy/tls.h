/*
 * TLS towards the server, by OpenSSL 3 (libssl.so.3), which is loaded when an https:// upstream is
 * given and never else. Certificates are verified against the system's authorities, or those of
 * SSL_CERT_FILE and SSL_CERT_DIR, and for the host's name or address; TLS 1.2 or newer.
 *
 * Ownership: new, free; sessions open, close, by the caller, who also owns the descriptor. Errors:
 * a negative errno. Threads: one at a time.
 */
#ifndef NRG_LLM_PROXY_TLS_H
#define NRG_LLM_PROXY_TLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct nrg_tls;
struct nrg_tls_session;

int nrg_tls_new(struct nrg_tls **tls, const char *host, struct nrg_error *err);
void nrg_tls_free(struct nrg_tls *tls);

/* NULL when out of memory. */
struct nrg_tls_session *nrg_tls_open(struct nrg_tls *tls, int fd);
void nrg_tls_close(struct nrg_tls *tls, struct nrg_tls_session *session);

/*
 * 0 once the handshake is done; -EAGAIN: call again when the descriptor is readable, or writable if
 * *want_write; -EPROTO.
 */
int nrg_tls_handshake(struct nrg_tls *tls, struct nrg_tls_session *session, bool *want_write);
/* As read(2) and write(2), with -errno; 0 of a read is an end that the server declared: a
 * connection that ends without is -EPROTO, as whatever else TLS does not allow. */
ssize_t nrg_tls_read(struct nrg_tls *tls, struct nrg_tls_session *session, void *to, size_t n,
                     bool *want_write);
ssize_t nrg_tls_write(struct nrg_tls *tls, struct nrg_tls_session *session, const void *from,
                      size_t n, bool *want_write);
/* Why the last call gave -EPROTO, for people; size: 16 at least. */
void nrg_tls_explain(struct nrg_tls *tls, const struct nrg_tls_session *session, char *why,
                     size_t size);

#endif
