/*
 * User and password of a meter behind a network: the one in the URI, the other in a file that the
 * key password-file= names, never in the URI, which everybody sees in ps. What does not fit is
 * refused: half of a name or a password is another one. Errors are a negative errno with a reason;
 * any thread.
 */
#ifndef NRG_SENSORS_METER_PASSWORD_H
#define NRG_SENSORS_METER_PASSWORD_H

#include "sensors/meter/uri.h"

/*
 * The user in the `len` bytes at `at`, "[user@]host...", of the URI's place; "" when there is none.
 * Returns the length of "user@", or -EINVAL: also when the URI holds a password anywhere.
 */
int nrg_meter_user(const struct nrg_uri *uri, const char *at, size_t len, char *user, size_t size,
                   struct nrg_error *err);

/*
 * The first line of the file; "" when the key is not given. `user` is who it belongs to: a password
 * without one is an error. The caller wipes it.
 */
int nrg_meter_password(struct nrg_uri *uri, const char *user, char *password, size_t size,
                       struct nrg_error *err);

#endif
