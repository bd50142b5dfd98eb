/* See session.h. */
#include "daemon/session.h"

#include <errno.h>
#include <string.h>

#include <nrg/nrg.h>

#include "base/mem.h"

void nrg_session_init(struct nrg_session *session, struct nrg_catalogs *catalogs,
                      enum nrg_wire_view view)
{
    *session = (struct nrg_session){.catalogs = catalogs, .view = view};
}

void nrg_session_release(struct nrg_session *session)
{
    if (session->served)
        nrg_served_leave(session->served, session->view);
    if (session->catalog)
        nrg_catalog_put(session->catalogs, session->catalog);
    *session = (struct nrg_session){0};
}

void nrg_reply_release(struct nrg_reply *reply)
{
    if (reply->shared)
        nrg_served_close(reply->shared, reply->shared_state);
    reply->shared = NULL;
    reply->n_fds = 0; /* their numbers are others' by now */
}

int nrg_reply_refuse(struct nrg_reply *reply, int error, const char *text)
{
    reply->size = nrg_wire_begin(&reply->packet, NRG_WIRE_REFUSED, false);
    reply->packet.refused.error = error;
    nrg_copy(reply->packet.refused.program, sizeof reply->packet.refused.program, NRG_VERSION);
    nrg_copy(reply->packet.refused.text, sizeof reply->packet.refused.text, text);
    nrg_wire_as(&reply->packet, NRG_WIRE_OLDEST, false);
    return error;
}

static int greet(struct nrg_session *s, struct nrg_reply *reply)
{
    s->catalog = nrg_catalog_get(s->catalogs);
    if (!s->catalog)
        return nrg_reply_refuse(reply, -ENOMEM, "nrgd has no memory left");
    s->state = NRG_SESSION_GREETED;
    reply->size = nrg_wire_begin(&reply->packet, NRG_WIRE_WELCOME, false);
    struct nrg_wire_welcome *welcome = &reply->packet.welcome;
    nrg_copy(welcome->program, sizeof welcome->program, NRG_VERSION);
    welcome->view = s->view;
    welcome->n_sensors = (uint32_t)s->catalog->n;
    welcome->period_ns = nrg_policy_period_ns(s->view);
    return 0;
}

static unsigned n_bits(uint32_t bits)
{
    unsigned n = 0;
    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

/* By descriptors or by readings, as far as the view goes, and the descriptors that can be spared.
 */
static enum nrg_wire_how how_now(const struct nrg_session *s, const struct nrg_served *served,
                                 uint32_t wanted)
{
    uint32_t shown = served->n < 32 ? (UINT32_C(1) << served->n) - 1 : UINT32_MAX;
    bool spare = n_bits(wanted & shown) <= s->spare_fds;
    return s->view == NRG_VIEW_FULL && spare ? served->how : NRG_HOW_ASK;
}

static int describe(struct nrg_session *s, const struct nrg_wire_request *request,
                    struct nrg_reply *reply)
{
    if (request->sensor >= s->catalog->n || s->n_described++ >= 2 * NRG_WIRE_SENSORS)
        return nrg_reply_refuse(reply, -EINVAL, "there is no such sensor");
    reply->size = nrg_wire_begin(&reply->packet, NRG_WIRE_SENSOR, false);
    if (!nrg_served_describe(&s->catalog->items[request->sensor], s->view, &reply->packet.sensor))
        return nrg_reply_refuse(reply, -EACCES, "this sensor is for members of group nrg");
    reply->packet.sensor.how = how_now(s, &s->catalog->items[request->sensor], UINT32_MAX);
    return 0;
}

static int opened(struct nrg_reply *reply, enum nrg_wire_how how, int n)
{
    reply->n_fds = (size_t)n;
    reply->size = nrg_wire_begin(&reply->packet, NRG_WIRE_OPENED, false);
    reply->packet.opened.how = how;
    reply->packet.opened.n = (uint32_t)n;
    return 0;
}

static int open_for_readings(struct nrg_session *s, struct nrg_served *served,
                             struct nrg_reply *reply)
{
    int rc = nrg_served_use(s->catalogs, served, s->view);
    if (rc)
        return nrg_reply_refuse(reply, rc, "the sensor can't be opened now");
    s->served = served;
    s->state = NRG_SESSION_OPEN;
    return opened(reply, NRG_HOW_ASK, 0);
}

/* The bits of channels that the sensor does not show are not looked at. */
static int open_sensor(struct nrg_session *s, uint32_t sensor, uint32_t wanted,
                       struct nrg_reply *reply)
{
    if (sensor >= s->catalog->n || !wanted)
        return nrg_reply_refuse(reply, -EINVAL, "there is no such sensor");
    struct nrg_served *served = &s->catalog->items[sensor];
    enum nrg_wire_how how = how_now(s, served, wanted);
    s->wanted = wanted;
    if (how == NRG_HOW_ASK)
        return open_for_readings(s, served, reply);
    int n = nrg_served_share(s->catalogs->ctx, served, wanted, &reply->shared_state, reply->fds);
    if (n == -EMFILE || n == -ENFILE)
        return open_for_readings(s, served, reply); /* what is open already may serve */
    if (n < 0)
        return nrg_reply_refuse(reply, n, "the sensor can't be opened now");
    reply->shared = served;
    s->state = NRG_SESSION_DONE;
    return opened(reply, how, n);
}

int nrg_session_stream(struct nrg_session *session, struct nrg_reply *reply)
{
    struct nrg_served *served = reply->shared;
    nrg_reply_release(reply);
    int rc = open_for_readings(session, served, reply);
    reply->size = nrg_wire_as(&reply->packet, session->version, false);
    return rc;
}

static int read_sensor(struct nrg_session *s, struct nrg_reply *reply)
{
    reply->size = nrg_wire_begin(&reply->packet, NRG_WIRE_ROW, false);
    nrg_served_row(s->served, s->view, s->wanted, &reply->packet.row);
    return 0;
}

/* Of another version than ours: it is told which one is. */
static int refuse_version(struct nrg_reply *reply)
{
    nrg_reply_refuse(reply, -EPROTONOSUPPORT, "this nrgd speaks another version of the protocol");
    nrg_wire_as(&reply->packet, NRG_WIRE_VERSION, false);
    return -EPROTONOSUPPORT;
}

static int answer(struct nrg_session *session, const union nrg_wire_packet *packet,
                  struct nrg_reply *reply)
{
    unsigned type = packet->head.type;
    if (session->state == NRG_SESSION_NEW && type == NRG_WIRE_HELLO)
        return greet(session, reply);
    if (session->state == NRG_SESSION_GREETED && type == NRG_WIRE_SENSOR)
        return describe(session, &packet->request, reply);
    if (session->state == NRG_SESSION_GREETED && type == NRG_WIRE_OPEN)
        return open_sensor(session, packet->request.sensor, packet->request.wanted, reply);
    if (session->state == NRG_SESSION_OPEN && type == NRG_WIRE_READ)
        return read_sensor(session, reply);
    return nrg_reply_refuse(reply, -EPROTO, "not now: HELLO, SENSOR, OPEN, READ is the order");
}

int nrg_session_take(struct nrg_session *session, union nrg_wire_packet *packet, size_t n,
                     struct nrg_reply *reply)
{
    *reply = (struct nrg_reply){0};
    int rc = nrg_wire_check(packet, n, true);
    if (rc == -EPROTONOSUPPORT)
        return refuse_version(reply);
    if (rc)
        return nrg_reply_refuse(reply, rc, "this is no message of nrg");
    if (!session->version)
        session->version = packet->head.version;
    if (packet->head.version != session->version)
        return nrg_reply_refuse(reply, -EPROTO, "this is of another version than HELLO was");
    rc = answer(session, packet, reply);
    reply->size = nrg_wire_as(&reply->packet, session->version, false);
    return rc;
}
