/*
 * Columns of numbers in lines: CSV or blanks, with or without a line of names. Used by
 * text/decoder.c; pure and bounded, nothing allocated.
 *
 * columns= names the columns in order ("-" for one that is not wanted, "time" for the time). When
 * the meter prints a line of names, that line says which column is which, and its units win ("Power
 * (mW)"). Without columns=, the first column is power in W until a line of names tells more.
 *
 * A line may be about one of several devices, which a column names (nvidia-smi prints a line per
 * GPU). rows=index:0,1 makes channels of each: power-0, power-1. Without it lines of a second
 * device are refused: two devices in one channel would be neither.
 */
#ifndef NRG_SENSORS_METER_TEXT_TABLE_H
#define NRG_SENSORS_METER_TEXT_TABLE_H

#include "sensors/meter/spec.h"

#define NRG_TABLE_COLUMNS   128
#define NRG_TABLE_DEVICES   32
#define NRG_TABLE_KEY_BYTES 48

struct nrg_table {
    char separator;                  /* 0: guessed from the line; ' ': blanks */
    short fields[NRG_TABLE_COLUMNS]; /* field of each column; NRG_TABLE_SKIP, NRG_TABLE_TIME */
    size_t n_columns;
    double factors[NRG_METER_FIELDS];
    bool has_time, given; /* given: by columns= */
    size_t n_values;      /* of one device, and their names */
    char names[NRG_METER_FIELDS][32];
    char key[NRG_TABLE_KEY_BYTES]; /* name of the column that says which device; "": not known */
    char devices[NRG_TABLE_DEVICES][NRG_TABLE_KEY_BYTES];
    size_t n_devices; /* of rows=; 0: there is one, and its name is devices[0] once it is seen */
};

enum { NRG_TABLE_SKIP = -1, NRG_TABLE_TIME = -2, NRG_TABLE_DEVICE = -3 };

/* `columns` NULL: power in W; `rows` NULL: one device. 0, or -EINVAL with err. */
int nrg_table_init(struct nrg_table *table, const char *columns, const char *rows,
                   const char *separator, struct nrg_meter_field *fields, size_t *n_fields,
                   struct nrg_error *err);

struct nrg_table_row {
    double *values; /* n_fields; SI units, NAN: empty */
    const char *time;
    size_t time_len;
    size_t device; /* index in rows=, 0 without */
    char why[112]; /* why it was refused */
};

enum nrg_table_line { NRG_TABLE_ROW, NRG_TABLE_NAMES, NRG_TABLE_REFUSED };

enum nrg_table_line nrg_table_read(struct nrg_table *table, const char *line, size_t len,
                                   const struct nrg_meter_field *fields, size_t n_fields,
                                   struct nrg_table_row *row);

/* For who looks which devices there are: takes a line of names, and of any other line the device.
 * False: it names none. */
bool nrg_table_device(struct nrg_table *table, const char *line, size_t len,
                      const struct nrg_meter_field *fields, char *device, size_t size);

#endif
