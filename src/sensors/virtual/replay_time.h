/* Times as logs write them, exact to the ns. Pure functions, any thread; 0 or -EINVAL. */
#ifndef NRG_SENSORS_VIRTUAL_REPLAY_TIME_H
#define NRG_SENSORS_VIRTUAL_REPLAY_TIME_H

#include <stddef.h>
#include <stdint.h>

/* "12.5", "1700000000.123456789": decimal, not through double, which loses ns of epoch times. */
int nrg_time_from_seconds(const char *text, size_t len, int64_t *t_ns);

/*
 * "2024-01-31T12:00:00.25Z", also with a blank for T, and +02:00 or +0200 for Z. Without a zone it
 * counts as UTC, because replay only needs differences. Result in ns since 1970.
 */
int nrg_time_from_iso(const char *text, size_t len, int64_t *t_ns);

#endif
