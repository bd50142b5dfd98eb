/*
 * The URI of a Redfish service, redfish://[user@]host[:port][/path], taken apart. Always HTTPS.
 * Plain data that the owner wipes; errors are a negative errno with a reason; any thread.
 */
#ifndef NRG_SENSORS_REDFISH_SETTINGS_H
#define NRG_SENSORS_REDFISH_SETTINGS_H

#include "sensors/meter/uri.h"

struct nrg_redfish_settings {
    char base[256]; /* "https://host:port", without the user */
    char path[256]; /* "/redfish/v1", or what the user names */
    char user[64], password[128];
    char cafile[256];
    int64_t period_ns; /* of questions */
};

int nrg_redfish_settings_read(struct nrg_uri *uri, struct nrg_redfish_settings *settings,
                              struct nrg_error *err);

#endif
