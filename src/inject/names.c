/*
 * Names of GPU work, and the number of a GPU (inject.h). CUPTI's texts stay where they are for the
 * life of the process, so a kernel's name is looked up by its address. Mangled names are made
 * readable by the C++ library that is in the process with the kernels; without one they stay.
 * Used by the thread that takes activity records only.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject/inject.h"
#include "nrg/nrg.h"

#define KIND  "kernel"
#define KNOWN 4096 /* a power of two */

static struct {
    const char *text;
    uint32_t number;
} known[KNOWN];

typedef char *(*demangle_function)(const char *, char *, size_t *, int *);

uint32_t nrg_inject_new_kernel_name(const char *name)
{
    demangle_function demangle = (demangle_function)(intptr_t)dlsym(RTLD_DEFAULT, "__cxa_demangle");
    int status = -1;
    char *readable =
        demangle && !strncmp(name, "_Z", 2) ? demangle(name, NULL, NULL, &status) : NULL;
    uint32_t number = nrg_name_intern(readable && !status ? readable : name, KIND, NULL);
    free(readable);
    return number;
}

uint32_t nrg_inject_kernel_name(const char *name)
{
    if (!name)
        return nrg_name_intern("(kernel without a name)", KIND, NULL);
    size_t at = ((uintptr_t)name ^ (uintptr_t)name >> 12) & (KNOWN - 1);
    if (known[at].text != name) {
        known[at].number = nrg_inject_new_kernel_name(name);
        known[at].text = name;
    }
    return known[at].number;
}

uint32_t nrg_inject_copy_name(unsigned kind, unsigned from, unsigned to)
{
    static const char *const kinds[] = {"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                        "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
    static const char *const memories[] = {"Unknown",       "Pageable",      "Pinned",
                                           "Device",        "Array",         "Managed",
                                           "Device Static", "Managed Static"};
    static uint32_t numbers[16][16][16];
    if (kind >= sizeof kinds / sizeof *kinds)
        kind = 0;
    from = from < sizeof memories / sizeof *memories ? from : 0;
    to = to < sizeof memories / sizeof *memories ? to : 0;
    uint32_t *number = &numbers[kind][from][to];
    if (!*number) {
        char text[64];
        snprintf(text, sizeof text, "Memcpy %s (%s -> %s)", kinds[kind], memories[from],
                 memories[to]);
        *number = nrg_name_intern(text, KIND, "memcpy");
    }
    return *number;
}

uint32_t nrg_inject_fill_name(void)
{
    return nrg_name_intern("Memset (Device)", KIND, "memset");
}

/* NVML's number of the device with this PCI address, -1: not known. nrg's domains have these. */
static int nvml_index(const char *bus)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    void *device = NULL;
    unsigned index;
    if (!library)
        return -1;
    int (*init)(void) = (int (*)(void))(intptr_t)dlsym(library, "nvmlInit_v2");
    int (*by_bus)(const char *, void **) = (int (*)(const char *, void **))(intptr_t)dlsym(
        library, "nvmlDeviceGetHandleByPciBusId_v2");
    int (*get_index)(void *, unsigned *) =
        (int (*)(void *, unsigned *))(intptr_t)dlsym(library, "nvmlDeviceGetIndex");
    bool found = init && by_bus && get_index && !init() && !by_bus(bus, &device) &&
                 !get_index(device, &index) && index < 4096;
    return found ? (int)index : -1;
}

/* The n-th number of CUDA_VISIBLE_DEVICES, as nrg.torch reads it; the device's own without. */
static int visible_device(uint32_t device)
{
    const char *at = secure_getenv("CUDA_VISIBLE_DEVICES");
    for (uint32_t i = 0; at && i < device; i++) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    char *end = NULL;
    long number = at ? strtol(at, &end, 10) : -1;
    return at && end != at && number >= 0 && number < 4096 ? (int)number : (int)device;
}

static int find_gpu(uint32_t device)
{
    char bus[32] = "";
    int (*get_bus)(char *, int, int) =
        (int (*)(char *, int, int))(intptr_t)dlsym(RTLD_DEFAULT, "cuDeviceGetPCIBusId");
    void *cuda = get_bus ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (cuda)
        get_bus = (int (*)(char *, int, int))(intptr_t)dlsym(cuda, "cuDeviceGetPCIBusId");
    int index = -1;
    if (get_bus && !get_bus(bus, sizeof bus, (int)device))
        index = nvml_index(bus);
    return index >= 0 ? index : visible_device(device);
}

int nrg_inject_gpu(uint32_t device)
{
    static int gpus[64]; /* number + 1 */
    if (device >= 64)
        return (int)(device & 4095);
    if (!gpus[device])
        gpus[device] = find_gpu(device) + 1;
    return gpus[device] - 1;
}
