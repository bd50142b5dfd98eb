/* What the URI of an MQTT meter says: see mqtt_settings.h. */
#include "sensors/mqtt/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"

#define LISTEN_NS (6 * NRG_NS_PER_S) /* for topics, when + or # are given without fields= */

static int text_key(struct nrg_uri *uri, const char *key, char *to, size_t size,
                    struct nrg_error *err)
{
    const char *text = nrg_uri_text(uri, key);
    if (text && strlen(text) >= size)
        return nrg_fail(err, -EINVAL, uri->text, "%s= is longer than %zu bytes", key, size - 1);
    if (text)
        nrg_copy(to, size, text);
    return 0;
}

/* The first line of the file. It is not in the URI, which everybody sees in ps. */
static int read_password(struct nrg_uri *uri, struct nrg_mqtt_options *o, struct nrg_error *err)
{
    const char *path = nrg_uri_text(uri, "password-file");
    if (!path)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t n = fd < 0 ? -1 : read(fd, o->password, sizeof o->password - 1);
    int error = errno;
    if (fd >= 0)
        close(fd);
    if (n < 0)
        return nrg_fail(err, -error, path, "password-file=: %s", strerror(error));
    o->password[n] = '\0';
    o->password[strcspn(o->password, "\r\n")] = '\0';
    if (!o->user[0])
        return nrg_fail(err, -EINVAL, uri->text,
                        "password-file= wants a user too: mqtt://USER@host/...");
    return 0;
}

/* "//[user@]host[:port]/topic" */
static int read_place(struct nrg_uri *uri, struct nrg_mqtt_options *o, const char **topic,
                      struct nrg_error *err)
{
    static const char form[] = "wants mqtt://[user@]host[:port]/topic";
    const char *at = uri->place;
    if (strncmp(at, "//", 2))
        return nrg_fail(err, -EINVAL, uri->text, "%s", form);
    const char *end = strchr(at + 2, '/'), *user_end;
    if (!end || end == at + 2)
        return nrg_fail(err, -EINVAL, uri->text, "%s", form);
    at += 2;
    *topic = end + 1;
    user_end = memrchr(at, '@', (size_t)(end - at));
    if (user_end && (size_t)(user_end - at) < sizeof o->user)
        snprintf(o->user, sizeof o->user, "%.*s", (int)(user_end - at), at);
    if (strchr(o->user, ':'))
        return nrg_fail(err, -EINVAL, "mqtt",
                        "a password does not belong into the URI: password-file= names its file");
    at = user_end ? user_end + 1 : at;
    const char *bracket = *at == '[' ? memchr(at, ']', (size_t)(end - at)) : NULL;
    const char *colon =
        memchr(bracket ? bracket : at, ':', (size_t)(end - (bracket ? bracket : at)));
    const char *host_end = bracket ? bracket : colon ? colon : end;
    at += bracket != NULL;
    uint64_t port = o->tls ? 8883 : 1883;
    if (colon &&
        (nrg_parse_u64(colon + 1, (size_t)(end - colon - 1), &port) || !port || port > 65535))
        return nrg_fail(err, -EINVAL, uri->text, "the port is a number from 1 to 65535");
    if (host_end == at || (size_t)(host_end - at) >= sizeof o->host)
        return nrg_fail(err, -EINVAL, uri->text, "%s", form);
    snprintf(o->host, sizeof o->host, "%.*s", (int)(host_end - at), at);
    o->port = (unsigned)port;
    return 0;
}

static int read_connection(struct nrg_uri *uri, struct nrg_mqtt_options *o, const char **topic,
                           struct nrg_error *err)
{
    double qos = 0, keepalive = 15;
    *o = (struct nrg_mqtt_options){.tls = !strcmp(uri->scheme, "mqtts")};
    int rc = read_place(uri, o, topic, err);
    if (!rc)
        rc = read_password(uri, o, err);
    if (!rc)
        rc = text_key(uri, "client", o->client, sizeof o->client, err);
    if (!rc && o->tls) {
        const char *check = nrg_uri_text(uri, "check");
        rc = text_key(uri, "cafile", o->cafile, sizeof o->cafile, err);
        if (!rc)
            rc = text_key(uri, "cert", o->cert, sizeof o->cert, err);
        if (!rc)
            rc = text_key(uri, "key", o->key, sizeof o->key, err);
        if (!rc && check && strcmp(check, "name") && strcmp(check, "no-name"))
            rc = nrg_fail(err, -EINVAL, uri->text, "check= wants name or no-name, not '%.20s'",
                          check);
        o->insecure = check && !strcmp(check, "no-name");
    }
    if (!rc)
        rc = nrg_uri_number(uri, "qos", 0, 2, &qos, err);
    if (!rc)
        rc = nrg_uri_number(uri, "keepalive", 5, 3600, &keepalive, err);
    o->qos = (int)qos;
    o->keepalive_s = (int)keepalive;
    return rc;
}

int nrg_mqtt_settings_read(struct nrg_uri *uri, struct nrg_mqtt_settings *s, struct nrg_error *err)
{
    const char *topic = "";
    *s = (struct nrg_mqtt_settings){.listen_ns = LISTEN_NS};
    int rc = read_connection(uri, &s->connection, &topic, err);
    if (!rc)
        rc = nrg_mqtt_plan_init(&s->plan, uri, topic, err);
    if (!rc)
        rc = nrg_meter_adjust_read(&s->adjust, uri, err);
    if (!rc)
        rc = nrg_uri_duration(uri, "period", &s->period_ns, err);
    if (!rc)
        rc = nrg_uri_duration(uri, "average", &s->average_ns, err);
    if (!rc)
        rc = nrg_uri_duration(uri, "listen", &s->listen_ns, err);
    nrg_copy(s->connection.topic, sizeof s->connection.topic, topic);
    return rc;
}
