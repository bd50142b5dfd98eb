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
 * All little endian. The size follows from the number of inputs (nb=), so the length is only a
 * check. The available descriptions do not say what it counts, nor where the exclusive or begins.
 * So every sensible meaning of the length is accepted, and of the three possible checksums the one
 * that the frames agree on.
 *
 * Only a good frame is skipped as a whole: after a bad one the search goes on at its second byte,
 * so that a mark inside the data hides no frame. Refused: wrong lengths and checksums, frames
 * without samples, sums that are not numbers.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sensors/drivers.h"
#include "sensors/meter/decoders.h"
#include "sensors/waveform/format.h"

#define MODULE_INPUTS 6
#define MOST_INPUTS   30 /* three voltages, and a power and a current each, fit a meter's fields */
#define HEAD_BYTES    28
#define MODULE_BYTES  (MODULE_INPUTS * 8)
#define MOST_BYTES    (HEAD_BYTES + MOST_INPUTS / MODULE_INPUTS * MODULE_BYTES + 1)
#define PIECE         64 /* bytes of garbage that are reported at once */
#define FORGET        8  /* bad frames in a row: perhaps we agreed on the wrong checksum */
#define ALL_SUMS      7

static const uint8_t mark[4] = {0xfe, 0xfd, 0xfc, 0xfb};
static const struct nrg_sample_type u32le = {.bytes = 4, .bits = 32},
                                    f32le = {.bytes = 4, .bits = 32, .is_float = true};

struct omegawatt {
    unsigned inputs;
    size_t frame; /* bytes */
    uint8_t bytes[4 * MOST_BYTES];
    size_t start, have;        /* unread bytes are start..have */
    size_t junk;               /* bytes before start that were skipped and not reported yet */
    size_t told;               /* bytes from start on that were reported already */
    unsigned sums, bad_frames; /* sums: a bit per meaning of the checksum that may be right */
    bool synchronous;          /* a good frame was seen */
};

static int init_omegawatt(void *state, struct nrg_uri *uri, struct nrg_meter_field *fields,
                          size_t *n_fields, struct nrg_error *err)
{
    static const struct {
        const char *name;
        enum nrg_quantity quantity;
    } kinds[] = {{"voltage", NRG_VOLTAGE}, {"power", NRG_POWER}, {"current", NRG_CURRENT}};
    static const struct nrg_uri_key keys[] = {
        NRG_URI_COUNT("nb", struct omegawatt, inputs, 1, MOST_INPUTS), {0}};
    struct omegawatt *o = state;
    o->inputs = MODULE_INPUTS;
    int rc = nrg_uri_read(uri, keys, o, err);
    if (rc)
        return rc;
    unsigned modules = (o->inputs + MODULE_INPUTS - 1) / MODULE_INPUTS;
    o->frame = HEAD_BYTES + modules * (size_t)MODULE_BYTES + 1;
    o->sums = ALL_SUMS;
    *n_fields = 3 + 2 * (size_t)o->inputs;
    for (unsigned i = 0; i < *n_fields; i++) {
        unsigned kind = i < 3 ? 0 : 1 + (i - 3) % 2, number = i < 3 ? i : (i - 3) / 2;
        fields[i] = (struct nrg_meter_field){.quantity = kinds[kind].quantity, .kind = NRG_GAUGE};
        snprintf(fields[i].name, sizeof fields[i].name, "%s%u", kinds[kind].name, number + 1);
    }
    return 0;
}

/* The length may count the body alone, or also the checksum, itself and the mark. */
static bool length_fits(const struct omegawatt *o, const uint8_t *frame)
{
    size_t length = frame[4] | (size_t)frame[5] << 8, body = o->frame - 7;
    return length >= body && length <= o->frame;
}

/* A bit per meaning that the checksum agrees with: of the body, from the length on, of all. */
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

static bool read_mean(const uint8_t *p, double n, bool square, double *out)
{
    double x = nrg_sample_value(&f32le, p) / n;
    *out = square ? sqrt(x) : x;
    return isfinite(*out);
}

static const char *read_values(const struct omegawatt *o, const uint8_t *frame, double *values)
{
    double n = nrg_sample_value(&u32le, frame + 12);
    bool good = true;
    size_t k = 0;
    if (!(n > 0))
        return "a frame of no samples";
    for (unsigned i = 0; i < 3; i++)
        good &= read_mean(frame + 16 + 4 * (size_t)i, n, true, &values[k++]);
    for (unsigned i = 0; i < o->inputs; i++) {
        const uint8_t *module = frame + HEAD_BYTES + i / MODULE_INPUTS * (size_t)MODULE_BYTES;
        const uint8_t *at = module + 4 * (size_t)(i % MODULE_INPUTS);
        good &= read_mean(at + 4 * (size_t)MODULE_INPUTS, n, false, &values[k++]);
        good &= read_mean(at, n, true, &values[k++]);
    }
    return good ? NULL : "sums that are not numbers";
}

static void report_junk(struct omegawatt *o, struct nrg_meter_out *out)
{
    if (o->junk && out->refused)
        out->refused(out, o->bytes + o->start - o->junk, o->junk, "no frame",
                     !o->synchronous && o->junk < o->frame);
    o->junk = 0;
}

static void skip_byte(struct omegawatt *o, struct nrg_meter_out *out)
{
    o->start++;
    if (o->told)
        o->told--;
    else
        o->junk++;
    if (o->junk >= PIECE && (o->synchronous || o->junk >= o->frame))
        report_junk(o, out);
}

static void emit_reading(struct omegawatt *o, const uint8_t *frame, const double *values,
                         int64_t sent_ns, struct nrg_meter_out *out)
{
    const struct nrg_meter_reading reading = {
        .sent_ns = sent_ns,
        .average_ns = (int64_t)((uint64_t)nrg_sample_value(&u32le, frame + 8) * 1000000000u >> 32),
        .values = values,
        .n_values = 3 + 2 * (size_t)o->inputs,
        .rssi_dbm = NAN,
    };
    o->synchronous = true;
    out->reading(out, &reading);
}

/* Refuses the next n bytes, except those that were refused with an earlier frame. */
static void refuse_frame(struct omegawatt *o, size_t n, const char *why, struct nrg_meter_out *out)
{
    if (o->told < n) {
        if (out->refused)
            out->refused(out, o->bytes + o->start + o->told, n - o->told, why, false);
        o->told = n;
    }
    skip_byte(o, out);
}

/* One step of the search; false: more bytes are needed. `later`: bytes that came after those in
 * the buffer. */
static bool search_frame(struct omegawatt *o, size_t later, int64_t end_ns, int64_t byte_ns,
                         struct nrg_meter_out *out)
{
    const uint8_t *at = o->bytes + o->start;
    size_t n = o->have - o->start;
    double values[3 + 2 * MOST_INPUTS];
    if (!n)
        return false;
    if (memcmp(at, mark, n < 4 ? n : 4)) {
        skip_byte(o, out);
        return true;
    }
    bool fits = n < 6 || length_fits(o, at);
    if (fits && n < o->frame)
        return false;
    report_junk(o, out);
    const char *why = !fits                   ? "a frame of another length: is nb= right?"
                      : !checksum_fits(o, at) ? "wrong checksum"
                                              : read_values(o, at, values);
    if (why) {
        refuse_frame(o, fits ? o->frame : 6, why, out);
        return true;
    }
    emit_reading(o, at, values, end_ns - (int64_t)(n + later) * byte_ns, out);
    o->start += o->frame;
    o->told = 0;
    return true;
}

/* Makes room for more bytes; skipped ones are reported before they are overwritten. */
static void make_room(struct omegawatt *o, struct nrg_meter_out *out)
{
    if (o->have < sizeof o->bytes)
        return;
    report_junk(o, out);
    memmove(o->bytes, o->bytes + o->start, o->have - o->start);
    o->have -= o->start;
    o->start = 0;
}

static void feed_omegawatt(void *state, const uint8_t *bytes, size_t n, int64_t end_ns,
                           int64_t byte_ns, struct nrg_meter_out *out)
{
    struct omegawatt *o = state;
    while (n) {
        make_room(o, out);
        size_t room = sizeof o->bytes - o->have, take = n < room ? n : room;
        memcpy(o->bytes + o->have, bytes, take);
        o->have += take;
        bytes += take;
        n -= take;
        while (search_frame(o, n, end_ns, byte_ns, out))
            ;
    }
}

static void reset_omegawatt(void *state)
{
    struct omegawatt *o = state;
    o->start = o->have = o->junk = o->told = 0;
    o->synchronous = false;
}

const struct nrg_meter_decoder nrg_decoder_omegawatt = {
    .state_size = sizeof(struct omegawatt),
    .init = init_omegawatt,
    .feed = feed_omegawatt,
    .reset = reset_omegawatt,
};

const struct nrg_driver nrg_driver_omegawatt =
    NRG_METER_DRIVER("omegawatt", "OmegaWatt boxes on a serial line", nrg_meter_probe);
