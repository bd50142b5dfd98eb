/*
 * Fuzz target: names of sample types, as the kernel's sysfs and users write them. What is accepted
 * must stay within its frame, and every value within its bits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/waveform/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct nrg_sample_frame *frame, const uint8_t *bytes)
{
    for (unsigned i = 0; i < frame->n; i++) {
        const struct nrg_sample_type *type = &frame->of[i].type;
        if (frame->of[i].offset + type->bytes > frame->bytes || frame->bytes > NRG_FRAME_BYTES)
            abort();
        double value = nrg_sample_value(type, bytes + frame->of[i].offset);
        if (!type->is_float && fabs(value) > ldexp(1, type->bits))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[NRG_FRAME_BYTES];
    struct nrg_sample_frame frame;
    char text[512];
    size_t len = size < sizeof text - 1 ? size : sizeof text - 1;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = size ? (uint8_t)(data[i % size] * (i + 1)) : 0xff;
    memcpy(text, data, len);
    text[len] = '\0';
    if (!nrg_sample_frame_parse(&frame, text, 1 + size % 9, NULL))
        check(&frame, bytes);
    return 0;
}
