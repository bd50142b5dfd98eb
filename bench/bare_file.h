/*
 * For bare_loop: what it costs to keep readings in the format that nrg has, without nrg. A failure
 * ends the program. One thread.
 */
#ifndef NRG_BENCH_BARE_FILE_H
#define NRG_BENCH_BARE_FILE_H

struct sqlite3;

struct sqlite3 *bare_file_open(const char *path);
/* Three chunks (samples, load, processes) in one transaction. */
void bare_file_commit(struct sqlite3 *db);
/* The index, and one file instead of three. */
void bare_file_close(struct sqlite3 *db);

#endif
