/*
 * Columns of numbers in lines: CSV or blanks, with or without a line of names. Used by
 * text/decoder.c; pure and bounded, nothing allocated.
 *
 * columns= names the columns in order ("-" for one that is not wanted, "time" for the time). When
 * the meter prints a line of names, that line says which column is which, and its units win ("Power
 * (mW)"). Without columns=, the first column is power in W until a line of names tells more.
 */
#ifndef NRG_SENSORS_METER_TEXT_TABLE_H
#define NRG_SENSORS_METER_TEXT_TABLE_H

#include "sensors/meter/spec.h"

#define NRG_TABLE_COLUMNS 128

struct nrg_table {
    char separator;                  /* 0: guessed from the line; ' ': blanks */
    short fields[NRG_TABLE_COLUMNS]; /* field of each column; NRG_TABLE_SKIP, NRG_TABLE_TIME */
    size_t n_columns;
    double factors[NRG_METER_FIELDS];
    bool has_time, given; /* given: by columns= */
};

enum { NRG_TABLE_SKIP = -1, NRG_TABLE_TIME = -2 };

/* `columns` NULL: power in W. 0, or -EINVAL with err. */
int nrg_table_init(struct nrg_table *table, const char *columns, const char *separator,
                   struct nrg_meter_field *fields, size_t *n_fields, struct nrg_error *err);

struct nrg_table_row {
    double *values; /* n_fields; SI units, NAN: empty */
    const char *time;
    size_t time_len;
    char why[96]; /* why it was refused */
};

enum nrg_table_line { NRG_TABLE_ROW, NRG_TABLE_NAMES, NRG_TABLE_REFUSED };

enum nrg_table_line nrg_table_read(struct nrg_table *table, const char *line, size_t len,
                                   const struct nrg_meter_field *fields, size_t n_fields,
                                   struct nrg_table_row *row);

#endif
