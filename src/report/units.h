/*
 * Numbers for people: three or four significant digits and a unit that fits; NAN and negative
 * counts are "-". The text is returned by value: print nrg_show_energy(energy_j).text. Nothing is
 * allocated, nothing fails.
 */
#ifndef NRG_REPORT_UNITS_H
#define NRG_REPORT_UNITS_H

#include <stdint.h>

struct nrg_shown {
    char text[64];
};

struct nrg_shown nrg_show_energy(double energy_j);
struct nrg_shown nrg_show_power(double power_w);
struct nrg_shown nrg_show_bytes(double bytes);
struct nrg_shown nrg_show_seconds(double seconds);
/* "11,689,512" */
struct nrg_shown nrg_show_integer(int64_t n);
/* "1.814 G": counts with a factor of 1000. */
struct nrg_shown nrg_show_count(int64_t n);
struct nrg_shown nrg_show_amount(double n); /* the whole part, as a count */
/* "1.2 J … 1.4 J"; "-" when an end is not known. */
struct nrg_shown nrg_show_interval(double low_j, double high_j);
/*
 * "± 0.1 J" behind an energy, or both ends, "1.2 J .. 3.4 J", where one is much nearer than the
 * other or ± would reach below 0; "-" when an end is not known. `plus_minus` is the sign.
 */
struct nrg_shown nrg_show_band(double energy_j, double low_j, double high_j,
                               const char *plus_minus);
/* The same by any of the functions above; "-" when there is no number from low to high. */
struct nrg_shown nrg_show_range(double low, double high, struct nrg_shown (*show)(double value));

#endif
