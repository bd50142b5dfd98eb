/*
 * Fuzz target: nrg's side of nrgd's protocol. The input is one packet as it came from a daemon that
 * may lie. What passes the checks must be terminated texts and numbers that can be used. A ROW's
 * numbers are also taken as a series, of epochs and counts in turn: what is written of it must fall
 * where an epoch begins, and keep the differences within one.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/sampler/epochs.h"
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

static void check_written(bool anew, int64_t last_raw, int64_t raw, int64_t last, int64_t now)
{
    int64_t step, written;
    if (now == NRG_MISSING || last == NRG_MISSING)
        return;
    if (raw == NRG_MISSING || (anew && now >= last))
        abort();
    if (!anew && (__builtin_sub_overflow(raw, last_raw, &step) !=
                      __builtin_sub_overflow(now, last, &written) ||
                  written != step))
        abort();
}

static void check_epochs(const struct nrg_wire_row *row)
{
    struct nrg_channel counter = {.kind = NRG_COUNTER};
    struct nrg_found found = {.channels = &counter, .n_channels = 1};
    struct nrg_epochs epochs;
    int64_t last_raw = NRG_MISSING, last = NRG_MISSING;
    bool anew = false;
    if (nrg_epochs_init(&epochs, &found))
        abort();
    nrg_epochs_set(&epochs, row->epoch);
    for (size_t i = 0; i + 1 < NRG_WIRE_CHANNELS; i += 2) {
        int64_t raw = row->raw[i + 1];
        if (row->error[i] & 1)
            anew |= nrg_epochs_set(&epochs, row->raw[i]);
        int64_t now = nrg_epochs_row(&epochs, 0, &raw)[0];
        check_written(anew, last_raw, raw, last, now);
        if (now == NRG_MISSING)
            continue;
        anew = false;
        last_raw = raw;
        last = now;
    }
    nrg_epochs_release(&epochs);
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
    if (size != nrg_wire_size(packet.head.version, packet.head.type, false))
        abort();
    if (packet.head.type == NRG_WIRE_REFUSED &&
        strlen(packet.refused.text) >= sizeof packet.refused.text)
        abort();
    if (packet.head.type == NRG_WIRE_SENSOR && !nrg_wire_check_sensor(&packet.sensor))
        for (size_t c = 0; c < packet.sensor.n_channels; c++)
            check_channel(&packet.sensor.channels[c]);
    if (packet.head.type == NRG_WIRE_ROW)
        check_epochs(&packet.row);
    return 0;
}
