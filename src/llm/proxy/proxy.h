/*
 * The relay of `nrg llm proxy`: passes HTTP/1.1 requests on to one server and the answers back,
 * and tells its owner when requests begin, answer and end, and what those to a language model used.
 *
 * One thread, epoll (ready.h), no blocking call. A client's connection has one to the server, kept
 * open between requests; both have buffers of fixed size, and a side that does not read stops the
 * other one from being read. Bodies pass byte by byte (body.h); heads are read strictly and written
 * anew (head.h). Who keeps it waiting for a request is not waited for for ever (limits.c). A client
 * that goes away ends its connection to the server, so that the server stops, and a server that
 * goes away in the middle of an answer ends the client's.
 *
 * No text of a request or answer, no header and no query is kept or handed out: a request is its
 * times, its API or the kind of its path (api.h), its status, its model and its counts.
 *
 * Ownership: new (listens), run, free. Errors: a negative errno with the reason in err. Threads:
 * one.
 */
#ifndef NRG_LLM_PROXY_PROXY_H
#define NRG_LLM_PROXY_PROXY_H

#include "base/clock.h"
#include "base/error.h"
#include "llm/proxy/scan.h"

enum nrg_proxy_outcome {
    NRG_REQUEST_RUNS,
    NRG_REQUEST_ANSWERED,  /* whatever the status */
    NRG_REQUEST_CANCELLED, /* the client went away */
    NRG_REQUEST_BROKEN,    /* the server did, said what is no HTTP, or a stream told of an error */
};

struct nrg_proxy_request {
    int64_t id;  /* from 1 */
    size_t slot; /* a number that no other request has while it runs, the smallest one */
    const struct nrg_llm_api *api;      /* NULL: something else, of which path says what */
    char path[NRG_PATH_KIND_MAX];       /* its kind; "" with an API */
    int64_t begin_ns, first_ns, end_ns; /* first_ns 0: nothing has come yet */
    int status;                         /* 0: none */
    enum nrg_proxy_outcome outcome;
    bool streamed;
    struct nrg_llm_seen seen;
};

/* Times of an answer are when it came, and may be told so much later. */
#define NRG_PROXY_LATE_NS (100 * NRG_NS_PER_MS)

/* All on the relay's thread. */
struct nrg_proxy_events {
    void *arg;
    void (*begin)(void *arg, const struct nrg_proxy_request *request);
    /* The first text of the answer; request->first_ns says when. */
    void (*first)(void *arg, const struct nrg_proxy_request *request);
    /* That many pieces of text came at t_ns. */
    void (*texts)(void *arg, const struct nrg_proxy_request *request, uint64_t n, int64_t t_ns);
    void (*end)(void *arg, const struct nrg_proxy_request *request);
    /* Joules of a request so far; NAN: not known. */
    double (*joules)(void *arg, const struct nrg_proxy_request *request);
    /* Something that the user should read, one line. */
    void (*notice)(void *arg, const char *text);
    /* Whether to stop: no new request is taken, and running ones are waited for. */
    bool (*stop)(void *arg);
    /* While it stops: whether to wait no longer. */
    bool (*hurry)(void *arg);
};

struct nrg_proxy_options {
    const char *upstream;       /* http://HOST[:PORT][/PREFIX] or https:// */
    const char *listen;         /* ADDRESS:PORT, port 0: any */
    const char *const *allowed; /* names for Host and Origin (allowed.h), NULL-terminated */
    bool joules;        /* x-nrg-joules in all answers, not only where a request asks for it */
    bool ask_usage;     /* of streams of clients that don't ask (usage.h) */
    size_t connections; /* at most; 0: NRG_PROXY_CONNECTIONS */
    int64_t gather_ns;  /* how long later texts wait for others where many streams run; 0: not */
    int64_t patience_ns, connect_ns; /* for clients, for the server; 0: those of limits.c */
};
#define NRG_PROXY_CONNECTIONS 1024

struct nrg_proxy_figures {
    uint64_t connections, requests; /* to a model or anything else */
    uint64_t refused, failed;       /* bad requests; no answer from the server */
};

struct nrg_proxy;
int nrg_proxy_new(struct nrg_proxy **proxy, const struct nrg_proxy_options *options,
                  const struct nrg_proxy_events *events, struct nrg_error *err);
/* Until events->stop; 0 or -errno. */
int nrg_proxy_run(struct nrg_proxy *proxy, struct nrg_error *err);
void nrg_proxy_free(struct nrg_proxy *proxy);

/* "127.0.0.1:8080", as it listens. */
const char *nrg_proxy_address(const struct nrg_proxy *proxy);
/* False when anybody in the network may connect. */
bool nrg_proxy_is_local(const struct nrg_proxy *proxy);
const struct nrg_proxy_figures *nrg_proxy_figures(const struct nrg_proxy *proxy);

#endif
