/*
 * Our own declarations of the parts of AMD's two management libraries that nrg uses, and one table
 * for both: AMD SMI (libamd_smi.so, ROCm 6 and later) and ROCm SMI (librocm_smi64.so.1, before it).
 * Loaded by dlopen, so that nrg builds and runs without AMD's software.
 *
 * Only functions that hand over plain numbers are used. AMD SMI's structures change from release to
 * release under one name (that of the power has 68 bytes in 6.2, 40 in 6.4 and 192 in 7.0, that of
 * a process 224 and 704), and nothing says which one a library has. So power is the kernel's own
 * (board/hwmon.c, from which ROCm SMI has it, too) and processes are the kernel's (kfd.c). The one
 * structure below is the same from 6.2 to 7.0.
 *
 * The libraries are not safe for threads that share a device; each user loads and unloads on its
 * own, and they count that. tests/house/test_gpu_headers.py compares with AMD's declarations.
 */
#ifndef NRG_SENSORS_AMD_API_H
#define NRG_SENSORS_AMD_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* AMD SMI's results. */
enum {
    AMDSMI_SUCCESS = 0,
    AMDSMI_INVAL = 1,
    AMDSMI_NOT_SUPPORTED = 2,
    AMDSMI_NOT_YET_IMPLEMENTED = 3,
    AMDSMI_TIMEOUT = 8,
    AMDSMI_NO_PERM = 10,
    AMDSMI_IO = 12,
    AMDSMI_OUT_OF_RESOURCES = 15,
    AMDSMI_BUSY = 30,
    AMDSMI_NOT_FOUND = 31,
    AMDSMI_DRIVER_NOT_LOADED = 34,
    AMDSMI_NO_DATA = 40,
};

/* ROCm SMI's. */
enum {
    RSMI_SUCCESS = 0,
    RSMI_INVALID_ARGS = 1,
    RSMI_NOT_SUPPORTED = 2,
    RSMI_FILE_ERROR = 3,
    RSMI_PERMISSION = 4,
    RSMI_OUT_OF_RESOURCES = 5,
    RSMI_INIT_ERROR = 8,
    RSMI_NOT_YET_IMPLEMENTED = 9,
    RSMI_NOT_FOUND = 10,
    RSMI_NO_DATA = 14,
    RSMI_BUSY = 16,
};

#define AMDSMI_INIT_GPUS    2
#define AMDSMI_VRAM         0 /* of a type of memory; the same in both */
#define AMDSMI_EDGE         0 /* of a place of temperature; the same in both */
#define AMDSMI_JUNCTION     1
#define AMDSMI_TEMP_CURRENT 0

struct nrg_amdsmi_activity {
    uint32_t gfx, umc, mm; /* percent; all ones: not there */
    uint32_t reserved[13];
};

#define NRG_AMD_MOST_GPUS 64

/* One of the two; functions that are not there are NULL. */
struct nrg_amd {
    void *library;
    bool rocm; /* ROCm SMI; else AMD SMI */
    unsigned n_gpus;
    void *handles[NRG_AMD_MOST_GPUS]; /* of AMD SMI; ROCm SMI has numbers */
    int (*init)(uint64_t flags);
    int (*shut_down)(void);
    int (*status_string)(int, const char **);
    /* AMD SMI */
    int (*sockets)(uint32_t *count, void **handles);
    int (*processors)(void *socket, uint32_t *count, void **handles);
    int (*bdf)(void *, uint64_t *);
    int (*energy)(void *, uint64_t *count, float *resolution_uj, uint64_t *stamp_ns);
    int (*activity)(void *, struct nrg_amdsmi_activity *);
    int (*memory)(void *, int type, uint64_t *bytes);
    int (*temperature)(void *, int place, int metric, int64_t *);
    /* ROCm SMI */
    int (*rsmi_count)(uint32_t *);
    int (*rsmi_bdf)(uint32_t, uint64_t *);
    int (*rsmi_energy)(uint32_t, uint64_t *count, float *resolution_uj, uint64_t *stamp_ns);
    int (*rsmi_busy)(uint32_t, uint32_t *percent);
    int (*rsmi_memory)(uint32_t, int type, uint64_t *bytes);
    int (*rsmi_temperature)(uint32_t, uint32_t place, int metric, int64_t *milli_c);
};

/* The user's choice of a library ($NRG_AMD_LIBRARY), NULL for none. */
const char *nrg_amd_library(void);

/*
 * Loads a library and lists its GPUs. 0; a negative errno with a sentence in `why`. On failure
 * nothing stays loaded.
 */
int nrg_amd_load(struct nrg_amd *api, char *why, size_t size);
void nrg_amd_unload(struct nrg_amd *api);

/* Readings of GPU i, as int64 in the units named; -ENOTSUP: it has none, or another -errno. */
int nrg_amd_bdf(const struct nrg_amd *api, unsigned i, uint64_t *bdf);
/* stamp_ns: of the driver's clock; 0: none. */
int nrg_amd_energy(const struct nrg_amd *api, unsigned i, uint64_t *count, double *resolution_j,
                   int64_t *stamp_ns);
int nrg_amd_busy_percent(const struct nrg_amd *api, unsigned i, int64_t *percent);
int nrg_amd_memory_bytes(const struct nrg_amd *api, unsigned i, int64_t *bytes);
int nrg_amd_temperature_c(const struct nrg_amd *api, unsigned i, int64_t *celsius);

/* The calls' names in the library that is loaded, for people. */
const char *nrg_amd_energy_call(const struct nrg_amd *api);

#endif
