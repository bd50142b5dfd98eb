/* See address.h. */
#include "llm/proxy/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

static bool is_port(const char *text)
{
    size_t n = strlen(text), digits = strspn(text, "0123456789");
    unsigned value = 0;
    for (size_t i = 0; i < digits && i < 6; i++)
        value = value * 10 + (unsigned)(text[i] - '0');
    return n && n == digits && n <= 5 && value <= 65535;
}

bool nrg_host_split(const char *text, size_t n, char *host, size_t host_size, char *port,
                    size_t port_size)
{
    char whole[300];
    if (!n || n >= sizeof whole)
        return false;
    memcpy(whole, text, n);
    whole[n] = 0;
    char *begin = whole, *end = whole + n, *colon = strrchr(whole, ':');
    if (*whole == '[') {
        char *bracket = strchr(whole, ']');
        if (!bracket || (bracket[1] && bracket[1] != ':'))
            return false;
        begin = whole + 1;
        end = bracket;
        colon = bracket[1] ? bracket + 1 : NULL;
    } else if (colon) {
        end = colon;
    }
    *end = 0;
    if (!*begin || strlen(begin) >= host_size || (*whole != '[' && strchr(begin, ':')))
        return false;
    if (colon && (!is_port(colon + 1) || strlen(colon + 1) >= port_size))
        return false;
    nrg_copy(host, host_size, begin);
    nrg_copy(port, port_size, colon ? colon + 1 : "");
    return true;
}

/* Words of a host or path that are written into requests: nothing that could end a line. */
static bool is_plain(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)text[i] <= ' ' || (unsigned char)text[i] >= 0x7f)
            return false;
    return true;
}

int nrg_upstream_parse(struct nrg_upstream *u, const char *url, struct nrg_error *err)
{
    *u = (struct nrg_upstream){.tls = !strncasecmp(url, "https://", 8)};
    if (!u->tls && strncasecmp(url, "http://", 7))
        return nrg_fail(err, -EINVAL, "--upstream", "wants http://HOST:PORT or https://HOST");
    const char *host = url + (u->tls ? 8 : 7);
    if (strpbrk(host, "@?#"))
        return nrg_fail(err, -EINVAL, "--upstream",
                        "wants no user, query or fragment: clients send what they need themselves");
    size_t n = strcspn(host, "/"), path = strlen(host + n);
    if (!is_plain(host, n + path) ||
        !nrg_host_split(host, n, u->host, sizeof u->host, u->port, sizeof u->port))
        return nrg_fail(err, -EINVAL, "--upstream", "wants a host: http://HOST:PORT");
    nrg_copy(u->authority, sizeof u->authority, host);
    u->authority[n < sizeof u->authority ? n : sizeof u->authority - 1] = 0;
    while (path && host[n + path - 1] == '/')
        path--;
    if (path >= sizeof u->prefix)
        return nrg_fail(err, -EINVAL, "--upstream", "its path is too long");
    memcpy(u->prefix, host + n, path);
    if (!*u->port)
        nrg_copy(u->port, sizeof u->port, u->tls ? "443" : "80");
    return 0;
}

int nrg_upstream_resolve(struct nrg_upstream *u, struct nrg_error *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int rc = getaddrinfo(u->host, u->port, &hints, &list);
    if (rc)
        return nrg_fail(err, -ENOENT, u->host, "%s", gai_strerror(rc));
    u->n = 0;
    for (struct addrinfo *a = list; a && u->n < NRG_UPSTREAM_ADDRESSES; a = a->ai_next) {
        if (a->ai_addrlen > sizeof *u->addresses)
            continue;
        memcpy(&u->addresses[u->n], a->ai_addr, a->ai_addrlen);
        u->lengths[u->n++] = a->ai_addrlen;
    }
    freeaddrinfo(list);
    return u->n ? 0 : nrg_fail(err, -ENOENT, u->host, "has no address");
}

int nrg_listen_parse(const char *text, struct sockaddr_storage *address, socklen_t *length,
                     struct nrg_error *err)
{
    char host[128] = "127.0.0.1", port[8] = "";
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST}, *list = NULL;
    if (is_port(text))
        nrg_copy(port, sizeof port, text);
    else if (!nrg_host_split(text, strlen(text), host, sizeof host, port, sizeof port) || !*port)
        return nrg_fail(err, -EINVAL, "--listen", "wants ADDRESS:PORT, such as 127.0.0.1:8081");
    if (!strcasecmp(host, "localhost"))
        nrg_copy(host, sizeof host, "127.0.0.1");
    if (getaddrinfo(host, port, &hints, &list))
        return nrg_fail(err, -EINVAL, "--listen", "%s is no address", host);
    memset(address, 0, sizeof *address);
    *length = list->ai_addrlen < sizeof *address ? list->ai_addrlen : sizeof *address;
    memcpy(address, list->ai_addr, *length);
    freeaddrinfo(list);
    return 0;
}

void nrg_address_text(const struct sockaddr_storage *address, socklen_t length, char *to,
                      size_t size)
{
    char host[64] = "?", port[8] = "?";
    getnameinfo((const struct sockaddr *)address, length, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(to, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

bool nrg_address_is_loopback(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)address)->sin6_addr);
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    return address->ss_family == AF_INET && ntohl(v4->sin_addr.s_addr) >> 24 == 127;
}
