/*
 * The desk's meters, and how its GPU's power sensor samples: ~/.config/nrg/nrg.conf (or below
 * XDG_CONFIG_HOME) and /etc/nrg.conf, so that `nrg run` finds the meter that this machine is
 * plugged into by itself.
 *
 *   # comment
 *   meter = emonpi:/dev/serial/by-id/usb-FTDI?node=5&layout=desk
 *   layout desk = power1, power2, Vrms*0.01V
 *   sensor-profile = /etc/nrg-a100.json
 *   covers ina226 = machine
 *   rate = 100Hz
 *
 * Meters of both files are used; of two layouts of one name, or two profiles, the user's wins. Any
 * other name is a default for an option of the program, which knows them (cli/settings.h). Both
 * files are this machine's, never a captured tree's, and one that others can write may not run
 * programs (base/trust.h). The struct owns all texts; init reads, release frees. Lines that are not
 * understood are errors with file and line.
 */
#ifndef NRG_SENSORS_METER_CONFIG_H
#define NRG_SENSORS_METER_CONFIG_H

#include "base/context.h"
#include "sensors/meter/uri.h"

struct nrg_meter_entry {
    char *name, *text; /* name: of a layout, a rail or an option; NULL for a meter */
    char where[280];   /* "file:line" */
};

struct nrg_meter_config {
    struct nrg_meter_entry *meters, *layouts, *options, *covers; /* covers: sensors/covers.h */
    size_t n_meters, cap_meters, n_layouts, cap_layouts, n_options, cap_options, n_covers,
        cap_covers;
    char *sensor_profile; /* path; NULL: none */
};

/* `home_config`: the user's folder of settings; NULL: none. 0, or -errno with err. */
int nrg_meter_config_read(struct nrg_meter_config *config, const char *home_config,
                          struct nrg_error *err);
/* Adds the entries of a text; `file` is for messages. */
int nrg_meter_config_parse(struct nrg_meter_config *config, const char *file, const char *text,
                           size_t len, struct nrg_error *err);
void nrg_meter_config_release(struct nrg_meter_config *config);
/* Removes the meters, keeps the layouts. */
void nrg_meter_config_drop_meters(struct nrg_meter_config *config);

/* A layout by name, NULL when there is none; config may be NULL. */
const char *nrg_meter_config_layout(const struct nrg_meter_config *config, const char *name);

/*
 * Replaces the names of the user's layouts in a URI (keys layout and layout.N) by their text, so
 * that the URI is complete without the config.
 */
int nrg_meter_expand(struct nrg_uri *uri, const struct nrg_meter_config *config,
                     struct nrg_error *err);

#endif
