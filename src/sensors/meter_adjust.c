/* What calibration found, applied to readings: see meter.h. */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "sensors/meter/driver.h"

#define MOST_SCALE    1e6
#define MOST_OFFSET_W 1e6

/* "-200ms" too: a meter whose clock is ahead. That of raw samples is between its own channels. */
static int read_delay(struct nrg_uri *uri, int64_t *delay_ns, struct nrg_error *err)
{
    if (!strncmp(uri->scheme, "waveform", 8))
        return 0;
    const char *text = nrg_uri_text(uri, "delay");
    bool ahead = text && *text == '-';
    if (text && nrg_parse_duration_ns(text + ahead, delay_ns))
        return nrg_fail(err, -EINVAL, uri->text,
                        "delay= wants a duration such as 200ms or -1.5s, not '%.40s'", text);
    if (ahead)
        *delay_ns = -*delay_ns;
    return 0;
}

int nrg_meter_adjust_read(struct nrg_meter_adjust *a, struct nrg_uri *uri, struct nrg_error *err)
{
    *a = (struct nrg_meter_adjust){.scale = 1};
    int rc = nrg_uri_number(uri, "scale", -MOST_SCALE, MOST_SCALE, &a->scale, err);
    if (!rc)
        rc = nrg_uri_number(uri, "offset", -MOST_OFFSET_W, MOST_OFFSET_W, &a->offset_w, err);
    if (!rc)
        rc = read_delay(uri, &a->delay_ns, err);
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
