/*
 * Lines of text out of a byte stream, with the moment at which each began to be sent. Shared by
 * the decoders of meters that print. A line ends with CR, LF or both; empty ones are skipped.
 *
 * The first line after a start or a reset may have lost its beginning: it has `partial` set. A line
 * that is too long, or has bytes that are not text, is refused in pieces of at most NRG_METER_LINE
 * bytes, so that a stream of garbage is noticed at once and never stored. A decoder that can tell
 * which values a bad byte spoils sets `mends`: it then gets lines with a few bad bytes, which are
 * replaced by NRG_METER_SPOILT.
 *
 * No allocation, no errors, one thread. Embed the struct as the first member of a decoder's state
 * and set on_line: then the three functions below are the decoder's.
 */
#ifndef NRG_SENSORS_METER_LINE_H
#define NRG_SENSORS_METER_LINE_H

#include "sensors/meter/driver.h"

#define NRG_METER_LINE   1024
#define NRG_METER_SPOILT '\x7f'

struct nrg_meter_line;
/* `state` begins with the struct nrg_meter_lines. */
typedef void nrg_meter_on_line(void *state, const struct nrg_meter_line *line,
                               struct nrg_meter_out *out);

struct nrg_meter_lines {
    nrg_meter_on_line *on_line;    /* set by the owner, as are the next three */
    bool any_byte;                 /* bytes above 127 are text too */
    bool mends;                    /* wants lines with a few bad bytes */
    bool from_start;               /* the first line of the stream is whole */
    char text[NRG_METER_LINE + 1]; /* the line so far */
    size_t len, spoilt;
    int64_t sent_ns; /* when its first byte was sent, at the latest */
    bool ended;      /* an end of line was seen before this line */
    bool bad;        /* the rest of this line is garbage */
};

struct nrg_meter_line {
    const char *text; /* NUL-terminated, no NUL inside, no end of line */
    size_t len;
    int64_t sent_ns;
    bool partial; /* its beginning may be missing */
};

/* As nrg_meter_decoder has them: bytes; the stream ended, what is left is a line; the stream was
 * interrupted, what is left is dropped and the next line may be partial. */
void nrg_meter_lines_feed(void *state, const uint8_t *bytes, size_t n, int64_t end_ns,
                          int64_t byte_ns, struct nrg_meter_out *out);
void nrg_meter_lines_end(void *state, int64_t end_ns, struct nrg_meter_out *out);
void nrg_meter_lines_reset(void *state);

/* For decoders: reports a line that is not a reading. */
void nrg_meter_refuse(struct nrg_meter_out *out, const struct nrg_meter_line *line, const char *why,
                      bool harmless);

#endif
