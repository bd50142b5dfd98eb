/*
 * Temporary folders and files. Errors are negative errno. Thread-safe as far as getenv is.
 */
#ifndef NRG_BASE_TEMP_H
#define NRG_BASE_TEMP_H

#include <stddef.h>
#include <stdio.h>

/* $TMPDIR, or /tmp where that is not set or empty. */
const char *nrg_temp_dir(void);
/* Makes a folder NAME-XXXXXX there that is this user's alone; `path` is "" on failure. */
int nrg_temp_folder(char *path, size_t size, const char *name);
/* A file there without a name, for writing and reading. NULL with errno. */
FILE *nrg_temp_file(void);

#endif
