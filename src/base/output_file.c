/* See output_file.h. */
#include "base/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input.h"

#define MODE 0666

static int fail_to_open(const char *path, int code, struct nrg_error *err)
{
    if (code == -ENXIO)
        return nrg_fail(err, code, path,
                        "cannot write: it is a FIFO that nobody reads, or a device");
    return nrg_fail(err, code, path, "cannot write: %s%s", strerror(-code),
                    code == -EEXIST ? " (--force overwrites)" : "");
}

/* Opened without waiting; what is cut is a regular file. */
static FILE *use_descriptor(int fd, const char *path, struct nrg_error *err)
{
    struct stat st;
    bool failed =
        fstat(fd, &st) || (S_ISREG(st.st_mode) && ftruncate(fd, 0)) || fcntl(fd, F_SETFL, 0);
    FILE *out = failed ? NULL : fdopen(fd, "w");
    if (!out) {
        fail_to_open(path, -errno, err);
        close(fd);
    }
    return out;
}

FILE *nrg_output_file(const char *path, bool overwrite, struct nrg_error *err)
{
    int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    if (overwrite && nrg_is_database(path)) {
        nrg_fail(err, -EEXIST, path, "is a recording, which is not overwritten: give another name");
        return NULL;
    }
    int fd = open(path, overwrite ? flags : flags | O_EXCL, MODE);
    if (fd < 0)
        fail_to_open(path, -errno, err);
    return fd < 0 ? NULL : use_descriptor(fd, path, err);
}

FILE *nrg_output_private(const char *path, struct nrg_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (fd < 0)
        nrg_fail(err, -errno, path, "cannot write: %s%s", strerror(errno),
                 errno == EEXIST ? " (give another name: nothing is overwritten)" : "");
    return fd < 0 ? NULL : use_descriptor(fd, path, err);
}
