/*
 * Growing arrays and strings. Owners embed the struct and release it; all functions return
 * -ENOMEM instead of aborting, because a workload under measurement must outlive us.
 */
#ifndef NRG_BASE_MEM_H
#define NRG_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/*
 * That memory was lacking is remembered for the thread, as ferror() remembers for a stream: what
 * was computed since then may lack something, even if a caller dropped the -ENOMEM on the way. Who
 * shows a result asks once, at its end. It is set by everything here, by arenas and by JSON
 * (json/memory.h), and can be set by others. The one state outside of structs, because it is there
 * for results that got lost between them.
 */
void nrg_memory_lacked(void);
bool nrg_memory_is_lacking(void);

/* calloc() that remembers it. */
void *nrg_calloc(size_t n, size_t size);

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

/* Length of the well-formed UTF-8 sequence at p, 0 when it is not one; its character in *code. */
size_t nrg_utf8_len(const unsigned char *p, size_t left, unsigned *code);
/*
 * Characters that a text must not bring to a terminal: C0, DEL, C1 (U+0080 to U+009F), line and
 * paragraph separators, and those that turn the direction of what follows.
 */
bool nrg_is_control(unsigned code);

/* Copies at most size-1 bytes and terminates; never fails, cuts silently (labels, names). */
void nrg_copy(char *dst, size_t size, const char *src);

/* The same where a part of the text would be another one (paths, commands, names that are
 * compared): 0, or -ENAMETOOLONG and "". */
int nrg_copy_whole(char *dst, size_t size, const char *src);

/*
 * Copies text from a file for people to read: bytes that are not valid UTF-8 and characters of
 * nrg_is_control become '?', trailing white space goes.
 */
void nrg_copy_clean(char *dst, size_t size, const char *src, size_t len);

#endif
