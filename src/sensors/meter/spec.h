/*
 * What a value of a meter is. Users write it in one way wherever a value is named
 * (layout=, columns=, pattern=, fields=, a layout of nrg.conf):
 *
 *   name {":" word} ["*" scale] [unit]
 *
 *   power1   Vrms:int16*0.01V   import:kWh   flow:J:gauge   temp1*0.1 C
 *
 * A word is a unit, counter or gauge (instead of what the unit says), or a type in a packed struct
 * (int16, uint32, float...). A unit at the end follows a scale or a blank. Where no unit is given,
 * the name tells it, as table heads and JSON keys do: "Power (mW)", "power_w", "P1".
 *
 * Numbers are scanned here too, because meters put units behind them ("12.5 W") and decimal commas
 * into them. Pure functions on bounded text; nothing is allocated.
 */
#ifndef NRG_SENSORS_METER_SPEC_H
#define NRG_SENSORS_METER_SPEC_H

#include "sensors/meter/driver.h"
#include "sensors/waveform/format.h"

struct nrg_meter_unit {
    const char *name;
    enum nrg_quantity quantity;
    enum nrg_kind kind;
    double factor; /* SI value = number * factor */
    double step;   /* usual last digit of a counter, in SI units; 0: not known */
    bool recorded; /* false for VA, var and none: nrg has no channel for them */
};

/* For messages; part of a printf format. */
#define NRG_METER_UNITS "W mW kW J kJ Wh kWh V mV A mA C Hz %%"

/* NULL when there is no such unit. */
const struct nrg_meter_unit *nrg_meter_unit_find(const char *name, size_t len);

/* The first unit with that quantity and factor, NULL: none. */
const struct nrg_meter_unit *nrg_meter_unit_of(enum nrg_quantity quantity, double factor);

/* A field of that name (made clean) in that unit. */
struct nrg_meter_field nrg_meter_unit_field(const struct nrg_meter_unit *unit, const char *name);

/* From a column's or key's name: a unit in brackets, a suffix (_w), a word (power, Vrms, P1). */
const struct nrg_meter_unit *nrg_meter_unit_of_name(const char *name, size_t len);
/* The same for names that say a unit (load_mw, watts, "power [W]"), without those that only hint at
 * one (power). */
const struct nrg_meter_unit *nrg_meter_unit_said(const char *name, size_t len);

struct nrg_meter_spec {
    char name[32];
    const struct nrg_meter_unit *unit; /* NULL: none is given */
    struct nrg_sample_type type;       /* bytes 0: none is given */
    enum nrg_kind kind;                /* the unit's, or what is given instead */
    bool has_kind;                     /* it is given */
    double scale;                      /* of the number sent, to the unit; 1 */
    bool has_scale;                    /* it is given */
};

/*
 * Parses the spec of `len` bytes at `text`. 0, or -EINVAL with err naming `key`, the URI's key
 * that it stands in, and the place of the fault counted from `begin`, the beginning of its value.
 */
int nrg_meter_spec_parse(struct nrg_meter_spec *spec, const char *text, size_t len,
                         const char *begin, const char *key, struct nrg_error *err);

/*
 * The same for a value that is recorded and sent as text: its field, and the factor from the
 * number to SI units. A unit that neither the spec nor the name tells is a fault.
 */
int nrg_meter_spec_field(const char *text, size_t len, const char *begin, const char *key,
                         struct nrg_meter_field *field, double *factor, struct nrg_error *err);

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

#endif
