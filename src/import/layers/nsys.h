/*
 * Reports of Nsight Systems that `nsys export --type sqlite` made. nsys_tables.c reads what rows
 * refer to (texts, GPUs, names of threads and domains), nsys.c the rows themselves. Tables are made
 * lazily and columns differ between versions: what is not there is missing, not an error.
 *
 * Nothing of the file is trusted: it is opened as recordings are (record/store/database.h), only
 * plain tables and plain columns are read, one scan each, and texts are bounded by the file's size.
 *
 * Embedded: zeroed, load, release. Errors are negative errno with err. One thread at a time.
 */
#ifndef NRG_IMPORT_LAYERS_NSYS_H
#define NRG_IMPORT_LAYERS_NSYS_H

#include "base/arena.h"
#include "base/map.h"
#include "import/layers/internal.h"

struct sqlite3;
struct sqlite3_stmt;

struct nrg_nsys {
    struct sqlite3 *db;
    const char *path;
    size_t text_left;          /* bytes of texts that may still be kept */
    struct nrg_map text_ids;   /* number: in `texts` */
    struct nrg_map thread_ids; /* globalTid; number: in `texts` */
    struct nrg_map domains;    /* process and domain; number: in `texts` */
    struct nrg_map categories; /* process, domain and category; number: in `texts` */
    const char **texts;        /* from 1 */
    size_t n_texts, cap_texts;
    struct nrg_arena memory;
    struct nrg_nsys_gpu {
        int64_t id;
        char bus[32];
    } * gpus; /* of the machine */
    size_t n_gpus, cap_gpus;
    struct nrg_nsys_device {
        int64_t gpu, cuda, pid;
    } * devices; /* what a process calls them */
    size_t n_devices, cap_devices;
    int64_t start_ns; /* of the session, UTC; 0: not said */
};

/*
 * Calls back with each row of a table: the wanted columns in their order, NULL where the table has
 * no such column. Nothing happens when there is no such table.
 */
int nrg_nsys_scan(struct nrg_nsys *n, const char *table, const char *const *columns,
                  size_t n_columns, int (*each)(void *arg, struct sqlite3_stmt *row), void *arg,
                  struct nrg_error *err);
bool nrg_nsys_has(struct nrg_nsys *n, const char *table);
int nrg_nsys_load(struct nrg_nsys *n, struct nrg_error *err);
void nrg_nsys_release(struct nrg_nsys *n);

/* The text of an id; "": none. */
const char *nrg_nsys_text(const struct nrg_nsys *n, const struct nrg_map *ids, int64_t id);
/* The GPU as nrg counts them, by PCI address, from the number that a process has for it; -1: it
 * can't be one. */
int nrg_nsys_gpu(const struct nrg_nsys *n, int64_t pid, int64_t device);

/* The parts of the numbers that Nsight gives threads and processes. */
static inline int64_t nrg_nsys_pid(int64_t global)
{
    return (int64_t)((uint64_t)global >> 24 & 0xffffff);
}
static inline int64_t nrg_nsys_tid(int64_t global)
{
    return global & 0xffffff;
}
/* The key of a category of a domain of a process; category 0: of the domain. */
static inline int64_t nrg_nsys_scope(int64_t global, int64_t domain, int64_t category)
{
    return (int64_t)((uint64_t)nrg_nsys_pid(global) << 40 ^ (uint64_t)(domain & 0xfffff) << 20 ^
                     (uint64_t)(category & 0xfffff));
}

/* All of it, from an open database; for tests that have one in memory. */
int nrg_nsys_read(struct nrg_layer_import *im, struct sqlite3 *db, struct nrg_error *err);

#endif
