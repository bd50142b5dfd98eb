/*
 * Private to base: the character level of json/stream.h (json/chars.c), that is its buffer, texts,
 * words, and what is skipped. Functions work on the caller's stream; those that return bool return
 * false where the file ends too early. One thread at a time.
 */
#ifndef NRG_BASE_INTERNAL_H
#define NRG_BASE_INTERNAL_H

#include "base/json/stream.h"

#define NRG_JSON_BUFFER 131072

/* Makes sure that `want` bytes are in the buffer, if the file has them. How many there are. */
size_t nrg_json_fill(struct nrg_json_stream *s, size_t want);

/* The next byte, -1 at the end. It stays. */
static inline int nrg_json_peek(struct nrg_json_stream *s)
{
    if (s->at < s->end || nrg_json_fill(s, 1))
        return (unsigned char)s->buffer[s->at];
    return -1;
}

void nrg_json_skip_mark(struct nrg_json_stream *s); /* the byte order mark of some editors */
/* After the opening quote, up to the closing one. False: the file ends before. */
bool nrg_json_read_text(struct nrg_json_stream *s);
/* A number or a name without quotes. */
void nrg_json_read_word(struct nrg_json_stream *s);
/* After an opening bracket, up to the one that closes it. False: the file ends before. */
bool nrg_json_skip_brackets(struct nrg_json_stream *s);

#endif
