/*
 * Growing arrays and strings. Owners embed the struct and release it; all functions return
 * -ENOMEM instead of aborting, because a workload under measurement must outlive us.
 */
#ifndef NRG_BASE_MEM_H
#define NRG_BASE_MEM_H

#include <stddef.h>
#include <string.h>

/* Makes room for `need` elements of `size` bytes in *items (capacity in *cap, doubled). */
int nrg_reserve(void *items, size_t *cap, size_t need, size_t size);

/* Adds a copy of *item, of `size` bytes, to the *n elements of *items. 0 or -ENOMEM. */
static inline int nrg_append(void *items, size_t *n, size_t *cap, const void *item, size_t size)
{
    int rc = nrg_reserve(items, cap, *n + 1, size);
    if (!rc) {
        char *first;
        memcpy(&first, items, sizeof first);
        memcpy(first + (*n)++ * size, item, size);
    }
    return rc;
}

struct nrg_str {
    char *text; /* NUL-terminated once anything was added; NULL when empty */
    size_t len, cap;
};

int nrg_str_add(struct nrg_str *s, const char *text, size_t len);
int nrg_str_addf(struct nrg_str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void nrg_str_release(struct nrg_str *s);

/* Copies at most size-1 bytes and terminates; never fails, cuts silently (labels, names). */
void nrg_copy(char *dst, size_t size, const char *src);

/*
 * Copies text from a file for people to read: bytes that are not valid UTF-8 and control
 * characters become '?', trailing white space goes.
 */
void nrg_copy_clean(char *dst, size_t size, const char *src, size_t len);

#endif
