/*
 * For fuzz targets of decoders: the first line of the input is a URI, the rest a stream, which is
 * fed whole and in pieces; both must give the same readings, and only finite or missing values.
 */
#ifndef NRG_TESTS_FUZZ_METER_H
#define NRG_TESTS_FUZZ_METER_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/meter/decoders.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_seen {
    struct nrg_meter_out out; /* first: callbacks cast back */
    size_t n_fields, readings, refused_bytes;
    double sum;
};

static inline void fuzz_reading(struct nrg_meter_out *out, const struct nrg_meter_reading *r)
{
    struct fuzz_seen *seen = (struct fuzz_seen *)out;
    if (r->n_values != seen->n_fields)
        abort();
    for (size_t i = 0; i < r->n_values; i++) {
        if (isinf(r->values[i]))
            abort();
        seen->sum += isnan(r->values[i]) ? 0 : fmod(r->values[i], 1e6);
    }
    seen->readings++;
}

static inline void fuzz_refused(struct nrg_meter_out *out, const void *bytes, size_t n,
                                const char *why, bool harmless)
{
    struct fuzz_seen *seen = (struct fuzz_seen *)out;
    volatile uint8_t touched = 0;
    for (size_t i = 0; i < n; i++)
        touched = (uint8_t)(touched + ((const uint8_t *)bytes)[i]);
    if (!why || !n)
        abort();
    (void)harmless;
    seen->refused_bytes += n;
}

static inline int fuzz_feed(const struct nrg_meter_decoder *decoder, const char *text,
                            const uint8_t *bytes, size_t n, size_t piece, struct fuzz_seen *seen)
{
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    struct nrg_error err;
    struct nrg_uri uri;
    void *state = NULL;
    *seen = (struct fuzz_seen){.out = {.reading = fuzz_reading, .refused = fuzz_refused}};
    if (nrg_uri_parse(&uri, text, &err) ||
        nrg_meter_decoder_new(decoder, &uri, fields, &seen->n_fields, &state, &err))
        return -1;
    if (!seen->n_fields || seen->n_fields > NRG_METER_FIELDS)
        abort();
    for (size_t at = 0; at < n; at += piece)
        decoder->feed(state, bytes + at, n - at < piece ? n - at : piece, (int64_t)at + 1, 1,
                      &seen->out);
    if (decoder->end)
        decoder->end(state, (int64_t)n + 1, &seen->out);
    decoder->reset(state);
    free(state);
    return 0;
}

static inline int fuzz_decoder(const struct nrg_meter_decoder *decoder, const uint8_t *data,
                               size_t size)
{
    char text[NRG_URI_TEXT];
    struct fuzz_seen whole, cut;
    const uint8_t *line = memchr(data, '\n', size);
    if (!line || (size_t)(line - data) >= sizeof text)
        return 0;
    memcpy(text, data, (size_t)(line - data));
    text[line - data] = '\0';
    size_t n = size - (size_t)(line + 1 - data);
    if (fuzz_feed(decoder, text, line + 1, n, n + 1, &whole) ||
        fuzz_feed(decoder, text, line + 1, n, 1 + size % 7, &cut))
        return 0;
    if (whole.readings != cut.readings || whole.refused_bytes != cut.refused_bytes ||
        whole.refused_bytes > n || fabs(whole.sum - cut.sum) > 1e-6 * fabs(whole.sum))
        abort();
    return 0;
}

#endif
