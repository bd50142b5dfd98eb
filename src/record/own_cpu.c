/* See own_cpu.h. */
#include "record/own_cpu.h"

#include "base/clock.h"

void nrg_own_cpu_add(struct nrg_own_cpu *own, pthread_t thread)
{
    if (own->n < NRG_OWN_THREADS && !pthread_getcpuclockid(thread, &own->clocks[own->n]))
        own->n++;
}

int64_t nrg_own_cpu_ns(struct nrg_own_cpu *own)
{
    int64_t sum = 0;
    for (size_t i = 0; i < own->n; i++) {
        struct timespec ts;
        if (!clock_gettime(own->clocks[i], &ts))
            own->cpu_ns[i] = (int64_t)ts.tv_sec * NRG_NS_PER_S + ts.tv_nsec;
        sum += own->cpu_ns[i];
    }
    return sum;
}
