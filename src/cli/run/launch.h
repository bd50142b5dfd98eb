/*
 * Starting the measured command without changing anything about it: it shares our terminal,
 * process group, descriptors and limits, and gets the signal dispositions that we were started
 * with. Signals of the terminal and to the group reach it directly; signals sent to nrg alone are
 * passed on. When it stops, nrg stops with it, so that a shell gets its terminal back.
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

/* The child was waited for: its pid may be reused. From now on signals are for nrg. */
void nrg_launch_ended(void);

/* A signal that asks nrg to end gives it some seconds to finish; a second one ends it at once. */
void nrg_launch_catch_late(void);
/* Finished: dies of such a signal, if one came. */
void nrg_launch_die_late(void);

/* A child of nrg's has stopped, perhaps the command: nrg stops as well where a shell would want
 * that, and continues the command when it is continued itself. */
void nrg_launch_stopped(pid_t pid);

/* True once a signal has asked nrg to end: nothing new should be started. */
bool nrg_launch_asked_to_end(void);

/* When the reader of our output goes away, the write fails instead of SIGPIPE ending nrg. */
void nrg_launch_survive_pipes(void);

/* Becomes the reaper of orphaned descendants, so that they stay in the tree, and starts what tells
 * signals to the group from others (witness.h); that keeps one descriptor, or none (-1). */
void nrg_launch_prepare(char *const *argv, int kept_fd);

#endif
