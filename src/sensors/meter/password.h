/*
 * The password of a meter behind a network: in a file that the key password-file= names, never in
 * the URI, which everybody sees in ps. Errors are a negative errno with a reason; any thread.
 */
#ifndef NRG_SENSORS_METER_PASSWORD_H
#define NRG_SENSORS_METER_PASSWORD_H

#include "sensors/meter/uri.h"

/*
 * The first line of the file; "" when the key is not given. `user` is who it belongs to: a password
 * without one is an error. The caller wipes it.
 */
int nrg_meter_password(struct nrg_uri *uri, const char *user, char *password, size_t size,
                       struct nrg_error *err);

#endif
