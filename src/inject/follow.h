/*
 * What the two sources of GPU work, CUPTI (cupti.c) and rocprofiler-sdk (rocm.c), do alike: a
 * thread of ours marks what they hand over, as fast as the recorder takes it, and says at the end
 * what it cost and what is missing.
 */
#ifndef NRG_INJECT_FOLLOW_H
#define NRG_INJECT_FOLLOW_H

#include <pthread.h>
#include <stdbool.h>

#include "inject/activity.h"

/* 1 while kernels become spans: nrg.torch then leaves out its own events. */
extern _Atomic int nrg_inject_tracing;

/* Marks all work that ended before a time, waiting for room. */
void nrg_follow_mark(struct nrg_gpu_activity *activity, int64_t before_ns);
/* For the report, by the thread that did it; `source`: whose own cost is not known. */
void nrg_follow_say(const struct nrg_gpu_activity *activity, uint64_t n_dropped,
                    const char *source);
/* A thread that no signal of the program's reaches. */
bool nrg_follow_start(pthread_t *thread, void *(*run)(void *));
/* Waits for it, as long as the end of a program may take. */
void nrg_follow_join(pthread_t thread);

#endif
