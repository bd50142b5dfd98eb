/* See mqtt/settings.h. The password is never in the URI, which everybody sees in ps. */
#include "sensors/mqtt/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "sensors/meter/password.h"

#define LISTEN_NS (6 * NRG_NS_PER_S) /* for topics, when + or # are given without fields= */

/* "//[user@]host[:port]/topic" */
static int read_place(struct nrg_uri *uri, struct nrg_mqtt_options *o, const char **topic,
                      struct nrg_error *err)
{
    static const char form[] = "wants mqtt://[user@]host[:port]/topic";
    const char *at = uri->place;
    if (strncmp(at, "//", 2))
        return nrg_fail(err, -EINVAL, uri->text, "%s", form);
    const char *end = strchr(at + 2, '/');
    if (!end || end == at + 2)
        return nrg_fail(err, -EINVAL, uri->text, "%s", form);
    at += 2;
    *topic = end + 1;
    int user = nrg_meter_user(uri, at, (size_t)(end - at), o->user, sizeof o->user, err);
    if (user < 0)
        return user;
    at += user;
    const char *bracket = *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
    const char *colon =
        memchr(bracket ? bracket : at, ':', (size_t)(end - (bracket ? bracket : at)));
    const char *host_end = bracket ? bracket : colon ? colon : end;
    at += bracket != NULL;
    uint64_t port = o->tls ? 8883 : 1883;
    if (colon &&
        (nrg_parse_u64(colon + 1, (size_t)(end - colon - 1), &port) || !port || port > 65535))
        return nrg_fail(err, -EINVAL, uri->text, "the port is a number from 1 to 65535");
    if (host_end == at)
        return nrg_fail(err, -EINVAL, uri->text, "%s", form);
    o->port = (unsigned)port;
    return nrg_uri_part(uri, "host", at, (size_t)(host_end - at), o->host, sizeof o->host, err);
}

static int read_connection(struct nrg_uri *uri, struct nrg_mqtt_options *o, const char **topic,
                           struct nrg_error *err)
{
    static const struct nrg_uri_key keys[] = {
        NRG_URI_COPY("client", struct nrg_mqtt_options, client),
        NRG_URI_COUNT("qos", struct nrg_mqtt_options, qos, 0, 2),
        NRG_URI_COUNT("keepalive", struct nrg_mqtt_options, keepalive_s, 5, 3600),
        {0},
    };
    static const struct nrg_uri_key tls_keys[] = {
        NRG_URI_COPY("cafile", struct nrg_mqtt_options, cafile),
        NRG_URI_COPY("cert", struct nrg_mqtt_options, cert),
        NRG_URI_COPY("key", struct nrg_mqtt_options, key),
        NRG_URI_WORD("check", struct nrg_mqtt_options, insecure, "name", "no-name"),
        {0},
    };
    *o = (struct nrg_mqtt_options){.tls = !strcmp(uri->scheme, "mqtts"), .keepalive_s = 15};
    int rc = read_place(uri, o, topic, err);
    if (!rc)
        rc = nrg_meter_password(uri, o->user, o->password, sizeof o->password, err);
    if (!rc)
        rc = nrg_uri_read(uri, keys, o, err);
    return rc || !o->tls ? rc : nrg_uri_read(uri, tls_keys, o, err);
}

int nrg_mqtt_settings_read(struct nrg_uri *uri, struct nrg_mqtt_settings *s, struct nrg_error *err)
{
    static const struct nrg_uri_key keys[] = {
        NRG_URI_DURATION("period", struct nrg_mqtt_settings, period_ns),
        NRG_URI_DURATION("average", struct nrg_mqtt_settings, average_ns),
        NRG_URI_DURATION("listen", struct nrg_mqtt_settings, listen_ns),
        {0},
    };
    const char *topic = "";
    *s = (struct nrg_mqtt_settings){.listen_ns = LISTEN_NS};
    int rc = read_connection(uri, &s->connection, &topic, err);
    if (!rc)
        rc = nrg_mqtt_plan_init(&s->plan, uri, topic, err);
    if (!rc)
        rc = nrg_meter_adjust_read(&s->adjust, uri, err);
    if (!rc)
        rc = nrg_uri_read(uri, keys, s, err);
    return rc ? rc
              : nrg_uri_part(uri, "topic", topic, strlen(topic), s->connection.topic,
                             sizeof s->connection.topic, err);
}
