/*
 * A table of int64 rows with a time column: what sensors produce, chunks hold and readers get.
 * Embedded: init, release. Errors: -ENOMEM; the table stays as it was. Not thread-safe.
 */
#ifndef NRG_RECORD_ROWS_H
#define NRG_RECORD_ROWS_H

#include <stddef.h>
#include <stdint.h>

struct nrg_rows {
    size_t n, cap, n_columns;
    int64_t width_ns; /* largest reading width: how uncertain the time stamps are */
    int64_t *t_ns;
    int64_t *cells; /* column c starts at cells + c * cap */
};

void nrg_rows_init(struct nrg_rows *rows, size_t n_columns);
void nrg_rows_release(struct nrg_rows *rows);
int nrg_rows_reserve(struct nrg_rows *rows, size_t n);
int nrg_rows_add(struct nrg_rows *rows, int64_t t_ns, int64_t width_ns, const int64_t *values);
int nrg_rows_append(struct nrg_rows *rows, const struct nrg_rows *more);

static inline int64_t *nrg_rows_column(const struct nrg_rows *rows, size_t c)
{
    return rows->cells + c * rows->cap;
}

#endif
