/*
 * What the files of the amd-smi driver share: the processes on a GPU (kfd.c) and the probe
 * (probe.c). Ownership: nrg_kfd is the caller's. Errors: negative errno. Threads: one at a time per
 * GPU, as in driver.h.
 */
#ifndef NRG_SENSORS_AMD_INTERNAL_H
#define NRG_SENSORS_AMD_INTERNAL_H

#include "sensors/amd/api.h"
#include "sensors/driver.h"

enum { NRG_AMD_ENERGY_GROUP = 0, NRG_AMD_OTHER_GROUP = 1, NRG_AMD_CHANNELS = 4 };

/* The counter's 64 bits are kept modulo this, which fits a raw value and keeps differences. */
#define NRG_AMD_WRAP (UINT64_C(1) << 62)

/* The polled readings besides energy, in channel order. */
struct nrg_amd_metric {
    const char *suffix; /* of gpu-N */
    enum nrg_quantity quantity;
    double scale;
    const char *what;
    int (*get)(const struct nrg_amd *api, unsigned i, int64_t *raw);
};
#define NRG_AMD_METRICS 3
extern const struct nrg_amd_metric nrg_amd_metrics[NRG_AMD_METRICS];

/* "0000:c1:00.0" of the number that both libraries give. */
void nrg_amd_bdf_name(uint64_t bdf, char *name, size_t size);

int nrg_amd_probe(struct nrg_probe *probe, struct nrg_error *err);

/* --- kfd.c --- */

struct nrg_kfd;

/* NULL with *rc 0 where the kernel knows nothing of processes on this device. root must outlive it.
 */
struct nrg_kfd *nrg_kfd_new(const struct nrg_root *root, const char *bdf, unsigned gpu, int *rc);
void nrg_kfd_free(struct nrg_kfd *kfd);
/* Emits one gpu_process per process, at most every 100 ms. */
void nrg_kfd_read(struct nrg_kfd *kfd, struct nrg_sink *sink);

#endif
