/*
 * Stand-ins for the libraries of ROCm that programs mark their ranges with, for machines without
 * them; they behave as AMD's documents and sources say.
 *
 *   register.c   librocprofiler-register: loads what ROCPROFILER_REGISTER_LIBRARY names and hands
 *                it tables; ends the process when that can't be done, as the real one does
 *   roctx.c      librocprofiler-sdk-roctx: hands over its table with the first call, and calls
 *                what stands in it
 *   roctx64.c    libroctx64 of roctracer: tells the function that was registered
 *   sdk.c        librocprofiler-sdk: a profiler that a program has in it
 *   rocprofiler.c  another librocprofiler-sdk, with records of kernels, copies and calls
 *   client.c     a program with ranges, by either of the two, and with kernels
 */
#ifndef FAKE_ROCTX_H
#define FAKE_ROCTX_H

#include <stdint.h>

/* 0: a profiler has taken them; 1: there is none. */
int rocprofiler_register_library_api_table(const char *name, uint32_t (*import)(void),
                                           uint32_t version, void **tables, uint64_t n_tables,
                                           uint64_t *id);

void roctxMarkA(const char *message);
int roctxRangePushA(const char *message);
int roctxRangePop(void);
uint64_t roctxRangeStartA(const char *message);
void roctxRangeStop(uint64_t id);

/* rocprofiler.c in the place of HIP. */
void fake_hip_load(uint64_t kernel, const char *text);
void fake_hip_launch(uint64_t agent, uint64_t kernel, uint64_t late_us, uint64_t us);
void fake_hip_copy(uint64_t to, uint64_t from, uint64_t us);
void fake_hip_synchronize(uint64_t us);

#endif
