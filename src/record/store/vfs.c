/*
 * See vfs.h. SQLite finds a layer by its name, once, when it opens a database: it is registered for
 * that moment only, so there is nothing that all databases of a process share.
 */
#include "record/store/vfs.h"

#include <stdio.h>

void nrg_vfs_init(struct nrg_vfs *vfs, sqlite3_vfs *system, void (*release)(struct nrg_vfs *vfs))
{
    vfs->system = system;
    vfs->release = release;
    snprintf(vfs->name, sizeof vfs->name, "nrg-%p", (void *)vfs);
    vfs->vfs.zName = vfs->name;
    vfs->vfs.pNext = NULL;
}

static void never_called(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)context, (void)n, (void)values;
}

static void release_tied(void *arg)
{
    struct nrg_vfs *vfs = arg;
    if (vfs->tied)
        vfs->release(vfs);
}

/* A function's user data is released when the database has closed its files. */
static int tie_to(struct nrg_vfs *vfs, sqlite3 *db)
{
    int code = sqlite3_create_function_v2(db, "nrg_vfs", 0, SQLITE_UTF8, vfs, never_called, NULL,
                                          NULL, release_tied);
    vfs->tied = code == SQLITE_OK;
    return code;
}

int nrg_vfs_open(struct nrg_vfs *vfs, const char *path, int flags, const char *first, sqlite3 **db)
{
    *db = NULL;
    int code = vfs->system ? sqlite3_vfs_register(&vfs->vfs, 0) : SQLITE_NOMEM;
    if (code == SQLITE_OK)
        code = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, vfs->name);
    sqlite3_vfs_unregister(&vfs->vfs);
    if (code == SQLITE_OK)
        code = sqlite3_exec(*db, first, NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = tie_to(vfs, *db);
    if (code == SQLITE_OK)
        return code;
    sqlite3_close(*db);
    *db = NULL;
    vfs->release(vfs);
    return code;
}
