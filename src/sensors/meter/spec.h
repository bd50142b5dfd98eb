/*
 * What a value of a text or a message means: "name[:unit[:kind]]", as users write it in columns=,
 * pattern= and value=, and as table heads and JSON keys say it ("Power (mW)", "power_w").
 *
 * Numbers are scanned here too, because meters put units behind them ("12.5 W") and decimal commas
 * into them. Pure functions on bounded text; nothing is allocated.
 */
#ifndef NRG_SENSORS_METER_SPEC_H
#define NRG_SENSORS_METER_SPEC_H

#include "sensors/meter/driver.h"

struct nrg_meter_unit {
    const char *name;
    enum nrg_quantity quantity;
    enum nrg_kind kind;
    double factor; /* SI value = number * factor */
    double step;   /* usual last digit of a counter, in SI units; 0: not known */
};

/* NULL when there is no such unit. "" is none. */
const struct nrg_meter_unit *nrg_meter_unit_find(const char *name, size_t len);

/* From a column's or key's name: a unit in brackets, a suffix (_w), a word (power, Vrms, P1). */
const struct nrg_meter_unit *nrg_meter_unit_of_name(const char *name, size_t len);

/*
 * "power", "power:mW", "import:kWh", "flow:J:gauge". `step` is left to the unit. 0, or -EINVAL with
 * err naming `key`, the URI's key that it stands in.
 */
int nrg_meter_spec(const char *text, size_t len, const char *key, struct nrg_meter_field *field,
                   double *factor, struct nrg_error *err);

/* Two names mean the same column: case, blanks, '_' and a unit in brackets do not count. */
bool nrg_meter_same_name(const char *a, size_t a_len, const char *b, size_t b_len);

/* Bytes of the number that stands at the front, 0: none. `comma` allows "12,5". */
size_t nrg_meter_scan(const char *text, size_t len, bool comma, double *value);

/*
 * A whole cell: blanks, a number, blanks, and perhaps a unit, which then wins over `factor` when it
 * is one of the same quantity. Empty cells, "nan", "-" and "null" are NAN. 0 or -EINVAL.
 */
int nrg_meter_value(const char *text, size_t len, bool comma, const struct nrg_meter_field *field,
                    double factor, double *value);

/* How times in a text become CLOCK_MONOTONIC. */
struct nrg_meter_times {
    int64_t real_minus_mono_ns; /* of this machine, when the meter was opened */
    int64_t zone_ns;            /* local time minus UTC, for dates without a zone */
    int64_t first_ns;           /* of a clock that starts anywhere: 0 of it; NRG_MISSING: not yet */
};

void nrg_meter_times_init(struct nrg_meter_times *times);
/*
 * Seconds, ms, us or ns since 1970 by their size, a date (ISO, a blank for T), or seconds from
 * any start, which is tied to the arrival of its first. 0 or -EINVAL.
 */
int nrg_meter_time(struct nrg_meter_times *times, const char *text, size_t len, int64_t arrived_ns,
                   int64_t *t_ns);

#endif
