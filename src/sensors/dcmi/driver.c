/*
 * What the whole machine draws, as its management controller (BMC) measures it, through the
 * kernel's IPMI device /dev/ipmi0: one channel, `machine`, in whole watts. It is wide, like the
 * firmware's own meter (board/hwmon.c), which is often the same figure: of the two the first is
 * used.
 *
 * The device is opened for reading only, which is all that the kernel asks for; but whoever holds
 * it can send any command, so its descriptor is never handed out (no `share`).
 *
 * A controller is slow and may be silent. It is asked ten times a second at most; a reading between
 * repeats the last figure, as the controller itself would. A question waits WAIT_MS for its answer.
 * After that, readings are missing and only look whether it has come, and the question is put again
 * after GIVE_UP_NS: so even nrgd, which has one thread for all, is held up for little.
 *
 * Refuses: controllers without DCMI, with a measurement that is not active, or that say 0 W.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ipmi.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/dcmi/message.h"
#include "sensors/drivers.h"
#include "sensors/fixes.h"

#define DEVICE        "/dev/ipmi0"
#define SMBIOS_ENTRY  "/sys/firmware/dmi/entries/38-0" /* the board's firmware names a BMC */
#define WHAT          "power by the BMC (DCMI)"
#define WAIT_MS       250
#define GIVE_UP_NS    (5 * NRG_NS_PER_S)
#define ASK_NS        (100 * NRG_NS_PER_MS)
#define MOST_MESSAGES 16 /* events and late answers that are passed over at once */

struct dcmi {
    int fd;
    long msgid;       /* of the question that was put last */
    bool waiting;     /* its answer has not come */
    int64_t asked_ns; /* 0: never */
    int error;        /* of the last answer; else: */
    struct nrg_dcmi_power power;
};

static int ask(struct dcmi *d)
{
    uint8_t data[NRG_DCMI_REQUEST_LEN];
    struct ipmi_system_interface_addr to = {.addr_type = IPMI_SYSTEM_INTERFACE_ADDR_TYPE,
                                            .channel = IPMI_BMC_CHANNEL};
    struct ipmi_req request = {
        .addr = (unsigned char *)&to,
        .addr_len = sizeof to,
        .msgid = ++d->msgid,
        .msg = {
            .netfn = NRG_DCMI_NETFN, .cmd = NRG_DCMI_POWER, .data_len = sizeof data, .data = data}};
    nrg_dcmi_encode(data);
    d->waiting = false;
    d->asked_ns = nrg_now_ns();
    if (ioctl(d->fd, IPMICTL_SEND_COMMAND, &request))
        return -errno;
    d->waiting = true;
    return 0;
}

/* One message of the device. True when it is the answer, which then is in d. */
static bool take_message(struct dcmi *d, int *rc)
{
    uint8_t data[NRG_DCMI_ANSWER_BYTES];
    struct ipmi_addr from;
    struct ipmi_recv in = {.addr = (unsigned char *)&from,
                           .addr_len = sizeof from,
                           .msg = {.data_len = sizeof data, .data = data}};
    *rc = ioctl(d->fd, IPMICTL_RECEIVE_MSG_TRUNC, &in) ? -errno : 0;
    if (*rc && *rc != -EMSGSIZE)
        return false;
    if (in.recv_type != IPMI_RESPONSE_RECV_TYPE || in.msgid != d->msgid) {
        *rc = 0;
        return false;
    }
    bool fits = !*rc && in.msg.netfn == NRG_DCMI_NETFN + 1 && in.msg.cmd == NRG_DCMI_POWER &&
                in.msg.data_len <= sizeof data;
    *rc = 0;
    d->waiting = false;
    d->error = fits ? nrg_dcmi_decode(data, in.msg.data_len, &d->power) : -EPROTO;
    return true;
}

/* Waits for the answer, wait_ms at most. 0 when it is there (d->error says which); -ETIMEDOUT. */
static int await(struct dcmi *d, int wait_ms)
{
    int64_t end_ns = nrg_now_ns() + wait_ms * NRG_NS_PER_MS;
    for (int i = 0; i < MOST_MESSAGES; i++) {
        struct pollfd ready = {.fd = d->fd, .events = POLLIN};
        int64_t left_ms = (end_ns - nrg_now_ns()) / NRG_NS_PER_MS;
        int rc = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
        if (rc < 0 && errno != EINTR)
            return -errno;
        if (rc > 0 && !(ready.revents & POLLIN))
            return -ENODEV; /* the driver of the interface was taken away */
        if (rc == 0)
            return -ETIMEDOUT;
        if (rc > 0 && take_message(d, &rc))
            return 0;
        if (rc < 0 && rc != -EAGAIN)
            return rc;
    }
    return -ETIMEDOUT;
}

/* Asks where it is time to, and fetches what has come. 0, or why there is no figure now. */
static int refresh(struct dcmi *d)
{
    int64_t age_ns = nrg_now_ns() - d->asked_ns;
    bool first = false;
    if (d->waiting ? age_ns >= GIVE_UP_NS : !d->asked_ns || age_ns >= ASK_NS) {
        int rc = ask(d);
        if (rc)
            return d->error = rc;
        first = true;
    }
    int rc = d->waiting ? await(d, first ? WAIT_MS : 0) : 0;
    return rc ? rc : d->error;
}

static void close_dcmi(void *state)
{
    struct dcmi *d = state;
    close(d->fd);
    free(d);
}

static int read_dcmi(void *state, struct nrg_sink *sink)
{
    struct dcmi *d = state;
    int64_t before = nrg_now_ns();
    int rc = refresh(d);
    int64_t after = nrg_now_ns(), raw = rc ? NRG_MISSING : d->power.current_w;
    nrg_sink_row(sink, 0, before + (after - before) / 2, after - before, &raw);
    nrg_sink_fault(sink, 0, rc);
    return rc == -ENODEV ? rc : 0;
}

static int open_device(const struct nrg_root *root, struct dcmi **out)
{
    int fd = nrg_root_open(root, DEVICE, O_RDONLY | O_NONBLOCK);
    if (fd < 0)
        return fd;
    struct dcmi *d = *out = nrg_calloc(1, sizeof *d);
    if (!d) {
        close(fd);
        return -ENOMEM;
    }
    d->fd = fd;
    return 0;
}

static int open_dcmi(const struct nrg_context *ctx, const struct nrg_found *found, void **state,
                     struct nrg_error *err)
{
    struct dcmi *d;
    int rc = open_device(&ctx->root, &d);
    if (rc)
        return nrg_fail(err, rc, found->sensor, DEVICE ": %s", strerror(-rc));
    *state = d;
    return 0;
}

static const char *reason(int error)
{
    switch (error) {
    case -ENOTTY:
        return "this is no IPMI device";
    case -ENOTSUP:
        return "the BMC has no DCMI power reading";
    case -ENODATA:
        return "the BMC does not measure power now, or says 0 W";
    case -ETIMEDOUT:
        return "the BMC does not answer";
    case -EPROTO:
        return "the BMC's answer is no power reading";
    default:
        return strerror(-error);
    }
}

static int add_machine(struct nrg_probe *probe, const struct nrg_dcmi_power *power)
{
    struct nrg_found *found = nrg_probe_found(probe, "BMC (DCMI)");
    struct nrg_channel *channel =
        found ? nrg_found_channel(found, "machine", NRG_POWER, NRG_GAUGE) : NULL;
    if (!channel)
        return -ENOMEM;
    nrg_copy(channel->source, sizeof channel->source, DEVICE);
    channel->scale = channel->resolution = 1;
    channel->update_ns = nrg_dcmi_update_ns(power);
    channel->wide = channel->covers_cpu = true;
    return 0;
}

static int probe_dcmi(struct nrg_probe *probe, struct nrg_error *err)
{
    const struct nrg_root *root = &probe->ctx->root;
    char fix[NRG_FIX_BYTES];
    struct dcmi *d;
    (void)err;
    int rc = open_device(root, &d);
    if (rc == -ENOENT && !nrg_root_exists(root, SMBIOS_ENTRY))
        return 0; /* no server: nothing that anybody would miss */
    if (rc == -ENOENT)
        return nrg_probe_unavailable(probe, WHAT, nrg_fixes(root, NRG_BMC_ABSENT, fix),
                                     "there is a BMC, but no " DEVICE);
    if (rc == -EACCES || rc == -EPERM)
        return nrg_probe_unavailable(probe, WHAT, nrg_fixes(root, NRG_BMC_DENIED, fix),
                                     DEVICE ": %s", strerror(-rc));
    if (rc)
        return rc == -ENOMEM
                   ? rc
                   : nrg_probe_unavailable(probe, WHAT, NULL, DEVICE ": %s", strerror(-rc));
    rc = refresh(d);
    rc = rc ? nrg_probe_unavailable(probe, WHAT, NULL, DEVICE ": %s", reason(rc))
            : add_machine(probe, &d->power);
    close_dcmi(d);
    return rc;
}

const struct nrg_driver nrg_driver_dcmi = {
    .name = "dcmi",
    .summary = "the machine's power as its management controller (BMC) measures it",
    .flags = NRG_MAY_BLOCK,
    .probe = probe_dcmi,
    .open = open_dcmi,
    .read = read_dcmi,
    .close = close_dcmi,
};
