/*
 * CPU time of the recorder's own threads. In a recorder inside the measured process it must not
 * count as the workload's. A thread that has ended keeps what was last read of it.
 *
 * Embedded, zero to begin with; calls in step with each other.
 */
#ifndef NRG_RECORD_OWN_CPU_H
#define NRG_RECORD_OWN_CPU_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define NRG_OWN_THREADS 64

struct nrg_own_cpu {
    clockid_t clocks[NRG_OWN_THREADS];
    int64_t cpu_ns[NRG_OWN_THREADS];
    size_t n;
};

/* Of a thread that was started and not joined. */
void nrg_own_cpu_add(struct nrg_own_cpu *own, pthread_t thread);
int64_t nrg_own_cpu_ns(struct nrg_own_cpu *own);

#endif
