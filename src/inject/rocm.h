/* Kernels and copies of ROCm's GPUs, by rocprofiler-sdk (rocm.c). */
#ifndef NRG_INJECT_ROCM_H
#define NRG_INJECT_ROCM_H

/*
 * Makes nrg a tool of rocprofiler-sdk, once, before it gets the first table of HSA or HIP. Returns
 * the library that wants the tables; NULL: none was loaded.
 */
void *nrg_rocm_begin(void);

#endif
