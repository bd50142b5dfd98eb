/*
 * The writing side of a recording. Everything added stays in memory until nrg_store_commit,
 * which writes it in one transaction. The recorder commits about once a second, so a recorder that
 * is killed loses at most that second. What a power cut may take: nrg_store_sync_every.
 *
 * Rows of a series are written as small live chunks and, once enough have come together, again
 * as one large chunk that replaces them. Live chunks limit the loss, large ones the size.
 *
 * When the disk is full or fails, the database moves into memory and recording continues: nothing
 * already recorded is lost while the process lives, and close tries the disk once more.
 * nrg_store_spilled reports it.
 *
 * Ownership: create or extend, then close or discard; whatever is added is copied.
 * Threads: one at a time. Errors: -errno, with a struct nrg_error where the user can act.
 */
#ifndef NRG_RECORD_STORE_WRITER_H
#define NRG_RECORD_STORE_WRITER_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/error.h"
#include "record/format.h"
#include "record/rows.h"
#include "sensors/driver.h"

struct sqlite3;
struct nrg_store;

/* A series gets a large chunk after this many rows, or after five minutes. */
#define NRG_MERGE_ROWS 8192

/* Fails with -EEXIST when the file is there, unless overwrite. It appears when it is ready. */
int nrg_store_create(const char *path, bool overwrite, struct nrg_store **store,
                     struct nrg_error *err);
/*
 * Opens a finished recording to add to it (an import joins it with spans). Nothing that it holds is
 * changed; series and sensors that are added get the next numbers. The caller works on a copy:
 * discard removes the file.
 */
int nrg_store_extend(const char *path, struct nrg_store **store, struct nrg_error *err);
/* Last commit, synced, and large chunks of all that is left; nothing can be added after it. This
 * may be what fills the disk: ask nrg_store_spilled afterwards. */
int nrg_store_finish(struct nrg_store *store);
/* Finishes if that was not done, and leaves a single file. -errno when it is incomplete. */
int nrg_store_close(struct nrg_store *store, struct nrg_error *err);
/* Instead of close: leaves no file. NULL is fine. */
void nrg_store_discard(struct nrg_store *store);

/*
 * Creates the file, with what describes the recording (sensors, channels, series, metadata), and
 * waits until it is on the disk. Called before the workload starts, to notice in time a disk that
 * can't take it. Otherwise the first commit does it.
 */
int nrg_store_ready(struct nrg_store *store, struct nrg_error *err);
/* A commit waits for the disk when the last one that did is this long ago. 0: none ever does. */
void nrg_store_sync_every(struct nrg_store *store, int64_t period_ns);

int nrg_store_text(struct nrg_store *store, const char *key, const char *value);
int nrg_store_integer(struct nrg_store *store, const char *key, int64_t value);
int nrg_store_real(struct nrg_store *store, const char *key, double value);
/* Keeps a model's file: `format` is the name of the reader that understood it. */
int nrg_store_graph(struct nrg_store *store, const char *name, const char *format,
                    const void *bytes, size_t size);

/*
 * Adds a sensor with its wanted channels. series[g] becomes the series of group g; there are
 * `n_groups` of them. Rows of a group have a column per channel of the group, wanted or not.
 */
int nrg_store_sensor(struct nrg_store *store, const struct nrg_found *found, int64_t period_ns,
                     int *series, size_t n_groups);
/* Adds a process-like series; returns its number or -errno. */
int nrg_store_series(struct nrg_store *store, enum nrg_series_kind kind);

int nrg_store_rows(struct nrg_store *store, int series, const struct nrg_rows *rows);
int nrg_store_clock(struct nrg_store *store, const struct nrg_clock_pair *pair);
int nrg_store_event(struct nrg_store *store, const struct nrg_event *event);
/* Inserts, or replaces the one with the same id. */
int nrg_store_process(struct nrg_store *store, const struct nrg_process_info *info);
int nrg_store_run(struct nrg_store *store, const struct nrg_run *run);
/* What span events refer to. The same id again replaces. */
int nrg_store_span_name(struct nrg_store *store, const struct nrg_span_name *name);
int nrg_store_span_track(struct nrg_store *store, const struct nrg_span_track *track);
int nrg_store_span_path(struct nrg_store *store, const struct nrg_span_path *path);

int nrg_store_commit(struct nrg_store *store);

/* NULL, or why the recording is in memory. */
const char *nrg_store_spilled(const struct nrg_store *store);

/* For reading the recording back when it could not be written to disk. Owned by the store. */
struct sqlite3 *nrg_store_database(struct nrg_store *store);

#endif
