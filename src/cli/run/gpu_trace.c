/*
 * See run/gpu_trace.h. A variable that is set belongs to another profiler, and stays. So does
 * ROCm's when its profiler has tools: they need the library that ours would stand for.
 */
#include "cli/run/gpu_trace.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/run/parts.h"
#include "cli/screen.h"

#define NRG_INJECT_FILE "libnrg-inject.so"

static bool is_taken(const char *name, const char *what)
{
    const char *before = getenv(name);
    bool taken = before && *before;
    if (taken)
        nrg_say("--gpu-trace: %s is set already (%s): another profiler gets %s", name, before,
                what);
    return taken;
}

static void set_variable(const char *name, const char *library, const char *what)
{
    if (!is_taken(name, what))
        setenv(name, library, 1);
}

static void set_rocm_variable(const char *library)
{
    static const char what[] = "the ranges of roctx";
    if (!is_taken("ROCP_TOOL_LIBRARIES", what))
        set_variable("ROCPROFILER_REGISTER_LIBRARY", library, what);
}

void nrg_run_gpu_trace_prepare(void)
{
    static const struct nrg_run_part part = {.option = "gpu-trace",
                                             .file = NRG_INJECT_FILE,
                                             .in_build = "src",
                                             .in_wheel = "..",
                                             .beside = NRG_LIBRARY_PLACE,
                                             .absolute = NRG_LIBRARY_FOLDER};
    char folder[PATH_MAX], library[PATH_MAX + sizeof NRG_INJECT_FILE];
    if (!nrg_run_part_find(&part, folder)) {
        nrg_say("--gpu-trace: " NRG_INJECT_FILE " was not found beside the program: the command "
                "runs without");
        return;
    }
    snprintf(library, sizeof library, "%s/" NRG_INJECT_FILE, folder);
    set_variable("CUDA_INJECTION64_PATH", library, "the GPU's kernels");
    set_variable("NVTX_INJECTION64_PATH", library, "the ranges of NVTX");
    set_rocm_variable(library);
}
