/*
 * What nrgd gives up before the first client is heard, by itself, whatever its unit says: all
 * capabilities but those that open sensors, new ones through exec, and every system call that its
 * loop does not make (no socket, no exec, no opening for writing, no executable memory, nothing
 * about other processes).
 *
 * 0 or a negative errno with the reason in err. For the whole process, for good: call it once, in
 * the only thread.
 */
#ifndef NRG_DAEMON_GUARD_H
#define NRG_DAEMON_GUARD_H

#include <stdbool.h>

#include "base/error.h"

/* Keeps CAP_PERFMON, and CAP_SYS_RAWIO where it was given (registers). */
int nrg_guard_capabilities(struct nrg_error *err);

/*
 * -ENOTSUP: no filter for this kind of machine. has_tree: a captured tree is to be read (--root),
 * which takes a call whose flags a filter can't see; it allows opening for writing.
 */
int nrg_guard_system_calls(bool has_tree, struct nrg_error *err);

#endif
