/* What calibration found, applied to readings: see meter.h. */
#include <errno.h>

#include "sensors/meter.h"

#define MOST_SCALE    1e6
#define MOST_OFFSET_W 1e6

int nrg_meter_adjust_read(struct nrg_meter_adjust *a, struct nrg_uri *uri, struct nrg_error *err)
{
    *a = (struct nrg_meter_adjust){.scale = 1};
    int rc = nrg_uri_number(uri, "scale", -MOST_SCALE, MOST_SCALE, &a->scale, err);
    if (!rc)
        rc = nrg_uri_number(uri, "offset", -MOST_OFFSET_W, MOST_OFFSET_W, &a->offset_w, err);
    if (!rc)
        rc = nrg_uri_duration(uri, "delay", &a->delay_ns, err);
    if (!rc && a->scale == 0)
        rc = nrg_fail(err, -EINVAL, uri->text, "scale=0 would make every value 0");
    return rc;
}

void nrg_meter_adjust_apply(const struct nrg_meter_adjust *a, const struct nrg_found *found,
                            const struct nrg_meter_reading *reading, double *to,
                            struct nrg_meter_reading *adjusted)
{
    *adjusted = *reading;
    adjusted->values = to;
    adjusted->sent_ns -= a->delay_ns;
    for (size_t i = 0; i < reading->n_values && i < found->n_channels; i++) {
        enum nrg_quantity quantity = found->channels[i].quantity;
        to[i] = reading->values[i];
        if (quantity == NRG_POWER || quantity == NRG_ENERGY)
            to[i] *= a->scale;
        if (quantity == NRG_POWER)
            to[i] += a->offset_w;
    }
}
