/*
 * Layouts: what the bytes or columns of a meter's reading are, in order.
 *
 *   power1, power2, Vrms:int16*0.01V, temp1:int16*0.1C, pulse:uint32, -:int16, ...
 *
 * A list of values as meter/spec.h describes them. Types are those of a packed little-endian
 * struct, int16 unless given; columns and key:value lines have none. "-" is skipped; "..." at the
 * end allows more bytes or columns than are named.
 *
 * A unit that is not given is taken from the name: power*, P1 are watts; V*, I* volts and amperes;
 * temp*, T1 degrees; E1 a counter of Wh. Values without a unit (a pulse count) are skipped. Whole
 * numbers called Vrms or temp* without a scale are in 1/100 V and 1/10 degree, as all
 * OpenEnergyMonitor senders have them. A counter E1 beside a power P1 or power1 becomes a channel
 * of that power's name.
 *
 * Plain data without pointers to free; parsing is bounded and allocates nothing.
 */
#ifndef NRG_SENSORS_METER_LAYOUT_H
#define NRG_SENSORS_METER_LAYOUT_H

#include "sensors/meter/spec.h"

#define NRG_LAYOUT_ITEMS 64

struct nrg_layout_item {
    struct nrg_meter_spec spec; /* always with a type */
    bool recorded;              /* its unit is a recorded one */
    double usual_scale;         /* from the name, for whole numbers without a given scale */
};

struct nrg_layout {
    struct nrg_layout_item items[NRG_LAYOUT_ITEMS];
    size_t n, bytes; /* bytes: of the packed struct */
    bool open_end;   /* more may follow */
};

/* Parses a definition. 0, or -EINVAL with the place of the fault. */
int nrg_layout_parse(struct nrg_layout *layout, const char *text, struct nrg_error *err);

/* Adds the recorded items to the fields of a meter, names after `prefix`. 0, or -E2BIG. */
int nrg_layout_fields(const struct nrg_layout *layout, const char *prefix, bool packed,
                      struct nrg_meter_field *fields, size_t *n_fields);

/* The values of a packed struct, in SI units, recorded items only; n bytes, at least layout's. */
void nrg_layout_unpack(const struct nrg_layout *layout, const uint8_t *bytes, double *values);

/* A value that was sent as text in its unit, to SI units: only a given scale applies. */
double nrg_layout_value(const struct nrg_layout_item *item, double sent);

#endif
