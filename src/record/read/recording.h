/*
 * The reading side of a recording: opens a .nrg file of this or an older version, also after a
 * crash, and gives its tables. Nothing in the file is trusted. The small tables are loaded at
 * once; samples are decoded chunk by chunk.
 *
 * Read-only. Ownership: open, close; arrays and texts belong to the recording. Errors: a negative
 * errno, with the reason in err. Threads: one at a time.
 */
#ifndef NRG_RECORD_READ_RECORDING_H
#define NRG_RECORD_READ_RECORDING_H

#include "base/clock.h"
#include "base/error.h"
#include "record/format.h"
#include "record/rows.h"
#include "sensors/channel.h"

struct sqlite3;
struct nrg_recording;

struct nrg_recorded_channel {
    struct nrg_channel channel;
    int series; /* and column: where its samples are */
    size_t column;
    char driver[32];
    char sensor[64];
    int64_t period_ns; /* how often it was read */
};

int nrg_recording_open(const char *path, struct nrg_recording **recording, struct nrg_error *err);
/* On a database that this process wrote; it stays the caller's. */
int nrg_recording_from_database(struct sqlite3 *database, const char *name,
                                struct nrg_recording **recording, struct nrg_error *err);
void nrg_recording_close(struct nrg_recording *recording);

/*
 * A read that failed for lack of memory or by the disk, not by what the file says, is remembered,
 * because most results go on without what a series, a model or a table would have said. Who shows a
 * result of a recording asks once, at its end. 0, or that error with err.
 */
int nrg_recording_check(const struct nrg_recording *recording, struct nrg_error *err);
/* -ENODATA: it holds no `what` ("run", "readings of the run"). no_run.c. */
int nrg_recording_no_run(const struct nrg_recording *recording, const char *what,
                         struct nrg_error *err);
/* Remembers it, if it is one of these, and counts damage (-EBADMSG); returns rc. */
int nrg_recording_note_failure(struct nrg_recording *recording, int rc);
/* How often something could not be read because the file is damaged; results go on without it. */
size_t nrg_recording_damage(const struct nrg_recording *recording);

/* A table that older recordings, and those of other programs, need not have. */
bool nrg_recording_has_table(struct nrg_recording *recording, const char *table);
/* Rows of such a table that meet a condition of SQL; 0 also where there is no such table. */
int64_t nrg_recording_count(struct nrg_recording *recording, const char *table,
                            const char *condition);

const char *nrg_recording_path(const struct nrg_recording *recording);
/* Metadata; NULL or -ENOENT when there is none of that name, -EBADMSG when it is no count. */
const char *nrg_recording_text(const struct nrg_recording *recording, const char *key);
int nrg_recording_integer(const struct nrg_recording *recording, const char *key, int64_t *value);
/* All metadata in key order: calls back with each. */
void nrg_recording_each_text(const struct nrg_recording *recording,
                             void (*each)(void *arg, const char *key, const char *value),
                             void *arg);

const struct nrg_recorded_channel *nrg_recording_channels(const struct nrg_recording *, size_t *n);
/* A channel of energy or power that is left out because its scale is no positive number; NULL. */
const char *nrg_recording_unscaled(const struct nrg_recording *recording);
const struct nrg_process_info *nrg_recording_processes(const struct nrg_recording *, size_t *n);
/* One more than the greatest process id in the recording, for tables by id; -EBADMSG: damaged. */
int nrg_recording_process_ids(const struct nrg_recording *recording, size_t *n_ids);
const struct nrg_run *nrg_recording_runs(const struct nrg_recording *, size_t *n);
const struct nrg_event *nrg_recording_events(const struct nrg_recording *, size_t *n);
const struct nrg_clock_pair *nrg_recording_clocks(const struct nrg_recording *, size_t *n);

/* Columns and kind of a series; 0 when there is none of that number. `kind` may be NULL. */
size_t nrg_recording_columns(const struct nrg_recording *recording, int series,
                             enum nrg_series_kind *kind);
/* For the readers of chunks (series.c), and for what still.c finds. All belong to the recording. */
struct nrg_codec;
struct nrg_stills;
struct sqlite3 *nrg_recording_database(const struct nrg_recording *recording);
struct nrg_codec *nrg_recording_codec(const struct nrg_recording *recording);
struct nrg_stills **nrg_recording_stills(const struct nrg_recording *recording);

/* Times of the first and last row of all series; -ENODATA without any. */
int nrg_recording_extent(struct nrg_recording *recording, int64_t *first_ns, int64_t *last_ns);

/*
 * Decodes the chunks of a series in order of time and calls back with each; a non-zero return
 * stops. A damaged chunk is skipped and counted in *damaged (may be NULL). 0 or -errno.
 */
int nrg_recording_read_series(struct nrg_recording *recording, int series,
                              int (*each)(void *arg, const struct nrg_rows *rows), void *arg,
                              size_t *damaged);
/* The same for all series of a kind that have that many columns (0: any). */
int nrg_recording_read_kind(struct nrg_recording *recording, enum nrg_series_kind kind,
                            size_t n_columns, int (*each)(void *arg, const struct nrg_rows *rows),
                            void *arg, size_t *damaged);
/*
 * The series of a kind one after the other, 0 after the last; *at starts at 0.
 *   for (size_t at = 0; (series = nrg_recording_next_series(r, kind, &at));)
 */
int nrg_recording_next_series(const struct nrg_recording *recording, enum nrg_series_kind kind,
                              size_t *at);
/* The same as an array: returns how many there are, fills up to max. */
size_t nrg_recording_series_of(const struct nrg_recording *recording, enum nrg_series_kind kind,
                               int *series, size_t max);

/* Wall-clock time of a monotonic one, by the nearest clock pair; 0 when there is none. */
int64_t nrg_recording_realtime_ns(const struct nrg_recording *recording, int64_t mono_ns);

#endif
