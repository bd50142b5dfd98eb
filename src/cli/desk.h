/*
 * Options about this desk's sensors that commands share: --meter, --no-meter, --covers,
 * --sensor-profile, and what the config files say of them (sensors/meter/config.h). Embedded: read,
 * release.
 */
#ifndef NRG_CLI_DESK_H
#define NRG_CLI_DESK_H

#include "cli/cli.h"
#include "sensors/driver.h"
#include "sensors/meter/config.h"
#include "sensors/sensor_profile.h"

struct nrg_desk {
    struct nrg_list meters, covers;
    bool none;
    const char *profile_path;
    struct nrg_meter_config config;
    struct nrg_sensor_profile profile;
};

/* clang-format off */
#define NRG_DESK_OPTIONS(type, field)                                                              \
    {"meter", 'm', NRG_OPT_LIST, "URI",                                                            \
     "an external meter, such as emonpi:/dev/ttyAMA0?node=5; may be repeated",                     \
     offsetof(type, field.meters)},                                                                \
    {"no-meter", 0, NRG_OPT_FLAG, NULL, "ignore the meters of nrg.conf",                           \
     offsetof(type, field.none)},                                                                  \
    {"covers", 0, NRG_OPT_LIST, "RAIL=WHAT",                                                       \
     "what a rail measures: machine, cpu, part (none of the others) or none; may be repeated",     \
     offsetof(type, field.covers)},                                                                \
    {"sensor-profile", 0, NRG_OPT_STRING, "FILE",                                                  \
     "how a GPU's power sensor samples, of nrg calibrate --gpu", offsetof(type, field.profile_path)}
/* clang-format on */

/* Fills the sensors' options; release after they have been used. 0, or -errno with err. */
int nrg_desk_read(struct nrg_desk *desk, struct nrg_cli *cli, struct nrg_sensor_options *options,
                  struct nrg_error *err);
void nrg_desk_release(struct nrg_desk *desk);

#endif
