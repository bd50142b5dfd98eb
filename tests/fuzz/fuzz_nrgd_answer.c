/*
 * Fuzz target: nrg's side of nrgd's protocol. The input is one packet as it came from a daemon that
 * may lie. What passes the checks must be terminated texts and numbers that can be used.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/nrgd/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_channel(const struct nrg_wire_channel *wire)
{
    struct nrg_channel channel;
    if (nrg_wire_get_channel(wire, &channel))
        abort(); /* the sensor passed as a whole */
    if (!memchr(channel.name, '\0', sizeof channel.name) ||
        !memchr(channel.source, '\0', sizeof channel.source) ||
        channel.quantity >= NRG_QUANTITIES || !nrg_quantity_name(channel.quantity) ||
        !isfinite(channel.scale) || channel.scale <= 0 || channel.update_ns < 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    union nrg_wire_packet packet;
    if (size > sizeof packet)
        return 0;
    memset(&packet, 0xa5, sizeof packet);
    memcpy(&packet, data, size);
    int rc = nrg_wire_check(&packet, size, false);
    if (rc)
        return 0;
    if (size != nrg_wire_size(packet.head.type, false))
        abort();
    if (packet.head.type == NRG_WIRE_REFUSED &&
        strlen(packet.refused.text) >= sizeof packet.refused.text)
        abort();
    if (packet.head.type == NRG_WIRE_SENSOR && !nrg_wire_check_sensor(&packet.sensor))
        for (size_t c = 0; c < packet.sensor.n_channels; c++)
            check_channel(&packet.sensor.channels[c]);
    return 0;
}
