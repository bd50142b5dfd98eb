/*
 * See target.h. The system's layer does the work; only names beside the file are looked at here. A
 * file of ours that nobody else can have put there: a plain one, of this user, without a second
 * name.
 */
#include "record/store/target.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "record/isolate.h"
#include "record/store/beside.h"
#include "record/store/vfs.h"

/* NAME-wal, NAME-journal: of NAME's mode. False where somebody else's file is in the way. */
static bool claim_beside(const char *name, const char *suffix)
{
    struct stat st;
    char *main = strdup(name);
    if (!main)
        return false;
    main[strlen(name) - strlen(suffix)] = 0;
    mode_t mode = stat(main, &st) ? 0600 : st.st_mode & 0777;
    free(main);
    int fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return nrg_beside_is_own(name);
    bool done = !fchmod(fd, mode);
    close(fd);
    return done;
}

static int target_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                       int *given)
{
    sqlite3_vfs *system = ((struct nrg_vfs *)vfs)->system;
    const char *suffix = flags & SQLITE_OPEN_WAL            ? NRG_BESIDE_LOG
                         : flags & SQLITE_OPEN_MAIN_JOURNAL ? NRG_BESIDE_JOURNAL
                                                            : NULL;
    file->pMethods = NULL;
    if (suffix && (!name || !nrg_ends_with(name, suffix) || !claim_beside(name, suffix)))
        return SQLITE_CANTOPEN;
    return system->xOpen(system, name, file, flags, given);
}

static bool is_beside(const char *name)
{
    return nrg_ends_with(name, NRG_BESIDE_LOG) || nrg_ends_with(name, NRG_BESIDE_JOURNAL);
}

static int target_delete(sqlite3_vfs *vfs, const char *name, int sync)
{
    sqlite3_vfs *system = ((struct nrg_vfs *)vfs)->system;
    return is_beside(name) ? system->xDelete(system, name, sync) : SQLITE_OK;
}

static int target_access(sqlite3_vfs *vfs, const char *name, int flags, int *out)
{
    sqlite3_vfs *system = ((struct nrg_vfs *)vfs)->system;
    *out = 0;
    if (flags == SQLITE_ACCESS_EXISTS &&
        !(nrg_ends_with(name, NRG_BESIDE_LOG) && nrg_beside_is_own(name)))
        return SQLITE_OK;
    return system->xAccess(system, name, flags, out);
}

static void release_target(struct nrg_vfs *vfs)
{
    free(vfs);
}

int nrg_target_open(const char *path, const char *first, sqlite3 **db)
{
    sqlite3_vfs *system = sqlite3_vfs_find(nrg_isolate_vfs());
    /* There is no system's layer when SQLite lacks the memory to begin. */
    struct nrg_vfs *target = system ? calloc(1, sizeof *target) : NULL;
    *db = NULL;
    if (!target)
        return SQLITE_NOMEM;
    target->vfs = *system;
    target->vfs.xOpen = target_open;
    target->vfs.xDelete = target_delete;
    target->vfs.xAccess = target_access;
    nrg_vfs_init(target, system, release_target);
    return nrg_vfs_open(target, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, first, db);
}
