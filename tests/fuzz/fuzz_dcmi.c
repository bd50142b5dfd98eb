/*
 * Fuzz target: a management controller's answer to Get Power Reading. What passes is a power that a
 * machine can draw, in the bytes that say so.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sensors/dcmi/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_dcmi_power power;
    uint8_t *exact = malloc(size ? size : 1); /* a byte too far is noticed */
    if (!exact)
        return 0;
    memcpy(exact, data, size);
    int rc = nrg_dcmi_decode(exact, size, &power);
    free(exact);
    if (rc > 0 || (!rc && (size < 19 || data[0] || power.current_w < 1 || power.current_w > 65534)))
        abort();
    if (!rc && nrg_dcmi_update_ns(&power) < 0)
        abort();
    return 0;
}
