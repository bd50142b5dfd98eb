/*
 * Capabilities of the program's file (setcap), which are for opening sensors and for nothing else.
 * nrg has many parsers of files that others wrote: none of them runs with a capability.
 *
 * Only what the file gave is given up. As root, or with ambient capabilities, nrg has what its
 * caller has, and so has the command that it starts; the inheritable set is the caller's as well.
 */
#ifndef NRG_CLI_PRIVILEGE_H
#define NRG_CLI_PRIVILEGE_H

#include <stdbool.h>

/*
 * Gives them up for good. Of the calling thread: call it before others are started. True if there
 * were any. nrg stays closed to other processes of the user (not dumpable): open descriptors of
 * sensors, of MSRs say, are worth as much as the capabilities.
 */
bool nrg_privilege_drop(void);

/*
 * For a process that holds what others entrusted to it: from now on its memory goes into no core
 * dump, and no other process of the user reads it (not dumpable, RLIMIT_CORE 0). Programs that were
 * started before, of meters, keep their limit.
 */
void nrg_privilege_hide_memory(void);

/*
 * For root in the place of a user, after seteuid(): what the program's file would give to the user
 * takes effect. Without such, and where file systems give nothing (nosuid), nothing changes.
 */
void nrg_privilege_of_file(void);

#endif
