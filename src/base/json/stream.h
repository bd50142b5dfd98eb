/*
 * JSON from a stream, token by token: for files of hundreds of MB of which no more than one token
 * is ever in memory. The file is not trusted: depth and the length of texts are limited (longer
 * texts are cut, and `cut` is set), and errors say at which byte they are.
 *
 * Skipped values are only checked for quotes and brackets, which makes skipping fast.
 *
 * Two deviations from JSON, for programs that write them (flags below); NaN and Infinity are
 * numbers always, as Python writes them.
 *
 * Embedded: init, release. The FILE stays the caller's. Not thread-safe.
 */
#ifndef NRG_BASE_JSON_STREAM_H
#define NRG_BASE_JSON_STREAM_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define NRG_JSON_DEPTH    64    /* of values that are read; skipped ones may be any */
#define NRG_JSON_TEXT_MAX 65536 /* bytes of a text */

enum nrg_json_token {
    NRG_JSON_END, /* of the document */
    NRG_JSON_OBJECT,
    NRG_JSON_OBJECT_END,
    NRG_JSON_ARRAY,
    NRG_JSON_ARRAY_END,
    NRG_JSON_KEY,
    NRG_JSON_STRING,
    NRG_JSON_NUMBER,
    NRG_JSON_TRUE,
    NRG_JSON_FALSE,
    NRG_JSON_NULL
};

enum {
    /*
     * Texts are not escaped: backslashes are themselves, and a quote ends a text only when what
     * follows could follow a text (':', ',' and then a quote or bracket, a closing bracket).
     */
    NRG_JSON_RAW_TEXTS = 1,
    /* The file may be cut off, and a comma may stand before a closing bracket: `truncated` is set
     * and the document ends there. */
    NRG_JSON_MAY_BE_CUT = 2
};

struct nrg_json_stream {
    FILE *in;
    const char *name; /* for errors */
    unsigned flags;
    bool truncated;
    /* the current token: text of keys and strings (decoded), and of numbers (as it stands) */
    char *text; /* NUL-terminated */
    size_t len;
    bool cut; /* the text was longer */
    /* private */
    char *buffer;
    size_t at, end;
    uint64_t before_bytes; /* of the file, before the buffer */
    bool at_end;
    int error; /* of reading */
    unsigned depth;
    uint8_t is_object[NRG_JSON_DEPTH];
    enum { NRG_JSON_S_VALUE, NRG_JSON_S_FIRST, NRG_JSON_S_AFTER, NRG_JSON_S_MEMBER } state;
    bool started;
};

int nrg_json_init(struct nrg_json_stream *s, FILE *in, const char *name, unsigned flags);
void nrg_json_release(struct nrg_json_stream *s);

/* The next token, or -errno. After the end of the document: NRG_JSON_END again. */
int nrg_json_next(struct nrg_json_stream *s, struct nrg_error *err);
/* Skips the value that follows (after a key, or an item), or the rest of the object or array that
 * was just opened when that was the last token. */
int nrg_json_skip_value(struct nrg_json_stream *s, struct nrg_error *err);
int nrg_json_skip_rest(struct nrg_json_stream *s, struct nrg_error *err);

bool nrg_json_is(const struct nrg_json_stream *s, const char *text);
/* The current token as a number. 0, -EINVAL, -ERANGE; a double may be infinite or NAN. */
int nrg_json_double(const struct nrg_json_stream *s, double *value);
/* value * 10^power as an integer, exactly (base/parse.h). */
int nrg_json_scaled(const struct nrg_json_stream *s, int power, int64_t *value);

uint64_t nrg_json_position(const struct nrg_json_stream *s); /* bytes so far */
/* -EINVAL with the position in `err`; format and values follow. */
#define nrg_json_fail(s, err, ...)                                                                 \
    nrg_fail_at(err, -EINVAL, (s)->name, (long long)nrg_json_position(s), __VA_ARGS__)

#endif
