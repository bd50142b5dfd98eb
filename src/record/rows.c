/* See rows.h. */
#include "record/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void nrg_rows_init(struct nrg_rows *rows, size_t n_columns)
{
    *rows = (struct nrg_rows){.n_columns = n_columns};
}

void nrg_rows_release(struct nrg_rows *rows)
{
    free(rows->t_ns);
    free(rows->cells);
    nrg_rows_init(rows, rows->n_columns);
}

int nrg_rows_reserve(struct nrg_rows *rows, size_t n)
{
    if (n <= rows->cap)
        return 0;
    size_t cap = rows->cap ? rows->cap : 16;
    while (cap < n)
        cap *= 2;
    int64_t *t_ns = realloc(rows->t_ns, cap * sizeof *t_ns);
    if (!t_ns)
        return -ENOMEM;
    rows->t_ns = t_ns;
    int64_t *cells = malloc((cap * rows->n_columns + 1) * sizeof *cells);
    if (!cells)
        return -ENOMEM;
    for (size_t c = 0; rows->n && c < rows->n_columns; c++)
        memcpy(cells + c * cap, nrg_rows_column(rows, c), rows->n * sizeof *cells);
    free(rows->cells);
    rows->cells = cells;
    rows->cap = cap;
    return 0;
}

int nrg_rows_add(struct nrg_rows *rows, int64_t t_ns, int64_t width_ns, const int64_t *values)
{
    int rc = nrg_rows_reserve(rows, rows->n + 1);
    if (rc)
        return rc;
    rows->t_ns[rows->n] = t_ns;
    for (size_t c = 0; c < rows->n_columns; c++)
        nrg_rows_column(rows, c)[rows->n] = values[c];
    if (width_ns > rows->width_ns)
        rows->width_ns = width_ns;
    rows->n++;
    return 0;
}

int nrg_rows_append(struct nrg_rows *rows, const struct nrg_rows *more)
{
    if (!more->n)
        return 0;
    int rc = nrg_rows_reserve(rows, rows->n + more->n);
    if (rc)
        return rc;
    memcpy(rows->t_ns + rows->n, more->t_ns, more->n * sizeof *rows->t_ns);
    for (size_t c = 0; c < rows->n_columns; c++)
        memcpy(nrg_rows_column(rows, c) + rows->n, nrg_rows_column(more, c),
               more->n * sizeof *rows->cells);
    if (more->width_ns > rows->width_ns)
        rows->width_ns = more->width_ns;
    rows->n += more->n;
    return 0;
}
