/*
 * See beside.h. A hard link counts as foreign: it may be another file of the owner under the name
 * of a log. Empty files say nothing and are left alone.
 */
#include "record/store/beside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4200

static int refuse_foreign(struct nrg_error *err, const char *side, const char *what)
{
    return nrg_fail(err, -EPERM, side,
                    "%s, so it is not trusted: copy the recording alone to a folder of your own",
                    what);
}

/* NULL, or why it is not the owner's. */
static const char *find_fault(const struct stat *st, uid_t owner)
{
    if (S_ISLNK(st->st_mode))
        return "is a link";
    if (!S_ISREG(st->st_mode))
        return "is not a regular file";
    if (st->st_uid != owner && st->st_uid != geteuid())
        return "belongs to somebody other than the recording's owner";
    return st->st_nlink > 1 ? "has a second name (hard link)" : NULL;
}

static int name_side(const char *path, const char *suffix, char *side, struct nrg_error *err)
{
    int len = snprintf(side, PATH_SIZE, "%s%s", path, suffix);
    return len >= PATH_SIZE ? nrg_fail(err, -ENAMETOOLONG, path, "the path is too long") : 0;
}

int nrg_beside_open(const char *path, const char *suffix, uid_t owner, struct nrg_beside *file,
                    struct nrg_error *err)
{
    char side[PATH_SIZE];
    struct stat st;
    *file = (struct nrg_beside){.fd = -1};
    int rc = name_side(path, suffix, side, err);
    if (rc || lstat(side, &st))
        return rc;
    int fd = S_ISREG(st.st_mode)
                 ? open(side, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
                 : -1;
    if (S_ISREG(st.st_mode) && fd < 0 && errno == ENOENT)
        return 0; /* its recorder has just ended */
    const char *fault = S_ISREG(st.st_mode) && !st.st_size ? NULL : find_fault(&st, owner);
    if (!fault && fd < 0)
        return st.st_size ? nrg_fail(err, -errno, side, "%s", strerror(errno)) : 0;
    if (!fault && !fstat(fd, &st) && st.st_size)
        fault = find_fault(&st, owner);
    if (fault || !st.st_size) {
        if (fd >= 0)
            close(fd);
        return fault ? refuse_foreign(err, side, fault) : 0;
    }
    *file = (struct nrg_beside){.fd = fd, .bytes = st.st_size};
    return 0;
}

bool nrg_beside_is_own(const char *side)
{
    struct stat st;
    return !lstat(side, &st) && !find_fault(&st, geteuid());
}

int nrg_beside_check(const char *path, struct nrg_error *err)
{
    static const char *const suffixes[] = {NRG_BESIDE_LOG, NRG_BESIDE_INDEX, NRG_BESIDE_JOURNAL};
    char side[PATH_SIZE];
    struct stat st;
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        int rc = name_side(path, suffixes[i], side, err);
        if (rc)
            return rc;
        const char *fault = lstat(side, &st) ? NULL : find_fault(&st, geteuid());
        if (fault)
            return nrg_fail(err, -EPERM, side,
                            "%s: remove it, or give another --output in a folder of your own",
                            fault);
    }
    return 0;
}
