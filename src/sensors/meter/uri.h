/*
 * How a meter is named: one text for all of them.
 *
 *   emonpi:/dev/ttyAMA0?node=5&layout=power1,power2,power3,Vrms
 *   mqtt://user@host:1883/tele/plug/SENSOR?value=/ENERGY/Power&password-file=/etc/nrg/mqtt
 *   exec:my-meter --watts?pattern=%7Bpower%7D        (everything up to the last '?')
 *
 * scheme ':' place ['?' key=value {'&' key=value}]. Percent escapes are decoded in values, and in
 * places that begin with "//". Keys are asked for one by one; a key that nobody asked for is an
 * error, which lists the keys that are understood. Passwords and keys are no part of a URI, which
 * everybody sees in ps: they are refused, and no message shows them. Nothing is allocated: the text
 * is copied into the struct; what does not fit is refused, never cut. Errors are -EINVAL with a
 * reason; one thread per struct.
 */
#ifndef NRG_SENSORS_METER_URI_H
#define NRG_SENSORS_METER_URI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* The value of a hexadecimal digit; -1: it is none. */
int nrg_hex_digit(char c);
/* The next item of a list separated by commas, `*len` bytes; NULL at its end. Advances *list. */
const char *nrg_next_item(const char **list, size_t *len);

#define NRG_URI_TEXT 1024
#define NRG_URI_KEYS 24

struct nrg_uri {
    char text[NRG_URI_TEXT];  /* for messages: secrets are hidden */
    char given[NRG_URI_TEXT]; /* as it was given */
    char store[NRG_URI_TEXT];
    const char *scheme, *place; /* in store */
    struct {
        const char *key, *value; /* in store, decoded */
        bool asked;
    } query[NRG_URI_KEYS];
    unsigned n_query;
    char understood[256]; /* keys that were asked for, given or not */
};

/* 0, or -EINVAL with err naming the place of the fault in the text. */
int nrg_uri_parse(struct nrg_uri *uri, const char *text, struct nrg_error *err);
/* The same for "scheme:rest"; `rest` NULL: nothing. */
int nrg_uri_join(struct nrg_uri *uri, const char *scheme, const char *rest, struct nrg_error *err);

/* The value of a key, marked as asked for; NULL when it was not given. */
const char *nrg_uri_text(struct nrg_uri *uri, const char *key);

/* A key and the field of a struct that its value goes to. A field keeps what it has when the key
 * is not given. */
struct nrg_uri_key {
    const char *key;
    enum {
        NRG_URI_IS_NUMBER,   /* double, from least to most */
        NRG_URI_IS_COUNT,    /* int or unsigned, from least to most */
        NRG_URI_IS_DURATION, /* int64_t ns, "200ms" or "1s" */
        NRG_URI_IS_TEXT,     /* char[size] */
        NRG_URI_IS_WORD      /* bool: which of two words */
    } is;
    size_t offset, size;
    double least, most;
    const char *no, *yes;
};

/* clang-format off */
#define NRG_URI_KEY(name, kind, type, field, ...)                                                  \
    {.key = (name), .is = (kind), .offset = offsetof(type, field), __VA_ARGS__}
#define NRG_URI_NUMBER(name, type, field, from, to)                                                \
    NRG_URI_KEY(name, NRG_URI_IS_NUMBER, type, field, .least = (from), .most = (to))
#define NRG_URI_COUNT(name, type, field, from, to)                                                 \
    NRG_URI_KEY(name, NRG_URI_IS_COUNT, type, field, .least = (from), .most = (to))
#define NRG_URI_DURATION(name, type, field)                                                        \
    NRG_URI_KEY(name, NRG_URI_IS_DURATION, type, field, .size = sizeof(int64_t))
#define NRG_URI_COPY(name, type, field)                                                            \
    NRG_URI_KEY(name, NRG_URI_IS_TEXT, type, field, .size = sizeof((type *)0)->field)
#define NRG_URI_WORD(name, type, field, when_false, when_true)                                     \
    NRG_URI_KEY(name, NRG_URI_IS_WORD, type, field, .no = (when_false), .yes = (when_true))
/* clang-format on */

/* A part of the place, such as the user, into `to`. -EINVAL when it does not fit: what is cut is
 * another one. `what` is what messages call it. */
int nrg_uri_part(const struct nrg_uri *uri, const char *what, const char *part, size_t len,
                 char *to, size_t size, struct nrg_error *err);

/* Reads all keys of a table that ends with {0}. 0, or -EINVAL with err naming the key. */
int nrg_uri_read(struct nrg_uri *uri, const struct nrg_uri_key *keys, void *values,
                 struct nrg_error *err);
/* Fails when a key was given that nobody asked for. Call after asking for all keys. */
int nrg_uri_finish(const struct nrg_uri *uri, struct nrg_error *err);

#endif
