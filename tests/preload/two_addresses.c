/*
 * The name two.example has two addresses, 127.0.0.77 and then 127.0.0.1: for tests of clients that
 * should go on to the second one where the first does not answer.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>

typedef int resolve_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **result)
{
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");
    resolve_fn *real;
    memcpy(&real, &found, sizeof real);
    if (!node || strcmp(node, "two.example"))
        return real(node, service, hints, result);
    struct addrinfo *second = NULL;
    int rc = real("127.0.0.77", service, hints, result);
    if (!rc)
        rc = real("127.0.0.1", service, hints, &second);
    if (!rc)
        (*result)->ai_next = second;
    return rc;
}
