/*
 * See isolate.h. A VFS before SQLite's own: what touches a descriptor is called in the thread that
 * has the other table. Without the methods of version 3, SQLite maps no files, but for the index of
 * its log, which is memory once it is there.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "record/isolate.h"

struct file {
    sqlite3_file base;
    sqlite3_file *real; /* behind this struct */
};

struct call {
    enum {
        OPEN,
        CLOSE,
        READ,
        WRITE,
        TRUNCATE,
        SYNC,
        SIZE,
        LOCK,
        UNLOCK,
        CHECK_LOCK,
        CONTROL,
        SECTOR,
        DEVICE,
        SHM_MAP,
        SHM_LOCK,
        SHM_UNMAP
    } what;
    sqlite3_file *real;
    sqlite3_vfs *vfs;
    const char *name;
    void *out;
    const void *in;
    int a, b, c, rc;
    sqlite3_int64 offset;
};

static int perform_shm(const struct call *c)
{
    const sqlite3_io_methods *m = c->real->pMethods;
    switch (c->what) {
    case SHM_MAP:
        return m->xShmMap(c->real, c->a, c->b, c->c, c->out);
    case SHM_LOCK:
        return m->xShmLock(c->real, c->a, c->b, c->c);
    default:
        return m->xShmUnmap(c->real, c->a);
    }
}

static int perform_lock(const struct call *c)
{
    const sqlite3_io_methods *m = c->real->pMethods;
    switch (c->what) {
    case LOCK:
        return m->xLock(c->real, c->a);
    case UNLOCK:
        return m->xUnlock(c->real, c->a);
    case CHECK_LOCK:
        return m->xCheckReservedLock(c->real, c->out);
    case CONTROL:
        return m->xFileControl(c->real, c->a, c->out);
    case SECTOR:
        return m->xSectorSize(c->real);
    case DEVICE:
        return m->xDeviceCharacteristics(c->real);
    default:
        return perform_shm(c);
    }
}

static void perform(void *arg)
{
    struct call *c = arg;
    const sqlite3_io_methods *m = c->real->pMethods;
    switch (c->what) {
    case OPEN:
        c->rc = c->vfs->xOpen(c->vfs, c->name, c->real, c->a, c->out);
        break;
    case CLOSE:
        c->rc = m->xClose(c->real);
        break;
    case READ:
        c->rc = m->xRead(c->real, c->out, c->a, c->offset);
        break;
    case WRITE:
        c->rc = m->xWrite(c->real, c->in, c->a, c->offset);
        break;
    case TRUNCATE:
        c->rc = m->xTruncate(c->real, c->offset);
        break;
    case SYNC:
        c->rc = m->xSync(c->real, c->a);
        break;
    case SIZE:
        c->rc = m->xFileSize(c->real, c->out);
        break;
    default:
        c->rc = perform_lock(c);
    }
}

static int hand_over(sqlite3_file *f, struct call c)
{
    c.real = ((struct file *)f)->real;
    nrg_isolate_call(perform, &c);
    return c.rc;
}

static int file_close(sqlite3_file *f)
{
    return hand_over(f, (struct call){.what = CLOSE});
}

static int file_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
    return hand_over(f, (struct call){.what = READ, .out = to, .a = n, .offset = at});
}

static int file_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
    return hand_over(f, (struct call){.what = WRITE, .in = from, .a = n, .offset = at});
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return hand_over(f, (struct call){.what = TRUNCATE, .offset = size});
}

static int file_sync(sqlite3_file *f, int flags)
{
    return hand_over(f, (struct call){.what = SYNC, .a = flags});
}

static int file_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return hand_over(f, (struct call){.what = SIZE, .out = size});
}

static int file_lock(sqlite3_file *f, int level)
{
    return hand_over(f, (struct call){.what = LOCK, .a = level});
}

static int file_unlock(sqlite3_file *f, int level)
{
    return hand_over(f, (struct call){.what = UNLOCK, .a = level});
}

static int file_check_lock(sqlite3_file *f, int *out)
{
    return hand_over(f, (struct call){.what = CHECK_LOCK, .out = out});
}

static int file_control(sqlite3_file *f, int op, void *arg)
{
    return hand_over(f, (struct call){.what = CONTROL, .a = op, .out = arg});
}

static int file_sector(sqlite3_file *f)
{
    return hand_over(f, (struct call){.what = SECTOR});
}

static int file_device(sqlite3_file *f)
{
    return hand_over(f, (struct call){.what = DEVICE});
}

static int shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **out)
{
    return hand_over(
        f, (struct call){.what = SHM_MAP, .a = page, .b = size, .c = extend, .out = (void *)out});
}

static int shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return hand_over(f, (struct call){.what = SHM_LOCK, .a = offset, .b = n, .c = flags});
}

static void shm_barrier(sqlite3_file *f)
{
    sqlite3_file *real = ((struct file *)f)->real;
    real->pMethods->xShmBarrier(real);
}

static int shm_unmap(sqlite3_file *f, int remove)
{
    return hand_over(f, (struct call){.what = SHM_UNMAP, .a = remove});
}

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out_flags)
{
    static const sqlite3_io_methods methods = {
        2,           file_close, file_read,   file_write,      file_truncate, file_sync,
        file_size,   file_lock,  file_unlock, file_check_lock, file_control,  file_sector,
        file_device, shm_map,    shm_lock,    shm_barrier,     shm_unmap,     NULL,
        NULL};
    struct file *own = (struct file *)f;
    own->real = (sqlite3_file *)(own + 1);
    own->real->pMethods = NULL;
    int rc = hand_over(
        f, (struct call){
               .what = OPEN, .vfs = vfs->pAppData, .name = name, .a = flags, .out = out_flags});
    /* SQLite closes what has methods, also after a failure. */
    f->pMethods = own->real->pMethods ? &methods : NULL;
    return rc;
}

/* Stays for the life of the process, as the object that holds this code does. */
int nrg_isolate_register_vfs(const char *name)
{
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    if (sqlite3_vfs_find(name))
        return 0;
    sqlite3_vfs *own = real && real->iVersion >= 1 ? malloc(sizeof *own) : NULL;
    if (!own)
        return -ENOMEM;
    *own = *real;
    own->zName = name;
    own->szOsFile = (int)sizeof(struct file) + real->szOsFile;
    own->pAppData = real;
    own->pNext = NULL;
    own->xOpen = vfs_open;
    return sqlite3_vfs_register(own, 0) == SQLITE_OK ? 0 : -EIO;
}
