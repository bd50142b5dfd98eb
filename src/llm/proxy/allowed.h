/*
 * Whom the relay serves, by the names that requests carry. A page in a browser reaches servers of
 * this machine by a name of its own that it lets resolve to here (DNS rebinding), or simply asks
 * them from elsewhere: the first has its name in Host, the second in Origin.
 *
 * Host may be an address, localhost, or a name that was allowed. Origin may be of this machine
 * (localhost, a loopback address), the same as Host, or allowed: by its host or, where it is no
 * http:// or https://, as a whole ("null", "app://name"). "*" allows everything. Programs that are
 * no browsers send no Origin.
 *
 * Plain data. Any thread.
 */
#ifndef NRG_LLM_PROXY_ALLOWED_H
#define NRG_LLM_PROXY_ALLOWED_H

#include "llm/proxy/head.h"

/* `names`: NULL-terminated, or NULL. */
bool nrg_allowed_host(const char *const *names, struct nrg_http_text host);
/* An Origin of a request to `host`. */
bool nrg_allowed_origin(const char *const *names, struct nrg_http_text origin,
                        struct nrg_http_text host);

#endif
