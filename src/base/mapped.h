/*
 * A file mapped for reading, which somebody may shorten meanwhile: touching what is gone raises
 * SIGBUS. While a file is mapped here, such a page becomes one of zeros instead, the parser goes on
 * (it trusts nothing anyway), and close says that the file was cut.
 *
 * Embedded: open, close. State: the mapped ranges of the process, which a signal handler needs; few
 * at a time. Threads: one at a time.
 */
#ifndef NRG_BASE_MAPPED_H
#define NRG_BASE_MAPPED_H

#include <stddef.h>

struct nrg_mapped {
    void *bytes;
    size_t size;
};

/* 0 or -errno, then nothing is mapped. */
int nrg_mapped_open(struct nrg_mapped *m, int fd, size_t size);
/* 0, or -EIO: the file became shorter while it was read. */
int nrg_mapped_close(struct nrg_mapped *m);

/*
 * For a program that maps files through others, as SQLite does with the index of a log, beside a
 * process that may cut them: from now on a page that is gone becomes one of zeros, which whoever
 * mapped it takes for damage. For the rest of the process.
 */
void nrg_mapped_survive(void);

#define NRG_MAPPED_CUT "was cut while it was read"

#endif
