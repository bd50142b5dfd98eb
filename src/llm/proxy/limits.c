/*
 * How long the relay waits for whom. A client that keeps it waiting for a request has so much
 * patience: a whole head gets PATIENCE_NS, however it drips; a body gets as much and a second more
 * for every LEAST_RATE bytes. Both figures are the defaults of Apache's mod_reqtimeout, which has
 * them for the same reason. Time counts only while the relay has taken all that came: who waits
 * for a slow server is not slow, and an answer may take as long as the server likes.
 *
 * When places run out, who keeps the relay waiting makes room: those whose head is not there first,
 * then those between two requests, at last bodies that come more slowly than the least rate, and
 * who has taken nothing of an answer for PATIENCE_NS. A head comes with its connection: it gets
 * time for a packet that Linux repeats (TCP_RTO_MIN, 0.2 s). The others get what a packet takes
 * that is lost where nothing is known of the way (RFC 6298: 1 s).
 */
#include "base/clock.h"
#include "llm/proxy/internal.h"

#define PATIENCE_NS   (20 * NRG_NS_PER_S)
#define IDLE_NS       (75 * NRG_NS_PER_S) /* between requests; no body earns more than that */
#define LEAST_RATE    500                 /* bytes per second */
#define YIELD_HEAD_NS (250 * NRG_NS_PER_MS)
#define YIELD_NS      NRG_NS_PER_S
#define CONNECT_NS    (10 * NRG_NS_PER_S)
#define LINGER_NS     (2 * NRG_NS_PER_S)
#define STUCK_NS      (600 * NRG_NS_PER_S) /* of a client that does not read its answer */

static void grant(struct nrg_connection *c, int64_t ns)
{
    c->granted_ns = c->left_ns = ns;
    c->awaited_ns = c->proxy->now_ns;
}

static int64_t patience_ns(const struct nrg_proxy *p)
{
    return p->options.patience_ns ? p->options.patience_ns : PATIENCE_NS;
}

void nrg_limits_await_head(struct nrg_connection *c)
{
    grant(c, nrg_buffer_used(&c->from_client) ? patience_ns(c->proxy) : IDLE_NS);
}

void nrg_limits_await_body(struct nrg_connection *c, const struct nrg_http_head *head)
{
    c->has_asked = true;
    /* Who expects "100 Continue" waits for the server first. */
    grant(c, head->expects ? IDLE_NS : patience_ns(c->proxy));
}

static bool awaits_head(const struct nrg_connection *c)
{
    return c->asking == NRG_ASK_HEAD && c->answering == NRG_ANSWER_NONE;
}

static bool awaits_body(const struct nrg_connection *c)
{
    return (c->asking == NRG_ASK_BODY || c->asking == NRG_ASK_HOLD) &&
           c->answering != NRG_ANSWER_DONE && !nrg_buffer_used(&c->from_client);
}

void nrg_limits_came(struct nrg_connection *c, size_t n)
{
    if (awaits_head(c)) {
        if (nrg_buffer_used(&c->from_client) == n)
            nrg_limits_await_head(c); /* it begins */
        return;
    }
    int64_t most_ns = c->granted_ns > IDLE_NS ? c->granted_ns : IDLE_NS;
    c->left_ns += (int64_t)n * (NRG_NS_PER_S / LEAST_RATE);
    c->left_ns = c->left_ns < most_ns ? c->left_ns : most_ns;
}

static void be_impatient(struct nrg_connection *c)
{
    if (awaits_head(c) && !nrg_buffer_used(&c->from_client))
        nrg_connection_close(c, NRG_REQUEST_CANCELLED);
    else
        nrg_request_give_up(c, 408, "Request Timeout", "the request comes too slowly");
}

static void connect_on(struct nrg_connection *c)
{
    struct nrg_proxy *p = c->proxy;
    int64_t most_ns = p->options.connect_ns ? p->options.connect_ns : CONNECT_NS;
    bool shakes = c->server.state == NRG_LINK_SHAKES_HANDS;
    if (p->now_ns - c->server.began_ns > most_ns)
        nrg_request_fail(c, 504,
                         shakes ? "the server does not finish the TLS handshake"
                                : "the server does not answer");
    else if (nrg_link_try_next(&c->server, &p->upstream, p->now_ns)) {
        nrg_ready_forget(&p->ready, &c->server_end.watched);
        if (c->server.state == NRG_LINK_CLOSED)
            nrg_request_fail(c, 502, c->server.why);
    } else
        return;
    nrg_connection_pump(c);
}

static bool connects(const struct nrg_connection *c)
{
    return c->server.state == NRG_LINK_CONNECTS || c->server.state == NRG_LINK_SHAKES_HANDS;
}

/* Neither side has moved any of the answer. */
static bool is_stuck(const struct nrg_connection *c)
{
    int64_t last_ns = c->sent_ns > c->came_ns ? c->sent_ns : c->came_ns;
    return nrg_buffer_used(&c->to_client) && c->proxy->now_ns - last_ns > STUCK_NS;
}

void nrg_limits_enforce(struct nrg_connection *c, int64_t since_ns)
{
    struct nrg_proxy *p = c->proxy;
    if (c->lingers) {
        if (p->now_ns - c->active_ns > LINGER_NS)
            nrg_connection_close(c, NRG_REQUEST_CANCELLED);
        return;
    }
    if ((p->stopping && awaits_head(c)) || is_stuck(c)) {
        nrg_connection_close(c, NRG_REQUEST_CANCELLED);
        return;
    }
    if (awaits_head(c) || awaits_body(c)) {
        c->left_ns -= since_ns;
        if (c->left_ns < 0) {
            be_impatient(c);
            return;
        }
    }
    if (connects(c))
        connect_on(c);
}

/* What the client's socket has no room for waits here. */
static bool awaits_reader(const struct nrg_connection *c)
{
    return nrg_buffer_used(&c->to_client) > 0;
}

/* Since when it keeps the relay waiting; of a body, by how much it is behind the least rate. */
static int64_t waited_ns(const struct nrg_connection *c)
{
    int64_t now_ns = c->proxy->now_ns;
    if (c->lingers)
        return now_ns - c->active_ns;
    if (awaits_reader(c))
        return now_ns - c->sent_ns;
    return awaits_head(c) ? now_ns - c->awaited_ns : c->granted_ns - c->left_ns;
}

/* Who makes room first: 0 not at all. */
static int yields(const struct nrg_connection *c)
{
    bool no_head =
        !c->lingers && awaits_head(c) && (nrg_buffer_used(&c->from_client) || !c->has_asked);
    if (awaits_reader(c))
        return waited_ns(c) >= patience_ns(c->proxy);
    if (waited_ns(c) < (no_head ? YIELD_HEAD_NS : YIELD_NS))
        return 0;
    if (no_head)
        return 3;
    return c->lingers || awaits_head(c) ? 2 : awaits_body(c) ? 1 : 0;
}

struct nrg_connection *nrg_limits_first_to_yield(const struct nrg_proxy *p)
{
    struct nrg_connection *first = NULL;
    int most = 0;
    for (struct nrg_connection *c = p->first; c; c = c->next) {
        int rank = yields(c);
        if (rank > most || (first && rank == most && waited_ns(c) > waited_ns(first))) {
            most = rank;
            first = c;
        }
    }
    return first;
}

void nrg_limits_yield(struct nrg_connection *c)
{
    bool asks = !c->lingers && (nrg_buffer_used(&c->from_client) || !awaits_head(c));
    if (asks)
        nrg_request_give_up(c, 503, "Service Unavailable",
                            "all places are taken, and the request comes too slowly");
    nrg_connection_close(c, NRG_REQUEST_CANCELLED);
}
