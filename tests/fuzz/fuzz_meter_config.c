/* Fuzz target: nrg.conf, and the URIs that its layouts are put into. */
#include <stddef.h>
#include <stdint.h>

#include "sensors/meter/config.h"
#include "sensors/meter/decoders.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct nrg_meter_config config = {0};
    struct nrg_error err;
    nrg_meter_config_parse(&config, "fuzz.conf", (const char *)data, size, &err);
    for (size_t i = 0; i < config.n_meters; i++) {
        struct nrg_uri uri;
        if (!nrg_uri_parse(&uri, config.meters[i].text, &err))
            nrg_meter_expand(&uri, &config, &err);
    }
    nrg_meter_config_release(&config);
    return 0;
}
