/* See desk.h. */
#include "cli/desk.h"

#include <limits.h>

#include "cli/internal.h"

/* Layouts are read with --no-meter too: a --meter may name one. */
int nrg_desk_read(struct nrg_desk *desk, struct nrg_cli *cli, struct nrg_sensor_options *options,
                  struct nrg_error *err)
{
    char folder[PATH_MAX];
    int rc = nrg_meter_config_read(&desk->config, nrg_settings_folder(folder, sizeof folder), err);
    if (rc)
        return rc;
    if (desk->none || options->only)
        nrg_meter_config_drop_meters(&desk->config);
    const char *profile = desk->profile_path ? desk->profile_path : desk->config.sensor_profile;
    if (profile && (rc = nrg_sensor_profile_read(&desk->profile, profile, err)))
        return rc;
    options->profile = profile ? &desk->profile : NULL;
    options->meters = desk->meters.items;
    options->covers = desk->covers.items;
    options->config = &desk->config;
    /* Meters are always this machine's, even when --root names another machine's tree. */
    if (desk->meters.n || desk->config.n_meters)
        nrg_root_complete(&cli->ctx.root, NRG_PART_DEV);
    return 0;
}

void nrg_desk_release(struct nrg_desk *desk)
{
    nrg_meter_config_release(&desk->config);
}
