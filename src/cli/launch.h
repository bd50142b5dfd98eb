/*
 * Starting the measured command without changing anything about it: it shares our terminal,
 * process group, descriptors and limits, and gets the signal dispositions that we were started
 * with. Terminal signals reach it directly; signals sent to nrg alone are passed on.
 */
#ifndef NRG_CLI_LAUNCH_H
#define NRG_CLI_LAUNCH_H

#include <sys/types.h>

#include "base/error.h"

/* The child's pid, or -errno: -ENOENT, -EACCES… from exec, with err filled. */
pid_t nrg_launch(char *const *argv, struct nrg_error *err);

/* Passes signals that are sent to nrg on to `child` (0: nobody) until called again. */
void nrg_launch_forward_to(pid_t child);

/* Becomes the reaper of orphaned descendants, so that they stay in the tree. */
void nrg_launch_adopt_orphans(void);

#endif
