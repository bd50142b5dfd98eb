/* What `nrg meter watch` needs of an MQTT meter besides the driver's functions: as meter.h has it
 * for byte meters. */
#ifndef NRG_SENSORS_MQTT_H
#define NRG_SENSORS_MQTT_H

#include "sensors/meter/driver.h"

void nrg_mqtt_watch(void *state, struct nrg_meter_out *watch);
const struct nrg_meter_stats *nrg_mqtt_statistics(void *state);

#endif
