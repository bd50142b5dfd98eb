/*
 * The names in a folder without allocating, for what is read while a workload runs: opendir would
 * allocate. The caller's descriptor; any thread.
 */
#ifndef NRG_BASE_DIR_H
#define NRG_BASE_DIR_H

#include <stdbool.h>

/* Calls `each` with every name of the folder behind fd, from where it stands, until it says false.
 */
void nrg_dir_each(int fd, bool (*each)(void *arg, int fd, const char *name), void *arg);

#endif
