/* The drivers that nrgd has: those whose sensors may need a privilege. */
#ifndef NRG_DAEMON_DRIVERS_H
#define NRG_DAEMON_DRIVERS_H

#include "sensors/driver.h"

extern const struct nrg_driver *const nrg_daemon_drivers[]; /* NULL-terminated, as a registry */

#endif
