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

enum nrg_gpu_trace {
    NRG_GPU_TRACE_UNSAID, /* with --torch, where there is a GPU */
    NRG_GPU_TRACE_ON,
    NRG_GPU_TRACE_OFF
};

/* There is a GPU whose kernels can be traced. root: of the machine. */
bool nrg_run_gpu_trace_helps(const struct nrg_root *root);
/* Changes this process's environment, which the command argv inherits. asked: by the user, who is
 * told what can't be had. */
void nrg_run_gpu_trace_prepare(const struct nrg_root *root, char *const *argv, bool asked);

#endif
