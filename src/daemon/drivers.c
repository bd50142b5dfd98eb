/* See drivers.h. In the order of preference of sensors/registry.c: perf needs the least. */
#include "daemon/drivers.h"

#include "sensors/drivers.h"

/* clang-format off */
const struct nrg_driver *const nrg_daemon_drivers[] = {
    &nrg_driver_rapl_perf,
    &nrg_driver_rapl_powercap,
    &nrg_driver_rapl_msr,
    &nrg_driver_ina3221,
    &nrg_driver_hwmon,
    &nrg_driver_dcmi,
    NULL,
};
/* clang-format on */
