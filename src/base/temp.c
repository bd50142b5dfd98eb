/* See temp.h. */
#include "base/temp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const char *nrg_temp_dir(void)
{
    const char *given = getenv("TMPDIR");
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
