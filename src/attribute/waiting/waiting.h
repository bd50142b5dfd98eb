/*
 * What a GPU waited for, and what that cost: time and joules in which it did no work of its own,
 * by what it did instead.
 *
 * At each instant between its first and its last work in a run a GPU is in one state, the first
 * of these that holds: `work` (a kernel that computes, a copy or fill within its memory),
 * `collective` (only communication with other GPUs runs), `copy to device`, `copy to host` (only
 * these run); then, with nothing on it, by what its process is doing: `data loader`,
 * `synchronisation`, else `gap`. So what runs under a kernel is no waiting: only what is exposed
 * counts. The states become spans of their own, and their joules are found by the engine of all
 * spans (attribution.h), idle power included: a GPU that waits uses it for nothing.
 *
 * Where kernels were not traced (GPU times of modules by events), gaps, copies and collectives
 * can't be seen; then only time in which no module is on the GPU and the program waits for data is
 * waiting.
 *
 * Init by nrg_waiting_make, release. 0 or -errno with err. One thread at a time.
 */
#ifndef NRG_ATTRIBUTE_WAITING_WAITING_H
#define NRG_ATTRIBUTE_WAITING_WAITING_H

#include "attribute/attribution.h"

enum nrg_wait_kind {
    NRG_WAIT_NOT, /* work */
    NRG_WAIT_COLLECTIVE,
    NRG_WAIT_COPY_IN,
    NRG_WAIT_COPY_OUT,
    NRG_WAIT_LOADER,
    NRG_WAIT_SYNC,
    NRG_WAIT_GAP,
    NRG_WAIT_KINDS
};

/* "data loader"; of NRG_WAIT_NOT "work". */
const char *nrg_wait_kind_name(enum nrg_wait_kind kind);
/* Whether the GPU itself is busy then. */
bool nrg_wait_kind_is_active(enum nrg_wait_kind kind);

struct nrg_wait_use {
    double seconds, energy_j, low_j, high_j; /* energies NAN: not known */
};

/* A power with its interval; NAN: not known. */
struct nrg_wait_power {
    double power_w, low_w, high_w;
};

struct nrg_waiting_device {
    char name[48];                    /* of its energy domain, "gpu-0" */
    char rank[48];                    /* "rank 1 of 4"; "": none, or not known */
    bool kernels;                     /* they were traced */
    struct nrg_wait_use all, waiting; /* from first to last work; what of it was waiting */
    struct nrg_wait_use kinds[NRG_WAIT_KINDS];
    /* idle: without the program, from the baseline; static_: with it, but nothing on the GPU;
     * active: with something on it */
    struct nrg_wait_power idle, static_, active;
    enum nrg_method method;
    unsigned flags; /* NRG_ROW_ of all its rows */
};

struct nrg_waiting {
    struct nrg_waiting_device *devices;
    size_t n;
    struct nrg_wait_use all, waiting; /* of those whose energy is known, else of all */
    double share, low, high;          /* of the joules, 0..1; NAN: not known */
    double time_share;
};

/* Of the domains of an attribution that these options gave. n is 0 where no GPU has spans. */
int nrg_waiting_make(struct nrg_waiting *waiting, struct nrg_recording *recording,
                     const struct nrg_attribution_options *options,
                     const struct nrg_attribution *attribution, struct nrg_error *err);
void nrg_waiting_release(struct nrg_waiting *waiting);

#endif
