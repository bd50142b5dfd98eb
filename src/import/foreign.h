/*
 * Files that people try and that are no log of power or times, named so that the error says what
 * they are and, where there is one, the way on. Nothing is read from them but their beginning.
 * No state; any thread.
 */
#ifndef NRG_IMPORT_FOREIGN_H
#define NRG_IMPORT_FOREIGN_H

#include <stddef.h>
#include <stdio.h>

#include "base/error.h"

/* What the file's first line shows it to be; NULL: nothing that it knows. */
const char *nrg_import_foreign(const char *line, size_t len);

/* The same with what the file's name tells, for formats that have no line. */
const char *nrg_import_foreign_file(const char *path, const char *line, size_t len);

/* Says what the JSON in `in` is, which is rewound; -EINVAL, or 0 when it is no JSON object. */
int nrg_import_foreign_json(FILE *in, const char *path, struct nrg_error *err);

#endif
