/*
 * The relay's own state, shared by its files: proxy.c (life, accepting), connection.c (moving
 * bytes), request.c and answer.c (what the two directions mean), limits.c (time). See proxy.h.
 */
#ifndef NRG_LLM_PROXY_INTERNAL_H
#define NRG_LLM_PROXY_INTERNAL_H

#include "llm/proxy/body.h"
#include "llm/proxy/link.h"
#include "llm/proxy/proxy.h"
#include "llm/proxy/ready.h"
#include "llm/proxy/usage.h"

/* A head of the longest kind fits with what the proxy adds to it. */
#define NRG_PROXY_BUFFER (NRG_HTTP_HEAD_MAX + 4096)

struct nrg_proxy_buffer {
    char *at; /* NRG_PROXY_BUFFER bytes */
    size_t from, to;
};

/* HOLD: the body is kept until it is complete; HELD: and then goes to the server. */
enum nrg_asking { NRG_ASK_HEAD, NRG_ASK_HOLD, NRG_ASK_HELD, NRG_ASK_BODY, NRG_ASK_DONE };
enum nrg_answering { NRG_ANSWER_NONE, NRG_ANSWER_HEAD, NRG_ANSWER_BODY, NRG_ANSWER_DONE };

/* A request's body, as it came. */
#define NRG_HOLD_MOST ((size_t)1 << 20)
struct nrg_proxy_hold {
    char *at; /* NULL: nothing is held */
    size_t n, sent;
    size_t head;     /* bytes of the head that waits */
    uint64_t length; /* as the head says */
};

struct nrg_connection;
struct nrg_proxy_end {
    struct nrg_ready_end watched;      /* first: what epoll hands back */
    struct nrg_connection *connection; /* NULL: the listening socket */
    bool is_server;
    bool readable; /* as far as is known */
};

struct nrg_connection {
    struct nrg_connection *previous, *next;
    struct nrg_proxy *proxy;
    struct nrg_proxy_end client_end, server_end;
    int client; /* descriptor */
    struct nrg_link server;
    struct nrg_proxy_buffer from_client, to_server, from_server, to_client;
    enum nrg_asking asking;
    enum nrg_answering answering;
    struct nrg_http_body ask_body, answer_body;
    struct nrg_llm_scan ask_scan, answer_scan;
    struct nrg_proxy_hold hold;
    bool asked_usage;                /* the client did not, so it must not see it */
    struct nrg_usage_filter *filter; /* NULL: the answer passes as it is */
    bool counted;                    /* a request runs: its owner was told that it began */
    bool to_head, client_1_0, wants_joules, unchunk, trailer;
    bool close_client, close_server; /* after this request */
    bool server_over; /* it closed, or failed: the rest of what it sent is still to be passed on */
    char server_why[160]; /* it failed; "": it just closed */
    bool cuts;            /* what the client gets would look whole: it ends with an error */
    bool lingers;         /* the answer is out, the client's rest is thrown away */
    bool dead;            /* closed, to be freed after this round */
    bool has_asked;       /* a whole head at least */
    int64_t granted_ns;   /* for which the client may keep the relay waiting (limits.c) */
    int64_t left_ns;      /* of that, and what a body earned */
    int64_t awaited_ns;   /* when it was granted */
    int64_t active_ns;    /* something moved */
    int64_t sent_ns;      /* something went to the client */
    int64_t came_ns;      /* what the server said last */
    int64_t text_ns;      /* of the last text of a stream */
    int64_t pace_ns;      /* between two of them, as they came lately */
    int64_t answered_ns;  /* the server's last answer ended */
    struct nrg_proxy_request request;
};

struct nrg_proxy {
    struct nrg_proxy_options options;
    struct nrg_proxy_events events;
    struct nrg_upstream upstream;
    struct nrg_tls *tls;
    struct nrg_ready ready;
    int listener;
    bool local, stopping, told_host, told_origin;
    int64_t limits_ns; /* when they were enforced last */
    char address[80];
    struct nrg_proxy_end listen_end;
    struct nrg_connection *first, *dead;
    size_t n, streams; /* connections; streamed answers after their first text */
    int64_t next_id, now_ns;
    int64_t epoch_ns; /* CLOCK_REALTIME minus CLOCK_MONOTONIC, at the last tick */
    bool *slots;      /* taken; as many as connections */
    struct nrg_proxy_figures figures;
};

static inline size_t nrg_buffer_used(const struct nrg_proxy_buffer *b)
{
    return b->to - b->from;
}
/* Room behind what is there; moves that to the front first. */
size_t nrg_buffer_room(struct nrg_proxy_buffer *b);
void nrg_buffer_take(struct nrg_proxy_buffer *b, size_t n);

/* connection.c */
struct nrg_connection *nrg_connection_new(struct nrg_proxy *proxy, int client);
/* Something may have changed: moves what can be moved. */
void nrg_connection_pump(struct nrg_connection *c);
/* An event of epoll. */
void nrg_connection_ready(struct nrg_connection *c, bool is_server, uint32_t events);
/* What came on a stream that was held. */
void nrg_connection_tick(struct nrg_connection *c);
void nrg_connection_close(struct nrg_connection *c, enum nrg_proxy_outcome outcome);
void nrg_connection_free(struct nrg_connection *c);
/* The connection to the server is of no more use. */
void nrg_connection_drop_server(struct nrg_connection *c);

/* request.c. True when something moved. */
bool nrg_request_advance(struct nrg_connection *c);
/* The request is over: tells the owner, if it had begun. */
void nrg_request_end(struct nrg_connection *c, enum nrg_proxy_outcome outcome);
/* An answer of the proxy's own, after which the connection is closed. */
void nrg_request_refuse(struct nrg_connection *c, int status, const char *what, const char *why);
/* The client closed its side. True when it is told that its request was not complete. */
bool nrg_request_cut(struct nrg_connection *c);
/* The server failed before its answer began: 502 or 504. */
void nrg_request_fail(struct nrg_connection *c, int status, const char *why);
/* The client is not waited for any longer: it is told, unless an answer has begun. */
void nrg_request_give_up(struct nrg_connection *c, int status, const char *what, const char *why);

/* limits.c. Now a head is awaited, or a body. */
void nrg_limits_await_head(struct nrg_connection *c);
void nrg_limits_await_body(struct nrg_connection *c, const struct nrg_http_head *head);
/* So many bytes came from the client. */
void nrg_limits_came(struct nrg_connection *c, size_t n);
/* Closes or answers what waited too long for somebody; since_ns: since it was called before. */
void nrg_limits_enforce(struct nrg_connection *c, int64_t since_ns);
/* Who makes room for a new client; NULL: nobody. */
struct nrg_connection *nrg_limits_first_to_yield(const struct nrg_proxy *p);
void nrg_limits_yield(struct nrg_connection *c);

/* hold.c. Whether the body of this request is held, with memory for it. */
bool nrg_hold_begin(struct nrg_connection *c, const struct nrg_http_head *head);
/* It is complete, or too long: completes the head, with what the body needs. */
void nrg_hold_decide(struct nrg_connection *c);
/* True when something moved. */
bool nrg_hold_send(struct nrg_connection *c);
void nrg_hold_release(struct nrg_connection *c);

/* answer.c */
bool nrg_answer_advance(struct nrg_connection *c);
/* The client knows its end by that of the connection alone. */
bool nrg_answer_ends_by_close(const struct nrg_connection *c);
/* So many texts were there when a stream was read. */
void nrg_answer_note_pace(struct nrg_connection *c, uint64_t texts);
/* The server closed the connection. */
void nrg_answer_closed(struct nrg_connection *c, const char *why);

#endif
