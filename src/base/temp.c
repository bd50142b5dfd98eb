/* See temp.h. */
#include "base/temp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *nrg_temp_dir(void)
{
    const char *given = secure_getenv("TMPDIR");
    return given && *given ? given : "/tmp";
}

int nrg_temp_folder(char *path, size_t size, const char *name)
{
    int len = snprintf(path, size, "%s/%s-XXXXXX", nrg_temp_dir(), name);
    int rc = (size_t)len >= size ? -ENAMETOOLONG : mkdtemp(path) ? 0 : -errno;
    if (rc)
        path[0] = '\0';
    return rc;
}

/* Where the file system has no files without a name, it gets one for a moment. */
FILE *nrg_temp_file(void)
{
    char name[4096];
    int fd = open(nrg_temp_dir(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        int n = snprintf(name, sizeof name, "%s/nrg-XXXXXX", nrg_temp_dir());
        fd = n < (int)sizeof name ? mkostemp(name, O_CLOEXEC) : -1;
        if (fd >= 0)
            unlink(name);
    }
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w+");
    if (!file && fd >= 0)
        close(fd);
    return file;
}
