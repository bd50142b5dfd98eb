/* See allowed.h. */
#include "llm/proxy/allowed.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

#include "llm/proxy/address.h"

#define HOST_BYTES 256
#define PORT_BYTES 8

static bool is_named(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (!strcmp(*names, "*") || !strcasecmp(*names, name))
            return true;
    return false;
}

/* The host alone, without the dot that may end a whole name. */
static bool host_of(struct nrg_http_text authority, char *host)
{
    char port[PORT_BYTES];
    if (!nrg_host_split(authority.at, authority.n, host, HOST_BYTES, port, sizeof port))
        return false;
    size_t n = strlen(host);
    if (n > 1 && host[n - 1] == '.')
        host[n - 1] = 0;
    return true;
}

/* Whether it is an address; *local says whether one of this machine alone. */
static bool is_address(const char *host, bool *local)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1) {
        *local = ntohl(v4.s_addr) >> 24 == 127;
        return true;
    }
    *local = inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
    return *local || inet_pton(AF_INET6, host, &v6) == 1;
}

bool nrg_allowed_host(const char *const *names, struct nrg_http_text text)
{
    char host[HOST_BYTES];
    bool local;
    if (!host_of(text, host))
        return is_named(names, "*");
    return !strcasecmp(host, "localhost") || is_address(host, &local) || is_named(names, host);
}

static bool begins(struct nrg_http_text text, const char *word)
{
    return text.n >= strlen(word) && !strncasecmp(text.at, word, strlen(word));
}

bool nrg_allowed_origin(const char *const *names, struct nrg_http_text origin,
                        struct nrg_http_text of_request)
{
    char host[HOST_BYTES];
    bool local = false;
    size_t scheme = begins(origin, "http://") ? 7 : begins(origin, "https://") ? 8 : 0;
    struct nrg_http_text rest = {origin.at + scheme, origin.n - scheme};
    if (!scheme) {
        if (origin.n >= sizeof host)
            return is_named(names, "*");
        memcpy(host, origin.at, origin.n);
        host[origin.n] = 0;
        return is_named(names, host);
    }
    if (of_request.n && rest.n == of_request.n && !strncasecmp(rest.at, of_request.at, rest.n))
        return true;
    if (!host_of(rest, host))
        return is_named(names, "*");
    return !strcasecmp(host, "localhost") || (is_address(host, &local) && local) ||
           is_named(names, host);
}
