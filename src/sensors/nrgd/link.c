/* See link.h. */
#include "sensors/nrgd/link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <nrg/nrg.h>

#include "base/mem.h"
#include "sensors/fixes.h"

#define AGREE                                                                                      \
    "install nrg and nrgd of one version (Debian: sudo apt install nrg nrgd), then  sudo "         \
    "systemctl restart nrgd"

const char *nrg_nrgd_socket(void)
{
    const char *path = secure_getenv("NRG_DAEMON");
    return path ? path : NRG_DAEMON_SOCKET;
}

void nrg_nrgd_close(struct nrg_nrgd_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
}

/* Connecting waits while the daemon's queue is full, and while it is started. */
static int connect_until(int fd, const struct sockaddr_un *address, int64_t deadline_ns)
{
    int rc;
    do {
        int64_t left_ns = deadline_ns - nrg_now_ns();
        if (left_ns < NRG_NS_PER_MS)
            return -ETIMEDOUT;
        struct timeval limit = {.tv_sec = left_ns / NRG_NS_PER_S,
                                .tv_usec = left_ns % NRG_NS_PER_S / 1000};
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        rc = connect(fd, (const struct sockaddr *)address, sizeof *address) ? -errno : 0;
    } while (rc == -EINTR);
    return rc == -EAGAIN ? -ETIMEDOUT : rc;
}

static int open_socket(const char *path, int64_t deadline_ns, struct nrg_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return nrg_fail(err, -ENAMETOOLONG, path, "the path of a socket has at most %zu characters",
                        sizeof address.sun_path - 1);
    strcpy(address.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return nrg_fail(err, -errno, path, "no socket: %s", strerror(errno));
    int rc = connect_until(fd, &address, deadline_ns);
    if (!rc)
        return fd;
    close(fd);
    return nrg_fail(err, rc, path, "nrgd can't be reached: %s", strerror(-rc));
}

/* Descriptors of a message: the first `room` go to fds, all others are closed. */
static size_t take_descriptors(struct msghdr *message, int *fds, size_t room)
{
    size_t n = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (n < room)
                fds[n++] = fd;
            else
                close(fd);
        }
    }
    return n;
}

/* A packet that is there before the deadline, as recvmsg. */
static ssize_t receive_until(const struct nrg_nrgd_link *link, struct msghdr *message)
{
    int resets = 0;
    for (;;) {
        ssize_t n = recvmsg(link->fd, message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (n >= 0 || (errno != EINTR && errno != EAGAIN && (errno != ECONNRESET || resets++)))
            return n;
        int64_t left_ns = link->deadline_ns - nrg_now_ns();
        struct pollfd ready = {.fd = link->fd, .events = POLLIN};
        struct timespec left = {.tv_sec = left_ns / NRG_NS_PER_S,
                                .tv_nsec = left_ns % NRG_NS_PER_S};
        if (left_ns <= 0 || (ppoll(&ready, 1, &left, NULL) < 0 && errno != EINTR)) {
            errno = EAGAIN;
            return -1;
        }
    }
}

static int receive(struct nrg_nrgd_link *link, union nrg_wire_packet *answer, int *fds,
                   size_t *n_fds, struct nrg_error *err)
{
    union {
        char bytes[CMSG_SPACE(NRG_WIRE_CHANNELS * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {.iov_base = answer, .iov_len = sizeof *answer};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t n = receive_until(link, &message);
    if (n < 0)
        return nrg_fail(err, errno == EAGAIN ? -ETIMEDOUT : -errno, NULL,
                        "nrgd does not answer: %s", strerror(errno == EAGAIN ? ETIMEDOUT : errno));
    size_t taken = take_descriptors(&message, fds, fds ? NRG_WIRE_CHANNELS : 0);
    if (n_fds)
        *n_fds = taken;
    int rc = n ? nrg_wire_check(answer, (size_t)n, false) : -ENODEV;
    if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && !rc)
        rc = -EPROTO;
    for (size_t i = 0; rc && i < taken; i++)
        close(fds[i]);
    if (rc && rc != -EPROTONOSUPPORT)
        nrg_fail(err, rc, NULL,
                 n ? "nrgd answers something else than was asked" : "nrgd closed the connection");
    return rc;
}

static int send_packet(struct nrg_nrgd_link *link, const union nrg_wire_packet *packet, size_t size,
                       struct nrg_error *err)
{
    ssize_t n;
    do
        n = send(link->fd, packet, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)size)
        return 0;
    int rc = n < 0 && errno != EPIPE && errno != ECONNRESET ? -errno : -ENODEV;
    return nrg_fail(err, rc, NULL, "nrgd takes no request: %s", strerror(-rc));
}

/* One error for all: nrgd's own must not be taken for one of ours (-ENOMEM, -ETIMEDOUT). */
static int refusal(const struct nrg_wire_refused *refused, struct nrg_error *err)
{
    char text[sizeof refused->text];
    nrg_copy_clean(text, sizeof text, refused->text, strlen(refused->text));
    return nrg_fail(err, -ECONNREFUSED, NULL, "nrgd refuses: %s", text);
}

/* Programs that do not agree: whoever is asked says which versions there are. Of other packets of
 * another version nothing is known but the head. */
static int disagreement(const union nrg_wire_packet *answer, struct nrg_error *err)
{
    const char *text = answer->head.type == NRG_WIRE_REFUSED   ? answer->refused.program
                       : answer->head.type == NRG_WIRE_WELCOME ? answer->welcome.program
                                                               : "(of an unknown release)";
    char program[sizeof answer->hello.program];
    nrg_copy_clean(program, sizeof program, text, strlen(text));
    return nrg_fail(err, -EPROTONOSUPPORT, NULL,
                    "nrgd %s speaks version %u of the protocol, and this nrg %s version %u: " AGREE,
                    program, (unsigned)answer->head.version, NRG_VERSION,
                    (unsigned)NRG_WIRE_VERSION);
}

int nrg_nrgd_answer(struct nrg_nrgd_link *link, enum nrg_wire_type expected,
                    union nrg_wire_packet *answer, int *fds, size_t *n_fds, struct nrg_error *err)
{
    int rc = receive(link, answer, fds, n_fds, err);
    if (rc == -EPROTONOSUPPORT)
        return disagreement(answer, err);
    if (rc || (answer->head.type == expected && answer->head.version == link->version))
        return rc;
    for (size_t i = 0; n_fds && i < *n_fds; i++)
        close(fds[i]);
    if (answer->head.type == NRG_WIRE_REFUSED)
        return answer->refused.error == -EPROTONOSUPPORT ? disagreement(answer, err)
                                                         : refusal(&answer->refused, err);
    return nrg_fail(err, -EPROTO, NULL, "nrgd answers something else than was asked");
}

/* A daemon that refuses says so and closes, maybe before the request is sent: its words come first.
 */
static int converse(struct nrg_nrgd_link *link, union nrg_wire_packet *packet, size_t size,
                    enum nrg_wire_type expected, int *fds, size_t *n_fds, struct nrg_error *err)
{
    int sent = send_packet(link, packet, size, err);
    return sent && sent != -ENODEV ? sent
                                   : nrg_nrgd_answer(link, expected, packet, fds, n_fds, err);
}

/* The answer stays in *packet. */
static int greet(struct nrg_nrgd_link *link, const char *path, unsigned version,
                 int64_t deadline_ns, union nrg_wire_packet *packet, struct nrg_error *err)
{
    int fd = open_socket(path, deadline_ns, err);
    *link = (struct nrg_nrgd_link){.fd = fd, .version = version, .deadline_ns = deadline_ns};
    packet->head.type = 0;
    if (fd < 0)
        return fd;
    nrg_wire_begin(packet, NRG_WIRE_HELLO, true);
    size_t size = nrg_wire_as(packet, version, true);
    nrg_copy(packet->hello.program, sizeof packet->hello.program, NRG_VERSION);
    int rc = converse(link, packet, size, NRG_WIRE_WELCOME, NULL, NULL, err);
    if (rc)
        nrg_nrgd_close(link);
    return rc;
}

/* The version that an older nrgd says when it refuses ours; 0: it is none that we speak. */
static unsigned older_version(const union nrg_wire_packet *packet)
{
    unsigned version = packet->head.version;
    return packet->head.type == NRG_WIRE_REFUSED && version < NRG_WIRE_VERSION &&
                   nrg_wire_speaks(version)
               ? version
               : 0;
}

int nrg_nrgd_connect(struct nrg_nrgd_link *link, const char *path, int64_t patience_ns,
                     struct nrg_error *err)
{
    union nrg_wire_packet packet;
    int64_t deadline_ns = nrg_now_ns() + patience_ns;
    int rc = greet(link, path, NRG_WIRE_VERSION, deadline_ns, &packet, err);
    if (rc == -EPROTONOSUPPORT && older_version(&packet))
        rc = greet(link, path, older_version(&packet), deadline_ns, &packet, err);
    if (rc)
        return rc;
    link->welcome = packet.welcome;
    if (packet.welcome.n_sensors <= NRG_WIRE_SENSORS && packet.welcome.period_ns >= 0 &&
        packet.welcome.view >= NRG_VIEW_FULL && packet.welcome.view <= NRG_VIEW_COARSE)
        return 0;
    nrg_nrgd_close(link);
    return nrg_fail(err, -EPROTO, NULL, "nrgd's greeting makes no sense");
}

static size_t make_request(const struct nrg_nrgd_link *link, union nrg_wire_packet *packet,
                           enum nrg_wire_type type, uint32_t sensor, uint32_t wanted)
{
    nrg_wire_begin(packet, type, true);
    packet->request.sensor = sensor;
    packet->request.wanted = wanted;
    return nrg_wire_as(packet, link->version, true);
}

int nrg_nrgd_request(struct nrg_nrgd_link *link, enum nrg_wire_type type, uint32_t sensor,
                     uint32_t wanted, struct nrg_error *err)
{
    union nrg_wire_packet packet;
    return send_packet(link, &packet, make_request(link, &packet, type, sensor, wanted), err);
}

int nrg_nrgd_ask(struct nrg_nrgd_link *link, enum nrg_wire_type type, uint32_t sensor,
                 uint32_t wanted, enum nrg_wire_type expected, union nrg_wire_packet *answer,
                 int *fds, size_t *n_fds, struct nrg_error *err)
{
    size_t size = make_request(link, answer, type, sensor, wanted);
    return converse(link, answer, size, expected, fds, n_fds, err);
}
