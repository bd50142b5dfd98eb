/* See listen.h. */
#include "daemon/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define FIRST_INHERITED 3 /* SD_LISTEN_FDS_START */
/* Who connects waits behind so many; others wait until there is room, in the order in which they
 * came, so that a long queue would only make everybody wait for those who flood it. */
#define BACKLOG 128

static int option_of(int fd, int name)
{
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) ? -1 : value;
}

int nrg_listen_inherited(struct nrg_error *err)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    bool ours = pid && count && strtol(pid, NULL, 10) == (long)getpid();
    long n = ours ? strtol(count, NULL, 10) : 0;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (n <= 0)
        return nrg_fail(err, -ENOENT, NULL,
                        "no socket was handed over: start nrgd.socket, or give "
                        "--socket PATH");
    int fd = FIRST_INHERITED;
    if (n != 1 || option_of(fd, SO_DOMAIN) != AF_UNIX || option_of(fd, SO_TYPE) != SOCK_SEQPACKET ||
        option_of(fd, SO_ACCEPTCONN) != 1)
        return nrg_fail(err, -EINVAL, NULL,
                        "what was handed over is not one listening unix socket that keeps packets "
                        "(ListenSequentialPacket=)");
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
        return nrg_fail(err, -errno, NULL, "the socket that was handed over: %s", strerror(errno));
    return fd;
}

/* It gets its name when it listens: who sees it can connect. */
int nrg_listen_at(const char *path, struct nrg_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat st;
    int n = snprintf(address.sun_path, sizeof address.sun_path, "%s.new", path);
    if (n < 0 || (size_t)n >= sizeof address.sun_path)
        return nrg_fail(err, -ENAMETOOLONG, path, "the path of a socket has at most %zu characters",
                        sizeof address.sun_path - sizeof ".new");
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (!lstat(address.sun_path, &st) && S_ISSOCK(st.st_mode))
        unlink(address.sun_path); /* of one that ended */
    if (!lstat(path, &st) && !S_ISSOCK(st.st_mode))
        errno = EEXIST;
    else if (fd >= 0 && !bind(fd, (struct sockaddr *)&address, sizeof address) &&
             !chmod(address.sun_path, 0666) && !listen(fd, BACKLOG) &&
             !rename(address.sun_path, path))
        return fd;
    int rc = -errno;
    if (fd >= 0)
        close(fd);
    return nrg_fail(err, rc, path, "cannot listen: %s", strerror(-rc));
}
