/*
 * One series on its way into the recording: the rows that have come since the last large chunk,
 * and which of them the file already holds as live chunks. Used by store.c only.
 */
#ifndef NRG_RECORD_SERIES_H
#define NRG_RECORD_SERIES_H

#include <stdbool.h>

#include "record/store/column.h"
#include "record/format.h"
#include "record/rows.h"

struct nrg_sql;

/* A large chunk is made of this many rows, or of this much time. */
#define NRG_MERGE_ROWS 16384
#define NRG_MERGE_NS   (INT64_C(300) * 1000000000)

struct nrg_series {
    int id;
    enum nrg_series_kind kind;
    struct nrg_rows rows;
    size_t written; /* rows that are in live chunks */
    int64_t *live;  /* ids of those chunks */
    size_t n_live, cap_live;
    enum { NRG_SERIES_IDLE, NRG_SERIES_LIVE, NRG_SERIES_MERGED } done; /* in this transaction */
};

void nrg_series_init(struct nrg_series *s, int id, enum nrg_series_kind kind, size_t n_columns);
void nrg_series_release(struct nrg_series *s);

/* Writes what is new inside the open transaction; 0 or -errno. */
int nrg_series_write(struct nrg_series *s, struct nrg_sql *sql, struct nrg_codec *codec,
                     bool closing);
/* After the transaction: forgets what is safely written, or that anything was tried. */
void nrg_series_settle(struct nrg_series *s, bool committed);

#endif
