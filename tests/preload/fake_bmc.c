/*
 * LD_PRELOAD for tests: a management controller behind a FIFO that stands for /dev/ipmi0. It
 * answers IPMI's ioctls as ipmi_devintf documents them; a byte in the FIFO is a message that can be
 * received, so poll works by itself. NRG_TEST_BMC is the FIFO, NRG_TEST_BMC_SAYS a file, read at
 * each question: a number of watts, or what goes wrong instead (see `answer`).
 *
 * Each call is also made on the FIFO, which knows none of them: a filter that forbids it is
 * noticed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ipmi.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fifo_fd = -1;
static struct {
    int type;
    long msgid;
    unsigned char netfn, data[80];
    unsigned short n;
} message;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("NRG_TEST_BMC");
    fifo_fd = path ? open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC) : -1;
}

static void what_it_says(char *word, size_t size)
{
    int fd = open(getenv("NRG_TEST_BMC_SAYS"), O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, word, size - 1);
    if (fd >= 0)
        close(fd);
    word[n > 0 ? n : 0] = '\0';
    word[strcspn(word, "\n")] = '\0';
}

/* Completion code, DC, four powers, 2026-01-01 in seconds, 1000 ms, active. */
static void answer(const struct ipmi_req *req)
{
    static const unsigned char usual[] = {0,    0xdc, 0,    0,    5,    0,    0xff, 0x0f, 200, 0,
                                          0x80, 0xb9, 0x55, 0x69, 0xe8, 0x03, 0,    0,    0x40};
    char word[32];
    what_it_says(word, sizeof word);
    message.type = IPMI_RESPONSE_RECV_TYPE;
    message.msgid = req->msgid;
    message.netfn = 0x2d;
    message.n = sizeof usual;
    memcpy(message.data, usual, sizeof usual);
    int watts = atoi(word);
    message.data[2] = (unsigned char)(watts & 0xff);
    message.data[3] = (unsigned char)(watts >> 8);
    if (!strncmp(word, "code ", 5)) {
        message.n = 1;
        message.data[0] = (unsigned char)strtoul(word + 5, NULL, 16);
    } else if (!strcmp(word, "short")) {
        message.data[2] = 100;
        message.n = 18;
    } else if (!strcmp(word, "inactive")) {
        message.data[2] = 100;
        message.data[18] = 0;
    } else if (!strcmp(word, "long")) {
        message.n = sizeof message.data;
    } else if (!strcmp(word, "another")) {
        message.data[2] = 100;
        message.netfn = 0x07;
    }
    if (strcmp(word, "silent") != 0 && write(fifo_fd, "", 1) != 1)
        abort();
}

/* The question is held against the specification, not against nrg's own encoder. */
static int send_command(const struct ipmi_req *req)
{
    struct ipmi_system_interface_addr to;
    if (req->addr_len < sizeof to || req->msg.netfn != 0x2c || req->msg.cmd != 0x02 ||
        req->msg.data_len != 4 || memcmp(req->msg.data, "\xdc\x01\x00\x00", 4) != 0)
        return errno = EINVAL, -1;
    memcpy(&to, req->addr, sizeof to);
    if (to.addr_type != 0x0c || to.channel != 0x0f || to.lun != 0)
        return errno = EINVAL, -1;
    answer(req);
    return 0;
}

static int receive(int fd, struct ipmi_recv *in)
{
    char byte;
    if (read(fd, &byte, 1) != 1)
        return errno = EAGAIN, -1;
    int cut = message.n > in->msg.data_len;
    in->recv_type = message.type;
    in->msgid = message.msgid;
    in->msg.netfn = message.netfn;
    in->msg.cmd = 0x02;
    in->msg.data_len = cut ? in->msg.data_len : message.n;
    memcpy(in->msg.data, message.data, in->msg.data_len);
    return cut ? (errno = EMSGSIZE, -1) : 0;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list ap;
    va_start(ap, request);
    void *arg = va_arg(ap, void *);
    va_end(ap);
    long rc = syscall(SYS_ioctl, fd, request, arg);
    if (fifo_fd < 0 || !rc || errno != ENOTTY)
        return (int)rc;
    if (request == IPMICTL_SEND_COMMAND)
        return send_command(arg);
    return request == IPMICTL_RECEIVE_MSG_TRUNC ? receive(fd, arg) : (int)rc;
}
