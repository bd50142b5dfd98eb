/*
 * Fuzz target: the decoder of lines, by columns and by pattern. The first byte chooses the keys of
 * the URI, the second how the rest is cut; any cut must give the same readings.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/meter/decoders.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const uris[] = {
    "exec:x",
    "exec:x?columns=time,power:mW,-,voltage,import:kWh",
    "file:x?columns=power,current:mA&separator=semicolon&comment=;",
    "exec:x?pattern=P={power} W|U={voltage}{}T={time}",
    "lines:x?columns=a:W,b:W,c:V&time=arrival",
    "exec:x?columns=time,power",
};

struct tally {
    struct nrg_meter_out out; /* first: callbacks cast back */
    size_t readings, refused;
    double sum;
};

static void on_reading(struct nrg_meter_out *out, const struct nrg_meter_reading *reading)
{
    struct tally *t = (struct tally *)out;
    bool any = false;
    if (reading->n_values > NRG_METER_FIELDS)
        abort();
    for (size_t i = 0; i < reading->n_values; i++) {
        if (isinf(reading->values[i]))
            abort();
        any |= !isnan(reading->values[i]);
        t->sum += isnan(reading->values[i]) ? 1 : reading->values[i];
    }
    if (!any)
        abort();
    t->readings++;
}

static void on_refused(struct nrg_meter_out *out, const void *bytes, size_t n, const char *why,
                       bool harmless)
{
    (void)bytes;
    (void)harmless;
    if (n > 1024 || !why[0])
        abort();
    ((struct tally *)out)->refused++;
}

static struct tally decode(const char *text, const uint8_t *data, size_t size, size_t cut)
{
    struct tally t = {.out = {.reading = on_reading, .refused = on_refused}};
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    struct nrg_uri uri;
    struct nrg_error err;
    size_t n_fields;
    void *state;
    if (nrg_uri_parse(&uri, text, &err) ||
        nrg_meter_decoder_new(&nrg_decoder_text, &uri, fields, &n_fields, &state, &err))
        abort();
    for (size_t at = 0; at < size; at += cut) {
        size_t n = size - at < cut ? size - at : cut;
        uint8_t *piece = malloc(n);
        if (!piece)
            break;
        memcpy(piece, data + at, n);
        nrg_decoder_text.feed(state, piece, n, 1000000, 0, &t.out);
        free(piece);
    }
    nrg_decoder_text.end(state, 1000000, &t.out);
    free(state);
    return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const char *uri = uris[data[0] % (sizeof uris / sizeof *uris)];
    struct tally whole = decode(uri, data + 2, size - 2, size),
                 cut = decode(uri, data + 2, size - 2, (size_t)data[1] % 40 + 1);
    /* Dates depend on when the clocks were compared; all else is the same. */
    if (!strstr(uri, "time,") && !strstr(uri, "{time}") &&
        (whole.readings != cut.readings || whole.refused != cut.refused || whole.sum != cut.sum))
        abort();
    return 0;
}
