/*
 * Which part of what a GPU did between two reports of its driver is the workload's, and which part
 * it may be where the driver does not tell all that it takes to divide.
 *
 * The shares of a board in MIG mode are the sizes of instances (sensors/nvml/process.c): what a
 * process may use. Beside others, the workload may then have used nothing of the energy above idle,
 * or all of it while they waited. Where it is known how busy instances were, the share is size
 * times that. Joules per busy processor differ with what it does, and part of the power follows the
 * size, so the part is between one division and the other.
 *
 * On a board without MIG a size is that of a client of MPS: how long it computed, or may have. What
 * clients did at the same time can't be told apart: see clients_part.
 *
 * Ownership: uses are read and released; the rest is plain data that starts as zero. Errors: a
 * negative errno. Threads: one.
 */
#ifndef NRG_ENERGY_GPU_PARTS_H
#define NRG_ENERGY_GPU_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "energy/frame.h"

/* A process's use of a GPU until t_ns, as in struct nrg_gpu_process; sm_ppm is known. */
struct nrg_gpu_use {
    int64_t t_ns, gpu, pid, sm_ppm, size_ppm;
};

struct nrg_gpu_uses {
    struct nrg_gpu_use *items; /* by GPU, then time */
    size_t n, cap;
};

/* All of a recording's. 0 or -errno; release in any case. */
int nrg_gpu_uses_read(struct nrg_gpu_uses *uses, struct nrg_recording *recording);
void nrg_gpu_uses_release(struct nrg_gpu_uses *uses);
/* Where the report ends whose first use is number `from`. */
size_t nrg_gpu_uses_end(const struct nrg_gpu_uses *uses, size_t from);

struct nrg_gpu_report {
    double sm[2]; /* shares in ppm, of others [0] and the workload [1] */
    double sizes[2];
    bool unsized; /* some process has no size */
    struct {
        double sm;
        double least, most; /* of the time in which one of them computed, or may have */
    } clients[2];           /* processes with a size, likewise */
};

void nrg_gpu_report_add(struct nrg_gpu_report *report, const struct nrg_gpu_use *use, bool mine);

enum nrg_gpu_doubt {
    NRG_GPU_CERTAIN,
    NRG_GPU_BY_SIZE,     /* of MIG instances */
    NRG_GPU_BY_ACTIVITY, /* of MIG instances */
    NRG_GPU_BY_CLIENT,   /* of MPS */
};

struct nrg_gpu_part {
    double part, low, high; /* of the energy above idle; part: 0 where nobody computed */
    enum nrg_gpu_doubt doubt;
};

/* instances: the board is in MIG mode. */
struct nrg_gpu_part nrg_gpu_report_part(const struct nrg_gpu_report *report, bool instances);

/* Whether a GPU of that name was in MIG mode. */
bool nrg_gpu_has_instances(const struct nrg_frame *frame, const char *gpu);

#endif
