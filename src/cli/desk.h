/*
 * Options about external meters that commands share: --meter, --no-meter, and the desk's meters
 * from the config files (sensors/meter/config.h).
 */
#ifndef NRG_CLI_DESK_H
#define NRG_CLI_DESK_H

#include "cli/cli.h"
#include "sensors/driver.h"
#include "sensors/meter/config.h"

struct nrg_desk {
    struct nrg_list meters;
    bool none;
    struct nrg_meter_config config;
};

#define NRG_DESK_OPTIONS(type, field)                                                              \
    {"meter",                                                                                      \
     'm',                                                                                          \
     NRG_OPT_LIST,                                                                                 \
     "URI",                                                                                        \
     "an external meter, such as emonpi:/dev/ttyAMA0?node=5; may be repeated",                     \
     offsetof(type, field) + offsetof(struct nrg_desk, meters)},                                   \
    {                                                                                              \
        "no-meter", 0, NRG_OPT_FLAG, NULL, "ignore the meters of nrg.conf",                        \
            offsetof(type, field) + offsetof(struct nrg_desk, none)                                \
    }

/* Fills the sensors' options; release after they have been used. 0, or -errno with err. */
int nrg_desk_read(struct nrg_desk *desk, struct nrg_cli *cli, struct nrg_sensor_options *options,
                  struct nrg_error *err);
void nrg_desk_release(struct nrg_desk *desk);

#endif
