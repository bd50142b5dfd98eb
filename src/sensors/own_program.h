/*
 * The program that runs now, as a remedy that gives it capabilities must see it (fixes.h): where it
 * is, and who else could put another one in its place. Any thread.
 */
#ifndef NRG_SENSORS_OWN_PROGRAM_H
#define NRG_SENSORS_OWN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

/* Its file; "" when that is not known as a whole. */
void nrg_program_path(char path[PATH_MAX]);

/* It does not lie in a build folder, which has the file that it is built by. */
bool nrg_program_is_installed(void);

/* Root alone can write it, and each folder and link that leads to it; and a shell takes its path as
 * it stands. */
bool nrg_program_is_closed(void);

/* Without quotes a shell takes this path for itself, or for those that its '*' stands for. */
bool nrg_is_plain_path(const char *path);

#endif
