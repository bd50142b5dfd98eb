/*
 * PSS, USS and I/O of the workload's processes, on a thread of its own and seldom: reading
 * smaps_rollup walks a process's page tables and may take milliseconds.
 */
#ifndef NRG_RECORD_MEMORY_WATCH_H
#define NRG_RECORD_MEMORY_WATCH_H

#include <pthread.h>

#include "record/sampler/proctree.h"
#include "record/queue.h"

struct nrg_memory_watch;

/* `tree_lock` guards the tree; it is held only while the list of processes is copied. */
struct nrg_memory_watch *nrg_memory_watch_new(const struct nrg_context *ctx,
                                              struct nrg_proctree *tree, pthread_mutex_t *tree_lock,
                                              struct nrg_queue *queue, int series);
/* *thread: for those who count its CPU time. */
int nrg_memory_watch_start(struct nrg_memory_watch *watch, pthread_t *thread);
void nrg_memory_watch_stop(struct nrg_memory_watch *watch);
void nrg_memory_watch_free(struct nrg_memory_watch *watch);

#endif
