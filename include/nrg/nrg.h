/*
 * nrg: the energy profiler for machine learning. The one public header of libnrg.
 *
 * Opaque types; every unit is in a name; functions return 0 or a negative errno; nothing here
 * prints, exits or changes signal handling.
 */
#ifndef NRG_NRG_H
#define NRG_NRG_H

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0" */
const char *nrg_version(void);

#ifdef __cplusplus
}
#endif

#endif
