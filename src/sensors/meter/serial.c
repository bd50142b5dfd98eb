/*
 * Serial lines through termios: raw, 8N1, CLOCAL. In the usual (cooked) mode "\r\n" would become
 * two line ends and everything would be echoed to the meter. No modem line is touched at close
 * (HUPCL off), because many boards reset when DTR falls. The old settings are not restored: the
 * next program sets what it needs, as we do.
 */
#include <errno.h>
#include <string.h>
#include <sys/file.h>
#include <termios.h>

#include "sensors/meter/internal.h"

static const struct {
    unsigned baud;
    speed_t speed;
} speeds[] = {
    {300, B300},         {600, B600},         {1200, B1200},     {2400, B2400},
    {4800, B4800},       {9600, B9600},       {19200, B19200},   {38400, B38400},
    {57600, B57600},     {115200, B115200},   {230400, B230400}, {460800, B460800},
    {500000, B500000},   {576000, B576000},   {921600, B921600}, {1000000, B1000000},
    {1500000, B1500000}, {2000000, B2000000},
};

/* B0 when termios has no such speed. */
static speed_t find_speed(unsigned baud)
{
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        if (speeds[i].baud == baud)
            return speeds[i].speed;
    return B0;
}

bool nrg_serial_baud_known(unsigned baud)
{
    return find_speed(baud) != B0;
}

int64_t nrg_serial_byte_ns(unsigned baud)
{
    return baud ? INT64_C(10000000000) / baud : 0;
}

int nrg_serial_setup(int fd, const char *path, unsigned baud, struct nrg_error *err)
{
    struct termios t;
    speed_t speed = find_speed(baud);
    if (speed == B0)
        return nrg_fail(err, -EINVAL, path, "baud=%u is not a speed of serial lines", baud);
    if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
        return nrg_fail(err, -EBUSY, path, "another program reads it already (see: fuser -v %s)",
                        path);
    if (tcgetattr(fd, &t))
        return nrg_fail(err, -errno, path, "cannot be set up: %s", strerror(errno));
    cfmakeraw(&t);
    t.c_cflag &= ~(tcflag_t)(CSTOPB | PARENB | CRTSCTS | HUPCL);
    t.c_cflag |= CS8 | CREAD | CLOCAL;
    t.c_cc[VMIN] = 1; /* a read of 0 bytes is then an unplugged line and nothing else */
    t.c_cc[VTIME] = 0;
    cfsetispeed(&t, speed);
    cfsetospeed(&t, speed);
    if (tcsetattr(fd, TCSANOW, &t))
        return nrg_fail(err, -errno, path, "cannot be set to %u baud, 8N1: %s", baud,
                        strerror(errno));
    return 0;
}
