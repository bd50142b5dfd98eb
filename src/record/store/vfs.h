/*
 * A file layer of SQLite for one database. Those of readers (source.c) and writers (target.c) begin
 * with it; both ask the system's for what they do not do themselves.
 *
 * Ownership: once opened, the layer belongs to the database, whose closing calls `release`. Errors:
 * SQLite codes. Threads: a database in one at a time.
 */
#ifndef NRG_RECORD_STORE_VFS_H
#define NRG_RECORD_STORE_VFS_H

#include <sqlite3.h>
#include <stdbool.h>

/* Bytes of a database's file that programs lock to agree with each other:
 * sqlite.org/lockingv3.html, fileformat2.html. */
#define NRG_SQLITE_PENDING_BYTE  0x40000000
#define NRG_SQLITE_RESERVED_BYTE (NRG_SQLITE_PENDING_BYTE + 1) /* of whoever is about to write */
#define NRG_SQLITE_SHARED_FIRST  (NRG_SQLITE_PENDING_BYTE + 2)
#define NRG_SQLITE_SHARED_SIZE   510

struct nrg_vfs {
    sqlite3_vfs vfs; /* first: SQLite hands it back */
    sqlite3_vfs *system;
    void (*release)(struct nrg_vfs *vfs);
    char name[40];
    bool tied; /* the database releases it */
};

/* After the functions of vfs->vfs are set. */
void nrg_vfs_init(struct nrg_vfs *vfs, sqlite3_vfs *system, void (*release)(struct nrg_vfs *vfs));
/* `first` is SQL that runs before anything is read. After an error *db is NULL and the layer is
 * released. */
int nrg_vfs_open(struct nrg_vfs *vfs, const char *path, int flags, const char *first, sqlite3 **db);

#endif
