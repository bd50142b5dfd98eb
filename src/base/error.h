/*
 * Errors. A function that can fail returns 0 (or a count) or a negative errno, and fills one
 * struct nrg_error, once, at the place that knows the reason: what went wrong, in which file,
 * at which byte. Callers hand it up unchanged; only src/cli turns it into text on stderr.
 * `err` may be NULL everywhere. No allocation, no globals, safe from any thread.
 */
#ifndef NRG_BASE_ERROR_H
#define NRG_BASE_ERROR_H

#include <stddef.h>

struct nrg_error {
    int code;         /* negative errno */
    long long offset; /* byte offset or line number in `where`, -1 when it has no meaning */
    char where[256];  /* file, device or option; empty when there is none */
    char what[1000];  /* one line, no full stop, says what to do when that is known */
};

/* Fills err and returns code, so that `return nrg_fail(...)` reads as one step. */
int nrg_fail_at(struct nrg_error *err, int code, const char *where, long long offset,
                const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* The same without an offset; the arguments that follow are the format and its values. */
#define nrg_fail(err, code, where, ...) nrg_fail_at(err, code, where, -1, __VA_ARGS__)

/* "where:offset: what", as one line. Returns buf. */
const char *nrg_error_text(const struct nrg_error *err, char *buf, size_t size);

#endif
