/* Fuzz target: sensor profiles (--sensor-profile). What is read must be usable as it is. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "sensors/sensor_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_sensor_profile p;
    struct nrg_error err;
    if (!nrg_sensor_profile_parse(&p, "fuzz.json", (const char *)data, size, &err) &&
        (p.update_ns <= 0 || p.window_ns <= 0 || p.lag_ns < 0))
        abort();
    return 0;
}
