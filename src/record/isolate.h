/*
 * A table of descriptors of its own for the recorder inside a measured program. A program may close
 * all descriptors that it does not know (daemons do) and open files of its own under the same
 * numbers; a recorder in the same table would go on writing, into those files.
 *
 * One thread of the process has a table that is not shared with the program's. What must not be
 * reached is done there (call), or by threads that it starts, which share its table. SQLite's files
 * get there through a VFS of this name, which hands its calls over.
 *
 * State: one per process, because there is one recorder in a process. Threads: any.
 */
#ifndef NRG_RECORD_ISOLATE_H
#define NRG_RECORD_ISOLATE_H

#include <pthread.h>

/* Starts the thread and registers the VFS. Where the kernel or a container's filter refuses, all
 * stays in the program's table. May be called again. */
void nrg_isolate_begin(void);
/* In a child after fork: the thread is the parent's. */
void nrg_isolate_forget(void);

/* Does it in the other table and waits; at once where there is none, or when already there. */
void nrg_isolate_call(void (*call)(void *), void *arg);
/* As nrg_thread_start (record/thread.h), in the other table. */
int nrg_isolate_thread(pthread_t *thread, const char *name, void *(*run)(void *), void *arg);

/* For sqlite3_open_v2; NULL: SQLite's own. */
const char *nrg_isolate_vfs(void);
/* isolate_vfs.c. 0 or -errno. */
int nrg_isolate_register_vfs(const char *name);

#endif
