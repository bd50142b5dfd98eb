/*
 * Fuzz target: layouts. Whatever parses unpacks from a packet of exactly its size (so that reading
 * beyond is seen), and gives finite values or none.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/meter/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_layout layout;
    struct nrg_meter_field fields[NRG_METER_FIELDS];
    struct nrg_error err;
    double values[NRG_METER_FIELDS];
    size_t n_fields = 0;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (!nrg_layout_parse(&layout, text, &err) &&
        !nrg_layout_fields(&layout, "node5.", true, fields, &n_fields)) {
        uint8_t *packet = malloc(layout.bytes);
        if (packet) {
            memset(packet, size ? data[0] : 0x7f, layout.bytes);
            nrg_layout_unpack(&layout, packet, values);
            for (size_t i = 0; i < n_fields; i++)
                if (isinf(values[i]) || fields[i].resolution < 0 || !fields[i].name[0])
                    abort();
        }
        free(packet);
    }
    free(text);
    return 0;
}
