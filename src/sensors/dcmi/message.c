/*
 * See message.h. Numbers are little-endian:
 *   request   DC, mode 01, attributes 00, reserved 00
 *   answer    completion code, DC, current, minimum, maximum, average (2 bytes each, W), time (4),
 *             statistics period in ms (4), state (1; bit 6: the measurement is active)
 */
#include "sensors/dcmi/message.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"

#define GROUP      0xdc
#define ANSWER_LEN 19 /* a longer one is taken: what a later version may add comes after */
#define ACTIVE     0x40
#define NO_FIGURE  0xffff /* what controllers say before the first measurement */

void nrg_dcmi_encode(uint8_t out[NRG_DCMI_REQUEST_LEN])
{
    static const uint8_t request[NRG_DCMI_REQUEST_LEN] = {GROUP, 0x01, 0x00, 0x00};
    memcpy(out, request, sizeof request);
}

static int64_t number(const uint8_t *at, size_t n)
{
    int64_t value = 0;
    while (n--)
        value = value << 8 | at[n];
    return value;
}

int nrg_dcmi_code_error(uint8_t code)
{
    switch (code) {
    case 0x00:
        return 0;
    case 0xc1: /* no such command; for this LUN; no such value, as the mode is one */
    case 0xc2:
    case 0xcc:
        return -ENOTSUP;
    case 0xc0: /* busy; firmware is being updated or is starting */
    case 0xd1:
    case 0xd2:
        return -EBUSY;
    case 0xc3:
        return -ETIMEDOUT;
    case 0xd4:
        return -EACCES;
    default:
        return -EIO;
    }
}

int nrg_dcmi_decode(const uint8_t *data, size_t n, struct nrg_dcmi_power *out)
{
    if (n && data[0])
        return nrg_dcmi_code_error(data[0]);
    if (n < ANSWER_LEN || data[1] != GROUP)
        return -EPROTO;
    *out = (struct nrg_dcmi_power){.current_w = number(data + 2, 2),
                                   .minimum_w = number(data + 4, 2),
                                   .maximum_w = number(data + 6, 2),
                                   .average_w = number(data + 8, 2),
                                   .time_s = number(data + 10, 4),
                                   .period_ms = number(data + 14, 4)};
    /* A machine that answers draws something. */
    bool empty = !out->current_w || out->current_w == NO_FIGURE;
    return empty || !(data[ANSWER_LEN - 1] & ACTIVE) ? -ENODATA : 0;
}

/*
 * The specification has no field for how often the figure changes. Many controllers measure anew
 * in each period of the statistics, once a second; others count them since they were started, and
 * the period is hours.
 */
int64_t nrg_dcmi_update_ns(const struct nrg_dcmi_power *power)
{
    bool plausible = power->period_ms >= 100 && power->period_ms <= 10000;
    return plausible ? power->period_ms * NRG_NS_PER_MS : 0;
}
