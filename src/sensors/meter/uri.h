/*
 * How a meter is named: one text for all of them.
 *
 *   emonpi:/dev/ttyAMA0?node=5&layout=power1,power2,power3,Vrms
 *   mqtt://user@host:1883/tele/plug/SENSOR?value=/ENERGY/Power&password-file=/etc/nrg/mqtt
 *   exec:my-meter --watts?pattern=%7Bpower%7D        (everything up to the last '?')
 *
 * scheme ':' place ['?' key=value {'&' key=value}]. Percent escapes are decoded in values, and in
 * places of schemes that begin with "//". Keys are asked for one by one; what nobody asked for is
 * an error that lists the keys that would have been understood. Nothing is allocated: the text is
 * copied into the struct, bounded.
 */
#ifndef NRG_SENSORS_METER_URI_H
#define NRG_SENSORS_METER_URI_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define NRG_URI_TEXT 1024
#define NRG_URI_KEYS 24

struct nrg_uri {
    char text[NRG_URI_TEXT]; /* as given, for messages */
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

/* The value of a key, marked as asked for; NULL when it was not given. */
const char *nrg_uri_text(struct nrg_uri *uri, const char *key);
/* Numbers and durations ("200ms", "1s"); `value` keeps its default when the key is not given. */
int nrg_uri_number(struct nrg_uri *uri, const char *key, double least, double most, double *value,
                   struct nrg_error *err);
int nrg_uri_duration(struct nrg_uri *uri, const char *key, int64_t *value_ns,
                     struct nrg_error *err);
/* Fails when a key was given that nobody asked for. Call when all have been. */
int nrg_uri_finish(const struct nrg_uri *uri, struct nrg_error *err);

#endif
