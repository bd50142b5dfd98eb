/*
 * OmegaWatt boxes: binary frames over a serial line at 921600 baud, about a hundred a second.
 *
 *   0   FE FD FC FB
 *   4   u16  length
 *   6   u16  id
 *   8   u32  time that the sums are of, in 1/2^32 s
 *   12  u32  number of samples n
 *   16  3 x f32   sums of u*u: U = sqrt(sum / n)
 *   28  per module of six inputs: 6 x f32 sums of i*i, 6 x f32 sums of p: P = sum / n
 *   .   u8   exclusive or
 *
 * All little endian. The size follows from the number of inputs (nb=), so the length is a check
 * and nothing is read by it. What it counts, and where the exclusive or begins, is not told by the
 * descriptions that there are: every sensible reading of the length is taken, and of the three of
 * the checksum the one that frames agree on.
 *
 * A frame is only passed over when it was good: after a bad one the search goes on behind its
 * first byte, so that a mark inside of data hides nothing. Refused: wrong lengths and checksums,
 * no samples, sums that are not numbers or can't be.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sensors/drivers.h"
#include "sensors/meter/decoders.h"

#define MODULE_INPUTS 6
#define MOST_INPUTS                                                                                \
    30 /* what a meter's fields hold: three voltages, a power and a current each                   \
        */
#define HEAD_BYTES   28
#define MODULE_BYTES (MODULE_INPUTS * 8)
#define MOST_BYTES   (HEAD_BYTES + MOST_INPUTS / MODULE_INPUTS * MODULE_BYTES + 1)
#define PIECE        64 /* of garbage, told at once */
#define FORGET       8  /* bad frames in a row: perhaps we agreed on the wrong checksum */
#define ALL_SUMS     7

static const uint8_t mark[4] = {0xfe, 0xfd, 0xfc, 0xfb};

struct omegawatt {
    unsigned inputs;
    size_t frame; /* bytes */
    uint8_t bytes[4 * MOST_BYTES];
    size_t start, have;        /* unread bytes are start..have */
    size_t junk;               /* bytes before start that were passed over and not told yet */
    size_t told;               /* bytes from start on that were told already */
    unsigned sums, bad_frames; /* bit per reading of the checksum that may be right */
    bool synchronous;          /* a good frame was seen */
};

static int create(struct nrg_uri *uri, struct nrg_meter_field *fields, size_t *n_fields,
                  void **state, struct nrg_error *err)
{
    double nb = MODULE_INPUTS;
    int rc = nrg_uri_number(uri, "nb", 1, MOST_INPUTS, &nb, err);
    struct omegawatt *o = rc ? NULL : calloc(1, sizeof *o);
    if (!o)
        return rc ? rc : nrg_fail(err, -ENOMEM, uri->text, "out of memory");
    o->inputs = (unsigned)nb;
    unsigned modules = (o->inputs + MODULE_INPUTS - 1) / MODULE_INPUTS;
    o->frame = HEAD_BYTES + modules * (size_t)MODULE_BYTES + 1;
    o->sums = ALL_SUMS;
    size_t n = 0;
    for (unsigned i = 0; i < 3 + 2 * o->inputs; i++, n++) {
        bool voltage = i < 3, power = !voltage && (i - 3) % 2 == 0;
        fields[n] = (struct nrg_meter_field){.quantity = voltage ? NRG_VOLTAGE
                                                         : power ? NRG_POWER
                                                                 : NRG_CURRENT,
                                             .kind = NRG_GAUGE};
        snprintf(fields[n].name, sizeof fields[n].name, "%s%u",
                 voltage ? "voltage"
                 : power ? "power"
                         : "current",
                 voltage ? i + 1 : (i - 3) / 2 + 1);
    }
    *n_fields = n;
    *state = o;
    return 0;
}

static uint32_t u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static double f32(const uint8_t *p)
{
    uint32_t bits = u32(p);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* Counts the body, with or without the checksum, the length itself, and the mark. */
static bool length_fits(const struct omegawatt *o, const uint8_t *frame)
{
    size_t length = frame[4] | (size_t)frame[5] << 8, body = o->frame - 7;
    return length >= body && length <= o->frame;
}

/* Bits of the readings that the checksum agrees with: of the body, from the length, of all. */
static unsigned matching_sums(const struct omegawatt *o, const uint8_t *frame)
{
    uint8_t body = 0, length = frame[4] ^ frame[5];
    for (size_t i = 6; i < o->frame - 1; i++)
        body ^= frame[i];
    uint8_t sum = frame[o->frame - 1], marks = mark[0] ^ mark[1] ^ mark[2] ^ mark[3];
    return (sum == body ? 1u : 0) | (sum == (body ^ length) ? 2u : 0) |
           (sum == (body ^ length ^ marks) ? 4u : 0);
}

static bool checksum_fits(struct omegawatt *o, const uint8_t *frame)
{
    unsigned matching = matching_sums(o, frame);
    if (!(matching & o->sums)) {
        if (++o->bad_frames >= FORGET)
            o->sums = ALL_SUMS;
        return false;
    }
    o->sums &= matching;
    o->bad_frames = 0;
    return true;
}

static bool mean(const uint8_t *p, double n, bool square, double *out)
{
    double x = f32(p) / n;
    *out = square ? sqrt(x) : x;
    return isfinite(*out);
}

static const char *read_values(const struct omegawatt *o, const uint8_t *frame, double *values)
{
    double n = u32(frame + 12);
    bool good = true;
    size_t k = 0;
    if (!(n > 0))
        return "a frame of no samples";
    for (unsigned i = 0; i < 3; i++)
        good &= mean(frame + 16 + 4 * (size_t)i, n, true, &values[k++]);
    for (unsigned i = 0; i < o->inputs; i++) {
        const uint8_t *module = frame + HEAD_BYTES + i / MODULE_INPUTS * (size_t)MODULE_BYTES;
        const uint8_t *at = module + 4 * (size_t)(i % MODULE_INPUTS);
        good &= mean(at + 4 * (size_t)MODULE_INPUTS, n, false, &values[k++]);
        good &= mean(at, n, true, &values[k++]);
    }
    return good ? NULL : "sums that are no numbers";
}

static const char *judge(struct omegawatt *o, const uint8_t *frame, double *values)
{
    if (!checksum_fits(o, frame))
        return "wrong checksum";
    return read_values(o, frame, values);
}

static void tell(struct omegawatt *o, size_t n, const char *why, bool harmless,
                 struct nrg_meter_out *out)
{
    if (n && out->refused)
        out->refused(out, o->bytes + o->start - n, n, why, harmless);
}

static void tell_junk(struct omegawatt *o, struct nrg_meter_out *out)
{
    tell(o, o->junk, "no frame", !o->synchronous && o->junk < o->frame, out);
    o->junk = 0;
}

static void pass_byte(struct omegawatt *o, struct nrg_meter_out *out)
{
    o->start++;
    if (o->told)
        o->told--;
    else
        o->junk++;
    if (o->junk >= PIECE && (o->synchronous || o->junk >= o->frame))
        tell_junk(o, out);
}

static void emit(struct omegawatt *o, const uint8_t *frame, const double *values, int64_t sent_ns,
                 struct nrg_meter_out *out)
{
    const struct nrg_meter_reading reading = {
        .sent_ns = sent_ns,
        .average_ns = (int64_t)((uint64_t)u32(frame + 8) * 1000000000u >> 32),
        .values = values,
        .n_values = 3 + 2 * (size_t)o->inputs,
        .rssi_dbm = NAN,
    };
    o->synchronous = true;
    out->reading(out, &reading);
}

/* The next n bytes are no frame; what was told with one before it is not told again. */
static void refuse(struct omegawatt *o, size_t n, const char *why, struct nrg_meter_out *out)
{
    if (o->told < n) {
        if (out->refused)
            out->refused(out, o->bytes + o->start + o->told, n - o->told, why, false);
        o->told = n;
    }
    pass_byte(o, out);
}

/* One step; false when more bytes are needed. `later`: bytes that came after those in the buffer.
 */
static bool step(struct omegawatt *o, size_t later, int64_t end_ns, int64_t byte_ns,
                 struct nrg_meter_out *out)
{
    const uint8_t *at = o->bytes + o->start;
    size_t n = o->have - o->start;
    double values[3 + 2 * MOST_INPUTS];
    if (!n)
        return false;
    if (memcmp(at, mark, n < 4 ? n : 4)) {
        pass_byte(o, out);
        return true;
    }
    bool fits = n < 6 || length_fits(o, at);
    if (fits && n < o->frame)
        return false;
    tell_junk(o, out);
    const char *why = fits ? judge(o, at, values) : "a frame of another length: is nb= right?";
    if (why) {
        refuse(o, fits ? o->frame : 6, why, out);
        return true;
    }
    emit(o, at, values, end_ns - (int64_t)(n + later) * byte_ns, out);
    o->start += o->frame;
    o->told = 0;
    return true;
}

/* Room for more bytes; what was passed over is told before it is overwritten. */
static void make_room(struct omegawatt *o, struct nrg_meter_out *out)
{
    if (o->have < sizeof o->bytes)
        return;
    tell_junk(o, out);
    memmove(o->bytes, o->bytes + o->start, o->have - o->start);
    o->have -= o->start;
    o->start = 0;
}

static void feed(void *state, const uint8_t *bytes, size_t n, int64_t end_ns, int64_t byte_ns,
                 struct nrg_meter_out *out)
{
    struct omegawatt *o = state;
    while (n) {
        make_room(o, out);
        size_t room = sizeof o->bytes - o->have, take = n < room ? n : room;
        memcpy(o->bytes + o->have, bytes, take);
        o->have += take;
        bytes += take;
        n -= take;
        while (step(o, n, end_ns, byte_ns, out))
            ;
    }
}

static void reset(void *state)
{
    struct omegawatt *o = state;
    o->start = o->have = o->junk = o->told = 0;
    o->synchronous = false;
}

const struct nrg_meter_decoder nrg_decoder_omegawatt = {
    .create = create,
    .feed = feed,
    .reset = reset,
    .destroy = free,
};

const struct nrg_driver nrg_driver_omegawatt = {
    .name = "omegawatt",
    .summary = "OmegaWatt boxes on a serial line",
    .probe = nrg_meter_probe,
    NRG_METER_FUNCTIONS,
};
