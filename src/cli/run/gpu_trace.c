/*
 * See run/gpu_trace.h. A variable that is set belongs to another profiler, and stays. So does
 * ROCm's when its profiler has tools: they need the library that ours would stand for.
 *
 * A program that gets a variable but can't load the library that it names must not be harmed. NVTX
 * passes over it. AMD's librocprofiler-register ends the program, and what the CUDA driver does is
 * not documented. So these two are not set for commands that enter another root, where nrg's folder
 * is not there; ROCm's is set only where there is an AMD GPU, because nobody else gains by it.
 */
#include "cli/run/gpu_trace.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/run/parts.h"
#include "cli/screen.h"

#define NRG_INJECT_FILE "libnrg-inject.so"
#define CUDA_VARIABLE   "CUDA_INJECTION64_PATH"
#define ROCM_VARIABLE   "ROCPROFILER_REGISTER_LIBRARY"
#define AMD_DEVICE      "/dev/kfd"

/* The user has set the variable to nrg's library. */
static bool is_asked_for(const char *name, const char *library)
{
    const char *before = getenv(name);
    return before && !strcmp(before, library);
}

/* For whom the variables are set. */
struct wish {
    const struct nrg_root *root;
    const char *library;
    bool asked; /* by --gpu-trace: what can't be had is said */
};

static bool is_taken(const struct wish *w, const char *name, const char *library, const char *what)
{
    const char *before = getenv(name);
    bool taken = before && *before;
    if (taken && w->asked && !is_asked_for(name, library))
        nrg_say("--gpu-trace: %s is set already (%s): another profiler gets %s", name, before,
                what);
    return taken;
}

static void set_variable(const struct wish *w, const char *name, const char *what)
{
    if (!is_taken(w, name, w->library, what))
        setenv(name, w->library, 1);
}

/* The program of a word of a command line, which may have a path. */
static bool enters_another_root(const char *word, size_t len)
{
    static const char *const names[] = {
        "apptainer",    "singularity",    "docker",     "podman",  "nerdctl",
        "enroot",       "ch-run",         "shifter",    "sarus",   "udocker",
        "charliecloud", "chroot",         "unshare",    "nsenter", "bwrap",
        "proot",        "systemd-nspawn", "lxc-attach", "lxc",     "incus",
        "runc",         "crun",           "buildah",    "toolbox", "distrobox",
        "flatpak",      "firejail",       "machinectl", "ctr"};
    for (size_t i = len; i > 0; i--)
        if (word[i - 1] == '/') {
            word += i;
            len -= i;
            break;
        }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && !memcmp(names[i], word, len))
            return true;
    return len >= 11 && !memcmp(word, "--container", 11); /* of srun, by pyxis */
}

/*
 * The word of the command that enters another root, NULL for none. All words are looked at, also
 * those of a shell's text: a launcher may stand before it, and one too many costs a trace only.
 */
static const char *find_container(char *const *argv, size_t *len)
{
    static const char between[] = " \t\n;|&()'\"`";
    for (; *argv; argv++)
        for (const char *word = *argv; *word; word += *len) {
            word += strspn(word, between);
            *len = strcspn(word, between);
            if (enters_another_root(word, *len))
                return word;
        }
    return NULL;
}

static void set_rocm_variable(const struct wish *w)
{
    static const char what[] = "kernels of ROCm and the ranges of roctx";
    if (nrg_root_exists(w->root, AMD_DEVICE) && !is_taken(w, "ROCP_TOOL_LIBRARIES", "", what))
        set_variable(w, ROCM_VARIABLE, what);
}

static void set_variables(const struct wish *w, char *const *argv)
{
    size_t len = 0;
    const char *container = find_container(argv, &len);
    set_variable(w, "NVTX_INJECTION64_PATH", "the ranges of NVTX");
    if (container && w->asked && !is_asked_for(CUDA_VARIABLE, w->library) &&
        !is_asked_for(ROCM_VARIABLE, w->library))
        nrg_say("--gpu-trace: kernels and ranges of roctx are off: %.*s may start programs where "
                "nrg's folder is not, and they would fail (docs/gpu-trace.md)",
                (int)len, container);
    if (container)
        return;
    set_variable(w, CUDA_VARIABLE, "the GPU's kernels");
    set_rocm_variable(w);
}

bool nrg_run_gpu_trace_helps(const struct nrg_root *root)
{
    return nrg_root_exists(root, "/dev/nvidiactl") || nrg_root_exists(root, AMD_DEVICE);
}

void nrg_run_gpu_trace_prepare(const struct nrg_root *root, char *const *argv, bool asked)
{
    static const struct nrg_run_part part = {.option = "gpu-trace",
                                             .file = NRG_INJECT_FILE,
                                             .in_build = "src",
                                             .in_wheel = "..",
                                             .beside = NRG_LIBRARY_PLACE,
                                             .absolute = NRG_LIBRARY_FOLDER};
    char folder[PATH_MAX], library[PATH_MAX + sizeof NRG_INJECT_FILE];
    if (!nrg_run_part_find(&part, folder)) {
        if (asked)
            nrg_say("--gpu-trace: " NRG_INJECT_FILE " was not found beside the program: the "
                    "command runs without");
        return;
    }
    snprintf(library, sizeof library, "%s/" NRG_INJECT_FILE, folder);
    set_variables(&(struct wish){root, library, asked}, argv);
}
