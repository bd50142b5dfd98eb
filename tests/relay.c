/*
 * The relay of nrg llm proxy with limits of its own, so that tests need not wait as long as people
 * may: relay UPSTREAM PATIENCE_MS CONNECT_MS [CONNECTIONS]. Prints where it listens, and a line at
 * the end of each request: status and outcome. Ends with its stdin.
 */
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "llm/proxy/proxy.h"

static void on_request(void *arg, const struct nrg_proxy_request *request)
{
    (void)arg;
    (void)request;
}

static void on_texts(void *arg, const struct nrg_proxy_request *request, uint64_t n, int64_t t_ns)
{
    (void)arg;
    (void)request;
    (void)n;
    (void)t_ns;
}

static void on_end(void *arg, const struct nrg_proxy_request *request)
{
    static const char *const names[] = {"runs", "answered", "cancelled", "broken"};
    (void)arg;
    printf("%d %s\n", request->status, names[request->outcome]);
    fflush(stdout);
}

static double on_joules(void *arg, const struct nrg_proxy_request *request)
{
    (void)arg;
    (void)request;
    return NAN;
}

static void on_notice(void *arg, const char *text)
{
    (void)arg;
    fprintf(stderr, "%s\n", text);
}

static bool has_ended(void *arg)
{
    struct pollfd fd = {.fd = STDIN_FILENO, .events = POLLIN};
    (void)arg;
    return poll(&fd, 1, 0) > 0;
}

int main(int argc, char **argv)
{
    struct nrg_proxy *proxy;
    struct nrg_error err;
    if (argc < 4 || argc > 5)
        return 2;
    const struct nrg_proxy_options options = {.upstream = argv[1],
                                              .listen = "127.0.0.1:0",
                                              .connections = argc > 4 ? (size_t)atoi(argv[4]) : 0,
                                              .patience_ns = atoll(argv[2]) * NRG_NS_PER_MS,
                                              .connect_ns = atoll(argv[3]) * NRG_NS_PER_MS};
    const struct nrg_proxy_events events = {NULL,      on_request, on_request, on_texts, on_end,
                                            on_joules, on_notice,  has_ended,  has_ended};
    signal(SIGPIPE, SIG_IGN);
    if (nrg_proxy_new(&proxy, &options, &events, &err)) {
        fprintf(stderr, "%s\n", err.what);
        return 1;
    }
    printf("%s\n", nrg_proxy_address(proxy));
    fflush(stdout);
    int rc = nrg_proxy_run(proxy, &err);
    nrg_proxy_free(proxy);
    return rc ? 1 : 0;
}
