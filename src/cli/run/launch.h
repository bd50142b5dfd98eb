/*
 * Starting the measured command without changing anything about it: it shares our terminal,
 * process group, descriptors and limits, and gets the signal dispositions that we were started
 * with. Terminal signals reach it directly; signals sent to nrg alone are passed on.
 */
#ifndef NRG_CLI_RUN_LAUNCH_H
#define NRG_CLI_RUN_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* What the command gets in addition to our own environment and descriptors. */
struct nrg_launch_gift {
    const char *variable; /* NAME=VALUE; NULL: no gift */
    int fd;               /* stays open */
};

/*
 * The child's pid, or -errno: -ENOENT, -EACCES... from exec, with err filled. From now on signals
 * that are sent to nrg are passed on to it.
 */
pid_t nrg_launch(char *const *argv, const struct nrg_launch_gift *gift, struct nrg_error *err);

/* The child was waited for: its pid may be reused. */
void nrg_launch_ended(void);

/* True once a signal has asked nrg to end: nothing new should be started. */
bool nrg_launch_asked_to_end(void);

/* When the reader of our output goes away, the write fails instead of SIGPIPE ending nrg. */
void nrg_launch_survive_pipes(void);

/* Becomes the reaper of orphaned descendants, so that they stay in the tree. */
void nrg_launch_adopt_orphans(void);

#endif
