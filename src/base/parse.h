/*
 * Numbers from text that we did not write. Every function takes a bounded string, accepts
 * surrounding white space, and refuses anything else (-EINVAL) or out of range (-ERANGE):
 * a sysfs file that holds "12x", nothing, or 10 kB of noise is an error, never a value.
 */
#ifndef NRG_BASE_PARSE_H
#define NRG_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* True when `text` ends with `end` or equals it. */
bool nrg_ends_with(const char *text, const char *end);

/* Takes white space off both ends. */
void nrg_trim(const char **text, size_t *len);

int nrg_parse_i64(const char *text, size_t len, int64_t *out);
int nrg_parse_u64(const char *text, size_t len, uint64_t *out);
int nrg_parse_double(const char *text, size_t len, double *out);

/*
 * A decimal number ("1700000000123456.789", "1.5e-05") times 10^power, rounded to the nearest
 * integer, without going through double, which loses ns of dates.
 */
int nrg_parse_scaled(const char *text, size_t len, int power, int64_t *out);

/* "5s", "250ms", "2min", "1h", "80us"; a bare number is seconds. Result in ns. */
int nrg_parse_duration_ns(const char *text, int64_t *out_ns);

/* "1kHz", "10Hz", "0.5"; a bare number is Hz. */
int nrg_parse_rate_hz(const char *text, double *out_hz);

/* "80GB", "24GiB", "1.5e9": bytes, more than 0. */
int nrg_parse_bytes(const char *text, double *out_bytes);

/* Kernel CPU lists, "0,2-4". Calls back for each CPU in order; stops at a non-zero return. */
int nrg_parse_cpulist(const char *text, int (*each)(unsigned cpu, void *arg), void *arg);
/* How many CPUs the list names, up to the first character that does not belong there. */
unsigned nrg_count_cpulist(const char *text);

/* Next white-space separated field of [*p, end); NULL at the end. Advances *p. */
const char *nrg_next_field(const char **p, const char *end, size_t *len);

#endif
