/*
 * See new_file.h. The order is: data synced, log of an overwritten recording removed, folder
 * synced, name given, folder synced. A disk may bring what was not synced in any order: with
 * another one, a power cut could show an empty file, or a new recording with the log of the old
 * one.
 *
 * An anonymous file (O_TMPFILE) leaves nothing behind when nrg is killed. Where a file system does
 * not have it, the file has a temporary name for a moment.
 */
#include "record/store/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/store/beside.h"
#include "record/store/vfs.h"

#define MODE  0644
#define TRIES 100 /* for a temporary name that is free */

static const char *const log_suffixes[] = {NRG_BESIDE_LOG, NRG_BESIDE_JOURNAL, NRG_BESIDE_INDEX};

static int fail_to_create(struct nrg_error *err, const char *path, int error)
{
    if (error == EEXIST)
        return nrg_fail(err, -EEXIST, path, "exists already: give another --output, or --force");
    return nrg_fail(err, -error, path, "cannot create the recording: %s", strerror(error));
}

/* A recorder, and SQLite wherever it reads, hold a shared lock of the file. */
static int check_unused(const char *path, struct nrg_error *err)
{
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = NRG_SQLITE_SHARED_FIRST,
                         .l_len = NRG_SQLITE_SHARED_SIZE};
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    bool used = !fcntl(fd, F_OFD_GETLK, &lock) && lock.l_type != F_UNLCK;
    close(fd);
    return used ? nrg_fail(err, -EBUSY, path,
                           "is in use by another program, such as nrg run: give another --output")
                : 0;
}

/* Links are refused: through one, a recording would take the place of a file that was not named. */
static int check_target(const char *path, bool overwrite, struct nrg_error *err)
{
    struct stat st;
    if (lstat(path, &st))
        return errno == ENOENT ? nrg_beside_check(path, err) : fail_to_create(err, path, errno);
    if (S_ISLNK(st.st_mode))
        return nrg_fail(err, -ELOOP, path, "is a symbolic link: give the file itself");
    if (!S_ISREG(st.st_mode))
        return nrg_fail(err, -EINVAL, path, "is not a regular file");
    if (!overwrite)
        return fail_to_create(err, path, EEXIST);
    int rc = check_unused(path, err);
    return rc ? rc : nrg_beside_check(path, err);
}

/* False when the path is too long. */
static bool find_folder(const char *path, char folder[PATH_MAX])
{
    char copy[PATH_MAX];
    if (strlen(path) >= sizeof copy)
        return false;
    strcpy(copy, path);
    snprintf(folder, PATH_MAX, "%s", dirname(copy));
    return true;
}

/*
 * Gives the anonymous file a temporary name, or creates one that has it. 0 or a negative errno.
 */
static int take_temporary_name(struct nrg_new_file *p)
{
    char folder[PATH_MAX], name[PATH_MAX + 64], self[64];
    int rc = -1;
    if (!find_folder(p->path, folder))
        return -ENAMETOOLONG;
    snprintf(self, sizeof self, "/proc/self/fd/%d", p->fd);
    errno = EEXIST;
    for (int i = 0; i < TRIES && rc < 0 && errno == EEXIST; i++) {
        snprintf(name, sizeof name, "%s/.nrg-%d-%d.new", folder, (int)getpid(), i);
        if (p->fd >= 0)
            rc = linkat(AT_FDCWD, self, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
        else
            rc = p->fd = open(name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, MODE);
    }
    if (rc < 0)
        return -errno;
    p->temporary = strdup(name);
    if (p->temporary)
        return 0;
    unlink(name);
    return -ENOMEM;
}

int nrg_new_file_claim(struct nrg_new_file *p, const char *path, bool overwrite,
                       struct nrg_error *err)
{
    char folder[PATH_MAX];
    *p = (struct nrg_new_file){.fd = -1, .overwrite = overwrite, .path = strdup(path)};
    if (!p->path)
        return nrg_fail(err, -ENOMEM, path, "out of memory");
    int rc = check_target(path, overwrite, err);
    if (rc)
        return rc;
    if (!find_folder(path, folder))
        return fail_to_create(err, path, ENAMETOOLONG);
    if (!access("/proc/self/fd", X_OK)) /* the only way to give it a name without privileges */
        p->fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, MODE);
    if (p->fd < 0 && (rc = take_temporary_name(p)))
        return fail_to_create(err, path, -rc);
    return 0;
}

/* From the beginning: an earlier try that failed may have left bytes. */
static int write_synced(int fd, const char *bytes, size_t size)
{
    if (lseek(fd, 0, SEEK_SET) || ftruncate(fd, 0))
        return -errno;
    while (size) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? -errno : -EIO;
        bytes += n;
        size -= (size_t)n;
    }
    /* EINVAL: a file system that can't. */
    return fdatasync(fd) && errno != EINVAL ? -errno : 0;
}

/* As well as the folder permits: one that can't be read can't be synced. */
static void sync_folder(const struct nrg_new_file *p)
{
    char folder[PATH_MAX];
    if (!find_folder(p->path, folder))
        return;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    fsync(fd);
    close(fd);
}

/* What is left of a recording of that name. Without --force nothing is ever removed. */
static int clear_logs(const struct nrg_new_file *p, struct nrg_error *err)
{
    bool removed = false;
    for (size_t i = 0; i < sizeof log_suffixes / sizeof *log_suffixes; i++) {
        char log[PATH_MAX + 16];
        struct stat st;
        snprintf(log, sizeof log, "%s%s", p->path, log_suffixes[i]);
        if (lstat(log, &st))
            continue;
        if (!p->overwrite)
            return nrg_fail(err, -EEXIST, log,
                            "is left of another recording: remove it, or give --force");
        if (!nrg_beside_is_own(log))
            return nrg_beside_check(p->path, err);
        if (unlink(log))
            return nrg_fail(err, -errno, log, "is in the way and can't be removed: %s",
                            strerror(errno));
        removed = true;
    }
    if (removed)
        sync_folder(p);
    return 0;
}

/* Not every file system has the one, not every one the other. */
static int rename_if_free(const char *from, const char *to)
{
    if (!renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE))
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -1;
    return link(from, to) ? -1 : unlink(from);
}

static int give_name(struct nrg_new_file *p)
{
    char self[64];
    if (p->overwrite && !p->temporary) {
        int rc = take_temporary_name(p);
        if (rc)
            return rc;
    }
    snprintf(self, sizeof self, "/proc/self/fd/%d", p->fd);
    int rc = !p->temporary  ? linkat(AT_FDCWD, self, AT_FDCWD, p->path, AT_SYMLINK_FOLLOW)
             : p->overwrite ? rename(p->temporary, p->path)
                            : rename_if_free(p->temporary, p->path);
    if (rc)
        return -errno;
    free(p->temporary);
    p->temporary = NULL;
    p->published = true;
    return 0;
}

int nrg_new_file_publish(struct nrg_new_file *p, const void *bytes, size_t size,
                         struct nrg_error *err)
{
    int rc = write_synced(p->fd, bytes, size);
    if (rc)
        return nrg_fail(err, rc, p->path, "cannot write the recording: %s", strerror(-rc));
    if ((rc = clear_logs(p, err)))
        return rc;
    if ((rc = give_name(p)))
        return fail_to_create(err, p->path, -rc);
    sync_folder(p);
    close(p->fd);
    p->fd = -1;
    return 0;
}

void nrg_new_file_release(struct nrg_new_file *p)
{
    if (p->fd >= 0)
        close(p->fd);
    if (p->temporary)
        unlink(p->temporary);
    free(p->temporary);
    free(p->path);
    *p = (struct nrg_new_file){.fd = -1};
}
