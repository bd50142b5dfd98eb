/*
 * Patterns for lines of any meter, small on purpose: no regular expressions, whose run time a
 * stranger's line could make explode. Matching takes at most (bytes of the line) x (bytes of the
 * pattern) steps.
 *
 *   P={power} W              a number, in the unit that the name tells
 *   {load:mW} of {}          unit given; {} is any text, as short as possible
 *   ^{time}, {power}         at the beginning of the line; the time of the reading
 *   P={power}|U={voltage}    one line or the other
 *
 * Blanks match any number of blanks, also none. Any text may stand before and after the match.
 * "{{" is a brace, "{|}" a bar. Compiled once, embedded, nothing allocated.
 */
#ifndef NRG_SENSORS_METER_TEXT_PATTERN_H
#define NRG_SENSORS_METER_TEXT_PATTERN_H

#include "sensors/meter/driver.h"

#define NRG_PATTERN_PIECES 96
#define NRG_PATTERN_TEXT   512

enum nrg_piece_kind {
    NRG_PIECE_TEXT,
    NRG_PIECE_BLANK,
    NRG_PIECE_NUMBER,
    NRG_PIECE_TIME,
    NRG_PIECE_ANY,
    NRG_PIECE_BEGIN, /* beginning of the line */
    NRG_PIECE_OR
};

struct nrg_piece {
    enum nrg_piece_kind kind;
    unsigned short at, len; /* NRG_PIECE_TEXT: in text */
    unsigned short field;   /* NRG_PIECE_NUMBER */
};

struct nrg_pattern {
    char text[NRG_PATTERN_TEXT];
    struct nrg_piece pieces[NRG_PATTERN_PIECES];
    size_t n_text, n_pieces;
    double factors[NRG_METER_FIELDS];
    bool has_time;
};

/* The same name twice is one field. 0, or -EINVAL with err naming the place in the pattern. */
int nrg_pattern_compile(struct nrg_pattern *pattern, const char *text,
                        struct nrg_meter_field *fields, size_t *n_fields, struct nrg_error *err);

struct nrg_pattern_match {
    double *values;   /* n_fields, NAN where the line has none; SI units */
    const char *time; /* text of the time, NULL: none */
    size_t time_len;
};

/* True when the line has at least one value. */
bool nrg_pattern_match(const struct nrg_pattern *pattern, const char *line, size_t len,
                       size_t n_fields, struct nrg_pattern_match *match);

#endif
