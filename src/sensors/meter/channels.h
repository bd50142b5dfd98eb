/*
 * Fields of a meter to channels, and its readings to the raw values of these channels, calibrated.
 * Used by the byte meters and by MQTT. Plain data, nothing to release; errors are a negative errno
 * with a reason; safe from any thread.
 */
#ifndef NRG_SENSORS_METER_CHANNELS_H
#define NRG_SENSORS_METER_CHANNELS_H

#include "sensors/meter/driver.h"

/*
 * Adds a channel per field to a found sensor. A single power is called "wall", is wide and covers
 * the machine unless covers= says otherwise. Several keep their names: covers=machine adds a
 * channel `wall` with their sum, covers=NAME:machine says which of them is the machine, and
 * covers=none says that the meter measures another machine. All powers and energies are wide.
 * Energy counters join the power of their name. period_ns 0: unknown; whoever evaluates the
 * readings learns it from them.
 */
int nrg_meter_channels(struct nrg_found *found, struct nrg_uri *uri,
                       const struct nrg_meter_field *fields, size_t n_fields, int64_t period_ns,
                       struct nrg_error *err);

/* A reading's values as the raw values of those channels; `raw` has room for NRG_METER_RAW. */
#define NRG_METER_RAW (NRG_METER_FIELDS + 1)
void nrg_meter_raw(const struct nrg_found *found, const struct nrg_meter_reading *reading,
                   int64_t *raw);

/*
 * The result of a calibration (nrg meter calibrate), with the same keys for all meters:
 * value = scale * (as the meter says) + offset, where scale= is for powers and energies and
 * offset= for powers, in W; the meter is delay= late. Without the keys nothing changes.
 */
struct nrg_meter_adjust {
    double scale, offset_w;
    int64_t delay_ns;
};
int nrg_meter_adjust_read(struct nrg_meter_adjust *adjust, struct nrg_uri *uri,
                          struct nrg_error *err);
/* `to` has room for the reading's values. Moves its time too. */
void nrg_meter_adjust_apply(const struct nrg_meter_adjust *adjust, const struct nrg_found *found,
                            const struct nrg_meter_reading *reading, double *to,
                            struct nrg_meter_reading *adjusted);

#endif
