/*
 * PSS, USS and I/O of the workload's processes, every ten seconds on a thread of its own: reading
 * smaps_rollup walks a process's page tables and may take milliseconds.
 *
 * Life: new, start, stop, free (which stops). The tree and the queue outlive it. Errors: a negative
 * errno, or NULL when out of memory.
 */
#ifndef NRG_RECORD_SAMPLER_MEMORY_WATCH_H
#define NRG_RECORD_SAMPLER_MEMORY_WATCH_H

#include <pthread.h>

#include "record/queue.h"
#include "record/sampler/proctree.h"

struct nrg_memory_watch;

/* `tree_lock` guards the tree; it is held only while the list of processes is copied. */
struct nrg_memory_watch *nrg_memory_watch_new(const struct nrg_context *ctx,
                                              struct nrg_proctree *tree, pthread_mutex_t *tree_lock,
                                              struct nrg_queue *queue, int series);
/* *thread is the new thread, for the count of its CPU time. */
int nrg_memory_watch_start(struct nrg_memory_watch *watch, pthread_t *thread);
void nrg_memory_watch_stop(struct nrg_memory_watch *watch);
void nrg_memory_watch_free(struct nrg_memory_watch *watch);

#endif
