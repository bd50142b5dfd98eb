/*
 * Layouts: what the bytes or columns of a meter's reading are, as a small text.
 *
 *   power1, power2, Vrms:int16*0.01V, temp1:int16*0.1C, pulse:uint32, -:int16, ...
 *
 * Per value: name [":" type] ["*" scale] [unit], the unit after a scale or a blank. Types are
 * those of a packed little-endian struct (int16 unless said otherwise; columns and key:value
 * lines have none). "-" is skipped; "..." at the end allows more bytes or columns than are named.
 * A unit that is not given is taken from the name: power*, P1 are watts; V*, I* volts and
 * amperes; temp*, T1 degrees; E1 a counter of Wh. What has no unit (a pulse count) is read over
 * and not recorded. Whole numbers called Vrms or temp* without a scale are in 1/100 V and 1/10
 * degree, as all OpenEnergyMonitor senders have them. A counter E1 beside a power P1 or power1 is
 * a channel of that power's name.
 *
 * Plain data without pointers; parsing is bounded and allocates nothing.
 */
#ifndef NRG_SENSORS_METER_LAYOUT_H
#define NRG_SENSORS_METER_LAYOUT_H

#include "sensors/meter/driver.h"

#define NRG_LAYOUT_ITEMS 64

enum nrg_layout_type {
    NRG_TYPE_INT8,
    NRG_TYPE_UINT8,
    NRG_TYPE_INT16,
    NRG_TYPE_UINT16,
    NRG_TYPE_INT32,
    NRG_TYPE_UINT32,
    NRG_TYPE_INT64,
    NRG_TYPE_UINT64,
    NRG_TYPE_FLOAT,
    NRG_TYPE_DOUBLE,
};

struct nrg_layout_item {
    char name[32];
    enum nrg_layout_type type;
    double scale;  /* of the number sent, to the unit */
    double unit;   /* of the unit, to SI */
    bool scaled;   /* the scale was given, not guessed from the name */
    bool recorded; /* has a unit */
    enum nrg_quantity quantity;
    enum nrg_kind kind;
};

struct nrg_layout {
    struct nrg_layout_item items[NRG_LAYOUT_ITEMS];
    size_t n, bytes; /* of the packed struct */
    bool open_end;   /* more may follow */
};

/* A definition. `where` is for messages. 0, or -EINVAL with the place of the fault. */
int nrg_layout_parse(struct nrg_layout *layout, const char *text, const char *where,
                     struct nrg_error *err);

/* Adds the recorded items to the fields of a meter, names after `prefix`. 0, or -E2BIG. */
int nrg_layout_fields(const struct nrg_layout *layout, const char *prefix, bool packed,
                      struct nrg_meter_field *fields, size_t *n_fields);

/* Bytes of a type. */
size_t nrg_layout_size(enum nrg_layout_type type);

/* The values of a packed struct, in SI units, recorded items only; n bytes, at least layout's. */
void nrg_layout_unpack(const struct nrg_layout *layout, const uint8_t *bytes, double *values);

/* One value that was sent as text, in SI units. */
double nrg_layout_value(const struct nrg_layout_item *item, double sent);

#endif
