/*
 * What calls of CUDA or HIP and records of synchronisation mean: that a thread waits for the GPU,
 * or only asks it. Used by the thread that takes activity records only.
 */
#ifndef NRG_INJECT_WAITS_H
#define NRG_INJECT_WAITS_H

#include <stdint.h>

enum { NRG_CALL_OTHER, NRG_CALL_ASKS, NRG_CALL_WAITS /* this and all above: one each */ };

/* Of a call, by its kind of record and its own number. */
unsigned nrg_inject_call_meaning(uint32_t kind, uint32_t cbid);
/* Of a record of synchronisation, by its type. */
unsigned nrg_inject_sync_meaning(uint32_t type);
/* Of a call of HIP. */
unsigned nrg_inject_hip_meaning(const char *name);
/* The number of a wait's name; its detail is the GPU that is waited for; -1: not known. */
uint32_t nrg_inject_wait_name(unsigned meaning, int gpu);

#endif
