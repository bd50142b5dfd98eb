/*
 * Lines of text out of a byte stream, with the moment at which each began to be sent. Shared by
 * the decoders of meters that print. A line ends with CR, LF or both; empty ones are skipped.
 *
 * The first line after a start or a reset may have lost its beginning: it comes with `partial`
 * set until an end of line has been seen. A line that is too long, or has bytes that no text has,
 * is refused in pieces of at most NRG_METER_LINE bytes, so that a stream of garbage is noticed
 * while it comes and never stored. A decoder that can tell which values a bad byte spoils sets
 * `mends`: lines with few of them then come with NRG_METER_SPOILT in their place.
 * No allocation; embed the struct, zero it to begin.
 */
#ifndef NRG_SENSORS_METER_LINE_H
#define NRG_SENSORS_METER_LINE_H

#include "sensors/meter/driver.h"

#define NRG_METER_LINE   1024
#define NRG_METER_SPOILT '\x7f'

struct nrg_meter_lines {
    char text[NRG_METER_LINE + 1]; /* the line so far */
    size_t len, spoilt;
    int64_t sent_ns; /* when its first byte was sent, at the latest */
    bool whole;      /* an end of line was seen before this one */
    bool bad;        /* what is left of this line is garbage */
    bool any_byte;   /* set by the owner: bytes above 127 are text too */
    bool mends;      /* set by the owner: wants lines with a few bad bytes */
};

struct nrg_meter_line {
    const char *text; /* NUL-terminated, no NUL inside, no end of line */
    size_t len;
    int64_t sent_ns;
    bool partial; /* its beginning may be missing */
};

typedef void nrg_meter_on_line(void *arg, const struct nrg_meter_line *line,
                               struct nrg_meter_out *out);

/* Arguments as nrg_meter_decoder.feed. */
void nrg_meter_lines_feed(struct nrg_meter_lines *lines, const uint8_t *bytes, size_t n,
                          int64_t end_ns, int64_t byte_ns, nrg_meter_on_line *on_line, void *arg,
                          struct nrg_meter_out *out);
/* The stream ended: what is left is a line. */
void nrg_meter_lines_end(struct nrg_meter_lines *lines, nrg_meter_on_line *on_line, void *arg,
                         struct nrg_meter_out *out);
/* The stream was interrupted: what is left is dropped, the next line may be partial. */
void nrg_meter_lines_reset(struct nrg_meter_lines *lines);

/* For decoders: a line that is no reading. */
void nrg_meter_refuse(struct nrg_meter_out *out, const struct nrg_meter_line *line, const char *why,
                      bool harmless);

#endif
