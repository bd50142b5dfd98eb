/*
 * See meter/port.h. The epoll holds the device, a timer of the port (opening again, checking a
 * file, pausing), a timer for the meter (alarm), and for files an inotify, because a regular file
 * is always "readable". Everything is level-triggered: whatever a call leaves unread makes the
 * descriptor readable again.
 */
#include "sensors/meter/port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/meter/internal.h"

#define RETRY_NS   NRG_NS_PER_S
#define BREATHE_NS NRG_NS_PER_MS

enum { DEVICE = 1, RETRY = 2, ALARM = 4, CHANGED = 8 };

/* What the path turned out to be. */
enum nature { TTY, STREAM, REGULAR };

struct nrg_port {
    const struct nrg_context *ctx;
    enum nrg_port_kind kind;
    enum nature nature;
    char place[1024];
    unsigned baud;
    int epoll, fd, retry, alarm, notify, watch; /* fd -1: gone */
    pid_t pid;
    int pidfd;
    unsigned ready; /* sources with something to do */
    bool paused;    /* the device is not watched for a moment */
    bool ended;     /* a program that is not started again */
    dev_t dev;
    ino_t ino;
};

static void set_polled(struct nrg_port *p, int fd, unsigned source, bool add)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = source};
    epoll_ctl(p->epoll, add ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, fd, &event);
}

static void set_timer(int timer, int64_t at_ns, int64_t every_ns)
{
    struct itimerspec spec = {
        .it_value = {at_ns / NRG_NS_PER_S, at_ns % NRG_NS_PER_S},
        .it_interval = {every_ns / NRG_NS_PER_S, every_ns % NRG_NS_PER_S},
    };
    timerfd_settime(timer, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void drain_fd(int fd)
{
    char buf[4096] __attribute__((aligned(8)));
    while (read(fd, buf, sizeof buf) == (ssize_t)sizeof buf)
        ;
}

static int explain_failure(const struct nrg_port *p, const char *path, int rc,
                           struct nrg_error *err)
{
    if (rc == -EACCES && p->kind == NRG_PORT_SERIAL)
        return nrg_fail(err, rc, path,
                        "you may not read it: sudo usermod -aG dialout $USER, then log in again");
    if (rc == -ENOENT || rc == -ENXIO || rc == -ENODEV)
        return nrg_fail(err, rc, path,
                        p->kind == NRG_PORT_SERIAL
                            ? "is not there: is the meter plugged in? See ls -l /dev/serial/by-id"
                            : "is not there");
    return nrg_fail(err, rc, path, "cannot be opened: %s", strerror(-rc));
}

int nrg_port_check(const struct nrg_context *ctx, const struct nrg_port_options *options,
                   struct nrg_error *err)
{
    struct nrg_port p = {.kind = options->kind};
    struct stat st;
    if (options->kind == NRG_PORT_PROGRAM)
        return 0;
    int rc = nrg_root_stat(&ctx->root, options->place, &st);
    if (!rc && S_ISDIR(st.st_mode))
        rc = -EISDIR;
    if (!rc)
        rc = nrg_root_access(&ctx->root, options->place, R_OK);
    return rc ? explain_failure(&p, options->place, rc, err) : 0;
}

static enum nature nature_of(int fd, mode_t mode)
{
    return S_ISREG(mode) ? REGULAR : isatty(fd) ? TTY : STREAM;
}

static void watch_file(struct nrg_port *p)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", p->fd);
    if (p->watch >= 0)
        inotify_rm_watch(p->notify, p->watch);
    p->watch =
        inotify_add_watch(p->notify, path, IN_MODIFY | IN_ATTRIB | IN_MOVE_SELF | IN_DELETE_SELF);
}

/* Opens what the path names now, and sets fd. 0, or -errno with err. */
static int open_device(struct nrg_port *p, bool from_start, struct nrg_error *err)
{
    struct stat st;
    int rc = 0;
    int fd = nrg_root_open(&p->ctx->root, p->place, O_RDONLY | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return explain_failure(p, p->place, fd, err);
    if (fstat(fd, &st))
        rc = nrg_fail(err, -errno, p->place, "%s", strerror(errno));
    p->nature = rc ? STREAM : nature_of(fd, st.st_mode);
    if (!rc && p->nature == TTY)
        rc = nrg_serial_setup(fd, p->place, p->baud, err);
    if (rc) {
        close(fd);
        return rc;
    }
    p->fd = fd;
    p->dev = st.st_dev;
    p->ino = st.st_ino;
    p->ready &= ~(unsigned)DEVICE;
    if (p->nature != REGULAR) {
        set_polled(p, fd, DEVICE, true);
        return 0;
    }
    if (!from_start)
        lseek(fd, 0, SEEK_END);
    watch_file(p);
    p->ready |= DEVICE;
    set_timer(p->retry, 1, RETRY_NS); /* at once, and again in case inotify misses a change */
    return 0;
}

static void close_device(struct nrg_port *p)
{
    if (p->fd >= 0)
        close(p->fd); /* also removes it from the epoll */
    p->fd = -1;
    p->paused = false;
    p->ready &= ~(unsigned)DEVICE;
}

static int start_program(struct nrg_port *p, struct nrg_error *err)
{
    int fd = nrg_program_start(p->place, &p->pid, &p->pidfd, err);
    if (fd < 0)
        return fd;
    p->fd = fd;
    p->nature = STREAM;
    set_polled(p, fd, DEVICE, true);
    return 0;
}

int nrg_port_open(const struct nrg_context *ctx, const struct nrg_port_options *options,
                  struct nrg_port **out, struct nrg_error *err)
{
    struct nrg_port *p = calloc(1, sizeof *p);
    if (!p)
        return nrg_fail(err, -ENOMEM, NULL, "out of memory");
    p->ctx = ctx;
    p->kind = options->kind;
    p->baud = options->baud;
    p->fd = p->watch = p->pidfd = -1;
    nrg_copy(p->place, sizeof p->place, options->place);
    p->epoll = epoll_create1(EPOLL_CLOEXEC);
    p->retry = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    p->alarm = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    p->notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    int rc = 0;
    if (p->epoll < 0 || p->retry < 0 || p->alarm < 0) {
        rc = nrg_fail(err, -errno, p->place, "no descriptor left: %s", strerror(errno));
    } else {
        set_polled(p, p->retry, RETRY, true);
        set_polled(p, p->alarm, ALARM, true);
        if (p->notify >= 0)
            set_polled(p, p->notify, CHANGED, true);
        rc = p->kind == NRG_PORT_PROGRAM ? start_program(p, err)
                                         : open_device(p, options->from_start, err);
    }
    if (rc)
        nrg_port_close(p);
    else
        *out = p;
    return rc;
}

void nrg_port_close(struct nrg_port *p)
{
    if (!p)
        return;
    bool pipe_open = p->fd >= 0;
    const int fds[] = {p->epoll, p->retry, p->alarm, p->notify};
    close_device(p);
    if (p->pid > 0)
        nrg_program_stop(p->pid, p->pidfd, pipe_open);
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(p);
}

int nrg_port_fd(const struct nrg_port *p)
{
    return p->epoll;
}

bool nrg_port_is_serial(const struct nrg_port *p)
{
    return p->nature == TTY;
}

void nrg_port_alarm(struct nrg_port *p, int64_t at_ns)
{
    set_timer(p->alarm, at_ns, 0);
}

void nrg_port_breathe(struct nrg_port *p)
{
    if (p->fd < 0 || p->paused)
        return;
    if (p->nature != REGULAR)
        set_polled(p, p->fd, DEVICE, false);
    p->paused = true;
    p->ready &= ~(unsigned)DEVICE;
    set_timer(p->retry, nrg_now_ns() + BREATHE_NS, RETRY_NS);
}

static void resume_reading(struct nrg_port *p)
{
    p->paused = false;
    if (p->nature == REGULAR)
        p->ready |= DEVICE;
    else
        set_polled(p, p->fd, DEVICE, true);
    set_timer(p->retry, p->nature == REGULAR ? nrg_now_ns() + RETRY_NS : 0, RETRY_NS);
}

static void lose_device(struct nrg_port *p, const char *why, struct nrg_port_event *event)
{
    close_device(p);
    event->kind = NRG_PORT_GONE;
    nrg_copy(event->why, sizeof event->why, why);
    set_timer(p->retry, nrg_now_ns() + RETRY_NS, RETRY_NS);
}

/* The program, or the writer of the pipe, has closed it. A pipe waits for the next writer. */
static void end_stream(struct nrg_port *p, struct nrg_port_event *event)
{
    close_device(p);
    event->kind = NRG_PORT_ENDED;
    if (p->kind == NRG_PORT_PROGRAM) {
        nrg_program_why(p->pidfd, event->why, sizeof event->why);
        p->ended = true;
        return;
    }
    nrg_copy(event->why, sizeof event->why, "the writer has closed the pipe");
    if (open_device(p, true, NULL))
        set_timer(p->retry, nrg_now_ns() + RETRY_NS, RETRY_NS);
}

static void read_device(struct nrg_port *p, uint8_t *bytes, size_t size,
                        struct nrg_port_event *event)
{
    ssize_t n = read(p->fd, bytes, size);
    event->end_ns = nrg_now_ns();
    if (n > 0) {
        event->kind = NRG_PORT_BYTES;
        event->n = (size_t)n;
        if (n < (ssize_t)size && p->nature != REGULAR)
            p->ready &= ~(unsigned)DEVICE;
        return;
    }
    p->ready &= ~(unsigned)DEVICE;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (p->nature == REGULAR && n == 0)
        return; /* its end, for now */
    if (p->nature == STREAM && n == 0)
        end_stream(p, event);
    else
        lose_device(p, n < 0 ? strerror(errno) : "the line was hung up", event);
}

/* A file that was cut is read from its start; of one that was replaced, the new one is read. */
static void check_file(struct nrg_port *p, struct nrg_port_event *event)
{
    struct stat st;
    p->ready |= DEVICE;
    if (fstat(p->fd, &st))
        return;
    off_t at = lseek(p->fd, 0, SEEK_CUR), size = st.st_size;
    if (size < at) {
        lseek(p->fd, 0, SEEK_SET);
        event->kind = NRG_PORT_CUT;
    } else if (size == at && !nrg_root_stat(&p->ctx->root, p->place, &st) &&
               (st.st_dev != p->dev || st.st_ino != p->ino)) {
        close_device(p);
        event->kind = NRG_PORT_CUT;
        if (open_device(p, true, NULL))
            lose_device(p, "the file was replaced and can't be read", event);
    }
}

static void on_retry(struct nrg_port *p, struct nrg_port_event *event)
{
    drain_fd(p->retry);
    if (p->paused) {
        resume_reading(p);
    } else if (p->fd < 0 && !p->ended) {
        set_timer(p->retry, 0, 0);
        if (!open_device(p, true, NULL))
            event->kind = NRG_PORT_BACK;
        else
            set_timer(p->retry, nrg_now_ns() + RETRY_NS, RETRY_NS);
    } else if (p->fd >= 0 && p->nature == REGULAR) {
        check_file(p, event);
    }
}

static void find_ready(struct nrg_port *p)
{
    struct epoll_event events[4];
    int n = epoll_wait(p->epoll, events, 4, 0);
    for (int i = 0; i < n; i++)
        p->ready |= events[i].data.u32;
}

void nrg_port_next(struct nrg_port *p, uint8_t *bytes, size_t size, struct nrg_port_event *event)
{
    static const unsigned sources[] = {ALARM, RETRY, CHANGED, DEVICE};
    *event = (struct nrg_port_event){.kind = NRG_PORT_NOTHING};
    if (!p->ready)
        find_ready(p);
    for (size_t i = 0; event->kind == NRG_PORT_NOTHING && i < 4; i++) {
        unsigned source = p->ready & sources[i];
        if (source && source != DEVICE)
            p->ready &= ~source;
        if (source == ALARM) {
            drain_fd(p->alarm);
            event->kind = NRG_PORT_ALARM;
        } else if (source == RETRY) {
            on_retry(p, event);
        } else if (source == CHANGED) {
            drain_fd(p->notify);
            if (p->fd >= 0 && p->nature == REGULAR && !p->paused)
                check_file(p, event);
        } else if (source == DEVICE && p->fd >= 0 && !p->paused) {
            read_device(p, bytes, size, event);
        }
    }
}
