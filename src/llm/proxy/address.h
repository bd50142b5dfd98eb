/*
 * Addresses as users write them: where the server is (a URL) and where to listen. Plain data.
 * Errors: a negative errno, with the reason in err. Resolving a name may wait for the network.
 */
#ifndef NRG_LLM_PROXY_ADDRESS_H
#define NRG_LLM_PROXY_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/error.h"

#define NRG_UPSTREAM_ADDRESSES 8

struct nrg_upstream {
    bool tls;
    char host[256];      /* without brackets */
    char authority[288]; /* HOST or HOST:PORT, for the Host field */
    char port[8];
    char prefix[256]; /* "" or "/path" without a slash at its end */
    struct sockaddr_storage addresses[NRG_UPSTREAM_ADDRESSES];
    socklen_t lengths[NRG_UPSTREAM_ADDRESSES];
    size_t n;
    size_t first; /* the address that answered last is tried first */
};

/* "host:port", "[::1]:port" or "host" into two texts; false when it is none of these. */
bool nrg_host_split(const char *text, size_t n, char *host, size_t host_size, char *port,
                    size_t port_size);

/* URLs with a user, a query or a fragment are refused: they would be kept in the recording. */
int nrg_upstream_parse(struct nrg_upstream *upstream, const char *url, struct nrg_error *err);
int nrg_upstream_resolve(struct nrg_upstream *upstream, struct nrg_error *err);

/* ADDRESS:PORT, [ADDRESS]:PORT or PORT, which is 127.0.0.1's. */
int nrg_listen_parse(const char *text, struct sockaddr_storage *address, socklen_t *length,
                     struct nrg_error *err);
/* "127.0.0.1:80" into `to`. */
void nrg_address_text(const struct sockaddr_storage *address, socklen_t length, char *to,
                      size_t size);
bool nrg_address_is_loopback(const struct sockaddr_storage *address);

#endif
