/*
 * libnrg-inject.so: what `nrg run --gpu-trace` has loaded into programs that use a GPU. The CUDA
 * driver loads it when CUDA is initialised (CUDA_INJECTION64_PATH), NVTX when a program makes its
 * first annotation (NVTX_INJECTION64_PATH), ROCm's libraries when they begin
 * (ROCPROFILER_REGISTER_LIBRARY): a program that uses none of them never sees it. It marks spans
 * through libnrg, which is in the process once.
 *
 *   ranges.c               ranges and marks become spans of the host's threads
 *   nvtx.c, nvtx_names.c   those of NVTX
 *   roctx.c                those of ROCm
 *   cupti.c, cupti_load.c  finds CUPTI, switches its records on, hands its buffers on
 *   rocm.c                 the same with ROCm's rocprofiler-sdk
 *   follow.c               what both do alike: the thread that marks
 *   activity.c, launches.h activity records become spans on the tracks of the GPU's streams
 *   names.c                kernels' names as people know them; the number of a GPU
 *   waits.c                which calls and records mean that a thread waits for a GPU
 *
 * What holds for all of it: whatever fails, the program runs on as if nothing were there; nothing
 * is printed; errno stays as it was. What it has to say becomes a mark in the recording.
 * State is the process's, because the libraries that call it have nothing to hand in.
 */
#ifndef NRG_INJECT_INJECT_H
#define NRG_INJECT_INJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Says something to whoever reads the recording. */
void nrg_inject_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* CLOCK_MONOTONIC in ns, which is also CUPTI's clock once it has taken it. */
uint64_t nrg_inject_now_ns(void);

/* The number of "gpu-N" for a device as this process counts them. */
int nrg_inject_gpu(uint32_t device);
/* The number of a kernel's name, demangled where the process can do it. */
uint32_t nrg_inject_kernel_name(const char *name);
/* The same of a text that may not stay. */
uint32_t nrg_inject_new_kernel_name(const char *name);
/* The number of the name of a copy, by its kind of CUpti_ActivityMemcpyKind. */
uint32_t nrg_inject_copy_name(unsigned kind, unsigned from, unsigned to);
uint32_t nrg_inject_fill_name(void);

#endif
