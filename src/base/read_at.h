/* Reading at a place of a file. In a file of its own, because the recorder inside a program has it,
 * too, and nothing else of what reads files. */
#ifndef NRG_BASE_READ_AT_H
#define NRG_BASE_READ_AT_H

#include <sys/types.h>

/* pread(2) until all is read or there is no more: how much was read, or -errno. */
ssize_t nrg_read_at(int fd, void *bytes, size_t size, off_t offset);

#endif
