/* See wire.h. */
#include "sensors/nrgd/wire.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/mem.h"

static_assert(sizeof(struct nrg_wire_hello) == 32, "HELLO is 32 bytes in all versions");
static_assert(sizeof(struct nrg_wire_welcome) == 48, "WELCOME is 48 bytes in all versions");
static_assert(sizeof(struct nrg_wire_refused) == 168, "REFUSED is 168 bytes in all versions");
static_assert(sizeof(struct nrg_wire_request) == 16, "docs/nrgd.md");
static_assert(sizeof(struct nrg_wire_channel) == 304, "docs/nrgd.md");
static_assert(sizeof(struct nrg_wire_sensor) == 104 + 32 * 304, "docs/nrgd.md");
static_assert(sizeof(struct nrg_wire_opened) == 16, "docs/nrgd.md");
static_assert(sizeof(struct nrg_wire_row) == 24 + 32 * 12 + 8, "docs/nrgd.md");

static const struct {
    size_t to_daemon, from_daemon;
} sizes[] = {
    [NRG_WIRE_HELLO] = {sizeof(struct nrg_wire_hello), 0},
    [NRG_WIRE_WELCOME] = {0, sizeof(struct nrg_wire_welcome)},
    [NRG_WIRE_SENSOR] = {sizeof(struct nrg_wire_request), sizeof(struct nrg_wire_sensor)},
    [NRG_WIRE_OPEN] = {sizeof(struct nrg_wire_request), 0},
    [NRG_WIRE_OPENED] = {0, sizeof(struct nrg_wire_opened)},
    [NRG_WIRE_READ] = {sizeof(struct nrg_wire_request), 0},
    [NRG_WIRE_ROW] = {0, sizeof(struct nrg_wire_row)},
    [NRG_WIRE_REFUSED] = {0, sizeof(struct nrg_wire_refused)},
};

bool nrg_wire_speaks(unsigned version)
{
    return version >= NRG_WIRE_OLDEST && version <= NRG_WIRE_VERSION;
}

size_t nrg_wire_size(unsigned version, unsigned type, bool to_daemon)
{
    if (type >= sizeof sizes / sizeof *sizes)
        return 0;
    if (version == 1 && type == NRG_WIRE_ROW && !to_daemon)
        return offsetof(struct nrg_wire_row, epoch);
    return to_daemon ? sizes[type].to_daemon : sizes[type].from_daemon;
}

size_t nrg_wire_begin(union nrg_wire_packet *packet, enum nrg_wire_type type, bool to_daemon)
{
    size_t size = nrg_wire_size(NRG_WIRE_VERSION, type, to_daemon);
    memset(packet, 0, size);
    packet->head = (struct nrg_wire_head){
        .magic = NRG_WIRE_MAGIC, .version = NRG_WIRE_VERSION, .type = (uint16_t)type};
    return size;
}

size_t nrg_wire_as(union nrg_wire_packet *packet, unsigned version, bool to_daemon)
{
    packet->head.version = (uint16_t)version;
    return nrg_wire_size(version, packet->head.type, to_daemon);
}

int nrg_wire_check(union nrg_wire_packet *packet, size_t n, bool to_daemon)
{
    if (n < sizeof packet->head || packet->head.magic != NRG_WIRE_MAGIC)
        return -EPROTO;
    unsigned type = packet->head.type;
    bool spoken = nrg_wire_speaks(packet->head.version);
    bool lasting = type == NRG_WIRE_HELLO || type == NRG_WIRE_WELCOME || type == NRG_WIRE_REFUSED;
    size_t size = nrg_wire_size(packet->head.version, type, to_daemon);
    if (!spoken && !lasting)
        return -EPROTONOSUPPORT;
    if (!size || n != size)
        return -EPROTO;
    if (type == NRG_WIRE_HELLO)
        packet->hello.program[sizeof packet->hello.program - 1] = '\0';
    if (type == NRG_WIRE_WELCOME)
        packet->welcome.program[sizeof packet->welcome.program - 1] = '\0';
    if (type == NRG_WIRE_REFUSED) {
        packet->refused.program[sizeof packet->refused.program - 1] = '\0';
        packet->refused.text[sizeof packet->refused.text - 1] = '\0';
    }
    if (type == NRG_WIRE_ROW && packet->head.version == 1)
        packet->row.epoch = 0;
    return spoken ? 0 : -EPROTONOSUPPORT;
}

void nrg_wire_put_channel(struct nrg_wire_channel *wire, const struct nrg_channel *channel)
{
    memset(wire, 0, sizeof *wire);
    nrg_copy(wire->name, sizeof wire->name, channel->name);
    nrg_copy(wire->parent, sizeof wire->parent, channel->parent);
    nrg_copy(wire->source, sizeof wire->source, channel->source);
    wire->quantity = (uint8_t)channel->quantity;
    wire->kind = (uint8_t)channel->kind;
    wire->provenance = (uint8_t)channel->provenance;
    wire->wide = channel->wide;
    wire->covers_cpu = channel->covers_cpu;
    wire->wrap = channel->wrap;
    wire->update_ns = channel->update_ns;
    wire->window_ns = channel->window_ns;
    wire->lag_ns = channel->lag_ns;
    wire->scale = channel->scale;
    wire->resolution = channel->resolution;
    wire->limit_w = channel->limit_w;
    wire->error_low = channel->error_low;
    wire->error_high = channel->error_high;
}

static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* A share or a size: finite and not negative. */
static bool is_amount(double value)
{
    return isfinite(value) && value >= 0;
}

static bool is_sane(const struct nrg_wire_channel *w)
{
    return is_text(w->name, sizeof w->name) && w->name[0] && is_text(w->parent, sizeof w->parent) &&
           is_text(w->source, sizeof w->source) && w->quantity < NRG_QUANTITIES &&
           w->kind <= NRG_GAUGE && w->provenance <= NRG_ESTIMATED && w->wide <= 1 &&
           w->covers_cpu <= 1 && w->wrap <= INT64_MAX && w->update_ns >= 0 && w->window_ns >= 0 &&
           w->lag_ns >= 0 && isfinite(w->scale) && w->scale > 0 && is_amount(w->resolution) &&
           is_amount(w->limit_w) && is_amount(w->error_low) && is_amount(w->error_high);
}

int nrg_wire_get_channel(const struct nrg_wire_channel *wire, struct nrg_channel *channel)
{
    if (!is_sane(wire))
        return -EPROTO;
    *channel = (struct nrg_channel){
        .quantity = wire->quantity,
        .kind = wire->kind,
        .provenance = wire->provenance,
        .wide = wire->wide,
        .covers_cpu = wire->covers_cpu,
        .wrap = wire->wrap,
        .update_ns = wire->update_ns,
        .window_ns = wire->window_ns,
        .lag_ns = wire->lag_ns,
        .scale = wire->scale,
        .resolution = wire->resolution,
        .limit_w = wire->limit_w,
        .error_low = wire->error_low,
        .error_high = wire->error_high,
    };
    nrg_copy_clean(channel->name, sizeof channel->name, wire->name, strlen(wire->name));
    nrg_copy_clean(channel->parent, sizeof channel->parent, wire->parent, strlen(wire->parent));
    nrg_copy_clean(channel->source, sizeof channel->source, wire->source, strlen(wire->source));
    return 0;
}

int nrg_wire_check_sensor(const struct nrg_wire_sensor *sensor)
{
    struct nrg_channel ignored;
    if (!is_text(sensor->name, sizeof sensor->name) || !sensor->name[0] ||
        !is_text(sensor->driver, sizeof sensor->driver) || sensor->how > NRG_HOW_COUNT ||
        !sensor->n_channels || sensor->n_channels > NRG_WIRE_CHANNELS)
        return -EPROTO;
    int rc = 0;
    for (size_t c = 0; !rc && c < sensor->n_channels; c++)
        rc = nrg_wire_get_channel(&sensor->channels[c], &ignored);
    return rc;
}
