/*
 * Defaults of options from nrg.conf (sensors/meter/config.h), and what a command was told in the
 * end. Any option may stand there by its long name, for all commands that have it, or as
 * COMMAND.OPTION for one of them; flags are yes or no:
 *
 *     rate = 100Hz
 *     carbon-intensity = 380
 *     run.baseline = 5s
 *
 * The user's file wins over /etc/nrg.conf, and the command line over both. The files are always
 * this machine's, never a captured tree's; --root can't be set by them.
 *
 * `used` is for recordings: name and value of what takes a single value. Lists are left out,
 * because the URIs of meters may hold passwords. Embedded; texts stay the config's and argv's.
 */
#ifndef NRG_CLI_SETTINGS_H
#define NRG_CLI_SETTINGS_H

#include "cli/cli.h"
#include "sensors/meter/config.h"

enum { NRG_SETTINGS_USED = 64 };

struct nrg_setting {
    const struct nrg_opt *opt;
    const char *value; /* "yes" of a flag */
};

struct nrg_settings {
    struct nrg_meter_config config;
    struct nrg_setting used[NRG_SETTINGS_USED];
    size_t n;
};

/* Reads the files and stores what they say into values. 0, or -EBADMSG after saying why not. */
int nrg_settings_apply(struct nrg_cli *cli, void *values);
/* An option of the command line; the value may be NULL. */
void nrg_settings_given(struct nrg_settings *settings, const struct nrg_opt *opt,
                        const char *value);
void nrg_settings_release(struct nrg_settings *settings);

#endif
