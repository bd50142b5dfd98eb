/*
 * Names, tracks and paths of spans on their way into a recording: kept until the transaction
 * that writes them has succeeded, like everything else that the store holds. Inside src/record;
 * others go through nrg_store_span_name and its like (store.h).
 */
#ifndef NRG_RECORD_SPAN_TABLE_H
#define NRG_RECORD_SPAN_TABLE_H

#include <sqlite3.h>
#include <stddef.h>

#include "record/format.h"

struct nrg_span_table {
    struct nrg_span_name *names;
    size_t n_names, cap_names;
    struct nrg_span_track *tracks;
    size_t n_tracks, cap_tracks;
    struct nrg_span_path *paths;
    size_t n_paths, cap_paths;
};

void nrg_span_table_release(struct nrg_span_table *table);
int nrg_span_table_name(struct nrg_span_table *table, const struct nrg_span_name *name);
int nrg_span_table_track(struct nrg_span_table *table, const struct nrg_span_track *track);
int nrg_span_table_path(struct nrg_span_table *table, const struct nrg_span_path *path);
/* Inserts or replaces all of them, inside the caller's transaction. */
int nrg_span_table_write(const struct nrg_span_table *table, sqlite3 *db);
/* Forgets what was written. */
void nrg_span_table_clear(struct nrg_span_table *table);

#endif
