/*
 * See mqtt/session.h. The declarations below are those of libmosquitto 1.x and 2.x, which keep
 * them; only what both have is used.
 *
 * Before the library connects, a plain connection is tried: the library connects on its own thread
 * and does not tell why that fails, but a user must know about "connection refused" and "no such
 * host".
 */
#include "sensors/mqtt/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

#define LIBRARY "libmosquitto.so.1"
#define MAX_FDS 1024

enum { LOG_ERR_LEVEL = 8, LOG_WARNING_LEVEL = 4, CONNACK_REFUSED = 1 };

struct mosquitto;

struct mosquitto_message {
    int mid;
    char *topic;
    void *payload;
    int payloadlen;
    int qos;
    bool retain;
};

typedef void on_code(struct mosquitto *, void *, int);
typedef void on_message(struct mosquitto *, void *, const struct mosquitto_message *);
typedef void on_log(struct mosquitto *, void *, int, const char *);
typedef void on_subscribe(struct mosquitto *, void *, int, int, const int *);

struct library {
    int (*lib_init)(void);
    int (*lib_cleanup)(void);
    struct mosquitto *(*new_)(const char *id, bool clean, void *arg);
    void (*destroy)(struct mosquitto *);
    int (*username_pw_set)(struct mosquitto *, const char *, const char *);
    int (*tls_set)(struct mosquitto *, const char *cafile, const char *capath, const char *cert,
                   const char *key, int (*password)(char *, int, int, void *));
    int (*tls_insecure_set)(struct mosquitto *, bool);
    int (*reconnect_delay_set)(struct mosquitto *, unsigned, unsigned, bool);
    int (*connect_async)(struct mosquitto *, const char *, int port, int keepalive);
    int (*disconnect)(struct mosquitto *);
    int (*loop_start)(struct mosquitto *);
    int (*loop_stop)(struct mosquitto *, bool force);
    int (*subscribe)(struct mosquitto *, int *mid, const char *topic, int qos);
    int (*socket)(struct mosquitto *);
    const char *(*strerror)(int);
    const char *(*connack_string)(int);
    void (*connect_callback_set)(struct mosquitto *, on_code *);
    void (*disconnect_callback_set)(struct mosquitto *, on_code *);
    void (*message_callback_set)(struct mosquitto *, on_message *);
    void (*log_callback_set)(struct mosquitto *, on_log *);
    void (*subscribe_callback_set)(struct mosquitto *, on_subscribe *);
};

#define SYMBOL(field, name)                                                                        \
    {                                                                                              \
        "mosquitto_" name, offsetof(struct library, field)                                         \
    }

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    SYMBOL(lib_init, "lib_init"),
    SYMBOL(lib_cleanup, "lib_cleanup"),
    SYMBOL(new_, "new"),
    SYMBOL(destroy, "destroy"),
    SYMBOL(username_pw_set, "username_pw_set"),
    SYMBOL(tls_set, "tls_set"),
    SYMBOL(tls_insecure_set, "tls_insecure_set"),
    SYMBOL(reconnect_delay_set, "reconnect_delay_set"),
    SYMBOL(connect_async, "connect_async"),
    SYMBOL(disconnect, "disconnect"),
    SYMBOL(loop_start, "loop_start"),
    SYMBOL(loop_stop, "loop_stop"),
    SYMBOL(subscribe, "subscribe"),
    SYMBOL(socket, "socket"),
    SYMBOL(strerror, "strerror"),
    SYMBOL(connack_string, "connack_string"),
    SYMBOL(connect_callback_set, "connect_callback_set"),
    SYMBOL(disconnect_callback_set, "disconnect_callback_set"),
    SYMBOL(message_callback_set, "message_callback_set"),
    SYMBOL(log_callback_set, "log_callback_set"),
    SYMBOL(subscribe_callback_set, "subscribe_callback_set"),
};

struct nrg_mqtt_session {
    struct library lib;
    struct mosquitto *mosq;
    struct nrg_mqtt_options options;
    struct nrg_mqtt_calls calls;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool subscribed, refused; /* refused: the broker answered no */
    bool running, initialised;
    char why[200];
};

static int load_library(struct library *lib, struct nrg_error *err)
{
    const char *chosen = secure_getenv("NRG_MOSQUITTO_LIBRARY");
    const char *path = chosen && *chosen ? chosen : LIBRARY;
    /* Never unloaded, because it registers clean-up functions of its own. */
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle)
        return nrg_fail(err, -ENOENT, "mqtt",
                        "%s is not installed: apt install libmosquitto1 (Debian's name of it)",
                        path);
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *found = dlsym(handle, symbols[i].name);
        if (!found) {
            dlclose(handle);
            return nrg_fail(err, -ENOENT, path, "has no %s: another version is needed",
                            symbols[i].name);
        }
        memcpy((char *)lib + symbols[i].offset, &found, sizeof found);
    }
    dlclose(handle);
    return 0;
}

int nrg_mqtt_available(struct nrg_error *err)
{
    struct library lib;
    return load_library(&lib, err);
}

static void set_why(struct nrg_mqtt_session *s, const char *text)
{
    nrg_copy_clean(s->why, sizeof s->why, text, strlen(text));
}

static void on_connect(struct mosquitto *mosq, void *arg, int code)
{
    struct nrg_mqtt_session *s = arg;
    int fd = s->lib.socket(mosq);
    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC); /* the measured command must not inherit it */
    if (!code)
        code = s->lib.subscribe(mosq, NULL, s->options.topic, s->options.qos) ? -1 : 0;
    pthread_mutex_lock(&s->lock);
    if (code) {
        set_why(s, code < 0 ? "cannot subscribe" : s->lib.connack_string(code));
        s->refused = true;
    }
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

static void on_subscribed(struct mosquitto *mosq, void *arg, int mid, int n, const int *granted)
{
    struct nrg_mqtt_session *s = arg;
    bool ok = n > 0 && granted[0] < 128;
    pthread_mutex_lock(&s->lock);
    s->subscribed = ok;
    s->refused = !ok;
    if (!ok)
        set_why(s, "the broker refuses the subscription");
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (ok && s->calls.connected)
        s->calls.connected(s->calls.arg);
}

static void on_disconnect(struct mosquitto *mosq, void *arg, int code)
{
    struct nrg_mqtt_session *s = arg;
    pthread_mutex_lock(&s->lock);
    bool was = s->subscribed;
    s->subscribed = false;
    pthread_mutex_unlock(&s->lock);
    if (was && code && s->calls.lost)
        s->calls.lost(s->calls.arg, "the connection to the broker was lost");
}

static void on_logged(struct mosquitto *mosq, void *arg, int level, const char *text)
{
    struct nrg_mqtt_session *s = arg;
    if (level != LOG_ERR_LEVEL)
        return;
    pthread_mutex_lock(&s->lock);
    if (!s->refused)
        set_why(s, text);
    pthread_mutex_unlock(&s->lock);
}

static void on_published(struct mosquitto *mosq, void *arg, const struct mosquitto_message *m)
{
    struct nrg_mqtt_session *s = arg;
    if (m->topic && m->payloadlen >= 0)
        s->calls.message(s->calls.arg, m->topic, m->payload ? m->payload : "",
                         (size_t)m->payloadlen, m->retain, nrg_now_ns());
}

static int connect_one(const struct addrinfo *a, int64_t until_ns)
{
    int error = 0;
    socklen_t size = sizeof error;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (connect(fd, a->ai_addr, a->ai_addrlen) && errno != EINPROGRESS)
        error = errno;
    if (!error) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        int64_t left_ms = (until_ns - nrg_now_ns()) / NRG_NS_PER_MS;
        if (poll(&p, 1, left_ms > 0 ? (int)left_ms : 0) <= 0)
            error = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
            error = errno;
    }
    close(fd);
    return -error;
}

/* Checks that something listens at the port. */
static int try_connection(const struct nrg_mqtt_options *o, int64_t until_ns, struct nrg_error *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list;
    char port[16];
    int rc = -ENOENT;
    snprintf(port, sizeof port, "%u", o->port);
    int found = getaddrinfo(o->host, port, &hints, &list);
    if (found)
        return nrg_fail(err, -EHOSTUNREACH, o->host, "%s", gai_strerror(found));
    for (const struct addrinfo *a = list; a && rc; a = a->ai_next)
        rc = connect_one(a, until_ns);
    freeaddrinfo(list);
    return rc ? nrg_fail(err, rc, o->host, "no broker answers at port %u: %s", o->port,
                         strerror(-rc))
              : 0;
}

/* The measured command must not inherit the library's descriptors: notes which were open before. */
static void note_fds(bool *open_fds)
{
    for (int fd = 0; fd < MAX_FDS; fd++)
        open_fds[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void close_new_fds_on_exec(const bool *open_before)
{
    for (int fd = 3; fd < MAX_FDS; fd++)
        if (!open_before[fd] && fcntl(fd, F_GETFD) >= 0)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static int fail_with_code(struct nrg_mqtt_session *s, int code, const char *what,
                          struct nrg_error *err)
{
    const char *why = code == 14 /* MOSQ_ERR_ERRNO */ ? strerror(errno) : s->lib.strerror(code);
    return nrg_fail(err, -ECONNREFUSED, s->options.host, "%s: %s", what, why);
}

static int set_up_tls(struct nrg_mqtt_session *s, struct nrg_error *err)
{
    const struct nrg_mqtt_options *o = &s->options;
    if (!o->tls)
        return 0;
    int rc = s->lib.tls_set(s->mosq, o->cafile[0] ? o->cafile : NULL,
                            o->cafile[0] ? NULL : "/etc/ssl/certs", o->cert[0] ? o->cert : NULL,
                            o->key[0] ? o->key : NULL, NULL);
    if (!rc && o->insecure)
        rc = s->lib.tls_insecure_set(s->mosq, true);
    return rc ? fail_with_code(s, rc, "cannot use TLS (cafile=, cert=, key=)", err) : 0;
}

static int set_up_client(struct nrg_mqtt_session *s, struct nrg_error *err)
{
    const struct nrg_mqtt_options *o = &s->options;
    int rc = 0;
    s->mosq = s->lib.new_(o->client[0] ? o->client : NULL, true, s);
    if (!s->mosq)
        return nrg_fail(err, -errno, o->host, "cannot make a client: %s", strerror(errno));
    s->lib.connect_callback_set(s->mosq, on_connect);
    s->lib.disconnect_callback_set(s->mosq, on_disconnect);
    s->lib.message_callback_set(s->mosq, on_published);
    s->lib.subscribe_callback_set(s->mosq, on_subscribed);
    s->lib.log_callback_set(s->mosq, on_logged);
    s->lib.reconnect_delay_set(s->mosq, 1, 2, false);
    if (o->user[0])
        rc = s->lib.username_pw_set(s->mosq, o->user, o->password[0] ? o->password : NULL);
    if (rc)
        return fail_with_code(s, rc, "cannot set user and password", err);
    rc = set_up_tls(s, err);
    if (rc)
        return rc;
    rc = s->lib.connect_async(s->mosq, o->host, (int)o->port, o->keepalive_s);
    return rc ? fail_with_code(s, rc, "cannot connect", err) : 0;
}

static int start_thread(struct nrg_mqtt_session *s, struct nrg_error *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the main thread's */
    int rc = s->lib.loop_start(s->mosq);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    s->running = !rc;
    return rc ? fail_with_code(s, rc, "cannot start", err) : 0;
}

static int wait_for_answer(struct nrg_mqtt_session *s, int64_t until_ns, struct nrg_error *err)
{
    struct timespec until = {until_ns / NRG_NS_PER_S, until_ns % NRG_NS_PER_S};
    int rc = 0;
    pthread_mutex_lock(&s->lock);
    while (!s->subscribed && !s->refused && !rc)
        rc = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    if (s->subscribed)
        rc = 0;
    else if (s->refused)
        rc = nrg_fail(err, -EACCES, s->options.host, "%s", s->why);
    else
        rc = nrg_fail(err, -ETIMEDOUT, s->options.host, "port %u does not talk MQTT%s%s%s",
                      s->options.port, s->options.tls ? " over TLS" : "", s->why[0] ? ": " : "",
                      s->why);
    pthread_mutex_unlock(&s->lock);
    return rc;
}

int nrg_mqtt_start(struct nrg_mqtt_session **session, const struct nrg_mqtt_options *options,
                   const struct nrg_mqtt_calls *calls, int64_t wait_ns, struct nrg_error *err)
{
    pthread_condattr_t attr;
    bool open_before[MAX_FDS];
    int64_t until_ns = nrg_now_ns() + wait_ns;
    struct nrg_mqtt_session *s = calloc(1, sizeof *s);
    if (!s)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    s->options = *options;
    s->calls = *calls;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attr);
    pthread_condattr_destroy(&attr);
    note_fds(open_before);
    int rc = load_library(&s->lib, err);
    if (!rc)
        rc = try_connection(options, until_ns, err);
    if (!rc) {
        s->lib.lib_init();
        s->initialised = true;
        rc = set_up_client(s, err);
    }
    if (!rc)
        rc = start_thread(s, err);
    if (!rc)
        rc = wait_for_answer(s, until_ns, err);
    close_new_fds_on_exec(open_before);
    if (rc)
        nrg_mqtt_stop(s);
    else
        *session = s;
    return rc;
}

void nrg_mqtt_stop(struct nrg_mqtt_session *s)
{
    if (!s)
        return;
    if (s->mosq && s->running) {
        s->lib.disconnect(s->mosq);
        s->lib.loop_stop(s->mosq, false);
    }
    if (s->mosq)
        s->lib.destroy(s->mosq);
    if (s->initialised)
        s->lib.lib_cleanup();
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    explicit_bzero(&s->options.password, sizeof s->options.password);
    free(s);
}
