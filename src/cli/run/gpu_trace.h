/*
 * `nrg run --gpu-trace`: has libnrg-inject.so (src/inject) loaded into what the command starts, by
 * the CUDA driver and by NVTX themselves, through the variables that they have for it. Programs
 * that use neither are not touched.
 *
 * Nothing here fails a run: problems are reported on stderr.
 */
#ifndef NRG_CLI_RUN_GPU_TRACE_H
#define NRG_CLI_RUN_GPU_TRACE_H

#include "base/root.h"

/* Changes this process's environment, which the command argv inherits. root: of the machine. */
void nrg_run_gpu_trace_prepare(const struct nrg_root *root, char *const *argv);

#endif
