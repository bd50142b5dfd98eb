/*
 * Libraries of others that the program works with, by what they say of themselves while it runs: a
 * dynamic one may be another than the one that it was compiled with. Here, because recordings are
 * where SQLite and zstd are used.
 */
#ifndef NRG_RECORD_LIBRARIES_H
#define NRG_RECORD_LIBRARIES_H

#include <limits.h>
#include <stdbool.h>

enum { NRG_LIBRARIES = 4 };

struct nrg_library {
    const char *name;
    char version[32]; /* "" where it could not be loaded */
    bool bundled;     /* it is part of this program */
    /* A dynamic one's file; of one that is bundled the system's package that it came from, "" if
     * none is known. */
    char place[PATH_MAX];
};

void nrg_libraries_list(struct nrg_library libraries[NRG_LIBRARIES]);

#endif
