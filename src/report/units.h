/* Numbers for people: three or four significant digits and a unit that fits. NAN is "-". */
#ifndef NRG_REPORT_UNITS_H
#define NRG_REPORT_UNITS_H

#include <stddef.h>

const char *nrg_show_energy(char *buf, size_t size, double energy_j);
const char *nrg_show_power(char *buf, size_t size, double power_w);
const char *nrg_show_bytes(char *buf, size_t size, double bytes);
const char *nrg_show_seconds(char *buf, size_t size, double seconds);

#endif
